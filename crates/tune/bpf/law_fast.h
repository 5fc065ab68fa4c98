/* FAST (ns-2 module 1.1.3). */
#pragma once

#include "window.h"

/* Of `params.number`. */
enum {
	FAST_ALPHA = 0, /* segments, 1/256 */
	FAST_GAMMA = 1, /* 1/65536 */
	FAST_ETA = 2,   /* largest weight of a sample, 1/65536 */
};

enum { F_AVG, F_TARGET, F_STEP }; /* 1/256 us; 1/256 segment; segments per segment, 2^-24 */

ALWAYS void fast_observe(const struct params *p, struct state *s, struct window *win,
			 const struct ack *ack)
{
	u64 now = w256(s, win->w), avg = s->own[F_AVG];
	struct round r = round_of(s, ack);

	if (ack->rtt_us) {
		/* Weight min(3/w, eta). */
		u64 eta = (3ull << 24) / (now ? now : 1), rtt = (u64)ack->rtt_us << 8;

		if (eta > p->number[FAST_ETA])
			eta = p->number[FAST_ETA];
		if (eta > 65536)
			eta = 65536;
		if (rtt > 0xffffffff)
			rtt = 0xffffffff;
		avg = avg ? (avg * (65536 - eta) + rtt * eta) >> 16 : rtt;
		s->own[F_AVG] = (u32)avg;
	}
	if (win->w < win->ssthresh || ack->recovering) {
		s->own[F_STEP] = 0;
		return;
	}
	if (r.ended && avg) {
		u64 base = (u64)s->base_rtt << 8, weight = p->number[FAST_GAMMA], next;

		base = base < avg ? base : avg;
		weight = weight > 65536 ? 65536 : weight;
		next = now * ((base << 16) / avg) >> 16;
		next = ((65536 - weight) * now + weight * (next + p->number[FAST_ALPHA])) >> 16;
		next = next > 2 * now ? 2 * now : next;
		next = next > (u64)MOST_WINDOW << 8 ? (u64)MOST_WINDOW << 8 : next;
		s->own[F_TARGET] = (u32)next;
		s->bits &= ~BIT_DOWN;
		if (next < now)
			s->bits |= BIT_DOWN;
		s->own[F_STEP] = (u32)(((next < now ? now - next : next - now) << 24) / (now ? now : 1));
	}
	if (s->bits & BIT_DOWN && s->own[F_STEP] && now > s->own[F_TARGET]) {
		/* 2^-32 segments. */
		u64 have = (u64)win->w << 32 | s->fraction, goal = (u64)s->own[F_TARGET] << 24;
		u64 off = (u64)s->own[F_STEP] * ack->n << 8;

		have = have > goal + off ? have - off : goal;
		if (have < (u64)LEAST_WINDOW << 32)
			have = (u64)LEAST_WINDOW << 32;
		win->w = (u32)(have >> 32);
		s->fraction = (u32)have;
		win->ssthresh = least(win->ssthresh, win->w);
	}
}

ALWAYS void fast_increase(struct state *s, struct window *win, u32 n)
{
	u64 goal = (u64)s->own[F_TARGET] << 24, have = (u64)win->w << 32 | s->fraction, up;

	if (s->bits & BIT_DOWN || !s->own[F_STEP] || have >= goal)
		return;
	up = (u64)s->own[F_STEP] * n << 8;
	up = up > goal - have ? goal - have : up;
	add(s, win, up > (u64)n << 32 ? (u64)n << 32 : up);
}
