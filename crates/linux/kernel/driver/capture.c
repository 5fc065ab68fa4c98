// SPDX-License-Identifier: GPL-2.0 OR MIT OR Apache-2.0
/* Captures: the headers of every packet that a host sends or receives or the network drops. */
#include "fullpipe.h"

void fp_see(const struct fp_meta *m, u64 now, enum fp_seen event)
{
	struct fp_packet p = {.time = now, .event = event, .data = !m->way, .again = m->again};

	if (!fp_run.capture || (m->kind != FP_TCP && m->kind != FP_DATA) || !m->skb ||
	    fp_flows[m->of].brief)
		return;
	p.length = min_t(u32, m->skb->len, sizeof(p.bytes));
	if (!skb_copy_bits(m->skb, skb_network_offset(m->skb), p.bytes, p.length))
		fp_emit(FP_PACKET, m->of, &p, sizeof(p));
}
