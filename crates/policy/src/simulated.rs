//! A path's flows in a scenario: the keys of `[[flow]]` that say what the path says.

use fullpipe_cc::Kind;

use crate::compiled::{Action, FLAG_SENDSTALL_IGNORE, Rule};
use crate::policy::PathFacts;

impl PathFacts {
    /// Keys of a scenario's `[[flow]]` and their values, as TOML: what a flow of the path would be
    /// in a run, on whatever ground; `None` where there is no model of the kernel's algorithm.
    pub fn flow_keys(&self, rule: &Rule) -> Option<Vec<(&'static str, String)>> {
        let stack = self.modelled(&rule.action)?;
        let mut spelled = stack.to_string();
        let mut keys = Vec::new();
        if let Action::Ours { params, .. } = &rule.action {
            let own = stack.kinds().any(|kind| kind == Kind::Sending);
            if params.initial_window > 0 && !own && stack.initial_window().is_none() {
                match params.spread_us {
                    0 => keys.push((
                        "initial_window",
                        format!("{} segments", params.initial_window),
                    )),
                    us => {
                        let gap = us / params.initial_window;
                        let iw = params.initial_window;
                        spelled = format!("{spelled}+spread(t_max={gap}us,iw={iw})");
                    }
                }
            }
            if params.clamp > 0 {
                keys.push(("window", format!("{} segments", params.clamp)));
            }
            if params.pacing > 0 {
                keys.push(("rate", format!("{}bit/s", params.pacing * 8)));
            }
            if params.flags & FLAG_SENDSTALL_IGNORE != 0 {
                keys.push(("sendstall", "ignore".to_owned()));
            }
        }
        keys.insert(0, ("stack", spelled));
        Some(keys)
    }
}
