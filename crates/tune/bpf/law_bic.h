/* BIC (tcp_bic.c). */
#pragma once

#include "window.h"

/* Of `params.number`. */
enum {
	BIC_LOW = 0,   /* segments */
	BIC_S_MAX = 1, /* segments per round trip, 1/256 */
	BIC_S_MIN = 2, /* 1/256 */
	BIC_DIVISOR = 3,
	BIC_CLOSE = 4, /* segments, 1/256 */
	BIC_BETA = 5,  /* kept, 1/65536 */
	BIC_BITS = 6,  /* 1: fast convergence */
};

enum { BIC_W_MAX }; /* 1/256 segment; 0: none */

ALWAYS u32 bic_increase(const struct params *p, const struct state *s, u32 w)
{
	u64 now = w256(s, w), max = s->own[BIC_W_MAX], b = p->number[BIC_DIVISOR], far, inc;

	if (now <= p->number[BIC_LOW] << 8)
		return RENO_INCREASE;
	b = b < 2 ? 2 : b;
	far = (now < max ? max - now : now - max) / b;
	if (far <= p->number[BIC_CLOSE])
		inc = p->number[BIC_S_MIN];
	else if (now < max)
		inc = far;
	else
		inc = (now - max) / (b - 1);
	if (inc > p->number[BIC_S_MAX])
		inc = p->number[BIC_S_MAX];
	/* Before any loss 5 % per round trip at least. */
	if (!max && inc < now / 20)
		inc = now / 20;
	return inc > MOST_INCREASE ? MOST_INCREASE : (u32)inc;
}

ALWAYS u32 bic_decrease(const struct params *p, struct state *s, u32 w, bool timeout)
{
	u32 beta = (u32)p->number[BIC_BETA];
	u32 kept = w256(s, w) <= p->number[BIC_LOW] << 8 ? 32768 : beta;

	s->own[BIC_W_MAX] = timeout ? 0 : remembered(s, w, s->own[BIC_W_MAX], beta,
						     p->number[BIC_BITS] & 1);
	return keep(s, w, kept);
}
