//! Which runs TCP of the running kernel makes with another host: no more than a socket can be told,
//! for settings and routes are the hosts' own.

use fullpipe_run::{Drops, FlowSpec, GroundError, RunSpec};

use crate::plan::{self, refuse_unknown_module, switches_of, switches_of_peer, unable};

/// This host's side of it.
#[derive(Clone, Debug)]
pub struct RunningTcp {
    release: String,
    fingerprint: String,
    modules: Vec<String>,
}

impl RunningTcp {
    /// On this machine; `carrier`: the fingerprint of what opens the connections.
    pub fn new(carrier: &str) -> Self {
        let release = plan::release();
        Self {
            fingerprint: format!("{carrier}-tcp-{release}"),
            release,
            modules: plan::modules(),
        }
    }

    /// Release of the running kernel.
    pub fn release(&self) -> &str {
        &self.release
    }

    /// Of what decides a run's outcome here.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// Whether a run can be made.
    ///
    /// # Errors
    /// [`GroundError::Unable`] by key; [`GroundError::Environment`] if a module is missing.
    pub fn check(&self, spec: &RunSpec) -> Result<(), GroundError> {
        if let Some(class) = spec.arrivals.first() {
            let key = Some(format!("{}.kind", class.template.name));
            let what = "with another host there are no short flows on this ground".to_owned();
            return Err(unable(key, what, "leave them out, or use --ground udp"));
        }
        spec.flows.iter().try_for_each(|f| self.check_flow(f))
    }

    fn check_flow(&self, f: &FlowSpec) -> Result<(), GroundError> {
        let s = match f.reverse {
            true => switches_of_peer(f)?,
            false => switches_of(f)?,
        };
        // A module of the other host is that host's affair.
        if !f.reverse {
            refuse_unknown_module(f, &s.module, &self.modules)?;
        }
        let linux = f.sender.window.initial == INITIAL_WINDOW;
        let asked = [
            ("initial_window", !linux),
            ("rate", f.sender.pacing.max.is_some()),
            ("pacing", s.pace > 0),
            ("nic_rate", f.local_queue),
            ("window", f.sender.window.max.is_finite()),
            ("min_rto", s.min_rto.is_some()),
            ("ecn", f.sender.ecn),
            ("ecn_echo", s.echoes_changes),
            ("delayed_ack", f.receiver.acks.every == 1),
            ("receive_window", s.window.1 > 0),
            ("timestamps", !s.timestamps),
            ("recovery", !s.sack || !s.rack),
            ("tlp", !s.tlp),
            ("frto", !s.frto),
            ("validation", !s.validates),
            ("merge_acks", !s.merges_acks),
            ("drop", prescribes(&f.drops) || prescribes(&f.arrival_drops)),
        ];
        match asked.into_iter().find(|(_, set)| *set) {
            None => Ok(()),
            Some((key, _)) => Err(unable(
                Some(format!("{}.{key}", f.name)),
                "with another host it is set on the hosts, or not at all".to_owned(),
                &format!("leave out `{key}`, or leave out `--peer`"),
            )),
        }
    }
}

/// Whether it names a loss.
fn prescribes(d: &Drops) -> bool {
    let listed = !d.segments.is_empty() || !d.times.is_empty();
    listed || d.every.is_some() || d.at_window.is_some() || d.probability > 0.0
}

/// Initial window of Linux, segments (RFC 6928).
const INITIAL_WINDOW: f64 = 10.0;
