/* Lines: transmitters whose rate varies. Frames come in by one device, wait, and leave by another when the line's rate, or its trace of
 * opportunities, lets them. What a frame meets is worked out from when it came, as the simulator does, so that a look at the socket
 * may come later; in virtual time a frame then leaves at its time.
 *
 * Where the queue is a queueing discipline, it is on the device before, below a valve: a token bucket that has tokens for one frame, so few
 * more come in time, and which is full whenever its options are set. The line sets them when a frame has left. */
#include "source.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <linux/netlink.h>
#include <linux/virtio_net.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define LARGEST_FRAME 66000
#define SOCKET_BUFFER (256 << 20)
#define NEVER INT64_MAX
#define MILLI 1000000ll
#define KNOCKS 7 /* the priority of what goes around the valve */
#define LOCAL_EXPERIMENTAL 0x88b5

struct frame { int64_t start, end; int length; uint32_t size; char *bytes; };
struct step { int64_t from; uint64_t bps; };

struct valve {
    char *device;
    uint32_t handle, parent;
    struct options options;
    int route, knocker;
    struct sockaddr_ll where;
    int64_t opened; /* what has come by then had waited */
};

struct line {
    int index, namespace, in, out;
    char *from, *to;
    int64_t limit_packets, limit_bytes, overhead; /* limits: of what waits; -1: none */
    /* Either steps of a rate, or times (ms) of opportunities. */
    struct step *steps;
    int64_t *times, period, step_count, time_count, at;
    uint64_t opportunity, left;
    int64_t every, slot; /* opportunities at an even distance, and when the next one is */
    struct valve *valve;
    __int128 free; /* 1/1000 ns: when all that came will have left */
    struct frame *frames; /* in a ring; `begun` counts those that had begun to leave when the last frame came */
    uint64_t room, head, tail, begun;
    int64_t realtime; /* what CLOCK_REALTIME is ahead of CLOCK_MONOTONIC */
    uint64_t waiting_bytes;
    struct line_counts counts;
    char *bytes;
    pthread_mutex_t lock;
};

static struct line **lines;
static int line_count;

static struct frame *frame(struct line *line, uint64_t number) { return &line->frames[number & (line->room - 1)]; }

/* `given`: a file, of lines "NS BPS" or of times in ms; of the latter none where opportunities come at an even distance, `every`. */
void add_line(int index, int namespace, const char *from, const char *to, int64_t limit_packets, int64_t limit_bytes, int64_t overhead,
              int64_t opportunity, int64_t every, const char *given) {
    struct line *line = calloc(1, sizeof *line);
    if (!(lines = realloc(lines, (line_count + 1) * sizeof *lines)) || !line) fail("memory");
    lines[line_count++] = line;
    *line = (struct line){.index = index, .namespace = namespace, .from = strdup(from), .to = strdup(to), .limit_packets = limit_packets,
                          .limit_bytes = limit_bytes, .overhead = overhead, .opportunity = opportunity, .left = opportunity, .every = every, .room = 1024};
    pthread_mutex_init(&line->lock, 0);
    line->frames = calloc(line->room, sizeof *line->frames);
    if (!line->frames || !(line->bytes = malloc(LARGEST_FRAME))) fail("memory");
    FILE *file = fopen(given, "re");
    if (!file) fail(given);
    long long one, other;
    while (opportunity ? fscanf(file, "%lld", &one) == 1 : fscanf(file, "%lld %lld", &one, &other) == 2) {
        if (opportunity) {
            if (line->time_count % 4096 == 0 && !(line->times = realloc(line->times, (line->time_count + 4096) * sizeof *line->times))) fail("memory");
            line->times[line->time_count++] = line->period = one;
        } else {
            if (line->step_count % 4096 == 0 && !(line->steps = realloc(line->steps, (line->step_count + 4096) * sizeof *line->steps))) fail("memory");
            line->steps[line->step_count++] = (struct step){one, other};
        }
    }
    fclose(file);
    if (!(every || (opportunity ? line->time_count && line->period : line->step_count))) fail(given);
}

/* For the line added last; `options`, in hexadecimal digits, fill its bucket. */
void add_valve(const char *device, uint32_t handle, uint32_t parent, const char *options) {
    struct valve *valve = calloc(1, sizeof *valve);
    if (!valve) fail("memory");
    *valve = (struct valve){.device = strdup(device), .handle = handle, .parent = parent, .options = read_options(options)};
    lines[line_count - 1]->valve = valve;
}

/* When the integral of the rate from `start` on is a frame; both in 1/1000 ns of the run. */
static __int128 by_rate(struct line *line, int64_t size, __int128 start) {
    __int128 bits = (__int128)size * 8 * SECOND * 1000;
    for (;; line->at++) {
        int last = line->at + 1 >= line->step_count;
        __int128 until = last ? 0 : (__int128)line->steps[line->at + 1].from * 1000;
        if (!last && until <= start) continue;
        uint64_t bps = line->steps[line->at].bps;
        if (last || (until - start) * bps >= bits) return bps ? start + bits / bps : (__int128)NEVER * 1000;
        bits -= (until - start) * bps;
        start = until;
    }
}

static int64_t opportunity(const struct line *line, int64_t at) {
    return (at / line->time_count * line->period + line->times[at % line->time_count]) * MILLI;
}

static int64_t by_trace(struct line *line, uint64_t size, int64_t now) {
    if (opportunity(line, line->at) < now) {
        int64_t round = now / (line->period * MILLI);
        if (line->at < (round - 1) * line->time_count) line->at = (round - 1) * line->time_count;
        while (opportunity(line, line->at) < now) line->at++;
        line->left = line->opportunity;
    }
    for (; size > line->left; line->at++, line->left = line->opportunity) size -= line->left;
    int64_t end = opportunity(line, line->at);
    line->left -= size;
    if (!line->left) line->at++, line->left = line->opportunity;
    return end;
}

static int64_t by_slots(struct line *line, uint64_t size, int64_t now) {
    if (line->slot < now) line->slot = now + line->every, line->left = line->opportunity;
    int64_t end = line->slot;
    line->left -= size < line->left ? size : line->left;
    if (!line->left) line->slot += line->every, line->left = line->opportunity;
    return end;
}

/* When a frame that begins at `start` has left; both in 1/1000 ns of the run. */
static __int128 end_of(struct line *line, uint32_t size, __int128 start) {
    if (line->every) return (__int128)by_slots(line, size, start / 1000) * 1000;
    if (line->opportunity) return (__int128)by_trace(line, size, start / 1000) * 1000;
    return by_rate(line, size, start);
}

/* A frame came at `now` (ns of the run). What does not fit takes nothing of the line. */
static void take(struct line *line, const char *bytes, int length, uint32_t size, int64_t now) {
    for (; line->begun < line->tail && frame(line, line->begun)->start <= now; line->begun++) line->waiting_bytes -= frame(line, line->begun)->size;
    int64_t at = line->at, slot = line->slot;
    uint64_t left = line->left;
    __int128 came = (__int128)now * 1000, start = line->free > came ? line->free : came, end;
    if (line->valve) end = end_of(line, size, start = now <= line->valve->opened ? line->free : start);
    else if (line->opportunity) start = end = end_of(line, size, came);
    else end = end_of(line, size, start);
    if (start > came && !line->valve) {
        int full = (line->limit_packets >= 0 && (int64_t)(line->tail - line->begun) >= line->limit_packets) ||
                   (line->limit_bytes >= 0 && (int64_t)(line->waiting_bytes + size) > line->limit_bytes);
        if (full) {
            line->at = at;
            line->slot = slot;
            line->left = left;
            line->counts.drops++;
            return;
        }
    }
    if (line->tail - line->head == line->room) {
        struct frame *grown = calloc(2 * line->room, sizeof *grown);
        if (!grown) fail("memory");
        for (uint64_t i = line->head; i < line->tail; i++) grown[i & (2 * line->room - 1)] = *frame(line, i);
        free(line->frames);
        line->frames = grown;
        line->room *= 2;
    }
    struct frame *made = frame(line, line->tail++);
    *made = (struct frame){(int64_t)(start / 1000), (int64_t)((end + 999) / 1000), length, size, malloc(length)};
    if (!made->bytes) fail("memory");
    memcpy(made->bytes, bytes, length);
    line->free = end;
    line->waiting_bytes += size;
}

/* Reads everything that has arrived so far. */
static void drain(struct line *line) {
    char *bytes = line->bytes;
    for (;;) {
        char control[256];
        struct iovec place = {bytes, LARGEST_FRAME};
        struct sockaddr_ll whence;
        struct msghdr message = {&whence, sizeof whence, &place, 1, control, sizeof control, 0};
        int length = recvmsg(line->in, &message, MSG_DONTWAIT);
        if (length < 0 && errno == EINTR) continue;
        if (length < 0 && (errno == EAGAIN || errno == ENETDOWN)) return;
        if (length < 0) fail("a line");
        if (whence.sll_pkttype == PACKET_OUTGOING || whence.sll_protocol == htons(LOCAL_EXPERIMENTAL) || length < (int)(sizeof(struct virtio_net_hdr) + ETH_HLEN)) continue;
        int64_t came = now();
        for (struct cmsghdr *one = CMSG_FIRSTHDR(&message); one; one = CMSG_NXTHDR(&message, one))
            if (one->cmsg_level == SOL_SOCKET && one->cmsg_type == SO_TIMESTAMPNS) {
                struct timespec t;
                memcpy(&t, CMSG_DATA(one), sizeof t);
                came = t.tv_sec * SECOND + t.tv_nsec - line->realtime;
            }
        came -= start_at;
        take(line, bytes, length, length - sizeof(struct virtio_net_hdr) + line->overhead, came < 0 ? 0 : came);
    }
}

/* The next frame may come: if one waits, it has when this returns. */
static void open_valve(struct valve *valve, int told) {
    static const char knock[ETH_ZLEN] = {0};
    change_qdisc(valve->route, valve->where.sll_ifindex, valve->handle, valve->parent, "tbf", &valve->options, told);
    /* When its options change, only a sender asks the discipline again. */
    if (sendto(valve->knocker, knock, sizeof knock, 0, (void *)&valve->where, sizeof valve->where) < 0) fail(valve->device);
    valve->opened = now() - start_at;
}

static void *run(void *argument) {
    struct line *line = argument;
    for (;;) {
        pthread_mutex_lock(&line->lock);
        drain(line);
        int64_t due = NEVER;
        while (line->head < line->tail && (due = frame(line, line->head)->end) <= now() - start_at) {
            struct frame *first = frame(line, line->head);
            /* If the next device has no room, the frame is lost there. */
            if (send(line->out, first->bytes, first->length, 0) < 0 && errno != ENOBUFS && errno != ENETDOWN) fail(line->to);
            line->counts.packets++;
            line->counts.bytes += first->size;
            if (line->begun == line->head) line->begun++, line->waiting_bytes -= first->size;
            free(first->bytes);
            line->head++;
            due = NEVER;
            if (line->valve && line->head == line->tail) {
                open_valve(line->valve, 0);
                drain(line);
            }
        }
        pthread_mutex_unlock(&line->lock);
        if (due < NEVER / 2) sleep_until(start_at + due);
        else poll(&(struct pollfd){line->in, POLLIN, 0}, 1, -1);
    }
}

/* What waits now, and what has been counted. */
int look_at_line(int index, struct line_counts *counts) {
    for (int i = 0; i < line_count; i++) {
        struct line *line = lines[i];
        if (line->index != index || line->valve) continue;
        int64_t at = now() - start_at;
        pthread_mutex_lock(&line->lock);
        drain(line);
        for (; line->begun < line->tail && frame(line, line->begun)->start <= at; line->begun++) line->waiting_bytes -= frame(line, line->begun)->size;
        *counts = line->counts;
        counts->waiting = line->tail - line->begun;
        counts->backlog = line->waiting_bytes;
        pthread_mutex_unlock(&line->lock);
        return 1;
    }
    return 0;
}

static int opened(const char *device, int protocol) {
    struct sockaddr_ll where = {.sll_family = AF_PACKET, .sll_protocol = htons(protocol), .sll_ifindex = if_nametoindex(device)};
    int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0), one = 1, room = SOCKET_BUFFER;
    if (fd < 0 || !where.sll_ifindex || setsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &one, sizeof one)) fail(device);
    setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &one, sizeof one);
    setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room);
    setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof room);
    if (bind(fd, (struct sockaddr *)&where, sizeof where)) fail(device);
    return fd;
}

static void find_valve(struct valve *valve) {
    int priority = KNOCKS;
    valve->where = (struct sockaddr_ll){.sll_family = AF_PACKET, .sll_protocol = htons(LOCAL_EXPERIMENTAL), .sll_halen = ETH_ALEN,
                                        .sll_ifindex = if_nametoindex(valve->device), .sll_addr = {2}};
    valve->route = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    valve->knocker = socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (valve->route < 0 || valve->knocker < 0 || !valve->where.sll_ifindex) fail(valve->device);
    if (setsockopt(valve->knocker, SOL_SOCKET, SO_PRIORITY, &priority, sizeof priority)) fail(valve->device);
    open_valve(valve, 1);
}

void start_lines(void) {
    for (int i = 0; i < line_count; i++) {
        struct line *line = lines[i];
        enter(line->namespace);
        line->out = opened(line->to, 0);
        line->in = opened(line->from, ETH_P_ALL);
        if (line->valve) find_valve(line->valve);
        struct timespec t;
        clock_gettime(CLOCK_REALTIME, &t);
        line->realtime = t.tv_sec * SECOND + t.tv_nsec - now();
        spawn_thread(run, line);
    }
}
