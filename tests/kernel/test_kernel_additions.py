"""Kernels with a user's own patches, controls and names, built from the stand-in source."""

import json
from pathlib import Path
from typing import Any

import pytest

from expected_error import expected_error
from sawtooth.cli.program import status_of
from sawtooth.engines.kernel import Kernel as Engine
from sawtooth.engines.kernel import _words as engine_words
from sawtooth.errors import SawtoothError
from sawtooth.kernel import Kernel, build, find, find_with, source
from sawtooth.kernel.additions import Additions
from sawtooth.kernel.build import remove_trees
from sawtooth.kernel.kernel import everything
from sawtooth.scenario import Scenario
from stand_in_kernel import BOOTS, stand_in

pytestmark = pytest.mark.usefixtures("patience", "cache")

MODULE = 'struct ops { const char *name; } mine = {\n\t.name = "mine",\n};\n'


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Its kernel names reno, cubic, bbr and mine; its make compiles what was added."""
    tree = stand_in(tmp_path / "linux", does=BOOTS.replace("cubic", "cubic bbr mine"))
    makefile = (tree / "Makefile").read_text()
    compiles = "for file in net/ipv4/sawtooth/*.c; do gcc -c -o /dev/null $$file || exit 1; done"
    (tree / "Makefile").write_text(
        makefile.replace("\tgcc -o", f"\t[ ! -d net/ipv4/sawtooth ] || {compiles}\n\tgcc -o")
    )
    (tree / "net/ipv4").mkdir(parents=True)
    (tree / "net/ipv4/Makefile").write_text("obj-y := tcp.o\n")
    for name in ("reno", "cubic", "bbr"):
        (tree / f"net/ipv4/tcp_{name}.c").write_text(f'\t.name\t\t= "{name}",\n')
    return tree


@pytest.fixture
def module(tmp_path: Path) -> Path:
    path = tmp_path / "tcp_mine.c"
    path.write_text(MODULE)
    return path


def patch(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "some.patch"
    path.write_text(text)
    return path


def refused(**options: Any) -> SawtoothError:
    with pytest.raises(SawtoothError) as caught:
        build(**options)
    assert caught.value.fix, "an error names its fix"
    return caught.value


def command(*words: str) -> int:
    return status_of(["kernel", *words])


def test_a_patch_is_applied_to_the_copy_and_described_and_the_source_is_not_touched(
    tmp_path: Path, cache: Path, tree: Path
) -> None:
    before = {path: path.read_bytes() for path in tree.rglob("*") if path.is_file()}
    first = (tree / "linux.c").read_text().splitlines()[:2]
    text = f"--- a/linux.c\n+++ b/linux.c\n@@ -1,2 +1,3 @@\n+/* patched */\n {first[0]}\n {first[1]}\n"
    kernel = build(source_path=tree, patches=[patch(tmp_path, text)], name="patched")
    assert [one["file"] for one in kernel.describe()["patches"]] == ["some.patch"]
    assert len(kernel.patches[0]["sha256"]) == 64
    assert (next(cache.glob("build/*/tree/linux.c"))).read_text().startswith("/* patched */")
    assert {path: path.read_bytes() for path in tree.rglob("*") if path.is_file()} == before


def test_other_patches_are_built_in_the_same_tree_and_only_changed_files_are_written(
    tmp_path: Path, cache: Path, tree: Path
) -> None:
    first = (tree / "linux.c").read_text().splitlines()[0]
    one = f"--- a/linux.c\n+++ b/linux.c\n@@ -1,1 +1,2 @@\n+/* one */\n {first}\n"
    other = one.replace("one", "other") + "--- /dev/null\n+++ b/net/new.h\n@@ -0,0 +1 @@\n+/* new */\n"
    build(source_path=tree, patches=[patch(tmp_path, one)], name="one")
    (copy,) = cache.glob("build/*/tree")
    times = {path: path.stat().st_mtime_ns for path in copy.rglob("*.c") if ".sawtooth" not in path.parts}
    build(source_path=tree, patches=[patch(tmp_path, other)], name="other")
    assert list(cache.glob("build/*/tree")) == [copy]
    assert (copy / "linux.c").read_text().startswith(f"/* other */\n{first}")
    assert (copy / "net/new.h").read_text() == "/* new */\n"
    assert [path.name for path, time in times.items() if path.stat().st_mtime_ns != time] == ["linux.c"]
    error = refused(
        source_path=tree, patches=[patch(tmp_path, one.replace(f" {first}", "-absent\n+new"))], name="broken"
    )
    assert error.code == "patch-failed"
    build(source_path=tree, patches=[patch(tmp_path, one)], modules=[], name="again")
    assert (copy / "linux.c").read_text().startswith(f"/* one */\n{first}")
    assert not (copy / "net/new.h").exists()


@pytest.mark.parametrize("part", ["", "patches: "])
def test_a_mark_that_was_half_written_does_not_pass_for_a_finished_tree(tmp_path: Path, tree: Path, part: str) -> None:
    copy = tmp_path / "copy"
    source.unpack(source.locate(tree), copy, 250)
    assert source.has_patches(copy, "")
    (copy / ".sawtooth/patched").write_text(part)
    assert source.has_patches(copy, "") is False


def test_a_patch_of_the_makefile_beside_the_modules_finds_it_without_them(
    tmp_path: Path, cache: Path, tree: Path, module: Path
) -> None:
    (tree / "net/ipv4/Makefile").write_text("".join(f"obj-y += {name}.o\n" for name in ("ip", "udp", "tcp")))
    text = (
        "--- a/net/ipv4/Makefile\n+++ b/net/ipv4/Makefile\n@@ -1,3 +1,4 @@\n"
        " obj-y += ip.o\n obj-y += udp.o\n obj-y += tcp.o\n+obj-y += more.o\n"
    )
    build(source_path=tree, modules=[module], name="own")
    build(source_path=tree, patches=[patch(tmp_path, text)], modules=[module], name="more")
    (makefile,) = cache.glob("build/*/tree/net/ipv4/Makefile")
    lines = "obj-y += ip.o\nobj-y += udp.o\nobj-y += tcp.o\nobj-y += more.o\n"
    assert makefile.read_text() == lines + "\nobj-y += sawtooth/\n"
    makefile.write_text(makefile.read_text() + "obj-y += last.o\n")
    Additions().lay(makefile.parents[2])
    assert makefile.read_text() == lines + "obj-y += last.o\n"


def test_a_directory_that_a_patchs_message_names_is_left_alone(tmp_path: Path, cache: Path, tree: Path) -> None:
    first = (tree / "linux.c").read_text().splitlines()[0]
    text = f"rename from net/ipv4\n\n--- a/linux.c\n+++ b/linux.c\n@@ -1,1 +1,2 @@\n+/* one */\n {first}\n"
    build(source_path=tree, patches=[patch(tmp_path, text)], name="one")
    (copy,) = cache.glob("build/*/tree")
    assert (copy / "linux.c").read_text().startswith("/* one */")
    assert (copy / "net/ipv4/tcp_reno.c").is_file()


def test_default_names_the_kernel_without_additions(tree: Path) -> None:
    plain = build(source_path=tree)
    named = build(source_path=tree, name="v6-1")
    assert (find(name="default"), find(name="v6-1")) == (plain, named)


def test_a_patch_that_does_not_fit_is_an_error_that_names_file_and_hunk(tmp_path: Path, tree: Path) -> None:
    text = "--- a/Makefile\n+++ b/Makefile\n@@ -1,2 +1,2 @@\n-VERSION = 99\n+VERSION = 100\n PATCHLEVEL = 12\n"
    error = refused(source_path=tree, patches=[patch(tmp_path, text)])
    assert (error.code, error.file) == ("patch-failed", str(tmp_path / "some.patch"))
    assert error.message.startswith("hunk 1 does not fit Makefile, line 1")
    absent = refused(source_path=tree, patches=[patch(tmp_path, text.replace("Makefile", "absent.c"))])
    assert absent.code == "patch-failed"
    assert "can't find file to patch" in absent.message
    junk = refused(source_path=tree, patches=[patch(tmp_path, "no patch\n")])
    assert (junk.code, "garbage" in junk.message) == ("patch-failed", True)
    outside = refused(source_path=tree, patches=[patch(tmp_path, text.replace("/Makefile", "/../../Makefile"))])
    assert outside.code == "patch-failed"
    assert everything() == []


def test_what_a_module_registers_is_found_by_booting(tree: Path, module: Path) -> None:
    kernel = build(source_path=tree, modules=[module], name="own")
    assert kernel.controls == ("bbr", "cubic", "mine", "reno")
    assert [(one["file"], one["controls"]) for one in kernel.modules] == [("tcp_mine.c", ["mine"])]
    assert find(name="own") == kernel


def test_a_module_that_registers_nothing_new_is_an_error(tmp_path: Path, tree: Path, module: Path) -> None:
    second = tmp_path / "tcp_other.c"
    second.write_text(MODULE)
    error = refused(source_path=tree, modules=[module, second])
    assert error.code == "build-failed"
    assert "tcp_mine.c, tcp_other.c: registered mine" in error.message
    second.write_text(MODULE.replace("mine", "cubic"))
    assert "cubic is Linux's own" in refused(source_path=tree, modules=[module, second]).message


def test_a_module_that_does_not_compile_is_reported_with_its_line(tree: Path, module: Path) -> None:
    module.write_text(MODULE + "int broken(void) { return nonsense; }\n")
    error = refused(source_path=tree, modules=[module])
    assert (error.code, error.file) == ("bad-module", str(module))
    assert "tcp_mine.c:4:" in error.message
    assert "nonsense" in error.message


def test_headers_lie_beside_the_modules_and_what_was_built_in_before_is_gone(
    tmp_path: Path, cache: Path, tree: Path, module: Path
) -> None:
    header = tmp_path / "mine.h"
    header.write_text("#define NAME 1\n")
    module.write_text('#include "mine.h"\n' + MODULE)
    build(source_path=tree, modules=[module, header], name="own")
    folder = next(cache.glob("build/*/tree/net/ipv4/sawtooth"))
    assert sorted(path.name for path in folder.iterdir()) == ["Makefile", "mine.h", "tcp_mine.c"]
    assert (folder.parent / "Makefile").read_text() == "obj-y := tcp.o\n\nobj-y += sawtooth/\n"
    plain = build(source_path=tree)
    assert plain.is_plain
    assert not folder.exists()
    assert (folder.parent / "Makefile").read_text() == "obj-y := tcp.o\n"


def test_after_a_change_only_that_is_compiled(cache: Path, tree: Path, module: Path) -> None:
    build(source_path=tree, modules=[module], name="own")
    log = next(cache.glob("build/*/compiled"))
    steps = log.read_text()
    module.write_text(MODULE + "/* changed */\n")
    second = build(source_path=tree, modules=[module], name="own")
    assert log.read_text() == steps
    assert [kernel.path for kernel in everything()] == [second.path]


def test_one_tree_is_kept_and_a_kernel_without_additions_leaves_none(
    tmp_path: Path, cache: Path, tree: Path, module: Path
) -> None:
    build(source_path=tree)
    assert list((cache / "build").iterdir()) == []
    build(source_path=tree, modules=[module], name="own")
    build(source_path=tree, modules=[module], name="own", hz=1000)
    assert [path.name[:6] for path in (cache / "build").iterdir()] == ["hz1000"]
    build(source_path=tree, hz=300)
    assert [path.name[:6] for path in (cache / "build").iterdir()] == ["hz1000"]
    assert len(remove_trees()) == 1
    assert list((cache / "build").iterdir()) == []


def test_scenarios_names_of_controls_hide_the_kernels_own(tree: Path, module: Path) -> None:
    kernel = build(source_path=tree, modules=[module], name="two", names={"bbr3": "bbr", "bbr": "mine"})
    assert kernel.controls == ("bbr", "bbr3", "cubic", "reno")
    assert [kernel.own(name) for name in kernel.controls] == ["mine", "bbr", "cubic", "reno"]
    assert kernel.describe()["names"] == {"bbr": "mine", "bbr3": "bbr"}


@pytest.mark.parametrize(
    ("names", "code"),
    [
        ({"bbr3": "absent"}, "unknown-name"),
        ({"cubic": "mine"}, "conflict"),
        ({"no name": "mine"}, "bad-name"),
        ({"mine": "a-name-of-too-many-letters"}, "bad-name"),
    ],
)
def test_a_name_for_what_is_not_there_or_that_hides_another_is_refused(
    tree: Path, module: Path, names: dict[str, str], code: str
) -> None:
    assert refused(source_path=tree, modules=[module], names=names).code == code


@pytest.mark.parametrize("name", ["", "with space", "12", "default", "x" * 41, "../up", ".6", "6..1"])
def test_a_kernels_name_is_one_that_a_scenario_can_say(tree: Path, name: str) -> None:
    assert refused(source_path=tree, name=name).code == "bad-name"


@pytest.mark.parametrize("name", ["v6.1", "6.1.192"])
def test_a_kernel_may_be_called_by_its_version(tree: Path, name: str) -> None:
    assert build(source_path=tree, name=name).name == name
    assert find(name=Scenario(host={"kernel": name}).host.kernel).name == name
    assert status_of(["kernel", "remove", name]) == 0
    assert everything() == []


def test_files_that_make_could_not_name_are_refused(tmp_path: Path, tree: Path, module: Path) -> None:
    odd = tmp_path / "a b.c"
    odd.write_text(MODULE)
    assert refused(source_path=tree, modules=[odd]).code == "bad-name"
    assert refused(source_path=tree, modules=[tmp_path / "absent.c"]).code == "file-not-found"
    assert refused(source_path=tree, modules=[module, module]).code == "duplicate-name"
    assert refused(source_path=tree, patches=[tmp_path]).code == "file-unreadable"


def test_a_kernel_with_additions_is_taken_only_where_it_is_named(tree: Path, module: Path) -> None:
    build(source_path=tree, modules=[module], name="own")
    with pytest.raises(SawtoothError, match="no user-mode kernel"):
        find()
    plain = build(source_path=tree)
    build(source_path=tree, modules=[module])
    assert find() == plain
    with expected_error(code="kernel-missing") as caught:
        find(name="owm")
    assert "there is own" in str(caught.value.fix)


def test_the_engine_names_the_kernel_that_has_a_control(tree: Path, module: Path) -> None:
    build(source_path=tree)
    kernel = build(source_path=tree, modules=[module], names={"veno": "mine"}, name="own")
    with expected_error(fix='set host.kernel to "own", which has it', match="this kernel has no veno"):
        Engine().check(Scenario(flows=[{"cc": "veno"}]))
    assert "veno" in kernel.controls
    Engine().check(Scenario(flows=[{"cc": "veno"}], host={"kernel": "own"}))
    with pytest.raises(SawtoothError, match='kernel "own" has no mine'):
        Engine().check(Scenario(flows=[{"cc": "mine"}], host={"kernel": "own"}))
    with expected_error(code="kernel-missing", field="host.kernel"):
        Engine().check(Scenario(host={"kernel": "other"}))


def test_the_commands_build_list_show_and_remove(tree: Path, module: Path, capsys: pytest.CaptureFixture[str]) -> None:
    built = ["build", "--source", str(tree), "--with", str(module), "--name", "own", "--as", "bbr3=bbr", "--quiet"]
    assert command(*built) == 0
    assert 'kernel "own" 6.12.7, HZ 250' in (told := capsys.readouterr().out)
    assert "tcp_mine.c: mine" in told
    assert command("list") == 0
    row = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("own"))
    assert row.split()[1:3] == ["6.12.7", "250"]
    assert "bbr3 cubic mine reno" in row
    assert "tcp_mine.c" in row
    assert command("list", "--json") == 0
    assert json.loads(capsys.readouterr().out)[0]["size_bytes"] > 0
    assert command("info", "own") == 0
    assert "with        tcp_mine.c, SHA-256 " in capsys.readouterr().out
    assert command("remove", "owm") == 2
    assert 'did you mean "own"?' in capsys.readouterr().err
    assert command("remove") == 2
    assert command("build", "--as", "bbr3") == 2
    assert command("remove", "own", "--trees", "--quiet") == 0
    assert everything() == []
    assert command("list") == 0
    assert "no kernel is built" in capsys.readouterr().out


def test_descriptions_of_before_are_read(tree: Path) -> None:
    kernel = build(source_path=tree)
    about = json.loads((kernel.path.parent / "kernel.json").read_text())
    assert not {"name", "patches", "modules", "names"} & set(about)
    assert isinstance(find(), Kernel)


def test_a_kernel_is_found_by_the_very_file_that_is_built_in(tree: Path, module: Path) -> None:
    kernel = build(source_path=tree, modules=[module])
    digest = kernel.modules[0]["sha256"]
    assert find_with({str(module): digest}) == kernel
    assert kernel.registered(digest) == ("mine",)
    for sources, name in (({str(module): "0" * 64}, None), ({str(module): digest}, "own")):
        with expected_error(code="kernel-missing") as caught:
            find_with(sources, 250, name)
        assert f"sawtooth kernel build --with {module}" in str(caught.value.fix)


def test_a_flow_whose_control_is_a_file_runs_on_the_kernel_that_has_it_built_in(tree: Path, module: Path) -> None:
    flows = [{"cc": {"source": str(module)}}, {"cc": "cubic"}]
    with pytest.raises(SawtoothError) as caught:
        Engine().check(Scenario(flows=flows))
    assert f"sawtooth kernel build --with {module}" in str(caught.value.fix)
    build(source_path=tree, modules=[module])
    Engine().check(Scenario(flows=flows))
    with expected_error(code="unsupported", field="flows.0.cc"):
        Engine().check(Scenario(flows=[{"cc": {"source": str(module), "name": "other"}}]))
    module.write_text(MODULE + "/* changed */\n")
    with pytest.raises(SawtoothError, match="as it is now"):
        Engine().check(Scenario(flows=flows))


TUNED = """
#include <linux/module.h>
#include <net/tcp.h>
static int beta = 800;
module_param(beta, int, 0644);
static struct tcp_congestion_ops mine = {
	.ssthresh = tcp_reno_ssthresh, .cong_avoid = tcp_reno_cong_avoid, .undo_cwnd = tcp_reno_undo_cwnd, .name = "mine",
};
static int __init mine_register(void) { return tcp_register_congestion_control(&mine); }
module_init(mine_register);
"""


def test_parameters_of_modules_are_words_of_the_kernels_command_line_and_of_all_flows(tmp_path: Path) -> None:
    path = tmp_path / "tcp-mine.c"
    path.write_text(TUNED)

    def words(*parameters: dict[str, Any]) -> tuple[str, ...]:
        flows = [{"cc": {"source": str(path), "parameters": one}} for one in parameters]
        return engine_words(Scenario(flows=[*flows, {"cc": "cubic"}]).compile())

    assert words({}) == ()
    assert words({"beta": 700}, {"beta": 700}) == ('tcp_mine.beta="700"',)
    for given, code, field in (
        (({"beta": 700}, {}), "conflict", "flows.1.cc.parameters"),
        (({"beta": 700}, {"beta": 701}), "conflict", "flows.1.cc.parameters"),
        (({"beta": 'a"b'},), "unsupported", "flows.0.cc.parameters.beta"),
        (({"beta": "many"},), "module-refused", "flows.0.cc.parameters.beta"),
        (({"gamma": 1},), "unknown-name", "flows.0.cc.parameters.gamma"),
    ):
        with expected_error(code=code, field=field):
            words(*given)
