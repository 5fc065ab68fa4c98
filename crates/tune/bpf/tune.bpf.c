/* The tuner's kernel side. One congestion control under several names, a program that chooses it
 * for new flows (sock_ops), and one that lists running flows and moves them (iter/tcp). */

#include "kernel.h"
#include "law.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* "fpcc": the flow's state is ours. Callbacks can run before init (the SYN's ACK). */
#define MAGIC 0x63637066

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(max_entries, 2 * NETWORKS);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct prefix);
	__type(value, u64); /* a bit per rule */
} prefixes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 2 * RULES);
	__type(key, u32);
	__type(value, struct match);
} matches SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 2 * POLICIES);
	__type(key, u32);
	__type(value, struct params);
} policies SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 2 * POLICIES);
	__type(key, u32);
	__type(value, struct table);
} tables SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct control);
} controls SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, s32);
	__type(value, struct flow);
} flows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, u64);
	__type(value, struct order);
} orders SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, COUNTERS);
	__type(key, u32);
	__type(value, u64);
} counters SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4 << 20);
} events SEC(".maps");

ALWAYS void count(u32 which)
{
	u64 *n = map_lookup(&counters, &which);

	if (n)
		*n += 1;
}

ALWAYS struct control *control_of(void)
{
	u32 zero = 0;

	return map_lookup(&controls, &zero);
}

ALWAYS struct tcp_sock *tcp(struct sock *sk)
{
	return (struct tcp_sock *)sk;
}

ALWAYS struct state *state_of(struct sock *sk)
{
	return (struct state *)((struct inet_connection_sock *)sk)->icsk_ca_priv;
}

/* --- Records --------------------------------------------------------------------------------- */

ALWAYS void tell(struct sock *sk, struct state *s, u32 kind, u64 cookie, u32 value, u32 rtt)
{
	struct tcp_sock *tp = tcp(sk);
	struct event *e = ringbuf_reserve(&events, sizeof(*e), 0);

	if (!e) {
		count(COUNT_RECORDS_LOST);
		return;
	}
	e->time_us = tp->tcp_mstamp;
	e->cookie = cookie;
	e->kind = kind;
	e->rule = s->rule;
	e->cwnd = tp->snd_cwnd;
	e->fraction = s->fraction;
	e->ssthresh = tp->snd_ssthresh;
	e->value = value;
	e->rtt_us = rtt;
	e->a = s->a;
	e->b = s->b;
	e->flight = tp->packets_out;
	e->delivered = tp->delivered;
	e->state = BIT_FIELD((struct inet_connection_sock *)sk, icsk_ca_state);
	/* Waking the reader takes fifty times as long as the record: he comes by himself. */
	ringbuf_submit(e, kind == EVENT_ACK ? BPF_RB_NO_WAKEUP : 0);
}

/* --- The congestion control ------------------------------------------------------------------ */

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

/* --- Which rule a flow is of ------------------------------------------------------------------ */

struct ends {
	u8 local[16];
	u8 remote[16];
	u16 local_port;
	u16 remote_port;
	u32 side;
};

ALWAYS void mapped(u8 *to, u32 v4)
{
	u32 *words = (u32 *)to;

	words[0] = 0;
	words[1] = 0;
	words[2] = __builtin_bswap32(0xffff);
	words[3] = v4;
}

/* The kernel lays out a socket so that its common part comes first. */
ALWAYS bool ends_of(struct sock_common *skc, struct ends *e)
{
	u32 family = skc->skc_family;

	if (family == AF_INET) {
		mapped(e->local, skc->skc_rcv_saddr);
		mapped(e->remote, skc->skc_daddr);
	} else if (family == AF_INET6) {
		probe_read_kernel(e->local, 16, &skc->skc_v6_rcv_saddr);
		probe_read_kernel(e->remote, 16, &skc->skc_v6_daddr);
	} else {
		return false;
	}
	e->local_port = skc->skc_num;
	e->remote_port = __builtin_bswap16(skc->skc_dport);
	return true;
}

/* Whether a range holds the port of the end that was connected to, or either. Without branches: the
 * verifier follows every one. */
ALWAYS u32 in_range(const struct range *r, u32 local, u32 remote, u32 side)
{
	u32 low = r->low, high = r->high;
	u32 at_local = (low <= local) & (local <= high) & (side != SIDE_ACTIVE);
	u32 at_remote = (low <= remote) & (remote <= high) & (side != SIDE_PASSIVE);

	return at_local | at_remote;
}

/* Whether a rule is for a flow of these ports and this end. Not static: verified once, not once per
 * call. */
__attribute__((noinline)) int rule_fits(u32 at, u32 local, u32 remote, u32 side)
{
	struct match *m = map_lookup(&matches, &at);
	u32 fits;

	if (!m || !(m->flags & MATCH_USED))
		return 0;
	if (m->side != SIDE_EITHER && m->side != side)
		return 0;
	fits = !m->ranges;
	for (u32 k = 0; k < RANGES; k++)
		fits |= (k < m->ranges) & in_range(&m->range[k], local, remote, m->side);
	return fits;
}

/* The first rule, in order, that a flow matches: its number plus 1, or 0. */
__attribute__((noinline)) int first_rule(u64 rules, u32 half, u32 ports, u32 side)
{
	for (u32 rule = 0; rule < RULES; rule++) {
		if (!(rules >> rule & 1))
			continue;
		if (rule_fits((half & 1) * RULES + rule, ports >> 16, ports & 0xffff, side))
			return rule + 1;
	}
	return 0;
}

ALWAYS u32 classify(const struct ends *e, u32 half)
{
	struct prefix key = {};
	u64 *rules;

	key.bits = 8 + 128;
	key.half = half & 1;
	__builtin_memcpy(key.address, e->remote, 16);
	rules = map_lookup(&prefixes, &key);
	if (!rules)
		return 0;
	return first_rule(*rules, half, (u32)e->local_port << 16 | e->remote_port, e->side);
}

/* Whether the flow's ports are never touched. */
__attribute__((noinline)) int never_tuned(u32 local, u32 remote)
{
	struct control *c = control_of();
	u32 never = 0;

	if (!c)
		return 1;
	for (u32 k = 0; k < RANGES; k++)
		never |= (k < c->never_ranges) &
			 in_range(&c->never[k], local, remote, SIDE_EITHER);
	return never;
}

ALWAYS void tell_opened(const struct ends *e, const struct flow *f, u32 namespace, s32 done)
{
	struct opened *o = ringbuf_reserve(&events, sizeof(*o), 0);

	if (!o) {
		count(COUNT_RECORDS_LOST);
		return;
	}
	o->time_us = ktime_get_ns() / 1000;
	o->cookie = f->cookie;
	o->kind = f->arm == ARM_CONTROL ? EVENT_CONTROL : EVENT_MATCHED;
	o->rule = f->rule;
	__builtin_memcpy(o->local, e->local, 16);
	__builtin_memcpy(o->remote, e->remote, 16);
	o->local_port = e->local_port;
	o->remote_port = e->remote_port;
	o->done = done;
	o->namespace = namespace;
	o->flow = *f;
	ringbuf_submit(o, 0);
}

/* What a flow has before it is touched. */
ALWAYS void remember(struct flow *f, struct tcp_sock *tp, u64 cookie)
{
	struct sock *sk = &tp->inet_conn.icsk_inet.sk;

	f->cookie = cookie;
	f->max_pacing = sk->sk_max_pacing_rate;
	f->pacing_status = sk->sk_pacing_status;
	f->locks = BIT_FIELD(sk, sk_userlocks) & (LOCK_SEND | LOCK_RECEIVE);
	f->send_buffer = sk->sk_sndbuf;
	f->receive_buffer = sk->sk_rcvbuf;
	probe_read_kernel(f->before, sizeof(f->before), tp->inet_conn.icsk_ca_ops->name);
}

/* A size that the program set itself stays, before and since. Zero: what was given is given back by
 * the daemon. */
ALWAYS void give_buffers(void *ctx, struct tcp_sock *tp, struct flow *f, u32 send, u32 receive)
{
	struct sock *sk = &tp->inet_conn.icsk_inet.sk;
	u32 locks = BIT_FIELD(sk, sk_userlocks), bytes;

	if (!send) {
		f->given_send = 0;
	} else if (f->given_send ? f->given_send == sk->sk_sndbuf : !(locks & LOCK_SEND)) {
		if (!f->given_send)
			f->send_buffer = sk->sk_sndbuf;
		bytes = send;
		set_option(ctx, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
		f->given_send = sk->sk_sndbuf;
	}
	if (!receive) {
		f->given_receive = 0;
	} else if (f->given_receive ? f->given_receive == sk->sk_rcvbuf : !(locks & LOCK_RECEIVE)) {
		if (!f->given_receive)
			f->receive_buffer = sk->sk_rcvbuf;
		bytes = receive;
		set_option(ctx, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
		f->given_receive = sk->sk_rcvbuf;
	}
}

/* The ceiling of a flow that runs an algorithm of the kernel. */
ALWAYS void give_ceiling(void *ctx, struct tcp_sock *tp, struct flow *f, u32 want)
{
	u32 rate = next_ceiling(f, tp->inet_conn.icsk_inet.sk.sk_max_pacing_rate, want);

	if (rate)
		set_option(ctx, SOL_SOCKET, SO_MAX_PACING_RATE, &rate, sizeof(rate));
}

/* What a rule whose flows run an algorithm of the kernel has; 0: none. */
ALWAYS u32 ceiling_of_rule(u32 active, u32 policy)
{
	u32 at = (active & 1) * POLICIES + (policy & (POLICIES - 1));
	const struct params *p = map_lookup(&policies, &at);

	return p && p->law >= LAWS && p->pacing ? ceiling_of(p->pacing) : 0;
}

/* New flows, both ends, when the connection is established. */
SEC("sockops")
int fp_established(struct bpf_sock_ops *ctx)
{
	struct control *c = control_of();
	struct ends e = {};
	struct bpf_sock *sk = ctx->sk;
	struct tcp_sock *tp;
	struct flow *f;
	struct match *m;
	u32 rule, at, namespace;
	u64 cookie;
	s32 done;

	if (ctx->op == BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB)
		e.side = SIDE_ACTIVE;
	else if (ctx->op == BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB)
		e.side = SIDE_PASSIVE;
	else
		return 1;
	if (!c || !sk || !in_force(c, ktime_get_ns() / 1000))
		return 1;
	tp = to_tcp_sock(sk);
	if (!tp || !ends_of((struct sock_common *)tp, &e))
		return 1;
	if (never_tuned(e.local_port, e.remote_port))
		return 1;
	rule = classify(&e, c->active);
	if (!rule)
		return 1;
	at = (c->active & 1) * RULES + ((rule - 1) & (RULES - 1));
	m = map_lookup(&matches, &at);
	if (!m)
		return 1;
	if (m->flags & MATCH_RESPECT_APP &&
	    BIT_FIELD((struct inet_connection_sock *)tp, icsk_ca_setsockopt)) {
		count(COUNT_APP_CHOICE);
		return 1;
	}
	namespace = ((struct sock_common *)tp)->skc_net.net->ns.inum;
	cookie = socket_cookie(ctx);
	/* Zero, and nobody else looks at it before the socket is unlocked. */
	f = storage_get(&flows, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);
	if (!f)
		return 1;
	remember(f, tp, cookie);
	f->rule = (m->policy & (POLICIES - 1)) + 1;
	f->how = HOW_NEW;
	/* The same flow is always of the same arm; neighbours are not. */
	if ((u32)(cookie * 0x9e3779b97f4a7c15ull >> 48) >= m->share) {
		f->arm = ARM_CONTROL;
		count(COUNT_CONTROL);
		tell_opened(&e, f, namespace, 0);
		return 1;
	}
	count(COUNT_MATCHED);
	give_buffers(ctx, tp, f, m->send_buffer, m->receive_buffer);
	done = (s32)set_option(ctx, SOL_TCP, TCP_CONGESTION, m->algorithm, sizeof(m->algorithm));
	if (done) {
		count(COUNT_REFUSED);
	} else {
		__builtin_memcpy(f->given, m->algorithm, sizeof(f->given));
		at = ceiling_of_rule(c->active, m->policy);
		if (at)
			give_ceiling(ctx, tp, f, at);
	}
	tell_opened(&e, f, namespace, done);
	return 1;
}

/* --- Initial Spreading ------------------------------------------------------------------------ */

/* TCP does not pace its first ten segments (tcp_update_skb_after_send): a packet scheduler does. */

/* When the next segment of a flow leaves, ns. */
struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, s32);
	__type(value, u64);
} departures SEC(".maps");

struct opening {
	u64 gap_ns;
	u32 rule;
	u32 lane;
};

/* Whether the packet is of an initial window that is to be spread. */
ALWAYS bool opens(struct bpf_sock *sk, struct opening *o)
{
	struct control *c = control_of();
	const struct params *p;
	struct tcp_sock *tp;
	struct flow *f;
	u32 at;

	f = storage_get(&flows, sk, NULL, 0);
	if (!f || f->arm != ARM_POLICY || !f->rule || !c ||
	    !in_force(c, ktime_get_ns() / 1000))
		return false;
	tp = to_tcp_sock(sk);
	if (!tp)
		return false;
	at = (c->active & 1) * POLICIES + ((f->rule - 1) & (POLICIES - 1));
	p = map_lookup(&policies, &at);
	if (!p || !p->spread_us || !p->initial_window)
		return false;
	/* The packet is counted before it gets here. */
	if (!tp->data_segs_out || tp->data_segs_out > p->initial_window)
		return false;
	o->gap_ns = (u64)p->spread_us * 1000 / p->initial_window;
	o->rule = f->rule;
	o->lane = (u32)(f->cookie * 0x9e3779b97f4a7c15ull >> 32) % CLASSES;
	return true;
}

/* Which class of sch_htb a packet is of; 0: none. */
SEC("tc")
int fp_class(struct __sk_buff *skb)
{
	struct bpf_sock *sk = skb->sk;
	struct opening o = {};

	if (!sk)
		return 0;
	sk = full_sock(sk);
	if (!sk || !opens(sk, &o))
		return 0;
	count(COUNT_SPREAD);
	return (int)((u32)QUEUE << 16 | (o.rule * CLASSES + o.lane));
}

/* When a packet leaves, which sch_fq keeps. */
SEC("tc")
int fp_departure(struct __sk_buff *skb)
{
	struct bpf_sock *sk = skb->sk;
	u64 *next, zero = 0, at = ktime_get_ns();
	struct opening o = {};

	if (!sk)
		return 0;
	sk = full_sock(sk);
	if (!sk || !opens(sk, &o))
		return 0;
	next = storage_get(&departures, sk, &zero, BPF_SK_STORAGE_GET_F_CREATE);
	if (!next)
		return 0;
	if (at < *next)
		at = *next;
	if (at < skb->tstamp)
		at = skb->tstamp;
	*next = at + o.gap_ns * most(skb->gso_segs, 1);
	skb->tstamp = at;
	count(COUNT_SPREAD);
	return 0;
}

/* --- Running flows ---------------------------------------------------------------------------- */

ALWAYS s32 adopt(struct tcp_sock *tp, struct flow *f, struct order *o, u64 cookie)
{
	s32 done;

	if (!f) {
		struct flow fresh = {};

		remember(&fresh, tp, cookie);
		fresh.how = HOW_ADOPTED;
		f = storage_get(&flows, tp, &fresh, BPF_SK_STORAGE_GET_F_CREATE);
		if (!f)
			return -12; /* ENOMEM */
	} else if (f->arm == ARM_CONTROL) {
		/* Its program may have changed what it had when it began. */
		remember(f, tp, cookie);
	}
	f->rule = o->rule;
	f->arm = ARM_POLICY;
	give_buffers(tp, tp, f, o->send_buffer, o->receive_buffer);
	done = (s32)set_option(tp, SOL_TCP, TCP_CONGESTION, o->algorithm, sizeof(o->algorithm));
	if (!done) {
		__builtin_memcpy(f->given, o->algorithm, sizeof(f->given));
		count(COUNT_MATCHED);
		if (o->ceiling)
			give_ceiling(tp, tp, f, o->ceiling == ~0u ? 0 : o->ceiling);
	}
	return done;
}

/* Buffers are the daemon's: an option would end their tuning. */
ALWAYS s32 release(struct tcp_sock *tp, struct flow *f, struct order *o)
{
	u64 before = f ? f->max_pacing : o->max_pacing;
	u32 ceiling = f ? f->ceiling : o->ceiling, rate;
	s32 done;

	done = (s32)set_option(tp, SOL_TCP, TCP_CONGESTION, o->algorithm, sizeof(o->algorithm));
	if (done)
		return done;
	if (ceiling && tp->inet_conn.icsk_inet.sk.sk_max_pacing_rate == ceiling) {
		rate = pacing_option(before);
		set_option(tp, SOL_SOCKET, SO_MAX_PACING_RATE, &rate, sizeof(rate));
	}
	storage_delete(&flows, tp);
	return 0;
}

/* Where the daemon cannot reach the socket itself: the size comes back, its tuning does not. */
ALWAYS s32 resize(struct tcp_sock *tp, struct order *o)
{
	u32 bytes;
	s32 done = 0;

	if (o->send_buffer) {
		bytes = o->send_buffer;
		done = (s32)set_option(tp, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	}
	if (o->receive_buffer && !done) {
		bytes = o->receive_buffer;
		done = (s32)set_option(tp, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
	}
	return done;
}

SEC("iter/tcp")
int fp_flows(struct bpf_iter__tcp *ctx)
{
	struct sock_common *skc = ctx->sk_common;
	struct listing l = {};
	struct tcp_sock *tp;
	struct order *o;
	struct ends e = {};
	const struct state *s;
	struct flow *f;

	if (!skc)
		return 0;
	tp = to_tcp_sock(skc);
	if (!tp)
		return 0;
	if (!ends_of(skc, &e))
		return 0;
	l.cookie = socket_cookie(tp);
	l.state = skc->skc_state;
	__builtin_memcpy(l.local, e.local, 16);
	__builtin_memcpy(l.remote, e.remote, 16);
	l.local_port = e.local_port;
	l.remote_port = e.remote_port;
	l.done = 1;
	f = storage_get(&flows, tp, NULL, 0);
	o = map_lookup(&orders, &l.cookie);
	if (o) {
		if (o->action == ORDER_ADOPT)
			l.done = adopt(tp, f, o, l.cookie);
		else if (o->action == ORDER_RELEASE)
			l.done = release(tp, f, o);
		else if (o->action == ORDER_RESIZE)
			l.done = resize(tp, o);
		f = storage_get(&flows, tp, NULL, 0);
	}
	probe_read_kernel(l.algorithm, sizeof(l.algorithm), tp->inet_conn.icsk_ca_ops->name);
	l.chosen = BIT_FIELD((struct inet_connection_sock *)tp, icsk_ca_setsockopt);
	l.cwnd = tp->snd_cwnd;
	l.ssthresh = tp->snd_ssthresh;
	l.srtt_us = tp->srtt_us;
	l.mss = tp->mss_cache;
	l.retransmitted = tp->total_retrans;
	l.bytes_acked = tp->bytes_acked;
	l.max_pacing = tp->inet_conn.icsk_inet.sk.sk_max_pacing_rate;
	l.send_buffer = tp->inet_conn.icsk_inet.sk.sk_sndbuf;
	l.receive_buffer = tp->inet_conn.icsk_inet.sk.sk_rcvbuf;
	l.locks = BIT_FIELD((struct sock *)tp, sk_userlocks) & (LOCK_SEND | LOCK_RECEIVE);
	l.pacing_status = tp->inet_conn.icsk_inet.sk.sk_pacing_status;
	s = (const struct state *)tp->inet_conn.icsk_ca_priv;
	if (s->magic == MAGIC) {
		l.a = s->a;
		l.b = s->b;
	}
	l.inode = tp->inet_conn.icsk_inet.sk.sk_socket->file->f_inode->i_ino;
	l.cgroup = tp->inet_conn.icsk_inet.sk.sk_cgrp_data.cgroup->kn->id;
	if (f) {
		l.has_flow = 1;
		l.flow = *f;
	}
	seq_write(ctx->meta->seq, &l, sizeof(l));
	return 0;
}
