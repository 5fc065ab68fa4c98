//! What a path says of windows, buffers and rates, in segments, bytes and bytes per second.

use fullpipe_scenario::value::{At, Findings, Key, Table};
use fullpipe_units::{Bytes, WindowSize};

use crate::keys::PathKeys;
use crate::laws::MOST_WINDOW;
use crate::limits;
use crate::policy::PathFacts;
use crate::spelling::{Ceiling, Size};

/// Windows, buffers and ceiling of a path, absolute.
pub(crate) struct Sizes {
    /// Segments.
    pub(crate) window: Option<u32>,
    /// Bytes.
    pub(crate) send: Option<u64>,
    pub(crate) receive: Option<u64>,
    /// Bytes per second.
    pub(crate) pacing: Option<u64>,
}

impl Sizes {
    pub(crate) fn of(path: &At<'_, PathKeys>, facts: &PathFacts, findings: &mut Findings) -> Self {
        let mut bytes = |key: &Key, size: Option<Size>| {
            let bytes = in_bytes(path, key, size?, facts, findings)?;
            Some((bytes, key.name))
        };
        let window = bytes(&PathKeys::window, path.window);
        let both = bytes(&PathKeys::buffers, path.buffers);
        let send = bytes(&PathKeys::send_buffer, path.send_buffer);
        let receive = bytes(&PathKeys::receive_buffer, path.receive_buffer);
        for key in [&PathKeys::send_buffer, &PathKeys::receive_buffer] {
            if both.is_some() && path.is_given(key) {
                let hint = "leave one of them out";
                path.refuse(findings, key, "`buffers` stands beside it", hint);
            }
        }
        let window =
            window.and_then(|(bytes, _)| segments(path, &PathKeys::window, bytes, facts, findings));
        let buffer = |own: Option<(u64, &str)>| own.or(both).map(|(bytes, _)| bytes);
        let sizes = Self {
            window,
            send: buffer(send),
            receive: buffer(receive),
            pacing: None,
        };
        limits::buffers(path, sizes.send.max(sizes.receive), findings);
        let ceiling = path.pacing;
        let pacing = |ceiling| pacing(path, &PathKeys::pacing, ceiling, facts, findings);
        Self {
            pacing: ceiling.and_then(pacing),
            ..sizes
        }
    }
}

/// A window of so many bytes, segments.
pub(crate) fn segments<T: Table>(
    path: &At<'_, T>,
    key: &Key,
    bytes: u64,
    facts: &PathFacts,
    findings: &mut Findings,
) -> Option<u32> {
    let segments = bytes / u64::from(facts.mss());
    if !(2..=u64::from(MOST_WINDOW)).contains(&segments) {
        let message = format!(
            "{segments} segments of {} B; the kernel side holds 2 to {MOST_WINDOW}",
            facts.mss()
        );
        path.refuse(findings, key, message, "write for example \"8MB\"");
    }
    u32::try_from(segments).ok()
}

pub(crate) fn in_bytes<T: Table>(
    path: &At<'_, T>,
    key: &Key,
    size: Size,
    facts: &PathFacts,
    findings: &mut Findings,
) -> Option<u64> {
    match size.0 {
        WindowSize::Bytes(Bytes(bytes)) => Some(bytes),
        WindowSize::Segments(n) => Some((n * f64::from(facts.mss())) as u64),
        WindowSize::Bdp(factor) => match facts.bdp() {
            // Packets of the path are segments of payload.
            Some(packets) => {
                let segments = (factor * packets * (1.0 + 1e-12)).floor();
                Some((segments * f64::from(facts.mss())) as u64)
            }
            None => {
                let hint = "give the path's `rate` and `rtt`";
                path.refuse(findings, key, "the path's bdp is not known", hint);
                None
            }
        },
    }
}

/// Bytes per second at most.
pub(crate) fn pacing<T: Table>(
    path: &At<'_, T>,
    key: &Key,
    ceiling: Ceiling,
    facts: &PathFacts,
    findings: &mut Findings,
) -> Option<u64> {
    let bits = match (ceiling, facts.rate) {
        (Ceiling::Rate(rate), _) => rate.as_bits_per_sec() as f64,
        (Ceiling::OfPath(factor), Some(rate)) => factor * rate.as_bits_per_sec() as f64,
        (Ceiling::OfPath(_), None) => {
            let hint = "give the path's `rate`";
            path.refuse(findings, key, "the path's rate is not known", hint);
            return None;
        }
    };
    let bytes = (bits / 8.0) as u64;
    limits::pacing(path, key, bytes, findings);
    Some(bytes)
}
