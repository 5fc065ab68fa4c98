//! The terminal of stderr, taken and given back.

use std::io::{self, Stderr};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::{Frame, Terminal};

/// The terminal; it is given back with this value.
pub struct Screen(Terminal<CrosstermBackend<Stderr>>);

impl Screen {
    /// Takes the terminal: another screen, keys one by one.
    pub fn open() -> io::Result<Self> {
        static HOOKED: Once = Once::new();
        HOOKED.call_once(|| {
            let printed = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                // Its message would go with the screen.
                leave();
                printed(panic);
            }));
        });
        enable_raw_mode()?;
        TAKEN.store(true, Ordering::Release);
        let opened = execute!(io::stderr(), EnterAlternateScreen)
            .and_then(|()| Terminal::new(CrosstermBackend::new(io::stderr())));
        if opened.is_err() {
            leave();
        }
        opened.map(Self)
    }

    /// Draws a picture.
    pub fn draw(&mut self, picture: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        match TAKEN.load(Ordering::Acquire) {
            true => self.0.draw(picture).map(|_| ()),
            false => Ok(()),
        }
    }

    /// Waits for keys so long; true if one of them was `q`, Escape or Ctrl-C.
    pub fn is_asked_to_stop(&mut self, wait: Duration) -> io::Result<bool> {
        let until = Instant::now() + wait;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if !event::poll(left)? {
                return Ok(false);
            }
            if let Event::Key(key) = event::read()?
                && key.kind == KeyEventKind::Press
            {
                let interrupted =
                    key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
                if interrupted || matches!(key.code, KeyCode::Char('q') | KeyCode::Esc) {
                    return Ok(true);
                }
            }
            if left.is_zero() {
                return Ok(false);
            }
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        leave();
    }
}

/// Gives the terminal back, if it is taken: also before the program ends at once.
pub fn leave() {
    if TAKEN.swap(false, Ordering::AcqRel) {
        // Nothing better can be done with a terminal that refuses.
        let _ = execute!(io::stderr(), LeaveAlternateScreen, Show);
        let _ = disable_raw_mode();
    }
}

/// There is a screen.
static TAKEN: AtomicBool = AtomicBool::new(false);
