//! Linux's own TCP in virtual time.

use std::path::PathBuf;

use fullpipe_linux::{DEFAULT_VERSION, Linux, with_module};

use crate::{Entry, Setting};

/// A kernel of the cache, and what is added to it.
#[derive(Clone, Debug, Default)]
pub struct Kernel {
    /// Its name in the cache; `None`: the default version.
    pub name: Option<String>,
    /// A congestion module of the user's to be compiled in.
    pub module: Option<PathBuf>,
}

/// `linux`.
pub(crate) const ENTRY: Entry = Entry::here(
    Linux::NAME,
    "Linux's own TCP in virtual time, in a user-mode kernel (`fullpipe linux build` makes it)",
    |settings| {
        let kernel = settings.kernel;
        let name = kernel.name.as_deref().unwrap_or(DEFAULT_VERSION);
        let ground = Linux::new(name, settings.interrupt)?;
        let Some(module) = kernel.module else {
            return Ok(Box::new(ground));
        };
        let product = with_module(name, &module, &|_| {})?;
        Ok(Box::new(Linux::of(product, settings.interrupt)))
    },
)
.taking(&[Setting::Kernel]);
