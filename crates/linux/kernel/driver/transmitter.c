// SPDX-License-Identifier: GPL-2.0 OR MIT OR Apache-2.0
/*
 * A transmitter whose capacity changes over time in a way known in advance: rates that hold piece
 * by piece, or the delivery opportunities of a trace (mahimahi's mm-link: each lets 1504 bytes
 * leave). When a packet is done follows from when it may begin.
 */
#include <linux/math64.h>

#include "fullpipe.h"

#define OPPORTUNITY 1504 /* bytes, as mahimahi counts them */
#define MS 1000000ULL
#define WORK 8000000000ULL /* of a byte: a rate in bit/s does `rate` of it in a nanosecond */

bool fp_has_transmitter(const struct fp_link *l)
{
	return l->rates.n || l->trace.n;
}

/* ---- rates -------------------------------------------------------------------------------- */

static u64 end_of(const struct fp_link *l, u32 index)
{
	return index + 1 < l->rates.n ? l->rates.p[index + 1].at : FP_FOREVER;
}

/* The first time from `c` on with a rate above zero; the fraction is kept over an outage. */
static struct fp_cursor running(const struct fp_link *l, struct fp_cursor c)
{
	while (c.at < FP_FOREVER && (end_of(l, c.index) <= c.at || !l->rates.p[c.index].a)) {
		c.at = max(c.at, end_of(l, c.index));
		c.index = min(c.index + 1, l->rates.n - 1);
	}
	return c;
}

static struct fp_cursor done_by_rates(const struct fp_link *l, struct fp_cursor c, u32 size)
{
	u64 work = (u64)size * WORK + c.rest;

	for (;;) {
		u64 rate, end, took;

		c = running(l, c);
		rate = l->rates.p[c.index].a;
		end = end_of(l, c.index);
		if (c.at == FP_FOREVER || rate == FP_FOREVER) { /* never, or in no time */
			c.rest = 0;
			return c;
		}
		took = div64_u64(work, rate);
		if (end == FP_FOREVER || c.at + took <= end) {
			c.at += took;
			c.rest = work - took * rate;
			return c;
		}
		work -= rate * (end - c.at);
		c.at = end;
	}
}

/* ---- traces ------------------------------------------------------------------------------- */

static struct fp_cursor opportunity(const struct fp_link *l, u64 turn, u32 index)
{
	u64 period = l->trace.at[l->trace.n - 1] * MS;

	return (struct fp_cursor){.at = turn * period + l->trace.at[index] * MS,
				  .turn = turn,
				  .index = index,
				  .rest = OPPORTUNITY};
}

static struct fp_cursor next_opportunity(const struct fp_link *l, struct fp_cursor c)
{
	return c.index + 1 < l->trace.n ? opportunity(l, c.turn, c.index + 1)
					: opportunity(l, c.turn + 1, 0);
}

/* The first one after `now`: one at the very time of a packet's arrival is gone. */
static struct fp_cursor opportunity_after(const struct fp_link *l, u64 now)
{
	u64 period = l->trace.at[l->trace.n - 1] * MS, within;
	u64 turn = div64_u64_rem(now, period, &within);
	u32 low = 0, high = l->trace.n - 1; /* the last lies at the end of the period */

	while (low < high) {
		u32 middle = (low + high) / 2;

		if (l->trace.at[middle] * MS <= within)
			low = middle + 1;
		else
			high = middle;
	}
	return opportunity(l, turn, low);
}

void fp_begin_trace(struct fp_link *l)
{
	l->last = opportunity(l, 0, 0);
}

/* ---- both --------------------------------------------------------------------------------- */

/* When a packet that comes now may begin. */
struct fp_cursor fp_start(const struct fp_link *l, u64 now)
{
	struct fp_cursor c = l->last;

	if (l->trace.n) {
		u64 at = opportunity(l, c.turn, c.index).at;

		return at > now ? fp_follow(l) : opportunity_after(l, now);
	}
	if (c.at <= now) { /* an idle transmitter keeps no fraction */
		c.at = now;
		c.rest = 0;
	}
	return running(l, c);
}

/* When a packet may begin that waited while the last one was sent. */
struct fp_cursor fp_follow(const struct fp_link *l)
{
	if (!l->trace.n)
		return running(l, l->last);
	return l->last.rest ? l->last : next_opportunity(l, l->last);
}

/* Where the transmitter stands when a packet that begins at `c` is done. */
struct fp_cursor fp_done(const struct fp_link *l, struct fp_cursor c, u32 size)
{
	u64 bytes = size;

	if (!l->trace.n)
		return done_by_rates(l, c, size);
	while (bytes > c.rest) {
		bytes -= c.rest;
		c = next_opportunity(l, c);
	}
	c.rest -= bytes;
	return c;
}
