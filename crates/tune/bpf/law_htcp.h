/* H-TCP (tcp_htcp.c; FreeBSD cc_htcp). */
#pragma once

#include "window.h"

/* Of `params.number`. */
enum {
	HTCP_DELTA_L = 0, /* us */
	HTCP_BETA_MIN = 1, /* kept, 1/65536 */
	HTCP_BETA_MAX = 2,
	HTCP_SWITCH = 3, /* relative change of the throughput, 1/65536 */
	HTCP_BITS = 4,   /* 1: adaptive decrease, 2: scaled by the RTT */
};

enum { H_SINCE, H_MAX_RTT, H_BETA, H_COUNT, H_FROM, H_RATE, H_MAX, H_OLD_MAX };

ALWAYS u32 htcp_alpha(const struct params *p, const struct state *s, u64 now)
{
	u64 delta = ms_since(now, s->own[H_SINCE]), low = p->number[HTCP_DELTA_L] / 1000, f = 256;
	u32 beta = s->own[H_BETA];

	if (delta > low) {
		u64 late = delta - low;

		if (late > 1 << 20)
			late = 1 << 20;
		/* 1 + 10 (D - D_L) + ((D - D_L) / 2)^2, D in seconds. */
		f += late * 256 / 100 + late * late / 15625;
	}
	if (p->number[HTCP_BITS] & 2 && s->base_rtt != NO_RTT) {
		u64 scale = (u64)s->base_rtt * 256 / 100000;

		scale = scale < 26 ? 26 : scale > 512 ? 512 : scale;
		f = f * scale >> 8;
		f = f < 256 ? 256 : f;
	}
	f = 2 * f * (65536 - least(beta, 65536)) >> 16;
	return f > MOST_INCREASE ? MOST_INCREASE : most((u32)f, 1);
}

ALWAYS bool htcp_settled(const struct state *s, u64 now)
{
	return s->base_rtt != NO_RTT && ms_since(now, s->own[H_SINCE]) * 1000 > 3 * (u64)s->base_rtt;
}

ALWAYS void htcp_observe(const struct params *p, struct state *s, const struct window *win,
			 const struct ack *ack)
{
	u32 span;

	if (!(s->bits & BIT_STARTED)) {
		s->bits |= BIT_STARTED;
		s->own[H_SINCE] = ticks(ack->now);
		s->own[H_FROM] = (u32)ack->now;
		s->own[H_BETA] = (u32)p->number[HTCP_BETA_MIN];
	}
	/* The clock starts anew where a recovery ends (htcp_state), with its last ACK. */
	if (s->bits & BIT_REDUCED) {
		if (ack->open)
			s->bits &= ~BIT_REDUCED;
		else
			s->own[H_SINCE] = ticks(ack->now);
	}
	if (ack->rtt_us && ack->open) {
		u32 max = most(s->own[H_MAX_RTT], s->base_rtt);

		/* The largest RTT rises by 20 ms at most at a time. */
		if (ack->rtt_us > max && ack->rtt_us <= max + 20000 && htcp_settled(s, ack->now))
			max = ack->rtt_us;
		s->own[H_MAX_RTT] = max;
	}
	if (ack->recovering) {
		s->own[H_COUNT] = 0;
		s->own[H_FROM] = (u32)ack->now;
		return;
	}
	s->own[H_COUNT] += ack->n;
	span = (u32)ack->now - s->own[H_FROM];
	if (span < s->base_rtt || !span)
		return;
	if (s->own[H_COUNT] + (htcp_alpha(p, s, ack->now) >> 8) >= win->w) {
		/* Segments per second, 1/16. */
		u32 rate = (u32)((u64)s->own[H_COUNT] * 16000000 / span);

		if (htcp_settled(s, ack->now)) {
			s->own[H_RATE] = (u32)(((u64)s->own[H_RATE] * 3 + rate) / 4);
			s->own[H_MAX] = most(s->own[H_MAX], s->own[H_RATE]);
		} else {
			s->own[H_RATE] = rate;
			s->own[H_MAX] = rate;
		}
		s->own[H_COUNT] = 0;
		s->own[H_FROM] = (u32)ack->now;
	}
}

ALWAYS u32 htcp_decrease(const struct params *p, struct state *s, u32 w, u64 now)
{
	u32 max = s->own[H_MAX], old = s->own[H_OLD_MAX], off = max > old ? max - old : old - max;
	bool changed = (u64)off << 16 > p->number[HTCP_SWITCH] * old;

	s->own[H_OLD_MAX] = max;
	s->own[H_BETA] = (u32)p->number[HTCP_BETA_MIN];
	if (p->number[HTCP_SWITCH] && changed)
		s->bits &= ~BIT_STEADY;
	else if (!(s->bits & BIT_STEADY))
		s->bits |= BIT_STEADY;
	else if (p->number[HTCP_BITS] & 1 && s->base_rtt > 10000 && s->own[H_MAX_RTT]) {
		u64 beta = ((u64)s->base_rtt << 16) / s->own[H_MAX_RTT];

		beta = beta < p->number[HTCP_BETA_MIN] ? p->number[HTCP_BETA_MIN] : beta;
		s->own[H_BETA] = (u32)(beta > p->number[HTCP_BETA_MAX] ? p->number[HTCP_BETA_MAX] : beta);
	}
	if (s->own[H_MAX_RTT] > s->base_rtt)
		s->own[H_MAX_RTT] = s->base_rtt +
				    (u32)((u64)(s->own[H_MAX_RTT] - s->base_rtt) * 95 / 100);
	s->own[H_SINCE] = ticks(now);
	s->bits |= BIT_REDUCED;
	return keep(s, w, s->own[H_BETA]);
}
