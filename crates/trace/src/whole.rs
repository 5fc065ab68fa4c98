//! Files that somebody names, and that have their name when they are whole.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::{Builder, NamedTempFile};

/// A file that grows beside its place and takes it in the end: a kill at any moment leaves the old
/// one, or none. The name that it has until then is nobody's to foresee, in a folder that others
/// may write to; without [`WholeFile::finish`] it is removed.
///
/// What is no regular file, a device or a pipe, is written where it stands, and a symbolic link
/// stays: what it names is replaced.
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
        let place = match fs::metadata(path) {
            Ok(known) if !known.is_file() => {
                return Ok(WholeFile(Place::There(
                    File::options().write(true).open(path)?,
                )));
            }
            Ok(_) => path.canonicalize()?,
            Err(e) if e.kind() == io::ErrorKind::NotFound => path.to_owned(),
            Err(e) => return Err(e),
        };
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

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
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
    }
}
