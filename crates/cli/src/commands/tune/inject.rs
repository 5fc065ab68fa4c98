//! `fullpipe tune inject`: artificial loss.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fullpipe_tune::inject::{self, Fault, InjectError, Kind, interface_to};
use serde_json::json;

use crate::args::{Injected, TunerInject};
use crate::exit::{Exit, Failure};
use crate::output;

/// Runs the verb.
pub fn inject(args: &TunerInject) -> Result<(), Failure> {
    if args.clear {
        let left = inject::clear(&args.state).map_err(|e| failed(&e))?;
        let said = if left {
            "taken away"
        } else {
            "nothing was left"
        };
        output::say(said);
        return Ok(());
    }
    let (Some(to), Some(duration)) = (args.to, args.duration) else {
        return Err(Failure::new(
            Exit::Usage,
            "`--to` and `--duration` are missing",
        ));
    };
    let fault = fault(args, to.prefix())?;
    fault.narrow().map_err(|e| failed(&e))?;
    if !args.i_mean_it {
        let message = "this loses segments of real flows";
        return Err(Failure::new(Exit::Usage, message).hint("add `--i-mean-it`"));
    }
    let interface = match &args.dev {
        Some(name) => name.clone(),
        None => interface_to(to.prefix().0).map_err(|e| {
            let message = format!("no way to {}: {e}", to.prefix().0);
            Failure::new(Exit::Environment, message).hint("`--dev` names the interface")
        })?,
    };
    let stop = ctrlc::set_handler(|| STOP.store(true, Ordering::Relaxed));
    stop.map_err(|e| Failure::new(Exit::Environment, format!("cannot listen for Ctrl-C: {e}")))?;
    let time = Duration::from_nanos(duration.as_nanos());
    let begun = || output::say(&format!("begun on {interface}, for {duration}"));
    let losses = inject::run(&fault, &interface, time, &args.state, &STOP, begun);
    let losses = losses.map_err(|e| failed(&e))?;
    let text = match args.json {
        true => {
            let value = json!({
                "interface": interface,
                "packets": losses.packets,
                "segments": losses.segments,
                "lost_packets": losses.lost_packets,
                "lost_segments": losses.lost_segments,
            });
            format!("{value}\n")
        }
        false => format!(
            "{} of {} segments lost ({} of {} packets)\n",
            losses.lost_segments, losses.segments, losses.lost_packets, losses.packets
        ),
    };
    output::data(&text)
}

static STOP: AtomicBool = AtomicBool::new(false);

fn failed(error: &InjectError) -> Failure {
    match error {
        InjectError::Refused(_) => Failure::new(Exit::Usage, error.to_string())
            .hint("`--to` one host, or `--to` and `--port`; and `--at`, `--every`, `--probability` or `--bursts`"),
        _ => Failure::new(Exit::Environment, error.to_string())
            .hint("it takes CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN"),
    }
}

fn fault(args: &TunerInject, to: (std::net::IpAddr, u32)) -> Result<Fault, Failure> {
    let bursts = match args.bursts[..] {
        [] => None,
        [begin, end] => Some((begin, end)),
        _ => {
            let message = "`--bursts` takes two chances";
            return Err(
                Failure::new(Exit::Usage, message).hint("write for example `--bursts 0.01%,30%`")
            );
        }
    };
    Ok(Fault {
        kind: match args.kind {
            Injected::Loss => Kind::Loss,
            Injected::Stall => Kind::Stall,
            Injected::Ack => Kind::Ack,
        },
        to: Some(to),
        port: args.port,
        every: args.every,
        probability: args.probability.unwrap_or(0.0),
        bursts,
        places: args.at.iter().copied().collect(),
    })
}
