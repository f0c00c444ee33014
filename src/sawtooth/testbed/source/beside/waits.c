/* For iperf3's client in a guest (LD_PRELOAD). Before and after its test it waits for a message on its control
 * connection by select(), which returns at once: the data connection could be written, or a timer is due that runs
 * during the test only. It asks again and again. In virtual time a question takes less than a microsecond, so a round
 * trip is some hundred thousand of them, and a message that is lost and sent again after a second seems never to come.
 * So a client that has asked in vain that often, and wrote nothing meanwhile, pauses before each further question. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/select.h>
#include <time.h>
#include <unistd.h>

enum { PATIENCE = 1000, PAUSE_NS = 1000000 };

static int in_vain; /* questions since the last answer, and since it last wrote */

static int any(int count, fd_set *set) {
    for (int one = 0; set && one < count; one++)
        if (FD_ISSET(one, set)) return 1;
    return 0;
}

ssize_t write(int to, const void *bytes, size_t count) {
    static ssize_t (*next)(int, const void *, size_t);
    if (!next) *(void **)&next = dlsym(RTLD_NEXT, "write");
    in_vain = 0;
    return next(to, bytes, count);
}

int select(int count, fd_set *readable, fd_set *writable, fd_set *failed, struct timeval *timeout) {
    static int (*next)(int, fd_set *, fd_set *, fd_set *, struct timeval *);
    if (!next) *(void **)&next = dlsym(RTLD_NEXT, "select");
    if (in_vain >= PATIENCE) nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, 0);
    int at_once = timeout && !timeout->tv_sec && !timeout->tv_usec;
    int ready = next(count, readable, writable, failed, timeout);
    int nothing = ready > 0 ? !any(count, readable) : !ready && at_once;
    in_vain = !nothing ? 0 : in_vain < PATIENCE ? in_vain + 1 : PATIENCE;
    return ready;
}
