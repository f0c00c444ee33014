/* Time. HZ is that of the sending host in the scenario; the machine has been up for a while when the scenario begins, so that
 * no time is 0, which modules take for "never". */
#ifndef SAWTOOTH_TIME_H
#define SAWTOOTH_TIME_H

#include <sawtooth/arithmetic.h>

#ifndef HZ
#error "HZ is the compiler's -D option"
#endif
#define CONFIG_HZ HZ
#define USER_HZ 100
#define MSEC_PER_SEC 1000L
#define USEC_PER_MSEC 1000L
#define NSEC_PER_USEC 1000L
#define USEC_PER_SEC 1000000L
#define NSEC_PER_MSEC 1000000L
#define NSEC_PER_SEC 1000000000L

typedef s64 ktime_t;

extern unsigned long jiffies;
#define jiffies_64 ((u64)jiffies)
#define get_jiffies_64() ((u64)jiffies)
#define INITIAL_JIFFIES ((unsigned long)(unsigned int)(-300 * HZ))
#define MAX_JIFFY_OFFSET ((LONG_MAX >> 1) - 1)

u64 sawtooth_now_ns(void);
#define ktime_get() ((ktime_t)sawtooth_now_ns())
#define ktime_get_ns() sawtooth_now_ns()
#define ktime_get_boottime_ns() sawtooth_now_ns()
#define ktime_get_mono_fast_ns() sawtooth_now_ns()
#define local_clock() sawtooth_now_ns()
#define sched_clock() sawtooth_now_ns()
#define ktime_to_ns(t) ((s64)(t))
#define ktime_to_us(t) ((s64)(t) / NSEC_PER_USEC)
#define ktime_to_ms(t) ((s64)(t) / NSEC_PER_MSEC)
#define ktime_sub(a, b) ((ktime_t)((a) - (b)))
#define ktime_us_delta(a, b) ktime_to_us(ktime_sub(a, b))
#define ktime_after(a, b) ((a) > (b))
#define ktime_before(a, b) ((a) < (b))

/* Ticks; a part of one counts as one. */
static inline unsigned long usecs_to_jiffies(unsigned int us) { return ((u64)us * HZ + USEC_PER_SEC - 1) / USEC_PER_SEC; }
static inline unsigned long msecs_to_jiffies(unsigned int ms)
{
	return (int)ms < 0 ? MAX_JIFFY_OFFSET : ((u64)ms * HZ + MSEC_PER_SEC - 1) / MSEC_PER_SEC;
}
static inline unsigned long nsecs_to_jiffies(u64 ns) { return ns / (NSEC_PER_SEC / HZ); }
static inline unsigned int jiffies_to_usecs(unsigned long ticks) { return (unsigned int)((u64)ticks * USEC_PER_SEC / HZ); }
static inline unsigned int jiffies_to_msecs(unsigned long ticks) { return (unsigned int)((u64)ticks * MSEC_PER_SEC / HZ); }
static inline u64 jiffies_to_nsecs(unsigned long ticks) { return (u64)ticks * (NSEC_PER_SEC / HZ); }

#define time_after(a, b) ((long)((b) - (a)) < 0)
#define time_before(a, b) time_after(b, a)
#define time_after_eq(a, b) ((long)((a) - (b)) >= 0)
#define time_before_eq(a, b) time_after_eq(b, a)
#define time_after32(a, b) ((s32)((u32)(b) - (u32)(a)) < 0)
#define time_before32(b, a) time_after32(a, b)
#define time_is_before_jiffies(a) time_after(jiffies, a)
#define time_is_after_jiffies(a) time_before(jiffies, a)
#define time_in_range(a, from, to) (time_after_eq(a, from) && time_before_eq(a, to))

#endif
