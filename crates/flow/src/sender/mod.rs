//! The sans-IO sender: what to send now, what an ACK means, when to be called again.
//!
//! A host drives it with [`Sender::poll_transmit`] until it returns `None`, [`Sender::handle_ack`],
//! and [`Sender::handle_timeout`] when [`Sender::next_timeout`] is due. The sender reads no clock:
//! the host passes `now`. Work per ACK does not grow with the window.
//!
//! [`Sender`] is made of parts that own their state and know nothing of each other. What happens
//! when is told in five files: `ack` (an ACK arrives), `transmit` (a segment leaves), `timeout` (a
//! timer goes off), `congestion` (the window comes down, or back) and `change` (another controller
//! takes over, caps move).

mod ack;
mod artificial;
mod audit;
mod budget;
mod change;
mod congestion;
mod connection;
mod counts;
mod ecn;
mod limits;
mod one_way;
mod pacer;
mod persist;
mod rate;
mod recovery;
mod rtt;
mod scoreboard;
mod send_buffer;
mod small_queue;
mod timeout;
mod timers;
mod transmit;
mod usage;
mod validation;

use std::sync::Arc;

use fullpipe_cc::{Controller, IdleEvent, InitialSending, Phase, RestartEvent, Stack};
use fullpipe_units::{Span, Time};

pub use counts::SenderCounts;
pub use recovery::{Prr, PrrAck};
pub use rtt::RttEstimator;
pub use transmit::Allowance;

use crate::config::{Detector, LocalDrop, SenderConfig, SpuriousRule, TimerGrain};
use crate::episode::{Episode, EpisodeKind};
use crate::limit::{Chronograph, Limit, LimitTimes};
use crate::segment::Segment;
use artificial::Artificial;
use budget::Budget;
use connection::{Connection, Syn};
use counts::Record;
use ecn::Ecn;
use limits::Limits;
use one_way::OneWay;
use pacer::Pacer;
use persist::Persist;
use rate::Delivery;
use recovery::Recovery;
use rtt::RttUpdate;
use scoreboard::Scoreboard;
use send_buffer::{Need, SendBuffer};
use small_queue::SmallQueue;
use timers::Timers;
use usage::Usage;
use validation::WindowValidation;

/// Sender of one flow.
///
/// In memory as it stands here: what every segment and every ACK touches lies together, and what
/// few do lies behind it, so that a host of many flows misses few cache lines.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Sender<C = Stack> {
    connection: Connection,
    persist: Persist,
    limits: Limits,
    budget: Budget,
    pacer: Pacer,
    usage: Usage,
    chronograph: Chronograph,
    timers: Timers,
    last_sent: Time,
    delivery: Delivery,
    artificial: Option<Box<Artificial>>,
    one_way: Option<Box<OneWay>>,
    ecn: Ecn,
    cfg: Arc<SenderConfig>,
    rtt: RttEstimator,
    recovery: Recovery,
    record: Record,
    board: Scoreboard,
    writes: SendBuffer,
    cc: C,
    small_queue: SmallQueue,
    /// Pacing rate of window and RTT at the last ACK, bit/s of payload, where it is fixed then.
    fixed_rate: f64,
    validation: WindowValidation,
    limited: LimitTimes,
}

impl<C: Controller> Sender<C> {
    /// A sender before its start. `seed` feeds the random rule of artificial loss, nothing else.
    pub fn new(cfg: impl Into<Arc<SenderConfig>>, cc: C, seed: u64) -> Self {
        let cfg = cfg.into();
        let mut board = Scoreboard::default();
        let reads_rate = cfg.changeable || cc.reads_rate();
        if reads_rate {
            board.keep_losses();
        }
        if cfg.recovery.undo_by == SpuriousRule::Linux {
            board.undo_by_linux();
        }
        Self {
            connection: Connection::new(),
            board,
            rtt: match cfg.timers.grain {
                TimerGrain::Exact => RttEstimator::new(cfg.rto),
                TimerGrain::Wheel => RttEstimator::new(cfg.rto).with_ticks(cfg.timers.hz),
            },
            delivery: Delivery::new(reads_rate),
            one_way: ((cfg.changeable || cc.reads_owd()) && cfg.timestamps).then(Box::default),
            recovery: Recovery::new(&cfg.recovery),
            timers: Timers::new(&cfg.timers),
            persist: Persist::new(),
            limits: Limits::new(cfg.transfer, cfg.host.send_buffer),
            budget: Budget::new(cc.window() as u64, cfg.window.max),
            pacer: Pacer::new(
                cfg.pacing.rule,
                cfg.host.tso_segments,
                cfg.changeable || cfg.pacing.gains.is_some() || cc.sets_rate(),
            ),
            writes: SendBuffer::new(&cfg),
            ecn: Ecn::new(cfg.ecn, cc.needs_ecn()),
            usage: Usage::default(),
            chronograph: Chronograph::new(),
            limited: LimitTimes::default(),
            small_queue: SmallQueue::new(),
            fixed_rate: f64::INFINITY,
            validation: WindowValidation::new(cfg.window.validation),
            artificial: Artificial::new(cfg.artificial_loss.clone(), seed),
            last_sent: Time::ZERO,
            record: Record::default(),
            cfg,
            cc,
        }
    }

    /// The receiver held the ACK that comes next for so long after its latest arrival, where the
    /// wire says so. Of use to controllers that read the one-way delay.
    #[inline]
    pub fn note_held(&mut self, held: Span) {
        if let Some(one_way) = &mut self.one_way {
            one_way.note_held(held);
        }
    }

    // The connection.

    /// Opens the connection: with a SYN, or at once if the configuration has no handshake.
    pub fn start(&mut self, now: Time) {
        self.last_sent = now;
        self.chronograph.start(now);
        if self.cfg.handshake {
            self.connection.begin();
            return;
        }
        self.connection.open();
        if self.connection.is_ready() {
            self.open_controller(now);
        }
    }

    /// The SYN was answered by an ACK that echoes a stamp and advertises a window.
    ///
    /// Takes what it needs, so that a caller need not have the ACK in memory.
    #[cold]
    fn established(&mut self, now: Time, echo: Time, window_end: u64) {
        let Some(syn) = self.connection.syn() else {
            return; // a late copy: its window is out of date
        };
        self.limits.open(window_end);
        self.connection.open();
        if self.cfg.handshake_ack {
            self.connection.owe_ack();
        }
        self.timers.stop_rto();
        if syn.tries == 0 {
            let rtt = now - syn.at;
            self.first_sample(rtt);
            if let InitialSending::Spread { .. } = self.cfg.pacing.initial {
                let iw = self.cc.window() as u64;
                let gap = self.cfg.pacing.initial.spacing(rtt, iw);
                self.pacer.spread(now, iw, gap);
            }
        } else {
            self.answer_lost_syn(now, syn, echo);
        }
        self.open_controller(now);
    }

    fn first_sample(&mut self, rtt: Span) {
        self.rtt.update(RttUpdate {
            seq: 0,
            oldest: rtt,
            newest: rtt,
            una: 0,
            nxt: 0,
        });
    }

    /// The SYN left more than once: by RFC 6298 section 5.7 and RFC 5681 section 3.1 the timeout is
    /// 3 s and the window one segment. Linux believes the stamp, and takes the window only where
    /// two were sent again and the first one is not what was answered (`tcp_init_transfer`,
    /// `tcp_try_undo_spurious_syn`).
    #[cold]
    fn answer_lost_syn(&mut self, now: Time, syn: Syn, echo: Time) {
        let by_linux = self.cfg.recovery.undo_by == SpuriousRule::Linux;
        let ms = |span: Span| span.as_nanos() / 1_000_000;
        let echo = (by_linux && self.cfg.timestamps).then_some(echo);
        match echo {
            Some(echo) => {
                let rtt = ms(now.saturating_since(echo)).max(1);
                self.first_sample(Span::from_nanos(rtt * 1_000_000));
            }
            None => self.rtt.start_from(Span::from_secs(3)),
        }
        let needless = echo.is_some_and(|echo| ms(echo.saturating_since(syn.first)) == 0);
        if !by_linux || (syn.tries > 1 && !needless) {
            let ev = IdleEvent::new(now, Span::ZERO, 1.0, self.cc.ssthresh());
            self.cc.on_idle(&ev);
        }
    }

    fn open_controller(&mut self, now: Time) {
        let ev = self.restart_event(now);
        self.cc.on_established(&ev);
        self.refresh_budget();
        self.fix_rate();
        self.write();
    }

    fn restart_event(&self, now: Time) -> RestartEvent {
        let mut event = RestartEvent::new(now);
        event.idle = now.saturating_since(self.last_sent);
        event.srtt = self.rtt.srtt();
        event.snd_una = self.board.una();
        event.snd_nxt = self.board.nxt();
        event.app_limited = self.delivery.is_app_limited();
        event
    }

    /// The application writes: of a transfer of limited size
    /// ([`SenderConfig::transfer`](crate::config::SenderConfig::transfer)) the segments below `end`
    /// may be sent now. Poll for segments afterwards.
    pub fn write_until(&mut self, end: u64) {
        self.limits.extend_app(end);
    }

    /// No new data from now on.
    pub fn stop(&mut self) {
        self.limits.end_app(self.board.nxt());
    }

    /// True once every segment of a finite or stopped transfer is acknowledged.
    pub fn is_done(&self) -> bool {
        self.connection.is_open() && self.board.una() >= self.limits.app_end()
    }

    // The host's own queue.

    /// The host has a queue of its own. It calls [`Sender::entered_queue`] and
    /// [`Sender::left_queue`] from now on, so that the flow can keep that queue small, if it is to
    /// ([`HostConfig::small_queue`](crate::config::HostConfig::small_queue)).
    pub fn attach_queue(&mut self) {
        if self.cfg.host.small_queue {
            self.small_queue.attach();
            self.pacer.bind();
        }
    }

    /// A segment entered the queue of the host.
    #[inline]
    pub fn entered_queue(&mut self) {
        self.small_queue.enter();
    }

    /// A segment left the host. True if that lets another one in: poll for segments then.
    #[inline]
    pub fn left_queue(&mut self) -> bool {
        self.small_queue.leave()
    }

    /// The local queue refused `segment`, the last one polled: it never left the host. Of several
    /// that it refused at once the newest comes back first.
    pub fn refuse(&mut self, now: Time, segment: &Segment) {
        self.connection.stall();
        // Until there is room the pacer has nothing to wake up for.
        self.pacer.gate(false);
        if let Some(syn) = self.connection.syn() {
            self.connection.repeat_syn(syn, syn.tries);
            self.timers.stop_rto();
            return;
        }
        if segment.ends_handshake() {
            return self.connection.owe_ack();
        }
        self.record.local_stall();
        if segment.seq < self.board.una() {
            // A window probe: the next one is as good.
            self.record.window_probe_unsent();
            return self.arm_persist(now);
        }
        // The local queue held the sender back, not the window: it must not grow for this.
        self.note_usage(false);
        self.note_limit(now, Limit::LocalQueue);
        self.unsend(segment);
        match self.cfg.host.local_drop {
            LocalDrop::Ignore => {}
            LocalDrop::ExitSlowStart => {
                if self.cc.in_start_up() {
                    let w = self.cc.window();
                    self.cc.exit_start_up(now);
                    self.log(now, EpisodeKind::StartUpExit, w);
                }
            }
            LocalDrop::React => self.reduce_for_local_drop(now),
        }
        self.refresh_budget();
    }

    /// The local queue has room again.
    pub fn resume(&mut self) {
        self.connection.resume();
    }

    /// True between [`Sender::refuse`] and [`Sender::resume`].
    pub fn is_stalled(&self) -> bool {
        self.connection.is_stalled()
    }

    /// The host takes no more for now, although there may be more to send: it is the host that
    /// limits, not the window. A window in which that was so throughout does not grow, as in Linux
    /// (`tcp_cwnd_validate`) and RFC 7661.
    pub fn yielded(&mut self, now: Time) {
        self.note_usage(false);
        self.note_limit(now, Limit::LocalQueue);
    }

    /// How long each limit has held the flow back, from its start until `now`.
    pub fn limit_times(&self, now: Time) -> LimitTimes {
        self.chronograph.until(now, self.limited)
    }

    /// The congestion controller.
    pub fn controller(&self) -> &C {
        &self.cc
    }

    /// Window in force, segments: PRR's during a reduction, the controller's otherwise.
    #[inline]
    pub fn cwnd(&self) -> f64 {
        match self.recovery.prr_window() {
            Some(window) => window as f64,
            None => self.cc.window(),
        }
    }

    /// Payload of a segment, bytes.
    pub fn mss(&self) -> u32 {
        self.cfg.mss
    }

    /// Segments in the network (`pipe`).
    #[inline]
    pub fn flight(&self) -> u64 {
        self.board.pipe()
    }

    /// Recovery state.
    pub fn phase(&self) -> Phase {
        self.recovery.phase()
    }

    /// RTT estimates.
    #[inline]
    pub fn rtt(&self) -> &RttEstimator {
        &self.rtt
    }

    /// Packet-timed rounds since the start.
    #[inline]
    pub fn round(&self) -> u64 {
        self.delivery.rounds()
    }

    /// Segments delivered, as far as the sender knows.
    #[inline]
    pub fn delivered(&self) -> u64 {
        self.delivery.delivered()
    }

    /// First unacknowledged segment.
    pub fn una(&self) -> u64 {
        self.board.una()
    }

    /// Next new segment.
    pub fn nxt(&self) -> u64 {
        self.board.nxt()
    }

    /// Totals so far.
    pub fn counts(&self) -> &SenderCounts {
        self.record.counts()
    }

    /// A tail loss probe leaves with the next poll.
    pub fn probe_is_due(&self) -> bool {
        self.recovery.probe_is_due()
    }

    /// From here on the sender remembers each segment that it marks lost.
    pub fn keep_verdicts(&mut self) {
        self.board.keep_losses();
        self.record.keep_verdicts();
    }

    /// Segments that were marked lost and when, in order, since [`Sender::keep_verdicts`].
    pub fn verdicts(&self) -> &[(Time, u64)] {
        self.record.verdicts()
    }

    /// Reductions, timeouts and undos since the last call.
    pub fn drain_log(&mut self) -> impl Iterator<Item = Episode> + '_ {
        self.record.drain()
    }

    /// True if [`Sender::drain_log`] has something.
    #[inline]
    pub fn has_log(&self) -> bool {
        self.record.has_log()
    }

    // Shared by the stories.

    /// The window may have changed.
    #[inline]
    fn refresh_budget(&mut self) {
        match self.recovery.prr_window() {
            Some(window) => self.budget.set(window),
            None => self.budget.follow(self.cc.window()),
        }
        if self.recovery.is_testing_timeout() {
            self.bound_by_frto();
        }
    }

    #[cold]
    fn bound_by_frto(&mut self) {
        let sent = self.record.counts().sent;
        let most = self
            .board
            .pipe()
            .saturating_add(self.recovery.frto_quota(sent));
        self.budget.set(most.min(self.budget.window()));
    }

    /// The send buffer is for so many segments (`tcp_sndbuf_expand`).
    #[inline]
    fn buffered_window(&self) -> u64 {
        self.budget.window().max(self.recovery.reordering() + 1)
    }

    /// The application writes what fits into its send buffer; true if that is something.
    #[cold]
    fn write(&mut self) -> bool {
        if !self.writes.is_on() {
            return false;
        }
        let before = self.limits.end();
        let merged = match self.cfg.recovery.detector {
            Detector::NewReno => 0,
            _ => self.board.sacked_behind(),
        };
        let end = self.writes.write(Need {
            una: self.board.una(),
            merged,
            app_end: self.limits.app_end(),
            window: self.buffered_window(),
            // `bbr_sndbuf_expand`
            windows: if self.cc.sets_rate() { 3 } else { 2 },
        });
        self.limits.write(end);
        self.limits.end() > before
    }

    /// The window was what held the sender back, or not.
    #[inline]
    fn note_usage(&mut self, limited: bool) {
        self.usage.note(limited, self.board.una(), self.board.nxt());
    }

    /// From now on this is what holds the sender back.
    #[inline(always)]
    fn note_limit(&mut self, now: Time, limit: Limit) {
        self.chronograph.note(now, limit, &mut self.limited);
    }

    /// Logs a change of the window, which was `before`, segments.
    fn log(&mut self, at: Time, kind: EpisodeKind, before: f64) {
        self.record.episode(Episode {
            at,
            kind,
            before,
            after: self.cc.window(),
        });
    }
}
