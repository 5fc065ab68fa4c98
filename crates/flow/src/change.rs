//! Changes of a running flow: their words, which scenario files, the command line and a tuning
//! daemon share, and what they mean.
//!
//! ```
//! use fullpipe_cc::StackSpec;
//! use fullpipe_flow::Change;
//!
//! let reno = StackSpec::parse("reno").unwrap();
//! let change = Change::parse("a=6,b=0.3,window=2000 segments", &reno, 1448).unwrap();
//! assert_eq!(change.stack.unwrap().to_string(), "aimd(increase=6,decrease=0.3)");
//! assert_eq!(change.window, Some(2000.0));
//! ```

use fullpipe_cc::{StackError, StackSpec};
use fullpipe_units::{Rate, WindowSize};
use serde::{Deserialize, Serialize};

/// What is changed of a running flow; what is `None` stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// The whole stack from now on. The window and its threshold stay; what the law remembers
    /// beside them it learns anew.
    pub stack: Option<StackSpec>,
    /// Cap of the congestion window, segments, at least 1; infinite for none.
    pub window: Option<f64>,
    /// Ceiling of the rate, of payload.
    pub rate: Option<Ceiling>,
}

/// A ceiling of the rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ceiling {
    /// This rate; the flow is paced from now on.
    At(Rate),
    /// None. A flow that was paced stays paced, as in Linux (`sk_pacing_status`).
    Off,
}

/// Why words are no change of a flow.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChangeError {
    /// No `=`.
    #[error("`{0}` is not of the form NAME=VALUE")]
    NotAPair(String),
    /// The same word twice.
    #[error("`{0}` is given twice")]
    Twice(String),
    /// A stack or one of its parameters.
    #[error(transparent)]
    Stack(#[from] StackError),
    /// A window or a rate.
    #[error("`{name}`: {why}")]
    Value {
        /// Word.
        name: &'static str,
        /// Fault of the value, in words.
        why: String,
    },
    /// Nothing at all.
    #[error("nothing is changed")]
    Empty,
}

impl ChangeError {
    /// What to write instead, if one can tell.
    pub fn hint(&self) -> Option<String> {
        let example = "a=6,b=0.3 or stack=cubic or window=8MB or rate=50Mbit/s or rate=off";
        match self {
            Self::Stack(error) => error.hint(),
            Self::NotAPair(_) | Self::Empty => Some(format!("write for example {example}")),
            Self::Twice(_) | Self::Value { .. } => None,
        }
    }
}

impl Change {
    /// Reads `NAME=VALUE` pairs joined by commas: `stack`, `window`, `rate`, and parameters of the
    /// stack as [`StackSpec::changed`] names them; those are changes of the given stack, or of
    /// `present`. A window in bytes is one of segments of `mss` bytes.
    ///
    /// # Errors
    /// Words that mean nothing here, or values outside their range.
    pub fn parse(text: &str, present: &StackSpec, mss: u32) -> Result<Self, ChangeError> {
        let mut change = Self::default();
        let mut settings: Vec<(&str, &str)> = Vec::new();
        let mut seen: Vec<&str> = Vec::new();
        for pair in pairs(text) {
            let (name, value) = pair
                .split_once('=')
                .ok_or_else(|| ChangeError::NotAPair(pair.trim().to_owned()))?;
            let (name, value) = (name.trim(), value.trim());
            if seen.contains(&name) {
                return Err(ChangeError::Twice(name.to_owned()));
            }
            seen.push(name);
            match name {
                "stack" => {
                    let stack = StackSpec::parse(value)?;
                    stack.joins_running_flow()?;
                    change.stack = Some(stack);
                }
                "window" => change.window = Some(window(value, mss)?),
                "rate" if value == "off" => change.rate = Some(Ceiling::Off),
                "rate" => change.rate = Some(Ceiling::At(quantity("rate", value)?)),
                _ => settings.push((name, value)),
            }
        }
        if seen.is_empty() {
            return Err(ChangeError::Empty);
        }
        if !settings.is_empty() {
            let base = change.stack.as_ref().unwrap_or(present);
            change.stack = Some(base.changed(&settings)?);
        }
        Ok(change)
    }
}

fn quantity<T>(name: &'static str, value: &str) -> Result<T, ChangeError>
where
    T: std::str::FromStr<Err = fullpipe_units::ParseQuantityError>,
{
    value
        .parse()
        .map_err(|e: fullpipe_units::ParseQuantityError| {
            let why = match e.hint() {
                Some(hint) => format!("{e}; {hint}"),
                None => e.to_string(),
            };
            ChangeError::Value { name, why }
        })
}

fn window(value: &str, mss: u32) -> Result<f64, ChangeError> {
    let name = "window";
    let segments = match quantity::<WindowSize>(name, value)? {
        WindowSize::Bytes(bytes) => (bytes.0 / u64::from(mss.max(1))) as f64,
        WindowSize::Segments(n) => n.floor(),
        WindowSize::Bdp(_) => {
            let why = "a running flow does not know its path: write bytes or segments".to_owned();
            return Err(ChangeError::Value { name, why });
        }
    };
    if segments < 1.0 {
        let why = format!("the window is below one segment of {mss} bytes");
        return Err(ChangeError::Value { name, why });
    }
    Ok(segments)
}

/// Parts between commas, those inside parentheses aside.
fn pairs(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0;
    let parts = text.split(move |c| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        c == ',' && depth == 0
    });
    parts.filter(|part| !part.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Change, ChangeError> {
        Change::parse(text, &StackSpec::parse("cubic").unwrap(), 1448)
    }

    #[test]
    fn words_become_a_change() {
        let change = parse("stack=highspeed(low_window=31,high_p=1e-7),low_window=40").unwrap();
        let stack = change.stack.unwrap().to_string();
        assert_eq!(stack, "highspeed(low_window=40,high_p=1e-7)");
        assert_eq!((change.window, change.rate), (None, None));
        let change = parse("beta=0.5, window=2896B, rate=50Mbit/s").unwrap();
        assert_eq!(change.stack.unwrap().to_string(), "cubic(beta=0.5)");
        assert_eq!(change.window, Some(2.0));
        assert_eq!(change.rate, Some(Ceiling::At("50Mbit/s".parse().unwrap())));
        assert_eq!(parse("rate=off").unwrap().rate, Some(Ceiling::Off));
    }

    #[test]
    fn other_words_are_refused() {
        let why = |text| parse(text).unwrap_err().to_string();
        assert_eq!(why("beta"), "`beta` is not of the form NAME=VALUE");
        assert_eq!(why(" , "), "nothing is changed");
        assert_eq!(why("beta=0.5,beta=0.6"), "`beta` is given twice");
        let hint = |text| parse(text).unwrap_err().hint().unwrap();
        assert!(hint("windw=8MB").starts_with("did you mean `window`?"));
        let highspeed = StackSpec::parse("highspeed").unwrap();
        let short = Change::parse("a=6", &highspeed, 1448).unwrap_err();
        assert_eq!(short.to_string(), "`highspeed` has no parameter `a`");
        assert!(short.hint().unwrap().starts_with("known: "), "{short:?}");
        assert_eq!(why("low_window=3"), "`cubic` has no parameter `low_window`");
        assert_eq!(
            why("window=1000B"),
            "`window`: the window is below one segment of 1448 bytes"
        );
        assert!(why("window=2BDP").contains("write bytes or segments"));
        assert!(why("rate=fast").starts_with("`rate`: "));
        assert!(why("stack=reno+spread").contains("initial window"));
    }
}
