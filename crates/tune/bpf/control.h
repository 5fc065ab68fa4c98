/* The congestion control: one set of programs under several names. */
#pragma once

#include "maps.h"

struct policy {
	const struct params *params;
	const struct table *table;
	const struct control *control;
};

/* Not off, and the daemon has given a sign of life. */
ALWAYS bool in_force(const struct control *c, u64 now_us)
{
	return !c->off && (c->keep || now_us <= c->heartbeat_us + c->patience_us);
}

/* What a flow runs now. False: standard. A law begins with numbers of its own and never reads those
 * of another, nor its own from before the standard ran. */
ALWAYS bool policy_of(struct sock *sk, struct state *s, struct policy *p)
{
	const struct control *c = control_of();
	u32 law = LAWS;

	p->control = c;
	if (c && s->generation != c->generation) {
		struct flow *f = storage_get(&flows, sk, NULL, 0);

		s->generation = c->generation;
		s->rule = f && f->arm == ARM_POLICY ? f->rule : 0;
		s->a = 0;
	}
	if (c && s->rule && in_force(c, tcp(sk)->tcp_mstamp)) {
		u32 at = (c->active & 1) * POLICIES + ((s->rule - 1) & (POLICIES - 1));

		p->params = map_lookup(&policies, &at);
		p->table = map_lookup(&tables, &at);
		if (p->params && p->table)
			law = least(p->params->law, LAWS);
	}
	if (s->law != law)
		begin(s, law, tcp(sk)->snd_nxt);
	return law != LAWS;
}

/* The cookie of a flow of ours, 0 before it has one. */
ALWAYS u64 cookie_of(struct sock *sk)
{
	struct flow *f = storage_get(&flows, sk, NULL, 0);

	return f ? f->cookie : 0;
}

/* What the option takes for `sk_max_pacing_rate`: four bytes, all ones for no ceiling. */
ALWAYS u32 pacing_option(u64 rate)
{
	return rate > 0xfffffffe ? ~0u : (u32)rate;
}

/* What the option is to be, for a flow that has the ceiling `now`; 0: it stays. A ceiling that the
 * program set itself stays where it is lower, and comes back else; one that it has set since stays.
 * `want`: 0 for none. */
ALWAYS u32 next_ceiling(struct flow *f, u64 now, u32 want)
{
	if (now != f->ceiling) {
		f->max_pacing = now;
		f->ceiling = 0;
	}
	/* What does not fit the option could not be given back. */
	if (want && want < f->max_pacing &&
	    (f->max_pacing == ~0ull || f->max_pacing < 0xffffffff)) {
		f->ceiling = want;
		return want;
	}
	if (!f->ceiling)
		return 0;
	f->ceiling = 0;
	return pacing_option(f->max_pacing);
}

/* The highest that is a ceiling. */
ALWAYS u32 ceiling_of(u64 wanted)
{
	return wanted < 0xfffffffe ? (u32)wanted : 0xfffffffe;
}

/* Puts the ceiling of the rule in force, or takes it away. */
ALWAYS void set_ceiling(struct sock *sk, struct state *s, u64 wanted)
{
	u32 want = ceiling_of(wanted), rate;
	struct flow *f;

	if (s->ceiling == want)
		return;
	f = storage_get(&flows, sk, NULL, 0);
	if (!f)
		return;
	s->ceiling = want;
	rate = next_ceiling(f, sk->sk_max_pacing_rate, want);
	if (!rate)
		return;
	if (!f->ceiling && f->pacing_status == SK_PACING_NONE)
		sk->sk_pacing_status = SK_PACING_NONE;
	set_option(sk, SOL_SOCKET, SO_MAX_PACING_RATE, &rate, sizeof(rate));
}

/* The flow's state is ours from now on. */
ALWAYS void take(struct sock *sk, struct state *s)
{
	struct tcp_sock *tp = tcp(sk);
	struct flow *f = storage_get(&flows, sk, NULL, 0);

	begin(s, LAWS, tp->snd_nxt);
	s->rule = 0;
	s->generation = ~0u;
	s->ceiling = f ? f->ceiling : 0;
	s->delivered_ce = tp->delivered_ce;
	s->magic = MAGIC;
}

/* While the initial window leaves: what spaces its segments. The kernel paces those from the
 * eleventh on by it and, at such a rate, hands over one at a time. */
ALWAYS u64 opening_rate(const struct params *p, const struct tcp_sock *tp)
{
	u64 rate;

	if (!p->spread_us || !p->initial_window || tp->data_segs_out)
		return p->pacing;
	rate = (u64)tp->mss_cache * p->initial_window * 1000000 / p->spread_us;
	rate = rate ? rate : 1;
	return p->pacing && p->pacing < rate ? p->pacing : rate;
}

SEC("struct_ops/fp_init")
int fp_init(u64 *ctx)
{
	struct sock *sk = (struct sock *)ctx[0];
	struct tcp_sock *tp = tcp(sk);
	struct state *s = state_of(sk);
	struct policy p = {};

	take(sk, s);
	count(COUNT_INIT);
	if (policy_of(sk, s, &p)) {
		u32 iw = p.params->initial_window;

		/* Only before the first data. */
		if (iw && !tp->data_segs_out)
			tp->snd_cwnd = least(most(iw, LEAST_WINDOW), 1024);
		set_ceiling(sk, s, opening_rate(p.params, tp));
		if (p.params->spread_us && p.params->initial_window && !tp->data_segs_out)
			s->bits |= BIT_OPENING;
		tell(sk, s, EVENT_INIT, cookie_of(sk), 0, 0);
	}
	return 0;
}

SEC("struct_ops/fp_release")
int fp_release(u64 *ctx)
{
	struct sock *sk = (struct sock *)ctx[0];
	struct state *s = state_of(sk);
	struct flow *f = storage_get(&flows, sk, NULL, 0);

	count(COUNT_RELEASED);
	if (s->magic != MAGIC)
		return 0;
	s->magic = 0;
	/* The ceiling goes with the order; that the sender paces at all can be taken back only here. */
	if (f && f->ceiling && f->ceiling == sk->sk_max_pacing_rate &&
	    f->pacing_status == SK_PACING_NONE)
		sk->sk_pacing_status = SK_PACING_NONE;
	tell(sk, s, EVENT_RELEASE, f ? f->cookie : 0, sk->__sk_common.skc_state, 0);
	return 0;
}

/* The window is what holds the sender back (RFC 9002 section 7.8). */
ALWAYS bool is_limited(struct tcp_sock *tp)
{
	if (BIT_FIELD(tp, is_cwnd_limited))
		return true;
	return tp->snd_cwnd < tp->snd_ssthresh && tp->snd_cwnd < 2 * tp->max_packets_out;
}

ALWAYS void write_window(struct tcp_sock *tp, const struct window *win, u32 clamp)
{
	u32 w = win->w;

	if (clamp && w > clamp)
		w = clamp;
	tp->snd_cwnd = w < LEAST_WINDOW ? LEAST_WINDOW : w;
}

ALWAYS void fill(struct ack *ack, struct sock *sk, u32 n)
{
	struct tcp_sock *tp = tcp(sk);
	u32 state = BIT_FIELD((struct inet_connection_sock *)sk, icsk_ca_state);

	ack->now = tp->tcp_mstamp;
	ack->n = least(n, MOST_ACKED);
	ack->srtt_us = tp->srtt_us >> 3;
	ack->una = tp->snd_una;
	ack->nxt = tp->snd_nxt;
	ack->delivered = tp->delivered;
	ack->open = state == 0;
	ack->recovering = state >= TCP_CA_CWR && state < 4;
	ack->may_grow = is_limited(tp);
}

SEC("struct_ops/fp_pkts_acked")
int fp_pkts_acked(u64 *ctx)
{
	struct sock *sk = (struct sock *)ctx[0];
	const struct ack_sample *sample = (const struct ack_sample *)ctx[1];
	struct tcp_sock *tp = tcp(sk);
	struct state *s = state_of(sk);
	struct policy p = {};
	struct window win, before;
	struct ack ack = {};

	if (s->magic != MAGIC)
		return 0;
	if (!policy_of(sk, s, &p)) {
		set_ceiling(sk, s, 0);
		return 0;
	}
	s->bits &= ~BIT_OPENING;
	set_ceiling(sk, s, p.params->pacing);
	win.w = tp->snd_cwnd;
	win.ssthresh = least(tp->snd_ssthresh, NO_LIMIT);
	before = win;
	fill(&ack, sk, sample->pkts_acked);
	if (sample->rtt_us > 0)
		ack.rtt_us = (u32)sample->rtt_us;
	if (observe(p.params, s, &win, &ack))
		tell(sk, s, EVENT_GAMMA, cookie_of(sk), win.ssthresh, ack.rtt_us);
	if (ack.recovering)
		return 0;
	if (win.w != before.w)
		write_window(tp, &win, p.params->clamp);
	if (win.ssthresh != before.ssthresh)
		tp->snd_ssthresh = win.ssthresh;
	return 0;
}

SEC("struct_ops/fp_cong_avoid")
int fp_cong_avoid(u64 *ctx)
{
	struct sock *sk = (struct sock *)ctx[0];
	struct tcp_sock *tp = tcp(sk);
	struct state *s = state_of(sk);
	struct policy p = {};
	struct window win;
	struct ack ack = {};
	bool ours;
	u32 n;

	if (s->magic != MAGIC)
		take(sk, s); /* Moved here by a way that left no room for init. */
	count(COUNT_ACKS);
	ours = policy_of(sk, s, &p);
	if (!ours)
		count(COUNT_STANDARD);
	s->delivered_ce = tp->delivered_ce;
	fill(&ack, sk, (u32)ctx[2]);
	n = ack.n;
	win.w = most(tp->snd_cwnd, 1);
	win.ssthresh = least(tp->snd_ssthresh, NO_LIMIT);
	if (ack.may_grow) {
		if (win.w < win.ssthresh) {
			if (ours)
				n = slow_start(p.params, s, &win, n);
			else if (n >= win.ssthresh - win.w) {
				n -= win.ssthresh - win.w;
				win.w = win.ssthresh;
			} else {
				win.w += n;
				n = 0;
			}
		}
		if (n) {
			ack.n = n;
			if (ours)
				increase(p.params, p.table, s, &win, &ack);
			else
				standard_increase(s, &win, n);
		}
	}
	write_window(tp, &win, ours ? p.params->clamp : 0);
	if (p.control && p.control->watched) {
		u64 cookie = cookie_of(sk);

		if (p.control->watched == ~0ull || p.control->watched == cookie)
			tell(sk, s, EVENT_ACK, cookie, (u32)ctx[2], ack.srtt_us);
	}
	return 0;
}

/* A segment that the sender's own device refused (a "sendstall") reduces the window like a loss.
 * It looks like this: the sender is below CWR, nothing is marked for undo, no earlier threshold is
 * kept (tcp_enter_cwr; a timeout keeps one), and no mark came back. */
ALWAYS bool is_stall(struct sock *sk, const struct state *s)
{
	struct tcp_sock *tp = tcp(sk);
	u32 state = BIT_FIELD((struct inet_connection_sock *)sk, icsk_ca_state);

	return state < TCP_CA_CWR && !tp->undo_marker && !tp->prior_ssthresh &&
	       tp->delivered_ce == s->delivered_ce;
}

SEC("struct_ops/fp_ssthresh")
int fp_ssthresh(u64 *ctx)
{
	struct sock *sk = (struct sock *)ctx[0];
	struct tcp_sock *tp = tcp(sk);
	struct state *s = state_of(sk);
	struct policy p = {};
	u32 w = most(tp->snd_cwnd, 1), ssthresh, kind;
	struct flow *f = storage_get(&flows, sk, NULL, 0);
	u32 state = BIT_FIELD((struct inet_connection_sock *)sk, icsk_ca_state);
	bool stall, timeout;

	if (s->magic != MAGIC)
		return most(w / 2, LEAST_WINDOW);
	stall = is_stall(sk, s);
	/* tcp_enter_loss keeps the threshold before it calls; tcp_enter_recovery does as well, but marks
	 * what it could undo first. */
	timeout = state < TCP_CA_CWR && !tp->undo_marker && tp->prior_ssthresh;
	if (!policy_of(sk, s, &p)) {
		s->b = RENO_DECREASE;
		ssthresh = keep(s, w, 32768);
		kind = EVENT_CUT;
	} else if (stall && p.params->flags & FLAG_SENDSTALL_IGNORE) {
		if (f)
			f->stalls_ignored++;
		count(COUNT_STALLS_IGNORED);
		tell(sk, s, EVENT_STALL_IGNORED, f ? f->cookie : 0, w, 0);
		return w;
	} else {
		ssthresh = decrease(p.params, p.table, s, w, tp->tcp_mstamp, timeout);
		kind = stall ? EVENT_STALL : timeout ? EVENT_TIMEOUT : EVENT_CUT;
	}
	if (stall) {
		if (f)
			f->stalls++;
		count(COUNT_STALLS);
	} else if (timeout) {
		if (f)
			f->timeouts++;
		count(COUNT_TIMEOUTS);
	} else {
		if (f)
			f->cuts++;
		count(COUNT_CUTS);
	}
	tell(sk, s, kind, f ? f->cookie : 0, ssthresh, 0);
	s->fraction = 0;
	return ssthresh;
}

SEC("struct_ops/fp_undo_cwnd")
int fp_undo_cwnd(u64 *ctx)
{
	struct sock *sk = (struct sock *)ctx[0];
	struct tcp_sock *tp = tcp(sk);
	struct state *s = state_of(sk);

	if (s->magic == MAGIC)
		tell(sk, s, EVENT_UNDO, cookie_of(sk), tp->prior_cwnd, 0);
	return most(most(tp->snd_cwnd, tp->prior_cwnd), LEAST_WINDOW);
}

SEC("struct_ops/fp_cwnd_event")
int fp_cwnd_event(u64 *ctx)
{
	struct sock *sk = (struct sock *)ctx[0];
	struct state *s = state_of(sk);

	if (s->magic == MAGIC && (u32)ctx[1] == CA_EVENT_TX_START) {
		/* After a pause the samples of the running round tell nothing. */
		s->round_least = NO_RTT;
		s->round_samples = 0;
		s->least = NO_RTT;
		s->samples = 0;
	}
	return 0;
}

SEC("struct_ops/fp_min_tso_segs")
int fp_min_tso_segs(u64 *ctx)
{
	struct sock *sk = (struct sock *)ctx[0];
	struct state *s = state_of(sk);
	u64 rate = s->ceiling;

	/* Two: the kernel's own (tcp_min_tso_segs). */
	if (s->magic != MAGIC || !rate)
		return 2;
	/* The kernel paces an initial window by two of them per round trip, which may be less. */
	if (s->bits & BIT_OPENING)
		sk->sk_pacing_rate = rate < sk->sk_max_pacing_rate ? rate : sk->sk_max_pacing_rate;
	/* A paced flow sends segment by segment. */
	return 1;
}

#define NAMED(id, text)                                                                       \
	SEC(".struct_ops.link")                                                               \
	struct tcp_congestion_ops id = {                                                      \
		.init = (void *)fp_init,                                                      \
		.release = (void *)fp_release,                                                \
		.ssthresh = (void *)fp_ssthresh,                                              \
		.cong_avoid = (void *)fp_cong_avoid,                                          \
		.cwnd_event = (void *)fp_cwnd_event,                                          \
		.pkts_acked = (void *)fp_pkts_acked,                                          \
		.undo_cwnd = (void *)fp_undo_cwnd,                                            \
		.min_tso_segs = (void *)fp_min_tso_segs,                                      \
		.name = text,                                                                 \
	}

/* What `ss -ti` shows. All run the same programs: what a flow does is its rule's. */
NAMED(name_aimd, "fp_aimd");
NAMED(name_highspeed, "fp_highspeed");
NAMED(name_scalable, "fp_scalable");
NAMED(name_htcp, "fp_htcp");
NAMED(name_bic, "fp_bic");
NAMED(name_cubic, "fp_cubic");
NAMED(name_westwood, "fp_westwood");
NAMED(name_vegas, "fp_vegas");
NAMED(name_fast, "fp_fast");
NAMED(name_hslp, "fp_hslp");
