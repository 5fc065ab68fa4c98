//! Progress on stderr: a bar with the time left on a terminal, an occasional line elsewhere.

use std::fmt;
use std::io::IsTerminal;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use fullpipe_results::run::{self, RunFinished};
use fullpipe_results::store::Earlier;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use crate::args::ShowProgress;
use crate::commands::check::counted;
use crate::commands::run::size::{Outlook, Size};
use crate::output;
use crate::table::number;

/// Progress of the runs of one scenario.
pub struct Progress {
    name: String,
    show: ShowProgress,
    outlook: Option<Outlook>,
    state: Mutex<State>,
}

struct State {
    shown: Shown,
    started: Instant,
    /// Runs taken over from an earlier time: they say nothing about the time left.
    reused: usize,
    /// How much is written has been looked at.
    looked: bool,
}

impl State {
    fn warn(&self, message: &str) {
        match &self.shown {
            Shown::Bar(bar) => bar.suspend(|| output::warning(message)),
            _ => output::warning(message),
        }
    }
}

enum Shown {
    Nothing,
    Bar(ProgressBar),
    /// When the last line was printed.
    Lines(Instant),
}

impl Progress {
    /// Of the scenario `name`; warnings are shown in any case.
    pub fn new(name: &str, show: ShowProgress) -> Self {
        let state = State {
            shown: Shown::Nothing,
            started: Instant::now(),
            reused: 0,
            looked: false,
        };
        Self {
            name: name.to_owned(),
            show,
            outlook: None,
            state: Mutex::new(state),
        }
    }

    /// With a warning if what is written into a directory will be much.
    pub fn into_directory(mut self, outlook: Outlook) -> Self {
        self.outlook = Some(outlook);
        self
    }

    /// Removes the bar and returns the time since the first run began.
    pub fn finish(&self) -> Duration {
        let state = self.state();
        if let Shown::Bar(bar) = &state.shown {
            bar.finish_and_clear();
        }
        state.started.elapsed()
    }

    /// Does something else with the terminal, beside which the bar would stand.
    pub fn beside<T>(&self, print: impl FnOnce() -> T) -> T {
        match &self.state().shown {
            Shown::Bar(bar) => bar.suspend(print),
            _ => print(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // What a panicking thread left is still good enough to draw.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl run::Progress for Progress {
    fn outdated(&self, runs: usize, earlier: Earlier) {
        if let ShowProgress::None = self.show {
            return;
        }
        let why = match earlier {
            Earlier::Remade => "`--resume` takes over what is finished",
            Earlier::Resumed => "another build of fullpipe, or another kernel, made them",
            // That the others go is what was asked for.
            Earlier::Replaced => return,
        };
        let there = counted(runs, "finished run");
        output::say(&format!(
            "{}: {there} of before made again: {why}",
            self.name
        ));
    }

    fn begin(&self, total: usize, reused: usize) {
        let mut state = self.state();
        (state.started, state.reused) = (Instant::now(), reused);
        state.looked = self.outlook.is_none();
        let bar = match self.show {
            ShowProgress::None => return,
            ShowProgress::Auto => std::io::stderr().is_terminal(),
            ShowProgress::Bar => true,
            ShowProgress::Lines => false,
        };
        if reused == total {
            return;
        }
        state.shown = if bar {
            let bar =
                ProgressBar::with_draw_target(Some(total as u64), ProgressDrawTarget::stderr());
            // The template is a constant of this file: a test reads it.
            let style = ProgressStyle::with_template(TEMPLATE)
                .unwrap_or_else(|_| ProgressStyle::default_bar())
                .with_key("left", left);
            bar.set_style(style.progress_chars("=> "));
            bar.set_prefix(self.name.clone());
            bar.set_position(reused as u64);
            bar.reset_eta();
            bar.enable_steady_tick(Duration::from_millis(200));
            Shown::Bar(bar)
        } else {
            Shown::Lines(Instant::now())
        };
    }

    fn finished(&self, run: &RunFinished<'_>) {
        let mut state = self.state();
        let (started, reused) = (state.started, state.reused);
        let size = match (&self.outlook, state.looked) {
            (Some(outlook), false) => outlook.after(run, reused),
            _ => None,
        };
        state.looked |= size.is_some();
        if let Some(Size::Large(text)) = size {
            state.warn(&format!("{}: {text}", self.name));
        }
        if output::verbose() {
            let line = told(&self.name, run);
            match &state.shown {
                Shown::Bar(bar) => bar.suspend(|| output::say(&line)),
                _ => output::say(&line),
            }
        }
        match &mut state.shown {
            Shown::Nothing => {}
            Shown::Bar(bar) => {
                bar.set_length(run.total as u64);
                bar.set_position(run.done as u64);
            }
            Shown::Lines(last) if run.done < run.total && last.elapsed() >= BETWEEN_LINES => {
                *last = Instant::now();
                let made = run.done.saturating_sub(reused).max(1);
                let left = started
                    .elapsed()
                    .mul_f64((run.total - run.done) as f64 / made as f64);
                let (name, done, total) = (&self.name, run.done, run.total);
                output::say(&format!(
                    "{name}: {done} of {total} runs, about {} left",
                    clock(left)
                ));
            }
            Shown::Lines(_) => {}
        }
    }

    fn warn(&self, message: &str) {
        self.state().warn(message);
    }
}

/// `demo: case 2, seed 1: 60.0 s in 0.214 s, 51,402 packets (3 of 8 runs, 1f0c...)`.
fn told(name: &str, run: &RunFinished<'_>) -> String {
    let key = run.key.get(..12).unwrap_or(run.key);
    format!(
        "{name}: case {}, seed {}: {} s in {} s, {} packets ({} of {} runs, {key})",
        run.case,
        run.seed,
        number(run.simulated_s, 3),
        number(run.wall_s, 3),
        number(run.packets as f64, 1),
        run.done,
        run.total,
    )
}

/// A span for people: `4 s`, `3 min 20 s`, `2 h 5 min`.
pub fn clock(span: Duration) -> String {
    let seconds = span.as_secs_f64().round() as u64;
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

/// Nobody knows it before the first run is done.
fn left(state: &ProgressState, out: &mut dyn fmt::Write) {
    let eta = state.eta();
    if eta >= Duration::from_secs(1) {
        // A terminal that is gone has no use for it.
        let _ = write!(out, ", about {} left", clock(eta));
    }
}

const TEMPLATE: &str = "{prefix} [{bar:40}] {pos}/{len} runs, {elapsed} gone{left}";
const BETWEEN_LINES: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_template_is_valid() {
        ProgressStyle::with_template(TEMPLATE).unwrap();
    }

    #[test]
    fn spans_read_well() {
        assert_eq!(clock(Duration::from_millis(900)), "1 s");
        assert_eq!(clock(Duration::from_secs(200)), "3 min 20 s");
        assert_eq!(clock(Duration::from_secs(7500)), "2 h 5 min");
    }
}
