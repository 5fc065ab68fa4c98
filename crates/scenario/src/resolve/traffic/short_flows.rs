//! Short flows: how many arrive, how long they are, and whether the path can carry them.

use fullpipe_run::{ArrivalSpec, Arrivals, FlowSpec, RunSpec, SizeLaw};
use fullpipe_units::WindowSize;

use super::{Judge, MAX_ARRIVALS, rate_of};
use crate::keys::SIZE;
use crate::resolve::flow::whole_segments;
use crate::resolve::graph::{Layout, Leg};
use crate::resolve::transport::TransportJudge;
use crate::resolve::{Findings, required};
use crate::value::Value;
use crate::{TrafficGroup, TrafficKind};

impl Judge<'_> {
    pub(super) fn short_flows(
        &self,
        group: TrafficGroup,
        leg: &Leg,
        layout: &mut Layout,
        spec: &mut RunSpec,
        findings: &mut Findings,
    ) -> Option<TrafficGroup> {
        let r = self.record;
        let stack = required(findings, r, "stack", self.path, r#"stack = "cubic""#);
        let judge = TransportJudge::new(r, self.path, layout, leg, findings);
        let transport = if stack { judge.read(findings) } else { None };
        let (rtt, packet) = (judge.rtt, judge.packet);
        let mss = transport.as_ref().map_or(1, |t| t.sender.mss);
        let sizes = self.sizes(mss, findings);
        let (transport, sizes) = (transport?, sizes?);
        let mean = mean_size(&sizes);
        let bytes = mean * f64::from(packet);
        let arrivals = self.arrivals(&group, bytes, findings)?;
        let nic = layout.interface(r, self.name, leg);
        let template = FlowSpec {
            local_queue: nic.is_some(),
            start: group.start,
            stop: group.stop,
            ..FlowSpec::new(
                self.name,
                transport.stack.clone(),
                transport.sender,
                transport.receiver,
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
        let flows = per_second * (end - group.start).as_secs_f64();
        if flows > MAX_ARRIVALS {
            let message = format!(
                "about {flows:.1e} flows would arrive, at most {MAX_ARRIVALS:.0e} are allowed"
            );
            findings.refuse_table(
                r.at,
                self.path,
                &message,
                "shorten the run, or lower their number",
            );
        }
        // What comes faster than it can be carried stays.
        let load = per_second * 8.0 * bytes / group.capacity.as_bits_per_sec() as f64;
        let open = flows * (1.0 - 1.0 / load);
        if flows <= MAX_ARRIVALS && open > MAX_OPEN {
            let message = format!(
                "the flows offer {load:.1} times the capacity: about {open:.1e} would be open at once, at most \
                 {MAX_OPEN:.0e} are allowed"
            );
            let hint = "lower their number or `size`, or raise the rate of the path";
            findings.refuse_table(r.at, self.path, &message, hint);
        }
        spec.arrivals.push(ArrivalSpec {
            template,
            arrivals,
            sizes,
        });
        Some(TrafficGroup {
            kind: TrafficKind::ShortFlows,
            index: spec.arrivals.len() - 1,
            stack: Some(transport.stack.to_string()),
            base_rtt: rtt,
            packet,
            mss,
            mean_size: Some(mean),
            offered: Some(rate_of(per_second * mean * f64::from(packet) * 8.0)),
            ..group
        })
    }

    /// One of `load`, `per_second`, `every`, `count`.
    fn arrivals(
        &self,
        group: &TrafficGroup,
        bytes: f64,
        findings: &mut Findings,
    ) -> Option<Arrivals> {
        let r = self.record;
        let forms = ["load", "per_second", "every", "count"];
        let given: Vec<&str> = forms.into_iter().filter(|form| r.is_given(form)).collect();
        if r.is_given("within") && !r.is_given("count") {
            let message = "a time in which how many arrive?";
            self.refuse(findings, "within", message, "write `count` beside it");
        }
        match given.as_slice() {
            ["load"] => {
                let load = r.real("load")?;
                if load <= 0.0 {
                    let message = "the load must be above zero";
                    self.refuse(findings, "load", message, "write for example \"60%\"");
                    return None;
                }
                let capacity = group.capacity.as_bits_per_sec() as f64;
                Some(Arrivals::Poisson {
                    per_second: load * capacity / (8.0 * bytes),
                })
            }
            ["per_second"] => Some(Arrivals::Poisson {
                per_second: r.real("per_second")?,
            }),
            ["every"] => r.span("every").map(Arrivals::Every),
            ["count"] => {
                let rest = self.end(group) - group.start;
                let within = r.span("within").unwrap_or(rest);
                if within > rest {
                    let message = format!("the traffic lasts only {rest}");
                    self.refuse(findings, "within", message, "shorten it");
                }
                let count = r.whole("count")?;
                Some(Arrivals::Spread { count, within })
            }
            [] => {
                let missing = !forms.iter().any(|form| r.is_attempted(form));
                if missing {
                    let hint = "give `load`, `per_second`, `every` or `count`";
                    let message = "nothing says how many flows arrive";
                    findings.refuse_table(r.at, self.path, message, hint);
                }
                None
            }
            [.., last] => {
                let message = format!("several numbers of flows: {}", given.join(", "));
                self.refuse(findings, last, message, "keep one of them");
                None
            }
        }
    }

    fn sizes(&self, mss: u32, findings: &mut Findings) -> Option<SizeLaw> {
        let r = self.record;
        if !required(findings, r, "size", self.path, r#"size = "10 segments""#) {
            return None;
        }
        if let Some(size) = r.window("size") {
            return Some(SizeLaw::Fixed(whole_segments(size, mss).max(1)));
        }
        let table = r.record("size")?;
        let path = format!("{}.size", self.path);
        let given: Vec<&str> = SIZE
            .iter()
            .map(|key| key.name)
            .filter(|name| table.is_given(name))
            .collect();
        match given.as_slice() {
            ["uniform"] => match table.field("uniform").map(|field| &field.value) {
                Some(Value::Bounds(low, high)) if whole_from_one(*low) && whole_from_one(*high) => {
                    Some(SizeLaw::Uniform(*low as u64, *high as u64))
                }
                Some(Value::Bounds(..)) => {
                    let message = "whole segments from 1 are expected";
                    findings.refuse(
                        table,
                        "uniform",
                        &path,
                        message,
                        "write for example [2, 30]",
                    );
                    None
                }
                _ => None,
            },
            ["pareto"] => {
                let law = table.record("pareto")?;
                let path = format!("{path}.pareto");
                let both = required(findings, law, "mean", &path, r#"mean = "10 segments""#)
                    & required(findings, law, "shape", &path, "shape = 1.2");
                if !both {
                    return None;
                }
                let mean = match law.window("mean")? {
                    WindowSize::Bytes(bytes) => bytes.0 as f64 / f64::from(mss),
                    WindowSize::Segments(n) | WindowSize::Bdp(n) => n,
                };
                let most = law
                    .window("most")
                    .map_or(MOST, |most| whole_segments(most, mss));
                if (most as f64) < mean {
                    let message = "larger transfers than the mean would all be cut";
                    findings.refuse(law, "most", &path, message, "raise it");
                }
                let shape = law.real("shape")?;
                Some(SizeLaw::Pareto { mean, shape, most })
            }
            ["file"] => {
                let files = self.input.files;
                let beside = table.place("file").is_in_file();
                match files.sizes(&table.text("file")?, beside) {
                    Ok(points) => Some(SizeLaw::Empirical(points.as_ref().clone())),
                    Err((message, hint)) => {
                        findings.refuse(table, "file", &path, message, &hint);
                        None
                    }
                }
            }
            [] => {
                let hint = "give `uniform`, `pareto` or `file`";
                findings.refuse_table(table.at, &path, "nothing says how long they are", hint);
                None
            }
            [.., last] => {
                let message = format!("several laws: {}", given.join(", "));
                findings.refuse(table, last, &path, message, "keep one of them");
                None
            }
        }
    }
}

/// Mean of a law, whole segments: the sum of the probabilities of more than k segments.
fn mean_size(law: &SizeLaw) -> f64 {
    match law {
        SizeLaw::Fixed(n) => *n as f64,
        SizeLaw::Uniform(low, high) => (*low as f64 + *high as f64) / 2.0,
        SizeLaw::Pareto { mean, shape, most } => {
            let least = mean * (shape - 1.0) / shape;
            let above = |k: f64| {
                if k < least {
                    1.0
                } else {
                    (least / k).powf(*shape)
                }
            };
            let exact = (*most).min(SUMMED);
            let sum: f64 = (0..exact).map(|k| above(k as f64)).sum();
            // The rest as an integral, from the middle of the last step.
            let tail = |k: f64| least.powf(*shape) * k.powf(1.0 - shape) / (shape - 1.0);
            let rest = if *most > SUMMED {
                tail(SUMMED as f64 - 0.5) - tail(*most as f64 - 0.5)
            } else {
                0.0
            };
            sum + rest
        }
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

fn whole_from_one(x: f64) -> bool {
    (1.0..=1e9).contains(&x) && x.fract() == 0.0
}

/// Segments of the longest transfer, where nothing else is said.
const MOST: u64 = 1_000_000_000;
/// Segments up to which a law is summed one by one.
const SUMMED: u64 = 10_000;
/// An open connection costs about 6 kB.
const MAX_OPEN: f64 = 1e5;
