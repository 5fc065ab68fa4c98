//! `divide`: what each flow of a path has of the path's window, rate and buffers.

use std::collections::BTreeMap;

use fullpipe_policy::{Action, Rule};

/// Flows of the paths that divide, by the path's name.
pub type Flows = BTreeMap<String, u32>;

/// A flow's part of a rule of this path, be it the path's or the flow's own. What is not divided
/// stays without a limit.
pub fn part(rule: &Rule, path: &str, flows: &Flows) -> Rule {
    let mut rule = rule.clone();
    let n = flows.get(path).copied().unwrap_or(1);
    if !rule.divide || n < 2 {
        return rule;
    }
    let pacing = match &mut rule.action {
        Action::Ours { params, .. } => {
            if params.clamp > 0 {
                params.clamp = (params.clamp / n).max(LEAST_WINDOW);
            }
            &mut params.pacing
        }
        Action::Kernel { pacing, .. } => pacing,
    };
    if *pacing > 0 {
        *pacing = (*pacing / u64::from(n)).max(1);
    }
    let buffer = |whole: u64| (whole / u64::from(n)).max(1);
    rule.send_buffer = rule.send_buffer.map(buffer);
    rule.receive_buffer = rule.receive_buffer.map(buffer);
    rule
}

/// Of every flow, in the programs, segments.
const LEAST_WINDOW: u32 = 2;

#[cfg(test)]
mod tests {
    use fullpipe_policy::Params;

    use super::*;

    fn whole(divide: bool) -> Rule {
        let params = Params {
            clamp: 100,
            pacing: 9_000,
            ..Params::default()
        };
        Rule {
            divide,
            action: Action::Ours {
                params,
                table: Vec::new(),
            },
            send_buffer: Some(1_000_000),
            ..crate::testing::rule("path", "192.0.2.0", 24)
        }
    }

    fn divided(rule: &Rule, n: u32) -> (u32, u64, Option<u64>, Option<u64>) {
        let flows = Flows::from([("path".to_owned(), n)]);
        let part = part(rule, "path", &flows);
        let Action::Ours { params, .. } = &part.action else {
            unreachable!("an action of ours stays one")
        };
        (
            params.clamp,
            params.pacing,
            part.send_buffer,
            part.receive_buffer,
        )
    }

    #[test]
    fn each_flow_has_its_part() {
        let rule = whole(true);
        assert_eq!(divided(&rule, 0), (100, 9_000, Some(1_000_000), None));
        assert_eq!(divided(&rule, 1), (100, 9_000, Some(1_000_000), None));
        assert_eq!(divided(&rule, 3), (33, 3_000, Some(333_333), None));
        assert_eq!(divided(&rule, 1_000), (2, 9, Some(1_000), None));
        assert_eq!(divided(&rule, 20_000).1, 1);
    }

    #[test]
    fn what_is_not_to_be_divided_stays_whole() {
        assert_eq!(
            divided(&whole(false), 3),
            (100, 9_000, Some(1_000_000), None)
        );
        let mut free = whole(true);
        if let Action::Ours { params, .. } = &mut free.action {
            (params.clamp, params.pacing) = (0, 0);
        }
        let (clamp, pacing, ..) = divided(&free, 3);
        assert_eq!((clamp, pacing), (0, 0), "no limit is none of each");
    }
}
