/* Structures of bpf/shared.h with every field set to a number of its own, as hexadecimal lines. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t s32;
typedef int64_t s64;

#include "../bpf/shared.h"

static void show(const char *name, const void *at, size_t size)
{
	const u8 *byte = at;

	printf("%s ", name);
	for (size_t k = 0; k < size; k++)
		printf("%02x", byte[k]);
	printf("\n");
}

int main(void)
{
	u32 constants[] = { RULES, POLICIES, NETWORKS, RANGES, CLASSES, QUEUE };
	struct params p = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, { 12, 13, 14, 15, 16, 17, 18, 19 } };
	struct table t = { { { 0, 256, 32768 }, { 38, 512, 30000 } } };
	struct match m = { .flags = 1, .side = 2, .share = 3, .ranges = 2,
			   .range = { { 80, 81 }, { 443, 444 } }, .algorithm = "fp_aimd",
			   .send_buffer = 4, .receive_buffer = 5, .policy = 6 };
	struct control c = { .active = 1, .generation = 2, .off = 1, .keep = 1, .heartbeat_us = 3,
			     .patience_us = 4, .watched = 5, .never_ranges = 1,
			     .never = { { 22, 23 } }, .namespace = 6 };
	struct prefix x = { 8 + 120, 1, { 1, 2, 3 } };
	/* Static: what fills up the structure is zero. */
	static struct order o = { 6, 7, ORDER_RELEASE, 3, 4, 5, "reno" };
	struct flow f = { .cookie = 1, .max_pacing = 2, .rule = 17, .arm = ARM_CONTROL,
			  .how = HOW_ADOPTED, .ceiling = 3, .pacing_status = 4,
			  .locks = LOCK_RECEIVE, .send_buffer = 18, .receive_buffer = 19,
			  .given_send = 20, .given_receive = 25, .before = "bbr",
			  .given = "fp_bic", .cuts = 21, .timeouts = 22, .stalls = 23,
			  .stalls_ignored = 24 };
	struct listing l;
	struct event e = { 1, 2, EVENT_CUT, 4, 5, 1u << 31, 6, 7, 8, 9 << 8, 10 << 10, 11, 12, 13 };
	struct opened n = { .time_us = 1, .cookie = 2, .kind = EVENT_CONTROL, .rule = 3,
			    .local_port = 4, .remote_port = 5, .done = -6, .namespace = 7 };

	memset(&l, 0, sizeof(l));
	l.cookie = 1;
	l.local[15] = 1;
	l.remote[10] = 0xff;
	l.remote[11] = 0xff;
	l.remote[12] = 10;
	l.remote[15] = 2;
	l.local_port = 3;
	l.remote_port = 4;
	l.state = 5;
	strcpy(l.algorithm, "fp_bic");
	l.chosen = 1;
	l.done = -7;
	l.cwnd = 8;
	l.ssthresh = 9;
	l.srtt_us = 80;
	l.mss = 11;
	l.retransmitted = 12;
	l.has_flow = 1;
	l.side = SIDE_PASSIVE;
	l.bytes_acked = 13;
	l.max_pacing = 14;
	l.send_buffer = 15;
	l.receive_buffer = 16;
	l.inode = 17;
	l.cgroup = 18;
	l.locks = LOCK_SEND;
	l.pacing_status = 1;
	l.a = 26 << 8;
	l.b = 27 << 10;
	l.flow = f;
	n.flow = f;
	n.local[15] = 1;
	n.remote[0] = 0x20;
	show("constants", constants, sizeof(constants));
	show("params", &p, sizeof(p));
	show("table", &t, sizeof(t));
	show("match", &m, sizeof(m));
	show("control", &c, sizeof(c));
	show("prefix", &x, sizeof(x));
	show("order", &o, sizeof(o));
	show("listing", &l, sizeof(l));
	show("event", &e, sizeof(e));
	show("opened", &n, sizeof(n));
	return 0;
}
