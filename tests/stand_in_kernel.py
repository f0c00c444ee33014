"""A stand-in for a kernel's source: a small directory that passes sawtooth's checks. Its Makefile has the same
targets, and its kernel acts as a guest.
"""

from pathlib import Path

from sawtooth.kernel import edits

REGISTERS = "arch/x86/um/os-Linux/registers.c"

WITH_A_FIXED_LENGTH = """#include "played.h"

INT have_xstate_support;

int restore_fp_registers(int pid, unsigned long *fp_regs)
{
	struct iovec iov;
	if (have_xstate_support) {
		iov.iov_base = fp_regs;
		iov.iov_len = FP_SIZE * sizeof(unsigned long);
		if (ptrace(PTRACE_SETREGSET, pid, NT_X86_XSTATE, &iov) < 0)
			return -1;
	}
	return 0;
}

void arch_init_registers(int pid)
{
	struct iovec iov = { first, sizeof(first) };

	if (ptrace(PTRACE_GETREGSET, pid, NT_X86_XSTATE, &iov) == 0)
		have_xstate_support = 1;
}
"""
"""What 6.1, 6.6 and 6.12 have in common here; the first two say ``int`` where the last says ``static int``."""

PROCESS = """#if 0
#include <sys/mman.h>
#define STUB_SIG_MASK ((1 << SIGALRM) | (1 << SIGWINCH))
static int userspace_tramp(void *stack)
{
}
int start_userspace(unsigned long stub_stack)
	/* setup a temporary stack page */
	stack = mmap(NULL);
	(void *) PTRACE_O_TRACESYSGOOD) < 0)
void userspace(struct uml_pt_regs *regs)
{
	case SIGALRM:
		break;
}
#endif
"""
TRAP = """void segv_handler(int sig, struct siginfo *unused_si, struct uml_pt_regs *regs)
{
	if (UPT_IS_USER(regs) && !SEGV_IS_FIXABLE(fi)) {
"""

WITH_THE_HOSTS_LENGTH = "unsigned long host_fp_size;\n\nint put_fp_registers(int pid, unsigned long *regs)\n{\n}\n"
"""From 6.13 on."""

MAKEFILE = """VERSION = 6
PATCHLEVEL = 12
SUBLEVEL = 7
EXTRAVERSION =

STEPS := $(foreach n,$(shell seq {steps}),step$(n).o)

allnoconfig:
\tcp $(KCONFIG_ALLCONFIG) .config
\tsed -n 's/^\\tdefault /CONFIG_HZ=/p' arch/um/Kconfig >> .config

%.o:
\t@echo "  CC      $@"
\t@echo $@ >> ../compiled
\t@sleep {seconds}
\t@touch $@

linux: $(STEPS)
\tgcc -o $@ linux.c
"""
PROGRAM = """#include <unistd.h>
int main(void) { execl("/bin/sh", "sh", "-c", "WORDS", (char *)0); return 1; }
"""
BOOTS = "echo reno cubic > share/stdout; echo 0 > share/.exit"

TIME = """
static u64 timer_read(struct clocksource *cs)
{
}
static struct clocksource timer_clocksource = {
"""
SYSCALL = """
void handle_syscall(struct uml_pt_regs *r)
{
	/* Do the seccomp check after ptrace. */
}
"""


def stand_in(where: Path, *, steps: int = 3, seconds: float = 0.0, does: str = BOOTS, version: int = 6) -> Path:
    for edit in edits.EDITS:
        (where / edit.file).parent.mkdir(parents=True, exist_ok=True)
    (where / "Makefile").write_text(
        MAKEFILE.format(steps=steps, seconds=seconds).replace("VERSION = 6", f"VERSION = {version}", 1)
    )
    (where / "arch/um/Kconfig").write_text("config HZ\n\tint\n\tdefault 100\n")
    (where / "arch/um/os-Linux/util.c").write_text("\treturn getrandom(buf, len, flags);\n")
    (where / "drivers/char/random.c").write_text("\tunsigned long entropy = random_get_entropy();\n")
    (where / "arch/um/os-Linux/skas/process.c").write_text(PROCESS)
    (where / "arch/um/kernel/trap.c").write_text(TRAP)
    (where / "arch/um/kernel/time.c").write_text(TIME)
    (where / "arch/um/kernel/skas/syscall.c").write_text(SYSCALL)
    (where / REGISTERS).write_text(WITH_A_FIXED_LENGTH.replace("INT have", "static int have"))
    (where / "linux.c").write_text(PROGRAM.replace("WORDS", does))
    return where
