//! A file as the payload of a flow.
//!
//! A file on its way lies as `NAME.part` beside `NAME.part.state`, which says whose it is and how
//! much of it is on the disk without a hole. Nothing half-written ever has the final name: it is
//! given when every byte is there, the BLAKE3 of the whole is the sender's, and the data are on the
//! disk. A transfer that died goes on from the prefix that is there, if its sender finds the same
//! hash over its own first bytes, and begins anew otherwise.
//!
//! - [`Name`], [`Directory`], [`Place`]: what may be asked for by name; a server's files are
//!   confined to one directory.
//! - [`tree`]: checksums of blocks; [`plan`]: several files as one stream; [`origin`] and
//!   [`target`]: its two ends.
//! - [`source`](mod@source): segments from a file, read ahead.
//! - [`sink`]: segments into a file, in any order.
//! - [`room`]: the disk that unfinished files may take.
//! - [`abandoned`]: what becomes of unfinished files that nobody goes on with.
//! - [`descriptors`]: how many files may be open.

pub mod abandoned;
pub mod descriptors;
pub mod hash;
pub mod name;
pub mod origin;
pub mod place;
pub mod plan;
mod progress;
pub mod room;
pub mod sink;
pub mod source;
pub mod state;
pub mod target;
pub mod tree;
pub mod walk;

pub use abandoned::Removed;
pub use hash::{Cancel, hashed};
pub use name::{Name, NameError};
pub use origin::{CHANGED, Origin, Sending, Where, send_all};
pub use place::{DIRECTORY_REMOVED, DISK_FULL, Directory, Place, QUOTA_USED, Ways};
pub use plan::{Item, Plan, bytes_of};
pub use room::Room;
pub use sink::{Buffer, FileSink, Part, Writing};
pub use source::{FileSource, Reading, source};
pub use state::{Identity, State, permissions};
pub use target::{NOBODY, Receiving, Target, begin_all, receive_all, sync_directories, sync_files};
pub use tree::Blocks;
pub use walk::{LeftOut, Listing, Made, Reach};

#[cfg(test)]
mod tests;
