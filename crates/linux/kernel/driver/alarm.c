// SPDX-License-Identifier: GPL-2.0 OR MIT OR Apache-2.0
/* Alarms of the network. What they do comes as the second half of a network card's interrupt does,
   not in a soft hrtimer: that one ends all others that may end by then, and a packet that arrives
   within the slack of TCP's timer for merged ACKs (tcp_comp_sack_slack_ns) would end it. */
#include "fullpipe.h"

static enum hrtimer_restart ring(struct hrtimer *timer)
{
	tasklet_hi_schedule(&container_of(timer, struct fp_alarm, timer)->second_half);
	return HRTIMER_NORESTART;
}

static void second_half(struct tasklet_struct *t)
{
	struct fp_alarm *a = from_tasklet(a, t, second_half);

	a->function(a);
}

void fp_make_alarm(struct fp_alarm *a, void (*function)(struct fp_alarm *a))
{
	a->function = function;
	hrtimer_init(&a->timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS);
	a->timer.function = ring;
	tasklet_setup(&a->second_half, second_half);
}

void fp_ring_at(struct fp_alarm *a, u64 at)
{
	hrtimer_start(&a->timer, ns_to_ktime(fp_run.zero + at), HRTIMER_MODE_ABS);
}
