/* Initial Spreading: when the segments of the first window leave (tc). */
#pragma once

#include "control.h"

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
