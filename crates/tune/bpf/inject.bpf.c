/* Artificial loss of the segments of a few flows, for a time. Loaded only by `inject`; after
 * `until_ns` it lets everything pass, whether or not anybody takes it away. */

#include "kernel.h"
#include "seen.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct fault);
} faults SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct losses);
} losses SEC(".maps");

/* Segments of a super-packet that are drawn one by one: more would be no different. */
#define DRAWS 64

/* A segment of TCP as it stands in the packet. */
struct segment {
	u8 local[16];
	u8 remote[16];
	u16 local_port;
	u16 remote_port;
	u32 payload;
	u32 flags;
};

ALWAYS bool take(struct __sk_buff *skb, u32 at, void *to, u32 size)
{
	return !load_bytes_relative(skb, at, to, size, BPF_HDR_START_NET);
}

ALWAYS void mapped(u8 *to, const u8 *v4)
{
	__builtin_memset(to, 0, 10);
	to[10] = 0xff;
	to[11] = 0xff;
	__builtin_memcpy(to + 12, v4, 4);
}

/* False: no TCP, or a fragment. `out`: the packet leaves this host. */
ALWAYS bool parse(struct __sk_buff *skb, struct segment *s, bool out)
{
	u8 source[16], destination[16], ip[40], tcp[20];
	u32 header, length;

	if (skb->protocol == __builtin_bswap16(0x0800)) {
		if (!take(skb, 0, ip, 20))
			return false;
		if (ip[9] != 6 || (ip[6] & 0x3f) || ip[7])
			return false;
		header = (ip[0] & 15) * 4;
		length = (u32)ip[2] << 8 | ip[3];
		mapped(source, ip + 12);
		mapped(destination, ip + 16);
	} else if (skb->protocol == __builtin_bswap16(0x86dd)) {
		if (!take(skb, 0, ip, 40) || ip[6] != 6)
			return false;
		header = 40;
		length = 40 + ((u32)ip[4] << 8 | ip[5]);
		__builtin_memcpy(source, ip + 8, 16);
		__builtin_memcpy(destination, ip + 24, 16);
	} else {
		return false;
	}
	if (!take(skb, header, tcp, 20))
		return false;
	header += (tcp[12] >> 4) * 4;
	/* A length of more than 16 bits is not in the header. */
	s->payload = skb->gso_segs > 1 ? 1 : length > header ? length - header : 0;
	s->flags = tcp[13];
	__builtin_memcpy(s->local, out ? source : destination, 16);
	__builtin_memcpy(s->remote, out ? destination : source, 16);
	s->local_port = (u16)tcp[out ? 0 : 2] << 8 | tcp[out ? 1 : 3];
	s->remote_port = (u16)tcp[out ? 2 : 0] << 8 | tcp[out ? 3 : 1];
	return true;
}

/* Eight bytes of an address, the first one highest. */
ALWAYS u64 half(const u8 *address)
{
	u64 bytes;

	__builtin_memcpy(&bytes, address, 8);
	return __builtin_bswap64(bytes);
}

/* The first `bits` of 64. */
ALWAYS u64 leading(u32 bits)
{
	return bits ? ~0ULL << (64 - bits) : 0;
}

ALWAYS bool is_inside(const u8 *address, const struct fault *f)
{
	u32 bits = f->bits < 128 ? f->bits : 128, high = bits < 64 ? bits : 64;

	return !((half(address) ^ half(f->address)) & leading(high)) &&
	       !((half(address + 8) ^ half(f->address + 8)) & leading(bits - high));
}

ALWAYS bool chance(u32 of)
{
	return of && random() < of;
}

/* Segments and places are counted by `bpf_loop`: the verifier checks its callback once, where it
 * would follow every path through a loop of C. */
struct draws {
	u32 probability;
	bool lost;
};

static long draw(u32 k, struct draws *d)
{
	d->lost |= chance(d->probability);
	return 0;
}

struct places {
	const struct fault *f;
	u64 first, end;
	u32 next;
	bool lost;
};

static long place(u32 k, struct places *p)
{
	if (k >= p->next && k < FAULT_PLACES && p->f->place[k] < p->end) {
		p->lost |= p->f->place[k] >= p->first;
		p->next = k + 1;
	}
	return 0;
}

/* Whether this packet of so many segments goes; they have the numbers from `number` on. */
ALWAYS bool is_lost(const struct fault *f, struct losses *l, u64 number, u32 segments)
{
	struct places p = { .f = f, .first = number, .end = number + segments, .next = l->next };
	struct draws d = { .probability = f->probability };
	bool lost = false;

	if (f->every)
		lost = (number + segments) / f->every != number / f->every;
	loop(f->places, place, &p, 0);
	l->next = p.next;
	loop(segments < DRAWS ? segments : DRAWS, draw, &d, 0);
	lost |= p.lost | d.lost;
	if (f->to_bad) {
		if (l->bad ? chance(f->to_good) : chance(f->to_bad))
			l->bad = !l->bad;
		lost |= l->bad;
	}
	return lost;
}

ALWAYS bool falls(struct __sk_buff *skb, bool out)
{
	u32 zero = 0, segments = skb->gso_segs > 1 ? skb->gso_segs : 1;
	struct fault *f = map_lookup(&faults, &zero);
	struct losses *l = map_lookup(&losses, &zero);
	struct segment s = {};
	bool lost;

	if (!f || !l || ktime_get_ns() >= f->until_ns)
		return false;
	if (!parse(skb, &s, out) || !is_inside(s.remote, f))
		return false;
	if (f->port && f->port != s.local_port && f->port != s.remote_port)
		return false;
	/* A SYN, a FIN and a reset are left to their flow. */
	if (s.flags & 7 || !(s.flags & 16))
		return false;
	if (out ? !s.payload : !!s.payload)
		return false;
	lost = is_lost(f, l, l->segments, segments);
	l->packets++;
	l->segments += segments;
	if (lost) {
		l->lost_packets++;
		l->lost_segments += segments;
	}
	return lost;
}

SEC("tc")
int fp_leaving(struct __sk_buff *skb)
{
	u32 zero = 0;
	struct fault *f = map_lookup(&faults, &zero);

	if (!falls(skb, true))
		return TC_ACT_UNSPEC;
	return f && f->kind == FAULT_STALL ? TC_ACT_SHOT : TC_ACT_STOLEN;
}

SEC("tc")
int fp_arriving(struct __sk_buff *skb)
{
	return falls(skb, false) ? TC_ACT_SHOT : TC_ACT_UNSPEC;
}
