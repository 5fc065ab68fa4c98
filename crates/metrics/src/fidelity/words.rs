//! What is said of a run's fidelity.

use super::{Fidelity, HostFidelity};

impl Fidelity {
    /// One clause for people: `packets left 0.12 ms late (p99; bound 0.8 ms), ...`, and what each
    /// part of the test bed added to a mean round trip.
    pub fn sentence(&self) -> String {
        let mut clauses = Vec::new();
        if let (Some(p99), Some(largest)) = (self.late_p99_ms, self.late_max_ms) {
            clauses.push(format!(
                "packets left {} ms late (p99; bound {} ms, largest {} ms)",
                short(p99),
                short(self.late_bound_ms),
                short(largest)
            ));
        }
        clauses.push(self.drops());
        match self.local_stalls {
            0 => {}
            1 => clauses.push("1 local stall".to_owned()),
            n => clauses.push(format!("{n} local stalls")),
        }
        if self.near.is_some() || self.far.is_some() || self.path_added_ms.is_some() {
            clauses.push(self.attribution());
        }
        clauses.join(", ")
    }

    /// What made the run not count, each with its cause; empty if it counts.
    pub fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        if self.unplanned_drops > 0 {
            faults.push(self.drops());
        }
        if let Some(p99) = self.late_p99_ms.filter(|p99| *p99 > self.late_bound_ms) {
            faults.push(format!(
                "the path was late: packets left {} ms late (p99; bound {} ms, largest {} ms)",
                short(p99),
                short(self.late_bound_ms),
                short(self.late_max_ms.unwrap_or(p99)),
            ));
        }
        for (name, host) in self.hosts() {
            let p99 = host.p99_ms();
            if self.host_bound_ms > 0.0 && p99 > self.host_bound_ms {
                faults.push(format!(
                    "the {name} host was late: {} ms at the 99th percentile (bound {} ms)",
                    short(p99),
                    short(self.host_bound_ms),
                ));
            }
        }
        if self.added_bound_ms > 0.0 && self.added_ms > self.added_bound_ms {
            faults.push(format!(
                "{} was the latest: {} grew by {} ms on average (bound {} ms)",
                self.latest(),
                self.round_trip(),
                short(self.added_ms),
                short(self.added_bound_ms),
            ));
        }
        let failed = self.checks.iter().filter(|c| !c.holds);
        faults.extend(failed.map(|c| {
            let measured = c
                .measured
                .map_or("not measured".to_owned(), |m| short(m).to_string());
            let (least, most) = (short(c.least), short(c.most));
            format!("{}: {measured} (accepted: {least} to {most})", c.name)
        }));
        faults
    }

    /// What to do about it on the ground of this name, for a program that has real-time priority
    /// already, or has not; `None`: the run counts.
    pub fn remedy(&self, ground: &str, in_real_time: bool) -> Option<&'static str> {
        // Whose datagrams are fullpipe's own; elsewhere the kernel sends.
        let own_sockets = ground == "udp";
        match (self.valid, self.excess() > 1.0) {
            (true, _) => None,
            (false, true) if in_real_time && !own_sockets => {
                Some("give the run peace: fewer runs at a time")
            }
            (false, true) if in_real_time => Some(
                "give the run processors of its own (`--pin`), precise timers (`--spin`), or \
                 peace: fewer runs at a time",
            ),
            (false, true) if !own_sockets => {
                Some("give the run priority (`chrt -r 10`), or run fewer at a time")
            }
            (false, true) => Some(
                "give the run priority (`chrt -r 10`), processors of its own (`--pin`), precise \
                 timers (`--spin`), or run fewer at a time",
            ),
            (false, false) if self.checks.iter().any(|c| !c.holds) => Some(
                "give the machine peace, or ask for a lower rate: the path or its hosts were not \
                 what the scenario says",
            ),
            (false, false) if !own_sockets => {
                Some("give the machine peace, or ask for a lower rate")
            }
            (false, false) => Some(
                "allow larger socket buffers (sysctl net.core.rmem_max), or ask for a lower rate",
            ),
        }
    }

    fn drops(&self) -> String {
        match self.unplanned_drops {
            1 => "1 unplanned drop".to_owned(),
            n => format!("{n} unplanned drops"),
        }
    }

    fn hosts(&self) -> impl Iterator<Item = (&'static str, &HostFidelity)> {
        let sides = [("near", &self.near), ("far", &self.far)];
        sides
            .into_iter()
            .filter_map(|(n, h)| Some((n, h.as_ref()?)))
    }

    /// `a round trip of 80 ms grew by 0.4 ms on average (bound 1.6 ms): 0.1 ms near host, ...`.
    fn attribution(&self) -> String {
        let added = |host: &Option<HostFidelity>| host.as_ref().and_then(|h| h.added_ms);
        let part = |name: &str, added: Option<f64>| match added {
            Some(ms) => format!("{name} {} ms", short(ms)),
            None => format!("{name} not known"),
        };
        format!(
            "{} grew by {} ms on average (bound {} ms): {}, {}, {}",
            self.round_trip(),
            short(self.added_ms),
            short(self.added_bound_ms),
            part("near host", added(&self.near)),
            part("path", self.path_added_ms),
            part("far host", added(&self.far)),
        )
    }

    /// `a round trip of 80 ms`; datagrams that nobody answers measure none.
    fn round_trip(&self) -> String {
        match self.rtt_ms > 0.0 {
            true => format!("a round trip of {} ms", short(self.rtt_ms)),
            false => "a round trip (RTT not measured)".to_owned(),
        }
    }

    /// The part of the test bed that added most to a round trip, in words.
    fn latest(&self) -> &'static str {
        let added = |host: &Option<HostFidelity>| host.as_ref().and_then(|h| h.added_ms);
        let parts = [
            ("the near host", added(&self.near)),
            ("the far host", added(&self.far)),
            ("the path", self.path_added_ms),
        ];
        let parts = parts.map(|(name, ms)| (name, ms.unwrap_or(0.0)));
        parts
            .into_iter()
            .max_by(|a, b| a.1.total_cmp(&b.1))
            .map_or("", |(name, _)| name)
    }
}

/// Three digits behind the point.
fn short(ms: f64) -> f64 {
    (ms * 1e3).round() / 1e3
}
