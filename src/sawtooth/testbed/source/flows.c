/* Native flows: bulk senders that never starve and receivers that never sleep on data, with few system calls.
 *
 * A sender is a thread in a blocking send of a gigabyte; a receiver is a thread in one recv that waits for a gigabyte and
 * discards it (MSG_TRUNC), so that the kernel hands data over at once, as to iperf3, without entering this program. */
#include "source.h"

#include <errno.h>
#include <linux/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define AT_ONCE (1 << 30)
#define PIECE (2 << 20)
/* In struct tcp_info, beyond what the headers of older systems declare; kernel 6.7 and newer fill it in. */
#define TOTAL_RTO_OFFSET 240

/* The kernel's TCP states that have no congestion window worth a sample (include/net/tcp_states.h). */
enum { SYN_SENT = 2, CLOSED = 7, LISTENING = 10 };

char *zeros;
static FILE *ends, *controls;

struct start { struct flow *flow; int number; };

void parse_tcp_info(const void *data, unsigned length, struct sample *into) {
    struct tcp_info info = {0};
    memcpy(&info, data, length < sizeof info ? length : sizeof info);
    uint16_t timeouts = 0;
    if (length >= TOTAL_RTO_OFFSET + 2) memcpy(&timeouts, (const char *)data + TOTAL_RTO_OFFSET, 2);
    *into = (struct sample){
        .established = info.tcpi_state != SYN_SENT && info.tcpi_state != CLOSED && info.tcpi_state != LISTENING,
        .cwnd = info.tcpi_snd_cwnd, .ssthresh = info.tcpi_snd_ssthresh, .srtt_us = info.tcpi_rtt, .min_rtt_us = info.tcpi_min_rtt,
        .rto_us = info.tcpi_rto, .in_flight = info.tcpi_unacked - info.tcpi_sacked - info.tcpi_lost + info.tcpi_retrans,
        .delivered = info.tcpi_delivered, .delivered_ce = info.tcpi_delivered_ce, .state = info.tcpi_ca_state, .lost = info.tcpi_lost,
        .pacing_bytes = info.tcpi_pacing_rate, .delivery_bytes = info.tcpi_delivery_rate, .received_bytes = info.tcpi_bytes_received, .acked_bytes = info.tcpi_bytes_acked,
        .rwnd_limited_us = info.tcpi_rwnd_limited, .sndbuf_limited_us = info.tcpi_sndbuf_limited,
        .segments = info.tcpi_data_segs_out, .retransmits = info.tcpi_total_retrans, .timeouts = timeouts};
}

int read_tcp_info(int fd, struct sample *into) {
    char buffer[1024];
    socklen_t length = sizeof buffer;
    if (fd < 0 || getsockopt(fd, IPPROTO_TCP, TCP_INFO, buffer, &length)) {
        *into = (struct sample){0};
        return -1;
    }
    parse_tcp_info(buffer, length, into);
    return 0;
}

void open_flow_tables(void) {
    ends = table("flows", "flow,connection,generation,start_ns,end_ns,asked_bytes,delivered_bytes,segments_out,retransmits,timeouts,completed");
    controls = table("controls", "flow,cc");
    zeros = mmap(0, AT_ONCE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (zeros == MAP_FAILED) fail("mmap");
}

void report_flow(struct session *s, const struct sample *last, uint64_t delivered, int64_t end, int completed) {
    fprintf(ends, "%d,%d,%d,%lld,%lld,%lld,%llu,%llu,%llu,%llu,%d\n", s->flow->index, s->number, s->generation,
            (long long)(s->opened - start_at), (long long)(end - start_at),
            (long long)(s->bytes == ENDLESS ? 0 : s->bytes), (unsigned long long)delivered,
            (unsigned long long)last->segments, (unsigned long long)last->retransmits, (unsigned long long)last->timeouts, completed);
}

/* The lock is held. What the receiver has of a session; a FIN counts as a byte there. */
static uint64_t received_of(struct session *s) {
    struct sample receiver;
    uint64_t bytes = s->received;
    if (s->peer >= 0 && !read_tcp_info(s->peer, &receiver)) bytes = receiver.received_bytes;
    return s->bytes != ENDLESS && bytes > (uint64_t)s->bytes ? (uint64_t)s->bytes : bytes;
}

/* The bytes of it that the application has read. */
static uint64_t delivered(struct session *s) {
    uint64_t bytes = received_of(s);
    return bytes < s->asked ? bytes : s->asked;
}

/* When the application's turn of that number is due, after its begin. */
int64_t due(const struct paced *paced, int64_t number) {
    __int128 bits = (__int128)paced->bytes * 8 * 1000000000;
    if (!paced->on) return (number * bits + paced->rate - 1) / paced->rate;
    /* Turns at 0 and on, before the time is over. */
    int64_t each = (__int128)(paced->on - 1) * paced->rate / bits + 1;
    return number / each * (paced->on + paced->off) + (number % each * bits + paced->rate - 1) / paced->rate;
}

/* Reads what has come, up to this many bytes, and sleeps after each read. Returns at the end. */
static void read_some(struct session *s, int fd) {
    const struct paced *reads = &s->flow->paced[READS];
    for (ssize_t come = 0;;) {
        pthread_mutex_lock(&lock);
        s->asked += reads->bytes;
        pthread_mutex_unlock(&lock);
        if ((come = recv(fd, zeros, reads->bytes, MSG_TRUNC)) <= 0) return;
        pthread_mutex_lock(&lock);
        s->asked -= reads->bytes - come;
        pthread_mutex_unlock(&lock);
        sleep_until(now() + due(reads, 1));
    }
}

/* Reads this many bytes at their times, and sleeps until they have arrived. Returns at the end. */
static void read_paced(struct session *s, int fd) {
    const struct paced *reads = &s->flow->paced[READS];
    int64_t began = now();
    for (int64_t number = 0;; number++) {
        sleep_until(began + due(reads, number));
        pthread_mutex_lock(&lock);
        s->asked = (number + 1) * reads->bytes;
        pthread_mutex_unlock(&lock);
        for (int64_t left = reads->bytes; left;) {
            ssize_t come = recv(fd, zeros, left, MSG_WAITALL | MSG_TRUNC);
            if (come <= 0) return;
            left -= come;
        }
    }
}

void release_session(struct session *s) {
    if (--s->references == 0) free(s);
}

void forget_session(struct session *s) {
    for (struct session **at = &s->flow->live; *at; at = &(*at)->next)
        if (*at == s) { *at = s->next; break; }
}

void end_session(struct session *s, int completed) {
    struct flow *flow = s->flow;
    struct sample sender;
    read_tcp_info(s->fd, &sender);
    uint64_t got = delivered(s);
    if (now() <= start_at + duration) report_flow(s, &sender, received_of(s), now(), completed);
    flow->retired.delivered += s->counted = got;
    s->closed = 1;
    flow->retired.segments += sender.segments;
    flow->retired.retransmits += sender.retransmits;
    flow->retired.timeouts += sender.timeouts;
    forget_session(s);
    release_session(s);
}

struct arrival { struct session *session; int fd; };

static void *receive(void *argument) {
    struct arrival arrived = *(struct arrival *)argument;
    free(argument);
    const struct paced *reads = arrived.session ? &arrived.session->flow->paced[READS] : NULL;
    if (reads && reads->bytes) reads->partial ? read_some(arrived.session, arrived.fd) : read_paced(arrived.session, arrived.fd);
    else
        while (recv(arrived.fd, zeros, AT_ONCE, MSG_WAITALL | MSG_TRUNC) > 0)
            ;
    struct sample last;
    pthread_mutex_lock(&lock);
    if (arrived.session) {
        if (!read_tcp_info(arrived.fd, &last)) arrived.session->received = last.received_bytes;
        arrived.session->peer = -1;
        if (arrived.session->closed) arrived.session->flow->retired.delivered += delivered(arrived.session) - arrived.session->counted;
        release_session(arrived.session);
    }
    pthread_mutex_unlock(&lock);
    close(arrived.fd);
    return 0;
}

struct listening { struct flow *flow; int fd; };

static void *listen_for(void *argument) {
    struct listening listening = *(struct listening *)argument;
    free(argument);
    for (;;) {
        struct sockaddr_in from;
        socklen_t length = sizeof from;
        int fd = accept4(listening.fd, (void *)&from, &length, SOCK_CLOEXEC);
        if (fd < 0) {
            if (errno == ECONNABORTED || errno == EINTR) continue;
            fail("accept");
        }
        struct arrival *arrived = malloc(sizeof *arrived);
        *arrived = (struct arrival){0, fd};
        pthread_mutex_lock(&lock);
        for (struct session *s = listening.flow->live; s; s = s->next)
            if (s->port == ntohs(from.sin_port) && s->peer < 0) {
                s->peer = fd;
                s->references++;
                arrived->session = s;
            }
        pthread_mutex_unlock(&lock);
        spawn_thread(receive, arrived);
    }
}

/* Whether connections of a control that lives on marks are to have it at both ends: this host agrees on ECN. */
static int agrees_on_ecn(void) {
    int set = 0;
    FILE *sysctl = fopen("/proc/sys/net/ipv4/tcp_ecn", "re");
    if (!sysctl || fscanf(sysctl, "%d", &set) != 1) set = 0;
    if (sysctl) fclose(sysctl);
    return set != 0;
}

static void *open_listener(void *argument) {
    struct flow *flow = argument;
    enter(flow->to);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(flow->port), .sin_addr = flow->target};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) fail("listen");
    if ((!strcmp(flow->cc, "dctcp") || !strcmp(flow->cc, "prague")) && agrees_on_ecn() && setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, flow->cc, strlen(flow->cc))) fail(flow->cc);
    if (bind(fd, (void *)&at, sizeof at) || listen(fd, 65535)) fail("listen");
    struct listening *listening = malloc(sizeof *listening);
    *listening = (struct listening){flow, fd};
    spawn_thread(listen_for, listening);
    return 0;
}

/* A timeout wakes the sender at the end of its time. False when that is over. */
static int allow_until(int fd, int64_t end) {
    if (end == INT64_MAX) return 1;
    int64_t left = (end - now()) / 1000;
    if (left <= 0) return 0;
    struct timeval timeout = {left / 1000000, left % 1000000};
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout);
    return 1;
}

/* In one call, as of an application that always has data. Linux asks for room in the send buffer for each new sk_buff only:
 * a call that fills the same one again while its head leaves exceeds the send buffer. At a call's end what is left
 * leaves as a short segment, and the next call waits for room. The same zeros over and over take little memory. */
ssize_t send_zeros(int fd, int64_t bytes) {
    struct iovec pieces[AT_ONCE / PIECE];
    size_t count = 0;
    for (int64_t left = bytes < AT_ONCE ? bytes : AT_ONCE; left > 0; left -= PIECE)
        pieces[count++] = (struct iovec){zeros, left < PIECE ? left : PIECE};
    return sendmsg(fd, &(struct msghdr){.msg_iov = pieces, .msg_iovlen = count}, MSG_NOSIGNAL);
}

/* Writes this many bytes at their times, and catches up if late. Returns at the end. */
static void write_paced(struct session *s, int64_t end) {
    const struct paced *writes = &s->flow->paced[WRITES];
    int64_t began = now();
    for (int64_t number = 0;; number++) {
        int64_t at = began + due(writes, number);
        sleep_until(at < end ? at : end);
        for (int64_t left = writes->bytes; left;) {
            if (!allow_until(s->fd, end)) return;
            ssize_t sent = send_zeros(s->fd, left);
            if (sent < 0 && errno != EAGAIN && errno != EINTR) return;
            if (sent > 0) left -= sent;
        }
    }
}

/* True when all bytes were sent and the receiver has closed in its turn. */
static int transfer(struct session *s, int64_t end) {
    struct flow *flow = s->flow;
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(flow->port), .sin_addr = flow->target};
    for (;;) {
        if (!allow_until(s->fd, end)) return 0;
        if (!connect(s->fd, (void *)&to, sizeof to)) break;
        if (errno == EISCONN) break;
        if (errno != EINPROGRESS && errno != EALREADY && errno != ETIMEDOUT && errno != EINTR) fail("connect");
        if (errno == ETIMEDOUT) return 0;
    }
    if (!*flow->used) {
        socklen_t length = sizeof flow->used;
        getsockopt(s->fd, IPPROTO_TCP, TCP_CONGESTION, flow->used, &length);
    }
    if (flow->paced[WRITES].bytes) {
        write_paced(s, end);
        return 0;
    }
    for (int64_t left = s->bytes;;) {
        if (!allow_until(s->fd, end)) return 0;
        ssize_t sent = send_zeros(s->fd, left == ENDLESS ? AT_ONCE : left);
        if (sent < 0 && errno != EAGAIN && errno != EINTR) return 0;
        if (left == ENDLESS || sent <= 0) continue;
        if (!(left -= sent)) break;
    }
    shutdown(s->fd, SHUT_WR);
    char rest;
    return recv(s->fd, &rest, 1, 0) == 0;
}

void hold_session(struct flow *flow, int number, int generation, int64_t bytes, int64_t end, int64_t life) {
    struct session *s = calloc(1, sizeof *s);
    *s = (struct session){.flow = flow, .number = number, .generation = generation, .bytes = bytes, .peer = -1, .references = 1};
    s->asked = flow->paced[READS].bytes ? 0 : UINT64_MAX;
    struct sockaddr_in from = {.sin_family = AF_INET, .sin_addr = flow->source};
    socklen_t length = sizeof from;
    s->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (s->fd < 0 || setsockopt(s->fd, IPPROTO_TCP, TCP_CONGESTION, flow->cc, strlen(flow->cc))) fail(flow->cc);
    if (bind(s->fd, (void *)&from, sizeof from) || getsockname(s->fd, (void *)&from, &length)) fail("bind");
    s->port = ntohs(from.sin_port);
    s->opened = now();
    if (life && s->opened + life < end) end = s->opened + life;
    pthread_mutex_lock(&lock);
    s->next = flow->live;
    flow->live = s;
    pthread_mutex_unlock(&lock);
    int completed = transfer(s, end);
    int fd = s->fd;
    pthread_mutex_lock(&lock);
    end_session(s, completed);
    pthread_mutex_unlock(&lock);
    /* Closed by reset: what was still on its way is given up, as the simulator does. */
    struct linger reset = {1, 0};
    if (!completed) setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    close(fd);
}

static void *send_flow(void *argument) {
    struct start begin = *(struct start *)argument;
    free(argument);
    struct flow *flow = begin.flow;
    enter(flow->from);
    uint64_t random = mixed(seed ^ mixed((uint64_t)flow->index << 32 | begin.number));
    sleep_until(start_at + flow->start);
    int64_t last = flow->duration == ENDLESS ? INT64_MAX : start_at + flow->start + flow->duration;
    for (int generation = 0;; generation++) {
        int64_t life = 0;
        if (flow->life_high > 0) {
            random = mixed(random);
            life = flow->life_low + (int64_t)((flow->life_high - flow->life_low) * ((random >> 11) / (double)(1ull << 53)));
        }
        hold_session(flow, begin.number, generation, flow->bytes, last, life);
        if (flow->life_high <= 0 || now() >= last || now() >= start_at + duration) return 0;
    }
}

void start_flow(struct flow *flow) {
    if (!flow->native) return;
    if (flow->datagrams) {
        start_datagrams(flow);
        return;
    }
    if (flow->asks) return start_readers(flow);
    pthread_t thread;
    if ((errno = pthread_create(&thread, 0, open_listener, flow)) || (errno = pthread_join(thread, 0))) fail("pthread_create");
    if (flow->arrivals) start_arrivals(flow);
    for (int i = 0; i < flow->count && !flow->arrivals; i++) {
        struct start *begin = malloc(sizeof *begin);
        *begin = (struct start){flow, i};
        spawn_thread(send_flow, begin);
    }
}

void counts_of(struct flow *flow, struct counts *into) { /* the lock is held */
    *into = flow->retired;
    if (flow->datagrams) datagrams_of(flow, into);
    for (struct session *s = flow->live; s; s = s->next) {
        struct sample sender;
        read_tcp_info(s->fd, &sender);
        into->delivered += delivered(s);
        into->segments += sender.segments;
        into->retransmits += sender.retransmits;
        into->timeouts += sender.timeouts;
    }
    for (int i = 0; i < flow->count && flow->seen; i++) {
        into->delivered += flow->seen[i].received;
        into->segments += flow->seen[i].sender.segments;
        into->retransmits += flow->seen[i].sender.retransmits;
        into->timeouts += flow->seen[i].sender.timeouts;
    }
}

void report_flows_end(void) {
    pthread_mutex_lock(&lock);
    for (int i = 0; i < flow_count; i++) {
        for (struct session *s = flows[i].live; s; s = s->next) {
            struct sample sender;
            read_tcp_info(s->fd, &sender);
            report_flow(s, &sender, received_of(s), start_at + duration, 0);
        }
        for (int number = 0; number < flows[i].count && flows[i].seen; number++) { /* as last seen: iperf3 tells no times */
            struct session s = {.flow = &flows[i], .number = number, .opened = start_at + flows[i].start, .bytes = flows[i].bytes};
            int64_t end = flows[i].duration == ENDLESS ? duration : flows[i].start + flows[i].duration;
            uint64_t bytes = flows[i].seen[number].received;
            int completed = flows[i].bytes != ENDLESS && bytes >= (uint64_t)flows[i].bytes;
            report_flow(&s, &flows[i].seen[number].sender, bytes, start_at + (end < duration ? end : duration), completed);
        }
        if (flows[i].datagrams) report_datagrams(&flows[i]);
        if (flows[i].native) fprintf(controls, "%d,%s\n", i, flows[i].used);
    }
    fflush(ends);
    fflush(controls);
    /* Never unlocked: nothing may be written after this. */
}
