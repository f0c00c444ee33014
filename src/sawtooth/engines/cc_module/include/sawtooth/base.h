/* Types, attributes and constants that a module of Linux takes for granted. Names and meanings are the kernel's; the text is
 * not. */
#ifndef SAWTOOTH_BASE_H
#define SAWTOOTH_BASE_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Names of types, not macros: its name gives a parameter's type. */
typedef _Bool bool;
enum { false, true };

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef unsigned long long u64;
typedef int8_t s8;
typedef int16_t s16;
typedef int32_t s32;
typedef long long s64;
typedef u8 __u8;
typedef u16 __u16;
typedef u32 __u32;
typedef u64 __u64;
typedef s8 __s8;
typedef s16 __s16;
typedef s32 __s32;
typedef s64 __s64;
typedef unsigned int uint;
typedef unsigned short ushort;
typedef unsigned long ulong;
typedef u16 __be16;
typedef u32 __be32;
typedef unsigned int gfp_t;

#define U8_MAX UINT8_MAX
#define U16_MAX UINT16_MAX
#define U32_MAX UINT32_MAX
#define U64_MAX (~0ULL)
#define S8_MAX INT8_MAX
#define S16_MAX INT16_MAX
#define S32_MAX INT32_MAX
#define S32_MIN INT32_MIN
#define S64_MAX LLONG_MAX
#define S64_MIN LLONG_MIN
#define U32_C(x) UINT32_C(x)
#define U64_C(x) x##ULL

/* Hints for a compiler or a linker that do not matter here. */
#define __init
#define __exit
#define __initdata
#define __read_mostly
#define __ro_after_init
#define ____cacheline_aligned_in_smp
#define __cacheline_aligned
#define __bpf_kfunc __attribute__((__unused__))
#define __maybe_unused __attribute__((__unused__))
#define __always_unused __attribute__((__unused__))
#define __used __attribute__((__used__))
#define __pure __attribute__((__pure__))
#define __packed __attribute__((__packed__))
#define __aligned(x) __attribute__((__aligned__(x)))
#define __printf(a, b) __attribute__((__format__(printf, a, b)))
#undef __always_inline
#define __always_inline inline __attribute__((__always_inline__))
#define noinline __attribute__((__noinline__))
#define fallthrough __attribute__((__fallthrough__))
#define __rcu
#define __user
#define __force
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#define barrier() __asm__ __volatile__("" ::: "memory")

/* One thread runs a simulation. */
#define READ_ONCE(x) (*(const volatile __typeof__(x) *)&(x))
#define WRITE_ONCE(x, value) ((void)(*(volatile __typeof__(x) *)&(x) = (value)))
#define cmpxchg(where, before, after)                                                                                        \
	({                                                                                                                   \
		__typeof__(*(where)) sawtooth_was = *(where);                                                                \
		if (sawtooth_was == (before))                                                                                \
			*(where) = (after);                                                                                  \
		sawtooth_was;                                                                                                \
	})
#define smp_store_release(where, value) WRITE_ONCE(*(where), value)
#define smp_load_acquire(where) READ_ONCE(*(where))

#define BUILD_BUG_ON(condition) _Static_assert(!(condition), "BUILD_BUG_ON: " #condition)
#define BUILD_BUG_ON_MSG(condition, text) _Static_assert(!(condition), text)
#define static_assert(...) _Static_assert(__VA_ARGS__, #__VA_ARGS__)
#define IS_ENABLED(option) 0
#define IS_BUILTIN(option) 0
#define IS_MODULE(option) 0
#define sizeof_field(type, member) sizeof(((type *)0)->member)
#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))
#define container_of(pointer, type, member) ((type *)((char *)(pointer) - offsetof(type, member)))
#define BIT(n) (1UL << (n))
#define BIT_ULL(n) (1ULL << (n))

#define EPERM 1
#define ENOENT 2
#define ENOMEM 12
#define EBUSY 16
#define EEXIST 17
#define EINVAL 22
#define ERANGE 34
#define ENAMETOOLONG 36
#define EOPNOTSUPP 95

#endif
