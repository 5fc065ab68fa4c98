// SPDX-License-Identifier: GPL-2.0 OR MIT OR Apache-2.0
/*
 * A link whose queue is a discipline of the kernel, on the device fpl<N>. The transmitter takes one
 * packet whenever it may begin with one: until then the device's queue is stopped, so that the
 * discipline sees each packet wait until its transmission begins.
 */
#include <linux/etherdevice.h>
#include <linux/rtnetlink.h>
#include <linux/sched.h>
#include <linux/nsproxy.h>
#include <net/inet_ecn.h>
#include <net/pkt_sched.h>
#include <net/sch_generic.h>

#include "fullpipe.h"

/* The packet's description, while a discipline has it: behind what disciplines keep there. */
static struct fp_meta **meta_of(struct sk_buff *skb)
{
	BUILD_BUG_ON(sizeof(skb->cb) < 48);
	return (struct fp_meta **)(skb->cb + 40);
}

static struct Qdisc *discipline(struct fp_link *l)
{
	return rcu_dereference_bh(netdev_get_tx_queue(l->dev, 0)->qdisc);
}

/* Packets in the queue at a time, as it was counted last. */
static u64 packets(const struct fp_link *l, u64 at)
{
	return l->waiting + (l->last.at > at);
}

/* Packets that wait, and their area until now. */
static void count(struct fp_link *l, u64 now)
{
	u64 from = max(l->area_at, fp_run.measure), to = min(now, fp_run.end);

	while (fp_step_over(l, now))
		fp_sample(l, packets(l, fp_before(l->sample_at)));
	if (to > from)
		l->n.area += (to - from) * l->waiting;
	l->area_at = max(l->area_at, now);
	l->waiting = qdisc_qlen(discipline(l));
	if (now >= fp_run.measure && now <= fp_run.end)
		l->n.queue_max = max(l->n.queue_max, packets(l, now));
}

/* The discipline drops a packet. At the entry it may be for want of room, or before. */
static void dropped(struct sk_buff *skb)
{
	struct fp_meta *m = *meta_of(skb);
	struct fp_link *l = *(struct fp_link **)netdev_priv(skb->dev);
	struct Qdisc *q = discipline(l);
	bool full = l->entering;

	switch (l->queue) {
	case FP_PIE:
		full = full && qdisc_qlen(q) >= l->limit;
		break;
	case FP_RED:
		full = full && q->qstats.backlog + skb->len > l->limit;
		break;
	default:
		break;
	}
	if (fp_now() <= fp_run.end) {
		l->n.buffer_drops += full;
		l->n.early_drops += !full;
	}
	m->skb = NULL;
	fp_lose(m);
}

/* At the latest now the transmitter has to be asked again. */
static void stop_until(struct fp_link *l, struct fp_cursor next)
{
	l->next = next;
	l->pending = true;
	netif_stop_queue(l->dev);
	if (next.at != FP_FOREVER)
		fp_ring_at(&l->transmitter, next.at);
}

void fp_hold(struct fp_link *l, struct fp_meta *m, u64 now)
{
	struct sk_buff *skb = m->skb;

	/* Every packet is judged: none passes an empty queue by. */
	discipline(l)->flags &= ~TCQ_F_CAN_BYPASS;
	count(l, now);
	fp_varied(l, packets(l, now));
	if (!l->pending) {
		struct fp_cursor start = fp_start(l, now);

		if (start.at > now)
			stop_until(l, start);
	}
	m->entered = now;
	m->was_ce = INET_ECN_is_ce(ip_hdr(skb)->tos);
	skb->tstamp = 0;
	skb->dev = l->dev;
	*meta_of(skb) = m;
	skb->destructor = dropped;
	l->entering = true;
	dev_queue_xmit(skb);
	l->entering = false;
	count(l, now);
	fp_varied(l, packets(l, now));
}

static netdev_tx_t transmit(struct sk_buff *skb, struct net_device *dev)
{
	struct fp_link *l = *(struct fp_link **)netdev_priv(dev);
	struct fp_meta *m = *meta_of(skb);
	struct fp_cursor start = l->pending ? l->next : fp_start(l, max(l->clock, m->entered));
	struct fp_cursor done = fp_done(l, start, m->size);
	u64 from = max(start.at, fp_run.measure), to = min(done.at, fp_run.end);
	bool marked = !m->was_ce && INET_ECN_is_ce(ip_hdr(skb)->tos);

	skb->destructor = NULL;
	l->n.marks += marked && start.at <= fp_run.end;
	count(l, start.at);
	l->last = done;
	if (to > from)
		l->n.area += to - from;
	fp_booked(l, m->entered, start.at, done.at, m->size);
	stop_until(l, fp_follow(l));
	fp_fly(l, m, done.at);
	return NETDEV_TX_OK;
}

static void may_begin(struct fp_alarm *alarm)
{
	struct fp_link *l = container_of(alarm, struct fp_link, transmitter);
	struct Qdisc *q = discipline(l);

	count(l, l->next.at);
	netif_start_queue(l->dev);
	l->clock = max(l->clock, l->next.at);
	/* Takes a packet, if the discipline has one to give, and stops the queue again. */
	spin_lock(qdisc_lock(q));
	if (qdisc_run_begin(q)) {
		__qdisc_run(q);
		qdisc_run_end(q);
	}
	spin_unlock(qdisc_lock(q));
	if (!netif_queue_stopped(l->dev))
		l->pending = false;
}

static const struct net_device_ops link_ops = {.ndo_start_xmit = transmit};

int fp_add_held(u32 i)
{
	struct fp_link *l = &fp_links[i];
	char name[IFNAMSIZ];
	struct net_device *dev;
	int error;

	snprintf(name, sizeof(name), "fpl%u", i);
	dev = alloc_netdev(sizeof(void *), name, NET_NAME_UNKNOWN, fp_plain_device);
	if (!dev)
		return -ENOMEM;
	*(struct fp_link **)netdev_priv(dev) = l;
	dev->netdev_ops = &link_ops;
	dev_net_set(dev, current->nsproxy->net_ns);
	fp_make_alarm(&l->transmitter, may_begin);
	error = register_netdev(dev);
	if (!error)
		l->dev = dev;
	return error;
}

void fp_close_held(struct fp_link *l)
{
	count(l, fp_run.end);
	while (fp_step_over(l, fp_run.end))
		fp_sample(l, packets(l, fp_before(l->sample_at)));
}
