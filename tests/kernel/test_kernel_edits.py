"""The edits of a kernel's source, on stand-ins with only the lines that an edit needs, and on available sources. The
edits for wide processors are compiled and run against a simulated host, so that neither such a processor nor a kernel
is needed.
"""

import ctypes
import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from expected_error import expected_error
from sawtooth.errors import InputError
from sawtooth.kernel import edits, source
from stand_in_kernel import PROCESS, REGISTERS, WITH_A_FIXED_LENGTH, WITH_THE_HOSTS_LENGTH, stand_in

PROCESS_FILE = "arch/um/os-Linux/skas/process.c"
PLAYED = """#include <string.h>
#include <sys/uio.h>
#define FP_SIZE 337
#define PTRACE_GETREGSET 1
#define PTRACE_SETREGSET 2
#define NT_X86_XSTATE 3
static char first[FP_SIZE * sizeof(unsigned long)];
int length, sets, held_by;
char state[20000];
static int ptrace(int request, int pid, int kind, struct iovec *iov)
{
	(void) pid, (void) kind;
	if (iov->iov_len > (unsigned) length)
		iov->iov_len = length;
	if (request == PTRACE_GETREGSET)
		memcpy(iov->iov_base, state, iov->iov_len);
	else if (sets++, iov->iov_len < (unsigned) length)
		return -1;
	else
		memcpy(state, iov->iov_base, length);
	return 0;
}
"""
"""A host like Linux: it returns as much of the state as fits, and accepts all of it or nothing."""


def edited(tmp_path: Path, registers: str) -> str:
    copy = tmp_path / "copy"
    tree = stand_in(tmp_path / "linux")
    (tree / REGISTERS).write_text(registers)
    source.unpack(source.locate(tree), copy, 250)
    return (copy / REGISTERS).read_text()


def compiled(where: Path, text: str) -> ctypes.CDLL:
    (where / "played.h").write_text(PLAYED)
    (where / "registers.c").write_text(text)
    flags = ["-Wall", "-Werror", "-Wno-unused-variable", "-shared", "-fPIC"]
    subprocess.run(["gcc", *flags, "-o", where / "registers.so", where / "registers.c"], check=True)
    return ctypes.CDLL(str(where / "registers.so"))


@pytest.mark.parametrize("static", ["int", "static int"], ids=["6.1-and-6.6", "6.12"])
@pytest.mark.parametrize("length", [11_008, 2_696, 2_440, 832, 576])
def test_a_programs_registers_are_set_whatever_the_length_of_the_hosts_state(
    tmp_path: Path, static: str, length: int
) -> None:
    library = compiled(tmp_path, edited(tmp_path, WITH_A_FIXED_LENGTH.replace("INT have", f"{static} have")))
    state = (ctypes.c_char * 20_000).in_dll(library, "state")
    ctypes.c_int.in_dll(library, "length").value = length
    state.raw = b"\x01" * 20_000
    library.arch_init_registers(7)
    fp = (ctypes.c_char * 2696)(*b"\x05" * 2696)
    for _ in range(2):
        assert library.restore_fp_registers(7, fp) == 0, "the host takes it"
    known = min(length, 2696)
    assert state.raw[:known] == b"\x05" * known
    assert state.raw[known:length] == bytes(length - known), "what no guest has used is as at a program's start"


def test_without_the_edit_a_host_with_a_longer_state_refuses(tmp_path: Path) -> None:
    library = compiled(tmp_path, WITH_A_FIXED_LENGTH.replace("INT have", "int have"))
    fp = (ctypes.c_char * 2696)()
    for length, answer in ((2_696, 0), (11_008, -1)):
        ctypes.c_int.in_dll(library, "length").value = length
        library.arch_init_registers(7)
        assert library.restore_fp_registers(7, fp) == answer


def test_kernels_that_ask_the_host_themselves_are_left_alone(tmp_path: Path) -> None:
    assert edited(tmp_path, WITH_THE_HOSTS_LENGTH) == WITH_THE_HOSTS_LENGTH


def test_a_kernel_that_has_neither_is_not_supported(tmp_path: Path) -> None:
    with expected_error(code="bad-source", match="registers", kind=InputError):
        edited(tmp_path, "int other;\n")


def test_only_before_6_0_may_a_kernel_take_no_entropy_from_the_host_at_boot(tmp_path: Path) -> None:
    file = "arch/um/os-Linux/util.c"
    old, new = stand_in(tmp_path / "old", version=5), stand_in(tmp_path / "new")
    for tree in (old, new):
        (tree / file).write_text("int other;\n")
    source.unpack(source.locate(old), tmp_path / "copy", 250)
    assert (tmp_path / "copy" / file).read_text() == "int other;\n"
    with expected_error(code="bad-source", match="util", kind=InputError):
        source.unpack(source.locate(new), tmp_path / "other", 250)


def test_time_passes_by_the_function_that_the_kernel_has(tmp_path: Path) -> None:
    file, by_amount = (
        "arch/um/kernel/time.c",
        "static void time_travel_update_time_rel(unsigned long long offs)\n{\n}\n",
    )
    tree = stand_in(tmp_path / "linux")
    for defined, wanted in (
        ("", "time_travel_update_time(time_travel_time + 100 * NSEC_PER_MSEC, false);"),
        (by_amount, "time_travel_update_time_rel(100 * NSEC_PER_MSEC);"),
    ):
        (tree / file).write_text(defined + (tree / file).read_text())
        copy = tmp_path / f"copy{len(defined)}"
        source.unpack(source.locate(tree), copy, 250)
        assert wanted in (copy / file).read_text()


WITH_EVERY_ENTRY = """
int save_fp_registers(int pid, unsigned long *fp_regs)
{
	(void) pid;
	__builtin_memcpy(fp_regs, state, FP_SIZE * sizeof(unsigned long));
	return 0;
}

int get_fp_registers(int pid, unsigned long *regs)
{
	return save_fp_registers(pid, regs);
}

int put_fp_registers(int pid, unsigned long *regs)
{
	return restore_fp_registers(pid, regs);
}
"""
"""The state is read when a program stops, and set when it continues."""

STUB = """
void wait_stub_done(int pid)
{
	int n = pid;
	(void) n;
}
"""
"""When the kernel's own code has run in place of a program."""


@pytest.fixture
def entries(tmp_path: Path) -> ctypes.CDLL:
    """Both files, edited and compiled as one; ``sets`` counts requests to the host to set the state."""
    tree = stand_in(tmp_path / "linux")
    process = "arch/um/os-Linux/skas/process.c"
    (tree / REGISTERS).write_text(WITH_A_FIXED_LENGTH.replace("INT have", "static int have") + WITH_EVERY_ENTRY)
    (tree / process).write_text(STUB + PROCESS)
    copy = tmp_path / "copy"
    source.unpack(source.locate(tree), copy, 250)
    library = compiled(tmp_path, (copy / REGISTERS).read_text() + (copy / process).read_text())
    ctypes.c_int.in_dll(library, "length").value = 11_008
    library.arch_init_registers(7)
    return library


def test_the_state_is_set_only_where_a_program_has_it_not_already(entries: ctypes.CDLL) -> None:
    fp = (ctypes.c_char * 2696)()
    other = (ctypes.c_char * 2696)(*b"\x09" * 2696)
    sets = ctypes.c_int.in_dll(entries, "sets")

    def asked(do: Callable[[], int]) -> int:
        before = sets.value
        assert do() == 0
        return sets.value - before

    put = entries.put_fp_registers
    assert asked(lambda: put(7, fp)) == 1, "of a program that was never read"
    entries.get_fp_registers(7, fp)
    assert asked(lambda: put(7, fp)) == 0, "it stopped and goes on"
    assert asked(lambda: put(8, fp)) == 1, "another program"
    entries.get_fp_registers(7, fp)
    assert asked(lambda: put(7, other)) == 1, "another thread of it, or after a signal"
    assert asked(lambda: put(7, other)) == 0
    entries.wait_stub_done(7)
    assert asked(lambda: put(7, other)) == 1, "the kernel's own code ran in its place"
    assert asked(lambda: entries.restore_fp_registers(7, fp)) == 1
    assert asked(lambda: put(7, other)) == 1, "it was set past the memory of what it has"


TARBALLS = sorted(Path("/usr/src").glob("linux-source-6.*.tar.xz"))


@pytest.mark.skipif(not TARBALLS, reason="no kernel's source is installed (/usr/src/linux-source-6.*.tar.xz)")
@pytest.mark.usefixtures("patience")
def test_every_edit_finds_its_place_in_the_sources_at_hand(tmp_path: Path) -> None:
    needed = {edit.file for edit in edits.EDITS}
    for tarball in TARBALLS:
        where = tmp_path / tarball.name
        where.mkdir()
        top = tarball.name.removesuffix(".tar.xz")
        # Stops at the last of them.
        members = [f"{top}/{file}" for file in sorted(needed | {"Makefile"})]
        subprocess.run(["tar", "-xf", tarball, "-C", where, "--occurrence=1", *members], check=True)
        tree = where / top
        texts, lacking = edits.edited(tree, tarball, 250, edits.EDITS, source.number(tree))
        given = {edit.file for edit in edits.EDITS if edit.unless and "host_fp_size" in (tree / edit.file).read_text()}
        absent = {edit.file for edit in lacking}
        assert needed - texts.keys() <= given | absent, json.dumps([str(tarball), sorted(texts)])
        assert not lacking or top != edits.PACKAGE, "the package's kernel gets every edit"


VDSO_FILE = "arch/x86/um/vdso/um_vdso.c"
VDSO = "int __vdso_clock_gettime(int clock)\n{\n}\n\nint __vdso_gettimeofday(int tv)\n{\n}\n"
STUB_DATA = "struct stub_data {\n\tlong data;\n\tint syscall_data[(UM_KERN_PAGE_SIZE - 128) / 4];\n};\n"


def test_edits_for_speed_that_use_each_other_are_left_out_together(tmp_path: Path) -> None:
    tree = stand_in(tmp_path / "linux")

    def write(file: str, text: str) -> None:
        (tree / file).parent.mkdir(parents=True, exist_ok=True)
        (tree / file).write_text(text)

    asks = "\n\t\tregs->is_user = 1;\n\t\tif (ptrace(0)) {}\n"
    write(PROCESS_FILE, (tree / PROCESS_FILE).read_text() + asks)
    write(VDSO_FILE, VDSO)
    write("arch/x86/um/vdso/vma.c", "#include <linux/init.h>\n\tcopy_page(page_address(um_vdso), vdso_start);\n")
    source.unpack(source.locate(tree), tmp_path / "copy", 250)
    assert "clock_" not in (tmp_path / "copy" / PROCESS_FILE).read_text(), "Linux 6.1 has the places of some only"
    assert (tmp_path / "copy" / VDSO_FILE).read_text() == VDSO, "it would read an address that nobody filled in"
    write(PROCESS_FILE, (tree / PROCESS_FILE).read_text() + "void userspace(void)\n{\n\tif (singlestepping())\n}\n")
    write("arch/um/include/shared/skas/stub-data.h", STUB_DATA)
    source.unpack(source.locate(tree), tmp_path / "both", 250)
    text = (tmp_path / "both" / PROCESS_FILE).read_text()
    assert "clock_taken();" in text
    assert "clock_given();" in text
    assert "read_clock" in (tmp_path / "both" / VDSO_FILE).read_text()
