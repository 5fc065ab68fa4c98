//! The terminal of stderr, taken and given back.

use std::fs::File;
use std::io::{self, Stderr};
use std::mem::ManuallyDrop;
use std::os::fd::AsFd as _;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::{Frame, Terminal};

/// The terminal; it is given back with this value.
pub struct Screen {
    /// Never dropped: its end says what fails where nobody may be to hear it, which is a panic.
    terminal: ManuallyDrop<Terminal<CrosstermBackend<Stderr>>>,
    keys: Keys,
}

/// The keys of the program's terminal.
pub struct Keys(File);

/// What has come of waiting for keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// None were pressed.
    Nothing,
    /// There may be some to read.
    Something,
    /// The terminal was closed.
    HangUp,
}

impl Keys {
    /// Of the terminal that the program belongs to.
    pub fn open() -> io::Result<Self> {
        File::open("/dev/tty").map(Self)
    }

    /// Waits for keys so long. What reads them for us reads a closed terminal for ever, so it is
    /// asked only when there is something.
    pub fn wait(&self, longest: Duration) -> io::Result<Heard> {
        let mut fds = [PollFd::new(self.0.as_fd(), PollFlags::POLLIN)];
        let longest = PollTimeout::try_from(longest).unwrap_or(PollTimeout::ZERO);
        match poll(&mut fds, longest) {
            Ok(0) => return Ok(Heard::Nothing),
            Ok(_) | Err(Errno::EINTR) => {}
            Err(e) => return Err(e.into()),
        }
        let found = fds[0].revents().unwrap_or(PollFlags::empty());
        let closed = PollFlags::POLLHUP | PollFlags::POLLERR | PollFlags::POLLNVAL;
        Ok(match found.intersects(closed) {
            true => Heard::HangUp,
            false => Heard::Something,
        })
    }
}

/// What a user has asked for, or what became of the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// Nothing.
    Nothing,
    /// To stop, by `q`, Escape or Ctrl-C.
    Stop,
    /// Nobody can ask any more: the terminal was closed.
    Gone,
}

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
        let keys = Keys::open()?;
        enable_raw_mode()?;
        TAKEN.store(true, Ordering::Release);
        let opened = execute!(io::stderr(), EnterAlternateScreen)
            .and_then(|()| Terminal::new(CrosstermBackend::new(io::stderr())));
        if opened.is_err() {
            leave();
        }
        opened.map(|terminal| Self {
            terminal: ManuallyDrop::new(terminal),
            keys,
        })
    }

    /// Draws a picture.
    pub fn draw(&mut self, picture: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        match TAKEN.load(Ordering::Acquire) {
            true => self.terminal.draw(picture).map(|_| ()),
            false => Ok(()),
        }
    }

    /// Waits for keys so long.
    pub fn asked(&mut self, wait: Duration) -> io::Result<Asked> {
        let until = Instant::now() + wait;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.keys.wait(left)? {
                Heard::Nothing => return Ok(Asked::Nothing),
                Heard::HangUp => return Ok(Asked::Gone),
                Heard::Something => {}
            }
            while event::poll(Duration::ZERO)? {
                if let Event::Key(key) = event::read()?
                    && key.kind == KeyEventKind::Press
                {
                    let interrupted = key.code == KeyCode::Char('c')
                        && key.modifiers.contains(KeyModifiers::CONTROL);
                    if interrupted || matches!(key.code, KeyCode::Char('q') | KeyCode::Esc) {
                        return Ok(Asked::Stop);
                    }
                }
            }
            if Instant::now() >= until {
                return Ok(Asked::Nothing);
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
