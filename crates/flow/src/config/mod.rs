//! The switches of the endpoint, in groups, and the named sets of them.
//!
//! A configuration begins as a [`Preset`] and is changed field by field:
//!
//! ```
//! use fullpipe_flow::{Preset, Reduction, SenderConfig};
//!
//! let cfg = SenderConfig::preset(Preset::Y2026, 1500).with(|c| {
//!     c.window.initial = 32.0;
//!     c.recovery.reduction = Reduction::Immediate;
//! });
//! assert_eq!(cfg.mss, 1448);
//! ```
//!
//! Each field names its unit and range, and its value in the presets: `Default` is that of preset
//! `2026`, and a preset that differs follows. Ranges are the sensible ones; nothing here checks
//! them.

/// Fields of `$config` that are as in `$own` take the value that they have in `$other`, groups
/// field by field, but those that `$keeps` says to keep, by their names. Every field is named, so
/// that the compiler asks for a new one.
macro_rules! follow {
    ($config:expr, $own:expr, $other:expr, $keeps:expr, $type:ident {
        $($field:ident $(: $group:ident { $($inner:ident),* $(; keeps $($kept:ident),+)? })?),* $(,)?
    }) => {{
        let $type { $($field),* } = $config;
        $(follow! { @field $field, &$own.$field, &$other.$field, $keeps, stringify!($field)
            $(, $group { $($inner),* $(; keeps $($kept),+)? })? })*
    }};
    (@field $config:expr, $own:expr, $other:expr, $keeps:expr, $name:expr) => {
        if $config == $own && !$keeps($name) {
            $config.clone_from($other);
        }
    };
    (@field $config:expr, $own:expr, $other:expr, $keeps:expr, $name:expr, $type:ident {
        $($field:ident),* $(; keeps $($kept:ident),+)?
    }) => {{
        let $type { $($field,)* $($($kept: _),+)? } = $config;
        $(follow! {
            @field $field, &$own.$field, &$other.$field, $keeps,
            concat!($name, ".", stringify!($field))
        })*
    }};
}

mod lengths;
mod receiver;
mod rule;
mod sender;

pub use lengths::PacketLengths;
pub use receiver::{
    AckCompression, AckConfig, CeEcho, ReceiveWindowConfig, ReceiverConfig, SackConfig,
};
pub use rule::{
    Detector, LocalDrop, LossWindow, PacerRule, Reduction, RtoRule, RttSample, SpuriousRule,
    TimerGrain, Validation,
};
pub use sender::{
    ArtificialLoss, HostConfig, PacingConfig, RecoveryConfig, RtoConfig, SenderConfig, TimerConfig,
    WindowConfig,
};

/// Bytes of IPv4's and TCP's headers of a data segment without options.
pub const HEADERS: u32 = 40;
/// The same with time stamps (RFC 7323).
pub const HEADERS_WITH_STAMPS: u32 = 52;

/// A named set of endpoint switches. It sets defaults and nothing else: any field may be changed
/// afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preset {
    /// Hosts of the Net100 and SLAC measurements and ns-2 of the time: RFC 6675 recovery without
    /// PRR, ACK counting, an initial window of 2, a minimum RTO of 200 ms, no window validation, no
    /// handshake.
    Y2003,
    /// The RFCs of today: RACK-TLP, PRR, F-RTO, byte counting, an initial window of 10, a minimum
    /// RTO of 1 s, RFC 7661.
    Y2026,
    /// Linux 6.1 with its default settings, and the receive buffer of a host set up for long paths.
    /// `docs/linux.md` says where that departs from the RFCs.
    Linux,
    /// Linux from 6.6 on: [`Preset::Linux`] with the receive window and the send buffer of 6.12,
    /// which count the memory of packets otherwise.
    Linux66,
}

impl Preset {
    /// Hosts are Linux's, of whatever release.
    pub fn is_linux(self) -> bool {
        match self {
            Self::Y2003 | Self::Y2026 => false,
            Self::Linux | Self::Linux66 => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use fullpipe_units::Span;

    use super::*;

    /// Fields of a derived `Debug` text with their paths (`Outer.inner.field`).
    fn fields(path: &str, text: &str, out: &mut BTreeMap<String, String>) {
        let inner = text
            .split_once(" { ")
            .filter(|(name, _)| name.chars().all(char::is_alphanumeric))
            .and_then(|(name, rest)| Some((name, rest.strip_suffix(" }")?)));
        // An option of a structure is one value.
        let group =
            inner.filter(|(name, _)| !name.starts_with("Some") && *name != "ArtificialLoss");
        let Some((name, inner)) = group else {
            out.insert(path.to_owned(), plain(text));
            return;
        };
        let (mut depth, mut from, mut parts) = (0, 0, Vec::new());
        for (i, c) in inner.char_indices() {
            match c {
                '{' | '(' | '[' => depth += 1,
                '}' | ')' | ']' => depth -= 1,
                ',' if depth == 0 => {
                    parts.push(&inner[from..i]);
                    from = i + 1;
                }
                _ => {}
            }
        }
        parts.push(&inner[from..]);
        for (field, value) in parts.iter().filter_map(|p| p.trim().split_once(": ")) {
            fields(&format!("{name}.{field}"), value, out);
        }
    }

    /// A value as the documentation writes it.
    fn plain(text: &str) -> String {
        let inner = text.strip_prefix("Some(").and_then(|t| t.strip_suffix(')'));
        let text = inner.unwrap_or(text);
        let span = text.strip_prefix("Span(").and_then(|t| t.strip_suffix(')'));
        if let Some(nanos) = span.and_then(|t| t.trim_end_matches("ns").parse().ok()) {
            return Span::from_nanos(nanos).to_string();
        }
        match text {
            "inf" => "infinite".to_owned(),
            "None" => "none".to_owned(),
            text if text.starts_with("AckCompression") => "LINUX".to_owned(),
            text if text.starts_with("ArtificialLoss") => "none".to_owned(),
            text => text.strip_suffix(".0").unwrap_or(text).to_owned(),
        }
    }

    /// The documented values of every field: `Struct.field` to (2003, 2026, linux, linux-6.6). The
    /// last is that of linux unless it is named.
    fn documented(source: &str) -> BTreeMap<String, [String; 4]> {
        let (mut of, mut sentence, mut all) = ("", None::<String>, BTreeMap::new());
        for line in source.lines().map(str::trim) {
            if let Some(name) = line.strip_prefix("pub struct ") {
                of = name.trim_end_matches(" {");
            } else if let Some(text) = line.strip_prefix("/// Default: ") {
                sentence = Some(text.to_owned());
            } else if let Some(text) = line.strip_prefix("/// ")
                && let Some(sentence) = sentence.as_mut().filter(|s| !s.ends_with('.'))
            {
                *sentence = format!("{sentence} {text}");
            } else if let Some(field) = line.strip_prefix("pub ")
                && let Some((field, _)) = field.split_once(": ")
                && let Some(sentence) = sentence.take()
            {
                let mut values = sentence.trim_end_matches('.').split("; ");
                let value = |text: &str| {
                    let text = text.trim_matches(['`', '[', ']']);
                    plain(text.rsplit("::").next().unwrap_or(text))
                };
                let default = value(values.next().unwrap());
                let [y2003, y2026] = [default.clone(), default.clone()];
                let mut row = [y2003, y2026, default.clone(), default];
                for other in values {
                    let (preset, text) = other.split_once(": ").unwrap();
                    let i = ["`2003`", "`2026`", "`linux`", "`linux-6.6`"];
                    let i = i.iter().position(|p| *p == preset).unwrap();
                    row[i] = value(text);
                    if i == 2 {
                        row[3] = value(text);
                    }
                }
                all.insert(format!("{of}.{field}"), row);
            }
        }
        all
    }

    #[test]
    fn every_documented_default_is_that_of_the_presets() {
        let source = [include_str!("sender.rs"), include_str!("receiver.rs")].concat();
        let documented = documented(&source);
        let mut seen = 0;
        let presets = [Preset::Y2003, Preset::Y2026, Preset::Linux, Preset::Linux66];
        for (i, preset) in presets.into_iter().enumerate() {
            let mut set = BTreeMap::new();
            let sender = SenderConfig::preset(preset, 1500);
            let receiver = ReceiverConfig::preset(preset);
            fields("", &format!("{sender:?}"), &mut set);
            fields("", &format!("{receiver:?}"), &mut set);
            for (field, value) in set {
                let row = documented
                    .get(&field)
                    .unwrap_or_else(|| panic!("`{field}` has no line `Default: ...`"));
                assert_eq!(row[i], value, "`{field}` in {preset:?}");
                seen += 1;
            }
        }
        assert_eq!(
            seen,
            presets.len() * documented.len(),
            "a field no preset has"
        );
    }
}
