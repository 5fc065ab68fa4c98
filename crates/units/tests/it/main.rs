//! Laws of reading and printing, over every type.

use std::fmt::{Debug, Display};
use std::str::FromStr;

use fullpipe_units::{
    BufferSize, Bytes, Fraction, Packets, ParseQuantityError, Rate, Segments, Span, Time,
    WindowSize,
};
use proptest::prelude::*;

/// Values of every magnitude, round and odd.
fn counts() -> impl Strategy<Value = u64> {
    let round = (1u64..10_000, 0u32..16).prop_map(|(n, e)| n.saturating_mul(10u64.pow(e)));
    let binary = (1u64..10_000, 0u32..45).prop_map(|(n, e)| n << e);
    prop_oneof![
        any::<u64>(),
        (any::<u64>(), 0u32..64).prop_map(|(n, e)| n >> e),
        round,
        binary
    ]
}

fn reals() -> impl Strategy<Value = f64> {
    let any = any::<f64>()
        .prop_filter("finite", |x| x.is_finite())
        .prop_map(f64::abs);
    prop_oneof![
        any,
        0.0..100_000.0,
        (0u32..100_000).prop_map(|n| f64::from(n) / 100.0)
    ]
}

/// Texts that look nearly like quantities.
fn near_quantities() -> impl Strategy<Value = String> {
    let unit = "(ns|us|µs|ms|s|min|h|m|[kKMGT]?(bit/s|bps|b/s|B/s|B|iB|b)|segments?|packets?|BDP|bdp|%|unlimited)?";
    proptest::string::string_regex(&format!(
        r"[-+−]?[0-9_]{{0,25}}([.,][0-9_]{{0,30}})?([eE][-+]?[0-9]{{0,20}})? ?{unit}"
    ))
    .expect("a valid expression")
}

fn comes_back<T>(value: T) -> Result<(), TestCaseError>
where
    T: FromStr<Err = ParseQuantityError> + Display + PartialEq + Debug,
{
    let text = value.to_string();
    prop_assert_eq!(text.parse::<T>(), Ok(value), "{}", text);
    Ok(())
}

/// Reading never panics; what is read prints and reads back; an error is one line, without a full
/// stop, and its hint contains only what would be accepted.
fn reads_or_explains<T>(text: &str) -> Result<(), TestCaseError>
where
    T: FromStr<Err = ParseQuantityError> + Display + PartialEq + Debug,
{
    let error = match text.parse::<T>() {
        Ok(value) => return comes_back(value),
        Err(error) => error,
    };
    let (message, hint) = (error.to_string(), error.hint().unwrap_or_default());
    prop_assert!(
        !message.contains('\n') && !message.ends_with('.') && message.len() < 1000,
        "{}",
        message
    );
    prop_assert_eq!(&error.text, text);
    prop_assert!(hint.contains("write"), "{}", hint);
    if !hint.contains("between thousands") {
        let proposal = hint.split('`').nth(1).unwrap_or_default();
        prop_assert!(proposal.parse::<T>().is_ok(), "{} is refused too", hint);
    }
    Ok(())
}

fn every_type_reads_or_explains(text: &str) -> Result<(), TestCaseError> {
    reads_or_explains::<Time>(text)?;
    reads_or_explains::<Span>(text)?;
    reads_or_explains::<Bytes>(text)?;
    reads_or_explains::<Rate>(text)?;
    reads_or_explains::<Segments>(text)?;
    reads_or_explains::<Packets>(text)?;
    reads_or_explains::<Fraction>(text)?;
    reads_or_explains::<WindowSize>(text)?;
    reads_or_explains::<BufferSize>(text)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn whole_quantities_come_back(n in counts()) {
        comes_back(Time::from_nanos(n))?;
        comes_back(Span::from_nanos(n))?;
        comes_back(Bytes(n))?;
        comes_back(Rate::from_bits_per_sec(n))?;
        comes_back(Packets(n))?;
        comes_back(WindowSize::Bytes(Bytes(n)))?;
        comes_back(BufferSize::Packets(n))?;
        comes_back(BufferSize::Bytes(Bytes(n)))?;
        comes_back(BufferSize::Time(Span::from_nanos(n)))?;
    }

    #[test]
    fn real_quantities_come_back(x in reals(), part in 0.0..=1.0f64) {
        comes_back(Segments(x))?;
        comes_back(WindowSize::Segments(x))?;
        comes_back(WindowSize::Bdp(x))?;
        comes_back(BufferSize::Bdp(x))?;
        comes_back(Fraction::new(part).expect("within 0 to 1"))?;
        comes_back(Fraction::new(part * part * part * 1e-9).expect("within 0 to 1"))?;
    }

    #[test]
    fn any_text_is_read_or_explained(text in any::<String>()) {
        every_type_reads_or_explains(&text)?;
    }

    #[test]
    fn near_quantities_are_read_or_explained(text in near_quantities()) {
        every_type_reads_or_explains(&text)?;
    }

    #[test]
    fn whole_and_real_readings_agree(n in 0u64..1 << 50, decimals in 0u64..1000) {
        let text = format!("{n}.{decimals:03}us");
        prop_assert_eq!(text.parse(), Ok(Span::from_nanos(n * 1000 + decimals)));
    }
}

#[test]
fn no_bare_number_is_a_quantity() {
    for text in ["0", "1", "80", "1e9", "0.5"] {
        assert!(text.parse::<Time>().is_err() && text.parse::<Span>().is_err());
        assert!(text.parse::<Bytes>().is_err() && text.parse::<Rate>().is_err());
        assert!(text.parse::<Segments>().is_err() && text.parse::<Packets>().is_err());
        assert!(text.parse::<WindowSize>().is_err() && text.parse::<BufferSize>().is_err());
    }
}
