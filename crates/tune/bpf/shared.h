/* What lies in the maps, seen from both sides: `src/layout.rs` writes and reads the same bytes, and
 * a test compares every offset. No kernel type: compiles for the host too. */
#pragma once

enum {
	RULES = 64,       /* rules of a policy at most */
	POLICIES = 128,   /* what flows get: those of rules that go beside those that come */
	NETWORKS = 16384, /* of a policy at most */
	RANGES = 8,       /* port ranges of a rule at most */
	TABLE_ROWS = 128, /* rows of a table at most: seven steps of a binary search */
	NUMBERS = 8,
	CLASSES = 16,     /* of sch_htb, of a rule that spreads initial windows */
	QUEUE = 0xfb10,   /* handle of the queue with these classes */
};

/* Row of a(w), b(w): holds from `window` up to the next row's. */
struct row {
	u32 window;   /* segments */
	u32 increase; /* segments per round trip, 1/256 */
	u32 decrease; /* fraction removed, 1/65536 */
};

struct table {
	struct row row[TABLE_ROWS];
};

enum law {
	LAW_TABLE,
	LAW_SCALABLE,
	LAW_HTCP,
	LAW_BIC,
	LAW_CUBIC,
	LAW_WESTWOOD,
	LAW_VEGAS,
	LAW_FAST,
	LAW_HSTCP_LP,
	LAWS, /* this and above: none, the flow runs the standard */
};

enum {
	FLAG_SENDSTALL_IGNORE = 1,
};

/* Zero is "off" in every optional field. */
struct params {
	u32 law;
	u32 flags;
	u32 rows;
	u32 max_ssthresh;       /* RFC 3742, segments */
	u32 gamma;              /* segments of queue that end slow start, 1/256 */
	u32 gamma_then;         /* then limited slow start of this max_ssthresh */
	u32 clamp;              /* window at most, segments */
	u32 initial_window;     /* segments */
	u32 spread_us;          /* the initial window leaves over this time */
	u32 update_interval_us; /* a and b are computed this often; 0: every ACK */
	u64 pacing;             /* bytes per second at most */
	u64 number[NUMBERS];    /* by law, see law*.h */
};

enum side { SIDE_EITHER, SIDE_ACTIVE, SIDE_PASSIVE };

enum {
	MATCH_USED = 1,
	MATCH_RESPECT_APP = 2,
};

struct range {
	u16 low;
	u16 high;
};

/* Which flows a rule is for, beside its prefixes. */
struct match {
	u32 flags;
	u32 side;
	u32 share; /* of 65536 */
	u32 ranges;
	struct range range[RANGES];
	char algorithm[16]; /* the name that its flows get */
	u32 send_buffer;
	u32 receive_buffer;
	u32 policy; /* the number of what they get: rules move, numbers stay */
};

/* All of it changes at once: readers look at `active`, the writer fills the other half. */
struct control {
	u32 active;     /* 0 or 1 */
	u32 generation; /* flows look again which rule they are of */
	u32 off;
	u32 keep;       /* the daemon's end changes nothing */
	u64 heartbeat_us;
	u64 patience_us; /* a heartbeat older than this is none */
	u64 watched;     /* a cookie whose ACKs are recorded; all: ~0; none: 0 */
	u32 never_ranges;
	struct range never[RANGES];
	u32 namespace; /* whose new flows get rules, inode; 0: all */
};

/* A prefix of one half of the maps. */
struct prefix {
	u32 bits; /* of what follows */
	u8 half;
	u8 address[16]; /* IPv4 as ::ffff:a.b.c.d */
} __attribute__((packed));

enum arm { ARM_POLICY, ARM_CONTROL };
enum { HOW_NEW, HOW_ADOPTED };

/* `sk_userlocks`: sizes that the program set itself, which the kernel does not tune. */
enum { LOCK_SEND = 1, LOCK_RECEIVE = 2 };

/* What is kept of a flow beside the algorithm's own state: what it had before, and what it was
 * given. What is not as it was given has been changed by its program since, and stays. */
struct flow {
	u64 cookie;
	u64 max_pacing; /* before, bytes per second; all ones: no ceiling */
	u32 rule;       /* the policy's number plus 1 */
	u32 arm;
	u32 how;
	u32 ceiling;        /* of pacing, given; 0: none */
	u32 pacing_status;  /* before */
	u32 locks;          /* before */
	u32 send_buffer;    /* before */
	u32 receive_buffer; /* before */
	u32 given_send;     /* `sk_sndbuf` given; 0: none */
	u32 given_receive;
	char before[16]; /* algorithm */
	char given[16];
	u32 cuts;
	u32 timeouts;
	u32 stalls;
	u32 stalls_ignored;
};

enum order_action { ORDER_NONE, ORDER_ADOPT, ORDER_RELEASE, ORDER_RESIZE };

/* What the iterator does to a socket. */
struct order {
	u64 max_pacing; /* on release, of a flow that no record is kept of: before, and what was given */
	u32 ceiling;    /* on adoption: of an algorithm of the kernel; none: ~0; 0: as it is */
	u32 action;
	u32 rule;        /* its number plus 1 */
	u32 send_buffer; /* 0: as it is */
	u32 receive_buffer;
	char algorithm[16];
};

/* What the iterator says of a socket. */
struct listing {
	u64 cookie;
	u8 local[16];
	u8 remote[16];
	u16 local_port;
	u16 remote_port;
	u32 state;
	char algorithm[16];
	u32 chosen; /* its program chose the algorithm */
	s32 done;   /* result of the order; 1: none */
	u32 cwnd;
	u32 ssthresh;
	u32 srtt_us; /* eighths */
	u32 mss;
	u32 retransmitted;
	u16 has_flow;
	u16 side; /* of one that was seen to begin, which end opened it; else SIDE_EITHER */
	u64 bytes_acked;
	u64 max_pacing;
	u64 inode;  /* of the socket's file; 0: no program has it */
	u64 cgroup; /* number */
	u32 send_buffer;
	u32 receive_buffer;
	u32 locks;
	u32 pacing_status;
	u32 a; /* in force, 1/256; 0: none yet, or no algorithm of ours */
	u32 b; /* 1/65536 */
	struct flow flow;
};

enum event_kind {
	EVENT_INIT = 1,
	EVENT_RELEASE,
	EVENT_ACK,
	EVENT_CUT,
	EVENT_TIMEOUT,
	EVENT_STALL,
	EVENT_STALL_IGNORED,
	EVENT_GAMMA,
	EVENT_UNDO,
	EVENT_MATCHED,
	EVENT_CONTROL,
};

/* One record of the ring buffer. */
struct event {
	u64 time_us; /* CLOCK_MONOTONIC */
	u64 cookie;
	u32 kind;
	u32 rule; /* its number plus 1 */
	u32 cwnd;
	u32 fraction; /* of a segment, 2^-32 */
	u32 ssthresh;
	u32 value; /* after a cut: the new threshold; on release: the socket's state; else segments
		      acknowledged */
	u32 rtt_us;
	u32 a; /* in force, 1/256 */
	u32 b; /* in force, 1/65536 */
	u32 flight;
	u32 delivered;
	u32 state; /* of the sender (enum tcp_ca_state) */
};

/* A new flow has been given a rule: the other record of the ring buffer, told by its kind. */
struct opened {
	u64 time_us;
	u64 cookie;
	u32 kind;
	u32 rule; /* its number plus 1 */
	u8 local[16];
	u8 remote[16];
	u16 local_port;
	u16 remote_port;
	s32 done;      /* 0, or why the kernel refused */
	u32 namespace; /* inode */
	struct flow flow;
};

enum counter {
	COUNT_ACKS,
	COUNT_MATCHED,
	COUNT_CONTROL,
	COUNT_APP_CHOICE,
	COUNT_INIT,
	COUNT_RELEASED,
	COUNT_CUTS,
	COUNT_TIMEOUTS,
	COUNT_STALLS,
	COUNT_STALLS_IGNORED,
	COUNT_RECORDS_LOST,
	COUNT_STANDARD,
	COUNT_REFUSED,
	COUNT_SPREAD,
	COUNTERS = 16,
};
