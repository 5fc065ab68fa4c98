// SPDX-License-Identifier: GPL-2.0 OR MIT OR Apache-2.0
/* A link: what every packet meets, and the drop-tail queue, in closed form: a packet's departure is
   known when it enters. */
#include "fullpipe.h"

struct fp_link *fp_links;
u32 fp_nlinks;

/* The queue was so long for some time of this step. It is told before a packet enters and after:
   between, a queue only gets shorter, down to what the next packet or sample finds. */
void fp_varied(struct fp_link *l, u64 packets)
{
	l->low = min(l->low, packets);
	l->high = max(l->high, packets);
}

/* The queue is to be sampled before what happens now. */
bool fp_step_over(const struct fp_link *l, u64 now)
{
	bool waits = l->queue != FP_FIFO || fp_has_transmitter(l);

	return waits && fp_run.queue_step != FP_FOREVER && l->sample_at <= now &&
	       l->sample_at <= fp_run.end;
}

/* A step has ended, with so many packets; the last one does with the run. */
void fp_sample(struct fp_link *l, u64 packets)
{
	struct fp_sample s = {l->sample_at, packets};

	fp_varied(l, packets);
	s.min = l->low;
	s.max = l->high;
	fp_emit(FP_SAMPLE, l - fp_links, &s, sizeof(s));
	l->low = l->high = packets;
	if (l->sample_at < fp_run.end)
		l->sample_at = min(l->sample_at + fp_run.queue_step, fp_run.end);
	else
		l->sample_at = FP_FOREVER;
}

/* A packet that entered at `entered` is in transmission from `begins` to `departs`. */
void fp_booked(struct fp_link *l, u64 entered, u64 begins, u64 departs, u32 size)
{
	if (departs > fp_run.end)
		return;
	l->n.passed++;
	l->n.passed_bytes += size;
	if (departs <= fp_run.measure)
		return;
	l->n.measured_bytes += size;
	if (l->watched && l->wait)
		fp_count(l->wait, (begins - entered) / 100);
}

static void occupy(struct fp_link *l, u64 from, u64 to)
{
	from = max(from, fp_run.measure);
	to = min(to, fp_run.end);
	if (to > from)
		l->n.area += to - from;
}

static bool fits(const struct fp_link *l, u64 now, u32 packets, u32 size, u64 done)
{
	switch (l->buffer_kind) {
	case FP_PACKETS:
		return packets < l->buffer;
	case FP_BYTES:
		return l->bytes + size <= l->buffer;
	case FP_TIME:
		return done - now <= l->buffer;
	default:
		return true;
	}
}

static void longer_ring(struct fp_link *l)
{
	u32 longer = (l->mask + 1) * 2, i;
	struct fp_departure *ring = kmalloc_array(longer, sizeof(*ring), GFP_ATOMIC);

	if (!ring)
		panic("fullpipe: no memory for a queue");
	for (i = l->head; i != l->tail; i++)
		ring[i & (longer - 1)] = l->ring[i & l->mask];
	kvfree(l->ring);
	l->ring = ring;
	l->mask = longer - 1;
}

static u32 released(struct fp_link *l, u64 now)
{
	while (l->head != l->tail && l->ring[l->head & l->mask].at <= now) {
		l->bytes -= l->ring[l->head & l->mask].size;
		l->head++;
	}
	return l->tail - l->head;
}

/* Packets of a FIFO that have not left. */
static u32 inside(struct fp_link *l, u64 now)
{
	while (fp_step_over(l, now))
		fp_sample(l, released(l, fp_before(l->sample_at)));
	return released(l, now);
}

/* The run is over. */
void fp_close_fifo(struct fp_link *l)
{
	inside(l, fp_run.end);
}

/* Whether a FIFO would take a packet of that size. */
bool fp_has_room(struct fp_link *l, u64 now, u32 size)
{
	now = max(l->clock, now);
	return fits(l, now, inside(l, now), size, fp_done(l, fp_start(l, now), size).at);
}

static void enter_fifo(struct fp_link *l, struct fp_meta *m, u64 now)
{
	bool counts = now <= fp_run.end;
	struct fp_cursor start, done;
	u32 packets = inside(l, now);

	start = fp_start(l, now);
	done = fp_done(l, start, m->size);
	if (!fits(l, now, packets, m->size, done.at)) {
		l->n.buffer_drops += counts;
		return fp_lose(m);
	}
	l->last = done;
	if (packets > l->mask)
		longer_ring(l);
	l->ring[l->tail++ & l->mask] = (struct fp_departure){done.at, m->size};
	l->bytes += m->size;
	fp_varied(l, packets++);
	fp_varied(l, packets);
	if (now >= fp_run.measure && counts)
		l->n.queue_max = max_t(u64, l->n.queue_max, packets);
	occupy(l, now, done.at);
	fp_booked(l, now, start.at, done.at, m->size);
	fp_fly(l, m, done.at);
}

void fp_offer(struct fp_link *l, struct fp_meta *m, u64 now)
{
	bool counts = now <= fp_run.end;

	/* Timers of two links may go off in another order than they are due. */
	now = l->clock = max(l->clock, now);
	l->n.offered += counts;
	if (!fp_passes(l, m, now))
		return fp_lose(m);
	if (l->queue != FP_FIFO)
		return fp_hold(l, m, now);
	if (fp_has_transmitter(l))
		return enter_fifo(l, m, now);
	if (counts) {
		l->n.passed++;
		l->n.passed_bytes += m->size;
		if (now > fp_run.measure)
			l->n.measured_bytes += m->size;
	}
	fp_fly(l, m, now);
}
