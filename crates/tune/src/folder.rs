//! The daemon's folder: nobody else may have made it, lead it elsewhere, or write into it.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::Path;

/// Makes the folder where it is not there, and looks at it and at all above it.
///
/// # Errors
/// It is a link or no folder, or somebody else could put other files into it.
pub fn own(folder: &Path) -> io::Result<()> {
    let made = fs::DirBuilder::new().mode(0o755).create(folder);
    match made {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
        made => made?,
    }
    fit(folder)
}

/// Looks at a folder that is there, and at all above it.
///
/// # Errors
/// See [`own`].
pub fn fit(folder: &Path) -> io::Result<()> {
    let found = fs::symlink_metadata(folder)?;
    let refuse = |why: String| Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    if found.is_symlink() {
        return refuse("it is a symbolic link; `--state` takes the folder itself".to_owned());
    }
    if !found.is_dir() {
        return refuse("it is no folder".to_owned());
    }
    let user = nix::unistd::geteuid().as_raw();
    if found.uid() != user {
        let owner = found.uid();
        return refuse(format!(
            "it belongs to user {owner}, not to {user}: remove it or chown it"
        ));
    }
    if found.mode() & 0o022 != 0 {
        return refuse(format!(
            "others may write into it (mode {:o}): chmod go-w",
            found.mode() & 0o7777
        ));
    }
    // Who may rename a folder above it may put another in its place.
    for above in fs::canonicalize(folder)?.ancestors().skip(1) {
        let found = fs::metadata(above)?;
        let others = found.uid() != 0 && found.uid() != user;
        let open = found.mode() & 0o022 != 0 && found.mode() & STICKY == 0;
        if others || open {
            let above = above.display();
            return refuse(format!(
                "somebody else may rename what is in {above} above it"
            ));
        }
    }
    Ok(())
}

const STICKY: u32 = 0o1000;

/// The text of a regular file in the folder: a pipe has nobody who writes it. A crash or a disk may
/// have left bytes that are no UTF-8: they become U+FFFD, readers pass over lines that they do not
/// understand, and the rest counts.
///
/// # Errors
/// The system's, as for a file that is not there.
pub fn text(file: &Path) -> io::Result<String> {
    if !fs::metadata(file)?.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    fs::read(file).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn refused(folder: &Path) -> String {
        own(folder).unwrap_err().to_string()
    }

    #[test]
    fn a_pipe_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("journal");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert_eq!(
            text(&pipe).unwrap_err().to_string(),
            "it is no regular file"
        );
    }

    #[test]
    fn a_folder_is_made_and_only_an_own_one_is_taken() {
        let around = tempfile::tempdir().unwrap();
        let at = |name: &str| around.path().join(name);
        own(&at("new")).unwrap();
        own(&at("new")).unwrap();
        let mode = |name: &str, bits: u32| {
            fs::set_permissions(at(name), fs::Permissions::from_mode(bits)).unwrap();
        };
        std::os::unix::fs::symlink(at("new"), at("link")).unwrap();
        assert!(refused(&at("link")).starts_with("it is a symbolic link"));
        fs::write(at("file"), "").unwrap();
        assert_eq!(refused(&at("file")), "it is no folder");
        mode("new", 0o777);
        let why = refused(&at("new"));
        assert_eq!(why, "others may write into it (mode 777): chmod go-w");
        mode("new", 0o755);
        own(&at("new/below")).unwrap();
        mode("new", 0o777);
        assert!(refused(&at("new/below")).starts_with("somebody else may rename what is in"));
        mode("new", 0o1777);
        own(&at("new/below")).unwrap();
        if nix::unistd::geteuid().is_root() {
            std::os::unix::fs::chown(at("new/below"), Some(65534), None).unwrap();
            let why = refused(&at("new/below"));
            assert!(
                why.starts_with("it belongs to user 65534, not to 0"),
                "{why}"
            );
        } else {
            eprintln!("skipped: a folder of another user (needs root)");
        }
    }
}
