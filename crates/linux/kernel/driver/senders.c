// SPDX-License-Identifier: GPL-2.0 OR MIT OR Apache-2.0
/* Senders, as calls around TCP's own functions see them: nothing here changes what TCP does, but for
   caps of the window, its initial value, and the end of a flow that stops. */
#include <linux/inet_diag.h>
#include <linux/tcp.h>
#include <net/inet_connection_sock.h>
#include <net/sock.h>
#include <net/tcp.h>

#include "fullpipe.h"

static struct fp_flow *flow_of(const struct sock *sk)
{
	u32 to, side;
	struct fp_flow *f;

	if (!fp_run.going || sk->sk_family != AF_INET)
		return NULL;
	to = ntohl(inet_sk(sk)->inet_daddr);
	side = (to >> 16) & 0xff;
	if (to >> 24 != 10 || (to & 0xffff) - 1 >= fp_nflows)
		return NULL;
	f = &fp_flows[(to & 0xffff) - 1];
	return f->present && side == (f->reverse ? 1 : 2) ? f : NULL;
}

/* As fullpipe_flow::Events. */
enum {
	EV_ACK = 1,
	EV_LOSS = 1 << 1,
	EV_MARK = 1 << 2,
	EV_TIMEOUT = 1 << 5,
	EV_UNDO = 1 << 6,
	EV_EXIT = 1 << 7,
	EV_PROBE = 1 << 8,
	EV_STALL = 1 << 9,
	EV_RETRANSMIT = 1 << 10,
};

static void window_is(struct fp_flow *f, u64 now, u32 w)
{
	if (now > fp_run.end)
		return;
	if (!f->seen) {
		f->seen = true;
		f->low = f->high = f->w = w;
		f->start_up = true;
		f->since = f->t.since = max(now, fp_run.measure);
	}
	if (now > f->since) {
		if (f->t.completed == FP_FOREVER)
			f->t.area += (u64)f->w * (now - f->since);
		f->since = now;
	}
	f->t.until = f->t.completed == FP_FOREVER ? now : f->t.until;
	f->w = w;
	f->low = min(f->low, w);
	f->high = max(f->high, w);
	if (now >= fp_run.measure)
		f->t.cwnd_max = max_t(u64, f->t.cwnd_max, w);
}

/* What a module like BBR tells ss(8) of its model of the path. */
static bool model_of(struct sock *sk, struct tcp_bbr_info *bbr)
{
	const struct tcp_congestion_ops *ops = inet_csk(sk)->icsk_ca_ops;
	union tcp_cc_info info;
	int kind = 0;

	if (!ops->get_info || !ops->get_info(sk, 1 << (INET_DIAG_BBRINFO - 1), &kind, &info) ||
	    kind != INET_DIAG_BBRINFO)
		return false;
	*bbr = info.bbr;
	return true;
}

/* enum bbr_mode, by the gains: that of the window tells ProbeRTT (1) and ProbeBW (2) from the two
   others, that of the pacing rate those. */
static u8 mode_of(const struct tcp_bbr_info *bbr)
{
	if (bbr->bbr_cwnd_gain <= 1 << 8)
		return 3;
	if (bbr->bbr_cwnd_gain <= 2 << 8)
		return 2;
	return bbr->bbr_pacing_gain <= 1 << 8;
}

#ifdef FP_BBR3
/* Startup, Drain, Down, Cruise, Refill, Up, ProbeRTT, by the phase. A module of version 1 may run on
   this kernel too. */
static u8 state_of(const struct tcp_bbr_info *bbr)
{
	static const u8 states[] = {
		[BBR_PHASE_STARTUP] = 0,	 [BBR_PHASE_DRAIN] = 1,
		[BBR_PHASE_PROBE_BW_DOWN] = 2,	 [BBR_PHASE_PROBE_BW_CRUISE] = 3,
		[BBR_PHASE_PROBE_BW_REFILL] = 4, [BBR_PHASE_PROBE_BW_UP] = 5,
		[BBR_PHASE_PROBE_RTT] = 6,
	};

	if (bbr->bbr_version != 3)
		return mode_of(bbr);
	return bbr->bbr_phase < ARRAY_SIZE(states) ? states[bbr->bbr_phase] : 0;
}

static void version3(struct fp_model *m, const struct tcp_bbr_info *bbr)
{
	m->version = bbr->bbr_version;
	m->max_bw = (u64)bbr->bbr_bw_hi_msb << 32 | bbr->bbr_bw_hi_lsb;
	m->short_bw = (u64)bbr->bbr_bw_lo_msb << 32 | bbr->bbr_bw_lo_lsb;
	m->long_inflight = bbr->bbr_inflight_hi;
	m->short_inflight = bbr->bbr_inflight_lo;
}
#else
static u8 state_of(const struct tcp_bbr_info *bbr)
{
	return mode_of(bbr);
}

static void version3(struct fp_model *m, const struct tcp_bbr_info *bbr)
{
}
#endif

static void model(const struct fp_flow *f, struct sock *sk)
{
	struct tcp_bbr_info bbr;
	struct fp_model m = {.mss = tcp_sk(sk)->mss_cache};

	if (!model_of(sk, &bbr))
		return;
	m.bw = (u64)bbr.bbr_bw_hi << 32 | bbr.bbr_bw_lo;
	m.min_rtt = bbr.bbr_min_rtt;
	m.pacing_gain = bbr.bbr_pacing_gain;
	m.cwnd_gain = bbr.bbr_cwnd_gain;
	m.state = state_of(&bbr);
	version3(&m, &bbr);
	fp_emit(FP_MODEL, f - fp_flows, &m, sizeof(m));
}

static void row(struct fp_flow *f, struct sock *sk, u64 now)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	u32 min_rtt = tcp_min_rtt(tp);
	struct fp_row r = {
		.time = now,
		.pacing = READ_ONCE(sk->sk_pacing_status) == SK_PACING_NONE ? 0 : sk->sk_pacing_rate,
		.delivered = tp->delivered ? tp->delivered - 1 : 0,
		.una = div64_u64(f->last_una + f->mss - 1, f->mss),
		.nxt = div64_u64(f->sent_high + f->mss - 1, f->mss),
		.srtt = (u64)tp->srtt_us * 125,
		.cwnd = tcp_snd_cwnd(tp),
		.low = f->low,
		.high = f->high,
		.ssthresh = tp->snd_ssthresh,
		.rtt = f->last_rtt,
		.min_rtt = min_rtt,
		.flight = tcp_packets_in_flight(tp),
		.retransmits = tp->total_retrans,
		.loss_events = f->t.loss_events,
		.timeouts = f->t.timeouts,
		.phase = inet_csk(sk)->icsk_ca_state,
		.start_up = tcp_in_slow_start(tp),
		.mss = f->mss,
		.stalls = f->t.stalls,
	};

	if (r.retransmits > f->last_retransmits)
		f->events |= EV_RETRANSMIT;
	f->last_retransmits = r.retransmits;
	if (r.stalls > f->last_stalls)
		f->events |= EV_STALL;
	f->last_stalls = r.stalls;
	r.events = f->events;
	fp_emit(FP_ROW, f - fp_flows, &r, sizeof(r));
	model(f, sk);
	f->events = 0;
	f->low = f->high = f->w;
	f->next_row = fp_run.step ? now + fp_run.step : 0;
}

static void episode(struct fp_flow *f, const struct sock *sk, u32 kind, u32 before, u32 after,
		    u16 event)
{
	struct fp_episode e = {fp_now(), kind, before, after, 0};

	if (e.time > fp_run.end)
		return;
	f->low = min(f->low, before);
	f->high = max(f->high, before);
	if (e.time >= fp_run.measure)
		f->t.cwnd_max = max_t(u64, f->t.cwnd_max, before);
	f->events |= event;
	f->touched = true;
	f->start_up = tcp_in_slow_start(tcp_sk(sk));
	if (f->brief)
		return;
	fp_emit(FP_EPISODE, f - fp_flows, &e, sizeof(e));
	if (fp_run.step != FP_FOREVER)
		f->next_row = 0;
}

/* Data that the application has handed over and the sender has not sent yet goes back. */
static void stop_sending(struct fp_flow *f, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct sk_buff *skb;

	while ((skb = tcp_send_head(sk)) != NULL) {
		tcp_unlink_write_queue(skb, sk);
		tcp_wmem_free_skb(sk, skb);
	}
	WRITE_ONCE(tp->write_seq, tp->snd_nxt);
	f->finite = f->sent_high;
	f->purged = true;
}

/* The newest segment that an ACK delivers left after so many deliveries: a round begins if that was
 * after the last one began. Counts are the kernel's, the SYN included.
 */
void fullpipe_delivered(struct sock *sk, u32 prior)
{
	struct fp_flow *f = flow_of(sk);

	if (!f || sk->sk_state == TCP_SYN_SENT || before(prior, f->round_began))
		return;
	f->round_began = tcp_sk(sk)->delivered;
	f->round_begins = true;
}

void fullpipe_acked(struct sock *sk)
{
	struct fp_flow *f = flow_of(sk);
	const struct tcp_sock *tp = tcp_sk(sk);
	struct tcp_bbr_info bbr;
	u64 now, una;
	u32 delivered;

	if (!f || !f->has_isn || sk->sk_state == TCP_SYN_SENT)
		return;
	now = fp_now();
	if (now > fp_run.end)
		return;
	if (f->cap)
		tcp_sk(sk)->snd_cwnd_clamp = f->cap;
	if (f->stop && now >= f->stop && !f->purged)
		stop_sending(f, sk);
	una = before(tp->snd_una, f->isn) ? 0 : fp_beyond(f->last_una, f->isn, tp->snd_una);
	delivered = tp->delivered ? tp->delivered - 1 : 0;
	if (una > f->last_una || delivered > f->last_delivered)
		f->events |= EV_ACK;
	f->last_una = una;
	f->last_delivered = delivered;
	if (f->finite && una >= f->finite && f->t.completed == FP_FOREVER) {
		window_is(f, now, f->w);
		f->t.completed = now;
	}
	window_is(f, now, tcp_snd_cwnd(tp));
	if (f->round_begins && !f->brief) {
		struct fp_round r = {now, delivered, tcp_snd_cwnd(tp)};

		fp_emit(FP_ROUND, f - fp_flows, &r, sizeof(r));
	}
	f->round_begins = false;
	if (f->start_up && !tcp_in_slow_start(tp) && !f->touched)
		episode(f, sk, 6, tcp_snd_cwnd(tp), tp->snd_ssthresh, EV_EXIT);
	f->start_up = tcp_in_slow_start(tp);
	f->touched = false;
	if (fp_run.step == FP_FOREVER || f->brief)
		return;
	if (model_of(sk, &bbr) && state_of(&bbr) != f->state) {
		/* Every change of state has a row, however the trace is decimated. */
		f->state = state_of(&bbr);
		f->next_row = 0;
	}
	if (now >= f->next_row)
		row(f, sk, now);
}

/* The sample of the newest segment, which the congestion module sees too. */
void fullpipe_rtt(struct sock *sk, long us)
{
	struct fp_flow *f = flow_of(sk);
	u64 now = fp_now();

	if (!f || now > fp_run.end || us < 0)
		return;
	f->last_rtt = us;
	if (now < fp_run.measure)
		return;
	fp_count(f->tally->rtt, us);
}

static void reduced(struct fp_flow *f, u64 now)
{
	if (now > fp_run.end)
		return;
	f->t.loss_events++;
	if (now >= fp_run.measure)
		f->t.loss_events_measured++;
}

/* kind 0: recovery after a loss, 1: a mark, 4: a timeout, 5: undone */
void fullpipe_changed(struct sock *sk, int kind, u32 before)
{
	struct fp_flow *f = flow_of(sk);
	const struct tcp_sock *tp = tcp_sk(sk);
	u64 now = fp_now();

	/* A SYN that is lost is no segment's timeout: the window it leaves behind is nobody's. */
	if (!f || now > fp_run.end || sk->sk_state == TCP_SYN_SENT)
		return;
	switch (kind) {
	case 0:
	case 1:
		reduced(f, now);
		episode(f, sk, kind, before, tp->snd_ssthresh, kind ? EV_MARK : EV_LOSS);
		break;
	case 4:
		f->t.timeouts++;
		episode(f, sk, kind, before, tcp_snd_cwnd(tp), EV_TIMEOUT);
		window_is(f, now, tcp_snd_cwnd(tp));
		if (fp_run.step != FP_FOREVER && !f->brief)
			row(f, sk, now);
		break;
	default:
		f->t.undone++;
		episode(f, sk, kind, before, tcp_snd_cwnd(tp), EV_UNDO);
	}
}

void fullpipe_probed(struct sock *sk)
{
	struct fp_flow *f = flow_of(sk);

	if (f && fp_now() <= fp_run.end) {
		f->t.probes++;
		f->events |= EV_PROBE;
	}
}

/* The first SYN leaves, or the handshake has ended: there is a window before there is an ACK. */
static void opening(struct fp_flow *f, struct sock *sk)
{
	u64 now = fp_now();

	if (now > fp_run.end || fp_run.step == FP_FOREVER || f->brief)
		return;
	if (!f->seen)
		f->low = f->high = tcp_snd_cwnd(tcp_sk(sk));
	row(f, sk, now);
}

void fp_opens(struct fp_flow *f, struct sock *sk)
{
	if (sk && sk_fullsock(sk))
		opening(f, sk);
}

void fullpipe_opened(struct sock *sk)
{
	struct fp_flow *f = flow_of(sk);

	if (f && f->has_isn)
		opening(f, sk);
}

u32 fullpipe_initial(const struct tcp_sock *tp, u32 kernels)
{
	struct fp_flow *f = flow_of((const struct sock *)tp);
	u32 w = f && f->initial ? f->initial : kernels;

	if (f && f->has_isn)
		window_is(f, fp_now(), w);
	return w;
}

/* The run is over: what is known only then. */
void fp_close_flow(struct fp_flow *f)
{
	if (f->seen && f->t.completed == FP_FOREVER && fp_run.end > f->since) {
		f->t.area += (u64)f->w * (fp_run.end - f->since);
		f->t.until = fp_run.end;
	}
	f->t.cwnd_max = f->t.cwnd_max ? f->t.cwnd_max : f->w; /* idle since before */
}
