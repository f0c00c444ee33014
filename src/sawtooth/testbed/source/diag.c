/* iperf3's connections, seen from outside: inet_diag in the sender's and the receiver's namespace. */
#include "source.h"

#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

struct place { int namespace, fd; };
static struct place *places;
static int place_count;

static void *open_places(void *unused) {
    (void)unused;
    for (int i = 0; i < flow_count; i++)
        for (int end = 0; end < 2 && !flows[i].native; end++) {
            int namespace = end ? flows[i].to : flows[i].from, known = 0;
            for (int k = 0; k < place_count; k++) known |= places[k].namespace == namespace;
            if (known) continue;
            enter(namespace);
            if (!(places = realloc(places, (place_count + 1) * sizeof *places))) fail("memory");
            places[place_count] = (struct place){namespace, socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG)};
            if (places[place_count++].fd < 0) fail("sock_diag");
        }
    return 0;
}

void diag_open(void) { /* in a thread of its own, so that this one stays where it is */
    pthread_t thread;
    if ((errno = pthread_create(&thread, 0, open_places, 0)) || (errno = pthread_join(thread, 0))) fail("pthread_create");
}

static void take(const struct inet_diag_msg *socket, int length, int namespace) {
    int near = ntohs(socket->id.idiag_sport), far = ntohs(socket->id.idiag_dport);
    struct rtattr *attribute = (void *)(socket + 1);
    struct sample sample = {0};
    for (length -= sizeof *socket; RTA_OK(attribute, length); attribute = RTA_NEXT(attribute, length))
        if (attribute->rta_type == INET_DIAG_INFO) parse_tcp_info(RTA_DATA(attribute), RTA_PAYLOAD(attribute), &sample);
    for (int i = 0; i < flow_count; i++) {
        struct flow *flow = &flows[i];
        if (flow->native) continue;
        int number = (flow->port == far ? near : far) - flow->first_port;
        if (number < 0 || number >= flow->count) continue;
        if (namespace == flow->from && far == flow->port && socket->id.idiag_dst[0] == flow->target.s_addr) {
            if (sample.established && sample.segments >= flow->seen[number].sender.segments) flow->seen[number].sender = sample;
        } else if (namespace == flow->to && near == flow->port && socket->id.idiag_dst[0] == flow->source.s_addr) {
            if (sample.received_bytes > flow->seen[number].received) flow->seen[number].received = sample.received_bytes;
        }
    }
}

void diag_sample(void) {
    static char answer[1 << 16];
    struct { struct nlmsghdr head; struct inet_diag_req_v2 what; } request = {
        {sizeof request, SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST | NLM_F_DUMP, 1, 0},
        {.sdiag_family = AF_INET, .sdiag_protocol = IPPROTO_TCP, .idiag_ext = 1 << (INET_DIAG_INFO - 1), .idiag_states = -1}};
    for (int i = 0; i < flow_count; i++) /* a connection that is gone keeps its counters, not its state */
        for (int k = 0; k < flows[i].count && flows[i].seen; k++) flows[i].seen[k].sender.established = 0;
    for (int i = 0, done; i < place_count; i++) {
        if (send(places[i].fd, &request, sizeof request, 0) < 0) fail("sock_diag");
        for (done = 0; !done;) {
            int length = recv(places[i].fd, answer, sizeof answer, 0);
            if (length < 0 && errno != EINTR) fail("sock_diag");
            for (struct nlmsghdr *h = (void *)answer; length > 0 && NLMSG_OK(h, (unsigned)length); h = NLMSG_NEXT(h, length)) {
                if (h->nlmsg_type == NLMSG_DONE) done = 1;
                else if (h->nlmsg_type == NLMSG_ERROR) fail("sock_diag");
                else take(NLMSG_DATA(h), NLMSG_PAYLOAD(h, 0), places[i].namespace);
            }
        }
    }
}
