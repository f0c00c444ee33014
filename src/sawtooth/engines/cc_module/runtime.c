/* What the headers declare, compiled together with each module; and what the simulator looks up in the result. */
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <sawtooth/tcp.h>

/* Set before each hook. */
unsigned long jiffies;
struct tcp_sock *sawtooth_current;

/* Offsets by which the simulator tells that it means the same structures. */
const u32 sawtooth_layout[] = {
	sizeof(struct tcp_sock),
	sizeof(struct tcp_congestion_ops),
	sizeof(struct rate_sample),
	sizeof(struct ack_sample),
	offsetof(struct tcp_sock, inet_conn.icsk_ca_ops),
	offsetof(struct tcp_sock, inet_conn.icsk_ca_priv),
	offsetof(struct tcp_sock, inet_conn.icsk_ca_state),
	offsetof(struct tcp_sock, tcp_mstamp),
	offsetof(struct tcp_sock, snd_una),
	offsetof(struct tcp_sock, snd_cwnd),
	offsetof(struct tcp_sock, delivered),
	offsetof(struct tcp_sock, rx_opt),
	offsetof(struct tcp_sock, sawtooth_random),
	offsetof(struct tcp_congestion_ops, undo_cwnd),
	offsetof(struct tcp_congestion_ops, name),
	offsetof(struct tcp_congestion_ops, flags),
	offsetof(struct rate_sample, rtt_us),
	offsetof(struct rate_sample, is_ack_delayed),
};

u64 sawtooth_now_ns(void) { return sawtooth_current ? sawtooth_current->tcp_clock_cache : 0; }

struct net *sock_net(const struct sock *sk)
{
	static struct net net = { .ipv4 = { .sysctl_tcp_min_tso_segs = 2, .sysctl_tcp_tso_rtt_log = 9 } };

	(void)sk;
	return &net;
}

/* --- beginning, registration --- */

static struct sawtooth_beginning *beginnings;

void sawtooth_add_beginning(struct sawtooth_beginning *one)
{
	one->next = beginnings;
	beginnings = one;
}

/* Runs what module_init named, of each file; the first refusal. -ENOENT where there is none. */
int sawtooth_begin(void)
{
	int refused = beginnings ? 0 : -ENOENT;

	for (struct sawtooth_beginning *one = beginnings; one && !refused; one = one->next)
		refused = one->begin();
	return refused;
}

#define MOST 16
const struct tcp_congestion_ops *sawtooth_registered[MOST];
u32 sawtooth_count;
/* Why the last one was refused; for people. */
char sawtooth_refusal[200];

static int refuse(int code, const char *why, const char *name)
{
	snprintf(sawtooth_refusal, sizeof(sawtooth_refusal), why, name);
	return code;
}

int tcp_register_congestion_control(struct tcp_congestion_ops *ops)
{
	if (!memchr(ops->name, 0, sizeof(ops->name)))
		return refuse(-ENAMETOOLONG, "its name is longer than 15 characters%s", "");
	if (!ops->name[0])
		return refuse(-EINVAL, "it has no name%s", "");
	for (const char *at = ops->name; *at; at++)
		if (!isalnum((unsigned char)*at) && *at != '_' && *at != '-')
			return refuse(-EINVAL, "its name has more than letters, digits, _ and -%s", "");
	if (!ops->ssthresh || !ops->undo_cwnd || !(ops->cong_avoid || ops->cong_control))
		return refuse(-EINVAL, "\"%s\" lacks ssthresh, undo_cwnd, or one of cong_avoid and cong_control", ops->name);
	for (u32 i = 0; i < sawtooth_count; i++)
		if (!strcmp(sawtooth_registered[i]->name, ops->name))
			return refuse(-EEXIST, "\"%s\" is registered twice", ops->name);
	if (sawtooth_count == MOST)
		return refuse(-EBUSY, "it registers too many: \"%s\"", ops->name);
	sawtooth_registered[sawtooth_count++] = ops;
	return 0;
}

void tcp_unregister_congestion_control(struct tcp_congestion_ops *ops) { (void)ops; }

/* --- parameters --- */

static struct kernel_param *parameters;

void sawtooth_add_parameter(struct kernel_param *parameter)
{
	struct kernel_param **end = &parameters;

	while (*end)
		end = &(*end)->next;
	*end = parameter;
}

/* The name of the n-th, and of which type it is; NULL after the last. */
const char *sawtooth_parameter(u32 n, const char **type)
{
	struct kernel_param *one = parameters;

	while (one && n--)
		one = one->next;
	*type = one ? one->type : NULL;
	return one ? one->name : NULL;
}

int sawtooth_set_parameter(const char *name, const char *value)
{
	for (struct kernel_param *one = parameters; one; one = one->next)
		if (!strcmp(one->name, name))
			return one->ops->set ? one->ops->set(value, one) : -EPERM;
	return -ENOENT;
}

static int whole(const char *text, unsigned int base, s64 least, s64 most, s64 *result)
{
	char *end;

	*result = strtoll(text, &end, (int)base);
	if (end == text || (*end && strcmp(end, "\n")))
		return -EINVAL;
	return *result < least || *result > most ? -ERANGE : 0;
}

static int natural(const char *text, unsigned int base, u64 most, u64 *result)
{
	char *end;

	*result = strtoull(text, &end, (int)base);
	if (end == text || strchr(text, '-') || (*end && strcmp(end, "\n")))
		return -EINVAL;
	return *result > most ? -ERANGE : 0;
}

#define WHOLE(kind, c, least, most)                                                                                          \
	int param_set_##kind(const char *value, const struct kernel_param *parameter)                                        \
	{                                                                                                                    \
		s64 number;                                                                                                  \
		int refused = whole(value, 0, least, most, &number);                                                         \
                                                                                                                             \
		if (!refused)                                                                                                \
			*(c *)parameter->arg = (c)number;                                                                    \
		return refused;                                                                                              \
	}                                                                                                                    \
	int param_get_##kind(char *buffer, const struct kernel_param *parameter)                                             \
	{                                                                                                                    \
		return sprintf(buffer, "%lld\n", (s64)*(c *)parameter->arg);                                                 \
	}                                                                                                                    \
	const struct kernel_param_ops param_ops_##kind = { .set = param_set_##kind, .get = param_get_##kind }
#define NATURAL(kind, c, most)                                                                                               \
	int param_set_##kind(const char *value, const struct kernel_param *parameter)                                        \
	{                                                                                                                    \
		u64 number;                                                                                                  \
		int refused = natural(value, 0, most, &number);                                                              \
                                                                                                                             \
		if (!refused)                                                                                                \
			*(c *)parameter->arg = (c)number;                                                                    \
		return refused;                                                                                              \
	}                                                                                                                    \
	int param_get_##kind(char *buffer, const struct kernel_param *parameter)                                             \
	{                                                                                                                    \
		return sprintf(buffer, "%llu\n", (u64)*(c *)parameter->arg);                                                 \
	}                                                                                                                    \
	const struct kernel_param_ops param_ops_##kind = { .set = param_set_##kind, .get = param_get_##kind }
WHOLE(short, short, SHRT_MIN, SHRT_MAX);
WHOLE(int, int, INT_MIN, INT_MAX);
WHOLE(long, long, LONG_MIN, LONG_MAX);
NATURAL(byte, unsigned char, UCHAR_MAX);
NATURAL(ushort, unsigned short, USHRT_MAX);
NATURAL(uint, unsigned int, UINT_MAX);
NATURAL(hexint, unsigned int, UINT_MAX);
NATURAL(ulong, unsigned long, ULONG_MAX);
NATURAL(ullong, unsigned long long, ULLONG_MAX);

int kstrtobool(const char *text, bool *result)
{
	bool on = strchr("yYtT1", text[0]) || !strncmp(text, "on", 2), off = strchr("nNfF0", text[0]) || !strncmp(text, "of", 2);

	if (!text[0] || on == off)
		return -EINVAL;
	*result = on;
	return 0;
}

int param_set_bool(const char *value, const struct kernel_param *parameter) { return kstrtobool(value, parameter->arg); }

int param_get_bool(char *buffer, const struct kernel_param *parameter)
{
	return sprintf(buffer, "%c\n", *(bool *)parameter->arg ? 'Y' : 'N');
}

const struct kernel_param_ops param_ops_bool = { .set = param_set_bool, .get = param_get_bool };

int param_set_charp(const char *value, const struct kernel_param *parameter)
{
	*(char **)parameter->arg = strdup(value);
	return 0;
}

int param_get_charp(char *buffer, const struct kernel_param *parameter)
{
	return sprintf(buffer, "%s\n", *(char **)parameter->arg);
}

const struct kernel_param_ops param_ops_charp = { .set = param_set_charp, .get = param_get_charp };

int kstrtoint(const char *text, unsigned int base, int *result)
{
	s64 number;
	int refused = whole(text, base, INT_MIN, INT_MAX, &number);

	if (!refused)
		*result = (int)number;
	return refused;
}

int kstrtouint(const char *text, unsigned int base, unsigned int *result)
{
	u64 number;
	int refused = natural(text, base, UINT_MAX, &number);

	if (!refused)
		*result = (unsigned int)number;
	return refused;
}

int kstrtou32(const char *text, unsigned int base, u32 *result) { return kstrtouint(text, base, result); }

int param_set_uint_minmax(const char *value, const struct kernel_param *parameter, unsigned int least, unsigned int most)
{
	unsigned int number;

	if (kstrtouint(value, 0, &number) || number < least || number > most)
		return -EINVAL;
	*(unsigned int *)parameter->arg = number;
	return 0;
}

/* --- memory, words, randomness --- */

void *sawtooth_memory(size_t count, size_t size) { return calloc(count, size); }
void kfree(const void *memory) { free((void *)(uintptr_t)memory); }

int printk(const char *format, ...)
{
	u64 us = sawtooth_now_ns() / 1000;
	va_list values;
	int written;

	fprintf(stderr, "[%5llu.%06llu] ", us / 1000000, us % 1000000);
	va_start(values, format);
	written = vfprintf(stderr, format, values);
	va_end(values);
	if (!*format || format[strlen(format) - 1] != '\n')
		fputc('\n', stderr);
	return written;
}

int no_printk(const char *format, ...) { return (void)format, 0; }

/* SplitMix64 (Steele, Lea and Flood, 2014), a stream a connection, as that of the simulator's own BBR. */
u64 sawtooth_random(void)
{
	static u64 without_connection;
	u64 *state = sawtooth_current ? &sawtooth_current->sawtooth_random : &without_connection;
	u64 z = *state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

u32 get_random_u32_below(u32 bound) { return (u32)(((unsigned __int128)sawtooth_random() * bound) >> 64); }

void get_random_bytes(void *where, size_t size)
{
	for (u8 *byte = where; size; byte++, size--)
		*byte = get_random_u8();
}

/* --- a stream's extreme --- */

u32 minmax_reset(struct minmax *seen, u32 t, u32 value)
{
	for (int i = 0; i < 3; i++)
		seen->s[i] = (struct minmax_sample){ t, value };
	return value;
}

/* What is as good as an older one outlives it; the others make room as they leave the window. Two of the same time are worth
 * one: the second is wanted from after the window's first quarter, the third from its second half. `flip` is ~0 for a minimum. */
static u32 running(struct minmax *seen, u32 window, u32 t, u32 value, u32 flip)
{
	const struct minmax_sample newest = { t, value };
	const u32 wanted_from[] = { 0, window / 4, window / 2 };
	u32 age;

	for (int i = 0; i < 3; i++)
		if ((seen->s[i].v ^ flip) <= (value ^ flip))
			seen->s[i] = newest;
	age = t - seen->s[0].t;
	if (age <= window) {
		for (int i = 1; i < 3; i++)
			if (age > wanted_from[i] && seen->s[i].t == seen->s[i - 1].t)
				for (int j = i; j < 3; j++)
					seen->s[j] = newest;
	} else {
		while (t - seen->s[0].t > window) {
			seen->s[0] = seen->s[1];
			seen->s[1] = seen->s[2];
			seen->s[2] = newest;
		}
	}
	return minmax_get(seen);
}

u32 minmax_running_max(struct minmax *seen, u32 window, u32 t, u32 value) { return running(seen, window, t, value, 0); }
u32 minmax_running_min(struct minmax *seen, u32 window, u32 t, u32 value) { return running(seen, window, t, value, ~0u); }

/* --- growth that controls share --- */

/* A segment for each that was acknowledged, up to the threshold; the acknowledged ones that are left. */
u32 tcp_slow_start(struct tcp_sock *tp, u32 acked)
{
	u32 used = min(tp->snd_ssthresh - tp->snd_cwnd, acked);

	tcp_snd_cwnd_set(tp, min(tp->snd_cwnd + used, tp->snd_cwnd_clamp));
	return acked - used;
}

/* A segment for every `w` that are acknowledged. Credit of a larger `w` counts as one. */
void tcp_cong_avoid_ai(struct tcp_sock *tp, u32 w, u32 acked)
{
	u32 grown = tp->snd_cwnd, credit = tp->snd_cwnd_cnt;

	if (credit >= w) {
		credit = 0;
		grown++;
	}
	credit += acked;
	if (credit >= w) {
		grown += credit / w;
		credit %= w;
	}
	tp->snd_cwnd_cnt = credit;
	tcp_snd_cwnd_set(tp, min(grown, tp->snd_cwnd_clamp));
}

u32 tcp_reno_ssthresh(struct sock *sk) { return max(tcp_sk(sk)->snd_cwnd / 2, 2u); }

u32 tcp_reno_undo_cwnd(struct sock *sk) { return max(tcp_sk(sk)->snd_cwnd, tcp_sk(sk)->prior_cwnd); }

void tcp_reno_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);

	(void)ack;
	if (!tcp_is_cwnd_limited(sk))
		return;
	if (tcp_in_slow_start(tp))
		acked = tcp_slow_start(tp, acked);
	if (acked)
		tcp_cong_avoid_ai(tp, tp->snd_cwnd, acked);
}

/* Segments of a super-packet: a part of a second at the pacing rate, and more on short paths. */
u32 tcp_tso_autosize(const struct sock *sk, unsigned int mss, int min_tso_segs)
{
	u64 bytes = sk->sk_pacing_rate >> sk->sk_pacing_shift;
	u32 halvings = tcp_min_rtt(tcp_sk(sk)) >> 9;

	if (halvings < 32)
		bytes += sk->sk_gso_max_size >> halvings;
	return max_t(u32, min_t(u64, bytes, sk->sk_gso_max_size) / mss, (u32)min_tso_segs);
}

/* The window comes down bit by bit from here on, unless it does already; the sender does its part once the hook has returned. */
void tcp_enter_cwr(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	const struct tcp_congestion_ops *ops = inet_csk(sk)->icsk_ca_ops;

	tp->prior_ssthresh = 0;
	tp->sawtooth_entered_cwr = 1;
	if (inet_csk(sk)->icsk_ca_state >= TCP_CA_CWR)
		return;
	tp->prior_cwnd = tp->snd_cwnd;
	tp->snd_cwnd_cnt = 0;
	tp->snd_ssthresh = ops->ssthresh(sk);
	if (ops->set_state)
		ops->set_state(sk, TCP_CA_CWR);
	inet_csk(sk)->icsk_ca_state = TCP_CA_CWR;
	tp->sawtooth_entered_cwr = 2;
}
