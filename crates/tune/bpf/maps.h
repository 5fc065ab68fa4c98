/* What the kernel side shares with the daemon: policy, counters and records. */
#pragma once

#include "kernel.h"
#include "law.h"

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

/* Which end opened the connection, of all that were seen to begin: rules come and go. */
struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, s32);
	__type(value, u32);
} sides SEC(".maps");

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
