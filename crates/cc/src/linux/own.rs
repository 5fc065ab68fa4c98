//! The user's own congestion module, which only a kernel can run.
//!
//! On ground linux a flow with this stack uses the module that `--kernel-module` compiles into the
//! kernel; other grounds refuse it. What runs where nobody refuses is Reno: every default of
//! [`Module`].

use crate::entry::Entry;
use crate::linux::module::Module;

/// No state of its own.
#[derive(Clone, Debug)]
pub struct Own;

impl Module for Own {}

/// `own-linux`.
pub const OWN_LINUX: Entry<Own> = Entry {
    name: "own-linux",
    aliases: &[],
    about: "your own module: ground linux with `--kernel-module FILE`, no other ground",
    source: "the file of `--kernel-module`",
    params: &[],
    build: |_| Ok(Own),
};
