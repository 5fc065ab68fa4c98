/* The per-ACK arithmetic: window laws and slow start in whole numbers. No kernel type and no
 * helper: the same text compiles for the host, where a test drives it beside the laws of
 * `fullpipe-cc`.
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

/* Meaning of `params.number`, by law. */
enum {
	SCALABLE_STEP = 0,     /* segments per segment delivered, 2^-32 */
	SCALABLE_DECREASE = 1, /* 1/65536 */
	SCALABLE_LOW = 2,      /* below it Reno, segments */

	HTCP_DELTA_L = 0, /* us */
	HTCP_BETA_MIN = 1, /* kept, 1/65536 */
	HTCP_BETA_MAX = 2,
	HTCP_SWITCH = 3, /* relative change of the throughput, 1/65536 */
	HTCP_BITS = 4,   /* 1: adaptive decrease, 2: scaled by the RTT */

	BIC_LOW = 0,   /* segments */
	BIC_S_MAX = 1, /* segments per round trip, 1/256 */
	BIC_S_MIN = 2, /* 1/256 */
	BIC_DIVISOR = 3,
	BIC_CLOSE = 4, /* segments, 1/256 */
	BIC_BETA = 5,  /* kept, 1/65536 */
	BIC_BITS = 6,  /* 1: fast convergence */

	CUBIC_C = 0,    /* segments/s^3, 1/65536 */
	CUBIC_BETA = 1, /* kept, 1/65536 */
	CUBIC_BITS = 2, /* 1: fast convergence, 2: not slower than Reno */

	WESTWOOD_LEAST = 0, /* shortest sampling time, us */

	VEGAS_ALPHA = 0, /* segments, 1/256 */
	VEGAS_BETA = 1,
	VEGAS_DECREASE = 2, /* 1/65536 */

	FAST_ALPHA = 0, /* segments, 1/256 */
	FAST_GAMMA = 1, /* 1/65536 */
	FAST_ETA = 2,   /* largest weight of a sample, 1/65536 */

	LP_DELTA = 0,       /* part of the delay's range, 1/65536 */
	LP_GRANULARITY = 1, /* us */
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

/* --- The table ------------------------------------------------------------------------------- */

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

/* --- Slow start ------------------------------------------------------------------------------ */

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

/* --- Rounds ---------------------------------------------------------------------------------- */

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

/* --- H-TCP (tcp_htcp.c; FreeBSD cc_htcp) ------------------------------------------------------ */

enum { H_SINCE, H_MAX_RTT, H_BETA, H_COUNT, H_FROM, H_RATE, H_MAX, H_OLD_MAX };

ALWAYS u32 htcp_alpha(const struct params *p, const struct state *s, u64 now)
{
	u64 delta = ms_since(now, s->own[H_SINCE]), low = p->number[HTCP_DELTA_L] / 1000, f = 256;
	u32 beta = s->own[H_BETA];

	if (delta > low) {
		u64 late = delta - low;

		if (late > 1 << 20)
			late = 1 << 20;
		/* 1 + 10 (D - D_L) + ((D - D_L) / 2)^2, D in seconds. */
		f += late * 256 / 100 + late * late / 15625;
	}
	if (p->number[HTCP_BITS] & 2 && s->base_rtt != NO_RTT) {
		u64 scale = (u64)s->base_rtt * 256 / 100000;

		scale = scale < 26 ? 26 : scale > 512 ? 512 : scale;
		f = f * scale >> 8;
		f = f < 256 ? 256 : f;
	}
	f = 2 * f * (65536 - least(beta, 65536)) >> 16;
	return f > MOST_INCREASE ? MOST_INCREASE : most((u32)f, 1);
}

ALWAYS bool htcp_settled(const struct state *s, u64 now)
{
	return s->base_rtt != NO_RTT && ms_since(now, s->own[H_SINCE]) * 1000 > 3 * (u64)s->base_rtt;
}

ALWAYS void htcp_observe(const struct params *p, struct state *s, const struct window *win,
			 const struct ack *ack)
{
	u32 span;

	if (!(s->bits & BIT_STARTED)) {
		s->bits |= BIT_STARTED;
		s->own[H_SINCE] = ticks(ack->now);
		s->own[H_FROM] = (u32)ack->now;
		s->own[H_BETA] = (u32)p->number[HTCP_BETA_MIN];
	}
	/* The clock starts anew where a recovery ends (htcp_state), with its last ACK. */
	if (s->bits & BIT_REDUCED) {
		if (ack->open)
			s->bits &= ~BIT_REDUCED;
		else
			s->own[H_SINCE] = ticks(ack->now);
	}
	if (ack->rtt_us && ack->open) {
		u32 max = most(s->own[H_MAX_RTT], s->base_rtt);

		/* The largest RTT rises by 20 ms at most at a time. */
		if (ack->rtt_us > max && ack->rtt_us <= max + 20000 && htcp_settled(s, ack->now))
			max = ack->rtt_us;
		s->own[H_MAX_RTT] = max;
	}
	if (ack->recovering) {
		s->own[H_COUNT] = 0;
		s->own[H_FROM] = (u32)ack->now;
		return;
	}
	s->own[H_COUNT] += ack->n;
	span = (u32)ack->now - s->own[H_FROM];
	if (span < s->base_rtt || !span)
		return;
	if (s->own[H_COUNT] + (htcp_alpha(p, s, ack->now) >> 8) >= win->w) {
		/* Segments per second, 1/16. */
		u32 rate = (u32)((u64)s->own[H_COUNT] * 16000000 / span);

		if (htcp_settled(s, ack->now)) {
			s->own[H_RATE] = (u32)(((u64)s->own[H_RATE] * 3 + rate) / 4);
			s->own[H_MAX] = most(s->own[H_MAX], s->own[H_RATE]);
		} else {
			s->own[H_RATE] = rate;
			s->own[H_MAX] = rate;
		}
		s->own[H_COUNT] = 0;
		s->own[H_FROM] = (u32)ack->now;
	}
}

ALWAYS u32 htcp_decrease(const struct params *p, struct state *s, u32 w, u64 now)
{
	u32 max = s->own[H_MAX], old = s->own[H_OLD_MAX], off = max > old ? max - old : old - max;
	bool changed = (u64)off << 16 > p->number[HTCP_SWITCH] * old;

	s->own[H_OLD_MAX] = max;
	s->own[H_BETA] = (u32)p->number[HTCP_BETA_MIN];
	if (p->number[HTCP_SWITCH] && changed)
		s->bits &= ~BIT_STEADY;
	else if (!(s->bits & BIT_STEADY))
		s->bits |= BIT_STEADY;
	else if (p->number[HTCP_BITS] & 1 && s->base_rtt > 10000 && s->own[H_MAX_RTT]) {
		u64 beta = ((u64)s->base_rtt << 16) / s->own[H_MAX_RTT];

		beta = beta < p->number[HTCP_BETA_MIN] ? p->number[HTCP_BETA_MIN] : beta;
		s->own[H_BETA] = (u32)(beta > p->number[HTCP_BETA_MAX] ? p->number[HTCP_BETA_MAX] : beta);
	}
	if (s->own[H_MAX_RTT] > s->base_rtt)
		s->own[H_MAX_RTT] = s->base_rtt +
				    (u32)((u64)(s->own[H_MAX_RTT] - s->base_rtt) * 95 / 100);
	s->own[H_SINCE] = ticks(now);
	s->bits |= BIT_REDUCED;
	return keep(s, w, s->own[H_BETA]);
}

/* --- BIC (tcp_bic.c) ------------------------------------------------------------------------- */

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

/* What a search remembers of a window at a loss: less when the last one was not reached. */
ALWAYS u32 remembered(const struct state *s, u32 w, u32 max, u32 beta, bool converge)
{
	u64 now = w256(s, w);

	if (converge && now < max)
		now = now * (65536 + beta) >> 17;
	return (u32)(now > 0xffffffff ? 0xffffffff : now);
}

ALWAYS u32 bic_decrease(const struct params *p, struct state *s, u32 w, bool timeout)
{
	u32 beta = (u32)p->number[BIC_BETA];
	u32 kept = w256(s, w) <= p->number[BIC_LOW] << 8 ? 32768 : beta;

	s->own[BIC_W_MAX] = timeout ? 0 : remembered(s, w, s->own[BIC_W_MAX], beta,
						     p->number[BIC_BITS] & 1);
	return keep(s, w, kept);
}

/* --- CUBIC (RFC 9438) ------------------------------------------------------------------------ */

enum { C_W_MAX, C_PRIOR, C_START, C_K, C_EST, C_EST_FRACTION };

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

ALWAYS void cubic_increase(const struct params *p, struct state *s, struct window *win,
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

/* --- Westwood+ (tcp_westwood.c) -------------------------------------------------------------- */

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

/* --- Vegas (ns-2 tcp-vegas.cc, tcp_vegas.c) --------------------------------------------------- */

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

/* --- FAST (ns-2 module 1.1.3) ---------------------------------------------------------------- */

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

/* --- HSTCP-LP (RFC 3649; tcp_lp.c) ------------------------------------------------------------ */

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

/* --- The laws -------------------------------------------------------------------------------- */

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
