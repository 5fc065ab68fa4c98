//! Builds user-mode kernels in the user's cache.
//!
//! A build takes a source tree, changes it as `patches` says, adds the driver and configures it.
//! The tree stays beside the kernel, so that a congestion module of the user's, or the driver of
//! another version of the program, is compiled in within seconds.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::UNIX_EPOCH;

use crate::error::LinuxError;
use crate::module::MODULE_LINE;
use crate::patches;
use crate::product::{CONFIG, DRIVER, GUEST, PATCHES, Product, directory, hash, sources_hash};

/// A kernel to build.
#[derive(Clone, Debug)]
pub struct Request {
    /// A package of Debian, a tree or an archive.
    pub source: Source,
    /// Name under which it is run; `None`: its version, as `6.1`.
    pub name: Option<String>,
    /// Ticks per second: 100, 250, 300 or 1000.
    pub hz: u32,
    /// Compilers that run at once.
    pub jobs: usize,
}

/// Sources of a kernel.
#[derive(Clone, Debug)]
pub enum Source {
    /// Debian's package `linux-source-VERSION`.
    Debian(String),
    /// A tree, or an archive of one (`.tar`, `.tar.gz`, `.tar.xz`).
    Path(PathBuf),
}

impl Request {
    /// Name of the kernel in the cache.
    pub fn name(&self) -> String {
        match (&self.name, &self.source) {
            (Some(name), _) => name.clone(),
            (None, Source::Debian(version)) => version.clone(),
            (None, Source::Path(path)) => {
                let stem = path.file_name().unwrap_or_default().to_string_lossy();
                let stem = stem.split(".tar").next().unwrap_or_default();
                stem.trim_start_matches("linux-")
                    .trim_start_matches("source-")
                    .to_owned()
            }
        }
    }

    /// The archive or tree.
    ///
    /// # Errors
    /// [`LinuxError::Missing`] if it is not there, [`LinuxError::NoTree`] if it is another tree.
    pub fn path(&self) -> Result<PathBuf, LinuxError> {
        match &self.source {
            Source::Path(path) if path.is_dir() => {
                let needed = ["Makefile", "arch/um", "net/ipv4/tcp_input.c"];
                match needed.into_iter().find(|file| !path.join(file).exists()) {
                    None => Ok(path.clone()),
                    Some(absent) => Err(LinuxError::NoTree {
                        path: path.clone(),
                        absent,
                    }),
                }
            }
            Source::Path(path) if path.exists() => Ok(path.clone()),
            Source::Path(path) => Err(LinuxError::io(path)(std::io::Error::new(
                std::io::ErrorKind::NotFound,
                "no such tree or archive",
            ))),
            Source::Debian(version) => {
                let path = PathBuf::from(format!("/usr/src/linux-source-{version}.tar.xz"));
                if path.exists() {
                    return Ok(path);
                }
                Err(LinuxError::Missing {
                    missing: vec![path.display().to_string()],
                    packages: vec![format!("linux-source-{version}")],
                })
            }
        }
    }
}

/// Programs that runs need, and, if `build`, those that builds need.
///
/// # Errors
/// [`LinuxError::Missing`] with the packages of Debian that bring them.
pub fn needs(build: bool) -> Result<(), LinuxError> {
    needs_with(build, None)
}

/// The same, and what else is missing: everything in one message.
fn needs_with(build: bool, other: Option<&LinuxError>) -> Result<(), LinuxError> {
    let building: &[(&str, &'static str)] = &[
        ("make", "make"),
        ("gcc", "gcc"),
        ("ld", "binutils"),
        ("flex", "flex"),
        ("bison", "bison"),
        ("bc", "bc"),
        ("perl", "perl"),
        ("tar", "tar"),
        ("xz", "xz-utils"),
    ];
    let running: &[(&str, &'static str)] = &[("ip", "iproute2"), ("tc", "iproute2")];
    let needed = running.iter().chain(if build { building } else { &[] });
    let absent = needed.filter(|(program, _)| !is_there(program));
    let absent = absent.map(|(program, package)| ((*program).to_owned(), (*package).to_owned()));
    let mut all: Vec<_> = absent.collect();
    if build && !LIBC.iter().any(|lib| Path::new(lib).exists()) {
        all.push(("libc.a".to_owned(), "libc6-dev".to_owned()));
    }
    if let Some(LinuxError::Missing { missing, packages }) = other {
        all.extend(missing.iter().cloned().zip(packages.iter().cloned()));
    }
    if all.is_empty() {
        return Ok(());
    }
    let mut packages: Vec<String> = Vec::new();
    for (_, package) in &all {
        if !packages.contains(package) {
            packages.push(package.clone());
        }
    }
    let missing = all.into_iter().map(|(what, _)| what).collect();
    Err(LinuxError::Missing { missing, packages })
}

/// The C library to link statically, where distributions have it.
const LIBC: &[&str] = &[
    "/usr/lib/x86_64-linux-gnu/libc.a",
    "/usr/lib64/libc.a",
    "/usr/lib/libc.a",
];

fn is_there(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let system = ["/usr/sbin", "/sbin", "/usr/bin", "/bin"].map(PathBuf::from);
    let mut folders = std::env::split_paths(&path).chain(system);
    folders.any(|d| d.join(program).is_file())
}

/// Does a part of each thing that a build of the kernel of `request` does, in a second: finds its
/// sources and tools, links a program as the kernel is linked and starts it, has the tools of its
/// configuration read something. In words, what was done.
///
/// # Errors
/// What is not there; where all is there, what does not work.
pub fn rehearse(request: &Request) -> Result<String, LinuxError> {
    let source = request.path();
    needs_with(true, source.as_ref().err())?;
    source?;
    let folder = tempfile::tempdir().map_err(LinuxError::io(&std::env::temp_dir()))?;
    let at = |name: &str| folder.path().join(name);
    let write = |name: &str, text: &str| {
        let path = at(name);
        fs::write(&path, text).map_err(LinuxError::io(&path))
    };
    write("begin.c", "int main(void) { return 0; }\n")?;
    write("words.l", "%%\nx ;\n%%\n")?;
    write("grammar.y", "%token X\n%%\nall: X;\n")?;
    let quiet = |program: &str, args: &[&str]| {
        let mut command = Command::new(program);
        command.args(args).current_dir(folder.path());
        command.stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|ended| ended.success())
    };
    let begin = at("begin").display().to_string();
    let trials: [(&str, &'static str, bool); 4] = [
        (
            "gcc that links statically",
            "gcc libc6-dev binutils",
            quiet("gcc", &["-static", "-o", "begin", "begin.c"]) && quiet(&begin, &[]),
        ),
        ("flex", "flex", quiet("flex", &["words.l"])),
        ("bison", "bison", quiet("bison", &["grammar.y"])),
        ("bc", "bc", quiet("bc", &["-q"])),
    ];
    let failed = trials.iter().filter(|(.., done)| !done);
    let (missing, packages): (Vec<String>, Vec<String>) = failed
        .map(|(what, packages, _)| ((*what).to_owned(), (*packages).to_owned()))
        .unzip();
    match missing.is_empty() {
        true => Ok("a program was linked as it is; sources and tools are there".to_owned()),
        false => Err(LinuxError::Missing { missing, packages }),
    }
}

/// Builds a kernel, `say`ing what it does; about four minutes on two idle cores, and seconds where
/// another version of the program has built the same sources before.
///
/// # Errors
/// [`LinuxError`].
pub fn build(request: &Request, say: &dyn Fn(&str)) -> Result<Product, LinuxError> {
    let source = request.path();
    needs_with(true, source.as_ref().err())?;
    let source = source?;
    let dir = directory(&request.name());
    let tree = dir.join("tree");
    fs::create_dir_all(&tree).map_err(LinuxError::io(&tree))?;
    let _lock = lock(&dir)?;
    // Until the description is there, there is no kernel.
    let _ = fs::remove_file(dir.join("product"));
    let log = dir.join("build.log");
    let _ = fs::remove_file(&log);
    let stamp = stamp(&source, request.hz);
    let kept = fs::read_to_string(tree.join(STAMP));
    if stamp.is_none() || kept.ok() != stamp {
        unpack(&source, &tree, request, &log, say)?;
        if let Some(stamp) = stamp {
            write_changed(&tree.join(STAMP), &stamp)?;
        }
    }
    place(&tree)?;
    say("compiling");
    run("compiling", make(&tree, request.jobs).arg("linux"), &log)?;
    let product = Product {
        release: release(&tree, &log)?,
        hz: request.hz,
        bbr: Some(version_of_bbr(&tree)),
        module: None,
        hash: sources_hash(),
        dir,
    };
    finish(&product, &tree, &log)
}

/// One build at a time in a tree.
pub(crate) fn lock(dir: &Path) -> Result<fs::File, LinuxError> {
    let path = dir.join("lock");
    let file = fs::File::create(&path).map_err(LinuxError::io(&path))?;
    file.lock().map_err(LinuxError::io(dir))?;
    Ok(file)
}

/// Sources, changed and configured.
fn unpack(
    source: &Path,
    tree: &Path,
    request: &Request,
    log: &Path,
    say: &dyn Fn(&str),
) -> Result<(), LinuxError> {
    let step = |what: &'static str, command: &mut Command| {
        say(what);
        run(what, command, log)
    };
    let _ = fs::remove_dir_all(tree);
    fs::create_dir_all(tree).map_err(LinuxError::io(tree))?;
    if source.is_dir() {
        let mut copy = Command::new("cp");
        copy.arg("-a").arg(source.join(".")).arg(tree);
        step("copying the sources", &mut copy)?;
        let mut clean = make(tree, request.jobs);
        step("cleaning", clean.arg("mrproper"))?;
    } else {
        let mut unpack = Command::new("tar");
        unpack.arg("xf").arg(source).arg("-C").arg(tree);
        unpack.arg("--strip-components=1");
        unpack.args(UNUSED.iter().map(|p| format!("--exclude={p}")));
        step("unpacking the sources", &mut unpack)?;
    }
    patches::apply(tree, request.hz)?;
    place(tree)?;
    step("configuring", make(tree, request.jobs).arg("defconfig"))?;
    let config = tree.join(".config");
    let text = fs::read_to_string(&config).map_err(LinuxError::io(&config))?;
    fs::write(&config, configured(&text)).map_err(LinuxError::io(&config))?;
    step("configuring", make(tree, request.jobs).arg("olddefconfig"))
}

/// What a tree was made of, but for the driver: an archive that is the same needs no second
/// unpacking. A tree of the user's is always copied again.
fn stamp(source: &Path, hz: u32) -> Option<String> {
    let found = fs::metadata(source).ok().filter(fs::Metadata::is_file)?;
    let changed = found.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
    let ours = hash(&[CONFIG, PATCHES]);
    Some(format!(
        "{} {} {} {hz} {ours}\n",
        source.display(),
        found.len(),
        changed.as_secs()
    ))
}

/// Name of the file in a tree that holds the `stamp` it was made with.
const STAMP: &str = "fullpipe.stamp";

/// The driver, in its place; and what a build of a module that was killed has left is gone.
fn place(tree: &Path) -> Result<(), LinuxError> {
    let driver = tree.join("net/ipv4/fullpipe");
    fs::create_dir_all(&driver).map_err(LinuxError::io(&driver))?;
    for (name, text) in DRIVER {
        write_changed(&driver.join(name), text)?;
    }
    let makefile = tree.join("net/ipv4/Makefile");
    let text = fs::read_to_string(&makefile).map_err(LinuxError::io(&makefile))?;
    write_changed(&makefile, &text.replace(MODULE_LINE, ""))
}

/// Writes a file if it is not what it was: make looks at times.
fn write_changed(path: &Path, text: &str) -> Result<(), LinuxError> {
    match fs::read_to_string(path) {
        Ok(found) if found == text => Ok(()),
        _ => fs::write(path, text).map_err(LinuxError::io(path)),
    }
}

/// What no user-mode kernel is built from. Files that describe the configuration stay.
const UNUSED: &[&str] = &[
    "*/Documentation/*.rst",
    "*/Documentation/*.txt",
    "*/Documentation/*.svg",
    "*/Documentation/*.yaml",
    "*/drivers/gpu/*.[ch]",
    "*/drivers/media/*.[ch]",
    "*/drivers/staging/*.[ch]",
    "*/drivers/infiniband/*.[ch]",
    "*/drivers/scsi/*.[ch]",
    "*/drivers/net/ethernet/*.[ch]",
    "*/drivers/net/wireless/*.[ch]",
    "*/sound/*.[ch]",
    "*/tools/perf/*",
    "*/tools/testing/*",
    "*/arch/arm*/*.[chS]",
    "*/arch/mips/*.[chS]",
    "*/arch/powerpc/*.[chS]",
    "*/arch/s390/*.[chS]",
    "*/arch/*/boot/dts/*",
];

/// Puts kernel and guest where runs find them.
pub(crate) fn finish(product: &Product, tree: &Path, log: &Path) -> Result<Product, LinuxError> {
    // Under other names first: guests may be running.
    let built = tree.join("linux");
    let part = product.dir.join("linux.part");
    fs::copy(&built, &part).map_err(LinuxError::io(&built))?;
    fs::rename(&part, product.kernel()).map_err(LinuxError::io(&part))?;
    let sources = product.dir.join("guest-sources");
    fs::create_dir_all(&sources).map_err(LinuxError::io(&sources))?;
    let mut compile = Command::new("gcc");
    compile.args(["-O2", "-static", "-o"]).arg(&part);
    for (name, text) in GUEST {
        let path = sources.join(name);
        fs::write(&path, text).map_err(LinuxError::io(&path))?;
        if name.ends_with(".c") {
            compile.arg(&path);
        }
    }
    run("compiling the guest", &mut compile, log)?;
    fs::rename(&part, product.guest()).map_err(LinuxError::io(&part))?;
    product.write()?;
    Ok(product.clone())
}

/// The configuration `base` with what the kernel needs, in the place of what it says of that.
fn configured(base: &str) -> String {
    let key = |line: &str| -> Option<String> {
        let line = line.strip_prefix("# ").unwrap_or(line);
        let end = line.find(['=', ' '])?;
        line.starts_with("CONFIG_").then(|| line[..end].to_owned())
    };
    let ours: Vec<String> = CONFIG.lines().filter_map(key).collect();
    let kept = base.lines();
    let kept = kept.filter(|l| key(l).is_none_or(|k| !ours.contains(&k)));
    let lines: Vec<&str> = kept.chain(CONFIG.lines()).collect();
    lines.join("\n") + "\n"
}

/// Version 3 says so; version 1 says nothing.
fn version_of_bbr(tree: &Path) -> u32 {
    let text = fs::read_to_string(tree.join("net/ipv4/tcp_bbr.c")).unwrap_or_default();
    let defined = text.lines().find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["#define", "BBR_VERSION", version] => version.parse().ok(),
            _ => None,
        }
    });
    defined.unwrap_or(1)
}

fn release(tree: &Path, log: &Path) -> Result<String, LinuxError> {
    let output = make(tree, 1).arg("kernelversion").output();
    let output = output.map_err(LinuxError::io(tree))?;
    let text = String::from_utf8_lossy(&output.stdout);
    match text.lines().last() {
        Some(line) if output.status.success() => Ok(line.trim().to_owned()),
        _ => Err(LinuxError::Build {
            what: "asking for the version",
            log: log.to_owned(),
        }),
    }
}

pub(crate) fn make(tree: &Path, jobs: usize) -> Command {
    let mut make = Command::new("make");
    make.args(["-s", "ARCH=um"])
        .arg(format!("-j{}", jobs.max(1)));
    make.current_dir(tree).stdin(Stdio::null());
    // The build must not depend on who calls it: a make that called this program, a locale.
    for variable in ["MAKEFLAGS", "MFLAGS", "MAKELEVEL", "KBUILD_OUTPUT"] {
        make.env_remove(variable);
    }
    make.env("LC_ALL", "C");
    make
}

pub(crate) fn run(what: &'static str, command: &mut Command, log: &Path) -> Result<(), LinuxError> {
    let file = fs::OpenOptions::new().create(true).append(true).open(log);
    let out = file.map_err(LinuxError::io(log))?;
    let errors = out.try_clone().map_err(LinuxError::io(log))?;
    let program = PathBuf::from(command.get_program());
    let command = command.stdin(Stdio::null()).stdout(out).stderr(errors);
    let status = command.status().map_err(LinuxError::io(&program))?;
    match status.success() {
        true => Ok(()),
        // The tools' own complaint of a full disk finds no room in the log.
        false => match full(log) {
            Some(error) => Err(error),
            None => Err(LinuxError::Build {
                what,
                log: log.to_owned(),
            }),
        },
    }
}

/// The error if there is no room for a mebibyte beside the log.
fn full(log: &Path) -> Option<LinuxError> {
    let path = log.with_extension("room");
    let written = fs::write(&path, vec![0; 1 << 20]);
    let _ = fs::remove_file(&path);
    let error = written.err()?;
    (error.kind() == std::io::ErrorKind::StorageFull).then(|| LinuxError::io(log)(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(source: Source) -> Request {
        Request {
            source,
            name: None,
            hz: 250,
            jobs: 1,
        }
    }

    #[test]
    fn a_directory_that_is_no_kernel_is_refused_before_it_is_copied() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path();
        fs::write(path.join("Makefile"), "all:\n\ttouch made\n").unwrap();
        let refused = || request(Source::Path(path.to_owned())).path().unwrap_err();
        assert!(refused().to_string().ends_with("it has no arch/um"));
        fs::create_dir_all(path.join("arch/um")).unwrap();
        assert!(refused().to_string().contains("no net/ipv4"));
        fs::create_dir_all(path.join("net/ipv4")).unwrap();
        fs::write(path.join("net/ipv4/tcp_input.c"), "").unwrap();
        assert!(request(Source::Path(path.to_owned())).path().is_ok());
    }

    #[test]
    fn the_package_of_the_version_that_was_asked_for_is_named() {
        let error = request(Source::Debian("7.9".into())).path().unwrap_err();
        let hint = error.hint();
        assert!(hint.ends_with("apt-get install linux-source-7.9"), "{hint}");
    }

    #[test]
    fn a_step_that_fails_names_itself_and_its_log() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("build.log");
        let error = run("compiling", &mut Command::new("false"), &log).unwrap_err();
        assert!(error.to_string().starts_with("compiling failed, see"));
        assert!(error.hint().contains("last lines"), "{}", error.hint());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
