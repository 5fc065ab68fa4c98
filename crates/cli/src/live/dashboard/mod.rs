//! Dashboards on the terminal: flows of runs in real time, tests of a server.
//!
//! A dashboard takes the terminal of stderr while it is shown; stdout stays for data. What is said
//! meanwhile is held back ([`output::hold`]), shown in a line, and printed when the terminal is
//! given back.

mod plot;
mod runs;
mod screen;
mod server;

use std::io::IsTerminal as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};

use fullpipe_net::session::board::Board;
use fullpipe_realtime::live::Live;
use ratatui::Frame;

use self::runs::Runs;
use self::screen::{Asked, Screen};
use self::server::Server;
use super::prometheus::server::Tally;
use crate::exit::{Exit, Failure};
use crate::output;

pub use screen::{Heard, Keys, leave};

/// Refuses a dashboard where there is no terminal for it.
///
/// # Errors
/// Stderr is no terminal, or one without positions.
pub fn check() -> Result<(), Failure> {
    let dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
    if std::io::stderr().is_terminal() && !dumb {
        return Ok(());
    }
    let message = "--dashboard: stderr is no terminal that can show one";
    Err(Failure::new(Exit::Usage, message)
        .hint("`--interval 1s` of `send` prints lines, `--prometheus ADDRESS:PORT` serves numbers"))
}

/// Shows the runs of `live` until `done`. `total`: number of runs, if there are several. `stop` is
/// called for `q` and Ctrl-C, as for a signal.
///
/// # Errors
/// The terminal cannot be had.
pub fn of_runs(
    title: String,
    total: usize,
    live: &Live,
    stop: &dyn Fn(),
    done: &AtomicBool,
) -> Result<(), Failure> {
    live.is_read();
    let mut runs = Runs::new(title, total);
    shown(stop, done, |frame, _| {
        runs.take(&live.latest());
        runs.draw(frame);
    })
}

/// Shows the tests of a server until `done`.
///
/// # Errors
/// The terminal cannot be had.
pub fn of_server(
    title: String,
    tally: &Arc<Tally>,
    board: &Board,
    stop: &dyn Fn(),
    done: &AtomicBool,
) -> Result<(), Failure> {
    let mut server = Server::new(title);
    shown(stop, done, |frame, now| {
        server.take(now, tally, board);
        server.draw(frame);
    })
}

/// Waits for a dashboard's thread; a panic there is an internal failure of the command.
pub fn closed(dashboard: Option<ScopedJoinHandle<'_, Result<(), Failure>>>) -> Result<(), Failure> {
    let panicked = |_| Failure::new(Exit::Internal, "the dashboard panicked");
    match dashboard {
        Some(thread) => thread.join().map_err(panicked)?,
        None => Ok(()),
    }
}

/// Draws until `done`; the time since the beginning goes with every picture.
fn shown(
    stop: &dyn Fn(),
    done: &AtomicBool,
    mut draw: impl FnMut(&mut Frame<'_>, Duration),
) -> Result<(), Failure> {
    let failed = |e: &std::io::Error| Failure::io("--dashboard: cannot use the terminal", e);
    let begin = Instant::now();
    let held = output::hold();
    let mut screen = Screen::open().map_err(|e| failed(&e))?;
    let mut ended = Ok(Asked::Nothing);
    while !done.load(Ordering::Acquire) {
        ended = screen
            .draw(|frame| draw(frame, begin.elapsed()))
            .and_then(|()| screen.asked(PICTURE));
        match ended {
            Ok(Asked::Nothing) => {}
            Ok(Asked::Stop) => stop(),
            // What it shows goes on; a closed terminal sends its own signal.
            Ok(Asked::Gone) | Err(_) => break,
        }
    }
    drop(screen);
    drop(held);
    if let Err(e) = ended {
        output::warning(&format!("the dashboard has ended: {e}"));
    }
    Ok(())
}

/// Time between two pictures.
const PICTURE: Duration = Duration::from_millis(200);
