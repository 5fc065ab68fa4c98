//! The beginning of a stream of several files: read ahead in the order of the plan, and hashed by
//! blocks on the way.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};

use super::hash::Cancel;
use super::place::Place;
use super::plan::Plan;
use super::sink::Buffer;
use super::source::{Ahead, FileSource, PIECE};
use super::state::{Identity, Stamp};
use super::tree::{Blocks, Span};

/// Location of a file that is read.
#[derive(Clone, Debug)]
pub enum Where {
    /// A path of this host; links are followed.
    Path(PathBuf),
    /// In a directory that is served.
    Place(Arc<Place>),
}

/// A file that is sent.
#[derive(Debug)]
pub struct Origin {
    /// A path of the client, or a place in the directory of the server.
    pub at: Where,
    /// Size and modification time, as they were announced.
    pub source: Identity,
    /// Digests of what has been read of it.
    pub blocks: Blocks,
    /// As it was when it was first opened.
    first: First,
    /// Why it cannot be sent, once that is known.
    pub failure: Option<String>,
}

/// A file as it was when it was first opened: whoever changes it and puts its modification time
/// back does not get a mixture sent.
type First = Arc<OnceLock<Stamp>>;

impl Where {
    /// Opens the regular file that is there.
    ///
    /// # Errors
    /// As the system says.
    pub fn open(&self) -> io::Result<File> {
        match self {
            Self::Place(place) => place.open(),
            Self::Path(path) => {
                // A pipe without a writer would keep us waiting.
                let flags = nix::libc::O_NONBLOCK | nix::libc::O_CLOEXEC;
                let file = File::options().read(true).custom_flags(flags).open(path)?;
                match file.metadata()?.is_file() {
                    true => Ok(file),
                    false => Err(io::Error::new(
                        ErrorKind::InvalidInput,
                        "not a regular file",
                    )),
                }
            }
        }
    }
}

impl Origin {
    /// A source that has not been read yet.
    pub fn new(at: Where, source: Identity) -> Self {
        Self {
            at,
            source,
            blocks: Blocks::new(source.size),
            first: First::default(),
            failure: None,
        }
    }

    /// Reads and hashes these ranges, whole blocks; what cannot be read becomes its failure.
    ///
    /// # Errors
    /// [`ErrorKind::Interrupted`] once it is cancelled.
    pub fn hash(&mut self, spans: &[Span], cancel: &Cancel) -> io::Result<()> {
        let read = same(&self.at, self.source, &self.first).and_then(|file| {
            self.blocks.read(&file, spans, cancel)?;
            unchanged(&file, self.source, &self.first)
        });
        match read {
            Err(e) if cancel.check().is_err() => return Err(e),
            Err(e) => self.fail(&e),
            Ok(()) => {}
        }
        Ok(())
    }

    fn streamed(&self) -> (Where, Identity, First) {
        (self.at.clone(), self.source, Arc::clone(&self.first))
    }

    fn fail(&mut self, error: &io::Error) {
        let why = || match error.kind() {
            ErrorKind::UnexpectedEof => CHANGED.to_owned(),
            ErrorKind::NotFound => "it is no longer there".to_owned(),
            ErrorKind::PermissionDenied => "permission denied".to_owned(),
            _ => error.to_string(),
        };
        self.failure.get_or_insert_with(why);
        self.blocks = Blocks::new(self.source.size);
    }
}

/// What a sender says of a file that is not what it announced.
pub const CHANGED: &str = "it changed while it was being sent";

/// The file, if it is still the one that was announced.
fn same(at: &Where, source: Identity, first: &First) -> io::Result<File> {
    let file = at.open()?;
    unchanged(&file, source, first)?;
    Ok(file)
}

fn unchanged(file: &File, source: Identity, first: &First) -> io::Result<()> {
    let now = Stamp::of(file)?;
    let is_same = Identity::of(&file.metadata()?) == source && *first.get_or_init(|| now) == now;
    match is_same {
        true => Ok(()),
        false => Err(io::Error::other(CHANGED)),
    }
}

/// What is read where segments are sent again.
#[derive(Debug)]
pub(super) struct Streamed {
    plan: Arc<Plan>,
    files: Vec<(Where, Identity, First)>,
    /// The file that was used last.
    open: Option<(u32, File)>,
}

impl Streamed {
    /// Bytes of the stream from `at` on; zeros where a file is not what it was.
    pub(super) fn read(&mut self, mut out: &mut [u8], mut at: u64) -> io::Result<()> {
        while !out.is_empty() {
            let (_, piece, inside) = self.plan.find(at).ok_or(ErrorKind::UnexpectedEof)?;
            let n = out.len().min((piece.to - inside) as usize);
            let (now, later) = out.split_at_mut(n);
            let read = self.file(piece.file);
            if read
                .and_then(|file| file.read_exact_at(now, inside))
                .is_err()
            {
                now.fill(0);
            }
            (at, out) = (at + n as u64, later);
        }
        Ok(())
    }

    fn file(&mut self, index: u32) -> io::Result<&File> {
        if self.open.as_ref().is_none_or(|(open, _)| *open != index) {
            let file = self.files.get(index as usize);
            let (at, source, first) = file.ok_or(ErrorKind::NotFound)?;
            self.open = Some((index, same(at, *source, first)?));
        }
        match &self.open {
            Some((_, file)) => Ok(file),
            None => Err(ErrorKind::NotFound.into()),
        }
    }
}

/// The thread that reads ahead.
#[derive(Debug)]
pub struct Sending {
    ahead: Arc<Ahead>,
    thread: Option<JoinHandle<io::Result<Vec<Origin>>>>,
}

/// Makes the stream of `plan`, whose files are `origins`; `buffer` holds what is read ahead.
///
/// # Errors
/// The thread cannot be started.
pub fn send_all(
    origins: Vec<Origin>,
    plan: Plan,
    buffer: Option<Buffer>,
) -> io::Result<(FileSource, Sending)> {
    let plan = Arc::new(plan);
    let ahead = Arc::new(Ahead::new(0, buffer));
    let streamed = Streamed {
        plan: Arc::clone(&plan),
        files: origins.iter().map(Origin::streamed).collect(),
        open: None,
    };
    let source = FileSource::of_stream(streamed, plan.bytes(), &ahead);
    let reader = Reader {
        origins,
        plan,
        ahead: Arc::clone(&ahead),
        open: None,
    };
    let thread = thread::Builder::new()
        .name("file-reader".to_owned())
        .spawn(move || reader.run())?;
    let thread = Some(thread);
    Ok((source, Sending { ahead, thread }))
}

impl Sending {
    /// The files with the digests of all that was sent, once all of it has been read.
    ///
    /// # Errors
    /// It was cancelled.
    pub fn finish(mut self, cancel: &Cancel) -> io::Result<Vec<Origin>> {
        self.ahead.read_all(cancel);
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(result)) => result,
            _ => Err(io::Error::other("the thread that reads the files failed")),
        }
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        self.ahead.stop();
    }
}

struct Reader {
    origins: Vec<Origin>,
    plan: Arc<Plan>,
    ahead: Arc<Ahead>,
    open: Option<(u32, File)>,
}

impl Reader {
    fn run(mut self) -> io::Result<Vec<Origin>> {
        let all = self.plan.bytes();
        let mut at = 0;
        while at < all {
            let number = at / PIECE;
            if !self.ahead.wait_for(number) {
                return Err(ErrorKind::Interrupted.into());
            }
            let mut bytes = vec![0; (all - at).min(PIECE) as usize];
            self.fill(at, &mut bytes);
            at += bytes.len() as u64;
            self.ahead.put(number, bytes);
        }
        Ok(self.origins)
    }

    /// A file that cannot be read leaves zeros: its sender says so before it gets its name.
    fn fill(&mut self, mut at: u64, mut out: &mut [u8]) {
        while !out.is_empty() {
            let Some((number, piece, inside)) = self.plan.find(at) else {
                return;
            };
            let n = out.len().min((piece.to - inside) as usize);
            let (now, later) = out.split_at_mut(n);
            let last = inside + n as u64 == piece.to && self.plan.is_last(number);
            if let Err(error) = self.read(piece.file, inside, now, last)
                && let Some(origin) = self.origins.get_mut(piece.file as usize)
            {
                now.fill(0);
                origin.fail(&error);
            }
            (at, out) = (at + n as u64, later);
        }
    }

    fn read(&mut self, index: u32, inside: u64, out: &mut [u8], last: bool) -> io::Result<()> {
        let Some(origin) = self.origins.get_mut(index as usize) else {
            return Ok(());
        };
        if origin.failure.is_some() {
            return Ok(());
        }
        if self.open.as_ref().is_none_or(|(open, _)| *open != index) {
            let file = same(&origin.at, origin.source, &origin.first)?;
            self.open = Some((index, file));
        }
        if let Some((_, file)) = &self.open {
            file.read_exact_at(out, inside)?;
            origin.blocks.feed(inside, out);
            if last {
                unchanged(file, origin.source, &origin.first)?;
            }
        }
        Ok(())
    }
}
