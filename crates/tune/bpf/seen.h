/* What `watch` and `inject` share with their programs, seen from both sides as `shared.h` is:
 * `src/watch.rs` and `src/inject.rs` write and read the same bytes. */
#pragma once

enum {
	WATCHED_PORTS = 8,
	FAULT_PLACES = 16,
};

/* Which flows are watched beside those that are named: all whose peer is in a network of the trie
 * (if there is any) and one of whose ports is named (if one is). */
struct filter {
	u32 on;
	u32 networks;
	u32 ports;
	u16 port[WATCHED_PORTS];
};

/* A network of the trie: IPv4 as ::ffff:a.b.c.d. */
struct network {
	u32 bits;
	u8 address[16];
};

/* What is known of a flow that has been met, and of its sender when it was last told. */
struct known {
	u32 watched;
	u32 told;
	u32 una;
	u32 nxt;
	u32 cwnd;
	u32 ssthresh;
	u32 delivered;
	u32 retransmitted;
	u32 state;
	u32 timeouts;
};

enum { SEEN_MET = 1, SEEN_ACK = 2 };

/* A flow, before its first ACK is told. */
struct met {
	u64 time_us; /* CLOCK_MONOTONIC */
	u64 cookie;
	u32 kind;
	u32 mss;
	u8 local[16];
	u8 remote[16];
	u16 local_port;
	u16 remote_port;
	u32 family;
	char algorithm[16];
};

/* A sender as an ACK finds it. */
struct seen {
	u64 time_us;
	u64 cookie;
	u32 kind;
	u32 ours; /* runs an algorithm of the tuner: the next three are known */
	u32 fraction; /* of a segment, 2^-32 */
	u32 a;        /* in force, 1/256 */
	u32 b;        /* in force, 1/65536 */
	u32 cwnd;
	u32 ssthresh;
	u32 srtt_us; /* eighths */
	u32 rtt_us;  /* of what was delivered last */
	u32 min_rtt_us;
	u32 packets_out;
	u32 sacked_out;
	u32 lost_out;
	u32 retrans_out;
	u32 delivered;
	u32 delivered_ce;
	u32 retransmitted;
	u32 timeouts;
	u32 mss;
	u32 state; /* enum tcp_ca_state */
	u64 pacing; /* bytes per second */
	u64 bytes_acked;
};

enum fault_kind {
	FAULT_LOSS,  /* data goes, and the sender is not told */
	FAULT_STALL, /* data goes, and the sender is told: its own queue refused it */
	FAULT_ACK,   /* acknowledgements that arrive go */
};

/* What is lost, of which flows, until when. */
struct fault {
	u64 until_ns; /* CLOCK_MONOTONIC */
	u32 kind;
	u32 bits; /* of the network: */
	u8 address[16];
	u32 port;        /* of either end; 0: every one */
	u32 every;       /* each so-many-th; 0: none */
	u32 probability; /* each by chance, of 2^32 */
	u32 to_bad;      /* Gilbert and Elliott: chance of a change, of 2^32; all are lost while bad */
	u32 to_good;
	u32 places;
	u64 place[FAULT_PLACES]; /* by number, from 0 on, rising */
};

/* What became of it. A super-packet is several segments, and lost as a whole. */
struct losses {
	u64 packets; /* that the fault is for */
	u64 segments;
	u64 lost_packets;
	u64 lost_segments;
	u32 bad;
	u32 next; /* index of the next place */
};
