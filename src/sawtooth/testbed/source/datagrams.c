/* Datagrams that are sent at their times, whatever becomes of them, and counted where they are received (RFC 3550). */
#include "source.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define ROOM (64 << 20) /* of sockets: packets wait only where the scenario says */

struct content { uint64_t what; int64_t sent; }; /* number of the datagram << 16 | number of the stream */

struct stream {
    struct flow *flow;
    int number, heard;
    FILE *times; /* none: by the rate */
    int64_t begins, transit;
    uint64_t sent, received, expected;
    double jitter;
};

struct datagrams {
    int64_t size, *delays;
    int64_t count, room; /* of delays in the interval */
    uint64_t out_of_order, sent_before, expected_before;
    struct stream *streams;
};

static FILE *rows;

void add_datagrams(int index, int poisson, const char *prefix) {
    if (index < 0 || index >= flow_count) fail("datagrams");
    struct flow *flow = &flows[index];
    struct datagrams *own = flow->datagrams = calloc(1, sizeof *own);
    if (!own || !(own->streams = calloc(flow->count, sizeof *own->streams))) fail("memory");
    own->size = flow->paced[WRITES].bytes;
    const struct paced *writes = &flow->paced[WRITES];
    __int128 every = ((__int128)writes->bytes * 8 * SECOND + writes->rate / 2) / writes->rate;
    for (int i = 0; i < flow->count; i++) {
        own->streams[i] = (struct stream){.number = i, .begins = flow->start + (int64_t)(every * i / flow->count)};
        if (!poisson) continue;
        char path[4200];
        snprintf(path, sizeof path, "%s-%d", prefix, i);
        if (!(own->streams[i].times = fopen(path, "re"))) fail(path);
    }
    if (!rows)
        rows = table("datagrams", "t_ns,flow,sent,received,lost,out_of_order,delay_sum_ns,delay_p50_ns,delay_p95_ns,delay_p99_ns,delay_max_ns,jitter_ns");
}

static void *send_stream(void *argument) {
    struct stream *stream = argument;
    struct flow *flow = stream->flow;
    enter(flow->from);
    struct sockaddr_in from = {.sin_family = AF_INET, .sin_addr = flow->source};
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(flow->port), .sin_addr = flow->target};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), room = ROOM;
    if (fd < 0 || bind(fd, (void *)&from, sizeof from) || connect(fd, (void *)&to, sizeof to)) fail("datagrams");
    setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof room);
    char *payload = calloc(1, flow->datagrams->size);
    if (!payload) fail("memory");
    int64_t last = flow->duration == ENDLESS || flow->duration > duration - flow->start ? duration : flow->start + flow->duration;
    for (uint64_t number = 0;; number++) {
        int64_t at = stream->begins + (stream->times ? 0 : due(&flow->paced[WRITES], number)), drawn[2];
        if (stream->times) {
            if (fread(drawn, sizeof drawn, 1, stream->times) != 1) return 0;
            at = drawn[0];
            if (!number) stream->begins = at;
        }
        if (at >= last) return 0;
        sleep_until(start_at + at);
        *(struct content *)payload = (struct content){number << 16 | stream->number, now()};
        pthread_mutex_lock(&lock);
        stream->sent++;
        pthread_mutex_unlock(&lock);
        send(fd, payload, flow->datagrams->size, MSG_DONTWAIT); /* what is refused is lost, as on the way */
    }
}

static void take(struct flow *flow, const struct content *content, int64_t at) {
    struct datagrams *own = flow->datagrams;
    if ((int)(content->what & 0xffff) >= flow->count) return;
    struct stream *stream = &own->streams[content->what & 0xffff];
    uint64_t number = content->what >> 16;
    int64_t transit = at - content->sent;
    pthread_mutex_lock(&lock);
    stream->received++;
    if (number < stream->expected) own->out_of_order++;
    else stream->expected = number + 1;
    if (stream->heard++) stream->jitter += ((double)llabs(transit - stream->transit) - stream->jitter) / 16;
    stream->transit = transit;
    if (own->count == own->room) {
        own->room = own->room ? own->room * 2 : 1024;
        if (!(own->delays = realloc(own->delays, own->room * sizeof *own->delays))) fail("memory");
    }
    own->delays[own->count++] = transit;
    pthread_mutex_unlock(&lock);
}

static void *receive_stream(void *argument) {
    struct flow *flow = argument;
    enter(flow->to);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(flow->port), .sin_addr = flow->target};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), room = ROOM;
    if (fd < 0 || bind(fd, (void *)&at, sizeof at)) fail("datagrams");
    setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room);
    for (;;) {
        struct content content;
        if (recv(fd, &content, sizeof content, 0) == sizeof content) take(flow, &content, now());
    }
    return 0;
}

void start_datagrams(struct flow *flow) {
    spawn_thread(receive_stream, flow);
    for (int i = 0; i < flow->count; i++) {
        flow->datagrams->streams[i].flow = flow; /* not before: while flows are added they move */
        spawn_thread(send_stream, &flow->datagrams->streams[i]);
    }
}

void datagrams_of(struct flow *flow, struct counts *into) { /* the lock is held */
    for (int i = 0; i < flow->count; i++) {
        into->delivered += flow->datagrams->streams[i].received * flow->datagrams->size;
        into->segments += flow->datagrams->streams[i].sent;
    }
}

static int compare(const void *one, const void *other) {
    int64_t a = *(const int64_t *)one, b = *(const int64_t *)other;
    return (a > b) - (a < b);
}

void sample_datagrams(int64_t at, struct flow *flow) { /* the lock is held */
    struct datagrams *own = flow->datagrams;
    uint64_t sent = 0, expected = 0;
    double jitter = 0;
    int heard = 0;
    for (int i = 0; i < flow->count; i++) {
        struct stream *stream = &own->streams[i];
        sent += stream->sent;
        expected += stream->expected;
        if (stream->heard > 1) jitter += stream->jitter, heard++;
    }
    int64_t sum = 0, count = own->count;
    for (int i = 0; i < count; i++) sum += own->delays[i];
    qsort(own->delays, count, sizeof *own->delays, compare);
    fprintf(rows, "%lld,%d,%llu,%lld,%lld,%llu,%lld", (long long)at, flow->index, (unsigned long long)(sent - own->sent_before), (long long)count,
            (long long)(expected - own->expected_before) - (long long)count, (unsigned long long)own->out_of_order, (long long)sum);
    const int percents[] = {50, 95, 99, 100};
    for (int i = 0; i < 4; i++) {
        if (count) fprintf(rows, ",%lld", (long long)own->delays[(percents[i] * count + 99) / 100 - 1]);
        else fputc(',', rows);
    }
    if (heard) fprintf(rows, ",%.1f\n", jitter / heard);
    else fputs(",\n", rows);
    own->count = 0;
    own->out_of_order = 0;
    own->sent_before = sent;
    own->expected_before = expected;
}

void report_datagrams(struct flow *flow) { /* the lock is held */
    for (int i = 0; i < flow->count; i++) {
        struct stream *stream = &flow->datagrams->streams[i];
        struct session session = {.flow = flow, .number = i, .opened = start_at + stream->begins, .bytes = ENDLESS};
        struct sample sample = {.segments = stream->sent};
        int64_t end = flow->duration == ENDLESS || flow->duration > duration - flow->start ? duration : flow->start + flow->duration;
        report_flow(&session, &sample, stream->received * flow->datagrams->size, start_at + end, 0);
    }
    fflush(rows);
}
