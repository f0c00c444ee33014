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

struct change { int64_t at; int namespace; unsigned ifindex; uint32_t handle, parent; struct options options; };

static struct change *changes;
static int count;

struct options read_options(const char *digits) {
    int length = strlen(digits) / 2;
    struct options options = {length, malloc(length + 1)};
    if (!options.bytes || length > LONGEST_OPTIONS) fail("options");
    for (int i = 0; i < length; i++) {
        unsigned byte;
        if (sscanf(digits + 2 * i, "%2x", &byte) != 1) fail("options");
        options.bytes[i] = byte;
    }
    return options;
}

/* Orders come in order of time. */
void add_change(int64_t at, int namespace, const char *device, uint32_t handle, uint32_t parent, const char *options) {
    if (count % 1024 == 0 && !(changes = realloc(changes, (count + 1024) * sizeof *changes))) fail("memory");
    struct change *change = &changes[count++];
    enter(namespace);
    *change = (struct change){at, namespace, if_nametoindex(device), handle, parent, read_options(options)};
    if (!change->ifindex) fail(device);
}

/* `fd`: a socket of rtnetlink in the device's namespace. Without `told` an error would not be seen. */
void change_qdisc(int fd, unsigned ifindex, uint32_t handle, uint32_t parent, const char *name, const struct options *given, int told) {
    struct { struct nlmsghdr head; struct tcmsg tc; char rest[64 + LONGEST_OPTIONS]; } request;
    request.head = (struct nlmsghdr){0, RTM_NEWQDISC, NLM_F_REQUEST | (told ? NLM_F_ACK : 0), 1, 0};
    request.tc = (struct tcmsg){.tcm_family = AF_UNSPEC, .tcm_ifindex = ifindex, .tcm_handle = handle, .tcm_parent = parent};
    struct rtattr *kind = (void *)request.rest;
    *kind = (struct rtattr){RTA_LENGTH(strlen(name) + 1), TCA_KIND};
    strcpy(RTA_DATA(kind), name);
    struct rtattr *options = (void *)(request.rest + RTA_ALIGN(kind->rta_len));
    *options = (struct rtattr){RTA_LENGTH(given->length), TCA_OPTIONS};
    memcpy(RTA_DATA(options), given->bytes, given->length);
    request.head.nlmsg_len = (char *)options + RTA_ALIGN(options->rta_len) - (char *)&request;
    char answer[4096];
    if (send(fd, &request, request.head.nlmsg_len, 0) < 0 || (told && recv(fd, answer, sizeof answer, 0) < 0)) fail("netlink");
    if (!told) return;
    struct nlmsghdr *head = (void *)answer;
    errno = head->nlmsg_type == NLMSG_ERROR ? -((struct nlmsgerr *)NLMSG_DATA(head))->error : EPROTO;
    if (errno) fail("a change of a queueing discipline");
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
        change_qdisc(fd, changes[i].ifindex, changes[i].handle, changes[i].parent, "netem", &changes[i].options, 1);
    }
    return 0;
}

void start_changes(void) {
    if (count) spawn_thread(run, 0);
}
