// SPDX-License-Identifier: GPL-2.0 OR MIT OR Apache-2.0
/*
 * What holds a sender back. TCP_INFO knows three times (tcp_chrono_start(): busy, receive window,
 * send buffer); what stood in the way of the next segment follows from the socket at any time, in
 * the order in which tcp_write_xmit() asks. Between two events of a flow nothing changes, so each
 * stretch is counted at its end: before an ACK reaches the host, before a packet of the flow leaves
 * the host's interface, and when a timer makes it send.
 */
#include <linux/tcp.h>
#include <net/sock.h>
#include <net/tcp.h>

#include "fullpipe.h"

/* How late the pacing timer may have gone off to have caused what is sent now, ns. */
#define JUST_NOW 5000

static bool paced(struct tcp_sock *tp)
{
	s64 ago = ktime_get_ns() - ktime_to_ns(hrtimer_get_expires(&tp->pacing_timer));

	return hrtimer_is_queued(&tp->pacing_timer) || (ago >= 0 && ago < JUST_NOW);
}

static bool fits_window(const struct tcp_sock *tp, const struct sk_buff *next)
{
	u32 bytes = min_t(u32, next->len, tp->mss_cache);

	return !after(TCP_SKB_CB(next)->seq + bytes, tcp_wnd_end(tp));
}

static bool is_full(const struct sock *sk)
{
	return sk->sk_socket && test_bit(SOCK_NOSPACE, &sk->sk_socket->flags);
}

static enum fp_limit limit(const struct fp_flow *f, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	const struct sk_buff *next = tcp_send_head(sk);

	if (sk->sk_state == TCP_SYN_SENT)
		return FP_NETWORK;
	if (tcp_packets_in_flight(tp) >= tcp_snd_cwnd(tp))
		return f->cap && tcp_snd_cwnd(tp) >= f->cap ? FP_WINDOW_CAP : FP_NETWORK;
	if (READ_ONCE(sk->sk_pacing_status) != SK_PACING_NONE && paced(tp))
		return sk->sk_pacing_rate >= READ_ONCE(sk->sk_max_pacing_rate) ? FP_RATE
									       : FP_PACING;
	if (f->refused || test_bit(TSQ_THROTTLED, &sk->sk_tsq_flags))
		return FP_LOCAL_QUEUE;
	if (!next)
		return is_full(sk) && !f->purged ? FP_LOCAL_QUEUE : FP_APPLICATION;
	return fits_window(tp, next) ? FP_NETWORK : FP_RECEIVE_WINDOW;
}

/* The connection is opened. */
void fp_begin_limits(struct fp_flow *f, struct sock *sk, u64 now)
{
	if (f->sk || f->brief || !sk)
		return;
	sock_hold(sk);
	f->sk = sk;
	f->held = now;
}

/* Now something changes. */
void fp_held_until(struct fp_flow *f, u64 now)
{
	u64 from = max(f->held, fp_run.measure), to = min3(now, fp_run.end, f->t.completed);

	if (!f->sk || now <= f->held)
		return;
	if (to > from)
		f->t.limited[limit(f, f->sk)] += to - from;
	f->held = now;
}

void fp_close_limits(struct fp_flow *f)
{
	fp_held_until(f, fp_run.end);
	if (f->sk)
		sock_put(f->sk);
	f->sk = NULL;
}
