/* The window, and what all laws have: limits, the state of a flow, growth and decrease in whole
 * numbers, the table, rounds. No kernel type and no helper: the same text compiles for the host,
 * where a test drives it beside the laws of `fullpipe-cc`.
 *
 * Window: whole segments and a fraction of 2^-32. Increases: 1/256 segment per round trip.
 * Fractions of a window: 1/65536. Times: microseconds; what lasts longer than an hour: ticks of
 * 256 us. */
#pragma once

#include "shared.h"

/* Limits that no map can widen. */
enum {
	LEAST_WINDOW = 2,
	MOST_INCREASE = 4096 << 8,
	MOST_WINDOW = 1 << 24,
	LEAST_DECREASE = 65536 / 128,
	MOST_DECREASE = 65536 / 2,
	MOST_ACKED = 1 << 16,
};

enum {
	RENO_INCREASE = 1 << 8,
	RENO_DECREASE = 65536 / 2, /* RFC 5681 section 3.1 */
	NO_RTT = 0xffffffff,
	NO_LIMIT = 0x7fffffff,
};

enum {
	BIT_EPOCH = 1,      /* CUBIC: an epoch runs */
	BIT_AFTER_RTO = 2,  /* CUBIC */
	BIT_CAUGHT_UP = 4,  /* CUBIC: the Reno flow is at the window of the last event */
	BIT_STARTED = 8,    /* H-TCP's clock runs, Westwood+ has its first sample, ... */
	BIT_STEADY = 16,    /* H-TCP: two epochs of equal throughput */
	BIT_RENO = 32,      /* Vegas: too few samples */
	BIT_DOWN = 64,      /* FAST: the change is downwards */
	BIT_YIELDED = 128,  /* HSTCP-LP has backed off once */
	BIT_OPENING = 256,  /* the initial window leaves, spread */
	BIT_REDUCED = 512,  /* H-TCP: the recovery of the latest event goes on */
};

/* Of one flow: 104 bytes, the room that a socket has for its algorithm. */
struct state {
	u32 magic;
	u32 generation;
	u32 rule; /* its number plus 1; 0: standard */
	u32 bits;
	u32 fraction; /* of a segment, 2^-32 */
	u32 a;        /* in force, 1/256 */
	u32 b;        /* in force, 1/65536 */
	u32 updated;  /* us */
	u32 base_rtt; /* smallest, us */
	u32 least;    /* smallest of the last samples, us */
	u32 samples;
	u32 limit; /* limited slow start since gamma */
	u32 delivered_ce;
	u32 round_end; /* sequence number */
	u32 round_least;
	u32 round_samples;
	u32 law;     /* whose numbers these are */
	u32 ceiling; /* of pacing, as the rule has it */
	u32 own[8];  /* by law */
};

struct window {
	u32 w;
	u32 ssthresh;
};

/* An ACK as the laws see it. */
struct ack {
	u64 now; /* us */
	u32 n;   /* segments delivered */
	u32 rtt_us; /* of this ACK; 0: no sample */
	u32 srtt_us;
	u32 una;
	u32 nxt;
	u32 delivered; /* since the start */
	bool open;     /* nothing unusual; else no delay is read */
	bool recovering;
	bool may_grow;
};

ALWAYS u32 least(u32 a, u32 b)
{
	return a < b ? a : b;
}

ALWAYS u32 most(u32 a, u32 b)
{
	return a > b ? a : b;
}

ALWAYS u32 ticks(u64 us)
{
	return (u32)(us >> 8);
}

/* Milliseconds since a tick. */
ALWAYS u64 ms_since(u64 now, u32 tick)
{
	return ((u64)(u32)(ticks(now) - tick) << 8) / 1000;
}

ALWAYS u64 w256(const struct state *s, u32 w)
{
	return ((u64)w << 8) | (s->fraction >> 24);
}

/* Adds 2^-32 segments. */
ALWAYS void add(struct state *s, struct window *win, u64 growth)
{
	u64 sum = (growth & 0xffffffff) + s->fraction;
	u64 w = (u64)win->w + (growth >> 32) + (sum >> 32);

	s->fraction = (u32)sum;
	win->w = w > MOST_WINDOW ? MOST_WINDOW : (u32)w;
}

/* `a` segments per round trip, of which `n` segments are a part; never more than slow start adds:
 * a law's a(w) above w is cut there. */
ALWAYS void grow(struct state *s, struct window *win, u32 a, u32 n)
{
	u64 w = most(win->w, 1);
	u64 growth;

	if (a > MOST_INCREASE)
		a = MOST_INCREASE;
	/* 2^20 * 2^10 * 2^30 and 2^20 * 2^16 * 2^24 fit. The fraction counts: 2.9 is not 2. */
	w = (w << 8) | (s->fraction >> 24);
	growth = n < 1024 ? ((u64)a * n << 30) / w << 2 : ((u64)a * n << 24) / w << 8;
	if (growth > (u64)n << 32)
		growth = (u64)n << 32;
	add(s, win, growth);
}

/* `kept` 65536ths of a window. */
ALWAYS u32 keep(const struct state *s, u32 w, u32 kept)
{
	u32 removed = 65536 - kept;

	if (kept > 65536 || removed < LEAST_DECREASE)
		removed = LEAST_DECREASE;
	if (removed > MOST_DECREASE)
		removed = MOST_DECREASE;
	return most((u32)((w256(s, w) * (65536 - removed)) >> 24), LEAST_WINDOW);
}

/* What a search remembers of a window at a loss: less when the last one was not reached. */
ALWAYS u32 remembered(const struct state *s, u32 w, u32 max, u32 beta, bool converge)
{
	u64 now = w256(s, w);

	if (converge && now < max)
		now = now * (65536 + beta) >> 17;
	return (u32)(now > 0xffffffff ? 0xffffffff : now);
}

/* All ones if a <= b, else 0: without a branch that the compiler, and then the kernel's verifier,
 * would follow 2^7 times in a search. */
ALWAYS u32 not_above(u32 a, u32 b)
{
	u64 borrow = (u64)b - a;

	__asm__ volatile("" : "+r"(borrow));
	return ~(u32)((s64)borrow >> 63);
}

/* The row that holds `w`: the last whose window is not above it. */
ALWAYS u32 row_of(const struct table *t, u32 rows, u32 w)
{
	u32 at = 0;

#pragma unroll
	for (u32 step = TABLE_ROWS / 2; step; step >>= 1) {
		u32 next = (at + step) & (TABLE_ROWS - 1);

		at += step & not_above(next + 1, rows) & not_above(t->row[next].window, w);
	}
	return at & (TABLE_ROWS - 1);
}

ALWAYS void look_up(const struct params *p, const struct table *t, struct state *s, u32 w, u64 now)
{
	u32 row, a, b;

	if (p->update_interval_us && s->a && (u32)now - s->updated < p->update_interval_us)
		return;
	row = row_of(t, least(p->rows, TABLE_ROWS), w) & (TABLE_ROWS - 1);
	a = t->row[row].increase;
	b = t->row[row].decrease;
	s->a = least(most(a, 1), MOST_INCREASE);
	s->b = b < LEAST_DECREASE ? LEAST_DECREASE : b > MOST_DECREASE ? MOST_DECREASE : b;
	s->updated = (u32)now;
}

struct round {
	bool ended;
	u32 least;
	u32 samples;
};

/* A round: from a segment's departure to its ACK. The ACK that ends one counts for the next. */
ALWAYS struct round round_of(struct state *s, const struct ack *ack)
{
	struct round r = {};

	if ((s32)(ack->una - s->round_end) > 0) {
		r.ended = true;
		r.least = s->round_least;
		r.samples = s->round_samples;
		s->round_end = ack->nxt;
		s->round_least = NO_RTT;
		s->round_samples = 0;
	}
	if (ack->rtt_us) {
		s->round_least = least(s->round_least, ack->rtt_us);
		s->round_samples++;
	}
	return r;
}
