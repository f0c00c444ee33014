/* Samples at the end of each interval: flows, senders' tcp_info, qdisc counters over netlink, the hosts' TCP counters. */
#include "source.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/gen_stats.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define LOOKS_AN_INTERVAL 10 /* at a queue, for its mean, and at connections that may end */
#define SHORTEST_LOOK (SECOND / 1000)
#define LARGEST_ANSWER (1 << 16)

/* `begun`: flows that began to wait; `fresh` and `old`: those that wait now; below 0 where a kind does not tell. */
struct qdisc { uint64_t bytes; uint32_t packets, waiting, backlog, drops, early, marks, overlimits, begun; int64_t fresh, old; };

struct queue { int index, namespace; char *device; unsigned ifindex; uint32_t handle; int on_wire; struct qdisc now, before; double sum; };
struct link { int index, namespace; char *device; unsigned ifindex; uint32_t handle, child; uint64_t total, before; int by_rule, polices; };
struct host { int namespace, counters; };
struct socket { int namespace, route, rules; };

static struct queue *queues;
static struct link *links;
static struct host *hosts;
static struct socket *sockets;
static int queue_count, link_count, host_count, socket_count, looks;
static FILE *intervals, *senders, *waiting, *losses, *counters, *progress;
static int64_t looked_at;

static void *more(void *array, int count, size_t size) {
    if (!(array = realloc(array, (count + 1) * size))) fail("memory");
    memset((char *)array + count * size, 0, size);
    return array;
}

void add_queue(int index, int namespace, const char *device, uint32_t handle, int on_wire) {
    queues = more(queues, queue_count, sizeof *queues);
    queues[queue_count++] =
        (struct queue){.index = index, .namespace = namespace, .device = device ? strdup(device) : 0, .handle = handle, .on_wire = on_wire};
}

void add_link(int index, int namespace, const char *device, uint32_t handle, uint32_t child, int polices) {
    links = more(links, link_count, sizeof *links);
    links[link_count++] = (struct link){.index = index, .namespace = namespace, .device = strdup(device), .handle = handle, .child = child, .polices = polices};
}

void add_counter(int index, int namespace, const char *name) {
    add_link(index, namespace, name, 0, 0, 0);
    links[link_count - 1].by_rule = 1;
}

void add_host(int namespace) {
    hosts = more(hosts, host_count, sizeof *hosts);
    hosts[host_count++].namespace = namespace;
}

static struct socket *socket_in(int namespace) {
    for (int i = 0; i < socket_count; i++)
        if (sockets[i].namespace == namespace) return &sockets[i];
    sockets = more(sockets, socket_count, sizeof *sockets);
    enter(namespace);
    struct socket *made = &sockets[socket_count++];
    made->namespace = namespace;
    made->route = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    made->rules = -1;
    if (made->route < 0) fail("netlink");
    return made;
}

static void open_all(void) {
    for (int i = 0; i < queue_count; i++) {
        if (!queues[i].device) continue; /* a line's, which counts for itself */
        socket_in(queues[i].namespace);
        enter(queues[i].namespace);
        if (!(queues[i].ifindex = if_nametoindex(queues[i].device))) fail(queues[i].device);
    }
    for (int i = 0; i < link_count; i++) {
        struct socket *s = socket_in(links[i].namespace);
        enter(links[i].namespace);
        if (links[i].by_rule) {
            if (s->rules < 0 && (s->rules = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER)) < 0) fail("nfnetlink");
        } else if (!(links[i].ifindex = if_nametoindex(links[i].device))) fail(links[i].device);
    }
    for (int i = 0; i < host_count; i++) {
        enter(hosts[i].namespace);
        if ((hosts[i].counters = open("/proc/thread-self/net/netstat", O_RDONLY | O_CLOEXEC)) < 0) fail("/proc/thread-self/net/netstat");
    }
}

/* Calls `each` with every message of the answer to one request. */
static void ask(int fd, void *request, void (*each)(struct nlmsghdr *, int), int namespace) {
    static char answer[LARGEST_ANSWER];
    struct nlmsghdr *head = request;
    if (send(fd, request, head->nlmsg_len, 0) < 0) fail("netlink");
    for (;;) {
        int length = recv(fd, answer, sizeof answer, 0);
        if (length < 0 && errno == EINTR) continue;
        if (length < 0) fail("netlink");
        for (struct nlmsghdr *h = (void *)answer; NLMSG_OK(h, (unsigned)length); h = NLMSG_NEXT(h, length)) {
            if (h->nlmsg_type == NLMSG_DONE) return;
            if (h->nlmsg_type == NLMSG_ERROR) {
                errno = -((struct nlmsgerr *)NLMSG_DATA(h))->error;
                fail("netlink");
            }
            each(h, namespace);
        }
    }
}

static struct rtattr *find(void *first, int length, int type) {
    for (struct rtattr *a = first; RTA_OK(a, length); a = RTA_NEXT(a, length))
        if ((a->rta_type & NLA_TYPE_MASK) == type) return a;
    return 0;
}

/* A qdisc's drops despite room, and its marks, as its own statistics tell. */
static void take_own(struct qdisc *now, const char *kind, struct rtattr *own) {
    if (!kind || !own) return;
    const void *at = RTA_DATA(own);
    size_t length = RTA_PAYLOAD(own);
    if (!strcmp(kind, "codel") && length >= sizeof(struct tc_codel_xstats)) {
        const struct tc_codel_xstats *told = at;
        now->early = now->drops - told->drop_overlimit;
        now->marks = told->ecn_mark + told->ce_mark;
    } else if (!strcmp(kind, "fq_codel") && length >= sizeof(struct tc_fq_codel_xstats)) {
        const struct tc_fq_codel_xstats *told = at;
        now->early = now->drops - told->qdisc_stats.drop_overlimit;
        now->marks = told->qdisc_stats.ecn_mark + told->qdisc_stats.ce_mark;
        now->begun = told->qdisc_stats.new_flow_count;
        now->fresh = told->qdisc_stats.new_flows_len;
        now->old = told->qdisc_stats.old_flows_len;
    } else if (!strcmp(kind, "red") && length >= sizeof(struct tc_red_xstats)) {
        const struct tc_red_xstats *told = at;
        now->early = told->early;
        now->marks = told->marked;
    } else if (!strcmp(kind, "pie") && length >= sizeof(struct tc_pie_xstats)) {
        const struct tc_pie_xstats *told = at;
        now->early = told->dropped - told->overlimit;
        now->marks = told->ecn_mark;
    } else if (!strcmp(kind, "fq_pie") && length >= sizeof(struct tc_fq_pie_xstats)) {
        const struct tc_fq_pie_xstats *told = at;
        now->early = told->dropped - told->overlimit;
        now->marks = told->ecn_mark;
        now->begun = told->new_flow_count;
        now->fresh = told->new_flows_len;
        now->old = told->old_flows_len;
    } else if (!strcmp(kind, "dualpi2") && length >= 7 * sizeof(uint32_t)) {
        /* struct tc_dualpi2_xstats, which older headers lack; what finds no room is what its queue calls overlimits. */
        now->early = now->drops - now->overlimits;
        now->marks = ((const uint32_t *)at)[6];
    } else if (!strcmp(kind, "cake")) {
        /* Which drops were for want of memory, of which it has much, it does not tell. */
        now->early = now->drops;
        struct rtattr *tins = find(RTA_DATA(own), (int)length, TCA_CAKE_STATS_TIN_STATS), *marked;
        int left = tins ? (int)RTA_PAYLOAD(tins) : 0;
        for (struct rtattr *tin = tins ? RTA_DATA(tins) : 0; tin && RTA_OK(tin, left); tin = RTA_NEXT(tin, left))
            if ((marked = find(RTA_DATA(tin), (int)RTA_PAYLOAD(tin), TCA_CAKE_TIN_STATS_ECN_MARKED_PACKETS)))
                now->marks += *(const uint32_t *)RTA_DATA(marked);
    }
}

static void take_qdisc(struct nlmsghdr *h, int namespace) {
    struct tcmsg *t = NLMSG_DATA(h);
    struct rtattr *all = find(TCA_RTA(t), TCA_PAYLOAD(h), TCA_STATS2), *one;
    if (!all) return;
    struct qdisc now = {.fresh = -1, .old = -1};
    if ((one = find(RTA_DATA(all), RTA_PAYLOAD(all), TCA_STATS_BASIC))) {
        struct gnet_stats_basic basic;
        memcpy(&basic, RTA_DATA(one), sizeof basic < RTA_PAYLOAD(one) ? sizeof basic : RTA_PAYLOAD(one));
        now.bytes = basic.bytes;
        now.packets = basic.packets;
    }
    if ((one = find(RTA_DATA(all), RTA_PAYLOAD(all), TCA_STATS_QUEUE))) {
        struct gnet_stats_queue *queue = RTA_DATA(one);
        now.waiting = queue->qlen;
        now.backlog = queue->backlog;
        now.drops = queue->drops;
        now.overlimits = queue->overlimits;
    }
    struct rtattr *kind = find(TCA_RTA(t), TCA_PAYLOAD(h), TCA_KIND);
    take_own(&now, kind ? RTA_DATA(kind) : 0, find(RTA_DATA(all), RTA_PAYLOAD(all), TCA_STATS_APP));
    for (int i = 0; i < queue_count; i++)
        if (queues[i].device && queues[i].namespace == namespace && queues[i].ifindex == (unsigned)t->tcm_ifindex && queues[i].handle == t->tcm_handle) {
            if (queues[i].on_wire && now.waiting) { /* this qdisc counts the packet on the wire as well */
                now.backlog -= now.backlog / now.waiting;
                now.waiting--;
            }
            queues[i].now = now;
            queues[i].sum += now.waiting;
        }
    for (int i = 0; i < link_count; i++)
        if (!links[i].by_rule && links[i].namespace == namespace && links[i].ifindex == (unsigned)t->tcm_ifindex) {
            /* A netem also counts what the qdisc below it drops; the sum is taken modulo the counters' 32 bits. */
            if (links[i].handle == t->tcm_handle) links[i].total += now.drops;
            if (links[i].child && links[i].child == t->tcm_handle) links[i].total -= now.drops;
        }
}

static void take_counter(struct nlmsghdr *h, int namespace) {
    struct nfgenmsg *about = NLMSG_DATA(h);
    void *first = (char *)about + NLMSG_ALIGN(sizeof *about);
    int length = h->nlmsg_len - NLMSG_SPACE(sizeof *about);
    struct rtattr *name = find(first, length, NFTA_OBJ_NAME), *data = find(first, length, NFTA_OBJ_DATA);
    struct rtattr *packets = data ? find(RTA_DATA(data), RTA_PAYLOAD(data), NFTA_COUNTER_PACKETS) : 0;
    if (!name || !packets) return;
    uint64_t value;
    memcpy(&value, RTA_DATA(packets), 8);
    for (int i = 0; i < link_count; i++)
        if (links[i].by_rule && links[i].namespace == namespace && !strcmp(links[i].device, RTA_DATA(name)))
            links[i].total = __builtin_bswap64(value);
}

static void look(void) {
    struct { struct nlmsghdr head; struct tcmsg tc; } qdiscs = {
        {sizeof qdiscs, RTM_GETQDISC, NLM_F_REQUEST | NLM_F_DUMP, 1, 0}, {.tcm_family = AF_UNSPEC}};
    struct { struct nlmsghdr head; struct nfgenmsg about; } objects = {
        {sizeof objects, NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_GETOBJ, NLM_F_REQUEST | NLM_F_DUMP, 1, 0}, {AF_INET, NFNETLINK_V0, 0}};
    for (int i = 0; i < link_count; i++) links[i].total = 0;
    for (int i = 0; i < socket_count; i++) {
        ask(sockets[i].route, &qdiscs, take_qdisc, sockets[i].namespace);
        if (sockets[i].rules >= 0) ask(sockets[i].rules, &objects, take_counter, sockets[i].namespace);
    }
    for (int i = 0; i < queue_count; i++) {
        struct line_counts line;
        if (queues[i].device || !look_at_line(queues[i].index, &line)) continue;
        queues[i].now = (struct qdisc){line.bytes, line.packets, line.waiting, line.backlog, line.drops, .fresh = -1, .old = -1};
        queues[i].sum += line.waiting;
    }
    looks++;
}

/* The value under `name` in a table of /proc/net/netstat, whose lines come in pairs: names, values. */
static long long counter_of(char *text, const char *name) {
    for (char *names = text, *values; names; names = strchr(values, '\n') ? strchr(values, '\n') + 1 : 0) {
        if (!(values = strchr(names, '\n'))) return -1;
        char *end_names = values++, *n = names, *v = values;
        while (n < end_names) {
            size_t length = strcspn(n, " \n");
            if (length == strlen(name) && !strncmp(n, name, length)) return atoll(v);
            n += length + 1;
            v += strcspn(v, " \n") + 1;
        }
        if (!*values) return -1;
    }
    return -1;
}

static void sample_hosts(int64_t at) {
    static char text[16384];
    for (int i = 0; i < host_count; i++) {
        ssize_t length = 0, got;
        while ((got = pread(hosts[i].counters, text + length, sizeof text - 1 - length, length)) > 0) length += got;
        text[length] = 0;
        fprintf(counters, "%lld,%d,%lld,%lld,%lld\n", (long long)at, hosts[i].namespace, counter_of(text, "TCPTimeouts"),
                counter_of(text, "TCPLossProbes"), counter_of(text, "TCPWinProbe"));
    }
}

static void sample_sender(int64_t at, int flow, int number, const struct sample *s) {
    if (!s->established) return;
    fprintf(senders, "%lld,%d,%d,%u,%u,%u,%u,%u,%d,%llu,%llu,%u,%u,%lld,%u,%llu,%llu\n", (long long)at, flow, number, s->cwnd, s->ssthresh, s->srtt_us,
            s->min_rtt_us, s->rto_us, (int)s->in_flight, (unsigned long long)s->pacing_bytes, (unsigned long long)s->delivery_bytes, s->delivered,
            s->delivered_ce, (long long)s->lost, s->state, (unsigned long long)s->rwnd_limited_us, (unsigned long long)s->sndbuf_limited_us);
}

static void sample_flows(int64_t at) {
    pthread_mutex_lock(&lock);
    for (int i = 0; i < flow_count; i++) {
        struct flow *flow = &flows[i];
        struct counts total, *before = &flow->before;
        counts_of(flow, &total);
        fprintf(intervals, "%lld,%d,%llu,%llu,%llu,%llu\n", (long long)at, i, (unsigned long long)(total.delivered - before->delivered),
                (unsigned long long)(total.segments - before->segments), (unsigned long long)(total.retransmits - before->retransmits),
                (unsigned long long)(total.timeouts - before->timeouts));
        *before = total;
        if (flow->datagrams) {
            sample_datagrams(at, flow);
            continue;
        }
        int connections = flow->arrivals ? flow->arrivals->workers : flow->count;
        for (int number = 0; number < connections && number < SAMPLED_CONNECTIONS; number++) {
            struct sample sender = {0};
            if (flow->seen) sender = flow->seen[number].sender;
            for (struct session *s = flow->live; s; s = s->next)
                if (s->number == number) read_tcp_info(s->fd, &sender);
            sample_sender(at, i, number, &sender);
        }
    }
    pthread_mutex_unlock(&lock);
}

static void sample_queues(int64_t at) {
    for (int i = 0; i < queue_count; i++) {
        struct queue *q = &queues[i];
        fprintf(waiting, "%lld,%d,%u,%u,%.3f,%u,%u,%llu,%u,%u,%u,%lld,%lld,%lld\n", (long long)at, q->index, q->now.waiting, q->now.backlog, q->sum / looks,
                q->now.drops - q->before.drops, q->now.packets - q->before.packets, (unsigned long long)(q->now.bytes - q->before.bytes),
                q->now.early - q->before.early, q->now.marks - q->before.marks, q->now.overlimits - q->before.overlimits,
                q->now.fresh < 0 ? -1LL : (long long)(q->now.begun - q->before.begun), (long long)q->now.fresh, (long long)q->now.old);
        q->before = q->now;
        q->sum = 0;
    }
    for (int i = 0; i < link_count; i++) {
        uint64_t lost = links[i].total - links[i].before;
        if (!links[i].by_rule) lost = (uint32_t)lost;
        fprintf(losses, "%lld,%d,%llu,%llu\n", (long long)at, links[i].index, (unsigned long long)(links[i].polices ? 0 : lost),
                (unsigned long long)(links[i].polices ? lost : 0));
        links[i].before = links[i].total;
    }
    looks = 0;
}

static void show_progress(int64_t at) {
    static int64_t shown = -1;
    int64_t share = at * 200 / duration;
    if (share == shown) return;
    shown = share;
    fprintf(progress, "%.4f\n", at / (double)duration);
    fflush(progress);
}

void sample_all(void) {
    open_all();
    intervals = table("intervals", "t_ns,flow,bytes,segments_out,retransmits,timeouts");
    senders = table("tcp_info", "t_ns,flow,connection,cwnd_segments,ssthresh_segments,srtt_us,min_rtt_us,rto_us,in_flight_segments,"
                    "pacing_bytes,delivery_bytes,delivered_segments,delivered_ce_segments,lost_segments,state,rwnd_limited_us,sndbuf_limited_us");
    waiting = table("queues", "t_ns,transmitter,packets,bytes,mean_packets,drops,sent_packets,sent_bytes,early_drops,marks,"
                    "overlimits,new_flow_count,new_flows,old_flows");
    losses = table("links", "t_ns,link,lost,policed");
    counters = table("hosts", "t_ns,namespace,timeouts,tail_probes,window_probes");
    progress = table("progress", "0");
    int64_t step = interval / LOOKS_AN_INTERVAL > SHORTEST_LOOK ? interval / LOOKS_AN_INTERVAL : interval;
    sleep_until(start_at);
    sample_hosts(0);
    look(); /* what came before the start is not ours */
    for (int i = 0; i < queue_count; i++) queues[i].before = queues[i].now, queues[i].sum = 0;
    for (int i = 0; i < link_count; i++) links[i].before = links[i].total;
    looks = 0;
    open_connections();
    for (int64_t end = interval; looked_at < duration; end += interval) {
        if (end > duration) end = duration;
        while (looked_at < end) {
            looked_at = looked_at + step < end ? looked_at + step : end;
            sleep_until(start_at + looked_at);
            look();
            diag_sample();
            if (ended) duration = end = looked_at;
        }
        sample_flows(end);
        sample_queues(end);
        sample_hosts(end);
        sample_connections(end);
        show_progress(end);
    }
    fflush(0);
}
