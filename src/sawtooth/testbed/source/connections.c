/* All TCP connections of some hosts, whichever program they are of: by sock_diag at the end of each interval, and once
 * more, in state "close", with the counters that they ended with: the kernel reports each socket that it destroys. */
#include "source.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define CGROUP_ID 21 /* INET_DIAG_CGROUP_ID, which older headers lack */
#define LISTENING_OR_NONE (1 << 10 | 1 << 7) /* TCP_LISTEN, TCP_CLOSE */

#define DESTROYED (1 << (SKNLGRP_INET_TCP_DESTROY - 1) | 1 << (SKNLGRP_INET6_TCP_DESTROY - 1))
#define TOLD_BYTES (1 << 23)

struct watched { int namespace, fd, destroyed; };
static struct watched *watched;
static int watched_count;
static FILE *connections;

void watch_connections(int namespace) {
    if (!(watched = realloc(watched, (watched_count + 1) * sizeof *watched))) fail("memory");
    watched[watched_count++] = (struct watched){namespace, -1, -1};
}

void open_connections(void) { /* in the sampling thread, which goes where it samples */
    if (!watched_count) return;
    connections = table("connections", "t_ns,namespace,cookie,local,local_port,peer,peer_port,state,group,cc,cwnd_segments,ssthresh_segments,"
                        "srtt_us,min_rtt_us,in_flight_segments,lost_segments,delivery_bytes,pacing_bytes,sent_bytes,received_bytes,segments_out,"
                        "retransmits,rwnd_limited_us,sndbuf_limited_us");
    for (int i = 0; i < watched_count; i++) {
        enter(watched[i].namespace);
        if ((watched[i].fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG)) < 0) fail("sock_diag");
        struct sockaddr_nl all = {.nl_family = AF_NETLINK, .nl_groups = DESTROYED};
        int told = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_SOCK_DIAG);
        if (told < 0 || bind(told, (struct sockaddr *)&all, sizeof all)) fail("sock_diag");
        setsockopt(told, SOL_SOCKET, SO_RCVBUFFORCE, &(int){TOLD_BYTES}, sizeof(int));
        watched[i].destroyed = told;
    }
}

static void write_address(const __be32 *address, int family) {
    char text[INET6_ADDRSTRLEN];
    int mapped = family == AF_INET6 && !address[0] && !address[1] && address[2] == htonl(0xffff);
    inet_ntop(mapped ? AF_INET : family, mapped ? address + 3 : address, text, sizeof text);
    fputs(text, connections);
}

static void take(int64_t at, const struct inet_diag_msg *socket, int length, int namespace) {
    struct rtattr *attribute = (void *)(socket + 1);
    struct sample s = {0};
    uint64_t group = 0;
    const char *control = "";
    for (length -= sizeof *socket; RTA_OK(attribute, length); attribute = RTA_NEXT(attribute, length)) {
        if (attribute->rta_type == INET_DIAG_INFO) parse_tcp_info(RTA_DATA(attribute), RTA_PAYLOAD(attribute), &s);
        else if (attribute->rta_type == INET_DIAG_CONG) control = RTA_DATA(attribute);
        else if (attribute->rta_type == CGROUP_ID && RTA_PAYLOAD(attribute) == 8) memcpy(&group, RTA_DATA(attribute), 8);
    }
    fprintf(connections, "%lld,%d,%llu,", (long long)at, namespace,
            (unsigned long long)socket->id.idiag_cookie[1] << 32 | socket->id.idiag_cookie[0]);
    write_address(socket->id.idiag_src, socket->idiag_family);
    fprintf(connections, ",%d,", ntohs(socket->id.idiag_sport));
    write_address(socket->id.idiag_dst, socket->idiag_family);
    fprintf(connections, ",%d,%d,%llu,%s,%u,%u,%u,%u,%d,%lld,%llu,%llu,%llu,%llu,%llu,%llu,%llu,%llu\n", ntohs(socket->id.idiag_dport),
            socket->idiag_state, (unsigned long long)group, control, s.cwnd, s.ssthresh, s.srtt_us, s.min_rtt_us, (int)s.in_flight,
            (long long)s.lost, (unsigned long long)s.delivery_bytes, (unsigned long long)s.pacing_bytes, (unsigned long long)s.acked_bytes,
            (unsigned long long)s.received_bytes, (unsigned long long)s.segments, (unsigned long long)s.retransmits,
            (unsigned long long)s.rwnd_limited_us, (unsigned long long)s.sndbuf_limited_us);
}

static char answer[1 << 16];

static void take_destroyed(int64_t at, const struct watched *here) {
    for (int length; (length = recv(here->destroyed, answer, sizeof answer, 0)) > 0 || errno == ENOBUFS;)
        for (struct nlmsghdr *h = (void *)answer; length > 0 && NLMSG_OK(h, (unsigned)length); h = NLMSG_NEXT(h, length))
            take(at, NLMSG_DATA(h), NLMSG_PAYLOAD(h, 0), here->namespace);
}

void sample_connections(int64_t at) {
    for (int i = 0; i < watched_count; i++) take_destroyed(at, &watched[i]);
    for (int i = 0; i < 2 * watched_count; i++) {
        const struct watched *here = &watched[i / 2];
        struct { struct nlmsghdr head; struct inet_diag_req_v2 what; } request = {
            {sizeof request, SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST | NLM_F_DUMP, 1, 0},
            {.sdiag_family = i % 2 ? AF_INET6 : AF_INET, .sdiag_protocol = IPPROTO_TCP, .idiag_states = ~(uint32_t)LISTENING_OR_NONE,
             .idiag_ext = 1 << (INET_DIAG_INFO - 1) | 1 << (INET_DIAG_CONG - 1)}};
        if (send(here->fd, &request, sizeof request, 0) < 0) fail("sock_diag");
        for (int done = 0; !done;) {
            int length = recv(here->fd, answer, sizeof answer, 0);
            if (length < 0 && errno != EINTR) fail("sock_diag");
            for (struct nlmsghdr *h = (void *)answer; length > 0 && NLMSG_OK(h, (unsigned)length); h = NLMSG_NEXT(h, length)) {
                if (h->nlmsg_type == NLMSG_DONE || h->nlmsg_type == NLMSG_ERROR) done = 1;
                else take(at, NLMSG_DATA(h), NLMSG_PAYLOAD(h, 0), here->namespace);
            }
        }
    }
}
