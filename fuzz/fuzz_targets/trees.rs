//! Copies of several files and directories, and a peer that says anything about them. Nothing
//! panics, nothing leads outside, and a final name is given to whole files only: every byte that is
//! ever sent here is a 5, and what was not sent is none.
#![no_main]

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use fullpipe_cc::StackSpec;
use fullpipe_flow::{Preset, ReceiverConfig, SenderConfig};
use fullpipe_fuzz::Script;
use fullpipe_net::content::batch::{Base, Batch};
use fullpipe_net::content::{Allowed, Answer, Carried, Content, Job, Question};
use fullpipe_net::file::{Directory, Identity, Item, Where};
use fullpipe_run::{FlowSpec, RunSpec};
use libfuzzer_sys::fuzz_target;

/// Bytes of the file that is there: three blocks.
const SIZE: usize = 150_000;
/// Bytes of a segment.
const MSS: usize = 1448;
/// Bytes of all files of a copy, at most.
const MOST: u64 = 1 << 21;

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

/// A directory of this process, in memory where there is such a place: `served`, in which
/// everything happens, and `outside`, to which a link leads and in which nothing may happen.
fn root() -> &'static Path {
    static ROOT: OnceLock<PathBuf> = OnceLock::new();
    ROOT.get_or_init(|| {
        let memory = Path::new("/dev/shm");
        let above = match memory.is_dir() {
            true => memory.to_owned(),
            false => std::env::temp_dir(),
        };
        let root = above.join(format!("fullpipe-trees-{}", std::process::id()));
        fs::create_dir_all(root.join("outside")).expect("a directory");
        root
    })
}

fn served() -> PathBuf {
    root().join("served")
}

/// Lays out the tree that every input begins with.
fn lay_out() {
    let _ = fs::remove_dir_all(served());
    fs::create_dir_all(served().join("d/sub")).expect("a directory");
    fs::write(served().join("there"), vec![5; SIZE]).expect("room");
    fs::write(served().join("d/there"), [5; 10]).expect("room");
    symlink("../outside", served().join("out")).expect("a link");
    symlink("../../outside", served().join("d/out")).expect("a link");
}

/// What is under a final name is whole, and nothing is outside.
fn check(dir: &Path, lengths: &HashSet<u64>) {
    for entry in fs::read_dir(dir).expect("it is there").flatten() {
        let (path, kind) = (entry.path(), entry.file_type().expect("a kind"));
        let name = entry.file_name().to_string_lossy().into_owned();
        if kind.is_dir() {
            check(&path, lengths);
        } else if kind.is_file() && !name.contains(".part") {
            let bytes = fs::read(&path).expect("it is ours");
            assert!(
                bytes.iter().all(|byte| *byte == 5),
                "{name} is half-written"
            );
            assert!(
                lengths.contains(&(bytes.len() as u64)),
                "{name} has {}",
                bytes.len()
            );
        }
    }
}

fn nothing_outside() {
    let outside = fs::read_dir(root().join("outside")).expect("it is there");
    assert_eq!(outside.count(), 0);
    assert_eq!(fs::read_dir(root()).expect("it is there").count(), 2);
}

/// Names that a peer gives.
const NAMES: [&str; 16] = [
    "d",
    "d/a",
    "d/b",
    "d/sub",
    "d/sub/c",
    "new",
    "there",
    "d/there",
    "../there",
    "out/x",
    "d/out/x",
    "d/a/below",
    "x.part/y",
    "there.part",
    "/d",
    "d//a",
];

fn items(script: &mut Script<'_>) -> Vec<Item> {
    let many = 1 + script.byte() % 6;
    let item = |_| {
        let how = script.byte();
        let size = u64::from(u16::from_be_bytes([script.byte(), script.byte()])) * 3;
        Item {
            name: NAMES[usize::from(how & 15)].to_owned(),
            source: (how & 16 == 0).then_some(Identity {
                size,
                changed: u64::from(how >> 5),
            }),
            mode: u16::from(how) << 2,
        }
    };
    (0..many).map(item).collect()
}

/// So many segments for what is received, in pairs the wrong way round; all of them if it is 255.
fn carry(carried: &mut Carried, many: u8) {
    let mut hooks = carried.hooks();
    let most = match many {
        255 => MOST / MSS as u64 + 2,
        many => u64::from(many),
    };
    if let Some((_, source)) = hooks.sources.first_mut() {
        let mut buffer = vec![0; MSS];
        for seq in 0..most {
            match source.fill(seq, &mut buffer) {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
        }
    }
    if let Some((_, sink)) = hooks.sinks.first_mut() {
        for seq in (0..most).map(|seq| seq ^ 1) {
            let length = sink.length(seq).unwrap_or(0);
            if length > 0 && sink.take(seq, &vec![5; length]).is_err() {
                return;
            }
        }
    }
}

/// A server, and a client that asks: several sessions, each of which may go on where the one before
/// ended.
fn server(script: &mut Script<'_>) {
    let how = script.byte();
    let allowed = Allowed {
        files: Some(Arc::new(Directory::open(&served()).expect("it is there"))),
        most: Some(1 << 20),
        overwrite: how & 1 != 0,
        ..Allowed::default()
    };
    let mut lengths = HashSet::from([SIZE as u64, 10]);
    let mut sessions = 0;
    while let Some(which) = script.step() {
        sessions += 1;
        if sessions > 4 {
            break;
        }
        let content = match which & 1 {
            0 => Content::Store {
                items: items(script),
                overwrite: which & 2 != 0,
            },
            _ => Content::Fetch {
                names: (0..1 + (which >> 1) % 4)
                    .map(|_| NAMES[usize::from(script.byte() & 15)].to_owned())
                    .collect(),
            },
        };
        if let Content::Store { items, .. } = &content {
            lengths.extend(items.iter().map(Item::size));
        }
        let mut spec = spec(which & 1 != 0);
        let Ok(mut job) = Job::new(&content, &allowed, &spec) else {
            continue;
        };
        while let Some(step) = script.step() {
            match step {
                0xff => break,
                0xfe => {
                    let many = script.byte();
                    if let Ok(mut carried) = job.begin(&mut spec) {
                        carry(&mut carried, many);
                        job.ended(carried);
                    }
                }
                _ => {
                    let Ok(question) = postcard::from_bytes::<Question>(script.body()) else {
                        continue;
                    };
                    let begun = Instant::now();
                    while job.ask(&question) == Answer::Busy
                        && begun.elapsed() < Duration::from_millis(50)
                    {
                        std::thread::yield_now();
                    }
                }
            }
        }
    }
    check(&served(), &lengths);
}

/// A client that sends or fetches, and a server that answers.
fn client(script: &mut Script<'_>) {
    let how = script.byte();
    let many = script.byte();
    let mut lengths = HashSet::from([SIZE as u64, 10]);
    let mut answers = |question: &Question| {
        if script.step().is_none() {
            return Err("over".to_owned());
        }
        let answer = postcard::from_bytes::<Answer>(script.body());
        Ok(match answer {
            Ok(Answer::Busy) | Err(_) => match question {
                // As whoever has nothing to say against it, so that the dialogue goes on.
                Question::Items(0) => Answer::Items {
                    items: listed(&NAMES[..3]),
                    all: 3,
                    left_out: 0,
                },
                Question::Here(_) => Answer::Differ(Vec::new()),
                Question::Found(_) => Answer::Found {
                    found: Vec::new(),
                    next: 100,
                },
                Question::Ready(_) => Answer::Ready,
                Question::Publish(_) => Answer::Named {
                    same: true,
                    failed: Vec::new(),
                    all: 0,
                },
                _ => Answer::Noted,
            },
            // Room for more than that is not to be had here.
            Ok(Answer::Items { items, .. })
                if items
                    .iter()
                    .any(|item| (MOST / 16..1 << 60).contains(&item.size())) =>
            {
                Answer::Nonsense
            }
            Ok(answer) => answer,
        })
    };
    let mut answers = |question: &Question| {
        let answer = answers(question);
        if let Ok(Answer::Items { items, .. }) = &answer {
            lengths.extend(items.iter().map(Item::size));
        }
        answer
    };
    let (overwrite, reverse) = (how & 1 != 0, how & 2 != 0);
    let batch = match reverse {
        true => {
            let base = match how & 4 {
                0 => Base::Below(Arc::new(Directory::open(&served()).expect("there")), 0),
                _ => Base::Exact(served().join("got")),
            };
            Batch::get(&["d".to_owned()], base, overwrite, &mut answers)
        }
        false => {
            let file = |(name, size): (&str, u64)| {
                let metadata = fs::metadata(served().join(name)).expect("it is there");
                let source = Identity {
                    size,
                    ..Identity::of(&metadata)
                };
                let item = Item {
                    name: name.to_owned(),
                    source: Some(source),
                    mode: 0o644,
                };
                (item, Where::Path(served().join(name)))
            };
            let files = [("there", SIZE as u64), ("d/there", 10)].map(file);
            Batch::put(files.to_vec(), overwrite, &mut answers)
        }
    };
    let Ok(mut batch) = batch else { return };
    if batch.agree(&mut answers).is_err() {
        return;
    }
    let mut carried = None;
    if (1..MOST).contains(&batch.bytes())
        && let Ok(mut begun) = batch.begin(&mut spec(reverse), &mut answers)
    {
        carry(&mut begun, many);
        carried = Some(begun);
    }
    let _ = batch.ended(carried, &mut answers);
    let _ = batch.finish(&mut answers);
    let _ = (batch.facts(), batch.missing(), batch.left_out().len());
    check(&served(), &lengths);
}

fn listed(names: &[&str]) -> Vec<Item> {
    let item = |name: &&str| Item {
        name: (*name).to_owned(),
        source: (*name != "d").then_some(Identity {
            size: 70_000,
            changed: 1,
        }),
        mode: 0o755,
    };
    names.iter().map(item).collect()
}

fuzz_target!(|input: &[u8]| {
    let Some((&mode, rest)) = input.split_first() else {
        return;
    };
    lay_out();
    match mode % 2 {
        0 => server(&mut Script(rest)),
        _ => client(&mut Script(rest)),
    }
    nothing_outside();
});
