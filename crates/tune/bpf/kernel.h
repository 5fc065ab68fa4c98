/* What the programs read of the kernel: types by hand, only the fields used. Offsets are those of
 * the running kernel (CO-RE: clang records each access, the loader relocates it). */
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef signed int s32;
typedef signed long long s64;
typedef _Bool bool;
#define true 1
#define false 0

#define NULL ((void *)0)
#define SEC(name) __attribute__((section(name), used))
#define ALWAYS static inline __attribute__((always_inline))
#define __uint(name, value) int (*name)[value]
#define __type(name, value) typeof(value) *name

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct in6_addr {
	union {
		u8 u6_addr8[16];
		u32 u6_addr32[4];
	} in6_u;
};

struct ns_common {
	u32 inum;
};

struct net {
	struct ns_common ns;
};

typedef struct {
	struct net *net;
} possible_net_t;

struct sock_common {
	u32 skc_daddr;
	u32 skc_rcv_saddr;
	u16 skc_dport;
	u16 skc_num;
	u16 skc_family;
	volatile u8 skc_state;
	possible_net_t skc_net;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
};

struct inode {
	unsigned long i_ino;
};

struct file {
	struct inode *f_inode;
};

struct socket {
	struct file *file;
};

struct kernfs_node {
	u64 id;
};

struct cgroup {
	struct kernfs_node *kn;
};

struct sock_cgroup_data {
	struct cgroup *cgroup;
};

struct sock {
	struct sock_common __sk_common;
	s32 sk_sndbuf;
	s32 sk_rcvbuf;
	u8 sk_userlocks; /* four bits before Linux 6.18 */
	u32 sk_pacing_status;
	unsigned long sk_pacing_rate;
	unsigned long sk_max_pacing_rate;
	struct socket *sk_socket;
	struct sock_cgroup_data sk_cgrp_data;
};

struct tcp_congestion_ops;

struct inet_sock {
	struct sock sk;
};

struct inet_connection_sock {
	struct inet_sock icsk_inet;
	const struct tcp_congestion_ops *icsk_ca_ops;
	u8 icsk_ca_state : 5;
	u8 icsk_ca_setsockopt : 1;
	u64 icsk_ca_priv[13];
};

struct tcp_rack {
	u32 rtt_us;
};

struct minmax_sample {
	u32 t;
	u32 v;
};

struct minmax {
	struct minmax_sample s[3];
};

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	struct tcp_rack rack;
	struct minmax rtt_min;
	u16 total_rto;
	u32 sacked_out;
	u32 lost_out;
	u32 retrans_out;
	u32 snd_cwnd;
	u32 snd_ssthresh;
	u32 snd_una;
	u32 snd_nxt;
	u32 max_packets_out;
	u32 packets_out;
	u32 prior_cwnd;
	u32 prior_ssthresh;
	u32 undo_marker;
	u32 srtt_us;
	u32 delivered;
	u32 delivered_ce;
	u32 data_segs_out;
	u32 total_retrans;
	u32 mss_cache;
	u64 tcp_mstamp;
	u64 bytes_acked;
	u8 is_cwnd_limited : 1;
};

struct ack_sample {
	u32 pkts_acked;
	s32 rtt_us;
	u32 in_flight;
};

struct rate_sample;

/* Registered as a struct_ops: every member that is set below must be here. */
struct tcp_congestion_ops {
	u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, u32 ack, u32 acked);
	void (*set_state)(struct sock *sk, u8 new_state);
	void (*cwnd_event)(struct sock *sk, u32 event);
	void (*pkts_acked)(struct sock *sk, const struct ack_sample *sample);
	u32 (*min_tso_segs)(struct sock *sk);
	u32 (*undo_cwnd)(struct sock *sk);
	char name[16];
	void (*init)(struct sock *sk);
	void (*release)(struct sock *sk);
};

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
	u64 session_id;
	u64 seq_num;
};

struct bpf_iter__tcp {
	struct bpf_iter_meta *meta;
	struct sock_common *sk_common;
	u32 uid;
};

#pragma clang attribute pop

/* The context of a sock_ops program is UAPI (linux/bpf.h): its layout is fixed. */
struct bpf_sock;
struct bpf_sock_ops {
	u32 op;
	u32 args[4];
	u32 family;
	u32 remote_ip4;
	u32 local_ip4;
	u32 remote_ip6[4];
	u32 local_ip6[4];
	u32 remote_port;
	u32 local_port;
	u32 is_fullsock;
	u32 snd_cwnd;
	u32 srtt_us;
	u32 bpf_sock_ops_cb_flags;
	u32 state;
	u32 rtt_min;
	u32 snd_ssthresh;
	u32 rcv_nxt;
	u32 snd_nxt;
	u32 snd_una;
	u32 mss_cache;
	u32 ecn_flags;
	u32 rate_delivered;
	u32 rate_interval_us;
	u32 packets_out;
	u32 retrans_out;
	u32 total_retrans;
	u32 segs_in;
	u32 data_segs_in;
	u32 segs_out;
	u32 data_segs_out;
	u32 lost_out;
	u32 sacked_out;
	u32 sk_txhash;
	u64 bytes_received;
	u64 bytes_acked;
	struct bpf_sock *sk;
};

/* So is that of a packet, to a program of the traffic control. */
struct __sk_buff {
	u32 len;
	u32 pkt_type;
	u32 mark;
	u32 queue_mapping;
	u32 protocol;
	u32 vlan_present;
	u32 vlan_tci;
	u32 vlan_proto;
	u32 priority;
	u32 ingress_ifindex;
	u32 ifindex;
	u32 tc_index;
	u32 cb[5];
	u32 hash;
	u32 tc_classid;
	u32 data;
	u32 data_end;
	u32 napi_id;
	u32 family;
	u32 remote_ip4;
	u32 local_ip4;
	u32 remote_ip6[4];
	u32 local_ip6[4];
	u32 remote_port;
	u32 local_port;
	u32 data_meta;
	u64 flow_keys;
	u64 tstamp;
	u32 wire_len;
	u32 gso_segs;
	struct bpf_sock *sk;
};

/* Numbers of the kernel's interfaces (include/uapi/linux/{bpf,tcp,socket}.h, include/net/tcp.h). */
enum {
	AF_INET = 2,
	AF_INET6 = 10,
	SOL_SOCKET = 1,
	SO_SNDBUF = 7,
	SO_RCVBUF = 8,
	SO_MAX_PACING_RATE = 47,
	SOL_TCP = 6,
	TCP_CONGESTION = 13,
	TCP_ESTABLISHED = 1,
	TCP_CA_CWR = 2,
	SK_PACING_NONE = 0,
	CA_EVENT_TX_START = 0,
	CA_EVENT_LOSS = 3,
	BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB = 4,
	BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB = 5,
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_LPM_TRIE = 11,
	BPF_MAP_TYPE_SK_STORAGE = 24,
	BPF_MAP_TYPE_RINGBUF = 27,
	BPF_F_NO_PREALLOC = 1,
	BPF_SK_STORAGE_GET_F_CREATE = 1,
	BPF_RB_NO_WAKEUP = 1,
	BPF_HDR_START_NET = 1,
	TC_ACT_UNSPEC = -1,
	TC_ACT_SHOT = 2,
	TC_ACT_STOLEN = 4,
};

/* Helpers by their number (include/uapi/linux/bpf.h). */
static void *(*map_lookup)(void *map, const void *key) = (void *)1;
static long (*map_update)(void *map, const void *key, const void *value, u64 flags) = (void *)2;
static u64 (*ktime_get_ns)(void) = (void *)5;
static u32 (*random)(void) = (void *)7;
static u64 (*socket_cookie)(void *ctx) = (void *)46;
static long (*set_option)(void *sk, int level, int name, void *value, int len) = (void *)49;
static struct bpf_sock *(*full_sock)(struct bpf_sock *sk) = (void *)95;
static long (*load_bytes_relative)(const void *skb, u32 at, void *to, u32 size,
				   u32 from) = (void *)68;
static void *(*storage_get)(void *map, void *sk, void *value, u64 flags) = (void *)107;
static long (*storage_delete)(void *map, void *sk) = (void *)108;
static long (*probe_read_kernel)(void *to, u32 size, const void *from) = (void *)113;
static long (*seq_write)(void *seq, const void *data, u32 len) = (void *)127;
static void *(*ringbuf_reserve)(void *ring, u64 size, u64 flags) = (void *)131;
static void (*ringbuf_submit)(void *data, u64 flags) = (void *)132;
static struct tcp_sock *(*to_tcp_sock)(void *sk) = (void *)137;
static long (*loop)(u32 times, void *body, void *with, u64 flags) = (void *)181;

/* The layout of a bit field is the kernel's: where it lies is relocated as well. */
#define BIT_FIELD(s, field)                                                                   \
	({                                                                                    \
		u64 value = 0;                                                                \
		const void *at = (const void *)(s) + __builtin_preserve_field_info((s)->field, 0); \
		switch (__builtin_preserve_field_info((s)->field, 1)) {                       \
		case 1: value = *(const u8 *)at; break;                                       \
		case 2: value = *(const u16 *)at; break;                                      \
		case 4: value = *(const u32 *)at; break;                                      \
		case 8: value = *(const u64 *)at; break;                                      \
		}                                                                             \
		value <<= __builtin_preserve_field_info((s)->field, 4);                       \
		value >>= __builtin_preserve_field_info((s)->field, 5);                       \
		value;                                                                        \
	})
