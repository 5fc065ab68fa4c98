//! Short flows: how many arrive, how long they are, and whether the path can carry them.

use std::cell::RefCell;

use fullpipe_run::{ArrivalSpec, Arrivals, FlowSpec, RunSpec, Session, SizeLaw};
use fullpipe_units::{Span, WindowSize};

use super::super::flow::whole_segments;
use super::super::graph::{Layout, Leg};
use super::super::tables::Named;
use super::super::transport::TransportResolver;
use super::{MAX_ARRIVALS, TrafficResolver, rate_of};
use crate::document::shorten;
use crate::keys::{ParetoTable, SizeTable, Traffic, TrafficKeys, TrafficWord, Transport};
use crate::value::{At, Bounds, Either, Findings, Key, did_you_mean};
use fullpipe_metrics::{TrafficGroup, TrafficKind};

impl TrafficResolver<'_> {
    pub(super) fn short_flows(
        &self,
        group: TrafficGroup,
        leg: &Leg,
        layout: &mut Layout,
        spec: &mut RunSpec,
        findings: &mut Findings,
    ) -> Option<TrafficGroup> {
        let (record, path) = (self.at.record, &self.at.path);
        let has_stack = self.at.required(&Transport::stack, findings);
        let resolver = TransportResolver::new(record, path, layout, leg, findings);
        let connection = match has_stack {
            true => resolver.read(findings),
            false => None,
        };
        let (rtt, packet) = (resolver.rtt, resolver.packet);
        let mss = connection.as_ref().map_or(1, |c| c.ends.sender.mss);
        let sizes = self.sizes(mss, findings);
        let (connection, sizes) = (connection?, sizes?);
        let session = self.session(findings);
        let seeded_by = self.partner(findings);
        let mean = mean_size(&sizes);
        let bytes = session.exchanges * mean * f64::from(packet);
        let arrivals = self.arrivals(&group, bytes, findings)?;
        let host = self.at.transport.host.as_deref().unwrap_or(self.name);
        let nic = layout.interface(host, leg);
        let template = FlowSpec {
            local_queue: nic.is_some(),
            start: group.start,
            stop: group.stop,
            reverse: group.reverse,
            preset: Some(connection.preset),
            written: connection.written,
            ..FlowSpec::new(
                self.name,
                connection.stack.clone(),
                connection.ends.sender,
                connection.ends.receiver,
                nic.into_iter().chain(leg.forward.iter().copied()).collect(),
                layout.back(leg, rtt, None),
            )
        };
        let end = self.end(&group);
        let per_second = match arrivals {
            Arrivals::Poisson { per_second } => per_second,
            Arrivals::Every(gap) => 1.0 / gap.as_secs_f64(),
            Arrivals::Spread { count, within } => count as f64 / within.as_secs_f64(),
        };
        let lasts = end - group.start;
        let sessions = per_second * lasts.as_secs_f64();
        let flows = sessions * session.transfers(lasts, rtt);
        if flows > MAX_ARRIVALS {
            let message = format!(
                "about {flows:.1e} flows would arrive, at most {MAX_ARRIVALS:.0e} are allowed"
            );
            let hint = "shorten the run, or lower their number";
            findings.refuse_table(record.at, path, &message, hint);
        }
        // What comes faster than it can be carried stays: of a session one transfer at a time.
        let load = per_second * 8.0 * bytes / group.capacity.as_bits_per_sec() as f64;
        let open = sessions * (1.0 - 1.0 / load);
        if flows <= MAX_ARRIVALS && open > MAX_OPEN {
            let message = format!(
                "the flows offer {load:.1} times the capacity: about {open:.1e} would be open at once, at most \
                 {MAX_OPEN:.0e} are allowed"
            );
            let hint = "lower their number or `size`, or raise the rate of the path";
            findings.refuse_table(record.at, path, &message, hint);
        }
        spec.arrivals.push(ArrivalSpec {
            template,
            arrivals,
            sizes,
            session,
            seeded_by,
        });
        Some(TrafficGroup {
            kind: TrafficKind::ShortFlows,
            index: spec.arrivals.len() - 1,
            stack: Some(connection.stack.to_string()),
            base_rtt: rtt,
            packet,
            mss,
            mean_size: Some(mean),
            offered: Some(rate_of(
                per_second * session.exchanges * mean * f64::from(packet) * 8.0,
            )),
            ..group
        })
    }

    /// One of `load`, `per_second`, `every`, `count`, for sessions of so many `bytes`.
    fn arrivals(
        &self,
        group: &TrafficGroup,
        bytes: f64,
        findings: &mut Findings,
    ) -> Option<Arrivals> {
        type Keys = TrafficKeys;
        let own = &self.at.own;
        let forms = [Keys::load, Keys::per_second, Keys::every, Keys::count];
        let given: Vec<&Key> = forms.iter().filter(|form| self.at.is_given(form)).collect();
        if self.at.is_given(&Keys::within) && !self.at.is_given(&Keys::count) {
            let message = "a time in which how many arrive?";
            self.at
                .refuse(findings, &Keys::within, message, "write `count` beside it");
        }
        if let [.., last] = given.as_slice()
            && given.len() > 1
        {
            let names: Vec<&str> = given.iter().map(|key| key.name).collect();
            let message = format!("several numbers of flows: {}", names.join(", "));
            self.at.refuse(findings, last, message, "keep one of them");
            return None;
        }
        if !forms.iter().any(|form| self.at.is_attempted(form)) {
            let hint = "give `load`, `per_second`, `every` or `count`";
            let message = "nothing says how many flows arrive";
            findings.refuse_table(self.at.record.at, &self.at.path, message, hint);
        }
        if let Some(load) = own.load {
            if load <= 0.0 {
                let hint = "write for example \"60%\"";
                self.at
                    .refuse(findings, &Keys::load, "the load must be above zero", hint);
                return None;
            }
            let capacity = group.capacity.as_bits_per_sec() as f64;
            let per_second = load * capacity / (8.0 * bytes);
            return Some(Arrivals::Poisson { per_second });
        }
        if let Some(per_second) = own.per_second {
            return Some(Arrivals::Poisson { per_second });
        }
        if let Some(gap) = own.every {
            return Some(Arrivals::Every(gap));
        }
        if !self.at.is_given(&Keys::count) {
            return None;
        }
        let rest = self.end(group) - group.start;
        let within = own.within.unwrap_or(rest);
        if within > rest {
            let message = format!("the traffic lasts only {rest}");
            self.at
                .refuse(findings, &Keys::within, message, "shorten it");
        }
        let count = own.count?;
        Some(Arrivals::Spread { count, within })
    }

    /// The traffic of `paired_with`, whose name seeds the generators.
    fn partner(&self, findings: &mut Findings) -> Option<String> {
        let key = &TrafficKeys::paired_with;
        let name = self.at.own.paired_with.as_ref()?;
        let all = &self.input.tables.traffic;
        let is_short = |t: &&Named<'_, Traffic>| t.at.own.kind == Some(TrafficWord::ShortFlows);
        let others = all.iter().filter(is_short).map(|t| t.name);
        let others = others.filter(|other| *other != self.name);
        let near = || match others.clone().next() {
            Some(_) => did_you_mean(name, others.clone()),
            None => "there are no other short flows: leave it out".to_owned(),
        };
        let partner = all.iter().find(|t| t.name == name);
        let (message, hint) = match partner {
            None => (format!("there is no traffic `{}`", shorten(name)), near()),
            Some(_) if name == self.name => ("paired with itself".to_owned(), near()),
            // What it is, is missing or wrong, and said there.
            Some(t) if t.at.own.kind.is_none() => return None,
            Some(t) if !is_short(&t) => (format!("`{name}` is no short flows"), near()),
            Some(t) => match &t.at.own.paired_with {
                None => return Some(name.clone()),
                Some(other) if other == self.name => (
                    format!("`{name}` is paired with this one"),
                    "leave it out of one of them".to_owned(),
                ),
                Some(other) => (
                    format!("`{name}` is paired itself"),
                    format!("write \"{}\", whose transfers it has", shorten(other)),
                ),
            },
        };
        self.at.refuse(findings, key, message, hint);
        None
    }

    /// `exchanges` and `think`.
    fn session(&self, findings: &mut Findings) -> Session {
        let own = &self.at.own;
        let session = Session {
            exchanges: own.exchanges,
            think: own.think,
        };
        if own.think > Span::ZERO && !session.goes_on() {
            let message = "after the only transfer of a session nothing follows";
            let hint = "write `exchanges` above 1 beside it";
            self.at.refuse(findings, &TrafficKeys::think, message, hint);
        }
        session
    }

    fn sizes(&self, mss: u32, findings: &mut Findings) -> Option<SizeLaw> {
        self.at.required(&TrafficKeys::size, findings);
        let table: At<'_, SizeTable> = match self.at.own.size.as_ref()? {
            Either::First(size) => return Some(SizeLaw::Fixed(whole_segments(*size, mss).max(1))),
            Either::Second(table) => self.at.inside(&TrafficKeys::size, table),
        };
        let given: Vec<&Key> = table.record.given().collect();
        if let [.., last] = given.as_slice()
            && given.len() > 1
        {
            let names: Vec<&str> = given.iter().map(|key| key.name).collect();
            let message = format!("several laws: {}", names.join(", "));
            table.refuse(findings, last, message, "keep one of them");
            return None;
        }
        if given.is_empty() {
            let hint = "give `uniform`, `pareto` or `file`";
            let message = "nothing says how long they are";
            findings.refuse_table(table.record.at, &table.path, message, hint);
        }
        if let Some(Bounds(low, high)) = table.uniform {
            if whole_from_one(low) && whole_from_one(high) {
                return Some(SizeLaw::Uniform(low as u64, high as u64));
            }
            let message = "whole segments from 1 are expected";
            let hint = "write for example [2, 30]";
            table.refuse(findings, &SizeTable::uniform, message, hint);
        }
        if let Some(law) = &table.pareto {
            return pareto(&table.inside(&SizeTable::pareto, law), mss, findings);
        }
        let file = table.file.as_ref()?;
        let beside = table.record.place(&SizeTable::file).is_in_file();
        match self.input.files.sizes(file, beside) {
            Ok(points) => Some(SizeLaw::Empirical(points.as_ref().clone())),
            Err((message, hint)) => {
                table.refuse(findings, &SizeTable::file, message, hint);
                None
            }
        }
    }
}

fn pareto(law: &At<'_, ParetoTable>, mss: u32, findings: &mut Findings) -> Option<SizeLaw> {
    law.required_keys(findings);
    if !law.is_given(&ParetoTable::shape) {
        return None;
    }
    let mean = match law.mean? {
        WindowSize::Bytes(bytes) => bytes.0 as f64 / f64::from(mss),
        WindowSize::Segments(n) | WindowSize::Bdp(n) => n,
    };
    let most = whole_segments(law.most, mss);
    if (most as f64) < mean {
        let message = "larger transfers than the mean would all be cut";
        law.refuse(findings, &ParetoTable::most, message, "raise it");
    }
    let shape = law.shape?;
    Some(SizeLaw::Pareto { mean, shape, most })
}

/// Mean of a law, whole segments: the sum of the probabilities of more than k segments.
fn mean_size(law: &SizeLaw) -> f64 {
    match law {
        SizeLaw::Fixed(n) => *n as f64,
        SizeLaw::Uniform(low, high) => (*low as f64 + *high as f64) / 2.0,
        SizeLaw::Pareto { mean, shape, most } => known_pareto_mean(*mean, *shape, *most),
        SizeLaw::Empirical(points) => {
            let first = points.first().map_or(0.0, |(size, part)| size * part);
            let between = points.windows(2).map(|pair| {
                let ((a, p), (b, q)) = (pair[0], pair[1]);
                (q - p) * (a + b) / 2.0
            });
            // Rounded up to whole segments: half a segment more.
            (first + between.sum::<f64>() + 0.5).max(1.0)
        }
    }
}

/// The same as [`pareto_mean`], from memory where it can: cases of a matrix mostly share a law.
fn known_pareto_mean(mean: f64, shape: f64, most: u64) -> f64 {
    thread_local! {
        static KNOWN: RefCell<Vec<([u64; 3], f64)>> = const { RefCell::new(Vec::new()) };
    }
    let law = [mean.to_bits(), shape.to_bits(), most];
    KNOWN.with_borrow_mut(|known| {
        if let Some((_, sum)) = known.iter().find(|(of, _)| *of == law) {
            return *sum;
        }
        if known.len() == KNOWN_LAWS {
            known.clear();
        }
        let sum = pareto_mean(mean, shape, most);
        known.push((law, sum));
        sum
    })
}

fn pareto_mean(mean: f64, shape: f64, most: u64) -> f64 {
    let least = mean * (shape - 1.0) / shape;
    let above = |k: f64| {
        if k < least {
            1.0
        } else {
            (least / k).powf(shape)
        }
    };
    let exact = most.min(SUMMED);
    let sum: f64 = (0..exact).map(|k| above(k as f64)).sum();
    // The rest as an integral, from the middle of the last step.
    let tail = |k: f64| least.powf(shape) * k.powf(1.0 - shape) / (shape - 1.0);
    let rest = if most > SUMMED {
        tail(SUMMED as f64 - 0.5) - tail(most as f64 - 0.5)
    } else {
        0.0
    };
    sum + rest
}

fn whole_from_one(x: f64) -> bool {
    (1.0..=1e9).contains(&x) && x.fract() == 0.0
}

/// Segments up to which a law is summed one by one.
const SUMMED: u64 = 10_000;
/// Laws whose means are remembered.
const KNOWN_LAWS: usize = 16;
/// An open connection costs about 6 kB.
const MAX_OPEN: f64 = 1e5;
