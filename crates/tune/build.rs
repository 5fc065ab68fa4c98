//! The BPF objects: compiled where there is a clang, else the committed ones.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

const OBJECTS: [&str; 3] = ["tune", "watch", "inject"];

fn main() {
    println!("cargo:rerun-if-env-changed=BPF_CLANG");
    for entry in std::fs::read_dir("bpf")
        .expect("the sources are there")
        .flatten()
    {
        let file = entry.path();
        if file.extension().is_some_and(|ending| ending == "h") {
            println!("cargo:rerun-if-changed={}", file.display());
        }
    }
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    for name in OBJECTS {
        let (source, committed) = (format!("bpf/{name}.bpf.c"), format!("bpf/{name}.bpf.o"));
        println!("cargo:rerun-if-changed={source}");
        println!("cargo:rerun-if-changed={committed}");
        let object = out.join(format!("{name}.bpf.o"));
        if let Err(why) = compile(&source, &object) {
            println!("cargo:warning=the committed {committed} is used: {why}");
            std::fs::copy(&committed, &object).expect("it is in the repository");
        }
    }
}

/// With the flags of `bpf/build.sh`, which makes the committed objects.
fn compile(source: &str, object: &Path) -> Result<(), String> {
    let clang = env::var("BPF_CLANG").ok();
    let clang = clang
        .map_or_else(find, Some)
        .ok_or("no clang (BPF_CLANG names one)")?;
    let made = Command::new(&clang)
        .args([
            "-g", "-O2", "-target", "bpf", "-mcpu=v3", "-Wall", "-Werror",
        ])
        .args(["-fdebug-compilation-dir=.", "-c", source, "-o"])
        .arg(object)
        .output()
        .map_err(|e| format!("{clang}: {e}"))?;
    if !made.status.success() {
        let said = String::from_utf8_lossy(&made.stderr);
        return Err(format!(
            "{clang}: {}",
            said.lines().next().unwrap_or_default()
        ));
    }
    Ok(())
}

fn find() -> Option<String> {
    let numbered = (14..=22).rev().map(|version| format!("clang-{version}"));
    std::iter::once("clang".to_owned())
        .chain(numbered)
        .find(|clang| {
            let asked = Command::new(clang).arg("--print-targets").output();
            asked.is_ok_and(|said| String::from_utf8_lossy(&said.stdout).contains("bpf"))
        })
}
