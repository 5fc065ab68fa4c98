// SPDX-License-Identifier: GPL-2.0 OR MIT OR Apache-2.0
/*
 * fullpipe: the network of a run, between two hosts that are network namespaces of this kernel.
 *
 * Hosts 0 and 1 have one point-to-point device each, fp0 and fp1. What a host sends passes the
 * links of its flow's route and arrives at the other host's device. A link is, in this order:
 * random loss, a policer, a queue, a transmitter, a delay with jitter, packets that are overtaken.
 * A drop-tail queue is computed in closed form. Any other queue is the kernel's own discipline on
 * the device fpl<N>: the transmitter takes one packet from it whenever it has become free.
 *
 * Beside the network it records: what flows send and what arrives, and, through calls that are
 * patched into net/ipv4/tcp_input.c and tcp_output.c, the state of each sender after every ACK.
 *
 * /proc/fullpipe takes one command per line (see fp_command) and gives the records (struct fp_*
 * below, each behind a struct fp_head), which reading removes. Times are nanoseconds since the
 * start of the run unless a name says otherwise.
 *
 * The host has one processor and all of this runs with softirqs disabled: there are no locks.
 */
#include <linux/etherdevice.h>
#include <linux/hrtimer.h>
#include <linux/init.h>
#include <linux/ip.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/nsproxy.h>
#include <linux/proc_fs.h>
#include <linux/rtnetlink.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/tcp.h>
#include <linux/udp.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>
#include <net/inet_ecn.h>
#include <net/ip.h>
#include <net/net_namespace.h>
#include <net/pkt_sched.h>
#include <net/sch_generic.h>
#include <net/sock.h>
#include <net/tcp.h>

#define FP_FOREVER (~0ULL)
#define FP_MOST_HOPS 32
#define FP_SUB 11 /* log2 of the buckets of a histogram in an octave */
#define FP_BUCKETS ((33 - FP_SUB) << FP_SUB) /* up to 2^32 */

/* ---- records ---------------------------------------------------------------------------- */

enum {
	FP_ROW = 1,
	FP_EPISODE,
	FP_ROUND,
	FP_SAMPLE,
	FP_FLOW = 16,
	FP_DELIVERED,
	FP_ARRIVED,
	FP_RTT,
	FP_LINK,
	FP_WAIT,
	FP_PACKET,
	FP_END = 32,
};

struct fp_head {
	u32 kind;
	u32 id;   /* flow or link */
	u64 size; /* bytes that follow */
};

struct fp_row {
	u64 time;
	u64 pacing; /* bytes per second */
	u64 delivered, una, nxt;
	u64 srtt; /* ns */
	u32 cwnd, low, high, ssthresh;
	u32 rtt, min_rtt; /* us */
	u32 flight, retransmits, loss_events, timeouts;
	u16 events;
	u8 phase, start_up;
	u32 mss;
};

struct fp_episode {
	u64 time;
	u32 kind, before, after, zero;
};

struct fp_round {
	u64 time, delivered, cwnd;
};

struct fp_sample {
	u64 time, packets;
};

/* Counters of a flow; the first ones in the order of FlowTotals. */
struct fp_totals {
	u64 sent, retransmits, delivered, delivered_measured, arrived_measured, duplicates;
	u64 out_of_order, dropped, loss_events, loss_events_measured, timeouts, probes, undone;
	u64 acks;
	u64 arrived, late; /* before and after the end of the run */
	u64 area;	   /* window times time since the measured part began, segments x ns */
	u64 since;	   /* the measured part of this flow began */
	u64 until;	   /* the area ends */
	u64 cwnd_max;
	u64 completed; /* FP_FOREVER: not */
	u64 rtt_min, rtt_max; /* us */
};

struct fp_counts {
	u64 offered, passed, passed_bytes, measured_bytes;
	u64 buffer_drops, random_drops, policer_drops, early_drops, marks;
	u64 queue_max, area;
};

struct chunk {
	struct list_head list;
	size_t used, read;
	u8 data[];
};

#define CHUNK ((1 << 18) - 256)
static LIST_HEAD(chunks);

static void emit(u32 kind, u32 id, const void *data, u64 size)
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

static unsigned int bucket(u64 v)
{
	unsigned int e;

	v = min_t(u64, v, U32_MAX);
	if (v >> FP_SUB == 0)
		return v;
	e = fls64(v) - 1 - FP_SUB;
	return ((e + 1) << FP_SUB) + ((v >> e) & ((1 << FP_SUB) - 1));
}

static void emit_histogram(u32 kind, u32 id, const u32 *counts)
{
	/* pairs of bucket and count */
	u32 *pairs, n = 0, i;

	for (i = 0; i < FP_BUCKETS; i++)
		n += counts[i] != 0;
	pairs = vmalloc(n * 8 + 8);
	if (!pairs)
		panic("fullpipe: no memory for records");
	for (i = 0, n = 0; i < FP_BUCKETS; i++)
		if (counts[i]) {
			pairs[n++] = i;
			pairs[n++] = counts[i];
		}
	emit(kind, id, pairs, n * 4);
	vfree(pairs);
}

/* ---- the run ---------------------------------------------------------------------------- */

static struct {
	u64 zero;	  /* ktime of the start */
	bool going;
	u64 measure, end; /* the measured part */
	u64 interval;	  /* width of a sample of arrivals */
	u64 step;	  /* between two rows of a flow; FP_FOREVER: none */
	u64 queue_step;	  /* between two samples of a queue; FP_FOREVER: none */
	u64 seed;
	bool capture;
} run = {.measure = 0, .end = FP_FOREVER, .interval = 1000000000, .step = FP_FOREVER,
	 .queue_step = FP_FOREVER};

static u64 fp_now(void)
{
	u64 t = ktime_get_ns();

	return run.going && t > run.zero ? t - run.zero : 0;
}

static u64 splitmix(u64 *state)
{
	u64 z = (*state += 0x9E3779B97F4A7C15ULL);

	z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
	z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
	return z ^ (z >> 31);
}

/* ---- flows ------------------------------------------------------------------------------ */

struct list_of {
	u64 *at;
	u32 n, next;
};

/* Prescribed drops: on the way into the first link, or where a packet arrives. */
struct rules {
	struct list_of segments, times; /* rising */
	u64 every, packets, window, chance, rng;
	bool window_done;
};

struct flow {
	bool present, reverse;
	u32 mss, cap, initial;
	u64 finite; /* bytes of a transfer; 0: no end */
	u64 stop;
	bool purged;
	u8 hops[2];
	u16 route[2][FP_MOST_HOPS]; /* of data, of ACKs */
	struct rules drops, arrival_drops;
	u64 inside; /* data packets in the network, and what a kernel's discipline has dropped */
	bool has_isn;
	u32 isn;
	u64 sent_high, got_high; /* bytes beyond the initial sequence number */
	unsigned long *again, *got;
	struct fp_totals t;
	u32 *delivered, *arrived, *rtt;
	/* the sender */
	u64 since, next_row, last_delivered, last_una;
	u64 round_end;
	u32 w, low, high, last_rtt, last_retransmits, probes_then;
	u16 events;
	bool start_up, seen, touched;
};

static struct flow *flows;
static u32 nflows, nintervals, nbits;

static u64 beyond(u64 near, u32 base, u32 seq)
{
	return near + (s32)(seq - (base + (u32)near));
}

static bool strike(struct rules *r, u64 now, u64 segment, bool again, u32 window)
{
	bool hit = false;

	r->packets++;
	if (r->chance && splitmix(&r->rng) < r->chance)
		hit = true;
	if (r->every && r->packets % r->every == 0)
		hit = true;
	if (!again) {
		if (r->segments.next < r->segments.n && r->segments.at[r->segments.next] == segment) {
			r->segments.next++;
			hit = true;
		}
		if (r->window && !r->window_done && window >= r->window) {
			r->window_done = true;
			hit = true;
		}
	}
	if (r->times.next < r->times.n && r->times.at[r->times.next] <= now) {
		r->times.next++;
		hit = true;
	}
	return hit;
}

/* ---- links ------------------------------------------------------------------------------ */

struct piece {
	u64 at, a, b, c, d;
};

struct changes {
	struct piece *p;
	u32 n, next;
};

struct departure {
	u64 at;
	u32 size;
};

struct link {
	bool present, held, loss_of_acks, watched;
	struct net_device *dev;
	struct changes rates, delays, losses;
	u32 buffer_kind;
	u64 buffer;
	u64 jitter, stray, extra;
	u64 police_rate, police_depth, police_tokens, police_at;
	u64 rng;
	bool bad;
	/* the transmitter: free from, with this rest of a division; index of its rate */
	u64 free, rest;
	u32 at_rate;
	bool busy;
	/* packets that have not left yet, a ring */
	struct departure *ring;
	u32 mask, head, tail;
	u64 bytes;
	u64 latest_arrival, clock;
	struct list_head flight;
	struct hrtimer arrivals, transmitter;
	/* counters */
	struct fp_counts n;
	u64 queued, area_at, sample_at, ce_in, ce_out;
	u32 *wait;
};

static struct link *links;
static u32 nlinks;
struct meta {
	struct list_head list;
	struct sk_buff *skb;
	u64 arrives, segment;
	u32 size;
	u16 flow;
	u8 dir, hop; /* dir 0: to host 1 */
	bool data, again, tcp;
};

static struct kmem_cache *metas;
static struct net_device *hosts[2];

static void forward(struct meta *m, u64 now);

static void lose(struct meta *m)
{
	if (m->data) {
		flows[m->flow].inside--;
		flows[m->flow].t.dropped += fp_now() <= run.end;
	}
	kfree_skb(m->skb);
	kmem_cache_free(metas, m);
}

static const struct piece *current_piece(struct changes *c, u64 now)
{
	while (c->next + 1 < c->n && c->p[c->next + 1].at <= now)
		c->next++;
	return c->n ? &c->p[c->next] : NULL;
}

/* The end of a transmission of `size` bytes that begins at `*at` at the earliest. */
static u64 transmitted(struct link *l, u64 *at, u32 size)
{
	u64 work;
	u32 i = l->at_rate;
	u64 t = *at, rest = l->free > t ? l->rest : 0;
	bool begun = false;

	if (l->free > t)
		t = l->free;
	/* bits times nanoseconds of a second: whole numbers */
	work = (u64)size * 8000000000ULL + rest;
	for (;;) {
		u64 end, took;

		while (i + 1 < l->rates.n && l->rates.p[i + 1].at <= t)
			i++;
		end = i + 1 < l->rates.n ? l->rates.p[i + 1].at : FP_FOREVER;
		if (!l->rates.p[i].a) { /* an outage */
			if (end == FP_FOREVER) {
				if (!begun)
					*at = FP_FOREVER;
				return FP_FOREVER;
			}
			t = end;
			continue;
		}
		if (!begun) {
			begun = true;
			*at = t;
		}
		took = div64_u64(work, l->rates.p[i].a);
		if (end == FP_FOREVER || t + took <= end) {
			l->at_rate = i;
			l->rest = work - took * l->rates.p[i].a;
			l->free = t + took;
			return t + took;
		}
		work -= l->rates.p[i].a * (end - t);
		t = end;
	}
}

static bool strikes(struct link *l, u64 now)
{
	u32 before = l->losses.next;
	const struct piece *p = current_piece(&l->losses, now);
	u64 chance;

	if (!p)
		return false;
	if (l->losses.next != before)
		l->bad = false;
	if (p->a || p->b) {
		if (splitmix(&l->rng) < (l->bad ? p->b : p->a))
			l->bad = !l->bad;
	}
	chance = l->bad ? p->d : p->c;
	return chance == FP_FOREVER || (chance && splitmix(&l->rng) < chance);
}

static bool polices(struct link *l, u64 now, u32 size)
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

static enum hrtimer_restart arrive(struct hrtimer *timer)
{
	struct link *l = container_of(timer, struct link, arrivals);
	u64 now = fp_now();

	while (!list_empty(&l->flight)) {
		struct meta *m = list_first_entry(&l->flight, struct meta, list);

		if (m->arrives > now) {
			hrtimer_start(timer, ns_to_ktime(run.zero + m->arrives),
				      HRTIMER_MODE_ABS_SOFT);
			break;
		}
		list_del(&m->list);
		m->hop++;
		forward(m, m->arrives);
	}
	return HRTIMER_NORESTART;
}

/* A packet has left the transmitter at `left`: delay, jitter, overtaking. */
static void fly(struct link *l, struct meta *m, u64 left)
{
	const struct piece *d = current_piece(&l->delays, left);
	struct meta *before;
	struct list_head *place = &l->flight;

	if (left == FP_FOREVER) {
		m->arrives = FP_FOREVER;
		list_add_tail(&m->list, &l->flight);
		return;
	}
	m->arrives = left + (d ? d->a : 0);
	if (l->jitter)
		m->arrives += mul_u64_u64_shr(splitmix(&l->rng), l->jitter, 64);
	if (l->stray && splitmix(&l->rng) < l->stray) {
		m->arrives += l->extra;
	} else {
		m->arrives = max(m->arrives, l->latest_arrival);
		l->latest_arrival = m->arrives;
	}
	list_for_each_entry_reverse(before, &l->flight, list) {
		if (before->arrives <= m->arrives) {
			place = &before->list;
			break;
		}
	}
	list_add(&m->list, place);
	if (l->flight.next == &m->list)
		hrtimer_start(&l->arrivals, ns_to_ktime(run.zero + m->arrives),
			      HRTIMER_MODE_ABS_SOFT);
}

static void sample(struct link *l, u64 now, u64 packets)
{
	struct fp_sample s = {now, packets};

	if (!l->watched || now < l->sample_at || run.queue_step == FP_FOREVER || now > run.end)
		return;
	emit(FP_SAMPLE, l - links, &s, sizeof(s));
	l->sample_at = now + run.queue_step;
}

static void left_link(struct link *l, u64 entered, u64 begins, u64 departs, u32 size)
{
	if (departs > run.end)
		return;
	l->n.passed++;
	l->n.passed_bytes += size;
	if (departs <= run.measure)
		return;
	l->n.measured_bytes += size;
	if (l->watched && l->wait)
		l->wait[bucket((begins - entered) / 100)]++;
}

static void occupy(struct link *l, u64 from, u64 to)
{
	from = max(from, run.measure);
	to = min(to, run.end);
	if (to > from)
		l->n.area += to - from;
}

static struct Qdisc *discipline(struct link *l)
{
	return rcu_dereference_bh(netdev_get_tx_queue(l->dev, 0)->qdisc);
}

/* Packets in a kernel's discipline and its transmitter, and their area until now. */
static void held_changed(struct link *l, u64 now)
{
	u64 from = max(l->area_at, run.measure), to = min(now, run.end);

	if (to > from)
		l->n.area += (to - from) * l->queued;
	l->area_at = now;
	l->queued = qdisc_qlen(discipline(l)) + l->busy;
	if (now >= run.measure && now <= run.end)
		l->n.queue_max = max(l->n.queue_max, l->queued);
}

static void offer(struct link *l, struct meta *m, u64 now)
{
	u64 start, done, free = l->free, rest = l->rest;
	u32 at_rate = l->at_rate, packets;
	bool counts = now <= run.end, fits = true;

	/* Timers of two links may go off in another order than they are due. */
	now = l->clock = max(l->clock, now);
	l->n.offered += counts;
	if ((l->loss_of_acks || m->data || !m->tcp) && strikes(l, now)) {
		l->n.random_drops += counts;
		return lose(m);
	}
	if (polices(l, now, m->size)) {
		l->n.policer_drops += counts;
		return lose(m);
	}
	if (l->held) {
		struct sk_buff *skb = m->skb;

		l->ce_in += INET_ECN_is_ce(ip_hdr(skb)->tos);
		held_changed(l, now);
		skb->tstamp = ns_to_ktime(now + 1);
		skb->dev = l->dev;
		kmem_cache_free(metas, m); /* the discipline uses the control block: made anew */
			dev_queue_xmit(skb);
		held_changed(l, now);
		return sample(l, now, l->queued);
	}
	if (!l->rates.n) {
		if (counts) {
			l->n.passed++;
			l->n.passed_bytes += m->size;
			if (now > run.measure)
				l->n.measured_bytes += m->size;
		}
		return fly(l, m, now);
	}
	while (l->head != l->tail && l->ring[l->head & l->mask].at <= now) {
		l->bytes -= l->ring[l->head & l->mask].size;
		l->head++;
	}
	packets = l->tail - l->head;
	start = now;
	done = transmitted(l, &start, m->size);
	if (l->buffer_kind == 1)
		fits = packets < l->buffer;
	else if (l->buffer_kind == 2)
		fits = l->bytes + m->size <= l->buffer;
	else if (l->buffer_kind == 3)
		fits = done - now <= l->buffer;
	if (!fits) {
		l->free = free;
		l->rest = rest;
		l->at_rate = at_rate;
		l->n.buffer_drops += counts;
		return lose(m);
	}
	if (packets > l->mask) { /* full: twice as long */
		u32 longer = (l->mask + 1) * 2, i;
		struct departure *ring = kmalloc_array(longer, sizeof(*ring), GFP_ATOMIC);

		if (!ring)
			panic("fullpipe: no memory for a queue");
		for (i = l->head; i != l->tail; i++)
			ring[i & (longer - 1)] = l->ring[i & l->mask];
		kvfree(l->ring);
		l->ring = ring;
		l->mask = longer - 1;
	}
	l->ring[l->tail++ & l->mask] = (struct departure){done, m->size};
	l->bytes += m->size;
	packets++;
	if (now >= run.measure && counts)
		l->n.queue_max = max_t(u64, l->n.queue_max, packets);
	occupy(l, now, done);
	left_link(l, now, start, done, m->size);
	sample(l, now, packets);
	fly(l, m, done);
}

/* ---- a discipline of the kernel as a link's queue ---------------------------------------- */

static struct meta *described(struct sk_buff *skb, int dir);

static netdev_tx_t transmit(struct sk_buff *skb, struct net_device *dev)
{
	struct link *l = *(struct link **)netdev_priv(dev);
	u64 entered = ktime_to_ns(skb->tstamp) - 1, now = fp_now();
	u64 start = max(entered, l->free), done;
	struct meta *m = described(skb, -1);
	u8 i;

	/* The queue was found by a timer that is up to half a microsecond late. */
	if (start + 1000 < now || start > now)
		start = now;
	done = transmitted(l, &start, skb->len);
	l->ce_out += INET_ECN_is_ce(ip_hdr(skb)->tos);
	skb->tstamp = 0;
	netif_stop_queue(dev);
	l->busy = true;
	left_link(l, entered, start, done, skb->len);
	for (i = 0; i < flows[m->flow].hops[m->dir != flows[m->flow].reverse]; i++)
		if (flows[m->flow].route[m->dir != flows[m->flow].reverse][i] == l - links)
			m->hop = i;
	if (done != FP_FOREVER)
		hrtimer_start(&l->transmitter, ns_to_ktime(run.zero + done), HRTIMER_MODE_ABS_SOFT);
	held_changed(l, now);
	fly(l, m, done);
	return NETDEV_TX_OK;
}

static enum hrtimer_restart is_free(struct hrtimer *timer)
{
	struct link *l = container_of(timer, struct link, transmitter);

	l->busy = false;
	held_changed(l, fp_now());
	netif_wake_queue(l->dev);
	return HRTIMER_NORESTART;
}

static const struct net_device_ops link_ops = {.ndo_start_xmit = transmit};

static void plain_device(struct net_device *dev)
{
	dev->type = ARPHRD_NONE;
	dev->hard_header_len = 0;
	dev->addr_len = 0;
	dev->mtu = 1500;
	dev->min_mtu = 68;
	dev->max_mtu = 65535;
	dev->flags = IFF_NOARP | IFF_POINTOPOINT;
	dev->tx_queue_len = 1000;
	dev->features = dev->hw_features = NETIF_F_HW_CSUM | NETIF_F_SG | NETIF_F_HIGHDMA;
	dev->needs_free_netdev = true;
}

/* ---- hosts ------------------------------------------------------------------------------ */

/* What the headers say of a packet; `dir` is -1 where the address has to say it. */
static struct meta *described(struct sk_buff *skb, int dir)
{
	struct iphdr *ip = ip_hdr(skb);
	struct meta *m;
	u32 to = ntohl(ip->daddr), id = (to & 0xffff) - 1;
	u32 side = (to >> 16) & 0xff; /* 10.1.x.x: host 0, 10.2.x.x: host 1 */
	struct flow *f;

	if (to >> 24 != 10 || (side != 1 && side != 2) || id >= nflows || !flows[id].present)
		return NULL;
	if (dir >= 0 && dir != (side == 2 ? 0 : 1))
		return NULL;
	m = kmem_cache_zalloc(metas, GFP_ATOMIC);
	if (!m)
		panic("fullpipe: no memory for packets");
	f = &flows[id];
	m->skb = skb;
	m->flow = id;
	m->dir = side == 2 ? 0 : 1;
	m->size = skb->len;
	m->tcp = ip->protocol == IPPROTO_TCP;
	if (m->tcp && m->dir == f->reverse) {
		struct tcphdr *tcp = (void *)ip + ip->ihl * 4;
		u32 length = ntohs(ip->tot_len) - ip->ihl * 4 - tcp->doff * 4;

		if (tcp->syn) {
			f->isn = ntohl(tcp->seq) + 1;
			f->has_isn = true;
		} else if (length && f->has_isn) {
			m->data = true;
			m->segment = beyond(f->sent_high, f->isn, ntohl(tcp->seq));
		}
	}
	return m;
}

static netdev_tx_t leave(struct sk_buff *skb, struct net_device *dev)
{
	int dir = *(int *)netdev_priv(dev);
	struct meta *m;
	struct flow *f;
	u64 now = fp_now();
	u32 window = 0;

	if (skb->sk && sk_fullsock(skb->sk) && skb->sk->sk_protocol == IPPROTO_TCP)
		window = tcp_snd_cwnd(tcp_sk(skb->sk));
	skb_orphan(skb);
	skb_dst_drop(skb);
	nf_reset_ct(skb);
	skb->mark = 0;
	skb->priority = 0;
	m = described(skb, dir);
	if (!m || !run.going || now > run.end) {
		if (m)
			kmem_cache_free(metas, m);
		kfree_skb(skb);
		return NETDEV_TX_OK;
	}
	f = &flows[m->flow];
	if (m->data) {
		u64 first = m->segment, segment = first / f->mss;

		m->again = first < f->sent_high;
		f->inside++;
		f->t.sent++;
		if (m->again) {
			f->t.retransmits++;
			__set_bit(segment & (nbits - 1), f->again);
		} else {
			__clear_bit(segment & (nbits - 1), f->again);
			f->sent_high = first + f->mss;
		}
		if (strike(&f->drops, now, segment, m->again, window)) {
			lose(m);
			return NETDEV_TX_OK;
		}
	}
	forward(m, now);
	return NETDEV_TX_OK;
}

static void taken(struct flow *f, struct meta *m, u64 now)
{
	u64 segment = m->segment / f->mss, i, high = f->got_high;
	u64 slot = min_t(u64, div64_u64(now, run.interval), nintervals - 1);
	bool first = false;

	if (now > run.end) {
		f->t.late++;
		return;
	}
	f->t.arrived++;
	f->arrived[slot]++;
	if (now >= run.measure)
		f->t.arrived_measured++;
	if (segment >= high) {
		for (i = high; i <= segment && i < high + nbits; i++)
			__clear_bit(i & (nbits - 1), f->got);
		f->got_high = segment + 1;
		first = true;
	} else if (segment + nbits > high && !test_bit(segment & (nbits - 1), f->got)) {
		first = true;
		if (!test_bit(segment & (nbits - 1), f->again))
			f->t.out_of_order++;
	}
	__set_bit(segment & (nbits - 1), f->got);
	if (!first) {
		f->t.duplicates++;
		return;
	}
	f->t.delivered++;
	f->delivered[slot]++;
	if (now >= run.measure)
		f->t.delivered_measured++;
}

static void forward(struct meta *m, u64 now)
{
	struct flow *f = &flows[m->flow];
	int way = m->dir != f->reverse; /* 0: data, 1: ACKs */
	struct sk_buff *skb = m->skb;
	struct net_device *dev;

	if (m->hop < f->hops[way])
		return offer(&links[f->route[way][m->hop]], m, now);
	if (m->data) {
		u64 segment = m->segment / f->mss;

		if (strike(&f->arrival_drops, now, segment, m->again, 0))
			return lose(m);
		taken(f, m, now);
	} else if (m->tcp && way == 1 && now <= run.end) {
		f->t.acks++;
	}
	f->inside -= m->data;
	dev = hosts[1 - m->dir];
	kmem_cache_free(metas, m);
	if (!dev) {
		kfree_skb(skb);
		return;
	}
	skb->dev = dev;
	skb->tstamp = 0;
	skb->pkt_type = PACKET_HOST;
	skb->protocol = htons(ETH_P_IP);
	skb_reset_mac_header(skb);
	netif_rx(skb);
}

static const struct net_device_ops host_ops = {.ndo_start_xmit = leave};

/* ---- senders ---------------------------------------------------------------------------- */

static struct flow *flow_of(const struct sock *sk)
{
	u32 to, side;
	struct flow *f;

	if (!run.going || sk->sk_family != AF_INET)
		return NULL;
	to = ntohl(inet_sk(sk)->inet_daddr);
	side = (to >> 16) & 0xff;
	if (to >> 24 != 10 || (to & 0xffff) - 1 >= nflows)
		return NULL;
	f = &flows[(to & 0xffff) - 1];
	return f->present && side == (f->reverse ? 1 : 2) ? f : NULL;
}

/* As fullpipe_flow::Events. */
enum {
	EV_ACK = 1,
	EV_LOSS = 1 << 1,
	EV_MARK = 1 << 2,
	EV_TIMEOUT = 1 << 5,
	EV_UNDO = 1 << 6,
	EV_EXIT = 1 << 7,
	EV_PROBE = 1 << 8,
	EV_RETRANSMIT = 1 << 10,
};

static void window_is(struct flow *f, u64 now, u32 w)
{
	if (now > run.end)
		return;
	if (!f->seen) {
		f->seen = true;
		f->low = f->high = f->w = w;
		f->start_up = true;
		f->since = f->t.since = max(now, run.measure);
	}
	if (now > f->since) {
		if (f->t.completed == FP_FOREVER)
			f->t.area += (u64)f->w * (now - f->since);
		f->since = now;
	}
	f->t.until = f->t.completed == FP_FOREVER ? now : f->t.until;
	f->w = w;
	f->low = min(f->low, w);
	f->high = max(f->high, w);
	if (now >= run.measure)
		f->t.cwnd_max = max_t(u64, f->t.cwnd_max, w);
}

static void row(struct flow *f, const struct sock *sk, u64 now)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	u32 min_rtt = tcp_min_rtt(tp);
	struct fp_row r = {
		.time = now,
		.pacing = READ_ONCE(sk->sk_pacing_status) == SK_PACING_NONE ? 0 : sk->sk_pacing_rate,
		.delivered = tp->delivered ? tp->delivered - 1 : 0,
		.una = div64_u64(f->last_una + f->mss - 1, f->mss),
		.nxt = div64_u64(f->sent_high + f->mss - 1, f->mss),
		.srtt = (u64)tp->srtt_us * 125,
		.cwnd = tcp_snd_cwnd(tp),
		.low = f->low,
		.high = f->high,
		.ssthresh = tp->snd_ssthresh,
		.rtt = f->last_rtt,
		.min_rtt = min_rtt,
		.flight = tcp_packets_in_flight(tp),
		.retransmits = tp->total_retrans,
		.loss_events = f->t.loss_events,
		.timeouts = f->t.timeouts,
		.phase = inet_csk(sk)->icsk_ca_state,
		.start_up = tcp_in_slow_start(tp),
		.mss = f->mss,
	};

	if (r.retransmits > f->last_retransmits)
		f->events |= EV_RETRANSMIT;
	f->last_retransmits = r.retransmits;
	r.events = f->events;
	emit(FP_ROW, f - flows, &r, sizeof(r));
	f->events = 0;
	f->low = f->high = f->w;
	f->next_row = run.step ? now + run.step : 0;
}

static void episode(struct flow *f, const struct sock *sk, u32 kind, u32 before, u32 after,
		    u16 event)
{
	struct fp_episode e = {fp_now(), kind, before, after, 0};

	if (e.time > run.end)
		return;
	f->low = min(f->low, before);
	f->high = max(f->high, before);
	if (e.time >= run.measure)
		f->t.cwnd_max = max_t(u64, f->t.cwnd_max, before);
	f->events |= event;
	f->touched = true;
	f->start_up = tcp_in_slow_start(tcp_sk(sk));
	emit(FP_EPISODE, f - flows, &e, sizeof(e));
	if (run.step != FP_FOREVER)
		f->next_row = 0;
}

/* Data that the application has handed over and the sender has not sent yet goes back. */
static void stop_sending(struct flow *f, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct sk_buff *skb;

	while ((skb = tcp_send_head(sk)) != NULL) {
		tcp_unlink_write_queue(skb, sk);
		tcp_wmem_free_skb(sk, skb);
	}
	WRITE_ONCE(tp->write_seq, tp->snd_nxt);
	f->finite = f->sent_high;
	f->purged = true;
}

void fullpipe_acked(struct sock *sk)
{
	struct flow *f = flow_of(sk);
	const struct tcp_sock *tp = tcp_sk(sk);
	u64 now, una;
	u32 delivered;

	if (!f || !f->has_isn || sk->sk_state == TCP_SYN_SENT)
		return;
	now = fp_now();
	if (now > run.end)
		return;
	if (f->cap)
		tcp_sk(sk)->snd_cwnd_clamp = f->cap;
	if (f->stop && now >= f->stop && !f->purged)
		stop_sending(f, sk);
	una = before(tp->snd_una, f->isn) ? 0 : beyond(f->last_una, f->isn, tp->snd_una);
	delivered = tp->delivered ? tp->delivered - 1 : 0;
	if (una > f->last_una || delivered > f->last_delivered)
		f->events |= EV_ACK;
	f->last_una = una;
	f->last_delivered = delivered;
	if (f->finite && una >= f->finite && f->t.completed == FP_FOREVER) {
		window_is(f, now, f->w);
		f->t.completed = now;
	}
	window_is(f, now, tcp_snd_cwnd(tp));
	if (una >= f->round_end && f->sent_high) {
		struct fp_round r = {now, delivered, tcp_snd_cwnd(tp)};

		if (f->round_end)
			emit(FP_ROUND, f - flows, &r, sizeof(r));
		f->round_end = max(f->sent_high, una + 1);
	}
	if (f->start_up && !tcp_in_slow_start(tp) && !f->touched)
		episode(f, sk, 6, tcp_snd_cwnd(tp), tp->snd_ssthresh, EV_EXIT);
	f->start_up = tcp_in_slow_start(tp);
	f->touched = false;
	if (run.step != FP_FOREVER && now >= f->next_row)
		row(f, sk, now);
}

/* The sample of the newest segment, which the congestion module sees too. */
void fullpipe_rtt(struct sock *sk, long us)
{
	struct flow *f = flow_of(sk);
	u64 now = fp_now();

	if (!f || now > run.end || us < 0)
		return;
	f->last_rtt = us;
	if (now < run.measure)
		return;
	f->rtt[bucket(us)]++;
	f->t.rtt_min = min_t(u64, f->t.rtt_min, us);
	f->t.rtt_max = max_t(u64, f->t.rtt_max, us);
}

static void reduced(struct flow *f, u64 now)
{
	if (now > run.end)
		return;
	f->t.loss_events++;
	if (now >= run.measure)
		f->t.loss_events_measured++;
}

/* kind 0: recovery after a loss, 1: a mark, 4: a timeout, 5: undone */
void fullpipe_changed(struct sock *sk, int kind, u32 before)
{
	struct flow *f = flow_of(sk);
	const struct tcp_sock *tp = tcp_sk(sk);
	u64 now = fp_now();

	if (!f || now > run.end)
		return;
	switch (kind) {
	case 0:
	case 1:
		reduced(f, now);
		episode(f, sk, kind, before, tp->snd_ssthresh, kind ? EV_MARK : EV_LOSS);
		break;
	case 4:
		f->t.timeouts++;
		episode(f, sk, kind, before, tcp_snd_cwnd(tp), EV_TIMEOUT);
		window_is(f, now, tcp_snd_cwnd(tp));
		if (run.step != FP_FOREVER)
			row(f, sk, now);
		break;
	default:
		f->t.undone++;
		episode(f, sk, kind, before, tcp_snd_cwnd(tp), EV_UNDO);
	}
}

void fullpipe_probed(struct sock *sk)
{
	struct flow *f = flow_of(sk);

	if (f && fp_now() <= run.end) {
		f->t.probes++;
		f->events |= EV_PROBE;
	}
}

u32 fullpipe_initial(const struct tcp_sock *tp, u32 kernels)
{
	struct flow *f = flow_of((const struct sock *)tp);
	u32 w = f && f->initial ? f->initial : kernels;

	if (f && f->has_isn)
		window_is(f, fp_now(), w);
	return w;
}

/* ---- commands --------------------------------------------------------------------------- */

static int add_host(int side)
{
	struct net_device *dev = alloc_netdev(sizeof(int), side ? "fp1" : "fp0", NET_NAME_UNKNOWN,
					      plain_device);
	int error;

	if (!dev)
		return -ENOMEM;
	*(int *)netdev_priv(dev) = side; /* what leaves host 0 goes in direction 0 */
	dev->netdev_ops = &host_ops;
	dev->priv_flags |= IFF_NO_QUEUE;
	dev_net_set(dev, current->nsproxy->net_ns);
	error = register_netdev(dev);
	if (error)
		return error;
	netif_set_tso_max_segs(dev, 1);
	hosts[side] = dev;
	return 0;
}

static int add_link_device(u32 i)
{
	char name[IFNAMSIZ];
	struct net_device *dev;
	int error;

	snprintf(name, sizeof(name), "fpl%u", i);
	dev = alloc_netdev(sizeof(void *), name, NET_NAME_UNKNOWN, plain_device);
	if (!dev)
		return -ENOMEM;
	*(struct link **)netdev_priv(dev) = &links[i];
	dev->netdev_ops = &link_ops;
	dev_net_set(dev, current->nsproxy->net_ns);
	error = register_netdev(dev);
	if (!error)
		links[i].dev = dev;
	return error;
}

static void grow(struct changes *c, struct piece p)
{
	struct piece *more = krealloc(c->p, (c->n + 1) * sizeof(p), GFP_KERNEL);

	if (!more)
		panic("fullpipe: no memory for a schedule");
	more[c->n++] = p;
	c->p = more;
}

static void append(struct list_of *l, u64 value)
{
	if (!(l->n & (l->n - 1)) || !l->n) {
		u64 *more = vmalloc(max(1u, l->n * 2) * sizeof(u64));

		if (!more)
			panic("fullpipe: no memory for drops");
		if (l->n)
			memcpy(more, l->at, l->n * sizeof(u64));
		vfree(l->at);
		l->at = more;
	}
	l->at[l->n++] = value;
}

static void *zeroed(size_t size)
{
	void *p = vzalloc(size);

	if (!p)
		panic("fullpipe: no memory for %zu bytes", size);
	return p;
}

static int route(struct flow *f, int way, char *list)
{
	char *word;

	f->hops[way] = 0;
	while ((word = strsep(&list, " ")) != NULL) {
		u16 link;

		if (!*word)
			continue;
		if (kstrtou16(word, 10, &link) || link >= nlinks || f->hops[way] >= FP_MOST_HOPS)
			return -EINVAL;
		f->route[way][f->hops[way]++] = link;
	}
	return 0;
}

static void finish(void);

/*
 * sizes FLOWS LINKS INTERVALS BITS      room; BITS: segments whose arrival is remembered, 2^n
 * run SEED MEASURE END INTERVAL STEP QUEUE_STEP
 * host SIDE                             a device in the namespace of the writer
 * link I BUFFER_KIND BUFFER LOSS_OF_ACKS WATCHED HELD SEED
 * rate I AT BPS / delay I AT NS / loss I AT TO_BAD TO_GOOD GOOD BAD (2^64 is one)
 * jitter I NS / reorder I CHANCE EXTRA / policer I BPS BYTES
 * flow I REVERSE MSS CAP INITIAL FINITE STOP SEED
 * data I LINK... / acks I LINK...       the routes
 * drop I WHERE KIND VALUE               WHERE 0 path 1 arrival; KIND 0 segment 1 time 2 every
 *                                       3 window 4 chance
 * go ZERO                               ktime of the start
 * finish                                the totals become records
 */
static int fp_command(char *line)
{
	unsigned long long a, b, c, d, e, f, g, h;
	int n = 0;

	if (sscanf(line, "sizes %llu %llu %llu %llu", &a, &b, &c, &d) == 4) {
		nflows = a;
		nlinks = b;
		nintervals = c;
		nbits = d;
		flows = zeroed(sizeof(*flows) * max(a, 1ULL));
		links = zeroed(sizeof(*links) * max(b, 1ULL));
		return 0;
	}
	if (sscanf(line, "run %llu %llu %llu %llu %llu %llu", &a, &b, &c, &d, &e, &f) == 6) {
		run.seed = a;
		run.measure = b;
		run.end = c;
		run.interval = d;
		run.step = e;
		run.queue_step = f;
		return 0;
	}
	if (sscanf(line, "host %llu", &a) == 1)
		return add_host(a);
	if (sscanf(line, "go %llu", &a) == 1) {
		run.zero = a;
		run.going = true;
		return 0;
	}
	if (!strcmp(line, "finish")) {
		finish();
		return 0;
	}
	if (sscanf(line, "link %llu %llu %llu %llu %llu %llu %llu", &a, &b, &c, &d, &e, &f, &g) == 7) {
		struct link *l = &links[a];

		if (a >= nlinks)
			return -EINVAL;
		l->present = true;
		l->buffer_kind = b;
		l->buffer = c;
		l->loss_of_acks = d;
		l->watched = e;
		l->held = f;
		l->rng = g;
		l->mask = (b == 1 ? roundup_pow_of_two(clamp(c, 1ULL, 1ULL << 22)) : 1 << 14) - 1;
		l->ring = zeroed((l->mask + 1) * sizeof(*l->ring));
		INIT_LIST_HEAD(&l->flight);
		hrtimer_init(&l->arrivals, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_SOFT);
		hrtimer_init(&l->transmitter, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_SOFT);
		l->arrivals.function = arrive;
		l->transmitter.function = is_free;
		if (l->watched)
			l->wait = zeroed(FP_BUCKETS * 4);
		return l->held ? add_link_device(a) : 0;
	}
	if (sscanf(line, "flow %llu %llu %llu %llu %llu %llu %llu %llu", &a, &b, &c, &d, &e, &f, &g,
		   &h) == 8) {
		struct flow *x = &flows[a];

		if (a >= nflows || !c)
			return -EINVAL;
		x->present = true;
		x->reverse = b;
		x->mss = c;
		x->cap = d;
		x->initial = e;
		x->finite = f;
		x->stop = g;
		x->drops.rng = h;
		x->arrival_drops.rng = ~h;
		x->t.completed = FP_FOREVER;
		x->t.rtt_min = FP_FOREVER;
		x->again = zeroed(nbits / 8);
		x->got = zeroed(nbits / 8);
		x->delivered = zeroed(nintervals * 4);
		x->arrived = zeroed(nintervals * 4);
		x->rtt = zeroed(FP_BUCKETS * 4);
		return 0;
	}
	if (sscanf(line, "data %llu %n", &a, &n) >= 1 && n && a < nflows)
		return route(&flows[a], 0, line + n);
	if (sscanf(line, "acks %llu %n", &a, &n) >= 1 && n && a < nflows)
		return route(&flows[a], 1, line + n);
	if (sscanf(line, "drop %llu %llu %llu %llu", &a, &b, &c, &d) == 4 && a < nflows) {
		struct rules *r = b ? &flows[a].arrival_drops : &flows[a].drops;

		switch (c) {
		case 0: append(&r->segments, d); return 0;
		case 1: append(&r->times, d); return 0;
		case 2: r->every = d; return 0;
		case 3: r->window = d; return 0;
		case 4: r->chance = d; return 0;
		}
		return -EINVAL;
	}
	/* what follows is about a link that is there */
	if (sscanf(line, "%*s %llu", &a) != 1 || a >= nlinks || !links[a].present)
		return -EINVAL;
	if (sscanf(line, "rate %llu %llu %llu", &a, &b, &c) == 3)
		grow(&links[a].rates, (struct piece){.at = b, .a = c});
	else if (sscanf(line, "delay %llu %llu %llu", &a, &b, &c) == 3)
		grow(&links[a].delays, (struct piece){.at = b, .a = c});
	else if (sscanf(line, "loss %llu %llu %llu %llu %llu %llu", &a, &b, &c, &d, &e, &f) == 6)
		grow(&links[a].losses, (struct piece){.at = b, .a = c, .b = d, .c = e, .d = f});
	else if (sscanf(line, "jitter %llu %llu", &a, &b) == 2)
		links[a].jitter = b;
	else if (sscanf(line, "reorder %llu %llu %llu", &a, &b, &c) == 3) {
		links[a].stray = b;
		links[a].extra = c;
	} else if (sscanf(line, "policer %llu %llu %llu", &a, &b, &c) == 3) {
		links[a].police_rate = b;
		links[a].police_tokens = links[a].police_depth = c * 8;
	} else
		return -EINVAL;
	return 0;
}

static void finish(void)
{
	struct meta *m;
	u32 i;

	for (i = 0; i < nlinks; i++)
		if (links[i].present)
			list_for_each_entry(m, &links[i].flight, list)
				flows[m->flow].inside -= m->data;
	for (i = 0; i < nflows; i++) {
		struct flow *f = &flows[i];

		if (!f->present)
			continue;
		if (f->seen && f->t.completed == FP_FOREVER && run.end > f->since) {
			f->t.area += (u64)f->w * (run.end - f->since);
			f->t.until = run.end;
		}
		f->t.cwnd_max = f->t.cwnd_max ? f->t.cwnd_max : f->w; /* idle since before */
		/* A discipline of the kernel drops without a word: what is nowhere. */
		f->t.dropped += f->inside;
		emit(FP_FLOW, i, &f->t, sizeof(f->t));
		emit(FP_DELIVERED, i, f->delivered, nintervals * 4);
		emit(FP_ARRIVED, i, f->arrived, nintervals * 4);
		emit_histogram(FP_RTT, i, f->rtt);
	}
	for (i = 0; i < nlinks; i++) {
		struct link *l = &links[i];

		if (!l->present)
			continue;
		if (l->held) {
			held_changed(l, run.end);
			l->n.early_drops = qdisc_root_sleeping(discipline(l))->qstats.drops;
			l->n.marks = l->ce_out > l->ce_in ? l->ce_out - l->ce_in : 0;
		}
		emit(FP_LINK, i, &l->n, sizeof(l->n));
		if (l->wait)
			emit_histogram(FP_WAIT, i, l->wait);
	}
	emit(FP_END, 0, "", 0);
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
		int error = *line ? fp_command(line) : 0;

		if (error) {
			pr_emerg("fullpipe: command refused (%d): %s\n", error, line);
			result = error;
			break;
		}
	}
	vfree(text);
	return result;
}

/* Records, and, as the last thing, nothing: the reader closes then. */
static ssize_t fp_read(struct file *file, char __user *to, size_t size, loff_t *pos)
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

static const struct proc_ops fp_ops = {.proc_write = fp_write, .proc_read = fp_read,
				       .proc_lseek = noop_llseek};

static int __init fp_init(void)
{
	metas = KMEM_CACHE(meta, 0);
	if (!metas || !proc_create("fullpipe", 0600, NULL, &fp_ops))
		return -ENOMEM;
	return 0;
}
late_initcall(fp_init);
