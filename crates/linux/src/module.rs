//! A congestion module of the user's own, compiled into a kernel beside the one that has been
//! built.

use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::build::{finish, lock, make, needs, run};
use crate::error::LinuxError;
use crate::product::{Product, cache, directory, hash};
use crate::switches::MODULES;

/// What compiles a module of the user's in, in `net/ipv4/Makefile`.
pub(crate) const MODULE_LINE: &str = "\nobj-y += fullpipe_module.o\n";

/// A kernel like `base` with the congestion module in `file` compiled in, ready in seconds. Each
/// text of a module has a kernel of its own, so that two of them can run at once.
///
/// # Errors
/// [`LinuxError`].
pub fn with_module(base: &str, file: &Path, say: &dyn Fn(&str)) -> Result<Product, LinuxError> {
    let text = fs::read_to_string(file).map_err(LinuxError::io(file))?;
    let wrong = |why: String| LinuxError::Module {
        path: file.to_owned(),
        why,
    };
    let module = name_of(&text).map_err(|why| wrong(why.to_owned()))?;
    let kernel = Product::find(base)?;
    let own = hash(&[&text]);
    let wanted = format!("{}-{own}", kernel.hash);
    let name = format!("{base}+{module}-{}", &own[..8]);
    let there = || Product::find(&name).ok().filter(|p| p.hash == wanted);
    if let Some(there) = there() {
        return Ok(there);
    }
    needs(true)?;
    let _lock = lock(&kernel.dir)?;
    // The one that held the lock may have built the same.
    if let Some(there) = there() {
        return Ok(there);
    }
    forget_old(base);
    let dir = directory(&name);
    fs::create_dir_all(&dir).map_err(LinuxError::io(&dir))?;
    let _ = fs::remove_file(dir.join("product"));
    let log = dir.join("build.log");
    let _ = fs::remove_file(&log);
    let tree = kernel.dir.join("tree");
    let there = tree.join("net/ipv4/fullpipe_module.c");
    // Messages of the compiler name the user's file and its lines.
    let named = format!("#line 1 \"{}\"\n{text}", escaped(file));
    fs::write(&there, named).map_err(LinuxError::io(&there))?;
    let makefile = tree.join("net/ipv4/Makefile");
    let found = fs::read_to_string(&makefile).map_err(LinuxError::io(&makefile))?;
    // A build that was killed leaves its line behind.
    let before = found.replace(MODULE_LINE, "");
    let with = format!("{before}{MODULE_LINE}");
    fs::write(&makefile, with).map_err(LinuxError::io(&makefile))?;
    let release = &kernel.release;
    say(&format!("compiling `{module}` into Linux {release}"));
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
        Err(error) => Err(match complaints(&log) {
            None => error,
            Some(why) => wrong(format!("it does not compile\n{why}")),
        }),
    };
    fs::write(&makefile, before).map_err(LinuxError::io(&makefile))?;
    finished
}

/// The name under which a module registers: `.name = "mine"` in its `tcp_congestion_ops`.
fn name_of(text: &str) -> Result<String, &'static str> {
    let name = registered_name(text).ok_or(
        "no `.name = \"...\"` of a struct tcp_congestion_ops: this is no congestion module",
    )?;
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if name.is_empty() || name.len() > 15 || !name.chars().all(plain) {
        return Err("the module's name is not 1 to 15 letters, digits, `_` or `-`");
    }
    if MODULES.contains(&name.as_str()) {
        return Err("its `.name` is that of a module of the kernel; give it one of its own");
    }
    Ok(name)
}

fn registered_name(text: &str) -> Option<String> {
    let ops = text.find("struct tcp_congestion_ops")?;
    let name = text[ops..].split_once(".name")?.1.trim_start();
    let name = name.strip_prefix('=')?.trim_start().strip_prefix('"')?;
    name.split_once('"').map(|(name, _)| name.to_owned())
}

/// A path within the quotes of C.
fn escaped(path: &Path) -> String {
    let text = path.display().to_string();
    text.replace('\\', "\\\\").replace('"', "\\\"")
}

/// What compiler and linker say is wrong, with file and line; `None`: nothing that can be told.
fn complaints(log: &Path) -> Option<String> {
    let text = fs::read_to_string(log).ok()?;
    let telling = ["error:", "multiple definition", "undefined reference"];
    let lines = text
        .lines()
        .filter(|l| telling.iter().any(|w| l.contains(w)));
    let lines: Vec<String> = lines.take(MOST_LINES).map(|l| format!("  {l}")).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// Lines of a complaint: what follows the first few is most often their consequence.
const MOST_LINES: usize = 5;

/// Kernels with modules that were built long ago take room.
fn forget_old(base: &str) {
    let entries = fs::read_dir(cache()).into_iter().flatten().flatten();
    for entry in entries {
        let name = entry.file_name().to_string_lossy().into_owned();
        let product = entry.path().join("product");
        let age = fs::metadata(&product).and_then(|m| m.modified()).ok();
        let age = age.and_then(|t| t.elapsed().ok());
        if name.starts_with(&format!("{base}+")) && age.is_some_and(|age| age > KEPT) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// How long a kernel with a module is kept after its build.
const KEPT: Duration = Duration::from_secs(30 * 24 * 3600);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_is_known_by_the_name_that_it_registers() {
        let with = |name: &str| {
            format!("static struct tcp_congestion_ops mine = {{\n\t.name\t= \"{name}\",\n}};\n")
        };
        assert_eq!(name_of(&with("mine")).as_deref(), Ok("mine"));
        assert!(name_of("int x;").unwrap_err().contains("no congestion"));
        assert!(name_of(&with("a b")).unwrap_err().contains("15 letters"));
        assert!(name_of(&with("cubic")).unwrap_err().contains("one of its"));
    }
}
