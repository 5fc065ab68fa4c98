//! Kernels that have been built, in the user's cache: `fullpipe/linux/NAME/` with the kernel
//! (`linux`), the first process of its guests (`guest`), and what they were made of (`product`).

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::LinuxError;

/// The version that is built and run unless another is asked for.
pub const DEFAULT_VERSION: &str = "6.1";

/// A kernel that is ready to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Product {
    /// Directory.
    pub dir: PathBuf,
    /// Release, as `6.1.192`.
    pub release: String,
    /// Ticks per second.
    pub hz: u32,
    /// Version of its BBR; `None`: an earlier version of the program did not look.
    pub bbr: Option<u32>,
    /// The user's own congestion module, as the kernel calls it.
    pub module: Option<String>,
    /// Of everything that it was made of beside the kernel's own sources.
    pub hash: String,
}

impl Product {
    /// The kernel called `name`.
    ///
    /// # Errors
    /// [`LinuxError::NotBuilt`], or [`LinuxError::Stale`] if another version of the program built
    /// it.
    pub fn find(name: &str) -> Result<Self, LinuxError> {
        let product = Self::read(name)?;
        if product.hash.starts_with(&sources_hash()) {
            return Ok(product);
        }
        Err(LinuxError::Stale {
            wanted: name.to_owned(),
        })
    }

    fn read(name: &str) -> Result<Self, LinuxError> {
        let dir = directory(name);
        let absent = || LinuxError::NotBuilt {
            wanted: name.to_owned(),
        };
        let text = fs::read_to_string(dir.join("product")).map_err(|_| absent())?;
        let field = |key: &str| {
            let mut lines = text.lines().filter_map(|l| l.split_once('='));
            lines.find(|(k, _)| *k == key).map(|(_, v)| v.to_owned())
        };
        Ok(Self {
            release: field("release").ok_or_else(absent)?,
            hz: field("hz")
                .and_then(|h| h.parse().ok())
                .ok_or_else(absent)?,
            bbr: field("bbr").and_then(|b| b.parse().ok()),
            module: field("module"),
            hash: field("hash").ok_or_else(absent)?,
            dir,
        })
    }

    /// Writes the description, the last step of a build.
    pub(crate) fn write(&self) -> Result<(), LinuxError> {
        let mut text = format!(
            "release={}\nhz={}\nhash={}\n",
            self.release, self.hz, self.hash
        );
        if let Some(bbr) = self.bbr {
            text += &format!("bbr={bbr}\n");
        }
        if let Some(module) = &self.module {
            text += &format!("module={module}\n");
        }
        let part = self.dir.join("product.part");
        let path = self.dir.join("product");
        fs::write(&part, text).map_err(LinuxError::io(&part))?;
        fs::rename(&part, &path).map_err(LinuxError::io(&path))
    }

    /// The kernel itself.
    pub fn kernel(&self) -> PathBuf {
        self.dir.join("linux")
    }

    /// First process of a guest.
    pub fn guest(&self) -> PathBuf {
        self.dir.join("guest")
    }

    /// Kernels in the cache, by name.
    pub fn all() -> Vec<(String, Self)> {
        let entries = fs::read_dir(cache()).into_iter().flatten().flatten();
        let names = entries.map(|e| e.file_name().to_string_lossy().into_owned());
        let mut all: Vec<_> = names
            .filter_map(|name| Some((name.clone(), Self::read(&name).ok()?)))
            .collect();
        all.sort_by(|a, b| a.0.cmp(&b.0));
        all
    }
}

/// Where kernels are: `linux` in the [`user_cache`].
pub fn cache() -> PathBuf {
    user_cache().join("linux")
}

/// `$XDG_CACHE_HOME/fullpipe`, or the same under `~/.cache`.
pub fn user_cache() -> PathBuf {
    let base = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let base = base.filter(|p| p.is_absolute());
    let home = || std::env::var_os("HOME").map(|h| Path::new(&h).join(".cache"));
    let base = base.or_else(home).unwrap_or_else(std::env::temp_dir);
    base.join("fullpipe")
}

/// Where a kernel of that name is, or will be.
pub fn directory(name: &str) -> PathBuf {
    cache().join(name)
}

/// Of the program's part of a kernel: its driver, its guest, its configuration and its patches.
pub(crate) fn sources_hash() -> String {
    let files = DRIVER.iter().chain(GUEST).map(|(_, text)| *text);
    let all: Vec<&str> = files.chain([CONFIG, PATCHES]).collect();
    hash(&all)
}

/// 64 bits of FNV-1a, hexadecimal: tells builds apart, keeps nobody out.
pub(crate) fn hash(texts: &[&str]) -> String {
    let bytes = texts.iter().flat_map(|t| t.bytes().chain([0]));
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |h, b| {
        (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{hash:016x}")
}

/// The network of a run, compiled into the kernel: files of `net/ipv4/fullpipe`.
pub(crate) const DRIVER: &[(&str, &str)] = &[
    ("Makefile", include_str!("../kernel/driver/Makefile")),
    ("fullpipe.h", include_str!("../kernel/driver/fullpipe.h")),
    ("commands.c", include_str!("../kernel/driver/commands.c")),
    ("records.c", include_str!("../kernel/driver/records.c")),
    ("random.c", include_str!("../kernel/driver/random.c")),
    ("hosts.c", include_str!("../kernel/driver/hosts.c")),
    ("senders.c", include_str!("../kernel/driver/senders.c")),
    ("link.c", include_str!("../kernel/driver/link.c")),
    ("entry.c", include_str!("../kernel/driver/entry.c")),
    (
        "transmitter.c",
        include_str!("../kernel/driver/transmitter.c"),
    ),
    ("wire.c", include_str!("../kernel/driver/wire.c")),
    ("held.c", include_str!("../kernel/driver/held.c")),
    ("cross.c", include_str!("../kernel/driver/cross.c")),
    ("capture.c", include_str!("../kernel/driver/capture.c")),
    ("limits.c", include_str!("../kernel/driver/limits.c")),
    ("alarm.c", include_str!("../kernel/driver/alarm.c")),
];
/// First process of a guest.
pub(crate) const GUEST: &[(&str, &str)] = &[
    ("guest.h", include_str!("../kernel/guest/guest.h")),
    ("main.c", include_str!("../kernel/guest/main.c")),
    ("flows.c", include_str!("../kernel/guest/flows.c")),
    ("brief.c", include_str!("../kernel/guest/brief.c")),
];
/// What is changed in the kernel's own sources.
pub(crate) const PATCHES: &str = include_str!("patches.rs");
/// What the kernel needs beyond the architecture's default configuration.
pub(crate) const CONFIG: &str = include_str!("../kernel/kernel.config");
