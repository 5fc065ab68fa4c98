/* SPDX-License-Identifier: GPL-2.0 OR MIT OR Apache-2.0 */
/*
 * fullpipe: the network of a run, between two hosts that are network namespaces of this kernel.
 *
 * Hosts 0 and 1 have one point-to-point device each, fp0 and fp1 (hosts.c). What a host sends
 * passes the links of its route and arrives at the other host's device. A link is, in this order:
 * random loss and a policer (entry.c), a queue before a transmitter (link.c in closed form, or
 * held.c for the kernel's own disciplines; transmitter.c), a delay with jitter and packets that
 * are overtaken (wire.c). Datagrams and probes have no host: cross.c sends and takes them.
 *
 * Beside the network it records (records.c): what flows send and what arrives, and, through calls
 * that are patched into net/ipv4/tcp_input.c and tcp_output.c, the state of each sender after every
 * ACK (senders.c). /proc/fullpipe takes commands and gives the records (commands.c).
 *
 * Times are nanoseconds since the start of the run unless a name says otherwise. The guest has one
 * processor and all of this runs with softirqs disabled: there are no locks.
 */
#ifndef FULLPIPE_H
#define FULLPIPE_H

#include <linux/hrtimer.h>
#include <linux/interrupt.h>
#include <linux/ip.h>
#include <linux/list.h>
#include <linux/netdevice.h>
#include <linux/skbuff.h>
#include <linux/slab.h>
#include <linux/types.h>

#define FP_FOREVER (~0ULL)
#define FP_MOST_HOPS 32

/* ---- records: what user space reads, each behind a struct fp_head ------------------------- */

enum {
	FP_ROW = 1,
	FP_EPISODE,
	FP_ROUND,
	FP_SAMPLE,
	FP_ANSWERED,
	FP_PACKET,
	FP_MODEL,
	FP_FLOW = 16,
	FP_DELIVERED,
	FP_ARRIVED,
	FP_RTT,
	FP_LINK,
	FP_WAIT,
	FP_CROSS,
	FP_CROSS_ARRIVED,
	FP_CROSS_DELAY,
	FP_END = 32,
};

struct fp_head {
	u32 kind;
	u32 id;	  /* flow, link or cross traffic */
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
	u32 mss, stalls, zero;
};

/* Behind a row of a sender whose module describes itself as BBR does (struct tcp_bbr_info). */
struct fp_model {
	u64 bw;		  /* bytes per second */
	u32 mss, min_rtt; /* bytes, us */
	u32 pacing_gain, cwnd_gain; /* 1/256 */
	u32 state, version; /* enum bbr_mode; of version 3 the states of fullpipe_cc's `bbr` */
	u64 max_bw, short_bw; /* version 3: bytes per second; all bits set: no bound */
	u32 long_inflight, short_inflight; /* version 3: segments, likewise */
};

struct fp_episode {
	u64 time;
	u32 kind, before, after, zero;
};

struct fp_round {
	u64 time, delivered, cwnd;
};

struct fp_sample {
	u64 time, packets, min, max;
};

struct fp_answered {
	u64 time, rtt;
};

/* A packet at a host, for captures: the headers as they are. */
struct fp_packet {
	u64 time;
	u8 event; /* 0 sent, 1 received, 2 dropped */
	u8 data;  /* it carries data, or opens the connection */
	u8 again; /* sent before */
	u8 zero;
	u32 length;
	u8 bytes[80]; /* of IP and TCP, with options */
};

/* What may hold a sender back, in the order of fullpipe_flow::Limit. */
enum fp_limit {
	FP_NETWORK,
	FP_WINDOW_CAP,
	FP_RECEIVE_WINDOW,
	FP_LOCAL_QUEUE,
	FP_RATE,
	FP_PACING,
	FP_APPLICATION,
	FP_LIMITS,
};

/* Counters of a flow; the first ones in the order of FlowTotals. */
struct fp_totals {
	u64 sent, retransmits, delivered, delivered_measured, arrived_measured, duplicates;
	u64 out_of_order, dropped, loss_events, loss_events_measured, timeouts, probes, undone;
	u64 acks;
	u64 arrived; /* before the end of the run */
	u64 area;    /* window times time since the measured part began, segments x ns */
	u64 since;   /* the measured part of this flow began */
	u64 until;   /* the area ends */
	u64 cwnd_max;
	u64 completed; /* FP_FOREVER: not */
	u64 lost;      /* bit i: the first transmission of segment i was lost */
	u64 stalls;    /* segments that the host's own interface had no room for */
	u64 limited[FP_LIMITS]; /* ns in the measured part */
};

struct fp_counts {
	u64 offered, passed, passed_bytes, measured_bytes;
	u64 buffer_drops, random_drops, policer_drops, early_drops, marks;
	u64 queue_max, area;
};

struct fp_cross_counts {
	u64 arrived, dropped, arrived_measured, last_arrival;
};

void fp_emit(u32 kind, u32 id, const void *data, u64 size);
void fp_emit_histogram(u32 kind, u32 id, const u32 *counts);
u32 *fp_histogram(void);
void fp_count(u32 *histogram, u64 value);
u32 fp_interval(u64 now);
ssize_t fp_take_records(char __user *to, size_t size);

/* ---- random numbers: random.c ------------------------------------------------------------- */

struct fp_random {
	u64 s[4];
};

/* A probability p as trials up to the next success need it: 1 / -log2(1 - p), `m` / 2^`shift`. */
struct fp_chance {
	u64 m;
	u32 shift;
	bool possible;
};

void fp_seed(struct fp_random *r, u64 seed);
u64 fp_draw(struct fp_random *r);
u64 fp_part(struct fp_random *r, u64 most);
u64 fp_gap(struct fp_random *r, const struct fp_chance *p);

/* ---- the run ------------------------------------------------------------------------------ */

struct fp_run {
	u64 zero; /* ktime of the start */
	bool going;
	u64 measure, end;   /* the measured part */
	u64 interval;	    /* width of a sample of arrivals */
	u64 step;	    /* between two rows of a flow; FP_FOREVER: none */
	u64 queue_step;	    /* between two samples of a queue; FP_FOREVER: none */
	bool capture;
	u32 intervals;
};

extern struct fp_run fp_run;
u64 fp_now(void);

/* ---- when the network acts: alarm.c ------------------------------------------------------- */

struct fp_alarm {
	struct hrtimer timer;
	struct tasklet_struct second_half;
	void (*function)(struct fp_alarm *a);
};

void fp_make_alarm(struct fp_alarm *a, void (*function)(struct fp_alarm *a));
void fp_ring_at(struct fp_alarm *a, u64 at);

/* ---- packets ------------------------------------------------------------------------------ */

enum fp_kind {
	FP_TCP, /* SYN, ACK */
	FP_DATA,
	FP_DATAGRAM,
	FP_PROBE,
	FP_ANSWER,
};

/* A packet inside the network; while a discipline of the kernel holds it, see fp_meta(). */
struct fp_meta {
	struct list_head list;
	struct sk_buff *skb;
	u64 arrives;
	u64 entered; /* the link */
	u64 first;   /* byte of data beyond the initial sequence number; departure of a probe */
	u32 size;
	u32 of; /* flow, or cross traffic */
	enum fp_kind kind;
	u8 to; /* host */
	u8 way, hop;
	bool again, was_ce, opens;
	bool spare; /* the ACK of a handshake that the simulator does not send: it draws nothing */
};

struct fp_route {
	u8 hops;
	u16 link[FP_MOST_HOPS];
};

struct fp_meta *fp_new_meta(struct sk_buff *skb);
void fp_free_meta(struct fp_meta *m);
void fp_forward(struct fp_meta *m, u64 now);
void fp_lose(struct fp_meta *m);
void fp_forget(struct fp_meta *m);
int fp_add_host(int side);
void fp_plain_device(struct net_device *dev);

/* ---- flows -------------------------------------------------------------------------------- */

struct fp_list {
	u64 *at;
	u32 n, next;
};

/* Prescribed drops: on the way into the first link, or where a packet arrives. */
struct fp_rules {
	struct fp_list segments, times; /* rising */
	u64 every, packets, window;
	struct fp_chance chance;
	struct fp_random random;
	u64 gap; /* packets until the next random drop, that one included */
	bool window_done;
};

/* What the flows of a class have in common. */
struct fp_tally {
	u32 *delivered, *arrived, *rtt;
};

struct fp_flow {
	bool present, reverse, brief; /* brief: one of a class, only its totals are recorded */
	bool stamps, sack;	      /* options that its SYN offers */
	bool last_ack;		      /* the simulator sends the ACK of the handshake too */
	bool interface;		      /* the first link is the host's own, and can be full */
	bool small_queue, reduces;    /* what it keeps there counts; a full one is congestion */
	u32 mss, cap, initial;
	u64 finite; /* bytes of a transfer; 0: no end */
	u64 stop;
	bool purged;
	struct fp_route *route; /* of data, of ACKs */
	struct fp_rules *rules; /* on the path, where it arrives; NULL: none */
	struct fp_tally *tally;
	bool has_isn;
	u32 isn;
	u64 sent_high, got_high; /* bytes beyond the initial sequence number; segments */
	unsigned long *again, *got;
	u32 bits; /* segments that `again` and `got` remember, 2^n */
	struct fp_totals t;
	/* the sender */
	u64 since, next_row, last_delivered, last_una;
	u32 round_began;
	bool round_begins;
	u32 w, low, high, last_rtt, last_retransmits, last_stalls;
	u16 events;
	bool start_up, seen, touched;
	u8 state; /* of BBR */
	/* what holds it back, until `held` */
	struct sock *sk;
	u64 held;
	bool refused; /* the interface was full */
};

extern struct fp_flow *fp_flows;
extern u32 fp_nflows;

/* The 64-bit number next to `near` that `seq` is the low half of, counted from `base`. */
static inline u64 fp_beyond(u64 near, u32 base, u32 seq)
{
	return near + (s32)(seq - (base + (u32)near));
}

bool fp_struck(struct fp_rules *r, u64 now, u64 segment, bool again, u32 window);
void fp_close_flow(struct fp_flow *f);
void fp_opens(struct fp_flow *f, struct sock *sk);

/* ---- links -------------------------------------------------------------------------------- */

struct fp_piece {
	u64 at, a, b, c, d, e;
};

struct fp_changes {
	struct fp_piece *p;
	u32 n, next;
};

/* Where a transmitter stands in its rates or opportunities. */
struct fp_cursor {
	u64 at; /* the last packet is done, or the next one may begin; FP_FOREVER: never */
	u64 turn;
	u32 index;
	u64 rest; /* rates: work of less than a nanosecond; trace: bytes left of an opportunity */
};

struct fp_departure {
	u64 at;
	u32 size;
};

/* As the `queue` of the link command. */
enum fp_queue {
	FP_FIFO,
	FP_CODEL, /* and FQ-CoDel: drops at the entry only what has no room */
	FP_PIE,	  /* limit in packets */
	FP_RED,	  /* limit in bytes */
};

/* As the `buffer kind` of the link command. */
enum fp_buffer { FP_UNLIMITED, FP_PACKETS, FP_BYTES, FP_TIME };

struct fp_link {
	bool present, loss_of_acks, watched;
	enum fp_queue queue;
	enum fp_buffer buffer_kind;
	u64 buffer;
	u64 clock;
	/* entry */
	struct fp_changes losses;
	bool loss_begun, bad;
	u64 loss_gap;
	struct fp_random loss_random;
	u64 police_rate, police_depth, police_tokens, police_at;
	/* transmitter: rates, or opportunities (ms) of a trace */
	struct fp_changes rates;
	struct fp_list trace;
	struct fp_cursor last;
	/* packets of a FIFO that have not left yet, a ring */
	struct fp_departure *ring;
	u32 mask, head, tail;
	u64 bytes;
	/* a discipline of the kernel */
	struct net_device *dev;
	struct fp_alarm transmitter;
	struct fp_cursor next;
	bool pending, entering;
	u64 limit;
	u64 waiting, area_at;
	/* wire */
	struct fp_changes delays;
	u64 jitter, extra;
	struct fp_chance overtaken;
	u64 overtaken_gap;
	struct fp_random jitter_random, overtaken_random;
	u64 latest_arrival;
	struct list_head flight;
	struct fp_alarm arrivals;
	/* counters */
	struct fp_counts n;
	u64 sample_at;
	u64 low, high; /* of the queue, since the last sample */
	u32 *wait;
};

extern struct fp_link *fp_links;
extern u32 fp_nlinks;

void fp_offer(struct fp_link *l, struct fp_meta *m, u64 now);
bool fp_has_room(struct fp_link *l, u64 now, u32 size);
bool fp_passes(struct fp_link *l, const struct fp_meta *m, u64 now);
bool fp_has_transmitter(const struct fp_link *l);
struct fp_cursor fp_start(const struct fp_link *l, u64 now);
struct fp_cursor fp_follow(const struct fp_link *l);
struct fp_cursor fp_done(const struct fp_link *l, struct fp_cursor c, u32 size);
void fp_begin_trace(struct fp_link *l);
void fp_fly(struct fp_link *l, struct fp_meta *m, u64 left);
void fp_begin_wire(struct fp_link *l);
const struct fp_piece *fp_current(struct fp_changes *c, u64 now);
void fp_booked(struct fp_link *l, u64 entered, u64 begins, u64 departs, u32 size);
void fp_varied(struct fp_link *l, u64 packets);
/* The nanosecond before: what is sampled at a time comes before all that happens then. */
static inline u64 fp_before(u64 at)
{
	return at ? at - 1 : 0;
}

bool fp_step_over(const struct fp_link *l, u64 now);
void fp_sample(struct fp_link *l, u64 packets);
void fp_close_fifo(struct fp_link *l);

int fp_add_held(u32 i);
void fp_hold(struct fp_link *l, struct fp_meta *m, u64 now);
void fp_close_held(struct fp_link *l);

/* ---- datagrams and probes ----------------------------------------------------------------- */

struct fp_cross {
	bool present, answered;
	u32 size;
	struct fp_route route[2]; /* there, and back if it is answered */
	struct fp_list departures;
	struct fp_alarm alarm;
	struct fp_cross_counts n;
	u32 *arrived, *delay;
};

extern struct fp_cross *fp_cross;
extern u32 fp_ncross;

void fp_begin_cross(struct fp_cross *c);
void fp_cross_arrived(struct fp_meta *m, u64 now);

/* ---- what holds a sender back: limits.c ---------------------------------------------------- */

void fp_begin_limits(struct fp_flow *f, struct sock *sk, u64 now);
void fp_held_until(struct fp_flow *f, u64 now);
void fp_close_limits(struct fp_flow *f);

/* ---- captures: capture.c ------------------------------------------------------------------ */

enum fp_seen { FP_SENT, FP_RECEIVED, FP_DROPPED };
void fp_see(const struct fp_meta *m, u64 now, enum fp_seen event);

/* ---- calls that are patched into TCP: senders.c ------------------------------------------- */

struct tcp_sock;
void fullpipe_delivered(struct sock *sk, u32 prior);
void fullpipe_acked(struct sock *sk);
void fullpipe_rtt(struct sock *sk, long us);
void fullpipe_changed(struct sock *sk, int kind, u32 before);
void fullpipe_probed(struct sock *sk);
void fullpipe_opened(struct sock *sk);
u32 fullpipe_initial(const struct tcp_sock *tp, u32 kernels);

#endif
