//! Memory that is borrowed as it is used.

use std::fmt::Debug;

/// Lends memory until its borrower is gone.
pub trait Lender: Debug + Send + Sync {
    /// So many bytes more; false: they are not there.
    fn lend(&self, bytes: u64) -> bool;
}
