//! What the program keeps of its own from one run to the next.

use std::path::PathBuf;

/// `$XDG_STATE_HOME/fullpipe/NAME`, or the same under `~/.local/state`; `None` without a home.
pub fn file(name: &str) -> Option<PathBuf> {
    let base = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from);
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/state"));
    let base = base.or_else(home).filter(|path| path.is_absolute())?;
    Some(base.join("fullpipe").join(name))
}
