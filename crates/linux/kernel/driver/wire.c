// SPDX-License-Identifier: GPL-2.0 OR MIT OR Apache-2.0
/* The way behind the transmitter: a delay that may change, jitter that keeps the order, and packets
   that arrive later than those behind them. */
#include "fullpipe.h"

const struct fp_piece *fp_current(struct fp_changes *c, u64 now)
{
	while (c->next + 1 < c->n && c->p[c->next + 1].at <= now)
		c->next++;
	return c->n ? &c->p[c->next] : NULL;
}

static void arrive(struct fp_alarm *alarm)
{
	struct fp_link *l = container_of(alarm, struct fp_link, arrivals);
	u64 now = fp_now();

	while (!list_empty(&l->flight)) {
		struct fp_meta *m = list_first_entry(&l->flight, struct fp_meta, list);

		if (m->arrives > now) {
			fp_ring_at(alarm, m->arrives);
			break;
		}
		list_del(&m->list);
		m->hop++;
		fp_forward(m, m->arrives);
	}
}

void fp_begin_wire(struct fp_link *l)
{
	INIT_LIST_HEAD(&l->flight);
	fp_make_alarm(&l->arrivals, arrive);
}

/* A packet has left the transmitter at `left`, no earlier than the one before. */
void fp_fly(struct fp_link *l, struct fp_meta *m, u64 left)
{
	struct list_head *place = &l->flight;
	const struct fp_piece *delay;
	struct fp_meta *before;

	if (left == FP_FOREVER) { /* never */
		m->arrives = FP_FOREVER;
		list_add_tail(&m->list, &l->flight);
		return;
	}
	delay = fp_current(&l->delays, left);
	m->arrives = left + (delay ? delay->a : 0);
	if (l->jitter && !m->spare)
		m->arrives += fp_part(&l->jitter_random, l->jitter);
	m->arrives = max(m->arrives, l->latest_arrival);
	l->latest_arrival = m->arrives;
	if (l->overtaken.possible && !m->spare && !--l->overtaken_gap) {
		l->overtaken_gap = fp_gap(&l->overtaken_random, &l->overtaken);
		m->arrives += l->extra;
	}
	list_for_each_entry_reverse(before, &l->flight, list) {
		if (before->arrives <= m->arrives) {
			place = &before->list;
			break;
		}
	}
	list_add(&m->list, place);
	if (l->flight.next == &m->list)
		fp_ring_at(&l->arrivals, m->arrives);
}
