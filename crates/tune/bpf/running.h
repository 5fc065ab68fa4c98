/* Running flows: lists them and moves them (iter/tcp). */
#pragma once

#include "rules.h"

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
	u32 *side;

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
	side = storage_get(&sides, tp, NULL, 0);
	if (side)
		l.side = *side;
	if (f) {
		l.has_flow = 1;
		l.flow = *f;
	}
	seq_write(ctx->meta->seq, &l, sizeof(l));
	return 0;
}
