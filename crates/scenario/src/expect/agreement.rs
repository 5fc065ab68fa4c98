//! `agreement`: how far two grounds may be apart.

use fullpipe_metrics::MEASURES;
use fullpipe_units::Fraction;

use super::table::{Known, Referring};
use crate::document::Data;
use crate::keys::Measures;
use crate::value::{At, Free, Reader, Record};

/// Names of metrics and distances with their tolerances, in the order of the file.
pub(crate) fn agreement(
    reader: &mut Reader<'_>,
    measure: &Record,
    known: &Known<'_>,
) -> Vec<(String, f64)> {
    let at = At::<Measures>::new(measure, "measure");
    let table = Referring { at, known };
    let Some(Free(entries)) = table.record.get(&Measures::agreement) else {
        return Vec::new();
    };
    let mut all = Vec::new();
    for entry in &entries {
        if !MEASURES.contains(&entry.name.as_str())
            && table
                .metric(reader, &Measures::agreement, &entry.name)
                .is_none()
        {
            continue;
        }
        let tolerance = match &entry.node.data {
            Data::Float(x) => Some(*x),
            Data::Integer(n) => Some(*n as f64),
            Data::Text(text) => text.parse::<Fraction>().ok().map(Fraction::get),
            _ => None,
        };
        match tolerance.filter(|t| *t >= 0.0) {
            Some(tolerance) => all.push((entry.name.clone(), tolerance)),
            None => {
                let message = format!("`{}` is no tolerance", entry.name);
                let hint = "write a part of at most 100 %, as \"3%\", or a plain number";
                table.refuse(reader, &Measures::agreement, &message, hint);
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use crate::scenario::{Overrides, Scenario};

    fn read(agreement: &str) -> Result<Vec<(String, f64)>, String> {
        let text = format!(
            "name = \"x\"\nduration = \"1s\"\n[path]\nrate = \"10Mbit/s\"\nrtt = \"10ms\"\n\
             [[flow]]\nstack = \"reno\"\n[measure]\nagreement = {agreement}\n"
        );
        let scenario = Scenario::parse(&text, "x.toml", &Overrides::default());
        let scenario = scenario.map_err(|d| d.to_string())?;
        Ok(scenario.measure.agreement)
    }

    #[test]
    fn tolerances_are_parts_or_in_the_distance_s_own_unit() {
        let read_ones = read("{ goodput_mbps = \"3%\", loss_time_rtt = 2, cwnd_area = 0.1 }");
        let wanted = [
            ("goodput_mbps", 0.03),
            ("loss_time_rtt", 2.0),
            ("cwnd_area", 0.1),
        ];
        assert_eq!(
            read_ones.unwrap(),
            wanted.map(|(name, t)| (name.to_owned(), t))
        );
        for (wrong, said) in [
            ("{ godput_mbps = \"3%\" }", "did you mean \"goodput_mbps\"?"),
            (
                "{ goodput_mbps = \"little\" }",
                "`goodput_mbps` is no tolerance",
            ),
            ("{ goodput_mbps = -0.1 }", "`goodput_mbps` is no tolerance"),
        ] {
            let error = read(wrong).unwrap_err();
            assert!(error.contains(said), "{error}");
        }
    }
}
