/* A record of every ACK of chosen flows, whatever algorithm they run: the kernel's own tracepoint
 * tcp:tcp_probe, which is passed before an ACK is processed. Loaded only while somebody watches. */

#include "kernel.h"
#include "law.h"
#include "seen.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* As in tune.bpf.c: the state of an algorithm of ours. */
#define MAGIC 0x63637066

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct filter);
} filters SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(max_entries, 256);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct network);
	__type(value, u32);
} networks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, u64);
	__type(value, struct known);
} flows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} missed SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 8 << 20);
} events SEC(".maps");

ALWAYS void miss(void)
{
	u32 zero = 0;
	u64 *n = map_lookup(&missed, &zero);

	if (n)
		__sync_fetch_and_add(n, 1);
}

ALWAYS void mapped(u8 *to, u32 v4)
{
	u32 *words = (u32 *)to;

	words[0] = 0;
	words[1] = 0;
	words[2] = __builtin_bswap32(0xffff);
	words[3] = v4;
}

ALWAYS void addresses(struct sock *sk, u8 *local, u8 *remote)
{
	struct sock_common *skc = &sk->__sk_common;

	if (skc->skc_family == AF_INET) {
		mapped(local, skc->skc_rcv_saddr);
		mapped(remote, skc->skc_daddr);
	} else {
		probe_read_kernel(local, 16, &skc->skc_v6_rcv_saddr);
		probe_read_kernel(remote, 16, &skc->skc_v6_daddr);
	}
}

ALWAYS bool is_wanted(struct sock *sk)
{
	u32 zero = 0, hits = 0;
	struct filter *f = map_lookup(&filters, &zero);
	struct network key = { .bits = 128 };
	u16 near = sk->__sk_common.skc_num;
	u16 far = __builtin_bswap16(sk->__sk_common.skc_dport);
	u8 local[16];

	if (!f || !f->on)
		return false;
	addresses(sk, local, key.address);
	if (f->networks && !map_lookup(&networks, &key))
		return false;
	for (u32 k = 0; k < WATCHED_PORTS; k++)
		hits |= (k < f->ports) & ((f->port[k] == near) | (f->port[k] == far));
	return !f->ports || hits;
}

ALWAYS bool meet(struct sock *sk, struct tcp_sock *tp, u64 cookie)
{
	struct met *m = ringbuf_reserve(&events, sizeof(*m), 0);

	if (!m)
		return false;
	m->time_us = ktime_get_ns() / 1000;
	m->cookie = cookie;
	m->kind = SEEN_MET;
	m->mss = tp->mss_cache;
	addresses(sk, m->local, m->remote);
	m->local_port = sk->__sk_common.skc_num;
	m->remote_port = __builtin_bswap16(sk->__sk_common.skc_dport);
	m->family = sk->__sk_common.skc_family;
	probe_read_kernel(m->algorithm, sizeof(m->algorithm), tp->inet_conn.icsk_ca_ops->name);
	ringbuf_submit(m, BPF_RB_NO_WAKEUP);
	return true;
}

SEC("tp_btf/tcp_probe")
int fp_watch(u64 *ctx)
{
	struct sock *sk = (struct sock *)ctx[0];
	struct tcp_sock *tp = to_tcp_sock(sk);
	struct known fresh = {}, *k;
	const struct state *s;
	struct seen *e;
	u64 cookie;

	if (!tp)
		return 0;
	cookie = socket_cookie(sk);
	k = map_lookup(&flows, &cookie);
	if (!k) {
		fresh.watched = is_wanted(sk);
		map_update(&flows, &cookie, &fresh, 0);
		k = map_lookup(&flows, &cookie);
	}
	if (!k || !k->watched)
		return 0;
	/* Of a flow that only receives there is nothing to tell. */
	if (k->una == tp->snd_una && k->nxt == tp->snd_nxt && k->cwnd == tp->snd_cwnd &&
	    k->ssthresh == tp->snd_ssthresh && k->delivered == tp->delivered &&
	    k->retransmitted == tp->total_retrans && k->timeouts == tp->total_rto &&
	    k->state == BIT_FIELD((struct inet_connection_sock *)tp, icsk_ca_state))
		return 0;
	if (!k->told) {
		if (!meet(sk, tp, cookie)) {
			miss();
			return 0;
		}
		k->told = 1;
	}
	k->una = tp->snd_una;
	k->nxt = tp->snd_nxt;
	k->cwnd = tp->snd_cwnd;
	k->ssthresh = tp->snd_ssthresh;
	k->delivered = tp->delivered;
	k->retransmitted = tp->total_retrans;
	k->timeouts = tp->total_rto;
	k->state = BIT_FIELD((struct inet_connection_sock *)tp, icsk_ca_state);
	e = ringbuf_reserve(&events, sizeof(*e), 0);
	if (!e) {
		miss();
		return 0;
	}
	e->time_us = ktime_get_ns() / 1000;
	e->cookie = cookie;
	e->kind = SEEN_ACK;
	s = (const struct state *)tp->inet_conn.icsk_ca_priv;
	e->ours = s->magic == MAGIC;
	e->fraction = e->ours ? s->fraction : 0;
	e->a = e->ours ? s->a : 0;
	e->b = e->ours ? s->b : 0;
	e->cwnd = k->cwnd;
	e->ssthresh = k->ssthresh;
	e->srtt_us = tp->srtt_us;
	e->rtt_us = tp->rack.rtt_us;
	e->min_rtt_us = tp->rtt_min.s[0].v;
	e->packets_out = tp->packets_out;
	e->sacked_out = tp->sacked_out;
	e->lost_out = tp->lost_out;
	e->retrans_out = tp->retrans_out;
	e->delivered = k->delivered;
	e->delivered_ce = tp->delivered_ce;
	e->retransmitted = k->retransmitted;
	e->timeouts = k->timeouts;
	e->mss = tp->mss_cache;
	e->state = k->state;
	e->pacing = tp->inet_conn.icsk_inet.sk.sk_pacing_rate;
	e->bytes_acked = tp->bytes_acked;
	ringbuf_submit(e, BPF_RB_NO_WAKEUP);
	return 0;
}
