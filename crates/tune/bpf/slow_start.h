/* Slow start: limited (RFC 3742), and what ends it at a queue. */
#pragma once

#include "window.h"

/* Limited slow start (RFC 3742 section 2): 1/K segment per segment, K = floor(w / (max/2)). */
ALWAYS u32 limited(struct state *s, struct window *win, u32 n, u32 max)
{
	/* Pieces on which K is constant; an ACK for more than four of them goes on with the last K. */
#pragma unroll
	for (u32 i = 0; i < 4; i++) {
		u32 w = win->w, k = most(2 * w / max, 1);
		u64 to = w <= max ? max + 1 : (u64)(k + 1) * max / 2;
		u64 piece = to > w ? (to - w) * k : 1;

		if (piece > n || i == 3)
			piece = n;
		k = w <= max ? 1 : k;
		add(s, win, (piece << 32) / k);
		n -= (u32)piece;
	}
	if (win->w >= win->ssthresh) {
		win->w = win->ssthresh;
		s->fraction = 0;
	}
	return 0;
}

/* Returns what is left of `n` for congestion avoidance. */
ALWAYS u32 slow_start(const struct params *p, struct state *s, struct window *win, u32 n)
{
	u32 max = s->limit ? s->limit : p->max_ssthresh;
	u32 room;

	if (max)
		return limited(s, win, n, max);
	room = win->ssthresh - win->w;
	if (n >= room) {
		win->w = win->ssthresh;
		return n - room;
	}
	win->w = least(win->w + n, MOST_WINDOW);
	return 0;
}

/* The smallest of eight samples tells a queue from a delayed ACK and is there within a round that
 * doubles: Vegas' once-per-round test is a round late. Queued: w (rtt - base)/rtt segments. */
ALWAYS bool gamma(const struct params *p, struct state *s, struct window *win,
		  const struct ack *ack)
{
	u32 seen;

	if (!ack->rtt_us)
		return false;
	s->base_rtt = least(s->base_rtt, ack->rtt_us);
	s->least = least(s->least, ack->rtt_us);
	if (++s->samples < 8)
		return false;
	seen = s->least;
	s->least = NO_RTT;
	s->samples = 0;
	if (!p->gamma || s->limit || !ack->open || win->w >= win->ssthresh || !seen)
		return false;
	if (((u64)win->w << 8) * (seen - s->base_rtt) / seen <= p->gamma)
		return false;
	if (p->gamma_then)
		s->limit = least(p->gamma_then, win->w);
	else
		win->ssthresh = win->w;
	return true;
}
