//! `fullpipe sweep`: hands over to the Python package, where the executors are.

use std::env;
use std::ffi::OsString;
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
            let hint = "`pip install fullpipe`, or from its sources `pip install ./crates/py`; \
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
    let mut all: Vec<OsString> = vec![args.scenario.as_str().into()];
    let mut give = |name: &str, value: OsString| {
        let mut both = OsString::from(format!("--{name}="));
        both.push(value);
        all.push(both);
    };
    for (key, values) in &args.axis {
        give("axis", format!("{key}={values}").into());
    }
    for (key, value) in &args.set {
        give("set", format!("{key}={value}").into());
    }
    give("seeds", args.seeds.to_string().into());
    give("batch", args.batch.to_string().into());
    give("ground", args.ground.as_str().into());
    give("out", args.out.as_os_str().to_owned());
    if let Some(scheduler) = &args.dask {
        give("dask", scheduler.into());
    }
    if let Some(n) = args.processes {
        give("processes", n.to_string().into());
    }
    for (flag, given) in [("--quick", args.quick), ("--quiet", args.quiet)] {
        if given {
            all.push(flag.into());
        }
    }
    all
}
