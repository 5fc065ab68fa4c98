//! What the daemon answers at its socket.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use fullpipe_cc::StackSpec;
use fullpipe_policy::{Action, Measured, Rule, Source};
use serde_json::{Value, json};

use super::changes::{changed, reparametrized};
use super::{Daemon, DaemonError, sources};
use crate::arms::Course;
use crate::control::refusal;
use crate::kernel::Seen;
use crate::layout::Listing;
use crate::plan;
use crate::probing;
use crate::tuner::label;

impl Daemon {
    pub(super) fn answer(&mut self, request: &Value, may_change: bool) -> Value {
        let verb = request["verb"].as_str().unwrap_or_default();
        // A policy of somebody's own costs as much to read as its author likes.
        let looks = ["status", "flows", "plan", "compare"].contains(&verb);
        if !may_change && !looks {
            return refusal("only root and the tuner's own user may change anything");
        }
        if !may_change && !request["policy"].is_null() {
            return refusal("only root and the tuner's own user may have a policy compared");
        }
        let done = match verb {
            "status" => self.status(),
            "flows" => self.flows(),
            "plan" => self.plan(request),
            "compare" => Ok(self.compare()),
            "apply" => self.apply(),
            "adopt" => self.tuner.adopt().map(|()| json!({})).map_err(Into::into),
            "release" => self.release(request),
            "off" => self
                .tuner
                .switch(true)
                .map(|()| json!({}))
                .map_err(Into::into),
            "on" => self
                .tuner
                .switch(false)
                .map(|()| json!({}))
                .map_err(Into::into),
            "set" => self.set(request),
            "probe" => {
                self.probing.forget();
                let hosts: Vec<&String> = self.probed().collect();
                Ok(json!({ "hosts": hosts }))
            }
            _ => return refusal(format!("no verb `{verb}`")),
        };
        done.unwrap_or_else(|e: DaemonError| refusal(e))
    }

    fn status(&mut self) -> Result<Value, DaemonError> {
        let counters = self.tuner.counters()?.named();
        let counters: serde_json::Map<String, Value> = counters
            .map(|(name, n)| (name.to_owned(), n.into()))
            .into_iter()
            .collect();
        let rules = self.tuner.rules().iter();
        let rules: Vec<Value> = rules
            .map(|r| {
                let among = self.tuner.shares(&r.name);
                json!({ "name": r.name, "stack": r.stack, "divided_among": among })
            })
            .collect();
        let now = probing::now();
        let measured: Vec<Value> = self
            .probed()
            .map(|host| {
                let known = self.probing.known().get(host);
                let mut value = known.map_or_else(|| json!({}), Measured::to_json);
                value["host"] = json!(host);
                value["age_s"] = json!(known.map(|m| m.age(now)));
                value
            })
            .collect();
        let spreading = self.spreading.mechanisms();
        let spreading: Vec<Value> = spreading
            .map(|(name, how)| json!({ "interface": name, "by": how.word() }))
            .collect();
        Ok(json!({
            "policy": self.file.display().to_string(),
            "seconds": self.since.elapsed().as_secs(),
            "off": self.tuner.is_off(),
            "rules": rules,
            "spreading": spreading,
            "measured": measured,
            "counters": counters,
        }))
    }

    fn flows(&mut self) -> Result<Value, DaemonError> {
        let flows = self.tuner.flows()?;
        let one = |(seen, path): &(Seen, String)| {
            let rule = self.tuner.rule_of(&seen.listing).map(|(_, rule)| rule);
            let refused = self.tuner.is_refused(seen.listing.cookie);
            flow(seen, path, rule.filter(|_| !refused), refused)
        };
        let flows: Vec<Value> = flows.iter().map(one).collect();
        Ok(json!({ "flows": flows, "off": self.tuner.is_off() }))
    }

    /// By the rules in force, or by those of the texts that the request has.
    fn plan(&mut self, request: &Value) -> Result<Value, DaemonError> {
        let Some(texts) = request["policy"].as_array() else {
            return Ok(plan::in_force(&mut self.tuner)?);
        };
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let sources = texts.iter().map(|source| Source {
            name: text(&source["name"]),
            text: text(&source["text"]),
        });
        let sources: Vec<Source> = sources.collect();
        let policy = self.parse(&sources)?;
        Ok(plan::of(&mut self.tuner, policy.compiled)?)
    }

    /// Of each path that leaves flows as they were, both arms.
    fn compare(&self) -> Value {
        let now_us = self.tuner.now_us();
        let shared = self.tuner.rules().iter().filter(|r| r.is_shared());
        let paths = shared.map(|rule| {
            let (since_us, courses) = self.tuner.arms().of(&rule.name);
            let seconds = since_us.map_or(0.0, |since| (now_us - since) as f64 / 1e6);
            let arms = [("policy", false), ("control", true)].map(|(name, control)| {
                let mine = courses.iter().filter(|c| c.control == control);
                arm(name, &mine.copied().collect::<Vec<_>>())
            });
            json!({ "path": rule.name, "stack": rule.stack, "seconds": seconds, "arms": arms })
        });
        json!({ "paths": paths.collect::<Vec<_>>() })
    }

    /// Reads the file again. A policy with a mistake changes nothing.
    fn apply(&mut self) -> Result<Value, DaemonError> {
        let sources = sources(&self.file)?;
        let policy = self.parse(&sources)?;
        self.tuner.apply_to_all(policy.compiled.clone())?;
        (self.policy, self.sources) = (policy, sources);
        self.applied = Instant::now();
        self.made = Duration::ZERO;
        self.sets.clear();
        let lines = self.spread()?;
        Ok(json!({ "warnings": self.warnings(), "queues": lines }))
    }

    fn release(&mut self, request: &Value) -> Result<Value, DaemonError> {
        let Some(which) = request["flow"].as_str() else {
            return Ok(json!({ "released": self.tuner.release(|_| true)? }));
        };
        let is = |l: &Listing| which == l.cookie.to_string() || which == label(l);
        match self.tuner.release(is)? {
            0 => Err(DaemonError::Policy(format!(
                "no flow `{which}` has a path; write a cookie or both ends as `flows` lists them"
            ))),
            released => Ok(json!({ "released": released })),
        }
    }

    /// Other parameters for the stack of a path, until the file is applied again.
    fn set(&mut self, request: &Value) -> Result<Value, DaemonError> {
        let name = request["path"].as_str().unwrap_or_default();
        let settings = request["set"].as_object().cloned().unwrap_or_default();
        let is_path = self.policy.compiled.rules.iter().any(|r| r.name == name);
        let settings: Vec<(&str, &str)> = settings
            .iter()
            .map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default()))
            .collect();
        if !is_path && let Some(answer) = self.set_flow(name, &settings)? {
            return Ok(answer);
        }
        let mut policy = self.policy.clone();
        let stack = changed(&mut policy, name, &settings)?;
        self.tuner.install(policy.compiled.clone())?;
        self.policy = policy;
        let own = |&(key, value): &(&str, &str)| (key.to_owned(), value.to_owned());
        let settings = settings.iter().map(own).collect();
        self.sets.push((name.to_owned(), settings));
        Ok(json!({ "path": name, "stack": stack }))
    }

    /// Other parameters for one flow, until the file is applied again; `None`: there is no such
    /// flow with a path.
    fn set_flow(
        &mut self,
        which: &str,
        settings: &[(&str, &str)],
    ) -> Result<Option<Value>, DaemonError> {
        let flows = self.tuner.flows()?;
        let is = |l: &Listing| which == l.cookie.to_string() || which == label(l);
        let Some((seen, _)) = flows.into_iter().find(|(seen, _)| is(&seen.listing)) else {
            return Ok(None);
        };
        let Some((path, rule)) = self.tuner.rule_of(&seen.listing) else {
            let why = format!(
                "{}: it was left as it was, for comparison",
                label(&seen.listing)
            );
            return Err(DaemonError::Policy(why));
        };
        let (path, mut rule) = (path.to_owned(), rule.clone());
        let all = self.policy.compiled.rules.iter().zip(&self.policy.paths);
        let facts = all
            .into_iter()
            .find(|(r, _)| r.name == path)
            .map(|(_, facts)| facts);
        let Some(mut facts) = facts.cloned() else {
            return Ok(None);
        };
        facts.stack = StackSpec::parse(&rule.stack).ok();
        let stack = reparametrized(&mut rule, &mut facts, settings)?;
        let cookie = seen.listing.cookie;
        self.tuner.set_flow(cookie, &path, rule.action, &stack)?;
        Ok(Some(
            json!({ "path": path, "flow": label(&seen.listing), "stack": stack }),
        ))
    }
}

/// `rule`: what it runs, if a rule decides that.
fn flow(seen: &Seen, path: &str, rule: Option<&Rule>, refused: bool) -> Value {
    let l = &seen.listing;
    let f = l.flow.clone().unwrap_or_default();
    let fixed = rule.and_then(|rule| match &rule.action {
        Action::Ours { params, .. } => params.fixed_decrease(l.cwnd),
        Action::Kernel { .. } => None,
    });
    let arm = match (f.control, refused) {
        (true, _) => "control",
        (false, true) => "refused",
        (false, false) => "policy",
    };
    json!({
        "flow": label(l),
        "cookie": l.cookie,
        "namespace": seen.namespace,
        "path": path,
        "stack": rule.map(|rule| &rule.stack),
        "arm": arm,
        "how": if f.adopted { "adopted" } else { "new" },
        "algorithm": l.algorithm,
        "before": f.before,
        "a_segments": l.a,
        "b_fraction": l.b.or(fixed),
        "cwnd_segments": l.cwnd,
        "ssthresh_segments": (l.ssthresh < 0x7fff_ffff).then_some(l.ssthresh),
        "srtt_ms": f64::from(l.srtt_us) / 1000.0,
        "retransmits": l.retransmitted,
        "bytes_acked": l.bytes_acked,
        "cuts": f.cuts,
        "timeouts": f.timeouts,
        "stalls": f.stalls,
        "stalls_ignored": f.stalls_ignored,
    })
}

/// One arm of a path: its flows, one number each, and what all of them did together.
fn arm(name: &str, courses: &[&Course]) -> Value {
    let sum = |of: &dyn Fn(&Course) -> u64| courses.iter().map(|c| of(c)).sum::<u64>();
    let (segments, sent_again) = (sum(&|c| c.segments), sum(&|c| c.sent_again));
    let mbps = courses.iter().map(|c| c.rate() / 1e6);
    let algorithms: BTreeSet<&str> = courses.iter().map(|c| c.algorithm.as_str()).collect();
    json!({
        "arm": name,
        "algorithms": algorithms,
        "flows": courses.len(),
        "bytes": sum(&|c| c.bytes),
        "busy_s": sum(&|c| c.busy_us) as f64 / 1e6,
        "retransmit_fraction": sent_again as f64 / (segments + sent_again).max(1) as f64,
        "rate_mbps": mbps.collect::<Vec<_>>(),
        "srtt_ms": courses.iter().map(|c| c.srtt_ms()).collect::<Vec<_>>(),
    })
}
