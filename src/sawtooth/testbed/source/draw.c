/* Sizes and times that are drawn: the generator, the seeds and the distributions of the simulator (crates/net/src/rng.rs, hosts/arrivals.rs),
 * so that both engines ask for the same. */
#include "source.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LARGEST 1e15
#define LONGEST_MEANS 40.0

static uint64_t splitmix(uint64_t *state) {
    uint64_t z = mixed(*state);
    *state += 0x9e3779b97f4a7c15;
    return z;
}

void begin_random(struct random *random, uint64_t purpose, uint64_t index) {
    uint64_t state = seed;
    state = splitmix(&state) ^ purpose * 0xd6e8feb86659fd93 ^ index * 0xa0761d6478bd642f;
    for (int i = 0; i < 4; i++) random->state[i] = splitmix(&state);
}

static uint64_t turned(uint64_t value, int by) { return value << by | value >> (64 - by); }

/* xoshiro256** */
static uint64_t next(struct random *random) {
    uint64_t *s = random->state, result = turned(s[1] * 5, 7) * 9, t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = turned(s[3], 45);
    return result;
}

static double unit(struct random *random) { return ((next(random) >> 11) + 1) / (double)(1ull << 53); }

static int64_t within(double value, double low, double high) { return value < low ? low : value > high ? high : value; }

/* The size up to which a distribution has this share: pairs of bytes and parts per billion, evenly between two of them. */
static int64_t of_points(const int64_t *points, int count, double ppb) {
    int at = 0;
    while (at + 2 < count && points[at + 1] < ppb) at += 2;
    int64_t high = points[at] < 1 ? 1 : points[at];
    if (!at) return high;
    int64_t low = points[at - 2], width = points[at + 1] - points[at - 1];
    return within(round(low + (points[at] - low) * (ppb - points[at - 1]) / (width < 1 ? 1 : width)), 1, high);
}

int64_t draw_size(const struct sizes *sizes, struct random *random) {
    const int64_t *given = sizes->given;
    if (!strcmp(sizes->kind, "lognormal")) {
        double sigma = given[1] / 1e9, radius = sqrt(-2 * log(unit(random)));
        double normal = radius * cos(2 * M_PI * unit(random));
        return within(round(exp(log(given[0]) - sigma * sigma / 2 + sigma * normal)), 1, LARGEST);
    }
    if (!strcmp(sizes->kind, "pareto")) {
        double least = given[0], most = given[1], shape = given[2] / 1e9;
        double cut = 1 - pow(least / most, shape);
        return within(round(least * pow(1 - (1 - unit(random)) * cut, -1 / shape)), least, most);
    }
    if (!strcmp(sizes->kind, "cdf")) return of_points(given, sizes->count, unit(random) * 1e9);
    return given[0];
}

int64_t draw_wait(int64_t ns, int exponential, struct random *random) {
    return exponential ? round(ns * fmin(-log(unit(random)), LONGEST_MEANS)) : ns;
}
