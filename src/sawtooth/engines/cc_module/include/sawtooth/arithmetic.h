/* Comparison, division and bits. */
#ifndef SAWTOOTH_ARITHMETIC_H
#define SAWTOOTH_ARITHMETIC_H

#include <sawtooth/base.h>

#define SAWTOOTH_JOIN2(a, b) a##b
#define SAWTOOTH_JOIN(a, b) SAWTOOTH_JOIN2(a, b)

/* Each argument is evaluated once; names are fresh, so that one may stand within another. */
#define SAWTOOTH_PICK(x, y, operator, a, b)                                                                                  \
	({                                                                                                                   \
		__auto_type a = (x);                                                                                         \
		__auto_type b = (y);                                                                                         \
		a operator b ? a : b;                                                                                        \
	})
#define SAWTOOTH_PICK_UNIQUE(x, y, operator, n)                                                                              \
	SAWTOOTH_PICK(x, y, operator, SAWTOOTH_JOIN(sawtooth_a, n), SAWTOOTH_JOIN(sawtooth_b, n))
#define min(x, y) SAWTOOTH_PICK_UNIQUE(x, y, <, __COUNTER__)
#define max(x, y) SAWTOOTH_PICK_UNIQUE(x, y, >, __COUNTER__)
#define min_t(type, x, y) min((type)(x), (type)(y))
#define max_t(type, x, y) max((type)(x), (type)(y))
#define umin(x, y) min((u64)(x), (u64)(y))
#define umax(x, y) max((u64)(x), (u64)(y))
#define min3(x, y, z) min(min(x, y), z)
#define max3(x, y, z) max(max(x, y), z)
#define clamp(x, low, high) min(max(x, low), high)
#define clamp_t(type, x, low, high) min_t(type, max_t(type, x, low), high)
#define clamp_val(x, low, high) clamp_t(__typeof__(x), x, low, high)
#define SAWTOOTH_NOT_ZERO(x, y, a, b)                                                                                        \
	({                                                                                                                   \
		__auto_type a = (x);                                                                                         \
		__auto_type b = (y);                                                                                         \
		!a ? b : !b || a < b ? a : b;                                                                                \
	})
#define SAWTOOTH_NOT_ZERO_UNIQUE(x, y, n)                                                                                    \
	SAWTOOTH_NOT_ZERO(x, y, SAWTOOTH_JOIN(sawtooth_a, n), SAWTOOTH_JOIN(sawtooth_b, n))
/* The smaller of those that are not zero. */
#define min_not_zero(x, y) SAWTOOTH_NOT_ZERO_UNIQUE(x, y, __COUNTER__)
#define swap(x, y)                                                                                                           \
	do {                                                                                                                 \
		__typeof__(x) sawtooth_x = (x);                                                                              \
		(x) = (y);                                                                                                   \
		(y) = sawtooth_x;                                                                                            \
	} while (0)
/* Unsigned numbers are taken for signed ones: a difference that wrapped is as far from 0. */
static inline int sawtooth_abs(int x) { return x < 0 ? -x : x; }
static inline s64 sawtooth_abs64(s64 x) { return x < 0 ? -x : x; }
#define abs(x) __builtin_choose_expr(sizeof(x) <= sizeof(int), sawtooth_abs((int)(x)), sawtooth_abs64((s64)(x)))
#define abs_diff(x, y) (max(x, y) - min(x, y))

/* do_div: the quotient goes where the dividend was, the remainder is the value. */
#define do_div(n, divisor)                                                                                                   \
	({                                                                                                                   \
		u32 sawtooth_divisor = (divisor);                                                                            \
		u32 sawtooth_rest = (u32)((u64)(n) % sawtooth_divisor);                                                      \
		(n) = (u64)(n) / sawtooth_divisor;                                                                           \
		sawtooth_rest;                                                                                               \
	})
#define DIV_ROUND_UP(n, divisor) (((n) + (divisor) - 1) / (divisor))
#define DIV_ROUND_DOWN_ULL(n, divisor) ((u64)(n) / (u32)(divisor))
#define DIV_ROUND_UP_ULL(n, divisor) DIV_ROUND_DOWN_ULL((u64)(n) + (divisor) - 1, divisor)
#define DIV64_U64_ROUND_UP(n, divisor) (((u64)(n) + (divisor) - 1) / (u64)(divisor))
/* To the nearest; halves away from zero. The divisor is positive. */
#define DIV_ROUND_CLOSEST(n, divisor)                                                                                        \
	({                                                                                                                   \
		__typeof__(n) sawtooth_n = (n);                                                                              \
		__typeof__(divisor) sawtooth_d = (divisor);                                                                  \
		sawtooth_n > 0 ? (sawtooth_n + sawtooth_d / 2) / sawtooth_d : (sawtooth_n - sawtooth_d / 2) / sawtooth_d;    \
	})

static inline u64 div_u64(u64 n, u32 divisor) { return n / divisor; }
static inline s64 div_s64(s64 n, s32 divisor) { return n / divisor; }
static inline u64 div64_u64(u64 n, u64 divisor) { return n / divisor; }
static inline s64 div64_s64(s64 n, s64 divisor) { return n / divisor; }
#define div64_ul(n, divisor) div64_u64(n, divisor)
#define div64_long(n, divisor) div64_s64(n, divisor)
static inline u64 div_u64_rem(u64 n, u32 divisor, u32 *rest) { *rest = (u32)(n % divisor); return n / divisor; }
static inline u64 mul_u32_u32(u32 a, u32 b) { return (u64)a * b; }
static inline u64 mul_u64_u32_shr(u64 a, u32 factor, unsigned int shift) { return (u64)(((unsigned __int128)a * factor) >> shift); }
static inline u64 mul_u64_u32_div(u64 a, u32 factor, u32 divisor) { return (u64)((unsigned __int128)a * factor / divisor); }
static inline u64 mul_u64_u64_div_u64(u64 a, u64 b, u64 divisor) { return (u64)((unsigned __int128)a * b / divisor); }

/* The number of the highest bit that is set, from 1; 0 of 0. */
static inline int fls(unsigned int x) { return x ? 32 - __builtin_clz(x) : 0; }
static inline int fls64(u64 x) { return x ? 64 - __builtin_clzll(x) : 0; }
static inline unsigned int sawtooth_ffs(u64 x) { return x ? (unsigned int)__builtin_ctzll(x) : 64; }
#define __ffs(x) sawtooth_ffs(x)
#define __fls(x) ((unsigned long)fls64(x) - 1)
#define hweight32(x) ((unsigned int)__builtin_popcount(x))
#define hweight64(x) ((unsigned int)__builtin_popcountll(x))
#define ilog2(x) (fls64(x) - 1)
#define is_power_of_2(x) ((x) != 0 && ((x) & ((x) - 1)) == 0)
#define order_base_2(x) ((x) > 1 ? ilog2((x) - 1) + 1 : 0)

static inline unsigned long int_sqrt(unsigned long x)
{
	unsigned long root = 0;

	for (int bit = 31; bit >= 0; bit--) {
		unsigned long larger = root | 1UL << bit;

		if (larger * larger <= x)
			root = larger;
	}
	return root;
}

#endif
