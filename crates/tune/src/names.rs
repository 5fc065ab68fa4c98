//! Names of algorithms, which are the whole machine's: each tuner has a prefix of its own.

use std::collections::BTreeSet;

/// The prefix of a tuner's algorithm: `fp`, at most three letters or digits, and `_`.
pub fn prefix_of(algorithm: &str) -> Option<&str> {
    let between = algorithm.strip_prefix("fp")?.find('_')?;
    let prefix = &algorithm[..2 + between + 1];
    is_prefix(prefix).then_some(prefix)
}

/// Whether algorithms of a tuner may begin so, as `--prefix` takes it.
fn is_prefix(text: &str) -> bool {
    let between = text.strip_prefix("fp").and_then(|t| t.strip_suffix('_'));
    let fits = |t: &str| t.len() <= 3 && t.bytes().all(|b| b.is_ascii_alphanumeric());
    between.is_some_and(fits)
}

/// Prefixes of other tuners than the one with `prefix`, among names of algorithms.
pub fn of_others<'a>(
    prefix: &str,
    algorithms: impl IntoIterator<Item = &'a str>,
) -> BTreeSet<String> {
    let prefixes = algorithms.into_iter().filter_map(prefix_of);
    let others = prefixes.filter(|other| *other != prefix);
    others.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_told_from_names_of_the_kernel() {
        for (name, prefix) in [
            ("fp_reno", Some("fp_")),
            ("fp7_aimd", Some("fp7_")),
            ("fpabc_highspeed", Some("fpabc_")),
            ("fpabcd_reno", None),
            ("fp-x_reno", None),
            ("fp", None),
            ("cubic", None),
        ] {
            assert_eq!(prefix_of(name), prefix, "{name}");
        }
        let there = ["reno", "fp_reno", "fp7_reno", "fp7_aimd", "fpq_bic"];
        let others = of_others("fp_", there);
        assert_eq!(others, ["fp7_", "fpq_"].map(str::to_owned).into());
        assert_eq!(of_others("fp7_", ["fp7_reno", "cubic"]), BTreeSet::new());
    }
}
