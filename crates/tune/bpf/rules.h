/* Which rule a new flow is of (sock_ops). */
#pragma once

#include "control.h"

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
	if (!sk)
		return 1;
	storage_get(&sides, sk, &e.side, BPF_SK_STORAGE_GET_F_CREATE);
	if (!c || !in_force(c, ktime_get_ns() / 1000))
		return 1;
	tp = to_tcp_sock(sk);
	if (!tp || !ends_of((struct sock_common *)tp, &e))
		return 1;
	namespace = ((struct sock_common *)tp)->skc_net.net->ns.inum;
	if (c->namespace && c->namespace != namespace)
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
