/* CUBIC (RFC 9438). */
#pragma once

#include "window.h"

/* Of `params.number`. */
enum {
	CUBIC_C = 0,    /* segments/s^3, 1/65536 */
	CUBIC_BETA = 1, /* kept, 1/65536 */
	CUBIC_BITS = 2, /* 1: fast convergence, 2: not slower than Reno */
};

enum { C_W_MAX, C_PRIOR, C_START, C_K, C_EST, C_EST_FRACTION, C_SET };

/* Largest whole number whose cube is not above `x`. */
ALWAYS u64 cube_root(u64 x)
{
	u64 root = 0;

	for (int bit = 20; bit >= 0; bit--) {
		u64 next = root | 1ull << bit;

		if (next * next * next <= x)
			root = next;
	}
	return root;
}

/* C d^3 in 1/256 segment, d in milliseconds. */
ALWAYS u64 cubed(u64 c, u64 d)
{
	if (d > 1 << 18)
		d = 1 << 18;
	if (c > 1 << 23)
		c = 1 << 23;
	/* d^2 d fits 54 bits; millionths of s^3 need 34, times C 57. */
	return d * d * d / 1000000 * c / 256000;
}

ALWAYS u64 cubic_target(const struct params *p, const struct state *s, u64 ms)
{
	u64 max = s->own[C_W_MAX], k = s->own[C_K], c = p->number[CUBIC_C];

	if (ms >= k)
		return max + cubed(c, ms - k);
	return max - (cubed(c, k - ms) < max ? cubed(c, k - ms) : max);
}

ALWAYS void cubic_grow(const struct params *p, struct state *s, struct window *win,
		       const struct ack *ack)
{
	u64 now = w256(s, win->w), c = p->number[CUBIC_C], beta = p->number[CUBIC_BETA], est, t;
	u64 alpha, part;

	if (!(s->bits & BIT_EPOCH)) {
		if (s->bits & BIT_AFTER_RTO || now >= s->own[C_W_MAX]) {
			s->own[C_W_MAX] = (u32)now;
			s->bits &= ~BIT_AFTER_RTO;
		}
		s->bits |= BIT_EPOCH;
		s->bits &= ~BIT_CAUGHT_UP;
		s->own[C_START] = ticks(ack->now);
		/* K^3 = (w_max - w)/C: 1/256 segment over 1/65536 segment/s^3, in ms^3. */
		t = (u64)(s->own[C_W_MAX] - (u32)now) * 256000 / (c ? c : 1);
		s->own[C_K] = (u32)cube_root(t > 9000000000000ull ? 9000000000000000000ull
								    : t * 1000000);
		s->own[C_EST] = win->w;
		s->own[C_EST_FRACTION] = s->fraction;
	} else if (win->w < s->own[C_SET] && win->w < s->own[C_EST]) {
		/* A cap took back what was given: the Reno flow has that cap as well. */
		s->own[C_EST] = win->w;
		s->own[C_EST_FRACTION] = s->fraction;
	}
	if (beta > 65536)
		beta = 65536;
	/* 3 (1-beta)/(1+beta) until the window of the last event, then 1 (RFC 9438 section 4.3). */
	alpha = s->bits & BIT_CAUGHT_UP ? 65536 : ((65536 - beta) * 3 << 16) / (65536 + beta);
	part = (alpha * ack->n << 24) / (now ? now : 1);
	est = ((u64)s->own[C_EST] << 32 | s->own[C_EST_FRACTION]) + (part);
	s->own[C_EST] = (u32)(est >> 32);
	s->own[C_EST_FRACTION] = (u32)est;
	if (est >> 24 >= s->own[C_PRIOR])
		s->bits |= BIT_CAUGHT_UP;
	t = ms_since(ack->now, s->own[C_START]);
	if (p->number[CUBIC_BITS] & 2 && cubic_target(p, s, t) < est >> 24) {
		u64 have = (u64)win->w << 32 | s->fraction;

		if (est > have) {
			u64 up = est - have;

			add(s, win, up > (u64)ack->n << 32 ? (u64)ack->n << 32 : up);
		}
		return;
	}
	t = cubic_target(p, s, t + ack->srtt_us / 1000);
	if (t <= now)
		return;
	t -= now;
	if (t > now / 2)
		t = now / 2;
	grow(s, win, (u32)(t > MOST_INCREASE ? MOST_INCREASE : t), ack->n);
}

ALWAYS void cubic_increase(const struct params *p, struct state *s, struct window *win,
			   const struct ack *ack)
{
	cubic_grow(p, s, win, ack);
	s->own[C_SET] = win->w;
}

ALWAYS u32 cubic_decrease(const struct params *p, struct state *s, u32 w, bool timeout)
{
	u32 beta = (u32)p->number[CUBIC_BETA];

	s->own[C_W_MAX] = remembered(s, w, s->own[C_W_MAX], beta, p->number[CUBIC_BITS] & 1);
	s->own[C_PRIOR] = (u32)w256(s, w);
	s->bits &= ~(BIT_EPOCH | BIT_AFTER_RTO);
	if (timeout)
		s->bits |= BIT_AFTER_RTO;
	return keep(s, w, beta);
}
