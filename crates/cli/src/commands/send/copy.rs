//! `fullpipe send FROM... TO`: files and directories.

mod order;
mod outage;
mod summary;
mod waiting;

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use fullpipe_flow::LimitTimes;
use fullpipe_grounds::Way;
use fullpipe_net::content::batch::{Base, Batch, Fact};
use fullpipe_net::content::copy::CopyError;
use fullpipe_net::content::{
    Answer, BUSY, Carried, Content, DIRECTORY_REMOVED, DISK_FULL, EXISTS, NO_FILES, QUOTA_USED,
    Question, REMOVED, ends_with_reason, says_busy,
};
use fullpipe_net::endpoint::Hooks;
use fullpipe_net::file::{CHANGED, Item, Where, descriptors};
use fullpipe_net::session::client::{Client, Cut, Done, SessionError};
use fullpipe_net::session::control::EndReason;
use fullpipe_realtime::live::{Live, LiveRun, NamedFlow};
use fullpipe_run::RunSpec;
use fullpipe_units::Span;

use self::order::{Made, Order, What};
use self::outage::Outage;
use self::summary::Summary;
use self::waiting::told;
use super::document::{Document, checked};
use super::memory;
use crate::args::{Format, Send};
use crate::commands::run::{INTERRUPT, interrupt, listen_for_interrupts};
use crate::exit::{Exit, Failure};
use crate::foreign;
use crate::live::lines;
use crate::live::{dashboard, prometheus};
use crate::output;
use crate::peer;
use crate::table::number;

/// Files of one session: all that its request names.
enum Share {
    Put(Vec<(Item, Where)>),
    Get(Vec<String>, Base),
}

/// A copy under way.
struct Copying<'a> {
    args: &'a Send,
    way: &'a Way,
    live: &'a Live,
    order: &'a Order,
    began: Instant,
    summary: &'a mut Summary,
    outage: Outage,
}

/// Copies files.
pub fn copy(args: &Send, more: &[String], to: &str) -> Result<Exit, Failure> {
    let from = [std::slice::from_ref(&args.from), more].concat();
    let order = order::order(&from, to)?;
    let mut summary = Summary {
        from: order.from.join(" "),
        dry_run: args.dry_run,
        ..Summary::default()
    };
    let patience = memory::span(&args.patience, "--patience")?;
    let patience = Duration::from_nanos(patience.as_nanos());
    // Before anybody is asked.
    foreign::honoured(&args.set, foreign::SEND, &order.server.to_string())?;
    let mut made = Made::default();
    let shares = shares(args, &order, &mut summary, &mut made)?;
    checked(&document(args, &order, &order.server.to_string(), 1)?, args)?;
    let way = peer::way(&order.server, &args.peer)?;
    summary.to = match &order.what {
        What::Put(files) => match files.as_slice() {
            [(_, name)] => format!("{}:{name}", way.name),
            _ => to.to_owned(),
        },
        What::Get(..) => to.to_owned(),
    };
    listen_for_interrupts("keeping what has arrived")?;
    if args.live.dashboard {
        dashboard::check()?;
    }
    let live = Arc::new(Live::default());
    if let Some(address) = args.live.prometheus {
        let live = Arc::clone(&live);
        prometheus::serve(address, move || prometheus::runs::page(&live))?;
    }
    descriptors::as_many_as_allowed();
    let began = Instant::now();
    let mut copying = Copying {
        args,
        way: &way,
        live: &live,
        order: &order,
        began,
        summary: &mut summary,
        outage: Outage::new(patience),
    };
    let copied = shares
        .into_iter()
        .try_for_each(|share| copying.all_of(share));
    summary.took = began.elapsed();
    let failed = summary.failures();
    match copied {
        Err(broken) => {
            let failure = Failure::from(broken);
            summary.add_what_was_not_begun();
            if !summary.is_empty() && !args.dry_run {
                summary
                    .partial
                    .get_or_insert_with(|| failure.message.clone());
                summary.show(args.format())?;
            }
            Err(failure)
        }
        Ok(()) if failed.len() == 1 && summary.listed().count() == 1 => {
            // People are told by the error.
            if args.format() != Format::Table {
                summary.show(args.format())?;
            }
            Err(of_copy(&CopyError::Here(failed[0].clone())))
        }
        Ok(()) => {
            summary.show(args.format())?;
            failed.iter().for_each(|why| output::error(why));
            match failed.len() {
                0 => {
                    made.keep();
                    Ok(Exit::Ok)
                }
                _ => Err(Failure {
                    hints: hint(&failed.join("\n")).into_iter().collect(),
                    ..Failure::new(Exit::Environment, summary.lacks())
                }),
            }
        }
    }
}

/// Splits the copy into sessions, and counts what is left out.
fn shares(
    args: &Send,
    order: &Order,
    summary: &mut Summary,
    made: &mut Made,
) -> Result<Vec<Share>, Failure> {
    Ok(match &order.what {
        What::Put(files) => {
            let found = order::found(files)?;
            summary.leave_out(&found.left_out, args.quiet);
            summary.plan(found.files.iter().map(|(item, _)| item));
            let sessions = order::sessions(found.files).into_iter();
            sessions.map(Share::Put).collect()
        }
        What::Get(names, path, below) => {
            let groups = order::fetched(names, path, *below, args.dry_run, made)?.into_iter();
            groups
                .map(|(names, base)| Share::Get(names, base))
                .collect()
        }
    })
}

/// What became of a session that nobody broke off.
enum Came {
    Whole,
    /// Names of the files that came wrong, and how many bytes of each.
    Damaged(Vec<(String, u64)>),
    /// Names of the files that other transfers write; all others came.
    Busy(Vec<String>),
    /// Its time was over before all had come.
    Partly,
}

impl Copying<'_> {
    /// Copies a share in one session, and in more what came wrong.
    fn all_of(&mut self, mut share: Share) -> Result<(), Broken> {
        let args = self.args;
        // Whoever made the last attempt may have died a moment ago; the server finds out when it
        // hears nothing.
        let mut until = Instant::now() + BUSY_TIMEOUT;
        let mut repairs = 0;
        while repairs < MOST_REPAIRS {
            let copied = match self.session(&share) {
                Err(Broken::Session(error)) => {
                    self.wait_out(error)?;
                    // The last attempt is this copy's own now.
                    until = Instant::now() + BUSY_TIMEOUT;
                    continue;
                }
                copied => copied,
            };
            let is_busy = matches!(&copied, Err(Broken::Busy) | Ok(Came::Busy(_)));
            if is_busy && Instant::now() < until {
                if INTERRUPT.load(Ordering::Relaxed) {
                    return Err(SessionError::Interrupted.into());
                }
                let files = match &copied {
                    Ok(Came::Busy(names)) if names.len() > 1 => format!("{} files", names.len()),
                    _ => "this file".to_owned(),
                };
                if !args.quiet {
                    output::say(&format!(
                        "another transfer is writing {files}: waiting for it to finish"
                    ));
                }
                std::thread::sleep(Duration::from_secs(1));
                if let (Ok(Came::Busy(names)), Share::Put(files)) = (&copied, &mut share) {
                    files.retain(|(item, _)| names.contains(&item.name));
                }
                continue;
            }
            let damaged = match copied? {
                // What another transfer still writes has its failure in the summary.
                Came::Whole | Came::Busy(_) => return Ok(()),
                Came::Damaged(damaged) => damaged,
                Came::Partly => {
                    if !args.quiet {
                        output::say(
                            "the server ends a session here (--max-duration): another goes on",
                        );
                    }
                    continue;
                }
            };
            repairs += 1;
            if !args.quiet {
                let bytes: u64 = damaged.iter().map(|(_, bytes)| bytes).sum();
                let bytes = number(bytes as f64, 1);
                output::say(&format!(
                    "{bytes} bytes came damaged: sending their blocks again"
                ));
            }
            if let Share::Put(files) = &mut share {
                files.retain(|(item, _)| damaged.iter().any(|(name, _)| *name == item.name));
            }
        }
        Err(CopyError::Checksum.into())
    }

    /// Waits a moment if another session is worth a try after this failure.
    ///
    /// # Errors
    /// The copy ends with it.
    fn wait_out(&mut self, error: SessionError) -> Result<(), Broken> {
        if INTERRUPT.load(Ordering::Relaxed) || !self.outage.is_one(&error) {
            return Err(error.into());
        }
        let Some(said) = self.outage.goes_on(&error, Instant::now()) else {
            return Err(Broken::Lost(error));
        };
        if self.is_time_over()? {
            return Err(Broken::Time);
        }
        if !self.args.quiet {
            output::say(&said);
        }
        std::thread::sleep(Duration::from_secs(1));
        Ok(())
    }

    /// One session. What a question ran into is as much the session's failure as what the run did.
    fn session(&mut self, share: &Share) -> Result<Came, Broken> {
        let lost = Cell::new(None);
        match (self.one(share, &lost), lost.take()) {
            (Err(Broken::Copy(CopyError::Session(_))), Some(error)) => Err(error.into()),
            (came, _) => came,
        }
    }

    fn one(&mut self, share: &Share, lost: &Lost) -> Result<Came, Broken> {
        let Copying {
            args, way, order, ..
        } = *self;
        let content = match share {
            Share::Put(files) => Batch::content(files, args.overwrite),
            Share::Get(names, _) => Content::Fetch {
                names: names.clone(),
            },
        };
        let left = self.time_left()?;
        let spec = |size| -> Result<RunSpec, Broken> {
            let document = document(args, order, &way.name, size)?;
            let mut spec = checked(&document, args)?.cases[0].run_spec(args.seed.unwrap_or(1));
            spec.links.clear();
            way.fit(&mut spec);
            if let Some(left) = left {
                let left = Span::from_nanos(u64::try_from(left.as_nanos()).unwrap_or(u64::MAX));
                spec.duration = spec.duration.min(left.max(Span::from_millis(1)));
            }
            Ok(spec)
        };
        let size = match share {
            Share::Put(files) => files.iter().map(|(item, _)| item.size()).sum(),
            Share::Get(..) => 1,
        };
        let mut spec = spec(size)?;
        let mut client = way.connect(spec.clone(), "file", true, content, &INTERRUPT)?;
        self.outage.met();
        self.summary.granted(client.grant(), args.quiet);
        let looking = || "looking at what is there already".to_owned();
        let mut batch = told(args.quiet, looking, || {
            let mut ask = asking(&mut client, lost);
            match share {
                Share::Put(files) => Batch::put(files.clone(), args.overwrite, &mut ask),
                Share::Get(names, base) => {
                    Batch::get(names, base.clone(), args.overwrite, &mut ask)
                }
            }
        })?;
        self.summary.leave_out(batch.left_out(), args.quiet);
        if args.dry_run {
            self.summary.add(batch.facts());
            client.close();
            return Ok(Came::Whole);
        }
        say_what_is_there(args, &batch);
        let files = match batch.facts().iter().filter(|f| f.size.is_some()).count() {
            1 => "the file".to_owned(),
            n => format!("{} files", number(n as f64, 0)),
        };
        let making = || format!("making room for {files}");
        let agreed = told(args.quiet, making, || {
            batch.agree(&mut asking(&mut client, lost))
        });
        agreed.map_err(|error| match (error, share) {
            (CopyError::There(why), Share::Put(files))
                if files.iter().any(|(item, _)| says_busy(&item.name, &why)) =>
            {
                Broken::Busy
            }
            (error, _) => Broken::Copy(error),
        })?;
        let bytes = batch.bytes();
        if bytes > 0 {
            let making = || format!("making room for {files}");
            let mut data = told(args.quiet, making, || {
                batch.begin(&mut spec, &mut asking(&mut client, lost))
            })?;
            let ran = self.run(&mut client, &spec, bytes, &mut data)?;
            self.summary.retransmits += retransmits(&ran);
            self.summary.limited = self.summary.limited.plus(limited(&ran));
            let arrived = batch
                .written()
                .unwrap_or_else(|| acked(&ran, &spec).min(bytes));
            if arrived > 0 {
                self.outage.is_over();
            }
            let broken = broken(&ran);
            let is_get = matches!(share, Share::Get(..));
            if broken.is_some() && is_get {
                // What came is written down, for the next attempt.
                let _ = batch.ended(Some(data), &mut |_| Ok(Answer::Noted));
            } else if is_get || arrived == bytes {
                batch.ended(Some(data), &mut asking(&mut client, lost))?;
            }
            if let Some(broken) = broken {
                self.summary.add_partly(batch.facts(), arrived);
                return Err(broken);
            }
            let arrived = match is_get {
                true => bytes - batch.missing().min(bytes),
                false => arrived,
            };
            if arrived < bytes {
                self.summary.add_partly(batch.facts(), arrived);
                client.close();
                return match arrived == 0 || self.is_time_over()? {
                    true => Err(Broken::Time),
                    false => Ok(Came::Partly),
                };
            }
        }
        let naming = || format!("writing {files} to the disk under their names");
        told(args.quiet, naming, || {
            batch.finish(&mut asking(&mut client, lost))
        })?;
        client.close();
        let facts = batch.facts();
        let damaged = facts
            .iter()
            .filter(|f| f.damaged > 0 && f.failure.is_none());
        let mut damaged: Vec<_> = damaged.map(|f| (f.name.clone(), f.damaged)).collect();
        let is_busy = |f: &&Fact| {
            let why = f.failure.as_deref();
            why.is_some_and(|why| says_busy(&f.name, why))
        };
        let busy: Vec<_> = facts
            .iter()
            .filter(is_busy)
            .map(|f| f.name.clone())
            .collect();
        self.summary.add(facts);
        Ok(match (damaged.is_empty(), busy.is_empty()) {
            (true, true) => Came::Whole,
            (true, false) => Came::Busy(busy),
            (false, _) => {
                // They are tried again with what is repaired.
                damaged.extend(busy.into_iter().map(|name| (name, 0)));
                Came::Damaged(damaged)
            }
        })
    }

    /// The time that the user gives the copy has passed.
    fn is_time_over(&self) -> Result<bool, Failure> {
        Ok(self.time_left()?.is_some_and(|left| left.is_zero()))
    }

    /// Of the time that the user gives the copy; `None`: as much as it takes.
    fn time_left(&self) -> Result<Option<Duration>, Failure> {
        let time = self
            .args
            .time
            .as_deref()
            .map(|time| memory::span(time, "--time"));
        let time = time.transpose()?;
        let all = time.map(|time| Duration::from_nanos(time.as_nanos()));
        Ok(all.map(|all| all.saturating_sub(self.began.elapsed())))
    }

    /// The run.
    fn run(
        &self,
        client: &mut Client,
        spec: &RunSpec,
        bytes: u64,
        data: &mut Carried,
    ) -> Result<Done, Broken> {
        let Copying {
            args, way, live, ..
        } = *self;
        let flow = &spec.flows[0];
        let named = NamedFlow {
            name: flow.name.clone(),
            stack: flow.stack.to_string(),
            mss: flow.sender.mss,
            size: Some(bytes),
            reverse: flow.reverse,
        };
        let shown = memory::shown(args)?;
        live.begin(LiveRun {
            flows: vec![named],
            ..LiveRun::new(spec)
        });
        let done = AtomicBool::new(false);
        let ran = std::thread::scope(|scope| {
            scope.spawn(|| lines::watch(shown, live, &done));
            let dashboard = args.live.dashboard.then(|| {
                let title = format!("copy with {}", way.name);
                scope.spawn(|| dashboard::of_runs(title, 1, live, &interrupt, &done))
            });
            let hooks = Hooks {
                live: Some(live),
                ..data.hooks()
            };
            let ran = client.run(&Arc::new(spec.clone()), way.options(), hooks, &INTERRUPT);
            done.store(true, Ordering::Release);
            dashboard::closed(dashboard).map_err(Broken::from)?;
            ran.map_err(Broken::from)
        })?;
        Ok(ran)
    }
}

fn say_what_is_there(args: &Send, batch: &Batch) {
    let facts = batch.facts();
    let kept: u64 = facts.iter().map(|f| f.kept).sum();
    let wrong: u64 = facts.iter().map(|f| f.wrong).sum();
    let all: u64 = facts.iter().filter_map(|f| f.size).sum();
    if kept > 0 && !args.quiet {
        let (kept, all) = (number(kept as f64, 1), number(all as f64, 1));
        output::say(&format!("{kept} of {all} bytes are there already"));
    }
    if wrong > 0 && !args.quiet {
        let wrong = number(wrong as f64, 1);
        output::say(&format!("{wrong} bytes that are there are damaged"));
    }
}

/// The cause, where not all was carried; `None` of an end that was asked for.
fn broken(ran: &Done) -> Option<Broken> {
    match (ran.cut, ran.why) {
        (Some(Cut::Interrupted), _) => Some(SessionError::Interrupted.into()),
        (Some(Cut::Vanished | Cut::Unfetched), _) => Some(SessionError::Vanished.into()),
        (Some(Cut::Stalled), _) => Some(SessionError::Stalled.into()),
        (_, EndReason::Stopped | EndReason::Over) => None,
        (_, why @ (EndReason::ShuttingDown | EndReason::Vanished)) => {
            Some(SessionError::Ended(why).into())
        }
        (_, why) => Some(Broken::Ended(why)),
    }
}

fn retransmits(ran: &Done) -> u64 {
    let far = ran.far.iter().flat_map(|far| &far.senders);
    let senders = ran.near.senders.iter().chain(far);
    senders.map(|s| s.totals.retransmits).sum()
}

/// Time under each limit, of all senders of a copy on both hosts.
fn limited(ran: &Done) -> LimitTimes {
    let far = ran.far.iter().flat_map(|far| &far.senders);
    let senders = ran.near.senders.iter().chain(far);
    senders.fold(LimitTimes::default(), |sum, s| sum.plus(s.totals.limited))
}

/// Bytes that the other side acknowledged.
fn acked(ran: &Done, spec: &RunSpec) -> u64 {
    let mss = spec
        .flows
        .first()
        .map_or(0, |flow| u64::from(flow.sender.mss));
    ran.near.senders.iter().map(|s| s.acked * mss).sum()
}

/// The failure of the last question.
type Lost = Cell<Option<SessionError>>;

fn asking(client: &mut Client, lost: &Lost) -> impl FnMut(&Question) -> Result<Answer, String> {
    |question| {
        client.ask(question, &INTERRUPT).map_err(|error| {
            let text = error.to_string();
            lost.set(Some(error));
            text
        })
    }
}

fn document(args: &Send, order: &Order, host: &str, size: u64) -> Result<Document, Failure> {
    let (about, reverse) = match &order.what {
        What::Put(_) => (format!("{} to {host}", order.from.join(" ")), false),
        What::Get(..) => (format!("{} from {host}", order.from.join(" ")), true),
    };
    memory::of_file(args, &about, reverse, size)
}

/// A copy that was not made, or not whole, by its cause.
#[derive(Debug)]
enum Broken {
    /// Another transfer writes it.
    Busy,
    /// The server ended it.
    Ended(EndReason),
    /// The time for it is over.
    Time,
    Copy(CopyError),
    Session(SessionError),
    /// An outage that has lasted.
    Lost(SessionError),
    Failure(Failure),
}

impl From<CopyError> for Broken {
    fn from(error: CopyError) -> Self {
        Self::Copy(error)
    }
}

impl From<SessionError> for Broken {
    fn from(error: SessionError) -> Self {
        Self::Session(error)
    }
}

impl From<Failure> for Broken {
    fn from(failure: Failure) -> Self {
        Self::Failure(failure)
    }
}

impl From<Broken> for Failure {
    fn from(broken: Broken) -> Self {
        match broken {
            Broken::Failure(failure) => failure,
            Broken::Busy => Self::new(
                Exit::Environment,
                "at the server: another transfer is writing this file",
            )
            .hint("wait for it to finish, or give the copy another name"),
            Broken::Ended(why) => Self::new(
                Exit::Environment,
                match why {
                    EndReason::Bytes | EndReason::Rate => {
                        format!("the transfer was {}", why.text())
                    }
                    _ => format!("the transfer ended early: {}", why.text()),
                },
            )
            .hint(again()),
            Broken::Time => {
                Self::new(Exit::Environment, "the time for the copy is over (--time)").hint(again())
            }
            Broken::Session(SessionError::Refused(why)) => of_copy(&CopyError::There(why)),
            Broken::Session(error) => {
                let text = error.to_string();
                // Packets that do not fit, here or there, have a remedy of their own.
                let is_of_path = text.contains("path.mtu=");
                let opened = !matches!(error, SessionError::Handshake { .. }) && !is_of_path;
                let room = hint(&text);
                let failure = Self::from(error);
                match (room, opened) {
                    (Some(room), _) => Failure {
                        hints: vec![room],
                        ..failure
                    },
                    (None, true) => failure.hint(again()),
                    (None, false) => failure,
                }
            }
            Broken::Lost(error) => Self::from(error).hint(again()),
            Broken::Copy(error) => of_copy(&error),
        }
    }
}

/// The command line of this process, for a shell.
fn again() -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./:=,@%+[]".contains(c);
    let quoted = |word: String| match !word.is_empty() && word.chars().all(plain) {
        true => word,
        false => format!("'{}'", word.replace('\'', "'\\''")),
    };
    let words = std::env::args_os().skip(1);
    let words: Vec<String> = words
        .map(|w| quoted(w.to_string_lossy().into_owned()))
        .collect();
    let words = words.join(" ");
    format!("what has arrived is kept: the same command resumes from there: `fullpipe {words}`")
}

fn of_copy(error: &CopyError) -> Failure {
    let text = error.to_string();
    let interrupted = INTERRUPT.load(Ordering::Relaxed);
    let exit = match (error, interrupted) {
        (CopyError::Session(_), true) => Exit::Interrupted,
        _ => Exit::Environment,
    };
    let hints = match error {
        CopyError::Session(_) => Some(again()),
        _ => hint(&text),
    };
    Failure {
        hints: hints.into_iter().collect(),
        ..Failure::new(exit, text)
    }
}

/// A remedy.
fn hint(text: &str) -> Option<String> {
    let says = |reason| text.lines().any(|why| ends_with_reason(why, reason));
    let hint = if says(NO_FILES) {
        "start it with `fullpipe serve --files DIR`"
    } else if says(REMOVED) {
        "start `serve` anew: it opens the directory that has the name by then"
    } else if says(EXISTS) {
        "give the copy another name, or allow both sides to replace it: `--overwrite` here and there"
    } else if says(CHANGED) {
        "send it again once nothing writes to it, or send a copy of it that stays as it is"
    } else if says(BUSY) {
        "wait for it to finish, or give the copy another name"
    } else if says(DIRECTORY_REMOVED) {
        "what had arrived in it is lost: the same command copies it again"
    } else if says(DISK_FULL) || says(QUOTA_USED) {
        "make room, then repeat the command: it resumes where it ended"
    } else {
        return None;
    };
    Some(hint.to_owned())
}

/// From the first attempt until an earlier transfer of the same files must have ended.
const BUSY_TIMEOUT: Duration = Duration::from_secs(30);
/// Sessions for what came damaged, at most: each needs fewer blocks than the one before, unless
/// everything is bent.
const MOST_REPAIRS: usize = 20;

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use fullpipe_net::endpoint::EndpointError;

    use super::*;

    /// It would end the same way.
    #[test]
    fn packets_that_never_fit_are_no_reason_to_repeat_the_command() {
        let longer = EndpointError::Longer {
            bytes: 1500,
            peer: SocketAddr::from(([192, 0, 2, 1], 9)).into(),
            mtu: Some(1280),
            of_probes: false,
        };
        let there = SessionError::Far(longer.to_string());
        for error in [longer.into(), there] {
            let failure = Failure::from(Broken::Session(error));
            assert!(failure.message.contains("path.mtu=1280"), "{failure:?}");
            let repeats = |hint: &String| hint.contains("same command");
            assert!(!failure.hints.iter().any(repeats), "{failure:?}");
        }
    }
}
