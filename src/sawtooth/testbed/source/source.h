/* What the parts of the traffic source share. Times are nanoseconds; `start` is t = 0 of the run on CLOCK_MONOTONIC. */
#ifndef SOURCE_H
#define SOURCE_H

#define _GNU_SOURCE
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>

#define SECOND 1000000000ll
#define SAMPLED_CONNECTIONS 16
#define ENDLESS (-1)

/* What a sender has counted since its connection began, as tcp_info reports it. */
struct counts {
    uint64_t delivered; /* bytes, in order, at the receiver */
    uint64_t segments, retransmits, timeouts;
};

struct sample { /* one reading of tcp_info */
    int established;
    uint32_t cwnd, ssthresh, srtt_us, min_rtt_us, rto_us, in_flight, delivered, delivered_ce, state;
    int64_t lost;
    uint64_t pacing_bytes, delivery_bytes, received_bytes, acked_bytes, rwnd_limited_us, sndbuf_limited_us, segments, retransmits, timeouts;
};

struct session { /* one connection of a native flow, from its SYN to its close */
    struct flow *flow;
    struct session *next;
    int number, generation, fd, peer; /* peer: the receiver's socket, -1 while there is none */
    uint16_t port;
    int64_t opened, bytes;
    uint64_t received; /* what the receiver had when its socket was closed */
    uint64_t counted;  /* what of it the flow's retired count has; more may arrive after the sender's end */
    uint64_t asked; /* what the receiving application has asked for */
    int references, closed; /* closed: by the sender */
};

struct seen { /* a connection of iperf3, as inet_diag last showed it; its counters outlive the socket */
    struct sample sender;
    uint64_t received;
};

struct arrivals { /* transfers that come by themselves; under the lock */
    FILE *file;
    pthread_cond_t turn;
    int open, workers, idle, come; /* at most so many workers; come: transfers so far */
    int waiting;                   /* one of them waits for the next transfer */
};
struct paced { int64_t bytes, rate, on, off, partial; }; /* so many bytes at a time, at a rate, on and off by turns; partial: a read takes what has arrived */
enum { WRITES, READS };

struct random { uint64_t state[4]; };
struct sizes { char *kind; const int64_t *given; int count; }; /* how many numbers its kind has */
struct asks;

struct flow {
    int index, native, from, to, count;
    char cc[16], used[16];
    struct in_addr source, target;
    uint16_t port, first_port; /* first_port: of iperf3's client */
    int64_t start, duration, bytes, life_low, life_high;
    struct paced paced[2]; /* the application that writes, and the one that reads; without bytes: always */
    struct arrivals *arrivals; /* none: connections from the start */
    struct datagrams *datagrams; /* none: connections */
    struct asks *asks; /* none: the sending host opens the connections, and sends unasked */
    struct session *live;
    struct seen *seen;
    struct counts retired, before;
};

extern int64_t start_at, duration, interval;
extern volatile sig_atomic_t ended; /* before the duration was over */
extern uint64_t seed;
extern struct flow *flows;
extern int flow_count;
extern pthread_mutex_t lock; /* over all flows and their sessions */
extern char *zeros;          /* a gigabyte of them */
ssize_t send_zeros(int fd, int64_t bytes); /* so many, a gigabyte at most */

_Noreturn void fail(const char *what);
int64_t now(void);
void sleep_until(int64_t at);
void enter(int namespace);
void spawn_thread(void *(*body)(void *), void *argument);
FILE *table(const char *name, const char *header);
uint64_t mixed(uint64_t value);

void parse_tcp_info(const void *data, unsigned length, struct sample *into);
int read_tcp_info(int fd, struct sample *into);

/* One connection from its SYN to its close, at `end` or after its `life` at the latest; no life: 0. */
void hold_session(struct flow *flow, int number, int generation, int64_t bytes, int64_t end, int64_t life);
int64_t due(const struct paced *paced, int64_t number); /* a turn's time, after the first */
void add_datagrams(int index, int poisson, const char *prefix);
void start_datagrams(struct flow *flow);
void datagrams_of(struct flow *flow, struct counts *into);
void sample_datagrams(int64_t at, struct flow *flow);
void report_datagrams(struct flow *flow);
void add_arrivals(int index, const char *path, int open);
void start_arrivals(struct flow *flow);
void start_flow(struct flow *flow); /* native: returns when its listener is ready */
void report_flows_end(void);
void counts_of(struct flow *flow, struct counts *into);
void open_flow_tables(void);
void report_flow(struct session *session, const struct sample *last, uint64_t delivered, int64_t end, int completed);

/* The lock is held: a session that is over, as its sender saw it; one that is no longer sampled; one holder less. */
void end_session(struct session *session, int completed);
void forget_session(struct session *session);
void release_session(struct session *session);

void begin_random(struct random *random, uint64_t purpose, uint64_t index);
int64_t draw_size(const struct sizes *sizes, struct random *random);
int64_t draw_wait(int64_t ns, int exponential, struct random *random);

struct asks *new_asks(char *kind, struct sizes sizes, int64_t think, int exponential);
void read_pages(struct asks *asks, int64_t objects, int connections, int keep);
void read_video(struct asks *asks, int64_t segment, int64_t buffer, int by_throughput, int64_t *rates, int rate_count);
void add_asks(int flow, struct asks *asks);
void start_readers(struct flow *flow);

struct line_counts { uint64_t waiting, backlog, packets, bytes, drops; };

struct options { int length; unsigned char *bytes; }; /* of a queueing discipline */
struct options read_options(const char *digits); /* hexadecimal */
void change_qdisc(int fd, unsigned ifindex, uint32_t handle, uint32_t parent, const char *name, const struct options *given, int told);
void add_change(int64_t at, int namespace, const char *device, uint32_t handle, uint32_t parent, const char *options);
void start_changes(void);
void add_line(int index, int namespace, const char *from, const char *to, int64_t limit_packets, int64_t limit_bytes, int64_t overhead,
              int64_t opportunity, int64_t every, const char *given);
void add_valve(const char *device, uint32_t handle, uint32_t parent, const char *options);
void start_lines(void);
int look_at_line(int index, struct line_counts *counts); /* 0: there is none for that transmitter */

void add_queue(int index, int namespace, const char *device, uint32_t handle, int on_wire);
void add_link(int index, int namespace, const char *device, uint32_t handle, uint32_t child, int polices);
void add_counter(int index, int namespace, const char *name);
void add_host(int namespace);
void add_probe(char *words);
void start_probes(void);
void sample_all(void);     /* returns at the end of the run */
void flush_probes(void);

void diag_open(void);
void diag_sample(void);

void watch_connections(int namespace); /* all of TCP there, whoever's */
void open_connections(void);
void sample_connections(int64_t at);

#endif
