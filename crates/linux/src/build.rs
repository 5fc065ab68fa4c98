//! Builds user-mode kernels in the user's cache.
//!
//! A build takes a source tree, changes it as `patches` says, adds the driver and configures it.
//! The tree stays beside the kernel, so that a congestion module of the user's is compiled in
//! within seconds.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::error::LinuxError;
use crate::patches;
use crate::product::{CONFIG, DRIVER, GUEST, Product, directory, hash, sources_hash};

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
    /// [`LinuxError::Missing`] if it is not there.
    pub fn path(&self) -> Result<PathBuf, LinuxError> {
        match &self.source {
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
                    packages: vec![match version.as_str() {
                        "6.12" => "linux-source-6.12",
                        _ => "linux-source-6.1",
                    }],
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
    let building: &[(&str, &'static str)] = &[
        ("make", "make"),
        ("gcc", "gcc"),
        ("flex", "flex"),
        ("bison", "bison"),
        ("bc", "bc"),
        ("tar", "tar"),
        ("xz", "xz-utils"),
    ];
    let running: &[(&str, &'static str)] = &[("ip", "iproute2"), ("tc", "iproute2")];
    let (mut missing, mut packages) = (Vec::new(), Vec::new());
    let needed = running.iter().chain(if build { building } else { &[] });
    for (program, package) in needed {
        if !is_there(program) {
            missing.push((*program).to_owned());
            if !packages.contains(package) {
                packages.push(package);
            }
        }
    }
    match missing.is_empty() {
        true => Ok(()),
        false => Err(LinuxError::Missing { missing, packages }),
    }
}

fn is_there(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let system = ["/usr/sbin", "/sbin", "/usr/bin", "/bin"].map(PathBuf::from);
    let mut folders = std::env::split_paths(&path).chain(system);
    folders.any(|d| d.join(program).is_file())
}

/// Builds a kernel, `say`ing what it does; about four minutes on two idle cores.
///
/// # Errors
/// [`LinuxError`].
pub fn build(request: &Request, say: &dyn Fn(&str)) -> Result<Product, LinuxError> {
    needs(true)?;
    let source = request.path()?;
    let dir = directory(&request.name());
    let tree = dir.join("tree");
    // Until the description is there, there is no kernel.
    let _ = fs::remove_file(dir.join("product"));
    let _ = fs::remove_dir_all(&tree);
    fs::create_dir_all(&tree).map_err(LinuxError::io(&tree))?;
    let log = dir.join("build.log");
    let _ = fs::remove_file(&log);
    let step = |what: &'static str, command: &mut Command| {
        say(what);
        run(what, command, &log)
    };
    if source.is_dir() {
        let mut copy = Command::new("cp");
        copy.arg("-a").arg(source.join(".")).arg(&tree);
        step("copying the sources", &mut copy)?;
        let mut clean = make(&tree, request.jobs);
        step("cleaning", clean.arg("mrproper"))?;
    } else {
        let mut unpack = Command::new("tar");
        unpack.arg("xf").arg(&source).arg("-C").arg(&tree);
        unpack.arg("--strip-components=1");
        unpack.args(UNUSED.iter().map(|p| format!("--exclude={p}")));
        step("unpacking the sources", &mut unpack)?;
    }
    patches::apply(&tree, request.hz)?;
    let driver = tree.join("net/ipv4/fullpipe.c");
    fs::write(&driver, DRIVER).map_err(LinuxError::io(&driver))?;
    step("configuring", make(&tree, request.jobs).arg("defconfig"))?;
    let config = tree.join(".config");
    let text = fs::read_to_string(&config).map_err(LinuxError::io(&config))?;
    fs::write(&config, configured(&text)).map_err(LinuxError::io(&config))?;
    step("configuring", make(&tree, request.jobs).arg("olddefconfig"))?;
    step("compiling", make(&tree, request.jobs).arg("linux"))?;
    let product = Product {
        release: release(&tree, &log)?,
        hz: request.hz,
        module: None,
        hash: sources_hash(),
        dir,
    };
    finish(&product, &tree, &log)
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

/// What compiles a module of the user's in, in `net/ipv4/Makefile`.
const MODULE_LINE: &str = "\nobj-y += fullpipe_module.o\n";

/// A kernel like `base` with the congestion module in `file` compiled in, ready in seconds.
///
/// # Errors
/// [`LinuxError`].
pub fn with_module(base: &str, file: &Path, say: &dyn Fn(&str)) -> Result<Product, LinuxError> {
    let text = fs::read_to_string(file).map_err(LinuxError::io(file))?;
    let wrong = |why: &str| LinuxError::Module {
        path: file.to_owned(),
        why: why.to_owned(),
    };
    let module = registered_name(&text)
        .ok_or_else(|| wrong("no `.name = \"...\"` of a struct tcp_congestion_ops"))?;
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if module.is_empty() || module.len() > 15 || !module.chars().all(plain) {
        return Err(wrong(
            "the module's name is not 1 to 15 letters, digits, `_` or `-`",
        ));
    }
    let kernel = Product::find(base)?;
    let own = hash(&[&text]);
    let name = format!("{base}+{module}");
    let wanted = format!("{}-{own}", kernel.hash);
    if let Ok(there) = Product::find(&name)
        && there.hash == wanted
    {
        return Ok(there);
    }
    needs(true)?;
    let dir = directory(&name);
    fs::create_dir_all(&dir).map_err(LinuxError::io(&dir))?;
    let _ = fs::remove_file(dir.join("product"));
    let log = dir.join("build.log");
    let _ = fs::remove_file(&log);
    // One build at a time in the tree that all modules share.
    let lock = kernel.dir.join("lock");
    let lock = fs::File::create(&lock).map_err(LinuxError::io(&lock))?;
    lock.lock().map_err(LinuxError::io(&kernel.dir))?;
    let tree = kernel.dir.join("tree");
    let there = tree.join("net/ipv4/fullpipe_module.c");
    fs::write(&there, &text).map_err(LinuxError::io(&there))?;
    let makefile = tree.join("net/ipv4/Makefile");
    let found = fs::read_to_string(&makefile).map_err(LinuxError::io(&makefile))?;
    // A build that was killed leaves its line behind.
    let before = found.replace(MODULE_LINE, "");
    let with = format!("{before}{MODULE_LINE}");
    fs::write(&makefile, with).map_err(LinuxError::io(&makefile))?;
    say(&format!(
        "compiling `{module}` into Linux {}",
        kernel.release
    ));
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    let built = run("compiling", make(&tree, jobs).arg("linux"), &log);
    let product = Product {
        module: Some(module),
        hash: wanted,
        dir,
        ..kernel
    };
    let finished = match built {
        Ok(()) => finish(&product, &tree, &log),
        Err(error) => Err(error),
    };
    fs::write(&makefile, before).map_err(LinuxError::io(&makefile))?;
    finished
}

/// The name under which a module registers: `.name = "mine"` in its `tcp_congestion_ops`.
fn registered_name(text: &str) -> Option<String> {
    let ops = text.find("struct tcp_congestion_ops")?;
    let name = text[ops..].split_once(".name")?.1.trim_start();
    let name = name.strip_prefix('=')?.trim_start().strip_prefix('"')?;
    name.split_once('"').map(|(name, _)| name.to_owned())
}

/// Puts kernel and guest where runs find them.
fn finish(product: &Product, tree: &Path, log: &Path) -> Result<Product, LinuxError> {
    // Under other names first: guests may be running.
    let built = tree.join("linux");
    let part = product.dir.join("linux.part");
    fs::copy(&built, &part).map_err(LinuxError::io(&built))?;
    fs::rename(&part, product.kernel()).map_err(LinuxError::io(&part))?;
    let source = product.dir.join("guest.c");
    fs::write(&source, GUEST).map_err(LinuxError::io(&source))?;
    let mut compile = Command::new("gcc");
    compile.args(["-O2", "-static", "-o"]);
    compile.arg(&part).arg(&source);
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

fn make(tree: &Path, jobs: usize) -> Command {
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

fn run(what: &'static str, command: &mut Command, log: &Path) -> Result<(), LinuxError> {
    let file = fs::OpenOptions::new().create(true).append(true).open(log);
    let out = file.map_err(LinuxError::io(log))?;
    let errors = out.try_clone().map_err(LinuxError::io(log))?;
    let program = PathBuf::from(command.get_program());
    let command = command.stdin(Stdio::null()).stdout(out).stderr(errors);
    let status = command.status().map_err(LinuxError::io(&program))?;
    match status.success() {
        true => Ok(()),
        false => Err(LinuxError::Build {
            what,
            log: log.to_owned(),
        }),
    }
}
