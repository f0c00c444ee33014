/* A connection as a congestion control of Linux 6.12 sees it. The structures have the fields that such modules use, and no
 * others; they are filled in before each hook. What the simulator takes back after it is marked "answer". */
#ifndef SAWTOOTH_TCP_H
#define SAWTOOTH_TCP_H

#include <sawtooth/minmax.h>
#include <sawtooth/module.h>
#include <sawtooth/time.h>

#define TCP_CA_NAME_MAX 16
#define TCP_INIT_CWND 10
#define TCP_INFINITE_SSTHRESH 0x7fffffff
#define TCP_TS_HZ 1000
#define TCP_RTO_MIN ((unsigned)(HZ / 5))
#define TCP_RTO_MAX ((unsigned)(120 * HZ))
#define MAX_TCP_HEADER 256
#define GSO_LEGACY_MAX_SIZE 65536u
#define GSO_MAX_SIZE GSO_LEGACY_MAX_SIZE

enum tcp_ca_state { TCP_CA_Open, TCP_CA_Disorder, TCP_CA_CWR, TCP_CA_Recovery, TCP_CA_Loss };
enum {
	TCPF_CA_Open = 1 << TCP_CA_Open,
	TCPF_CA_Disorder = 1 << TCP_CA_Disorder,
	TCPF_CA_CWR = 1 << TCP_CA_CWR,
	TCPF_CA_Recovery = 1 << TCP_CA_Recovery,
	TCPF_CA_Loss = 1 << TCP_CA_Loss,
};
enum { TCP_ESTABLISHED = 1, TCP_SYN_SENT, TCP_SYN_RECV, TCP_CLOSE = 7, TCP_LISTEN = 10 };
enum tcp_ca_event {
	CA_EVENT_TX_START,
	CA_EVENT_CWND_RESTART,
	CA_EVENT_COMPLETE_CWR,
	CA_EVENT_LOSS,
	CA_EVENT_ECN_NO_CE,
	CA_EVENT_ECN_IS_CE,
};
enum tcp_ca_ack_event_flags { CA_ACK_SLOWPATH = 1, CA_ACK_WIN_UPDATE = 2, CA_ACK_ECE = 4 };
enum sk_pacing { SK_PACING_NONE, SK_PACING_NEEDED, SK_PACING_FQ };
enum { TCP_CONG_NON_RESTRICTED = 1, TCP_CONG_NEEDS_ECN = 2 };
enum { TCP_ECN_OK = 1, TCP_ECN_QUEUE_CWR = 2, TCP_ECN_DEMAND_CWR = 4, TCP_ECN_SEEN = 8 };
enum { ICSK_ACK_SCHED = 1, ICSK_ACK_TIMER = 2, ICSK_ACK_PUSHED = 4, ICSK_ACK_NOW = 16 };

struct tcp_congestion_ops;

struct net {
	struct {
		u8 sysctl_tcp_plb_enabled;
		u8 sysctl_tcp_min_tso_segs;
		u8 sysctl_tcp_tso_rtt_log;
	} ipv4;
};

struct sock {
	unsigned long sk_pacing_rate;     /* bytes a second, ~0UL: not limited; answer */
	unsigned long sk_max_pacing_rate;
	u32 sk_pacing_status;             /* answer */
	u32 sk_gso_max_size;
	u8 sk_pacing_shift;
	u8 sk_state;
};

struct inet_sock {
	struct sock sk;
};

#define ICSK_CA_PRIV_SIZE 104

struct inet_connection_sock {
	struct inet_sock icsk_inet;
	const struct tcp_congestion_ops *icsk_ca_ops; /* the module may choose another of its own */
	u64 icsk_ca_priv[ICSK_CA_PRIV_SIZE / sizeof(u64)];
	u64 sawtooth_guard;
	struct {
		u8 pending;
	} icsk_ack;
	u8 icsk_ca_state;
	u8 icsk_ca_initialized;
};

struct tcp_options_received {
	u32 rcv_tsval; /* of the last acknowledgement: the receiver's clock in ms, and the echo of this host's */
	u32 rcv_tsecr;
};

/* Counts are in segments, sequence numbers in bytes. */
struct tcp_sock {
	struct inet_connection_sock inet_conn;
	u64 tcp_mstamp;        /* now, in microseconds */
	u64 tcp_clock_cache;   /* now, in nanoseconds */
	u64 tcp_wstamp_ns;     /* when the pacer lets the next packet go */
	u64 delivered_mstamp;
	u64 bytes_acked;
	u32 snd_una;
	u32 snd_nxt;
	u32 rcv_nxt;
	u32 mss_cache;
	u32 advmss;
	u32 srtt_us;           /* times eight */
	struct minmax rtt_min; /* its first value: see tcp_min_rtt */
	u32 snd_cwnd;          /* answer */
	u32 snd_cwnd_cnt;      /* answer */
	u32 snd_cwnd_clamp;    /* answer */
	u32 snd_ssthresh;      /* answer */
	u32 prior_cwnd;
	u32 prior_ssthresh;
	u32 app_limited;       /* answer */
	u32 packets_out;
	u32 sacked_out;
	u32 lost_out;
	u32 retrans_out;
	u32 max_packets_out;
	u32 delivered;
	u32 delivered_ce;
	u32 lost;
	u32 lsndtime;
	struct tcp_options_received rx_opt;
	u8 is_cwnd_limited;
	u8 ecn_flags;
	/* Between the simulator and these headers. */
	u8 sawtooth_entered_cwr;
	u32 sawtooth_timestamp;
	u64 sawtooth_random;
	u64 sawtooth_guard;
};

struct ack_sample {
	u32 pkts_acked;
	s32 rtt_us; /* -1: none */
	u32 in_flight; /* bytes */
};

struct rate_sample {
	u32 prior_delivered;
	s32 delivered;   /* -1: no sample */
	long interval_us; /* -1: no sample */
	long rtt_us;     /* -1: none */
	int losses;
	u32 acked_sacked;
	u32 prior_in_flight;
	bool is_app_limited;
	bool is_retrans;
	bool is_ack_delayed;
};

struct tcpvegas_info {
	u32 tcpv_enabled, tcpv_rttcnt, tcpv_rtt, tcpv_minrtt;
};
struct tcp_dctcp_info {
	u16 dctcp_enabled, dctcp_ce_state;
	u32 dctcp_alpha, dctcp_ab_ecn, dctcp_ab_tot;
};
struct tcp_bbr_info {
	u32 bbr_bw_lo, bbr_bw_hi, bbr_min_rtt, bbr_pacing_gain, bbr_cwnd_gain;
};
union tcp_cc_info {
	struct tcpvegas_info vegas;
	struct tcp_dctcp_info dctcp;
	struct tcp_bbr_info bbr;
};
enum { INET_DIAG_VEGASINFO = 3, INET_DIAG_DCTCPINFO = 9, INET_DIAG_BBRINFO = 16 };

struct tcp_congestion_ops {
	u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, u32 ack, u32 acked);
	void (*set_state)(struct sock *sk, u8 new_state);
	void (*cwnd_event)(struct sock *sk, enum tcp_ca_event event);
	void (*in_ack_event)(struct sock *sk, u32 flags);
	void (*pkts_acked)(struct sock *sk, const struct ack_sample *sample);
	u32 (*min_tso_segs)(struct sock *sk);
	void (*cong_control)(struct sock *sk, u32 ack, int flag, const struct rate_sample *rs);
	u32 (*undo_cwnd)(struct sock *sk);
	u32 (*sndbuf_expand)(struct sock *sk);
	size_t (*get_info)(struct sock *sk, u32 ext, int *attr, union tcp_cc_info *info); /* never called */
	void (*init)(struct sock *sk);
	void (*release)(struct sock *sk);
	char name[TCP_CA_NAME_MAX];
	struct module *owner;
	u32 key;
	u32 flags;
};

int tcp_register_congestion_control(struct tcp_congestion_ops *ops);
void tcp_unregister_congestion_control(struct tcp_congestion_ops *ops);

static inline struct tcp_sock *sawtooth_tcp(const struct sock *sk) { return (struct tcp_sock *)(uintptr_t)sk; }
static inline struct inet_connection_sock *sawtooth_icsk(const struct sock *sk) { return &sawtooth_tcp(sk)->inet_conn; }
#define tcp_sk(sk) sawtooth_tcp(sk)
#define inet_csk(sk) sawtooth_icsk(sk)
#define inet_sk(sk) (&sawtooth_icsk(sk)->icsk_inet)
static inline void *inet_csk_ca(const struct sock *sk) { return sawtooth_icsk(sk)->icsk_ca_priv; }
struct net *sock_net(const struct sock *sk);

/* Order of 32-bit numbers that wrap. */
static inline bool before(u32 a, u32 b) { return (s32)(a - b) < 0; }
#define after(a, b) before(b, a)
/* Whether `low` is not after `seq`, and `seq` not after `high`. */
static inline bool between(u32 seq, u32 low, u32 high) { return high - low >= seq - low; }

#define tcp_jiffies32 ((u32)jiffies)
#define tcp_clock_ns() sawtooth_now_ns()
#define tcp_clock_us() (sawtooth_now_ns() / NSEC_PER_USEC)
#define tcp_clock_ms() (sawtooth_now_ns() / NSEC_PER_MSEC)
static inline u32 tcp_time_stamp_ts(const struct tcp_sock *tp) { return tp->sawtooth_timestamp; }
#define tcp_time_stamp(tp) tcp_time_stamp_ts(tp)
#define tcp_time_stamp_ms(tp) tcp_time_stamp_ts(tp)
/* 0 where `earlier` is later. */
static inline u32 tcp_stamp_us_delta(u64 later, u64 earlier) { return later > earlier ? (u32)(later - earlier) : 0; }
static inline u32 tcp_stamp32_us_delta(u32 later, u32 earlier) { return before(earlier, later) ? later - earlier : 0; }
static inline u32 tcp_min_rtt(const struct tcp_sock *tp) { return minmax_get(&tp->rtt_min); }

static inline u32 tcp_snd_cwnd(const struct tcp_sock *tp) { return tp->snd_cwnd; }
static inline void tcp_snd_cwnd_set(struct tcp_sock *tp, u32 segments)
{
	WARN_ON_ONCE((s32)segments <= 0);
	tp->snd_cwnd = segments;
}
static inline bool tcp_in_slow_start(const struct tcp_sock *tp) { return tp->snd_cwnd < tp->snd_ssthresh; }
static inline bool tcp_in_initial_slowstart(const struct tcp_sock *tp) { return tp->snd_ssthresh >= TCP_INFINITE_SSTHRESH; }
static inline bool tcp_in_cwnd_reduction(const struct sock *sk)
{
	u8 state = inet_csk(sk)->icsk_ca_state;

	return state == TCP_CA_CWR || state == TCP_CA_Recovery;
}
static inline unsigned int tcp_left_out(const struct tcp_sock *tp) { return tp->sacked_out + tp->lost_out; }
static inline unsigned int tcp_packets_in_flight(const struct tcp_sock *tp)
{
	return tp->packets_out + tp->retrans_out - tcp_left_out(tp);
}
static inline bool tcp_is_cwnd_limited(const struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	return tp->is_cwnd_limited || (tcp_in_slow_start(tp) && tp->snd_cwnd < 2 * tp->max_packets_out);
}
static inline u32 tcp_current_ssthresh(const struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	return tcp_in_cwnd_reduction(sk) ? tp->snd_ssthresh : max(tp->snd_ssthresh, (tp->snd_cwnd >> 1) + (tp->snd_cwnd >> 2));
}

u32 tcp_slow_start(struct tcp_sock *tp, u32 acked);
void tcp_cong_avoid_ai(struct tcp_sock *tp, u32 w, u32 acked);
u32 tcp_reno_ssthresh(struct sock *sk);
void tcp_reno_cong_avoid(struct sock *sk, u32 ack, u32 acked);
u32 tcp_reno_undo_cwnd(struct sock *sk);
u32 tcp_tso_autosize(const struct sock *sk, unsigned int mss, int min_tso_segs);
void tcp_enter_cwr(struct sock *sk);

/* The simulator sets the ECN field of packets by what was agreed on, and has the receiving end's part of DCTCP. So none of these has anything to do. */
static inline void INET_ECN_xmit(struct sock *sk) { (void)sk; }
static inline void INET_ECN_dontxmit(struct sock *sk) { (void)sk; }
static inline bool tcp_ca_needs_ecn(const struct sock *sk) { return inet_csk(sk)->icsk_ca_ops->flags & TCP_CONG_NEEDS_ECN; }
static inline void __tcp_send_ack(struct sock *sk, u32 rcv_nxt, u16 flags) { (void)sk, (void)rcv_nxt, (void)flags; }
static inline int tcp_call_bpf(struct sock *sk, int op, u32 count, u32 *args) { return (void)sk, (void)op, (void)count, (void)args, -EPERM; }

/* Protective load balancing is off, as it is unless its sysctl turns it on. */
#define TCP_PLB_SCALE 8
struct tcp_plb_state {
	u8 consec_cong_rounds;
	u32 pause_until;
};
static inline void tcp_plb_init(const struct sock *sk, struct tcp_plb_state *plb)
{
	(void)sk;
	*plb = (struct tcp_plb_state){ 0 };
}
static inline void tcp_plb_update_state(const struct sock *sk, struct tcp_plb_state *plb, const int ratio) { (void)sk, (void)plb, (void)ratio; }
static inline void tcp_plb_check_rehash(struct sock *sk, struct tcp_plb_state *plb) { (void)sk, (void)plb; }
static inline void tcp_plb_update_state_upon_rto(struct sock *sk, struct tcp_plb_state *plb) { (void)sk, (void)plb; }

/* Counters of the system: nothing reads them. */
#define NET_INC_STATS(net, field) ((void)(net))
#define NET_ADD_STATS(net, field, amount) ((void)(net), (void)(amount))

#endif
