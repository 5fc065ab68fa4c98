//! Times, rates and sizes of the flags of a test, checked together: who knows iperf3 leaves out
//! units, and is told all of them at once.

use std::str::FromStr;

use fullpipe_units::{Bytes, ParseQuantityError, Rate, Segments, Span, WindowSize};

use crate::args::Send;
use crate::exit::{Exit, Failure};
use crate::output;

/// Checks them.
///
/// # Errors
/// All that cannot be read, with the spelling of each.
pub fn check(args: &Send) -> Result<(), Failure> {
    let flags: [(&str, Option<&String>, Read); 5] = [
        ("--time", args.time.as_ref(), time),
        ("--interval", args.interval.as_ref(), interval),
        ("--bitrate", args.rate_cap(), rate),
        ("--size", args.size.as_ref(), size),
        ("--window", args.window.as_ref(), window),
    ];
    let given = flags.iter().filter_map(|(flag, text, read)| {
        let (message, better) = read(text.as_ref()?).err()?;
        Some((*flag, message, better))
    });
    let wrong: Vec<(&str, String, String)> = given.collect();
    let message = |(flag, message, _): &(&str, String, String)| format!("{flag}: {message}");
    match wrong.as_slice() {
        [] => Ok(()),
        [one] => Err(Failure::new(Exit::Usage, message(one)).hint(one.2.clone())),
        [others @ .., last] => {
            others.iter().for_each(|one| output::error(&message(one)));
            let failure = Failure::new(Exit::Usage, message(last));
            let hint = |(flag, _, better): &(&str, String, String)| format!("{flag}: {better}");
            Err(wrong.iter().map(hint).fold(failure, Failure::hint))
        }
    }
}

/// Reads a text, or says what is wrong with it and what to write.
type Read = fn(&str) -> Result<(), (String, String)>;

fn time(text: &str) -> Result<(), (String, String)> {
    let read = of::<Span>(text, |text| {
        let seconds = text.parse::<f64>().ok().filter(|s| *s > 0.0)?;
        Some(format!("{seconds}s"))
    });
    read.map_err(|(message, hint)| (message, hint.replace("`80ms`", "`10s` or `200ms`")))
}

fn interval(text: &str) -> Result<(), (String, String)> {
    let instead = "lines come with `--interval` only: without them leave it out";
    match text.parse::<Span>() {
        Ok(Span::ZERO) => Err((format!("`{text}` is none"), instead.to_owned())),
        _ => some(text, instead).and_then(|()| time(text)),
    }
}

fn rate(text: &str) -> Result<(), (String, String)> {
    of::<Rate>(text, |_| None)
}

fn size(text: &str) -> Result<(), (String, String)> {
    match text.parse::<Segments>() {
        Ok(segments) if segments.0 > 0.0 => Ok(()),
        _ => some(
            text,
            "no amount ends by the clock alone: leave `--size` out",
        )
        .and_then(|()| of::<Bytes>(text, binary))
        .map_err(|(message, hint)| (message.replace("TiB)", "TiB, segments)"), hint)),
    }
}

fn window(text: &str) -> Result<(), (String, String)> {
    some(text, "without a cap of the window leave `--window` out")
        .and_then(|()| of::<WindowSize>(text, binary))
}

/// iperf3 takes zero for no limit.
fn some(text: &str, instead: &str) -> Result<(), (String, String)> {
    match text.trim().parse::<f64>() {
        Ok(0.0) => Err((format!("`{text}` is none"), instead.to_owned())),
        _ => Ok(()),
    }
}

/// iperf3's K, M, G and T of sizes are powers of two.
fn binary(text: &str) -> Option<String> {
    let (number, prefix) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let unit = ["KiB", "MiB", "GiB", "TiB"];
    let unit = unit
        .iter()
        .find(|unit| unit[..1].eq_ignore_ascii_case(prefix))?;
    number.parse::<f64>().ok()?;
    Some(format!("{number}{unit}"))
}

/// `meant`: what somebody means who writes it without a unit.
fn of<T: FromStr<Err = ParseQuantityError>>(
    text: &str,
    meant: impl Fn(&str) -> Option<String>,
) -> Result<(), (String, String)> {
    let Err(error) = text.parse::<T>() else {
        return Ok(());
    };
    let better = meant(text).filter(|better| better.parse::<T>().is_ok());
    let better = better.map(|better| format!("write `{better}`"));
    let hint = better.or_else(|| error.hint());
    Err((error.to_string(), hint.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_iperf3_takes_is_spelled_out() {
        for (read, text, hint) in [
            (time as Read, "5", "write `5s`"),
            (time, "0.5", "write `0.5s`"),
            (interval, "1", "write `1s`"),
            (
                interval,
                "0",
                "lines come with `--interval` only: without them leave it out",
            ),
            (
                interval,
                "0ms",
                "lines come with `--interval` only: without them leave it out",
            ),
            (rate, "100M", "write `100Mbit/s`"),
            (size, "1G", "write `1GiB`"),
            (
                size,
                "0",
                "no amount ends by the clock alone: leave `--size` out",
            ),
            (window, "256K", "write `256KiB`"),
            (
                window,
                "0",
                "without a cap of the window leave `--window` out",
            ),
        ] {
            assert_eq!(read(text).unwrap_err().1, hint, "{text}");
        }
        for (read, text) in [
            (time as Read, "5s"),
            (interval, "100ms"),
            (rate, "1Gbit/s"),
            (size, "1000 segments"),
            (size, "20GB"),
            (window, "8MiB"),
            (window, "1.5BDP"),
        ] {
            assert_eq!(read(text), Ok(()), "{text}");
        }
    }
}
