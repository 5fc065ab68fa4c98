// SPDX-License-Identifier: GPL-2.0 OR MIT OR Apache-2.0
/* The entry of a link: random loss, that may change over time, then the policer. */
#include <linux/math64.h>

#include "fullpipe.h"

/* Kinds of a piece of losses: none; Bernoulli (a: m, b: shift of struct fp_chance, c: possible);
   Gilbert-Elliott (b, c: to the bad and the good state, d, e: loss in the good and the bad state,
   each a number that 53 random bits are below). */
enum { NONE, BERNOULLI, GILBERT };

static struct fp_chance chance_of(const struct fp_piece *p)
{
	return (struct fp_chance){.m = p->b, .shift = p->c, .possible = p->d};
}

static void begin(struct fp_link *l, const struct fp_piece *p)
{
	l->bad = false;
	if (p->a == BERNOULLI) {
		struct fp_chance chance = chance_of(p);

		l->loss_gap = fp_gap(&l->loss_random, &chance);
	}
}

static bool lost(struct fp_link *l, u64 now)
{
	struct fp_changes *c = &l->losses;
	const struct fp_piece *p;
	struct fp_chance chance;
	u64 below;

	if (!c->n)
		return false;
	if (!l->loss_begun) {
		l->loss_begun = true;
		begin(l, &c->p[0]);
	}
	while (c->next + 1 < c->n && c->p[c->next + 1].at <= now)
		begin(l, &c->p[++c->next]);
	p = &c->p[c->next];
	switch (p->a) {
	case BERNOULLI:
		if (--l->loss_gap)
			return false;
		chance = chance_of(p);
		l->loss_gap = fp_gap(&l->loss_random, &chance);
		return true;
	case GILBERT:
		if (fp_draw(&l->loss_random) < (l->bad ? p->c : p->b))
			l->bad = !l->bad;
		below = l->bad ? p->e : p->d;
		return below && fp_draw(&l->loss_random) < below;
	default:
		return false;
	}
}

static bool policed(struct fp_link *l, u64 now, u32 size)
{
	u64 gained, needs = (u64)size * 8;

	if (!l->police_rate)
		return false;
	/* tokens in bits; the rest of a bit stays in `police_at` */
	gained = mul_u64_u64_div_u64(now - l->police_at, l->police_rate, 1000000000ULL);
	if (gained) {
		l->police_at += mul_u64_u64_div_u64(gained, 1000000000ULL, l->police_rate);
		l->police_tokens = min(l->police_tokens + gained, l->police_depth);
	}
	if (l->police_tokens < needs)
		return true;
	l->police_tokens -= needs;
	return false;
}

/* True if the packet passes; counts it otherwise. */
bool fp_passes(struct fp_link *l, const struct fp_meta *m, u64 now)
{
	bool counts = now <= fp_run.end;
	bool bears_data = m->kind == FP_DATA || m->kind == FP_DATAGRAM;

	if ((l->loss_of_acks || bears_data) && !m->spare && lost(l, now)) {
		l->n.random_drops += counts;
		return false;
	}
	if (policed(l, now, m->size)) {
		l->n.policer_drops += counts;
		return false;
	}
	return true;
}
