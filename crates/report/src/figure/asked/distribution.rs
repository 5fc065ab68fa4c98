//! Distributions: completion times of short flows, or a metric over the seeds.

use fullpipe_results::result::CaseResult;
use fullpipe_results::store::SeriesKind;

use super::steps::{Steps, line};
use super::view::{Member, Part, Subject, View, metric_words};
use super::{Asked, AskedError, Drawn};
use crate::page::transfers::times;

pub(super) fn draw(view: &View<'_>, asked: &Asked) -> Result<Drawn, AskedError> {
    let (label, taken) = match &asked.metric {
        None => ("completion time (s)".to_owned(), None),
        Some(_) => {
            let Subject { metric, of, taken } = view.metric(asked, "")?;
            (metric_words(&metric, of.as_deref()), taken)
        }
    };
    let mut drawn = Steps::of("value");
    if asked.metric.is_none() {
        view.check_of(asked, "short flows", &short_flows)?;
    }
    let parts = view.panels()?;
    if asked.metric.is_none() {
        drawn.subtitle = view.seeds(&Asked::default());
        let mut cases = parts.iter().flat_map(|part| &part.members);
        if cases.any(|member| view.case(member.case).warmup_s > 0.0) {
            drawn.subtitle += ", without the warm-up";
        }
    }
    let of_member = |member: &Member| match asked.metric {
        None => completions(view, asked, member.case),
        Some(_) => of_seeds(view, asked, member.case),
    };
    let of_part = |part: &Part| part.members.iter().map(of_member).collect();
    let of_parts: Result<Vec<Vec<Vec<Sample>>>, _> = parts.iter().map(of_part).collect();
    let of_parts = of_parts?;
    let all = of_parts.iter().flatten().flatten();
    let begun: usize = all.clone().map(|(.., count)| count).sum();
    let places = view.places(all.map(|(of, ..)| of.as_str()));
    for (part, of_members) in parts.into_iter().zip(of_parts) {
        drawn.panel(part.title);
        for (member, samples) in part.members.iter().zip(of_members) {
            let count = samples.len();
            for (of, values, all) in samples {
                let group = places.group(member, &of);
                let name = view.line_name(member, &of, count);
                drawn.curve(line(name, group), values, all, false);
            }
        }
    }
    let parts = match asked.metric {
        None => "part of the flows",
        Some(_) => "part of the seeds",
    };
    let nothing = || match begun {
        0 => AskedError::Nothing {
            what: "the result holds no short flows".to_owned(),
            hint: "`--metric NAME` draws a metric over the seeds, kind `cdf` round-trip times and \
                   pings"
                .to_owned(),
        },
        _ => AskedError::Nothing {
            what: format!("of {begun} short flows none was completed, so that none has a time"),
            hint: "kind `traffic` has their losses and rates; a longer `duration`, or a smaller \
                   `size`, lets them end"
                .to_owned(),
        },
    };
    drawn.drawn(view, &label, parts, taken).ok_or_else(nothing)
}

fn short_flows(case: &CaseResult) -> Vec<String> {
    let traffic = case.traffic.iter().filter(|t| t.kind == "short-flows");
    traffic.map(|t| t.name.clone()).collect()
}

/// Name, values, and of how many they are: what did not finish has none.
type Sample = (String, Vec<f64>, usize);

fn completions(view: &View<'_>, asked: &Asked, case: usize) -> Result<Vec<Sample>, AskedError> {
    let mut tables = Vec::new();
    for &seed in &view.case(case).seeds {
        tables.extend(view.dir.series(case, seed, SeriesKind::Transfers)?);
    }
    let wanted = |name: &str| asked.of.as_deref().is_none_or(|of| of == name);
    let warmup = view.case(case).warmup_s;
    let classes = times(&tables, warmup)
        .into_iter()
        .filter(|(name, ..)| wanted(name));
    let sample = |(name, times, unfinished): (String, Vec<f64>, u64)| {
        let all = times.len() + unfinished as usize;
        (name, times, all)
    };
    Ok(classes.map(sample).collect())
}

fn of_seeds(view: &View<'_>, asked: &Asked, case: usize) -> Result<Vec<Sample>, AskedError> {
    let Subject { metric, of, .. } = view.metric(asked, "")?;
    let values = view.of_seeds(case, &metric, of.as_deref())?;
    let all = values.len();
    let defined: Vec<f64> = values.into_iter().flatten().collect();
    Ok(vec![(String::new(), defined, all)])
}
