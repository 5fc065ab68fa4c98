// SPDX-License-Identifier: GPL-2.0 OR MIT OR Apache-2.0
/*
 * /proc/fullpipe: commands, one per line, and the records of a run.
 *
 * sizes FLOWS LINKS CROSS INTERVALS BITS  room; BITS: segments of a lasting flow whose arrival is
 *                                       remembered, 2^n
 * run MEASURE END INTERVAL STEP QUEUE_STEP CAPTURE
 * host SIDE                             a device in the namespace of the writer
 * link I QUEUE LIMIT BUFFER_KIND BUFFER LOSS_OF_ACKS WATCHED SEED   the seed is that of its losses
 * rate I AT BPS / delay I AT NS         BPS 2^64 - 1: in no time
 * opportunities I MS...                 of a trace, in the place of rates
 * loss I AT KIND A B C D                see entry.c
 * jitter I NS SEED / reorder I M SHIFT EXTRA SEED / policer I BPS BYTES
 * flow I REVERSE MSS CAP INITIAL BYTES STOP BRIEF
 * options I STAMPS SACK INTERFACE SMALL_QUEUE REDUCES LAST_ACK   of a flow, before one is `like` it
 * data I LINK... / acks I LINK...       the routes
 * like I FLOW BYTES                     one more of the class of brief flow FLOW
 * drop I WHERE KIND VALUE               WHERE 0 path 1 arrival; KIND 0 segment 1 time 2 every
 *                                       3 window
 * chance I WHERE M SHIFT SEED
 * cross I ANSWERED SIZE / there I LINK... / back I LINK... / depart I NS...
 * go ZERO                               ktime of the start
 * finish                                the totals become records
 */
#include <linux/init.h>
#include <linux/module.h>
#include <linux/proc_fs.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>

#include "fullpipe.h"

struct fp_run fp_run = {.end = FP_FOREVER,
			.interval = 1000000000,
			.step = FP_FOREVER,
			.queue_step = FP_FOREVER,
			.intervals = 1};
static u32 lasting_bits;

u64 fp_now(void)
{
	u64 t = ktime_get_ns();

	return fp_run.going && t > fp_run.zero ? t - fp_run.zero : 0;
}

/* ---- memory ------------------------------------------------------------------------------- */

static void *zeroed(size_t size)
{
	void *p = kvzalloc(size, GFP_KERNEL);

	if (!p)
		panic("fullpipe: no memory for %zu bytes", size);
	return p;
}

static void grow(struct fp_changes *c, struct fp_piece p)
{
	struct fp_piece *more = krealloc(c->p, (c->n + 1) * sizeof(p), GFP_KERNEL);

	if (!more)
		panic("fullpipe: no memory for a schedule");
	more[c->n++] = p;
	c->p = more;
}

static void append(struct fp_list *l, u64 value)
{
	if (!(l->n & (l->n - 1))) {
		u64 *more = zeroed(max(1u, l->n * 2) * sizeof(u64));

		if (l->n)
			memcpy(more, l->at, l->n * sizeof(u64));
		kvfree(l->at);
		l->at = more;
	}
	l->at[l->n++] = value;
}

/* ---- words -------------------------------------------------------------------------------- */

/* Up to `most` numbers; how many there are, or -1 if something else is there too. */
static int numbers(char *list, u64 *to, int most)
{
	char *word;
	int n = 0;

	while ((word = strsep(&list, " ")) != NULL) {
		if (!*word)
			continue;
		if (n == most || kstrtou64(word, 10, &to[n]))
			return -1;
		n++;
	}
	return n;
}

static int append_all(struct fp_list *l, char *list)
{
	char *word;
	u64 value;

	while ((word = strsep(&list, " ")) != NULL) {
		if (!*word)
			continue;
		if (kstrtou64(word, 10, &value))
			return -EINVAL;
		append(l, value);
	}
	return 0;
}

static int route(struct fp_route *r, char *list)
{
	u64 links[FP_MOST_HOPS];
	int n = numbers(list, links, FP_MOST_HOPS), i;

	if (n < 0)
		return -EINVAL;
	for (i = 0; i < n; i++) {
		if (links[i] >= fp_nlinks)
			return -EINVAL;
		r->link[i] = links[i];
	}
	r->hops = n;
	return 0;
}

/* ---- what a command makes ----------------------------------------------------------------- */

static int make_room(const u64 *v)
{
	fp_nflows = v[0];
	fp_nlinks = v[1];
	fp_ncross = v[2];
	fp_run.intervals = max(v[3], 1ULL);
	lasting_bits = v[4];
	fp_flows = zeroed(sizeof(*fp_flows) * max(v[0], 1ULL));
	fp_links = zeroed(sizeof(*fp_links) * max(v[1], 1ULL));
	fp_cross = zeroed(sizeof(*fp_cross) * max(v[2], 1ULL));
	return 0;
}

static int make_run(const u64 *v)
{
	fp_run.measure = v[0];
	fp_run.end = v[1];
	fp_run.interval = v[2];
	fp_run.step = v[3];
	fp_run.queue_step = v[4];
	fp_run.capture = v[5];
	return 0;
}

static int make_link(const u64 *v)
{
	struct fp_link *l = &fp_links[v[0]];

	if (v[0] >= fp_nlinks)
		return -EINVAL;
	l->present = true;
	l->queue = v[1];
	l->limit = v[2];
	l->buffer_kind = v[3];
	l->buffer = v[4];
	l->loss_of_acks = v[5];
	l->watched = v[6];
	fp_seed(&l->loss_random, v[7]);
	l->mask = 1 << 6;
	if (l->buffer_kind == FP_PACKETS)
		l->mask = roundup_pow_of_two(clamp(l->buffer, 1ULL, 1ULL << 22));
	l->ring = zeroed(l->mask * sizeof(*l->ring));
	l->mask--;
	fp_begin_wire(l);
	if (l->watched)
		l->wait = fp_histogram();
	return l->queue == FP_FIFO ? 0 : fp_add_held(v[0]);
}

static void remember(struct fp_flow *f, u64 segments)
{
	f->bits = f->brief ? roundup_pow_of_two(clamp_t(u64, segments, 64, lasting_bits))
			   : lasting_bits;
	f->again = zeroed(f->bits / 8);
	f->got = zeroed(f->bits / 8);
	f->t.completed = FP_FOREVER;
}

static int make_flow(const u64 *v)
{
	struct fp_flow *f = &fp_flows[v[0]];

	if (v[0] >= fp_nflows || !v[2])
		return -EINVAL;
	f->present = true;
	f->reverse = v[1];
	f->mss = v[2];
	f->cap = v[3];
	f->initial = v[4];
	f->finite = v[5];
	f->stop = v[6];
	f->brief = v[7];
	f->route = zeroed(2 * sizeof(*f->route));
	f->tally = zeroed(sizeof(*f->tally));
	f->tally->delivered = zeroed(fp_run.intervals * 4);
	f->tally->arrived = zeroed(fp_run.intervals * 4);
	f->tally->rtt = fp_histogram();
	remember(f, div_u64(f->finite, f->mss) + 1);
	return 0;
}

static int make_options(const u64 *v)
{
	struct fp_flow *f = &fp_flows[v[0]];

	if (v[0] >= fp_nflows || !f->present)
		return -EINVAL;
	f->stamps = v[1];
	f->sack = v[2];
	f->interface = v[3];
	f->small_queue = v[4];
	f->reduces = v[5];
	f->last_ack = v[6];
	return 0;
}

static int make_like(const u64 *v)
{
	struct fp_flow *f = &fp_flows[v[0]];

	if (v[0] >= fp_nflows || v[1] >= v[0] || !fp_flows[v[1]].brief)
		return -EINVAL;
	*f = fp_flows[v[1]];
	f->finite = v[2];
	remember(f, div_u64(f->finite, f->mss) + 1);
	return 0;
}

static struct fp_rules *rules_of(u64 flow, u64 where)
{
	struct fp_flow *f = &fp_flows[flow];

	if (flow >= fp_nflows || where > 1)
		return NULL;
	if (!f->rules)
		f->rules = zeroed(2 * sizeof(*f->rules));
	return &f->rules[where];
}

static int make_drop(const u64 *v)
{
	struct fp_rules *r = rules_of(v[0], v[1]);

	if (!r || v[2] > 3)
		return -EINVAL;
	switch (v[2]) {
	case 0:
		append(&r->segments, v[3]);
		break;
	case 1:
		append(&r->times, v[3]);
		break;
	case 2:
		r->every = v[3];
		break;
	case 3:
		r->window = v[3];
		break;
	}
	return 0;
}

static int make_chance(const u64 *v)
{
	struct fp_rules *r = rules_of(v[0], v[1]);

	if (!r)
		return -EINVAL;
	r->chance = (struct fp_chance){.m = v[2], .shift = v[3], .possible = true};
	fp_seed(&r->random, v[4]);
	r->gap = fp_gap(&r->random, &r->chance);
	return 0;
}

static int make_cross(const u64 *v)
{
	struct fp_cross *c = &fp_cross[v[0]];

	if (v[0] >= fp_ncross)
		return -EINVAL;
	c->present = true;
	c->answered = v[1];
	c->size = v[2];
	c->arrived = zeroed(fp_run.intervals * 4);
	c->delay = fp_histogram();
	return 0;
}

static struct fp_link *link_of(u64 i)
{
	return i < fp_nlinks && fp_links[i].present ? &fp_links[i] : NULL;
}

static int make_rate(const u64 *v)
{
	struct fp_link *l = link_of(v[0]);

	if (!l)
		return -EINVAL;
	grow(&l->rates, (struct fp_piece){.at = v[1], .a = v[2]});
	return 0;
}

static int make_delay(const u64 *v)
{
	struct fp_link *l = link_of(v[0]);

	if (!l)
		return -EINVAL;
	grow(&l->delays, (struct fp_piece){.at = v[1], .a = v[2]});
	return 0;
}

static int make_loss(const u64 *v)
{
	struct fp_link *l = link_of(v[0]);

	if (!l)
		return -EINVAL;
	grow(&l->losses, (struct fp_piece){v[1], v[2], v[3], v[4], v[5], v[6]});
	return 0;
}

static int make_jitter(const u64 *v)
{
	struct fp_link *l = link_of(v[0]);

	if (!l)
		return -EINVAL;
	l->jitter = v[1];
	fp_seed(&l->jitter_random, v[2]);
	return 0;
}

static int make_reorder(const u64 *v)
{
	struct fp_link *l = link_of(v[0]);

	if (!l)
		return -EINVAL;
	l->overtaken = (struct fp_chance){.m = v[1], .shift = v[2], .possible = true};
	l->extra = v[3];
	fp_seed(&l->overtaken_random, v[4]);
	l->overtaken_gap = fp_gap(&l->overtaken_random, &l->overtaken);
	return 0;
}

static int make_policer(const u64 *v)
{
	struct fp_link *l = link_of(v[0]);

	if (!l)
		return -EINVAL;
	l->police_rate = v[1];
	l->police_tokens = l->police_depth = v[2] * 8;
	return 0;
}

static int make_host(const u64 *v)
{
	return v[0] > 1 ? -EINVAL : fp_add_host(v[0]);
}

static int go(const u64 *v)
{
	u32 i;

	fp_run.zero = v[0];
	fp_run.going = true;
	local_bh_disable();
	for (i = 0; i < fp_ncross; i++)
		if (fp_cross[i].present)
			fp_begin_cross(&fp_cross[i]);
	local_bh_enable();
	return 0;
}

/* ---- the end ------------------------------------------------------------------------------ */

/* No packet counts any more, and memory for long records may have to be waited for. */
static int finish(const u64 *v)
{
	u32 i;

	for (i = 0; i < fp_nflows; i++) {
		struct fp_flow *f = &fp_flows[i];
		bool first = !i || f->tally != fp_flows[i - 1].tally;

		if (!f->present)
			continue;
		fp_close_limits(f);
		fp_close_flow(f);
		fp_emit(FP_FLOW, i, &f->t, sizeof(f->t));
		if (!first)
			continue;
		fp_emit(FP_DELIVERED, i, f->tally->delivered, fp_run.intervals * 4);
		fp_emit(FP_ARRIVED, i, f->tally->arrived, fp_run.intervals * 4);
		fp_emit_histogram(FP_RTT, i, f->tally->rtt);
	}
	for (i = 0; i < fp_nlinks; i++) {
		struct fp_link *l = &fp_links[i];

		if (!l->present)
			continue;
		if (l->queue != FP_FIFO)
			fp_close_held(l);
		else
			fp_close_fifo(l);
		fp_emit(FP_LINK, i, &l->n, sizeof(l->n));
		if (l->wait)
			fp_emit_histogram(FP_WAIT, i, l->wait);
	}
	for (i = 0; i < fp_ncross; i++) {
		struct fp_cross *c = &fp_cross[i];

		if (!c->present)
			continue;
		fp_emit(FP_CROSS, i, &c->n, sizeof(c->n));
		fp_emit(FP_CROSS_ARRIVED, i, c->arrived, fp_run.intervals * 4);
		fp_emit_histogram(FP_CROSS_DELAY, i, c->delay);
	}
	fp_emit(FP_END, 0, "", 0);
	return 0;
}

/* ---- reading a command -------------------------------------------------------------------- */

#define MOST_NUMBERS 8

static const struct {
	const char *word;
	int numbers;
	int (*make)(const u64 *v);
} commands[] = {
	{"sizes", 5, make_room},    {"run", 6, make_run},	{"host", 1, make_host},
	{"link", 8, make_link},	    {"rate", 3, make_rate},	{"delay", 3, make_delay},
	{"loss", 7, make_loss},	    {"jitter", 3, make_jitter}, {"reorder", 5, make_reorder},
	{"policer", 3, make_policer}, {"flow", 8, make_flow},	{"like", 3, make_like},
	{"options", 7, make_options}, {"drop", 4, make_drop}, {"chance", 5, make_chance}, {"cross", 3, make_cross},
	{"go", 1, go},		    {"finish", 0, finish},
};

/* Those with a list of any length behind the number of what it belongs to. */
static int with_list(const char *word, u64 i, char *list)
{
	struct fp_link *l = link_of(i);
	struct fp_flow *f = i < fp_nflows && fp_flows[i].present ? &fp_flows[i] : NULL;
	struct fp_cross *c = i < fp_ncross && fp_cross[i].present ? &fp_cross[i] : NULL;

	if (!strcmp(word, "data"))
		return f ? route(&f->route[0], list) : -EINVAL;
	if (!strcmp(word, "acks"))
		return f ? route(&f->route[1], list) : -EINVAL;
	if (!strcmp(word, "there"))
		return c ? route(&c->route[0], list) : -EINVAL;
	if (!strcmp(word, "back"))
		return c ? route(&c->route[1], list) : -EINVAL;
	if (!strcmp(word, "depart"))
		return c ? append_all(&c->departures, list) : -EINVAL;
	if (!strcmp(word, "opportunities") && l && !append_all(&l->trace, list)) {
		fp_begin_trace(l);
		return 0;
	}
	return -EINVAL;
}

static int command(char *line)
{
	char *word = strsep(&line, " "), *first;
	u64 v[MOST_NUMBERS], i;
	int k;

	for (k = 0; k < ARRAY_SIZE(commands); k++)
		if (!strcmp(word, commands[k].word)) {
			if (numbers(line, v, MOST_NUMBERS) != commands[k].numbers)
				return -EINVAL;
			return commands[k].make(v);
		}
	first = strsep(&line, " ");
	if (!first || kstrtou64(first, 10, &i))
		return -EINVAL;
	return with_list(word, i, line);
}

static ssize_t fp_write(struct file *file, const char __user *from, size_t size, loff_t *pos)
{
	char *text = vmalloc(size + 1), *rest = text, *line;
	ssize_t result = size;

	if (!text)
		return -ENOMEM;
	if (copy_from_user(text, from, size)) {
		vfree(text);
		return -EFAULT;
	}
	text[size] = 0;
	while ((line = strsep(&rest, "\n")) != NULL) {
		char start[80];
		int error;

		strscpy(start, line, sizeof(start));
		error = *line ? command(line) : 0;
		if (error) {
			pr_emerg("fullpipe: command refused (%d): %s\n", error, start);
			result = error;
			break;
		}
	}
	vfree(text);
	return result;
}

static ssize_t fp_read(struct file *file, char __user *to, size_t size, loff_t *pos)
{
	return fp_take_records(to, size);
}

static const struct proc_ops fp_ops = {
	.proc_write = fp_write, .proc_read = fp_read, .proc_lseek = noop_llseek};

static int __init fp_init(void)
{
	return proc_create("fullpipe", 0600, NULL, &fp_ops) ? 0 : -ENOMEM;
}
late_initcall(fp_init);
