/* Queueing disciplines that change at given times of the run: delays and losses of links. */
#include "source.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define LONGEST_OPTIONS 16384

struct change { int64_t at; int namespace; unsigned ifindex; uint32_t handle, parent; int length; unsigned char *options; };

static struct change *changes;
static int count;

/* `options` in hexadecimal digits; orders come in order of time. */
void add_change(int64_t at, int namespace, const char *device, uint32_t handle, uint32_t parent, const char *options) {
    if (count % 1024 == 0 && !(changes = realloc(changes, (count + 1024) * sizeof *changes))) fail("memory");
    struct change *change = &changes[count++];
    int length = strlen(options) / 2;
    if (length > LONGEST_OPTIONS) fail("change");
    enter(namespace);
    *change = (struct change){at, namespace, if_nametoindex(device), handle, parent, length, malloc(length + 1)};
    if (!change->ifindex || !change->options) fail(device);
    for (int i = 0; i < length; i++) {
        unsigned byte;
        if (sscanf(options + 2 * i, "%2x", &byte) != 1) fail("change");
        change->options[i] = byte;
    }
}

static void make(int fd, const struct change *change) {
    struct { struct nlmsghdr head; struct tcmsg tc; char rest[64 + LONGEST_OPTIONS]; } request = {
        {0, RTM_NEWQDISC, NLM_F_REQUEST | NLM_F_ACK, 1, 0},
        {.tcm_family = AF_UNSPEC, .tcm_ifindex = change->ifindex, .tcm_handle = change->handle, .tcm_parent = change->parent}, {0}};
    struct rtattr *kind = (void *)request.rest;
    *kind = (struct rtattr){RTA_LENGTH(sizeof "netem"), TCA_KIND};
    memcpy(RTA_DATA(kind), "netem", sizeof "netem");
    struct rtattr *options = (void *)(request.rest + RTA_ALIGN(kind->rta_len));
    *options = (struct rtattr){RTA_LENGTH(change->length), TCA_OPTIONS};
    memcpy(RTA_DATA(options), change->options, change->length);
    request.head.nlmsg_len = (char *)options + RTA_ALIGN(options->rta_len) - (char *)&request;
    char answer[4096];
    if (send(fd, &request, request.head.nlmsg_len, 0) < 0 || recv(fd, answer, sizeof answer, 0) < 0) fail("netlink");
    struct nlmsghdr *head = (void *)answer;
    errno = head->nlmsg_type == NLMSG_ERROR ? -((struct nlmsgerr *)NLMSG_DATA(head))->error : EPROTO;
    if (errno) fail("a change of a link");
}

static void *run(void *unused) {
    (void)unused;
    int fd = -1, within = -1;
    for (int i = 0; i < count; i++) {
        if (changes[i].namespace != within) {
            if (fd >= 0) close(fd);
            enter(within = changes[i].namespace);
            if ((fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE)) < 0) fail("netlink");
        }
        sleep_until(start_at + changes[i].at);
        make(fd, &changes[i]);
    }
    return 0;
}

void start_changes(void) {
    if (count) spawn_thread(run, 0);
}
