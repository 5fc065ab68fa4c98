//! The ground.

use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use fullpipe_run::{Ground, GroundError, Outcome, RunSpec};

use crate::error::LinuxError;
use crate::plan::{self, Traffic};
use crate::product::Product;
use crate::switches::{Kernel, told};
use crate::{guest, outcome};

/// Runs in guests of one kernel.
#[derive(Debug)]
pub struct Linux {
    product: Product,
    fingerprint: String,
    interrupt: &'static AtomicBool,
    /// Remarks on the runs that were asked for.
    notes: Mutex<Vec<String>>,
}

impl Linux {
    /// Its name in results (contract).
    pub const NAME: &'static str = "linux";

    /// With the kernel called `name`; `interrupt` ends runs at once.
    ///
    /// # Errors
    /// It has not been built, or a program that runs need is missing.
    pub fn new(name: &str, interrupt: &'static AtomicBool) -> Result<Self, LinuxError> {
        let product = Product::find(name)?;
        crate::build::needs(false)?;
        guest::sweep();
        Ok(Self::of(product, interrupt))
    }

    /// With this kernel.
    pub fn of(product: Product, interrupt: &'static AtomicBool) -> Self {
        // The same release may have either version.
        let bbr = match product.bbr {
            None | Some(1) => String::new(),
            Some(version) => format!("-bbr{version}"),
        };
        let fingerprint = format!(
            "{}-linux-{}-hz{}{bbr}-{}",
            env!("FULLPIPE_LINUX"),
            product.release,
            product.hz,
            product.hash
        );
        Self {
            product,
            fingerprint,
            interrupt,
            notes: Mutex::default(),
        }
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel {
            hz: Some(self.product.hz),
            bbr: self.product.bbr,
            module: self.product.module.as_deref(),
        }
    }

    /// Makes one run.
    ///
    /// # Errors
    /// [`LinuxError`].
    pub fn run_one(&self, spec: &RunSpec) -> Result<Outcome, LinuxError> {
        let traffic = Traffic::of(spec);
        let plan = plan::plan(spec, &traffic, self.kernel())?;
        let records = guest::run(&self.product, &plan, spec.seed, self.interrupt)?;
        outcome::outcome(spec, &traffic, &records)
    }
}

impl Ground for Linux {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    fn kernel(&self) -> Option<String> {
        let Product {
            release, hz, bbr, ..
        } = &self.product;
        let module = self.product.module.as_ref();
        let module = module.map_or(String::new(), |name| format!(", with module {name}"));
        let bbr = match bbr {
            None | Some(1) => String::new(),
            Some(version) => format!(", BBR version {version}"),
        };
        Some(format!("Linux {release}, {hz} ticks a second{bbr}{module}"))
    }

    fn notes(&self) -> Vec<String> {
        self.notes.lock().unwrap_or_else(|e| e.into_inner()).clone()
    }

    fn reads(&self, spec: &dyn Fn() -> RunSpec) -> String {
        told(&spec(), self.kernel())
    }

    fn check(&self, spec: &RunSpec) -> Result<(), GroundError> {
        plan::plan(spec, &Traffic::of(spec), self.kernel())?;
        let mut notes = self.notes.lock().unwrap_or_else(|e| e.into_inner());
        for note in plan::notes(spec) {
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
        Ok(())
    }

    fn run(&self, spec: &RunSpec) -> Result<Outcome, GroundError> {
        Ok(self.run_one(spec)?)
    }
}

#[cfg(test)]
mod tests {
    use fullpipe_cc::StackSpec;
    use fullpipe_flow::{CeEcho, EpisodeKind, Preset, ReceiverConfig, SenderConfig};
    use fullpipe_run::{
        ArrivalSpec, Arrivals, Buffer, CaptureEvent, Change, ComponentRng, CrossSpec, FlowSpec,
        LinkSpec, Loss, LossProcess, Session, SizeLaw, Trace, Waveform,
    };
    use fullpipe_units::{Rate, Span, Time};

    use super::*;
    use crate::product::DEFAULT_VERSION;

    static NEVER: AtomicBool = AtomicBool::new(false);

    /// One flow for five seconds on 10 Mbit/s, 40 ms, 40 packets of buffer.
    fn spec(stack: &str) -> RunSpec {
        let half = Span::from_millis(20);
        let rate = Rate::from_bits_per_sec(10_000_000);
        let links = vec![
            LinkSpec::new("bottleneck", Some(rate), half, Buffer::Packets(40)),
            LinkSpec::pure_delay("back", half),
        ];
        let flow = FlowSpec::new(
            "main",
            StackSpec::parse(stack).unwrap(),
            SenderConfig::preset(Preset::Linux, 1500),
            ReceiverConfig::preset(Preset::Linux),
            vec![0],
            vec![1],
        );
        RunSpec {
            duration: Span::from_secs(5),
            links,
            flows: vec![flow],
            trace: Trace::Every(Span::from_millis(100)),
            ..RunSpec::default()
        }
    }

    #[test]
    fn kernels_of_one_release_with_either_bbr_are_two() {
        let of = |bbr| {
            let product = Product {
                dir: "somewhere".into(),
                release: "6.12.117".to_owned(),
                hz: 250,
                bbr: Some(bbr),
                module: None,
                hash: "0".to_owned(),
            };
            Linux::of(product, &NEVER)
        };
        assert_ne!(of(1).fingerprint(), of(3).fingerprint());
        assert_ne!(Ground::kernel(&of(1)), Ground::kernel(&of(3)));
    }

    const KERNEL: Kernel<'static> = Kernel {
        hz: Some(250),
        bbr: Some(1),
        module: None,
    };

    /// The kernel's clamp is in place from the first ACK on; the initial window leaves before.
    #[test]
    fn no_initial_window_is_above_the_cap() {
        let initial = |cap: f64| {
            let mut spec = spec("reno-linux");
            spec.flows[0].sender = spec.flows[0].sender.clone().with(|c| c.window.max = cap);
            let plan = plan::plan(&spec, &Traffic::of(&spec), KERNEL).unwrap();
            let flow = plan.net.lines().find(|l| l.starts_with("flow 0 ")).unwrap();
            flow.split(' ').nth(5).unwrap().to_owned()
        };
        assert_eq!([2.0, 30.0, f64::INFINITY].map(initial), ["2", "10", "10"]);
    }

    fn refusal(change: impl FnOnce(&mut RunSpec)) -> (String, String) {
        let mut spec = spec("reno-linux");
        change(&mut spec);
        match plan::plan(&spec, &Traffic::of(&spec), KERNEL) {
            Err(LinuxError::Unable { key, what, .. }) => (key, what),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_flows_differ_in_and_a_kernel_has_once_is_refused() {
        let usual = spec("reno-linux");
        assert!(plan::plan(&usual, &Traffic::of(&usual), KERNEL).is_ok());
        let (key, what) = refusal(|s| s.flows[0].stack = StackSpec::parse("own-linux").unwrap());
        assert!(
            key == "main.stack" && what.contains("your own"),
            "{key} {what}"
        );
        let (key, what) = refusal(|s| s.flows[0].stack = StackSpec::parse("bbr3").unwrap());
        assert!(
            key == "main.stack" && what.contains("the kernel has version 1"),
            "{key} {what}"
        );
        let newer = Kernel {
            bbr: Some(3),
            ..KERNEL
        };
        let planned = |stack: &str| {
            let spec = spec(stack);
            plan::plan(&spec, &Traffic::of(&spec), newer).map(|plan| plan.apps)
        };
        for stack in ["bbr", "bbr3-linux"] {
            assert!(planned(stack).unwrap().contains(" bbr "), "{stack}");
        }
        let refused = planned("bbr-linux").unwrap_err().to_string();
        assert!(refused.contains("this kernel has version 3"), "{refused}");
        assert!(planned("cubic-linux").is_ok());
        let (key, what) = refusal(|s| {
            let mut other = s.flows[0].clone();
            other.name = "other".to_owned();
            other.preset = Some(Preset::Linux);
            other.sender.recovery.tlp = false;
            s.flows.push(other);
        });
        assert!(
            key == "other.tlp" && what.contains("flow main"),
            "{key} {what}"
        );
    }

    /// A law that the kernel has no module for is told which one is near.
    #[test]
    fn every_law_is_a_module_or_near_one() {
        use fullpipe_cc::{Kind, registry};
        for entry in registry::entries().filter(|e| e.kind == Kind::Law) {
            let mut spec = spec("reno-linux");
            spec.flows[0].stack = StackSpec::parse(entry.name).unwrap();
            echo_changes(&mut spec);
            match plan::plan(&spec, &Traffic::of(&spec), KERNEL) {
                Ok(_) => {}
                Err(error @ LinuxError::Unable { .. }) => {
                    let hint = error.hint();
                    assert!(hint.contains("is the nearest"), "{} {hint}", entry.name);
                    let module = hint.split('`').nth(1).unwrap();
                    StackSpec::parse(module).expect("a stack that can be written");
                    assert!(hint.contains("; or bring one: `--kernel-module"), "{hint}");
                }
                Err(other) => panic!("{other:?}"),
            }
        }
    }

    /// ECN, and a receiver that echoes each change of the marks.
    fn echo_changes(spec: &mut RunSpec) {
        spec.flows[0].sender.ecn = true;
        spec.flows[0].receiver.ce_echo = CeEcho::EachChange;
    }

    /// The receiver of a flow that has DCTCP has it, too: the algorithm of its route.
    #[test]
    fn both_hosts_of_a_flow_have_dctcp() {
        let planned = |change: fn(&mut RunSpec)| {
            let mut spec = spec("dctcp-linux");
            change(&mut spec);
            plan::plan(&spec, &Traffic::of(&spec), KERNEL)
        };
        let plan = planned(echo_changes).unwrap();
        assert!(plan.apps.contains(" dctcp "), "{}", plan.apps);
        let routes = |side: usize| plan.ip[side].contains("congctl dctcp");
        assert_eq!([routes(0), routes(1)], [false, true]);
        let refused = |change| planned(change).unwrap_err();
        let error = refused(|spec| spec.flows[0].sender.ecn = true);
        assert!(error.hint().contains("leave out `ecn_echo`"), "{error}");
        let error = refused(|spec| spec.flows[0].receiver.ce_echo = CeEcho::EachChange);
        assert!(error.hint().contains("leave out `ecn`"), "{error}");
    }

    #[test]
    fn an_own_module_is_what_own_linux_means() {
        let spec = spec("own-linux");
        let kernel = Kernel {
            module: Some("mine"),
            ..KERNEL
        };
        let plan = plan::plan(&spec, &Traffic::of(&spec), kernel).unwrap();
        assert!(plan.apps.contains(" mine "), "{}", plan.apps);
    }

    /// The kernel, or why there is none: it is built by a command of its own.
    fn kernel() -> Option<Linux> {
        match Linux::new(DEFAULT_VERSION, &NEVER) {
            Ok(linux) => Some(linux),
            Err(why) => {
                eprintln!("skipped: {why}: {}", why.hint());
                None
            }
        }
    }

    #[test]
    fn the_kernel_fills_a_path_and_repeats_itself() {
        let Some(linux) = kernel() else { return };
        let spec = spec("reno-linux");
        let one = linux.run_one(&spec).unwrap();
        let (flow, link) = (&one.flows[0], &one.links[0]);
        // 10 Mbit/s are 833 packets of 1500 bytes a second; the handshake and six round trips of
        // slow start cost less than half a second.
        assert!((3700..=4167).contains(&flow.totals.delivered), "{flow:?}");
        assert!(flow.rtt.min().unwrap() >= Span::from_millis(40));
        // Path and buffer: 40 ms and 40 packets of 1.2 ms; a delayed ACK waits for one more.
        assert!(flow.rtt.max().unwrap() <= Span::from_millis(40 + 48 + 40));
        assert_eq!(flow.totals.dropped, link.buffer_drops);
        assert!(link.buffer_drops > 0 && link.queue_max == 40);
        assert!(flow.totals.retransmits >= flow.totals.dropped);
        let two = linux.run_one(&spec).unwrap();
        assert_eq!(flow.totals, two.flows[0].totals);
        assert_eq!(flow.series.rows, two.flows[0].series.rows);
    }

    /// The SYN waits for 1.5 s and is sent again after one: no segment's timeout, and the window is
    /// ten segments as ever.
    #[test]
    fn a_syn_that_is_sent_again_is_no_timeout() {
        let Some(linux) = kernel() else { return };
        let mut spec = spec("reno-linux");
        let rate = |bits| Some(Rate::from_bits_per_sec(bits));
        let change = |at, rate| Change {
            at: Time::ZERO + at,
            rate,
            delay: None,
            loss: None,
        };
        spec.links[0].schedule = vec![
            change(Span::ZERO, rate(0)),
            change(Span::from_millis(1500), rate(10_000_000)),
        ];
        let outcome = linux.run_one(&spec).unwrap();
        let flow = &outcome.flows[0];
        assert_eq!(flow.totals.timeouts, 0, "{:?}", flow.totals);
        assert!(flow.totals.delivered > 2000, "{:?}", flow.totals);
        let first = flow.series.rows.iter().find(|row| row.delivered > 0);
        assert!(first.unwrap().cwnd >= 10.0, "{first:?}");
    }

    /// BBR draws the phase of its cycle, and other parts of the kernel draw whenever it suits them.
    #[test]
    fn what_a_kernel_draws_at_random_follows_from_the_seed_alone() {
        let Some(linux) = kernel() else { return };
        let mut spec = spec("bbr-linux");
        let rows = |spec: &RunSpec| linux.run_one(spec).unwrap().flows[0].series.rows.clone();
        let first = rows(&spec);
        for _ in 0..4 {
            assert_eq!(rows(&spec), first);
        }
        spec.seed += 1;
        assert_ne!(rows(&spec), first);
    }

    /// Nobody but the link decides about datagrams: all counts have a closed form.
    #[test]
    fn random_losses_are_those_of_the_simulator() {
        let Some(linux) = kernel() else { return };
        let mut spec = spec("reno-linux");
        spec.flows.clear();
        // 1000 bytes at 8 Mbit/s: one a millisecond, the link carries 1.25 of them.
        let rate = Waveform::Steps {
            steps: vec![(Span::ZERO, Rate::from_bits_per_sec(8_000_000))],
            period: None,
        };
        let noise = CrossSpec::source("noise", 1000, rate, vec![0]);
        spec.cross = vec![noise];
        let burst = Loss::GilbertElliott {
            to_bad: 0.01,
            to_good: 0.3,
            good: 0.001,
            bad: 0.7,
        };
        for loss in [Loss::Bernoulli { p: 0.02 }, burst] {
            spec.links[0].loss = loss;
            let mut process = LossProcess::new(loss, ComponentRng::new(spec.seed, "bottleneck"));
            let lost = (0..5000).filter(|_| process.drops()).count() as u64;
            let outcome = linux.run_one(&spec).unwrap();
            let (cross, link) = (&outcome.cross[0], &outcome.links[0]);
            assert_eq!((cross.sent, link.random_drops), (5000, lost), "{loss:?}");
            assert_eq!((cross.dropped, link.offered), (lost, 5000));
            // 0.8 ms of transmission and 20 ms of way; the last ones are still on it.
            assert!(cross.arrived + lost >= 5000 - 21, "{cross:?}");
            assert!((cross.delay.max().unwrap().as_millis_f64() - 20.8).abs() < 0.02);
        }
    }

    #[test]
    fn probes_come_back_after_a_round_trip() {
        let Some(linux) = kernel() else { return };
        let mut spec = spec("reno-linux");
        spec.flows.clear();
        let every = Span::from_millis(100);
        spec.cross = vec![CrossSpec::probes("ping", 1250, every, vec![0], vec![1])];
        let outcome = linux.run_one(&spec).unwrap();
        let ping = &outcome.cross[0];
        // At 0, 100 ... 5000 ms; the last has no time to come back.
        assert_eq!((ping.sent, ping.arrived, ping.dropped), (51, 50, 0));
        // 1 ms of transmission, 40 ms of way.
        assert!(
            ping.series
                .iter()
                .all(|(_, rtt)| *rtt == Span::from_millis(41))
        );
    }

    /// Ten segments in one initial window: handshake, data, and the last ACK.
    #[test]
    fn short_flows_end_when_their_last_segment_is_acknowledged() {
        let Some(linux) = kernel() else { return };
        let mut spec = spec("cubic-linux");
        let mut template = spec.flows.remove(0);
        template.name = "mice".to_owned();
        spec.arrivals = vec![ArrivalSpec {
            template,
            arrivals: Arrivals::Every(Span::from_millis(500)),
            sizes: SizeLaw::Fixed(10),
            session: Session::default(),
            seeded_by: None,
        }];
        let outcome = linux.run_one(&spec).unwrap();
        let mice = &outcome.arrivals[0];
        // None at the end of the run: it could not begin.
        assert_eq!(mice.transfers.len(), 9, "at 0.5, 1, ... 4.5 s");
        // Two round trips of 40 ms, ten packets of 1.2 ms, and a SYN of 60 bytes.
        for transfer in &mice.transfers {
            let took = transfer.completion.unwrap().as_millis_f64();
            assert!((92.0..92.3).contains(&took), "{took}");
            assert_eq!(
                (transfer.size, transfer.lost, transfer.retransmits),
                (10, 0, 0)
            );
        }
        assert_eq!(mice.totals.delivered, 90);
        // The first transmission of a segment is lost: the tail probe repairs it.
        spec.links[0].loss = Loss::Bernoulli { p: 0.1 };
        let outcome = linux.run_one(&spec).unwrap();
        let lost = outcome.arrivals[0]
            .transfers
            .iter()
            .map(|t| t.lost.count_ones());
        let totals = &outcome.arrivals[0].totals;
        assert!(lost.clone().sum::<u32>() > 0);
        assert!(u64::from(lost.sum::<u32>()) <= totals.dropped);
        assert_eq!(totals.dropped, outcome.links[0].random_drops);
    }

    #[test]
    fn a_capture_has_every_packet_of_both_hosts() {
        let Some(linux) = kernel() else { return };
        let mut spec = spec("reno-linux");
        spec.capture = true;
        let outcome = linux.run_one(&spec).unwrap();
        let count = |is: fn(&CaptureEvent) -> bool| {
            outcome.capture.iter().filter(|row| is(&row.event)).count() as u64
        };
        let data = |e: &CaptureEvent| matches!(e, CaptureEvent::SegmentSent(s) if !s.syn);
        let again =
            |e: &CaptureEvent| matches!(e, CaptureEvent::SegmentSent(s) if s.retransmission);
        let lost = |e: &CaptureEvent| matches!(e, CaptureEvent::SegmentDropped(_));
        let acks = |e: &CaptureEvent| matches!(e, CaptureEvent::AckReceived(a) if !a.syn);
        let totals = &outcome.flows[0].totals;
        let counted = [
            totals.sent,
            totals.retransmits,
            totals.dropped,
            totals.acks - 1,
        ];
        assert_eq!(
            [count(data), count(again), count(lost), count(acks)],
            counted
        );
        let highest = outcome.capture.iter().filter_map(|row| match row.event {
            CaptureEvent::AckReceived(ack) => Some(ack.cum),
            _ => None,
        });
        assert!(highest.max().unwrap() <= totals.delivered);
    }

    #[test]
    fn what_is_dropped_by_prescription_is_what_is_lost() {
        let Some(linux) = kernel() else { return };
        let mut spec = spec("cubic-linux");
        spec.links[0].buffer = Buffer::Packets(1000);
        let clean = linux.run_one(&spec).unwrap();
        let totals = &clean.flows[0].totals;
        assert_eq!((totals.dropped, totals.loss_events), (0, 0));
        spec.flows[0].drops.segments = vec![500, 501];
        let lost = linux.run_one(&spec).unwrap();
        let totals = &lost.flows[0].totals;
        assert_eq!(
            (totals.dropped, totals.loss_events, totals.retransmits),
            (2, 1, 2)
        );
        let kinds = lost.flows[0].episodes.iter().map(|e| e.kind);
        let congestion = kinds.filter(|k| matches!(k, EpisodeKind::Congestion(_)));
        assert_eq!(congestion.count(), 1);
        spec.flows[0].start = Time::ZERO + Span::from_secs(60);
        let nothing = linux.run_one(&spec).unwrap();
        assert_eq!(nothing.flows[0].totals.sent, 0);
    }
}
