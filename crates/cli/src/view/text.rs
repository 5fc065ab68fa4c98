//! Numbers as people read them.

use fullpipe_results::result::Estimate;

use crate::table::number_with;

/// `85.2 ± 1.3`, `85.2` where (nearly) every seed has that value, or `-` where it is undefined.
pub(super) fn estimate_text(estimate: Estimate, digits: usize) -> String {
    let Some(mean) = estimate.mean else {
        return "-".to_owned();
    };
    let digits = if digits == 1 {
        digits_of_count(mean)
    } else {
        digits
    };
    let half = estimate.ci95.map(|[low, high]| (high - low) / 2.0);
    number_with(mean, half, digits)
}

/// Counts of one run have no decimals; their means do.
fn digits_of_count(x: f64) -> usize {
    x.abs().max(1.0).log10().floor() as usize + if x.fract() == 0.0 { 1 } else { 2 }
}

/// A number as it was written, without the last bits of its binary form.
pub(super) fn plain(x: f64) -> String {
    let rounded: f64 = format!("{x:.11e}").parse().unwrap_or(x);
    rounded.to_string()
}

/// A long source is cut; the other formats have it whole.
pub(super) fn cut(text: &str) -> String {
    match text.char_indices().nth(SOURCE_WIDTH) {
        Some((at, _)) => format!("{}…", text[..at].trim_end()),
        None => text.to_owned(),
    }
}

const SOURCE_WIDTH: usize = 60;
