//! `fullpipe top`: flows of the running kernel in a table that renews itself.

mod flows;
mod picture;

use std::io::{self, IsTerminal};
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use fullpipe_observe::Observer;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use self::flows::Flows;
use self::picture::{Picture, draw};
use super::observe::failed;
use super::observe::policies::Policies;
use crate::args::{Top, TopOrder};
use crate::exit::{Exit, Failure};
use crate::live::dashboard::{Heard, Keys};

/// Runs the command.
pub fn top(args: &Top) -> Result<Exit, Failure> {
    if !io::stdout().is_terminal() {
        let message = "`top` draws on a terminal, and the output is none";
        return Err(Failure::new(Exit::Usage, message)
            .hint("`fullpipe observe` prints the same again and again, as a table or as NDJSON"));
    }
    let observer = Observer::new(args.look.filter()).map_err(|e| failed(&e))?;
    let stop = ctrlc::set_handler(|| STOP.store(true, Ordering::Relaxed));
    stop.map_err(|e| Failure::new(Exit::Environment, format!("cannot listen for Ctrl-C: {e}")))?;
    let interval = args.look.interval();
    let mut session = Session {
        observer,
        policies: Policies::begin(&args.tuner.state, interval),
        interval,
        end: args.duration.map(|d| Duration::from_nanos(d.as_nanos())),
        flows: Flows::default(),
        picture: Picture::new(args.sort, interval),
        held: false,
    };
    let keys = Keys::open().map_err(|e| broken(&e))?;
    let terminal = ratatui::try_init();
    // Its end would say on a closed terminal what fails there, which is a panic.
    let mut terminal = ManuallyDrop::new(terminal.map_err(|e| broken(&e))?);
    let ended = session.live(&mut terminal, &keys);
    let _ = ratatui::try_restore();
    ended.map(|()| Exit::Ok)
}

fn broken(error: &io::Error) -> Failure {
    Failure::new(Exit::Environment, format!("the terminal: {error}"))
}

/// Set by a signal.
static STOP: AtomicBool = AtomicBool::new(false);
/// Longest wait for a key without a look at signals.
const GLANCE: Duration = Duration::from_millis(50);

struct Session {
    observer: Observer,
    policies: Policies,
    interval: Duration,
    end: Option<Duration>,
    flows: Flows,
    picture: Picture,
    held: bool,
}

impl Session {
    fn live(&mut self, terminal: &mut DefaultTerminal, keys: &Keys) -> Result<(), Failure> {
        let begin = Instant::now();
        let mut due = Duration::ZERO;
        while !STOP.load(Ordering::Relaxed) {
            let now = begin.elapsed();
            if now >= due {
                let seen = self.observer.observe(now).map_err(|e| failed(&e))?;
                self.flows.look(&seen, &self.policies.latest());
                due = super::observe::next(now, self.interval);
                if !self.held {
                    self.picture.show(&self.flows, now);
                }
            }
            if self.end.is_some_and(|end| now >= end) {
                break;
            }
            let drawn = terminal.draw(|frame| draw(frame, &mut self.picture));
            drawn.map_err(|e| broken(&e))?;
            let wait = due.saturating_sub(begin.elapsed()).min(GLANCE);
            match keys.wait(wait).map_err(|e| broken(&e))? {
                Heard::Nothing => continue,
                Heard::HangUp => break,
                Heard::Something => {}
            }
            while event::poll(Duration::ZERO).map_err(|e| broken(&e))? {
                let event = event::read().map_err(|e| broken(&e))?;
                if let Event::Key(key) = event
                    && key.kind != KeyEventKind::Release
                    && !self.pressed(key, begin.elapsed())
                {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// False: the end.
    fn pressed(&mut self, key: KeyEvent, now: Duration) -> bool {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('c') if control => return false,
            KeyCode::Char('q') | KeyCode::Esc => return false,
            KeyCode::Char('s') => {
                self.picture.order = after(self.picture.order);
                self.picture.show(&self.flows, now);
            }
            KeyCode::Char(' ') => {
                self.held = !self.held;
                self.picture.held = self.held;
            }
            KeyCode::Up => self.picture.scroll(-1),
            KeyCode::Down => self.picture.scroll(1),
            KeyCode::PageUp => self.picture.scroll(-20),
            KeyCode::PageDown => self.picture.scroll(20),
            KeyCode::Home => self.picture.scroll(isize::MIN),
            KeyCode::End => self.picture.scroll(isize::MAX),
            _ => {}
        }
        true
    }
}

fn after(order: TopOrder) -> TopOrder {
    match order {
        TopOrder::Rate => TopOrder::Window,
        TopOrder::Window => TopOrder::Rtt,
        TopOrder::Rtt => TopOrder::Resent,
        TopOrder::Resent => TopOrder::Peer,
        TopOrder::Peer => TopOrder::Rate,
    }
}
