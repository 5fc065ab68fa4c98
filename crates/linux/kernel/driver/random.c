// SPDX-License-Identifier: GPL-2.0 OR MIT OR Apache-2.0
/*
 * Random numbers as the simulator draws them (crate fullpipe-run, rng.rs), so that one seed means
 * the same losses, delays and reordered packets on both: xoshiro256++ (Blackman and Vigna 2018),
 * seeded by splitmix64, of which a uniform number is the upper 53 bits and a half. The simulator
 * computes in floating point, which a kernel does not have: a logarithm is rounded otherwise about
 * once in 10^15 draws.
 */
#include "fullpipe.h"

typedef unsigned __int128 u128_t;

static u64 rotated(u64 x, int k)
{
	return x << k | x >> (64 - k);
}

void fp_seed(struct fp_random *r, u64 seed)
{
	int i;

	for (i = 0; i < 4; i++) {
		u64 z = (seed += 0x9E3779B97F4A7C15ULL);

		z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
		z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
		r->s[i] = z ^ (z >> 31);
	}
}

/* 53 bits: the uniform number is (2 draw + 1) / 2^54. */
u64 fp_draw(struct fp_random *r)
{
	u64 *s = r->s, result = rotated(s[0] + s[3], 23) + s[0], t = s[1] << 17;

	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= t;
	s[3] = rotated(s[3], 45);
	return result >> 11;
}

/* A uniform part of `most`. */
u64 fp_part(struct fp_random *r, u64 most)
{
	return (u64)((u128_t)most * (2 * fp_draw(r) + 1) >> 54);
}

#define FRACTION 58

/* log2 of v > 0, with 58 binary places: squaring the mantissa gives one after the other. */
static u64 log2_of(u64 v)
{
	int e = fls64(v) - 1, i;
	u64 x = v << (63 - e), result = e;

	for (i = 0; i < FRACTION; i++) {
		u128_t square = (u128_t)x * x >> 63;
		bool two = square >> 64;

		x = two ? (u64)(square >> 1) : (u64)square;
		result = result << 1 | two;
	}
	return result;
}

/* Trials up to and including the next success; FP_FOREVER where there is none. */
u64 fp_gap(struct fp_random *r, const struct fp_chance *p)
{
	u64 away;

	if (!p->possible)
		return FP_FOREVER;
	if (!p->m) /* certain */
		return 1;
	away = (54ULL << FRACTION) - log2_of(2 * fp_draw(r) + 1);
	return 1 + (u64)((u128_t)away * p->m >> (FRACTION + p->shift));
}
