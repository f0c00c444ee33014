/* Probes: ICMP echo requests of ping's default size at a fixed pace; the answer carries the time when it was asked. */
#include "source.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/ip_icmp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define MESSAGE 64 /* ICMP header and 56 bytes of data */

struct probe { int index, namespace, fd; struct in_addr source, target; int64_t start, interval, count; };
struct content { int64_t sent; uint32_t number; };

static struct probe *probes;
static int probe_count;
static FILE *answers;

void add_probe(char *words) {
    if (!(probes = realloc(probes, (probe_count + 1) * sizeof *probes))) fail("memory");
    struct probe *p = &probes[probe_count];
    char source[32], target[32];
    long long start, every, count;
    errno = 0;
    if (sscanf(words, "%d %31s %31s %lld %lld %lld", &p->namespace, source, target, &start, &every, &count) != 6) fail("probe");
    if (inet_pton(AF_INET, source, &p->source) != 1 || inet_pton(AF_INET, target, &p->target) != 1) fail("probe");
    p->index = probe_count++;
    p->start = start;
    p->interval = every;
    p->count = count;
}

static void ask(int fd, struct probe *p, uint32_t number) {
    unsigned char message[MESSAGE] = {ICMP_ECHO};
    struct icmphdr *head = (void *)message;
    struct content content = {now(), number};
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr = p->target};
    head->un.echo.id = htons(p->index + 1);
    head->un.echo.sequence = htons(number);
    memcpy(message + sizeof *head, &content, sizeof content);
    uint32_t sum = 0;
    for (int i = 0; i < MESSAGE; i += 2) sum += message[i] | message[i + 1] << 8;
    sum = (sum >> 16) + (sum & 0xffff);
    head->checksum = ~(sum + (sum >> 16));
    if (sendto(fd, message, sizeof message, 0, (void *)&to, sizeof to) < 0 && errno != ENOBUFS) fail("probe");
}

static void hear(int fd, struct probe *p) {
    unsigned char message[256];
    int length = recv(fd, message, sizeof message, 0), header = length > 0 ? (message[0] & 15) * 4 : 0;
    struct icmphdr *head = (void *)(message + header);
    struct content content;
    if (length < header + MESSAGE || head->type != ICMP_ECHOREPLY || ntohs(head->un.echo.id) != p->index + 1) return;
    memcpy(&content, message + header + sizeof *head, sizeof content);
    pthread_mutex_lock(&lock);
    fprintf(answers, "%d,%u,%lld,%lld\n", p->index, content.number, (long long)(content.sent - start_at), (long long)(now() - content.sent));
    pthread_mutex_unlock(&lock);
}

static void *run_hearing(void *argument) {
    for (struct probe *p = argument;;) hear(p->fd, p);
    return 0;
}

static void *run(void *argument) {
    struct probe *p = argument;
    enter(p->namespace);
    struct sockaddr_in from = {.sin_family = AF_INET, .sin_addr = p->source};
    p->fd = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMP);
    if (p->fd < 0 || bind(p->fd, (void *)&from, sizeof from)) fail("probe");
    spawn_thread(run_hearing, p);
    for (int64_t number = 0; number < p->count; number++) {
        sleep_until(start_at + p->start + number * p->interval);
        ask(p->fd, p, number);
    }
    return 0;
}

void start_probes(void) {
    answers = table("probes", "probe,number,sent_ns,rtt_ns");
    for (int i = 0; i < probe_count; i++) spawn_thread(run, &probes[i]);
}

void flush_probes(void) { /* report_flows_end holds the lock for good */
    fflush(answers);
}
