"""Edits of the kernel's source, each with its reason: one table, and what applies it to a copy."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sawtooth.errors import InputError

PACKAGE = "linux-source-6.12"
"""Debian's package, whose kernel gets every edit."""

SUCCESSORS = {"CONFIG_PROC_SYSCTL=y": "CONFIG_SYSCTL=y"}
"""Options of the configuration that a newer kernel no longer has, by what includes them there (Linux 7.3)."""


@dataclass(frozen=True)
class Edit:
    """One substitution in one file of the copy; ``{hz}`` in ``new`` stands for the wanted HZ.

    ``for_speed``: the edit only makes the kernel faster, so it may be skipped if the pattern is not found. ``unless``:
    text that shows that a newer kernel already contains this change. ``since``: older kernels need not contain what the
    edit changes. It only decides what is refused, so it is no part of a kernel's digest.
    """

    file: str
    old: str
    new: str
    for_speed: bool = False
    unless: str | None = None
    since: tuple[int, int] | None = field(default=None, repr=False)


_VDSO = "arch/x86/um/vdso/"
_REGISTERS = "arch/x86/um/os-Linux/registers.c"
_LENGTH_FROM_HOST = r"\bhost_fp_size\b"
"""Linux 6.13 and later determine at start how long the host's processor state is."""

EDITS = (
    # arch/um has no choice of HZ, only this default.
    Edit("arch/um/Kconfig", r"(?m)^(config HZ\n\s+int\n\s+default) \d+$", r"\1 {hz}"),
    # Equal boots must draw equal random numbers: the kernel mixes the command line, which contains our seed, into its
    # entropy pool. Linux 5.10 takes none from the host at boot.
    Edit(
        "arch/um/os-Linux/util.c",
        r"return getrandom\(buf, len, flags\);",
        "__builtin_memset(buf, 0x5a, len); return len;",
        since=(6, 0),
    ),
    # Do not use the time of interrupts as entropy: the clock advances when it is read, so these times depend on the
    # directories in use.
    Edit("drivers/char/random.c", r"(unsigned long entropy =) random_get_entropy\(\);", r"\1 0;"),
    # Programs that read the processor's counter (rdtsc, rdtscp) get virtual time in ns: the host answers the
    # instruction with a fault, and the kernel carries it out. Go's scheduler and OpenSSL's keys use the counter as
    # randomness. The kernel's own process has no counter either, because turning the counter on and off at each switch
    # of processes takes 4 us on some hosts.
    Edit(
        "arch/um/os-Linux/skas/process.c",
        r"(/\* setup a temporary stack page \*/\n\tstack = mmap)",
        r"prctl(PR_SET_TSC, PR_TSC_SIGSEGV);\n\n\t\1",
    ),
    Edit(
        "arch/um/os-Linux/skas/process.c",
        r"(#include <sys/mman\.h>\n)",
        r"\1#include <sys/prctl.h>\n",
    ),
    Edit(
        "arch/um/kernel/trap.c",
        r"(?m)^(void segv_handler\()((?s:.*?))(if \(UPT_IS_USER\(regs\) && !SEGV_IS_FIXABLE\(fi\)\) \{\n)",
        r"""extern u64 virtual_counter(void);

static bool reads_counter(struct uml_pt_regs *regs)
{
	u8 __user *where = (u8 __user *) UPT_IP(regs);
	u8 code[3] = {};
	u64 now;

	/* The third byte may be on a page that is not there. */
	if (copy_from_user(code, where, 2) || (code[1] == 0x01 && copy_from_user(code + 2, where + 2, 1)))
		return false;
	if (code[0] != 0x0f || !(code[1] == 0x31 || (code[1] == 0x01 && code[2] == 0xf9)))
		return false;
	now = virtual_counter();
	regs->gp[HOST_AX] = lower_32_bits(now);
	regs->gp[HOST_DX] = upper_32_bits(now);
	if (code[1] == 0x01)
		regs->gp[HOST_CX] = 0;
	UPT_IP(regs) += code[1] == 0x01 ? 3 : 2;
	return true;
}

\1\2\3\t\tif (reads_counter(regs))
			return;
""",
    ),
    Edit(
        "arch/um/kernel/time.c",
        r"(?m)^(static struct clocksource timer_clocksource)",
        r"""#include <stub-data.h>

u64 virtual_counter(void);
u64 virtual_counter(void)
{
	return timer_read(NULL) * TIMER_MULTIPLIER;
}

void clock_given(void);
void clock_taken(void);
#ifdef USER_CLOCK
static struct user_clock *user_clock(void)
{
	return &((struct stub_data *) current->mm->context.id.stack)->clock;
}

void clock_given(void)
{
	struct time_travel_event *first;
	unsigned long flags;
	s64 now;

	if (time_travel_mode != TT_MODE_INFCPU)
		return;
	local_irq_save(flags);
	now = time_travel_time & -TIMER_MULTIPLIER;
	first = time_travel_first_event();
	*user_clock() = (struct user_clock) {
		time_travel_time, first ? first->time : S64_MAX, { ktime_get_real() - now, ktime_get() - now }
	};
	local_irq_restore(flags);
}

void clock_taken(void)
{
	struct time_travel_event *first = time_travel_first_event();
	u64 now = user_clock()->now;

	if (time_travel_mode == TT_MODE_INFCPU && now > time_travel_time && now < (first ? first->time : S64_MAX))
		time_travel_set_time(now);
}
#else
void clock_given(void)
{
}

void clock_taken(void)
{
}
#endif

\1""",
    ),
    # A third of curl's system calls asked for the time. So the kernel leaves the clock in the page that it shares with
    # each program, up to the next timer, and the vDSO reads it there. It also moves it on by what a reading costs:
    # every time is as it would be with the system call.
    Edit(
        "arch/um/include/shared/skas/stub-data.h",
        r"(struct stub_data \{(?s:.*?)syscall_data\[\(UM_KERN_PAGE_SIZE - 128\)[^\n]*\n)",
        r"""#define USER_CLOCK
struct user_clock {
	unsigned long long now, until;
	long long offset[2];
};

\1	struct user_clock clock;
""",
        for_speed=True,
    ),
    Edit(
        "arch/um/os-Linux/skas/process.c",
        r"(?m)^(void userspace\((?s:.*?))(\t+)(if \(singlestepping\(\)\)\n)",
        r"extern void clock_given(void), clock_taken(void);\n\n\1\2clock_given();\n\2\3",
        for_speed=True,
    ),
    Edit(
        "arch/um/os-Linux/skas/process.c",
        r"(\t+)(regs->is_user = 1;\n\t+if \(ptrace\()",
        r"\1clock_taken();\n\1\2",
        for_speed=True,
    ),
    Edit(
        _VDSO + "vma.c",
        r"(\tcopy_page\(page_address\(um_vdso\), vdso_start\);\n)",
        r"""\1#ifdef USER_CLOCK
	for (unsigned long *at = page_address(um_vdso), *end = at + PAGE_SIZE / sizeof(*at); at < end; at++)
		if (*at == 0x736177746f6f7468)
			*at = STUB_DATA + offsetof(struct stub_data, clock);
#endif
""",
        for_speed=True,
    ),
    Edit(_VDSO + "vma.c", r"(#include <linux/init\.h>\n)", r"\1#include <stub-data.h>\n", for_speed=True),
    Edit(
        _VDSO + "um_vdso.c",
        r"(int __vdso_clock_gettime\([^;]*?\)\n\{\n)((?s:.*?)int __vdso_gettimeofday\([^;]*?\)\n\{\n)",
        r"""struct user_clock {
	unsigned long long now, until;
	long long offset[2];
};

/* The kernel writes the clock's address here. */
static const volatile unsigned long clock_at = 0x736177746f6f7468;

/* Nanoseconds, or -1: ask the kernel. */
static long long read_clock(int clock)
{
	volatile struct user_clock *c = (struct user_clock *) clock_at;
	unsigned long long now = c->now + 256;

	if ((clock != 0 && clock != 1) || now >= c->until)
		return -1;
	c->now = now;
	return (now & -256) + c->offset[clock];
}

\1	long long ns = read_clock(clock);

	if (ns >= 0) {
		ts->tv_sec = ns / 1000000000;
		ts->tv_nsec = ns % 1000000000;
		return 0;
	}
\2	long long ns = tz ? -1 : read_clock(0);

	if (ns >= 0) {
		if (tv) {
			tv->tv_sec = ns / 1000000000;
			tv->tv_usec = ns % 1000000000 / 1000;
		}
		return 0;
	}
""",
        for_speed=True,
    ),
    # Computing takes no virtual time, so a program that waits by asking again without sleeping would never end
    # (select() without a time-out, times(), sched_yield()). After 100,000 system calls at one time, each takes 1 us,
    # after 200,000 each takes 2 us, and so on.
    # A program that computes without system calls would never end either, and no other program would run. So each
    # program's process gets a signal every 10 ms of its processor time, from its own timer. After 2,000 of them at
    # one time, each takes 100 ms.
    Edit(
        "arch/um/kernel/time.c",
        r"(?m)^(static u64 timer_read\()",
        r"""void time_travel_spin(void);
void time_travel_spin(void)
{
	static unsigned long long last;
	static unsigned calls;

	if (time_travel_mode != TT_MODE_INFCPU)
		return;
	/* A read of the clock or a failed call also moves it, by less than this. */
	if (time_travel_time - last > 2 * NSEC_PER_USEC)
		calls = 0;
	if (++calls > 100000)
		time_travel_update_time_rel(calls / 100000 * NSEC_PER_USEC);
	last = time_travel_time;
}

void time_travel_compute(void);
void time_travel_compute(void)
{
	static unsigned long long last;
	static unsigned stops;

	if (time_travel_mode != TT_MODE_INFCPU)
		return;
	if (time_travel_time - last > NSEC_PER_MSEC) {
		stops = 0;
		last = time_travel_time;
	}
	if (++stops > 2000) {
		time_travel_update_time_rel(100 * NSEC_PER_MSEC);
		last = time_travel_time;
	}
}

\1""",
    ),
    Edit(
        "arch/um/kernel/skas/syscall.c",
        r"(?m)^(void handle_syscall\((?s:.*?))(\n\t/\* Do the seccomp check)",
        r"extern void time_travel_spin(void);\n\n\1\n\ttime_travel_spin();\n\2",
    ),
    Edit(
        "arch/um/os-Linux/skas/process.c",
        r"(?m)^(void userspace\((?s:.*?))(\t+)(case SIGALRM:\n)",
        r"extern void time_travel_compute(void);\n\n\1\2case SIGPROF:\n\2\ttime_travel_compute();\n"
        r"\2\tbreak;\n\2\3",
    ),
    Edit(
        "arch/um/os-Linux/skas/process.c",
        r"(#define STUB_SIG_MASK \()",
        r"\1(1 << SIGPROF) | ",
    ),
    Edit(
        "arch/um/os-Linux/skas/process.c",
        r"(static int userspace_tramp\(void \*\w+\)\n\{\n)",
        r"""\1\t/* A tracer sees it also if it is ignored. */
	signal(SIGPROF, SIG_IGN);
	setitimer(ITIMER_PROF, &(struct itimerval) { { 0, 10000 }, { 1, 0 } }, NULL);

""",
    ),
    Edit("arch/um/os-Linux/skas/process.c", r"(#include <sys/mman\.h>\n)", r"\1#include <sys/time.h>\n"),
    # When a guest is killed, the processes that it traces are killed too.
    Edit(
        "arch/um/os-Linux/skas/process.c",
        r"\(void \*\)\s*PTRACE_O_TRACESYSGOOD",
        "(void *) (PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL)",
    ),
    # Extended processor state: up to Linux 6.12 it is set with a fixed length of 2,696 bytes. A host with a longer
    # state (with AMX: 11,008 bytes) refuses this. So the kernel asks the host for the length once. The part beyond
    # 2,696 bytes stays zero, as at a program's start, because no program in a guest has permission to use it.
    Edit(
        _REGISTERS,
        r"(?m)^((?:static )?int have_xstate_support;)$",
        r"\1\nstatic unsigned long xstate_length;\nstatic char xstate[65536] __attribute__((aligned(64)));",
        unless=_LENGTH_FROM_HOST,
    ),
    Edit(
        _REGISTERS,
        r"\bhave_xstate_support = 1;",
        """{
			have_xstate_support = 1;
			iov.iov_base = xstate;
			iov.iov_len = sizeof(xstate);
			if (ptrace(PTRACE_GETREGSET, pid, NT_X86_XSTATE, &iov) == 0)
				xstate_length = iov.iov_len;
			__builtin_memset(xstate, 0, sizeof(xstate));
		}""",
        unless=_LENGTH_FROM_HOST,
    ),
    Edit(
        _REGISTERS,
        r"(\n\s*if \(ptrace\(PTRACE_SETREGSET,)",
        """
		if (xstate_length > iov.iov_len) {
			__builtin_memcpy(xstate, fp_regs, iov.iov_len);
			iov.iov_base = xstate;
			iov.iov_len = xstate_length;
		}\\1""",
        unless=_LENGTH_FROM_HOST,
    ),
    # The kernel sets the whole state at each entry into a program. This is unnecessary if the process has not run since
    # the state was last read or set. Exception: the kernel's own code that runs in the process (wait_stub_done) may
    # have changed it.
    Edit(
        "arch/um/os-Linux/skas/process.c",
        r"(?m)^(void wait_stub_done\(int pid\)\n\{\n.*)$",
        r"int held_by;\n\n\1\n\theld_by = 0;",
        for_speed=True,
    ),
    Edit(
        _REGISTERS,
        r"(?m)^(static char xstate\[65536\].*)$",
        r"\1\nstatic unsigned long held[FP_SIZE];\nextern int held_by;",
        for_speed=True,
    ),
    Edit(
        _REGISTERS,
        r"(?m)^(int restore_(?:i387|fp)_registers\(int pid, unsigned long \*fp_regs\)\n\{)$",
        r"\1\n\theld_by = 0;",
        for_speed=True,
        unless=_LENGTH_FROM_HOST,
    ),
    Edit(
        _REGISTERS,
        r"\n\treturn save_fp_registers\(pid, regs\);",
        """
	int err = save_fp_registers(pid, regs);

	__builtin_memcpy(held, regs, sizeof(held));
	held_by = err ? 0 : pid;
	return err;""",
        for_speed=True,
    ),
    Edit(
        _REGISTERS,
        r"\n\treturn restore_fp_registers\(pid, regs\);",
        """
	int err;

	if (held_by == pid && !__builtin_memcmp(held, regs, sizeof(held)))
		return 0;
	err = restore_fp_registers(pid, regs);
	__builtin_memcpy(held, regs, sizeof(held));
	held_by = err ? 0 : pid;
	return err;""",
        for_speed=True,
    ),
    # The kernel is linked below 2 GiB, so functions can be called directly instead of through a register.
    Edit("arch/um/Makefile", "-mcmodel=large", "-mcmodel=small", for_speed=True),
    # A timer interrupt would zero a 3 KB structure for all registers, only to say that no program was running.
    Edit(
        "arch/um/os-Linux/signal.c",
        r"memset\(&regs, 0, sizeof\(regs\)\);",
        "{ static struct uml_pt_regs none; timer_handler(SIGALRM, NULL, &none); return; }",
        for_speed=True,
    ),
    # Virtual time stands still while a program runs, so timers are not needed then; each timer signal would only stop
    # the program once more.
    Edit(
        "arch/um/kernel/time.c",
        r"if \(get_current\(\)->mm != NULL\)",
        "if (time_travel_mode != TT_MODE_INFCPU && get_current()->mm != NULL)",
        for_speed=True,
    ),
)

_TAKES_TIME = re.compile(r"time_travel_update_time_rel\((.*?)\);")

_TOGETHER = ("clock_given|clock_taken|user_clock|USER_CLOCK", r"\bheld\b|\bheld_by\b")
"""Names in edits for speed. Edits that contain the same one work only together."""


def _for_kernel(new: str, text: str) -> str:
    """``new`` for a file with ``text``. Linux 5.10 can only let time pass up to a given time, not by an amount."""
    if "time_travel_update_time_rel" in text:
        return new
    return _TAKES_TIME.sub(r"time_travel_update_time(time_travel_time + \1, false);", new)


def edit(tree: Path, shown: Path, hz: int, version: tuple[int, ...]) -> None:
    """Make all edits that fit. Those for speed that use each other are left out together. ``version``: of the kernel,
    for example (6, 12).

    Raises InputError ``bad-source``, which names ``shown``.
    """
    texts, lacking = edited(tree, shown, hz, EDITS, version)
    apart = [words for words in _TOGETHER if any(re.search(words, one.new) for one in lacking)]
    if apart:
        kept = [one for one in EDITS if not (one.for_speed and any(re.search(words, one.new) for words in apart))]
        texts, _ = edited(tree, shown, hz, kept, version)
    for file, text in texts.items():
        (tree / file).write_text(text, encoding="utf-8")


def edited(
    tree: Path, shown: Path, hz: int, edits: Sequence[Edit], version: tuple[int, ...]
) -> tuple[dict[str, str], list[Edit]]:
    """The text of each edited file, and the edits for speed that do not fit."""
    texts: dict[str, str] = {}
    lacking: list[Edit] = []
    for one in edits:
        path = tree / one.file
        before = texts[one.file] if one.file in texts else path.read_text(encoding="utf-8") if path.is_file() else ""
        if one.unless is not None and re.search(one.unless, before):
            continue
        after, count = re.subn(one.old, _for_kernel(one.new, before).replace("{hz}", str(hz)), before)
        if count:
            texts[one.file] = after
        elif one.for_speed:
            lacking.append(one)
        elif one.since is None or version >= one.since:
            message = f"{one.file} cannot be edited as sawtooth needs: this kernel is not supported"
            raise InputError("bad-source", message, file=shown, fix=f"use Debian's package {PACKAGE}")
    return texts, lacking
