// SPDX-License-Identifier: GPL-2.0 OR MIT OR Apache-2.0
/* Datagrams that leave at prescribed times, and probes, which the far end answers at once. No host
   has to do with them: they are sent and taken here, to the nanosecond. */
#include <linux/udp.h>
#include <net/ip.h>

#include "fullpipe.h"

struct fp_cross *fp_cross;
u32 fp_ncross;

/* A packet with headers by which a discipline tells flows apart. */
static struct sk_buff *datagram(u32 of, u32 size)
{
	u32 length = max_t(u32, size, sizeof(struct iphdr) + sizeof(struct udphdr));
	struct sk_buff *skb = alloc_skb(LL_MAX_HEADER + length, GFP_ATOMIC);
	struct udphdr *udp;
	struct iphdr *ip;

	if (!skb)
		panic("fullpipe: no memory for packets");
	skb_reserve(skb, LL_MAX_HEADER);
	ip = skb_put_zero(skb, length);
	udp = (void *)(ip + 1);
	skb_reset_network_header(skb);
	skb_set_transport_header(skb, sizeof(*ip));
	ip->version = 4;
	ip->ihl = 5;
	ip->tot_len = htons(length);
	ip->ttl = 64;
	ip->protocol = IPPROTO_UDP;
	ip->saddr = htonl(0x0a010000 + of);
	ip->daddr = htonl(0x0a020000 + of);
	ip_send_check(ip);
	udp->source = htons(20000 + of);
	udp->dest = htons(9); /* discard */
	udp->len = htons(length - sizeof(*ip));
	skb->protocol = htons(ETH_P_IP);
	skb->ip_summed = CHECKSUM_UNNECESSARY;
	return skb;
}

static void depart(struct fp_cross *c, u64 now)
{
	u32 of = c - fp_cross;
	struct fp_meta *m = fp_new_meta(datagram(of, c->size));

	m->of = of;
	m->size = c->size;
	m->kind = c->answered ? FP_PROBE : FP_DATAGRAM;
	m->first = now;
	fp_forward(m, now);
}

static void due(struct fp_alarm *alarm)
{
	struct fp_cross *c = container_of(alarm, struct fp_cross, alarm);
	u64 now = fp_now();

	while (c->departures.next < c->departures.n) {
		u64 at = c->departures.at[c->departures.next];

		if (at > now) {
			fp_ring_at(alarm, at);
			break;
		}
		c->departures.next++;
		depart(c, at);
	}
}

/* The run starts. */
void fp_begin_cross(struct fp_cross *c)
{
	fp_make_alarm(&c->alarm, due);
	if (c->departures.n)
		fp_ring_at(&c->alarm, c->departures.at[0]);
}

/* At the far end, or, an answer, back. */
void fp_cross_arrived(struct fp_meta *m, u64 now)
{
	struct fp_cross *c = &fp_cross[m->of];
	u64 took = now - m->first;

	if (m->kind == FP_PROBE) {
		m->kind = FP_ANSWER;
		m->way = 1;
		m->hop = 0;
		return fp_forward(m, now);
	}
	if (now <= fp_run.end) {
		c->n.arrived++;
		c->n.last_arrival = now;
		if (m->kind == FP_ANSWER) {
			struct fp_answered a = {now, took};

			fp_emit(FP_ANSWERED, m->of, &a, sizeof(a));
		} else {
			c->arrived[fp_interval(now)]++;
		}
		if (now >= fp_run.measure) {
			c->n.arrived_measured++;
			if (m->kind == FP_DATAGRAM)
				fp_count(c->delay, took / 100);
		}
	}
	fp_forget(m);
}
