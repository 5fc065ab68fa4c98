// SPDX-License-Identifier: GPL-2.0 OR MIT OR Apache-2.0
/* The hosts' devices, what leaves and reaches them, and the way in between. */
#include <linux/etherdevice.h>
#include <linux/nsproxy.h>
#include <linux/rtnetlink.h>
#include <linux/sched.h>
#include <linux/tcp.h>
#include <net/net_namespace.h>
#include <net/sock.h>
#include <net/tcp.h>

#include "fullpipe.h"

struct fp_flow *fp_flows;
u32 fp_nflows;

static struct kmem_cache *metas;
static struct net_device *hosts[2];

/* ---- packets ------------------------------------------------------------------------------ */

struct fp_meta *fp_new_meta(struct sk_buff *skb)
{
	struct fp_meta *m;

	m = kmem_cache_zalloc(metas, GFP_ATOMIC);
	if (!m)
		panic("fullpipe: no memory for packets");
	m->skb = skb;
	m->size = skb->len;
	return m;
}

void fp_free_meta(struct fp_meta *m)
{
	kmem_cache_free(metas, m);
}

/* It is in no link any more, whatever became of it. */
void fp_forget(struct fp_meta *m)
{
	kfree_skb(m->skb);
	fp_free_meta(m);
}

/* The network drops it. */
void fp_lose(struct fp_meta *m)
{
	u64 now = fp_now();

	if (now <= fp_run.end) {
		if (m->kind == FP_DATA) {
			struct fp_flow *f = &fp_flows[m->of];
			u64 segment = div_u64(m->first, f->mss);

			f->t.dropped++;
			if (!m->again && segment < 64)
				f->t.lost |= 1ULL << segment;
		} else if (m->kind != FP_TCP) {
			fp_cross[m->of].n.dropped++;
		}
		fp_see(m, now, FP_DROPPED);
	}
	fp_forget(m);
}

/* A TCP packet that host `from` sends, by its headers; NULL: of no flow. */
static struct fp_meta *described(struct sk_buff *skb, int from)
{
	struct iphdr *ip = ip_hdr(skb);
	struct tcphdr *tcp = (void *)ip + ip->ihl * 4;
	u32 address = ntohl(ip->daddr), of = (address & 0xffff) - 1;
	u32 side = (address >> 16) & 0xff; /* 10.1.x.x: host 0, 10.2.x.x: host 1 */
	struct fp_flow *f;
	struct fp_meta *m;
	u32 length;

	if (address >> 24 != 10 || side != 2 - from || ip->protocol != IPPROTO_TCP ||
	    of >= fp_nflows || !fp_flows[of].present)
		return NULL;
	f = &fp_flows[of];
	m = fp_new_meta(skb);
	m->of = of;
	m->to = side - 1;
	m->way = from != f->reverse; /* 0: from the sender */
	if (m->way)
		return m;
	length = ntohs(ip->tot_len) - ip->ihl * 4 - tcp->doff * 4;
	if (tcp->syn) {
		m->opens = true;
		f->isn = ntohl(tcp->seq) + 1;
		/* One that is sent again leaves a window behind that is nobody's. */
		if (!f->has_isn)
			fp_opens(f, skb->sk);
		f->has_isn = true;
	} else if (length && f->has_isn) {
		m->kind = FP_DATA;
		m->first = fp_beyond(f->sent_high, f->isn, ntohl(tcp->seq));
	} else {
		m->spare = !f->last_ack;
	}
	return m;
}

/* ---- prescribed drops --------------------------------------------------------------------- */

bool fp_struck(struct fp_rules *r, u64 now, u64 segment, bool again, u32 window)
{
	bool hit = false;

	r->packets++;
	if (r->chance.possible && !--r->gap) {
		r->gap = fp_gap(&r->random, &r->chance);
		hit = true;
	}
	if (r->every && r->packets % r->every == 0)
		hit = true;
	if (!again) {
		if (r->segments.next < r->segments.n &&
		    r->segments.at[r->segments.next] == segment) {
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

/* ---- from host to host -------------------------------------------------------------------- */

static void data_leaves(struct fp_flow *f, struct fp_meta *m)
{
	u64 segment = div_u64(m->first, f->mss);

	m->again = m->first < f->sent_high;
	f->t.sent++;
	if (m->again) {
		f->t.retransmits++;
		__set_bit(segment & (f->bits - 1), f->again);
	} else {
		__clear_bit(segment & (f->bits - 1), f->again);
		f->sent_high = m->first + f->mss;
	}
}

/* Options that a SYN shall not offer become no-operations; the host copes as with any old peer. */
static void withhold(const struct fp_flow *f, struct sk_buff *skb)
{
	struct iphdr *ip = ip_hdr(skb);
	struct tcphdr *tcp = (void *)ip + ip->ihl * 4;
	u8 *option = (u8 *)(tcp + 1), *end = (u8 *)tcp + tcp->doff * 4;

	while (option < end && *option != TCPOPT_EOL) {
		u8 length = *option == TCPOPT_NOP ? 1 : option + 1 < end ? option[1] : 0;
		bool held = (*option == TCPOPT_TIMESTAMP && !f->stamps) ||
			    (*option == TCPOPT_SACK_PERM && !f->sack);

		if (!length || option + length > end)
			return;
		if (held)
			memset(option, TCPOPT_NOP, length);
		option += length;
	}
}

/* What the sender sends, and when it could; false: its own interface is full. */
static bool may_leave(struct fp_flow *f, struct fp_meta *m, u64 now)
{
	struct sk_buff *skb = m->skb;

	if (m->opens) {
		fp_begin_limits(f, skb->sk, now);
		withhold(f, skb);
	}
	fp_held_until(f, now);
	f->refused = f->interface && !fp_has_room(&fp_links[f->route[0].link[0]], now, m->size);
	f->t.stalls += f->refused;
	return !f->refused;
}

static netdev_tx_t leave(struct sk_buff *skb, struct net_device *dev)
{
	int from = *(int *)netdev_priv(dev);
	struct fp_meta *m = NULL;
	struct fp_flow *f;
	u64 now = fp_now();
	u32 window = 0;

	if (skb->sk && sk_fullsock(skb->sk) && skb->sk->sk_protocol == IPPROTO_TCP)
		window = tcp_snd_cwnd(tcp_sk(skb->sk));
	skb_dst_drop(skb);
	nf_reset_ct(skb);
	skb->mark = 0;
	skb->priority = 0;
	if (fp_run.going && now <= fp_run.end)
		m = described(skb, from);
	if (!m) {
		kfree_skb(skb);
		return NETDEV_TX_OK;
	}
	f = &fp_flows[m->of];
	if (!m->way && !may_leave(f, m, now)) {
		bool reduces = f->reduces;

		fp_forget(m);
		/* tcp_transmit_skb() reduces the window for the first, and sends again for both. */
		return reduces ? NET_XMIT_DROP : -ENOBUFS;
	}
	if (m->way || !f->interface || !f->small_queue)
		skb_orphan(skb);
	if (m->kind == FP_DATA)
		data_leaves(f, m);
	fp_see(m, now, FP_SENT);
	if (m->kind == FP_DATA && f->rules &&
	    fp_struck(&f->rules[0], now, div_u64(m->first, f->mss), m->again, window))
		fp_lose(m);
	else
		fp_forward(m, now);
	return NETDEV_TX_OK;
}

static void data_arrives(struct fp_flow *f, struct fp_meta *m, u64 now)
{
	u64 segment = div_u64(m->first, f->mss), high = f->got_high, i;
	u32 mask = f->bits - 1, slot = fp_interval(now);
	bool first = false;

	f->t.arrived++;
	f->tally->arrived[slot]++;
	if (now >= fp_run.measure)
		f->t.arrived_measured++;
	if (segment >= high) {
		for (i = high; i <= segment && i < high + f->bits; i++)
			__clear_bit(i & mask, f->got);
		f->got_high = segment + 1;
		first = true;
	} else if (segment + f->bits > high && !test_bit(segment & mask, f->got)) {
		first = true;
		if (!test_bit(segment & mask, f->again))
			f->t.out_of_order++;
	}
	__set_bit(segment & mask, f->got);
	if (!first) {
		f->t.duplicates++;
		return;
	}
	f->t.delivered++;
	f->tally->delivered[slot]++;
	if (now >= fp_run.measure)
		f->t.delivered_measured++;
}

/* To the host; what arrives after the end of the run is not counted. */
static void reach(struct fp_meta *m, u64 now)
{
	struct fp_flow *f = &fp_flows[m->of];
	struct sk_buff *skb = m->skb;
	struct net_device *dev = hosts[m->to];

	if (m->way)
		fp_held_until(f, now);
	if (m->kind == FP_DATA && f->rules &&
	    fp_struck(&f->rules[1], now, div_u64(m->first, f->mss), m->again, 0))
		return fp_lose(m);
	if (now <= fp_run.end) {
		if (m->kind == FP_DATA)
			data_arrives(f, m, now);
		else if (m->way)
			f->t.acks++;
		fp_see(m, now, FP_RECEIVED);
	}
	if (!dev)
		return fp_forget(m);
	fp_free_meta(m);
	skb->dev = dev;
	skb->tstamp = 0;
	skb->pkt_type = PACKET_HOST;
	skb->protocol = htons(ETH_P_IP);
	skb_reset_mac_header(skb);
	netif_rx(skb);
}

/* To the next link of its route, or where it goes. */
void fp_forward(struct fp_meta *m, u64 now)
{
	bool tcp = m->kind == FP_TCP || m->kind == FP_DATA;
	const struct fp_route *routes = tcp ? fp_flows[m->of].route : fp_cross[m->of].route;
	const struct fp_route *route = &routes[m->way];

	/* It has left the host's interface: its sender may send another one. */
	if (tcp && m->hop == 1 && m->skb->sk) {
		fp_held_until(&fp_flows[m->of], now);
		skb_orphan(m->skb);
	}
	if (m->hop < route->hops)
		fp_offer(&fp_links[route->link[m->hop]], m, now);
	else if (tcp)
		reach(m, now);
	else
		fp_cross_arrived(m, now);
}

static const struct net_device_ops host_ops = {.ndo_start_xmit = leave};

void fp_plain_device(struct net_device *dev)
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

/* A device in the namespace of the calling process. */
int fp_add_host(int side)
{
	struct net_device *dev = alloc_netdev(sizeof(int), side ? "fp1" : "fp0", NET_NAME_UNKNOWN,
					      fp_plain_device);
	int error;

	if (!metas)
		metas = KMEM_CACHE(fp_meta, SLAB_PANIC);
	if (!dev)
		return -ENOMEM;
	*(int *)netdev_priv(dev) = side;
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
