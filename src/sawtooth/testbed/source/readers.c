/* Readers: clients that open connections to the host that has the data, ask for answers, pages or segments of a video one after the
 * other, and measure how long each takes. A request says in its first eight bytes how many it wants.
 *
 * What is asked for, when and in which order is as in the simulator (crates/net/src/hosts/reader). */
#include "source.h"

#include <errno.h>
#include <linux/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define REQUEST_BYTES 400
#define AT_ONCE (1 << 30)
/* The generators' numbers: crates/net/src/rng.rs. */
enum { ANSWER = 9, THINK = 10 };
/* For the rule by throughput. */
#define SAMPLES 4

struct asks {
    char *kind;
    struct sizes sizes;
    int64_t think;
    int exponential;
    int64_t objects;
    int connections, keep;
    int64_t *rates, segment, buffer;
    int rate_count, by_throughput;
};

struct reader {
    struct flow *flow;
    int number;
    int64_t until;
    struct random sizes, thinks;
    pthread_mutex_t turn; /* over what follows */
    int64_t left, bytes;
};

struct line { /* a reader's end of a connection */
    struct reader *reader;
    struct session *session;
    int connection, fd, generation;
    int64_t asked; /* answers */
    int64_t bytes; /* of the next one */
};

static FILE *responses, *pages, *segments;

void add_asks(int index, struct asks *asks) { flows[index].asks = asks; }

struct asks *new_asks(char *kind, struct sizes sizes, int64_t think, int exponential) {
    struct asks *asks = calloc(1, sizeof *asks);
    if (!asks) fail("memory");
    *asks = (struct asks){.kind = kind, .sizes = sizes, .think = think, .exponential = exponential, .connections = 1};
    return asks;
}

void read_pages(struct asks *asks, int64_t objects, int connections, int keep) {
    asks->objects = objects;
    asks->connections = connections;
    asks->keep = keep;
}

void read_video(struct asks *asks, int64_t segment, int64_t buffer, int by_throughput, int64_t *rates, int rate_count) {
    asks->segment = segment;
    asks->buffer = buffer;
    asks->by_throughput = by_throughput;
    asks->rates = rates;
    asks->rate_count = rate_count;
}

static struct session *new_session(struct line *line, uint16_t port) {
    struct flow *flow = line->reader->flow;
    struct session *s = calloc(1, sizeof *s);
    if (!s) fail("memory");
    *s = (struct session){.flow = flow, .number = line->connection, .generation = line->generation, .bytes = ENDLESS, .fd = -1,
                          .peer = line->fd, .port = port, .opened = now(), .references = 1, .asked = UINT64_MAX};
    pthread_mutex_lock(&lock);
    s->next = flow->live;
    flow->live = s;
    pthread_mutex_unlock(&lock);
    return s;
}

/* The end that has the data. */

struct served { struct session *session; int fd; };

static void *serve(void *argument) {
    struct served served = *(struct served *)argument;
    free(argument);
    struct session *s = served.session;
    char request[REQUEST_BYTES];
    int broken = 0;
    while (!broken && recv(served.fd, request, sizeof request, MSG_WAITALL) == sizeof request) {
        int64_t left;
        memcpy(&left, request, sizeof left);
        while (left && !broken) {
            ssize_t sent = send_zeros(served.fd, left);
            if (sent > 0) left -= sent;
            else if (errno != EINTR) broken = 1;
        }
    }
    pthread_mutex_lock(&lock);
    end_session(s, !broken);
    pthread_mutex_unlock(&lock);
    close(served.fd);
    return 0;
}

struct offered { struct flow *flow; int fd; };

static void *accept_readers(void *argument) {
    struct offered offered = *(struct offered *)argument;
    free(argument);
    for (;;) {
        struct sockaddr_in from;
        socklen_t length = sizeof from;
        int fd = accept4(offered.fd, (void *)&from, &length, SOCK_CLOEXEC);
        if (fd < 0) {
            if (errno == ECONNABORTED || errno == EINTR) continue;
            fail("accept");
        }
        struct served *served = malloc(sizeof *served);
        *served = (struct served){0, fd};
        pthread_mutex_lock(&lock);
        for (struct session *s = offered.flow->live; s; s = s->next)
            if (s->port == ntohs(from.sin_port) && s->fd < 0) {
                s->fd = fd;
                s->references++;
                served->session = s;
            }
        pthread_mutex_unlock(&lock);
        if (!served->session) {
            close(fd);
            free(served);
            continue;
        }
        if (!*offered.flow->used) {
            length = sizeof offered.flow->used;
            getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, offered.flow->used, &length);
        }
        spawn_thread(serve, served);
    }
}

static void *open_offer(void *argument) {
    struct flow *flow = argument;
    enter(flow->from);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(flow->port), .sin_addr = flow->source};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, flow->cc, strlen(flow->cc))) fail(flow->cc);
    if (bind(fd, (void *)&at, sizeof at) || listen(fd, 65535)) fail("listen");
    struct offered *offered = malloc(sizeof *offered);
    *offered = (struct offered){flow, fd};
    spawn_thread(accept_readers, offered);
    return 0;
}

/* The reader's end. */

/* False when the reader's time is over. */
static int allow(int fd, int64_t until) {
    if (until == INT64_MAX) return 1;
    int64_t left = (until - now()) / 1000;
    if (left <= 0) return 0;
    struct timeval timeout = {left / 1000000, left % 1000000};
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
    return 1;
}

static int open_line(struct line *line) {
    struct flow *flow = line->reader->flow;
    struct sockaddr_in from = {.sin_family = AF_INET, .sin_addr = flow->target};
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(flow->port), .sin_addr = flow->source};
    socklen_t length = sizeof from;
    line->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    /* Only useful to those that ask for ECN. */
    if (line->fd < 0 || setsockopt(line->fd, IPPROTO_TCP, TCP_CONGESTION, flow->cc, strlen(flow->cc))) fail(flow->cc);
    if (bind(line->fd, (void *)&from, sizeof from) || getsockname(line->fd, (void *)&from, &length)) fail("bind");
    line->session = new_session(line, ntohs(from.sin_port));
    for (;;) {
        if (!allow(line->fd, line->reader->until)) return 0;
        if (!connect(line->fd, (void *)&to, sizeof to) || errno == EISCONN) return 1;
        if (errno != EINPROGRESS && errno != EALREADY && errno != ETIMEDOUT && errno != EINTR) fail("connect");
        if (errno == ETIMEDOUT) return 0;
    }
}

static void close_line(struct line *line, int reset) {
    if (line->fd < 0) return;
    struct sample last;
    pthread_mutex_lock(&lock);
    if (!read_tcp_info(line->fd, &last)) line->session->received = last.received_bytes;
    line->session->peer = -1;
    if (line->session->fd < 0) forget_session(line->session); /* it was never open */
    release_session(line->session);
    pthread_mutex_unlock(&lock);
    struct linger at_once = {1, 0};
    if (reset) setsockopt(line->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    close(line->fd);
    line->fd = -1;
    line->generation++;
}

/* The time until this many bytes had arrived, including a handshake if one was needed; -1: the reader's time is over. */
static int64_t ask(struct line *line, int64_t bytes) {
    char request[REQUEST_BYTES] = {0};
    int64_t since = now(), until = line->reader->until;
    if (line->fd < 0 && !open_line(line)) return -1;
    memcpy(request, &bytes, sizeof bytes);
    if (send(line->fd, request, sizeof request, MSG_NOSIGNAL) != sizeof request) return -1;
    for (int64_t left = bytes; left;) {
        if (!allow(line->fd, until)) return -1;
        ssize_t got = recv(line->fd, zeros, left < AT_ONCE ? left : AT_ONCE, MSG_WAITALL | MSG_TRUNC);
        if (got > 0) left -= got;
        else if (!got || (errno != EAGAIN && errno != EINTR)) return -1;
    }
    int64_t at = now(), took = at - since;
    if (at <= start_at + duration)
        fprintf(responses, "%lld,%d,%d,%d,%lld,%lld,%lld\n", (long long)(at - start_at), line->reader->flow->index, line->connection,
                line->generation, (long long)line->asked, (long long)bytes, (long long)took);
    line->asked++;
    return took;
}

static void pause_until(struct reader *reader, int64_t at) { sleep_until(at < reader->until ? at : reader->until); }

static int64_t think(struct reader *reader) {
    struct asks *asks = reader->flow->asks;
    return draw_wait(asks->think, asks->exponential, &reader->thinks);
}

static void be_asked(struct reader *reader, struct line *line) {
    while (now() < reader->until) {
        if (ask(line, draw_size(&reader->flow->asks->sizes, &reader->sizes)) < 0) return;
        pause_until(reader, now() + think(reader));
    }
}

/* One line of a page: object after object, the first of which was chosen. */
static void *fetch(void *argument) {
    struct line *line = argument;
    struct reader *reader = line->reader;
    enter(reader->flow->to);
    for (int64_t bytes = line->bytes; bytes > 0;) {
        if (ask(line, bytes) < 0) return 0;
        pthread_mutex_lock(&reader->turn);
        reader->bytes += bytes;
        bytes = reader->left ? draw_size(&reader->flow->asks->sizes, &reader->sizes) : 0;
        if (reader->left) reader->left--;
        pthread_mutex_unlock(&reader->turn);
    }
    return line;
}

static void visit_pages(struct reader *reader, struct line *lines) {
    struct asks *asks = reader->flow->asks;
    pthread_t threads[asks->connections];
    for (int64_t number = 0; now() < reader->until; number++) {
        int64_t began = now();
        int whole = 1, used = asks->objects < asks->connections ? asks->objects : asks->connections;
        reader->left = asks->objects - used;
        reader->bytes = 0;
        for (int i = 0; i < used; i++) lines[i].bytes = draw_size(&asks->sizes, &reader->sizes);
        for (int i = 0; i < used; i++)
            if ((errno = pthread_create(&threads[i], 0, fetch, &lines[i]))) fail("pthread_create");
        for (int i = 0; i < used; i++) {
            void *had;
            pthread_join(threads[i], &had);
            whole &= had != 0;
        }
        if (!whole) return;
        int64_t at = now();
        if (at <= start_at + duration)
            fprintf(pages, "%lld,%d,%d,%lld,%lld,%lld,%lld\n", (long long)(at - start_at), reader->flow->index, reader->number,
                    (long long)number, (long long)asks->objects, (long long)reader->bytes, (long long)(at - began));
        for (int i = 0; i < used && !asks->keep; i++) close_line(&lines[i], 0);
        pause_until(reader, at + think(reader));
    }
}

/* BBA-0 of Huang and others (2014), its reservoir and upper end as shares of the buffer. */
static int64_t by_buffer(const struct asks *r, int64_t level, int64_t before) {
    int64_t lowest = r->rates[0], highest = r->rates[r->rate_count - 1];
    int64_t reservoir = (__int128)r->buffer * 3 / 8, upper = (__int128)r->buffer * 9 / 10;
    if (level <= reservoir) return lowest;
    if (level >= upper) return highest;
    int64_t mapped = lowest + (int64_t)((__int128)(highest - lowest) * (level - reservoir) / (upper - reservoir));
    int64_t above = highest, below = lowest, under = lowest, over = highest;
    for (int i = r->rate_count - 1; i >= 0; i--) {
        if (r->rates[i] > before) above = r->rates[i];
        if (r->rates[i] > mapped) over = r->rates[i];
    }
    for (int i = 0; i < r->rate_count; i++) {
        if (r->rates[i] < before) below = r->rates[i];
        if (r->rates[i] < mapped) under = r->rates[i];
    }
    return mapped >= above ? under : mapped <= below ? over : before;
}

/* 90% of the mean throughput of the last segments. */
static int64_t by_throughput(const struct asks *r, const int64_t *measured, int count) {
    __int128 sum = 0;
    if (!count) return r->rates[0];
    for (int i = 0; i < count; i++) sum += measured[i];
    __int128 safe = sum * 90 / (100 * count);
    for (int i = r->rate_count - 1; i > 0; i--)
        if (r->rates[i] <= safe) return r->rates[i];
    return r->rates[0];
}

static void watch_video(struct reader *reader, struct line *line) {
    struct asks *r = reader->flow->asks;
    int64_t level = 0, at = now(), rate = 0, measured[SAMPLES];
    int plays = 0, count = 0;
    while (now() < reader->until) {
        int64_t played = plays ? now() - at : 0, left = level > played ? level - played : 0;
        rate = r->by_throughput ? by_throughput(r, measured, count) : by_buffer(r, left, rate);
        int64_t bytes = ((__int128)rate * r->segment + 7999999999) / 8000000000;
        if (bytes < 1) bytes = 1;
        int64_t took = ask(line, bytes), then = now();
        if (took < 0) return;
        played = plays ? then - at : 0;
        int64_t stalled = !plays ? took : played > level ? played - level : 0;
        level = (level > played ? level - played : 0) + r->segment;
        at = then;
        plays = 1;
        if (count == SAMPLES) memmove(measured, measured + 1, (SAMPLES - 1) * sizeof *measured), count--;
        measured[count++] = (__int128)bytes * 8000000000 / (took ? took : 1);
        if (then <= start_at + duration)
            fprintf(segments, "%lld,%d,%d,%lld,%lld,%lld,%lld,%lld,%lld\n", (long long)(then - start_at), reader->flow->index,
                    line->connection, (long long)line->asked - 1, (long long)rate, (long long)bytes, (long long)took, (long long)level,
                    (long long)stalled);
        if (level + r->segment > r->buffer) pause_until(reader, then + level + r->segment - r->buffer);
    }
}

static void *read_all(void *argument) {
    struct reader *reader = argument;
    struct asks *asks = reader->flow->asks;
    struct line *lines = calloc(asks->connections, sizeof *lines);
    for (int i = 0; i < asks->connections; i++)
        lines[i] = (struct line){.reader = reader, .connection = reader->number * asks->connections + i, .fd = -1};
    enter(reader->flow->to);
    sleep_until(start_at + reader->flow->start);
    if (!strcmp(asks->kind, "pages")) visit_pages(reader, lines);
    else if (!strcmp(asks->kind, "video")) watch_video(reader, lines);
    else be_asked(reader, lines);
    for (int i = 0; i < asks->connections; i++) close_line(&lines[i], 1);
    return 0;
}

static FILE *once(FILE *opened, const char *name, const char *header) { return opened ? opened : table(name, header); }

void start_readers(struct flow *flow) {
    pthread_t thread;
    responses = once(responses, "responses", "t_ns,flow,connection,generation,number,bytes,response_ns");
    if (!strcmp(flow->asks->kind, "pages")) pages = once(pages, "pages", "t_ns,flow,reader,number,objects,bytes,load_ns");
    if (!strcmp(flow->asks->kind, "video"))
        segments = once(segments, "segments", "t_ns,flow,connection,number,rate_bps,bytes,download_ns,buffer_ns,stalled_ns");
    if ((errno = pthread_create(&thread, 0, open_offer, flow)) || (errno = pthread_join(thread, 0))) fail("pthread_create");
    for (int number = 0; number < flow->count / flow->asks->connections; number++) {
        struct reader *reader = calloc(1, sizeof *reader);
        uint64_t index = (uint64_t)flow->index << 32 | number;
        *reader = (struct reader){.flow = flow, .number = number, .turn = PTHREAD_MUTEX_INITIALIZER};
        reader->until = flow->duration == ENDLESS ? INT64_MAX : start_at + flow->start + flow->duration;
        begin_random(&reader->sizes, ANSWER, index);
        begin_random(&reader->thinks, THINK, index);
        spawn_thread(read_all, reader);
    }
}
