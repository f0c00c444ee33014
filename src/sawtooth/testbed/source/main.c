/* Reads what to do (argv[1]) and does it: native flows, probes, other programs at their times, and samples of all.
 *
 * One line an order; the first word says what. Written by testbed/traffic.py, which has the meaning of each. */
#include "source.h"

#include <errno.h>
#include <arpa/inet.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

int64_t start_at, duration, interval;
uint64_t seed;
struct flow *flows;
int flow_count;
pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static char *directory = ".", **namespaces;
static int namespace_count;
static int64_t lead = SECOND, grace = 30 * SECOND;

struct program {
    int namespace;
    int64_t start;
    char *out;
    char **words;
    pid_t pid;
    int done;
};
static struct program *programs;
static int program_count;

static void raise_open_files(void) { /* two a connection: to what the kernel has for one process, or else to the hard limit */
    struct rlimit files;
    unsigned long long most = 0;
    FILE *sysctl = fopen("/proc/sys/fs/nr_open", "re");
    if (sysctl && fscanf(sysctl, "%llu", &most) != 1) most = 0;
    if (sysctl) fclose(sysctl);
    getrlimit(RLIMIT_NOFILE, &files);
    if (most > files.rlim_max && !setrlimit(RLIMIT_NOFILE, &(struct rlimit){most, most})) return;
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
}

static int connections(const struct flow *flow) { return flow->arrivals ? flow->arrivals->workers : flow->count; }

static void blame_flow(void) { /* with most connections: whose field there is to lower */
    const struct flow *most = flows;
    for (int i = 1; i < flow_count; i++)
        if (connections(&flows[i]) > connections(most)) most = &flows[i];
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    fprintf(stderr, "flows.%d.%s: more than %llu files are open, two a connection\n", most->index,
            most->arrivals ? "source.open" : "count", (unsigned long long)files.rlim_cur);
}

_Noreturn void fail(const char *what) {
    if (flow_count && (errno == EMFILE || errno == ENFILE)) blame_flow(), exit(3);
    fprintf(stderr, "source: %s: %s\n", what, errno ? strerror(errno) : "cannot be read");
    exit(1);
}

int64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * SECOND + t.tv_nsec;
}

void sleep_until(int64_t at) {
    struct timespec t = {at / SECOND, at % SECOND};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, 0) == EINTR)
        ;
}

void enter(int namespace) {
    int fd = open(namespaces[namespace], O_RDONLY | O_CLOEXEC);
    if (fd < 0 || setns(fd, CLONE_NEWNET)) fail(namespaces[namespace]);
    close(fd);
}

void spawn_thread(void *(*body)(void *), void *argument) {
    pthread_t thread;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 65536);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    if ((errno = pthread_create(&thread, &attributes, body, argument))) fail("pthread_create");
}

FILE *table(const char *name, const char *header) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.csv", directory, name);
    FILE *file = fopen(path, "we");
    if (!file) fail(path);
    setvbuf(file, 0, _IOFBF, 1 << 18);
    fprintf(file, "%s\n", header);
    return file;
}

uint64_t mixed(uint64_t z) { /* splitmix64's finaliser: neighbouring seeds give unrelated numbers */
    z += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

static int64_t number(char **rest) {
    char *word = strtok_r(0, " \n", rest), *end;
    if (!word) fail("a number");
    errno = 0;
    int64_t value = strtoll(word, &end, 0);
    if (errno || *end) fail(word);
    return value;
}

static char *word(char **rest) {
    char *found = strtok_r(0, " \n", rest);
    if (!found) fail("a word");
    return strdup(found);
}

static void *grown(void *array, int count, size_t size) {
    array = realloc(array, (count + 1) * size);
    if (!array) fail("memory");
    memset((char *)array + count * size, 0, size);
    return array;
}

static void add_flow(char **rest) {
    flows = grown(flows, flow_count, sizeof *flows);
    struct flow *flow = &flows[flow_count];
    flow->index = flow_count++;
    flow->native = number(rest);
    snprintf(flow->cc, sizeof flow->cc, "%s", word(rest));
    flow->from = number(rest);
    flow->to = number(rest);
    if (inet_pton(AF_INET, word(rest), &flow->source) != 1 || inet_pton(AF_INET, word(rest), &flow->target) != 1) fail("an address");
    flow->port = number(rest);
    flow->first_port = number(rest);
    flow->count = number(rest);
    flow->start = number(rest);
    flow->duration = number(rest);
    flow->bytes = number(rest);
    flow->life_low = number(rest);
    flow->life_high = number(rest);
    for (struct paced *paced = flow->paced; paced < flow->paced + 2; paced++) {
        paced->bytes = number(rest);
        paced->rate = number(rest);
        paced->on = number(rest);
        paced->off = number(rest);
        paced->partial = number(rest);
    }
    if (!flow->native && !(flow->seen = calloc(flow->count, sizeof *flow->seen))) fail("memory");
}

static int64_t *numbers(char **rest, int *count) { /* as many as the first says */
    *count = number(rest);
    int64_t *all = calloc(*count + 1, sizeof *all);
    if (!all) fail("memory");
    for (int i = 0; i < *count; i++) all[i] = number(rest);
    return all;
}

/* "asks FLOW KIND SIZES N ... THINK EXPONENTIAL" and what the kind has. */
static void add_reader(char **rest) {
    int index = number(rest);
    char *kind = word(rest);
    struct sizes sizes = {.kind = word(rest)};
    sizes.given = numbers(rest, &sizes.count);
    int64_t think = number(rest), exponential = number(rest);
    struct asks *asks = new_asks(kind, sizes, think, exponential);
    if (!strcmp(kind, "pages")) {
        int64_t objects = number(rest), connections = number(rest);
        read_pages(asks, objects, connections, number(rest));
    } else if (!strcmp(kind, "video")) {
        int64_t segment = number(rest), buffer = number(rest);
        int by_throughput = number(rest), count;
        int64_t *rates = numbers(rest, &count);
        read_video(asks, segment, buffer, by_throughput, rates, count);
    }
    add_asks(index, asks);
}

static void add_program(char *rest) { /* "run NS START OUT<tab>WORD<tab>WORD…" */
    programs = grown(programs, program_count, sizeof *programs);
    struct program *program = &programs[program_count++];
    char *tab = strchr(rest, '\t'), *state = 0;
    if (!tab) fail("run");
    *tab = 0;
    tab[strcspn(tab + 1, "\n") + 1] = 0;
    char *first = strtok_r(rest, " ", &state);
    program->namespace = atoi(first);
    program->start = number(&state);
    program->out = word(&state);
    int count = 0;
    for (char *one = strtok_r(tab + 1, "\t", &state); one; one = strtok_r(0, "\t", &state)) {
        program->words = grown(program->words, count, sizeof *program->words);
        program->words[count++] = strdup(one);
    }
    program->words = grown(program->words, count, sizeof *program->words);
}

static void *run_program(void *argument) {
    struct program *program = argument;
    enter(program->namespace);
    sleep_until(start_at + program->start);
    char path[4096];
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    snprintf(path, sizeof path, "%s/%s", directory, program->out);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 1, path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    strncat(path, ".err", sizeof path - strlen(path) - 1);
    posix_spawn_file_actions_addopen(&actions, 2, path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if ((errno = posix_spawnp(&program->pid, program->words[0], &actions, 0, program->words, environ))) fail(program->words[0]);
    int status;
    waitpid(program->pid, &status, 0);
    program->done = 1;
    return 0;
}

static void end_programs(void) { /* iperf3 ends by itself a little after the run; what does not is stopped */
    int64_t patience = now() + grace;
    int64_t read = now() + SECOND + SECOND / 5; /* tcpdump gets what it captured within a second, and drops the rest */
    int left = 1;
    for (int round = 0; left; round++) {
        left = 0;
        for (int i = 0; i < program_count; i++) {
            if (programs[i].done || !programs[i].pid) continue;
            left = 1;
            if (!strcmp(programs[i].words[0], "tcpdump")) {
                if (now() >= read) kill(programs[i].pid, SIGINT);
            } else if (now() > patience) kill(programs[i].pid, round % 2 ? SIGKILL : SIGTERM);
        }
        if (left) sleep_until(now() + SECOND / 10);
    }
}

volatile sig_atomic_t ended;

static void end_early(int signal) { /* the run ends at the next look */
    (void)signal;
    ended = 1;
}

static void order(char *line) {
    char *rest = 0, *first = strtok_r(line, " \n", &rest);
    if (!first) return;
    if (!strcmp(first, "run")) add_program(rest);
    else if (!strcmp(first, "duration")) duration = number(&rest);
    else if (!strcmp(first, "interval")) interval = number(&rest);
    else if (!strcmp(first, "seed")) seed = number(&rest);
    else if (!strcmp(first, "grace")) grace = number(&rest);
    else if (!strcmp(first, "lead")) lead = number(&rest);
    else if (!strcmp(first, "start")) start_at = number(&rest);
    else if (!strcmp(first, "watch")) watch_connections(number(&rest));
    else if (!strcmp(first, "directory")) directory = strdup(rest), directory[strcspn(directory, "\n")] = 0;
    else if (!strcmp(first, "namespace")) {
        namespaces = grown(namespaces, namespace_count, sizeof *namespaces);
        namespaces[namespace_count++] = word(&rest);
    } else if (!strcmp(first, "flow")) add_flow(&rest);
    else if (!strcmp(first, "asks")) add_reader(&rest);
    else if (!strcmp(first, "probe")) add_probe(rest);
    else if (!strcmp(first, "datagrams")) {
        int index = number(&rest), poisson = number(&rest);
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", directory, word(&rest));
        add_datagrams(index, poisson, path);
    } else if (!strcmp(first, "arrivals")) {
        int index = number(&rest), open = number(&rest);
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", directory, word(&rest));
        add_arrivals(index, path, open);
    } else if (!strcmp(first, "host")) add_host(number(&rest));
    else if (!strcmp(first, "change")) {
        int64_t at = number(&rest);
        int namespace = number(&rest);
        char *device = word(&rest);
        uint32_t handle = number(&rest), parent = number(&rest);
        char *options = word(&rest);
        add_change(at, namespace, device, handle, parent, options);
        free(device);
        free(options);
    } else if (!strcmp(first, "line")) {
        int index = number(&rest), namespace = number(&rest);
        char *from = word(&rest), *to = word(&rest);
        int64_t packets = number(&rest), bytes = number(&rest), overhead = number(&rest), opportunity = number(&rest),
                every = number(&rest);
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", directory, word(&rest));
        add_line(index, namespace, from, to, packets, bytes, overhead, opportunity, every, path);
        char *device = strtok_r(0, " \n", &rest);
        if (device) {
            uint32_t handle = number(&rest), parent = number(&rest);
            add_valve(device, handle, parent, word(&rest));
        } else add_queue(index, namespace, 0, 0, 0);
    } else {
        int index = number(&rest), namespace = number(&rest);
        char *name = word(&rest);
        if (!strcmp(first, "queue")) {
            uint32_t handle = number(&rest);
            add_queue(index, namespace, name, handle, number(&rest));
        } else if (!strcmp(first, "link") || !strcmp(first, "policer")) {
            uint32_t handle = number(&rest);
            add_link(index, namespace, name, handle, number(&rest), !strcmp(first, "policer"));
        } else if (!strcmp(first, "counter")) add_counter(index, namespace, name);
        else fail(first);
    }
}

int main(int argc, char **argv) {
    if (argc != 2) fail("usage: source ORDERS");
    FILE *orders = fopen(argv[1], "re");
    if (!orders) fail(argv[1]);
    char *line = 0;
    size_t room = 0;
    while (getline(&line, &room, orders) > 0) order(line);
    fclose(orders);
    raise_open_files();
    signal(SIGPIPE, SIG_IGN);
    signal(SIGTERM, end_early);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_TIMERSLACK, 1ul); /* ns: sleep to the time that was meant */
    open_flow_tables();
    diag_open();
    /* A whole second of the clock, so that runs do not differ by where the kernel's timer ticks fall. */
    if (!start_at) start_at = (now() / SECOND + 1) * SECOND + lead;
    for (int i = 0; i < program_count; i++) spawn_thread(run_program, &programs[i]);
    start_lines();
    start_changes();
    start_probes();
    for (int i = 0; i < flow_count; i++) start_flow(&flows[i]);
    sample_all();
    report_flows_end();
    flush_probes();
    end_programs();
    fflush(0);
    _exit(0);
}
