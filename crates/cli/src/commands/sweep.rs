//! `fullpipe sweep`: hands over to the Python package, where the executors are.

use std::env;
use std::ffi::{OsStr, OsString};
use std::num::NonZeroU32;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use crate::args::Sweep;
use crate::exit::{Exit, Failure};

/// Runs the command: on success it does not return.
pub fn sweep(args: &Sweep) -> Result<Exit, Failure> {
    let python = env::var_os("FULLPIPE_PYTHON").unwrap_or_else(|| "python3".into());
    let shown = python.to_string_lossy().into_owned();
    let found = Command::new(&python)
        .args(["-c", "import fullpipe"])
        .stderr(Stdio::null())
        .status();
    match found {
        Ok(status) if status.success() => {}
        Ok(_) => {
            let message = format!("{shown} has no package fullpipe");
            let hint = "`pip install ./crates/py` in its sources installs it; \
                        FULLPIPE_PYTHON names another interpreter";
            return Err(Failure::new(Exit::Environment, message).hint(hint));
        }
        Err(error) => {
            let message = format!("cannot start {shown}: {error}");
            let hint = "install Python 3.11 or later, or name it in FULLPIPE_PYTHON";
            return Err(Failure::new(Exit::Environment, message).hint(hint));
        }
    }
    let error = Command::new(&python)
        .args(["-m", "fullpipe", "sweep"])
        .args(passed_on(args))
        .exec();
    let message = format!("cannot start {shown}: {error}");
    Err(Failure::new(Exit::Environment, message))
}

/// The same arguments once more.
fn passed_on(args: &Sweep) -> Vec<OsString> {
    // Named one by one, so that none can be forgotten.
    let Sweep {
        scenario,
        axis,
        set,
        seeds,
        batch,
        precision,
        of,
        max_seeds,
        ground,
        out,
        partition,
        replace,
        dask,
        processes,
        quick,
        quiet,
    } = args;
    let mut all = Vec::new();
    let mut give = |name: &str, value: &dyn AsRef<OsStr>| {
        let mut both = OsString::from(format!("--{name}="));
        both.push(value);
        all.push(both);
    };
    let pairs = |pairs: &[(String, String)]| -> Vec<String> {
        pairs
            .iter()
            .map(|(key, value)| format!("{key}={value}"))
            .collect()
    };
    let number = |n: &Option<NonZeroU32>| n.map(|n| n.to_string());
    for (name, values) in [
        ("axis", pairs(axis)),
        ("set", pairs(set)),
        ("seeds", vec![seeds.to_string()]),
        ("batch", vec![batch.to_string()]),
        ("precision", Vec::from_iter(precision.clone())),
        ("of", of.clone()),
        ("max-seeds", Vec::from_iter(number(max_seeds))),
        ("ground", vec![ground.clone()]),
        ("partition", partition.clone()),
        ("dask", Vec::from_iter(dask.clone())),
        ("processes", Vec::from_iter(number(processes))),
    ] {
        for value in &values {
            give(name, value);
        }
    }
    give("out", out);
    for (flag, given) in [
        ("--replace", replace),
        ("--quick", quick),
        ("--quiet", quiet),
    ] {
        if *given {
            all.push(flag.into());
        }
    }
    all.extend(["--".into(), scenario.into()]);
    all
}
