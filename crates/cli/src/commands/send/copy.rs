//! `fullpipe send FROM TO`: a file.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use fullpipe_grounds::Way;
use fullpipe_net::content::copy::{Ask, Copy, CopyError, put};
use fullpipe_net::content::{Answer, Carried, Content, Question};
use fullpipe_net::endpoint::Hooks;
use fullpipe_net::live::Live;
use fullpipe_net::session::client::{Client, Cut, SessionError};
use fullpipe_net::session::control::EndReason;
use fullpipe_run::RunSpec;
use serde_json::json;

use super::live::{self, Named, Shown};
use super::target::{FileAt, Server};
use super::{INTERRUPT, checked, listen_for_interrupts, memory, usage};
use crate::args::Format;
use crate::args::Send;
use crate::exit::{Exit, Failure};
use crate::output;
use crate::peer;
use crate::table::number;

/// Direction of a copy, with the file at this end.
#[derive(Debug)]
enum Order {
    Put { file: PathBuf, name: String },
    Get { name: String, path: PathBuf },
}

/// A finished copy, for its summary line.
#[derive(Debug)]
struct Copied {
    bytes: u64,
    /// Bytes that were there from an earlier attempt.
    before: u64,
    retransmits: u64,
    digest: String,
    took: Duration,
}

/// Copies a file.
pub fn copy(args: &Send, to: &str) -> Result<Exit, Failure> {
    let (server, order) = order(&args.from, to)?;
    if let Order::Put { file, .. } = &order {
        // Before anybody is asked.
        open(file, "x", false)?;
    }
    checked(&document(args, &order, &server.to_string(), 1)?, args)?;
    let way = peer::way(&server, &args.peer)?;
    listen_for_interrupts()?;
    let mut copied = transfer(args, &way, &order);
    // Whoever made the last attempt may have died a moment ago; the server finds out when it hears
    // nothing.
    let patience = Instant::now() + PATIENCE;
    while matches!(&copied, Err(Broken::Busy)) && Instant::now() < patience {
        if INTERRUPT.load(Ordering::Relaxed) {
            return Err(SessionError::Interrupted.into());
        }
        if !args.quiet {
            output::say("another transfer is writing this file: waiting for it to finish");
        }
        std::thread::sleep(Duration::from_secs(1));
        copied = transfer(args, &way, &order);
    }
    show(args, &way, &order, &copied.map_err(Failure::from)?)?;
    Ok(Exit::Ok)
}

/// One attempt.
fn transfer(args: &Send, way: &Way, order: &Order) -> Result<Copied, Broken> {
    let began = Instant::now();
    let (file, content, size) = match order {
        Order::Put { file, name } => {
            let (file, content) = put(file, name, args.overwrite)?;
            let size = file.metadata().map_or(0, |m| m.len());
            (Some(file), content, size)
        }
        Order::Get { name, .. } => {
            let name = name.clone();
            (None, Content::Get { name }, 1)
        }
    };
    let document = document(args, order, &way.name, size)?;
    let mut spec = checked(&document, args)?.cases[0].run_spec(args.seed.unwrap_or(1));
    spec.links.clear();
    way.fit(&mut spec);
    let label = "file".to_owned();
    let mut client = way.connect(spec.clone(), &label, true, content, &INTERRUPT)?;
    let mut copy = agree(args, file, order, &mut client)?;
    let (bytes, before) = (copy.size(), copy.from());
    if before > 0 && !args.quiet {
        let (before, bytes) = (number(before as f64, 1), number(bytes as f64, 1));
        output::say(&format!("{before} of {bytes} bytes are there already"));
    }
    let mut retransmits = 0;
    let mut carried = None;
    if copy.missing() > 0 {
        let mut data = copy.begin(&mut spec)?;
        retransmits = run(args, way, &mut client, &spec, &mut data)?;
        carried = Some(data);
    }
    let digest = {
        let mut ask = asking(&mut client);
        copy.finish(carried, &mut ask)?
    };
    client.close();
    Ok(Copied {
        bytes,
        before,
        retransmits,
        digest: digest.to_hex().to_string(),
        took: began.elapsed(),
    })
}

/// Agrees with the server on the byte from which to resume.
fn agree(
    args: &Send,
    file: Option<File>,
    order: &Order,
    client: &mut Client,
) -> Result<Copy, Broken> {
    let mut ask = asking(client);
    let ask: Ask<'_> = &mut ask;
    Ok(match (file, order) {
        (Some(file), _) => Copy::send(file, ask)?,
        (None, Order::Get { path, .. }) => Copy::take(path, args.overwrite, ask)?,
        (None, Order::Put { file, .. }) => {
            let what = format!("{}: not open", file.display());
            return Err(CopyError::Here(what).into());
        }
    })
}

/// The run; returns the retransmissions.
fn run(
    args: &Send,
    way: &Way,
    client: &mut Client,
    spec: &RunSpec,
    data: &mut Carried,
) -> Result<u64, Broken> {
    let flow = &spec.flows[0];
    let named = [Named {
        name: flow.name.clone(),
        mss: flow.sender.mss,
        size: flow.sender.transfer.map(|n| n * u64::from(flow.sender.mss)),
    }];
    let shown = match args.format {
        Format::Ndjson => {
            let interval = memory::span(&args.interval, "--interval")?;
            Shown::Objects(interval)
        }
        _ => Shown::for_people(args.quiet),
    };
    let (live, done) = (Live::default(), AtomicBool::new(false));
    let ran = std::thread::scope(|scope| {
        scope.spawn(|| live::watch(shown, &live, &named, &done));
        let hooks = Hooks {
            live: Some(&live),
            ..data.hooks()
        };
        let ran = client.run(&Arc::new(spec.clone()), way.options(), hooks, &INTERRUPT);
        done.store(true, Ordering::Release);
        ran
    })?;
    match ran.cut {
        Some(Cut::Interrupted) => return Err(SessionError::Interrupted.into()),
        Some(Cut::Vanished | Cut::Unfetched) => return Err(SessionError::Vanished.into()),
        Some(Cut::Server(_)) | None => {}
    }
    match ran.why {
        EndReason::Stopped | EndReason::Over => {}
        why => return Err(Broken::Ended(why)),
    }
    let far = ran.far.iter().flat_map(|far| &far.senders);
    let senders = ran.near.senders.iter().chain(far);
    Ok(senders.map(|s| s.totals.retransmits).sum())
}

fn asking(client: &mut Client) -> impl FnMut(&Question) -> Result<Answer, String> {
    |question| client.ask(question, &INTERRUPT).map_err(|e| e.to_string())
}

fn document(args: &Send, order: &Order, host: &str, size: u64) -> Result<super::Document, Failure> {
    let (about, reverse) = match order {
        Order::Put { file, name } => (format!("{} to {host}:{name}", file.display()), false),
        Order::Get { name, path } => (format!("{host}:{name} to {}", path.display()), true),
    };
    memory::of_file(args, &about, reverse, size)
}

/// Which of the two is here, and what the copy is called.
fn order(from: &str, to: &str) -> Result<(Server, Order), Failure> {
    let parsed = |text: &str| FileAt::parse(text).map_err(|e| usage(format!("`{text}`: {e}")));
    match (parsed(from)?, parsed(to)?) {
        (FileAt::Here(file), FileAt::There(server, name)) => {
            let name = match name.as_str() {
                "" => leaf(&file)?,
                name if name.ends_with('/') => format!("{name}{}", leaf(&file)?),
                name => name.to_owned(),
            };
            Ok((server, Order::Put { file, name }))
        }
        (FileAt::There(server, name), FileAt::Here(path)) => {
            if name.is_empty() || name.ends_with('/') {
                return Err(usage(format!("`{from}`: name a file of the server")));
            }
            let path = match path.is_dir() {
                true => path.join(name.rsplit('/').next().unwrap_or(&name)),
                false => path,
            };
            Ok((server, Order::Get { name, path }))
        }
        (FileAt::Here(_), FileAt::Here(_)) => {
            Err(usage(format!("neither `{from}` nor `{to}` is at a server"))
                .hint("write the one that is as `HOST:NAME`"))
        }
        (FileAt::There(..), FileAt::There(..)) => {
            Err(usage("one of the two files must be here".to_owned()).hint("copy it here first"))
        }
    }
}

fn leaf(file: &Path) -> Result<String, Failure> {
    match file.file_name().and_then(|n| n.to_str()) {
        Some(name) => Ok(name.to_owned()),
        None => Err(usage(format!("`{}` is not a file's name", file.display()))
            .hint("name the copy, as `HOST:NAME`")),
    }
}

fn open(file: &Path, name: &str, overwrite: bool) -> Result<(File, Content), Failure> {
    put(file, name, overwrite).map_err(|e| Broken::from(e).into())
}

fn show(args: &Send, way: &Way, order: &Order, copied: &Copied) -> Result<(), Failure> {
    let (from, to) = match order {
        Order::Put { file, name } => (file.display().to_string(), format!("{}:{name}", way.name)),
        Order::Get { name, path } => (format!("{}:{name}", way.name), path.display().to_string()),
    };
    let sent = copied.bytes - copied.before;
    let seconds = copied.took.as_secs_f64().max(1e-9);
    let mbps = 8e-6 * sent as f64 / seconds;
    match args.format {
        Format::Table => {
            let mut text = format!(
                "{from} -> {to}\n{} bytes in {} s, {} Mbit/s, {} retransmits\nBLAKE3 {} on both sides\n",
                number(copied.bytes as f64, 1),
                number(seconds, 3),
                number(mbps, 3),
                number(copied.retransmits as f64, 1),
                copied.digest
            );
            if copied.before > 0 {
                text += &format!(
                    "{} bytes were there before\n",
                    number(copied.before as f64, 1)
                );
            }
            output::data(&text)
        }
        Format::Csv => output::data(&format!(
            "from,to,bytes,bytes_before,duration_s,goodput_mbps,retransmits,blake3\n{},{},{},{},{seconds},{mbps},{},{}\n",
            cell(&from),
            cell(&to),
            copied.bytes,
            copied.before,
            copied.retransmits,
            copied.digest
        )),
        Format::Json | Format::Ndjson => {
            let object = json!({
                "fullpipe": env!("CARGO_PKG_VERSION"),
                "from": from,
                "to": to,
                "bytes": copied.bytes,
                "bytes_before": copied.before,
                "duration_s": seconds,
                "goodput_mbps": mbps,
                "retransmits": copied.retransmits,
                "blake3": copied.digest,
            });
            output::data(&format!("{object}\n"))
        }
    }
}

/// A cell of a CSV table.
fn cell(text: &str) -> String {
    match text.contains([',', '"', '\n']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}

/// Why there is no copy.
#[derive(Debug)]
enum Broken {
    /// Another transfer writes it.
    Busy,
    /// The server ended it.
    Ended(EndReason),
    Copy(CopyError),
    Session(SessionError),
    Failure(Failure),
}

impl From<CopyError> for Broken {
    fn from(error: CopyError) -> Self {
        match error {
            CopyError::There(why) if why.contains("another transfer") => Self::Busy,
            error => Self::Copy(error),
        }
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
        let again = "what has arrived is kept: the same command resumes from there";
        match broken {
            Broken::Failure(failure) => failure,
            Broken::Busy => Self::new(
                Exit::Environment,
                "at the server: another transfer is writing this file",
            )
            .hint("wait for it to finish, or give the copy another name"),
            Broken::Ended(why) => Self::new(
                Exit::Environment,
                format!("the transfer was {}", why.text()),
            )
            .hint(again),
            Broken::Session(SessionError::Refused(why)) => of_copy(&CopyError::There(why)),
            Broken::Session(error) => {
                let opened = !matches!(error, SessionError::Handshake { .. });
                let failure = Self::from(error);
                match opened {
                    true => failure.hint(again),
                    false => failure,
                }
            }
            Broken::Copy(error) => of_copy(&error),
        }
    }
}

fn of_copy(error: &CopyError) -> Failure {
    let text = error.to_string();
    let failure = Failure::new(Exit::Environment, text.clone());
    let hint = match error {
        _ if text.contains("--files") => "start it with `fullpipe serve --files DIR`",
        _ if text.contains("exists") => {
            "give the copy another name, or allow both sides to replace it: `--overwrite` here and there"
        }
        _ if text.contains("full") || text.contains("quota") => {
            "make room, then repeat the command: it resumes where it ended"
        }
        CopyError::Session(_) => "what has arrived is kept: the same command resumes from there",
        _ => return failure,
    };
    failure.hint(hint)
}

/// So long for the end of an earlier transfer.
const PATIENCE: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_side_with_a_host_decides() {
        let put = |from, to| match order(from, to).unwrap() {
            (server, Order::Put { file, name }) => {
                (server.to_string(), file.display().to_string(), name)
            }
            other => panic!("{other:?}"),
        };
        let words = |a: &str, b: &str, c: &str| (a.to_owned(), b.to_owned(), c.to_owned());
        assert_eq!(put("a/b.bin", "dtn:"), words("dtn", "a/b.bin", "b.bin"));
        assert_eq!(
            put("b.bin", "dtn:7000:in/"),
            words("dtn:7000", "b.bin", "in/b.bin")
        );
        assert_eq!(put("b.bin", "dtn:c"), words("dtn", "b.bin", "c"));
        match order("dtn:in/x.bin", ".").unwrap() {
            (server, Order::Get { name, path }) => {
                assert_eq!(
                    (server.to_string().as_str(), name.as_str()),
                    ("dtn", "in/x.bin")
                );
                assert_eq!(path, Path::new("./x.bin"));
            }
            other => panic!("{other:?}"),
        }
        for (from, to) in [
            ("a", "b"),
            ("h:a", "h:b"),
            ("h:", "."),
            ("h:a/", "."),
            ("/", "h:"),
        ] {
            assert_eq!(
                order(from, to).unwrap_err().exit,
                Exit::Usage,
                "{from} {to}"
            );
        }
    }
}
