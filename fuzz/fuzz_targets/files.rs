//! What both sides of a copy say about a file: questions to a server, answers to a client, over a
//! small directory. Nothing panics, and nothing gets the final name but what has the right hash.
#![no_main]

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime};

use fullpipe_run::{FlowSpec, RunSpec};
use fullpipe_flow::{Preset, ReceiverConfig, SenderConfig};
use fullpipe_cc::StackSpec;
use fullpipe_fuzz::Script;
use fullpipe_net::content::{Allowed, Answer, Content, Copy, Job, Question, copy};
use fullpipe_net::file::{Directory, Identity, Name, State};
use libfuzzer_sys::fuzz_target;

/// Bytes of the file that is there.
const SIZE: usize = 5000;

fn spec(reverse: bool) -> RunSpec {
    let stack = StackSpec::parse("reno").expect("a stack");
    let sender = SenderConfig::preset(Preset::Y2026, 1500);
    let receiver = ReceiverConfig::preset(Preset::Y2026);
    RunSpec {
        flows: vec![FlowSpec {
            reverse,
            ..FlowSpec::new("main", stack, sender, receiver, vec![], vec![])
        }],
        ..RunSpec::default()
    }
}

/// A directory of this process, in memory where there is such a place.
fn directory() -> &'static Path {
    static DIRECTORY: OnceLock<PathBuf> = OnceLock::new();
    DIRECTORY.get_or_init(|| {
        let memory = Path::new("/dev/shm");
        let root = match memory.is_dir() {
            true => memory.to_owned(),
            false => std::env::temp_dir(),
        };
        let dir = root.join(format!("fullpipe-fuzz-{}", std::process::id()));
        fs::create_dir_all(&dir).expect("a directory");
        let there = fs::File::create(dir.join("there")).expect("a file");
        (&there).write_all(&[5; SIZE]).expect("room");
        let changed = SystemTime::UNIX_EPOCH + Duration::from_nanos(1);
        there.set_modified(changed).expect("a date");
        dir
    })
}

/// Removes what an earlier input left.
fn tidy() {
    for entry in fs::read_dir(directory()).expect("it is there").flatten() {
        if entry.file_name() != "there" {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// A server, and a client that asks.
fn server(script: &mut Script<'_>) {
    let how = script.byte();
    let source = Identity {
        size: u64::from(script.byte()) << (how >> 4),
        changed: 1,
    };
    let names = ["new", "there", "../there", "there.part"];
    let name = names[usize::from(how >> 1 & 3)].to_owned();
    let content = match how & 1 {
        0 => Content::Put {
            name,
            source,
            mode: 0o644,
            overwrite: how & 8 != 0,
        },
        _ => Content::Get { name },
    };
    let allowed = Allowed {
        files: Some(Arc::new(Directory::open(directory()).expect("it is there"))),
        most: Some(1 << 20),
        ..Allowed::default()
    };
    let mut spec = spec(how & 1 != 0);
    let Ok(mut job) = Job::new(&content, &allowed, &spec) else {
        return;
    };
    while let Some(step) = script.step() {
        if step == 0xff {
            if let Ok(carried) = job.begin(&mut spec) {
                job.ended(carried);
            }
            continue;
        }
        let Ok(question) = postcard::from_bytes::<Question>(script.body()) else {
            continue;
        };
        let begun = Instant::now();
        while job.ask(&question) == Answer::Busy && begun.elapsed() < Duration::from_millis(20) {
            std::thread::yield_now();
        }
    }
}

/// A client, and a server that answers.
fn client(script: &mut Script<'_>) {
    let how = script.byte();
    let mut answers = |_: &Question| {
        if script.step().is_none() {
            return Err("over".to_owned());
        }
        match postcard::from_bytes::<Answer>(script.body()) {
            Ok(Answer::Busy) | Err(_) => Ok(Answer::Nonsense),
            // Room for more than that is not to be had here.
            Ok(Answer::Prepared { source, .. }) if (1 << 20..1 << 62).contains(&source.size) => {
                Ok(Answer::Nonsense)
            }
            Ok(answer) => Ok(answer),
        }
    };
    let dir = directory();
    let (agreed, reverse) = match how & 1 {
        0 => {
            let (file, _) = copy::put(&dir.join("there"), "there", true).expect("it is there");
            (Copy::send(file, &mut answers), false)
        }
        _ => (
            Copy::take(&dir.join("got"), how & 2 != 0, &mut answers),
            true,
        ),
    };
    let Ok(mut copy) = agreed else { return };
    assert!(copy.from() <= copy.size() && copy.missing() == copy.size() - copy.from());
    let carried = match how & 4 {
        0 => copy.begin(&mut spec(reverse)).ok(),
        _ => None,
    };
    let whole = copy.missing() == 0;
    if copy.finish(carried, &mut answers).is_ok() && reverse {
        assert!(whole, "nothing was carried");
    }
}

fuzz_target!(|input: &[u8]| {
    let Some((&mode, rest)) = input.split_first() else {
        return;
    };
    match mode % 4 {
        0 => server(&mut Script(rest)),
        1 => client(&mut Script(rest)),
        2 => {
            if let Ok(name) = Name::parse(&String::from_utf8_lossy(rest)) {
                let name = Path::new(name.as_str());
                assert!(
                    name.components()
                        .all(|c| matches!(c, std::path::Component::Normal(_)))
                );
            }
            return;
        }
        _ => {
            let text = String::from_utf8_lossy(rest);
            if let Some(state) = State::parse(&text) {
                assert!(state.prefix <= state.source.size);
            }
            return;
        }
    }
    tidy();
});
