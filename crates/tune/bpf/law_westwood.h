/* Westwood+ (tcp_westwood.c). */
#pragma once

#include "window.h"

/* Of `params.number`. */
enum {
	WESTWOOD_LEAST = 0, /* shortest sampling time, us */
};

enum { W_STAGE, W_RATE, W_SINCE, W_MARK, W_MIN_SRTT };

ALWAYS void westwood_observe(const struct params *p, struct state *s, const struct ack *ack)
{
	u32 span, rate;

	if (!(s->bits & BIT_STARTED)) {
		s->bits |= BIT_STARTED;
		s->own[W_SINCE] = (u32)ack->now;
		s->own[W_MARK] = ack->delivered - ack->n;
		s->own[W_MIN_SRTT] = NO_RTT;
	}
	if (ack->srtt_us)
		s->own[W_MIN_SRTT] = least(s->own[W_MIN_SRTT], ack->srtt_us);
	span = (u32)ack->now - s->own[W_SINCE];
	if (span <= most(ack->srtt_us, (u32)p->number[WESTWOOD_LEAST]) || !span)
		return;
	/* Segments per second, 1/16; this ACK counts for the next sample. */
	rate = (u32)((u64)(ack->delivered - ack->n - s->own[W_MARK]) * 16000000 / span);
	s->own[W_SINCE] = (u32)ack->now;
	s->own[W_MARK] = ack->delivered - ack->n;
	if (!s->own[W_STAGE] && !s->own[W_RATE]) {
		s->own[W_STAGE] = rate;
		s->own[W_RATE] = rate;
		return;
	}
	/* Two filters of weight 7/8 in a row. */
	s->own[W_STAGE] = (u32)(((u64)s->own[W_STAGE] * 7 + rate) / 8);
	s->own[W_RATE] = (u32)(((u64)s->own[W_RATE] * 7 + s->own[W_STAGE]) / 8);
}

ALWAYS u32 westwood_decrease(struct state *s, u32 w, bool timeout)
{
	u32 rate = s->own[W_RATE], rtt = s->own[W_MIN_SRTT], ssthresh;
	u64 bdp;

	if (!rate || !rtt || rtt == NO_RTT)
		return keep(s, w, 32768);
	bdp = (u64)rate * rtt / 16000000;
	ssthresh = (u32)(bdp > w ? w : bdp);
	if (timeout)
		s->own[W_MIN_SRTT] = NO_RTT;
	/* The limits of a decrease hold here too: at least half is kept. */
	return most(most(ssthresh, w / 2), LEAST_WINDOW);
}
