/* The per-ACK arithmetic: which law observes, increases and decreases. A law of more than a table's
 * row has a file of its own, `law_*.h`. */
#pragma once

#include "law_bic.h"
#include "law_cubic.h"
#include "law_fast.h"
#include "law_hstcp_lp.h"
#include "law_htcp.h"
#include "law_vegas.h"
#include "law_westwood.h"
#include "slow_start.h"

/* Scalable's of `params.number`. */
enum {
	SCALABLE_STEP = 0,     /* segments per segment delivered, 2^-32 */
	SCALABLE_DECREASE = 1, /* 1/65536 */
	SCALABLE_LOW = 2,      /* below it Reno, segments */
};

ALWAYS u32 scalable_low(const struct params *p)
{
	return p->number[SCALABLE_LOW] > MOST_WINDOW ? MOST_WINDOW : (u32)p->number[SCALABLE_LOW];
}

/* Before growth, on every ACK that acknowledges something new. True: gamma ended slow start. */
ALWAYS bool observe(const struct params *p, struct state *s, struct window *win,
		    const struct ack *ack)
{
	bool crossed = gamma(p, s, win, ack);

	switch (p->law) {
	case LAW_HTCP:
		htcp_observe(p, s, win, ack);
		break;
	case LAW_WESTWOOD:
		westwood_observe(p, s, ack);
		break;
	case LAW_VEGAS:
		vegas_observe(p, s, win, ack);
		break;
	case LAW_FAST:
		fast_observe(p, s, win, ack);
		break;
	case LAW_HSTCP_LP:
		lp_observe(p, s, win, ack);
		break;
	}
	return crossed;
}

/* Congestion avoidance for `ack->n` segments. */
ALWAYS void increase(const struct params *p, const struct table *t, struct state *s,
		     struct window *win, const struct ack *ack)
{
	u32 n = ack->n;

	switch (p->law) {
	case LAW_SCALABLE:
		if (win->w < scalable_low(p)) {
			s->a = RENO_INCREASE;
			break;
		}
		if (p->number[SCALABLE_STEP] >> 32)
			add(s, win, (u64)n << 32);
		else
			add(s, win, p->number[SCALABLE_STEP] * n);
		s->a = (u32)(p->number[SCALABLE_STEP] * win->w >> 24);
		return;
	case LAW_HTCP:
		s->a = htcp_alpha(p, s, ack->now);
		break;
	case LAW_BIC:
		s->a = bic_increase(p, s, win->w);
		break;
	case LAW_CUBIC:
		cubic_increase(p, s, win, ack);
		return;
	case LAW_VEGAS:
		if (!(s->bits & BIT_RENO))
			return;
		s->a = RENO_INCREASE;
		break;
	case LAW_FAST:
		fast_increase(s, win, n);
		return;
	case LAW_WESTWOOD:
		s->a = RENO_INCREASE;
		break;
	case LAW_HSTCP_LP:
		if (lp_infers(s, ack->now))
			return;
		look_up(p, t, s, win->w, ack->now);
		break;
	default:
		look_up(p, t, s, win->w, ack->now);
	}
	grow(s, win, s->a, n);
}

/* The threshold after a congestion event. */
ALWAYS u32 decrease(const struct params *p, const struct table *t, struct state *s, u32 w, u64 now,
		    bool timeout)
{
	s->limit = 0;
	s->least = NO_RTT;
	s->samples = 0;
	switch (p->law) {
	case LAW_SCALABLE:
		s->b = w < scalable_low(p) ? RENO_DECREASE
		       : p->number[SCALABLE_DECREASE] > MOST_DECREASE
			       ? MOST_DECREASE
			       : (u32)p->number[SCALABLE_DECREASE];
		break;
	case LAW_HTCP:
		return htcp_decrease(p, s, w, now);
	case LAW_BIC:
		return bic_decrease(p, s, w, timeout);
	case LAW_CUBIC:
		return cubic_decrease(p, s, w, timeout);
	case LAW_WESTWOOD:
		return westwood_decrease(s, w, timeout);
	case LAW_VEGAS:
		s->b = timeout ? RENO_DECREASE
		       : p->number[VEGAS_DECREASE] > MOST_DECREASE ? MOST_DECREASE
								   : (u32)p->number[VEGAS_DECREASE];
		break;
	case LAW_FAST:
		s->own[F_STEP] = 0;
		if (timeout)
			s->own[F_AVG] = 0;
		s->b = RENO_DECREASE;
		break;
	default:
		look_up(p, t, s, w, now);
	}
	return keep(s, w, 65536 - s->b);
}

/* Reno (RFC 5681): what runs when the tuner is off or its daemon is gone. */
ALWAYS void standard_increase(struct state *s, struct window *win, u32 n)
{
	s->a = RENO_INCREASE;
	grow(s, win, RENO_INCREASE, n);
}

ALWAYS void begin(struct state *s, u32 law, u32 nxt)
{
	s->law = law;
	s->bits = 0;
	s->fraction = 0;
	s->a = 0;
	s->b = 0;
	s->updated = 0;
	s->base_rtt = NO_RTT;
	s->least = NO_RTT;
	s->samples = 0;
	s->limit = 0;
	s->round_end = nxt;
	s->round_least = NO_RTT;
	s->round_samples = 0;
#pragma unroll
	for (int i = 0; i < 8; i++)
		s->own[i] = 0;
}
