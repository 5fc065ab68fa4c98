// SPDX-License-Identifier: GPL-2.0 OR MIT OR Apache-2.0
/* Records: written while the run goes on, read and removed by the guest's first process. */
#include <linux/math64.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>

#include "fullpipe.h"

#define SUB 11 /* log2 of the buckets of a histogram in an octave */
#define BUCKETS ((33 - SUB) << SUB) /* up to 2^32 */

struct chunk {
	struct list_head list;
	size_t used, read;
	u8 data[];
};

#define CHUNK ((1 << 18) - 256)
static LIST_HEAD(chunks);

void fp_emit(u32 kind, u32 id, const void *data, u64 size)
{
	struct fp_head h = {kind, id, size};
	struct chunk *c = list_empty(&chunks) ? NULL : list_last_entry(&chunks, struct chunk, list);
	size_t whole = sizeof(h) + size;

	if (!c || c->used + whole > CHUNK) {
		/* Only totals are longer than a chunk, and they are not written in a softirq. */
		c = whole > CHUNK ? vmalloc(sizeof(*c) + whole)
				  : kmalloc(sizeof(*c) + CHUNK, GFP_ATOMIC);
		if (!c)
			panic("fullpipe: no memory for records");
		c->used = c->read = 0;
		list_add_tail(&c->list, &chunks);
	}
	memcpy(c->data + c->used, &h, sizeof(h));
	memcpy(c->data + c->used + sizeof(h), data, size);
	c->used += whole;
}

u32 *fp_histogram(void)
{
	u32 *counts = vzalloc(BUCKETS * sizeof(u32));

	if (!counts)
		panic("fullpipe: no memory for a histogram");
	return counts;
}

void fp_count(u32 *histogram, u64 value)
{
	unsigned int e;

	value = min_t(u64, value, U32_MAX);
	if (value >> SUB == 0) {
		histogram[value]++;
		return;
	}
	e = fls64(value) - 1 - SUB;
	histogram[((e + 1) << SUB) + ((value >> e) & ((1 << SUB) - 1))]++;
}

/* Pairs of bucket and count. */
void fp_emit_histogram(u32 kind, u32 id, const u32 *counts)
{
	u32 *pairs, n = 0, i;

	for (i = 0; i < BUCKETS; i++)
		n += counts[i] != 0;
	pairs = vmalloc(n * 8 + 8);
	if (!pairs)
		panic("fullpipe: no memory for records");
	for (i = 0, n = 0; i < BUCKETS; i++)
		if (counts[i]) {
			pairs[n++] = i;
			pairs[n++] = counts[i];
		}
	fp_emit(kind, id, pairs, n * 4);
	vfree(pairs);
}

/* Number of the sample of arrivals that `now` belongs to. */
u32 fp_interval(u64 now)
{
	return min_t(u64, div64_u64(now, fp_run.interval), fp_run.intervals - 1);
}

/* Records, and, as the last thing, nothing: the reader closes then. */
ssize_t fp_take_records(char __user *to, size_t size)
{
	struct chunk *c;
	size_t n;

	local_bh_disable();
	c = list_first_entry_or_null(&chunks, struct chunk, list);
	n = c ? min(size, c->used - c->read) : 0;
	local_bh_enable();
	if (!n)
		return 0;
	if (copy_to_user(to, c->data + c->read, n))
		return -EFAULT;
	local_bh_disable();
	c->read += n;
	if (c->read == c->used) {
		list_del(&c->list);
		kvfree(c);
	}
	local_bh_enable();
	return n;
}
