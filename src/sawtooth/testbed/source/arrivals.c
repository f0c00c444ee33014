/* Transfers that come by themselves, each over a separate connection: workers of which one at a time waits for the next.
 *
 * Their times (since t = 0) and bytes are in a file, two 64-bit numbers each: who wrote it drew them. */
#include "source.h"

#include <errno.h>
#include <stdlib.h>

struct transfer { int64_t at, bytes; };

void add_arrivals(int index, const char *path, int open) {
    if (index < 0 || index >= flow_count) fail("arrivals");
    struct flow *flow = &flows[index];
    struct arrivals *arrivals = flow->arrivals = calloc(1, sizeof *arrivals);
    if (!arrivals || !(arrivals->file = fopen(path, "re"))) fail(path);
    arrivals->open = open;
    pthread_cond_init(&arrivals->turn, 0);
}

static void *work(void *argument) {
    struct flow *flow = argument;
    struct arrivals *arrivals = flow->arrivals;
    enter(flow->from);
    pthread_mutex_lock(&lock);
    int number = arrivals->workers - 1; /* counted by who started this one, which waits for its turn now */
    for (;;) {
        arrivals->idle++;
        while (arrivals->waiting) pthread_cond_wait(&arrivals->turn, &lock);
        arrivals->idle--;
        struct transfer next;
        if (fread(&next, sizeof next, 1, arrivals->file) != 1) break;
        int generation = arrivals->come++;
        arrivals->waiting = 1;
        pthread_mutex_unlock(&lock);
        sleep_until(start_at + next.at);
        pthread_mutex_lock(&lock);
        arrivals->waiting = 0;
        if (arrivals->idle) pthread_cond_signal(&arrivals->turn);
        else if (arrivals->workers < arrivals->open) {
            arrivals->workers++;
            spawn_thread(work, flow);
        }
        pthread_mutex_unlock(&lock);
        hold_session(flow, number, generation, next.bytes, INT64_MAX, 0);
        pthread_mutex_lock(&lock);
    }
    pthread_cond_broadcast(&arrivals->turn);
    pthread_mutex_unlock(&lock);
    return 0;
}

void start_arrivals(struct flow *flow) {
    flow->arrivals->workers = 1;
    spawn_thread(work, flow);
}
