/* Drives bpf/law.h by lines of numbers on the standard input and prints the window after each:
 * P params and numbers; R a row; W window and threshold; C a cap of it, 0 for none; A an ACK; D one
 * in a recovery; L a loss or a timeout. */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t s32;
typedef int64_t s64;
typedef _Bool bool;
#define true 1
#define false 0
#define ALWAYS static inline

#include "../bpf/law.h"

static u64 number(void)
{
	u64 x = 0;

	if (scanf("%" SCNu64, &x) != 1)
		return 0;
	return x;
}

int main(void)
{
	struct params p = {};
	static struct table t;
	struct state s;
	struct window win = {};
	u32 rows = 0, clamp = 0;
	char what;

	begin(&s, LAW_TABLE, 0);
	while (scanf(" %c", &what) == 1) {
		switch (what) {
		case 'P':
			p.law = number();
			p.rows = number();
			p.max_ssthresh = number();
			p.gamma = number();
			p.gamma_then = number();
			p.update_interval_us = number();
			for (int k = 0; k < NUMBERS; k++)
				p.number[k] = number();
			continue;
		case 'R':
			t.row[rows].window = number();
			t.row[rows].increase = number();
			t.row[rows++].decrease = number();
			continue;
		case 'W':
			win.w = number();
			win.ssthresh = number();
			continue;
		case 'C':
			clamp = number();
			continue;
		case 'A':
		case 'D': {
			struct ack ack = {};
			u32 n;

			ack.now = number();
			ack.n = n = number();
			ack.rtt_us = number();
			ack.srtt_us = number();
			ack.una = number();
			ack.nxt = number();
			ack.delivered = number();
			ack.open = ack.may_grow = what == 'A';
			ack.recovering = what == 'D';
			observe(&p, &s, &win, &ack);
			if (what == 'D')
				break;
			if (win.w < win.ssthresh)
				n = slow_start(&p, &s, &win, n);
			if (n) {
				ack.n = n;
				increase(&p, &t, &s, &win, &ack);
			}
			if (clamp && win.w > clamp)
				win.w = clamp;
			break;
		}
		case 'L': {
			u64 now = number();

			win.ssthresh = decrease(&p, &t, &s, win.w, now, number());
			win.w = win.ssthresh;
			s.fraction = 0;
			break;
		}
		}
		printf("%.9f %u\n", win.w + s.fraction / 4294967296.0, win.ssthresh);
	}
	return 0;
}
