/* HSTCP-LP (RFC 3649; tcp_lp.c). */
#pragma once

#include "window.h"

/* Of `params.number`. */
enum {
	LP_DELTA = 0,       /* part of the delay's range, 1/65536 */
	LP_GRANULARITY = 1, /* us */
};

enum { L_SMOOTHED, L_MIN, L_MAX, L_INFERENCE, L_LAST }; /* us; smoothed: 1/256 us */

ALWAYS bool lp_infers(const struct state *s, u64 now)
{
	return s->bits & BIT_YIELDED && (u32)now - s->own[L_LAST] < s->own[L_INFERENCE];
}

ALWAYS void lp_observe(const struct params *p, struct state *s, struct window *win,
		       const struct ack *ack)
{
	u32 rtt = ack->rtt_us, smoothed, early;

	if (!rtt)
		return;
	rtt = rtt > 1 << 23 ? 1 << 23 : rtt;
	if (!(s->bits & BIT_STARTED) || rtt < s->own[L_MIN]) {
		/* A delay below the smallest starts the average anew: what made it is gone. */
		s->bits |= BIT_STARTED;
		s->own[L_MIN] = rtt;
		s->own[L_SMOOTHED] = rtt << 8;
		s->own[L_MAX] = most(s->own[L_MAX], rtt);
	}
	s->own[L_MAX] = most(s->own[L_MAX], rtt);
	smoothed = (u32)(((u64)s->own[L_SMOOTHED] * 7 + ((u64)rtt << 8)) / 8);
	s->own[L_SMOOTHED] = smoothed;
	s->own[L_INFERENCE] = 3 * rtt;
	early = s->own[L_MIN] + most((u32)(((u64)(s->own[L_MAX] - s->own[L_MIN]) *
					    p->number[LP_DELTA]) >> 16),
				     (u32)p->number[LP_GRANULARITY]);
	if (smoothed >> 8 <= early || ack->recovering)
		return;
	win->w = lp_infers(s, ack->now) ? LEAST_WINDOW : most(win->w / 2, LEAST_WINDOW);
	win->ssthresh = win->w;
	s->own[L_MIN] = smoothed >> 8;
	s->own[L_MAX] = smoothed >> 7;
	s->own[L_LAST] = (u32)ack->now;
	s->bits |= BIT_YIELDED;
}
