/* Vegas (ns-2 tcp-vegas.cc, tcp_vegas.c). */
#pragma once

#include "window.h"

/* Of `params.number`. */
enum {
	VEGAS_ALPHA = 0, /* segments, 1/256 */
	VEGAS_BETA = 1,
	VEGAS_DECREASE = 2, /* 1/65536 */
};

ALWAYS void vegas_observe(const struct params *p, struct state *s, struct window *win,
			  const struct ack *ack)
{
	struct round r = round_of(s, ack);
	u64 queued;

	if (!ack->open) {
		s->round_least = NO_RTT;
		s->round_samples = 0;
		s->bits |= BIT_RENO;
		return;
	}
	if (!r.ended)
		return;
	s->bits |= BIT_RENO;
	if (r.samples <= 2 || !r.least)
		return;
	s->bits &= ~BIT_RENO;
	if (win->w < win->ssthresh)
		return;
	queued = w256(s, win->w) * (r.least - least(s->base_rtt, r.least)) / r.least;
	if (queued < p->number[VEGAS_ALPHA]) {
		if (ack->may_grow)
			win->w++;
	} else if (queued > p->number[VEGAS_BETA] && win->w > LEAST_WINDOW) {
		win->w--;
		win->ssthresh = least(win->ssthresh, win->w);
	}
}
