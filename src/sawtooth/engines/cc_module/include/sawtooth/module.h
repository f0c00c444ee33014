/* What makes a file a module: its beginning, its parameters, its memory, its words. */
#ifndef SAWTOOTH_MODULE_H
#define SAWTOOTH_MODULE_H

#include <sawtooth/arithmetic.h>

struct module;
#define THIS_MODULE ((struct module *)0)
#define MODULE_AUTHOR(text) _Static_assert(1, "")
#define MODULE_LICENSE(text) _Static_assert(1, "")
#define MODULE_DESCRIPTION(text) _Static_assert(1, "")
#define MODULE_VERSION(text) _Static_assert(1, "")
#define MODULE_ALIAS(text) _Static_assert(1, "")
#define MODULE_INFO(tag, text) _Static_assert(1, "")
#define MODULE_IMPORT_NS(name) _Static_assert(1, "")
#define EXPORT_SYMBOL(name) _Static_assert(1, "")
#define EXPORT_SYMBOL_GPL(name) _Static_assert(1, "")

/* Called once, when the simulation loads the module. Exits are not called: memory goes with the process. */
struct sawtooth_beginning {
	int (*begin)(void);
	struct sawtooth_beginning *next;
};
void sawtooth_add_beginning(struct sawtooth_beginning *one);
#define module_init(function)                                                                                                \
	static struct sawtooth_beginning sawtooth_beginning = { .begin = (function) };                                       \
	__attribute__((constructor)) static void sawtooth_adds_beginning(void)                                               \
	{                                                                                                                    \
		sawtooth_add_beginning(&sawtooth_beginning);                                                                 \
	}                                                                                                                    \
	_Static_assert(1, "")
#define late_initcall(function) module_init(function)
#define subsys_initcall(function) module_init(function)
#define fs_initcall(function) module_init(function)
#define module_exit(function) static void (*const sawtooth_exit)(void) __maybe_unused = (function)

struct kernel_param;
struct kernel_param_ops {
	unsigned int flags;
	int (*set)(const char *value, const struct kernel_param *parameter);
	int (*get)(char *buffer, const struct kernel_param *parameter);
	void (*free)(void *arg);
};
struct kernel_param {
	const char *name;
	const struct kernel_param_ops *ops;
	const char *type;
	void *arg;
	struct kernel_param *next;
};
void sawtooth_add_parameter(struct kernel_param *parameter);

#define SAWTOOTH_PARAMETER(what, how, kind, where)                                                                           \
	static struct kernel_param sawtooth_parameter_##what = { .name = #what, .ops = (how), .type = kind, .arg = (where) };\
	__attribute__((constructor)) static void sawtooth_adds_##what(void)                                                  \
	{                                                                                                                    \
		sawtooth_add_parameter(&sawtooth_parameter_##what);                                                          \
	}                                                                                                                    \
	_Static_assert(1, "")
#define module_param_cb(name, ops, arg, permissions) SAWTOOTH_PARAMETER(name, ops, "of its own kind", arg)
#define module_param_named(name, variable, type, permissions)                                                                \
	static inline __maybe_unused sawtooth_c_##type *sawtooth_checks_##name(void) { return &(variable); }                 \
	SAWTOOTH_PARAMETER(name, &param_ops_##type, #type, &(variable))
#define module_param(name, type, permissions) module_param_named(name, name, type, permissions)
#define MODULE_PARM_DESC(name, text) _Static_assert(1, "")

#define SAWTOOTH_KIND(kind, c)                                                                                               \
	typedef c sawtooth_c_##kind;                                                                                         \
	int param_set_##kind(const char *value, const struct kernel_param *parameter);                                       \
	int param_get_##kind(char *buffer, const struct kernel_param *parameter);                                            \
	extern const struct kernel_param_ops param_ops_##kind
SAWTOOTH_KIND(byte, unsigned char);
SAWTOOTH_KIND(short, short);
SAWTOOTH_KIND(ushort, unsigned short);
SAWTOOTH_KIND(int, int);
SAWTOOTH_KIND(uint, unsigned int);
SAWTOOTH_KIND(hexint, unsigned int);
SAWTOOTH_KIND(long, long);
SAWTOOTH_KIND(ulong, unsigned long);
SAWTOOTH_KIND(ullong, unsigned long long);
SAWTOOTH_KIND(bool, bool);
SAWTOOTH_KIND(charp, char *);
int param_set_uint_minmax(const char *value, const struct kernel_param *parameter, unsigned int least, unsigned int most);
int kstrtoint(const char *text, unsigned int base, int *result);
int kstrtouint(const char *text, unsigned int base, unsigned int *result);
int kstrtou32(const char *text, unsigned int base, u32 *result);
int kstrtobool(const char *text, bool *result);

/* Memory. It is zero, whatever was asked. */
void *sawtooth_memory(size_t count, size_t size);
void kfree(const void *memory);
#define kmalloc(size, flags) sawtooth_memory(1, size)
#define kzalloc(size, flags) sawtooth_memory(1, size)
#define kcalloc(count, size, flags) sawtooth_memory(count, size)
#define kmalloc_array(count, size, flags) sawtooth_memory(count, size)
#define kvfree(memory) kfree(memory)
#define GFP_KERNEL 0u
#define GFP_ATOMIC 0u
#define GFP_NOWAIT 0u
#define GFP_USER 0u
#define __GFP_NOWARN 0u
#define __GFP_ZERO 0u

/* Words go to standard error, with the simulated time; those for debugging only where DEBUG is defined. */
int printk(const char *format, ...) __printf(1, 2);
int no_printk(const char *format, ...) __printf(1, 2);
#define KERN_ERR ""
#define KERN_WARNING ""
#define KERN_NOTICE ""
#define KERN_INFO ""
#define KERN_DEBUG ""
#ifndef pr_fmt
#define pr_fmt(text) text
#endif
#define pr_emerg(text, ...) printk(pr_fmt(text), ##__VA_ARGS__)
#define pr_alert(text, ...) printk(pr_fmt(text), ##__VA_ARGS__)
#define pr_crit(text, ...) printk(pr_fmt(text), ##__VA_ARGS__)
#define pr_err(text, ...) printk(pr_fmt(text), ##__VA_ARGS__)
#define pr_warn(text, ...) printk(pr_fmt(text), ##__VA_ARGS__)
#define pr_notice(text, ...) printk(pr_fmt(text), ##__VA_ARGS__)
#define pr_info(text, ...) printk(pr_fmt(text), ##__VA_ARGS__)
#define pr_cont(text, ...) printk(text, ##__VA_ARGS__)
#ifdef DEBUG
#define pr_debug(text, ...) printk(pr_fmt(text), ##__VA_ARGS__)
#else
#define pr_debug(text, ...) ((void)(0 && no_printk(pr_fmt(text), ##__VA_ARGS__)))
#endif
#define SAWTOOTH_ONCE(call)                                                                                                  \
	({                                                                                                                   \
		static bool sawtooth_said;                                                                                   \
		if (!sawtooth_said) {                                                                                        \
			sawtooth_said = true;                                                                                \
			call;                                                                                                \
		}                                                                                                            \
	})
#define pr_info_once(text, ...) SAWTOOTH_ONCE(pr_info(text, ##__VA_ARGS__))
#define pr_warn_once(text, ...) SAWTOOTH_ONCE(pr_warn(text, ##__VA_ARGS__))
#define pr_err_once(text, ...) SAWTOOTH_ONCE(pr_err(text, ##__VA_ARGS__))
#define pr_info_ratelimited(text, ...) pr_info(text, ##__VA_ARGS__)
#define pr_warn_ratelimited(text, ...) pr_warn(text, ##__VA_ARGS__)
#define net_info_ratelimited(text, ...) pr_info(text, ##__VA_ARGS__)
#define net_warn_ratelimited(text, ...) pr_warn(text, ##__VA_ARGS__)
#define WARN(condition, text, ...)                                                                                           \
	({                                                                                                                   \
		bool sawtooth_warns = !!(condition);                                                                         \
		if (unlikely(sawtooth_warns))                                                                                \
			SAWTOOTH_ONCE(printk("%s:%d: " text, __FILE__, __LINE__, ##__VA_ARGS__));                            \
		unlikely(sawtooth_warns);                                                                                    \
	})
#define WARN_ONCE(condition, text, ...) WARN(condition, text, ##__VA_ARGS__)
#define WARN_ON(condition) WARN(condition, "%s\n", #condition)
#define WARN_ON_ONCE(condition) WARN_ON(condition)
#define DEBUG_NET_WARN_ON_ONCE(condition) ((void)(condition))
#define BUG() __builtin_trap()
#define BUG_ON(condition)                                                                                                    \
	do {                                                                                                                 \
		if (unlikely(condition))                                                                                     \
			BUG();                                                                                               \
	} while (0)
#define dump_stack() ((void)0)

/* The connection's own randomness, by the scenario's seed: SplitMix64. */
u64 sawtooth_random(void);
void get_random_bytes(void *where, size_t size);
u32 get_random_u32_below(u32 bound);
#define get_random_u8() ((u8)(sawtooth_random() >> 56))
#define get_random_u16() ((u16)(sawtooth_random() >> 48))
#define get_random_u32() ((u32)(sawtooth_random() >> 32))
#define get_random_u64() sawtooth_random()
#define get_random_long() ((unsigned long)sawtooth_random())
#define get_random_u32_inclusive(low, high) ((low) + get_random_u32_below((high) - (low) + 1))
#define get_random_u32_above(low) ((low) + 1 + get_random_u32_below(U32_MAX - (low)))
#define prandom_u32() get_random_u32()
#define prandom_u32_max(bound) get_random_u32_below(bound)

/* Programs of eBPF: there are none. */
struct btf_id_set8 {
	u32 count;
};
struct btf_kfunc_id_set {
	struct module *owner;
	const struct btf_id_set8 *set;
};
#define BTF_KFUNCS_START(name) static const struct btf_id_set8 name __maybe_unused = { 0 };
#define BTF_KFUNCS_END(name)
#define BTF_SET8_START(name) BTF_KFUNCS_START(name)
#define BTF_SET8_END(name)
#define BTF_ID_FLAGS(kind, name, ...)
#define BPF_PROG_TYPE_STRUCT_OPS 27
#define BPF_SOCK_OPS_BASE_RTT 7
#define BPF_SOCK_OPS_NEEDS_ECN 6
static inline int register_btf_kfunc_id_set(int kind, const struct btf_kfunc_id_set *set) { return (void)kind, (void)set, 0; }

#define rcu_read_lock() ((void)0)
#define rcu_read_unlock() ((void)0)
#define rcu_dereference(x) (x)

#endif
