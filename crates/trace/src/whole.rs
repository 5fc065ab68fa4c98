//! Files that somebody names, and that have their name when they are whole.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use tempfile::{Builder, NamedTempFile};

/// A file that grows beside its place and takes it in the end: a kill at any moment leaves the old
/// one, or none. The name that it has until then is nobody's to foresee, in a folder that others
/// may write to; without [`WholeFile::finish`] it is removed.
///
/// What is no regular file, a device or a pipe, is written where it stands, and so is what a
/// process has open (`/dev/stdout`, `/proc/self/fd/1`): behind what it has. A symbolic link stays,
/// and what it names is replaced, with its permissions and, as far as the system lets us, its
/// owner.
#[derive(Debug)]
pub struct WholeFile(Place);

#[derive(Debug)]
enum Place {
    Beside(NamedTempFile, PathBuf),
    There(File),
}

impl WholeFile {
    /// Begins a file that will be `path`.
    ///
    /// # Errors
    /// If none can be made there.
    pub fn begin(path: &Path) -> io::Result<WholeFile> {
        let place = followed(path)?;
        let known = match fs::metadata(&place) {
            Ok(known) => Some(known),
            Err(e) if e.kind() == io::ErrorKind::NotFound => None,
            Err(e) => return Err(e),
        };
        let is_open = OPEN.iter().any(|folder| place.starts_with(folder));
        if known
            .as_ref()
            .is_some_and(|known| is_open || !known.is_file())
        {
            let file = File::options().append(true).open(&place)?;
            return Ok(WholeFile(Place::There(file)));
        }
        let name = place.file_name().unwrap_or_default().to_string_lossy();
        let folder = match place.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let file = Builder::new()
            .prefix(&format!(".{name}."))
            .suffix(".tmp")
            // What the process's mask leaves of it, as of any file.
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(folder)?;
        if let Some(known) = known {
            // One that may not be written is not replaced either.
            File::options().write(true).open(&place)?;
            // Root alone gives files away.
            let _ = fchown(file.as_file(), Some(known.uid()), Some(known.gid()));
            file.as_file().set_permissions(known.permissions())?;
        }
        Ok(WholeFile(Place::Beside(file, place)))
    }

    /// The file to write to.
    ///
    /// # Errors
    /// If the system gives no further descriptor.
    pub fn file(&self) -> io::Result<File> {
        match &self.0 {
            Place::Beside(file, _) => file.as_file().try_clone(),
            Place::There(file) => file.try_clone(),
        }
    }

    /// Everything is written: it takes its place.
    ///
    /// # Errors
    /// If the disk or the folder refuses it; then what was there before still is.
    pub fn finish(self) -> io::Result<()> {
        match self.0 {
            Place::There(_) => Ok(()),
            Place::Beside(file, place) => {
                file.as_file().sync_all()?;
                file.persist(place).map(drop).map_err(|e| e.error)
            }
        }
    }
}

/// The end of a chain of symbolic links, whether there is something or not; what is in [`OPEN`] is
/// an end, too.
fn followed(path: &Path) -> io::Result<PathBuf> {
    let mut place = path.to_owned();
    for _ in 0..MOST_LINKS {
        if OPEN.iter().any(|folder| place.starts_with(folder)) {
            return Ok(place);
        }
        match fs::read_link(&place) {
            Ok(target) => place = place.with_file_name(target),
            // No link, or nothing at all.
            Err(_) => return Ok(place),
        }
    }
    Err(io::Error::other("too many levels of symbolic links"))
}

/// Longest chain of symbolic links, as in Linux (`MAXSYMLINKS`).
const MOST_LINKS: usize = 40;
/// Where names stand for devices and what processes have open.
const OPEN: [&str; 2] = ["/dev", "/proc"];

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::{FileTypeExt, symlink};

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let name = |e: io::Result<fs::DirEntry>| e.unwrap().file_name().into_string().unwrap();
        let mut names: Vec<String> = fs::read_dir(folder).unwrap().map(name).collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_has_its_name_when_it_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        fs::write(&path, "old").unwrap();
        let whole = WholeFile::begin(&path).unwrap();
        whole.file().unwrap().write_all(b"half").unwrap();
        drop(whole);
        assert_eq!(fs::read(&path).unwrap(), b"old");
        let whole = WholeFile::begin(&path).unwrap();
        whole.file().unwrap().write_all(b"new").unwrap();
        whole.finish().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(names(folder.path()), ["x"]);
        assert!(WholeFile::begin(folder.path()).is_err(), "a folder");
        assert!(WholeFile::begin(&folder.path().join("no/x")).is_err());
    }

    #[test]
    fn pipes_and_links_stay_what_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::from_bits_truncate(0o600)).unwrap();
        let reader = std::thread::spawn({
            let pipe = pipe.clone();
            move || {
                let mut text = String::new();
                File::open(pipe).unwrap().read_to_string(&mut text).unwrap();
                text
            }
        });
        let whole = WholeFile::begin(&pipe).unwrap();
        whole.file().unwrap().write_all(b"through").unwrap();
        whole.finish().unwrap();
        assert_eq!(reader.join().unwrap(), "through");
        assert!(fs::metadata(&pipe).unwrap().file_type().is_fifo());
        fs::remove_file(&pipe).unwrap();

        let (target, link) = (folder.path().join("target"), folder.path().join("link"));
        fs::write(&target, "old").unwrap();
        symlink("target", &link).unwrap();
        let whole = WholeFile::begin(&link).unwrap();
        whole.file().unwrap().write_all(b"new").unwrap();
        whole.finish().unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&target).unwrap(), b"new");
        assert_eq!(names(folder.path()), ["link", "target"]);
        // One that leads nowhere yet, too.
        fs::remove_file(&target).unwrap();
        WholeFile::begin(&link).unwrap().finish().unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(names(folder.path()), ["link", "target"]);
    }

    /// `--out /dev/stdout >> log`.
    #[test]
    fn what_a_process_has_open_keeps_what_it_has() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        fs::write(&log, "before ").unwrap();
        let open = File::options().append(true).open(&log).unwrap();
        let link = folder.path().join("link");
        symlink(format!("/proc/self/fd/{}", open.as_raw_fd()), &link).unwrap();
        let whole = WholeFile::begin(&link).unwrap();
        whole.file().unwrap().write_all(b"behind").unwrap();
        whole.finish().unwrap();
        assert_eq!(fs::read(&log).unwrap(), b"before behind");
    }

    #[test]
    fn permissions_stay() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        WholeFile::begin(&path).unwrap().finish().unwrap();
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}
