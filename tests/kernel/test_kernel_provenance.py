"""The source of a kernel is what its packager, or whoever named it, meant: it is checked and reported."""

import hashlib
import json
import os
import subprocess
import tarfile
from pathlib import Path

import pytest

from expected_error import expected_error
from sawtooth.cli.program import status_of
from sawtooth.errors import SawtoothError
from sawtooth.kernel import build, edits, provenance, source
from stand_in_kernel import stand_in

VERSION = "6.12.7-1"


@pytest.fixture
def tarball(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    tree = stand_in(tmp_path / "linux-6.12.7")
    path = tmp_path / "linux.tar.xz"
    with tarfile.open(path, "w:xz") as archive:
        archive.add(tree, arcname="linux-6.12.7")
    return path


@pytest.fixture
def packaged(tarball: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """That tarball as if a package manager had installed it; the package manager's answers can be changed."""
    said = {
        f"dpkg-query --search {tarball}": f"linux-source-6.12: {tarball}\n",
        "dpkg-query --show --showformat=${Version} linux-source-6.12": VERSION,
        "dpkg-query --control-show linux-source-6.12 md5sums": (
            f"{hashlib.md5(tarball.read_bytes()).hexdigest()}  {str(tarball)[1:]}\n"
        ),
    }
    monkeypatch.setattr(provenance, "_ask", lambda *command: said.get(" ".join(command), ""))
    monkeypatch.setattr(provenance.shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(provenance, "_only_roots", lambda path: None)
    monkeypatch.setattr(provenance, "ARCHIVES", tmp_path / "archives")
    return said


def checked(tarball: Path) -> str:
    return provenance.check(tarball, hashlib.sha256(tarball.read_bytes()).hexdigest())


def refused(tarball: Path) -> str:
    with expected_error(code="bad-source") as caught:
        checked(tarball)
    return caught.value.message


def archive(tarball: Path, tmp_path: Path, said: dict[str, str], *, content: bytes | None = None) -> Path:
    """The package that contains it, in apt's archive and lists."""
    root = tmp_path / "root"
    held = root / str(tarball)[1:]
    held.parent.mkdir(parents=True)
    held.write_bytes(tarball.read_bytes() if content is None else content)
    (root / "DEBIAN").mkdir()
    (root / "DEBIAN" / "control").write_text(
        f"Package: linux-source-6.12\nVersion: {VERSION}\nArchitecture: all\nMaintainer: a <a@b.c>\nDescription: d\n"
    )
    (tmp_path / "archives").mkdir()
    package = tmp_path / "archives" / f"linux-source-6.12_{VERSION}_all.deb"
    subprocess.run(["dpkg-deb", "--build", "--root-owner-group", root, package], check=True, capture_output=True)
    digest = hashlib.sha256(package.read_bytes()).hexdigest()
    said[f"apt-cache show linux-source-6.12={VERSION}"] = f"Package: linux-source-6.12\nSHA256: {digest}\n"
    return package


def test_a_packaged_source_is_the_file_that_was_installed(tarball: Path, packaged: dict[str, str]) -> None:
    assert checked(tarball) == f"as linux-source-6.12 {VERSION} installed it (MD5 on dpkg's record)"
    with tarball.open("ab") as file:
        file.write(b"more")
    assert "is not the file that the package linux-source-6.12" in refused(tarball)


def test_a_package_without_a_record_of_the_file_is_refused(tarball: Path, packaged: dict[str, str]) -> None:
    packaged["dpkg-query --control-show linux-source-6.12 md5sums"] = ""
    assert "is not the file" in refused(tarball)


def test_where_the_package_is_at_hand_it_is_the_one_of_apts_lists_and_holds_the_file(
    tarball: Path, packaged: dict[str, str], tmp_path: Path
) -> None:
    package = archive(tarball, tmp_path, packaged)
    assert checked(tarball).endswith("and as in the package, whose SHA-256 is the one in apt's lists")
    package.write_bytes(package.read_bytes() + b"more")
    assert "is not the package that apt's lists name" in refused(tarball)


def test_a_file_and_a_record_that_were_both_changed_are_not_those_of_the_package(
    tarball: Path, packaged: dict[str, str], tmp_path: Path
) -> None:
    archive(tarball, tmp_path, packaged, content=b"another source")
    assert "is not the file of the package" in refused(tarball)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to make root's and others' files")
def test_a_packaged_file_that_others_may_change_is_refused(
    tarball: Path, packaged: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    with pytest.raises(SawtoothError, match="others than root"):
        # Below the directory for temporary files, where everybody may write.
        provenance._only_roots(tarball)
    provenance._only_roots(Path("/usr/bin/env"))


def test_a_given_tarball_has_its_digest_told_and_kept(tarball: Path, capsys: pytest.CaptureFixture[str]) -> None:
    digest = hashlib.sha256(tarball.read_bytes()).hexdigest()
    assert status_of(["kernel", "build", "--source", str(tarball)]) == 0
    assert digest in capsys.readouterr().err
    assert status_of(["kernel", "info", "--json"]) == 0
    (about,) = json.loads(capsys.readouterr().out)
    assert about["source_sha256"] == digest
    assert about["source_checked"].startswith("nothing")
    assert status_of(["kernel", "info"]) == 0
    assert f"SHA-256     {digest}" in capsys.readouterr().out


def test_a_directory_says_that_nothing_was_checked(tarball: Path, tmp_path: Path) -> None:
    assert build(source_path=tmp_path / "linux-6.12.7").source_checked == "nothing: a directory"


def test_a_tarball_that_changes_while_it_is_unpacked_is_refused(
    tarball: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = source.locate(tarball)
    extract = source._extract

    def slow(path: Path, into: Path) -> None:
        extract(path, into)
        with path.open("ab") as file:
            file.write(b"\0")

    monkeypatch.setattr(source, "_extract", slow)
    with pytest.raises(SawtoothError, match="changed while it was unpacked"):
        source.unpack(chosen, tmp_path / "tree", 250)
    assert not (tmp_path / "tree").exists()


@pytest.mark.skipif(not source.PACKAGED.exists(), reason=f"the package {edits.PACKAGE} is not installed")
@pytest.mark.usefixtures("patience")
def test_debians_package_is_as_it_was_installed() -> None:
    chosen = source.locate()
    assert provenance.check(chosen.path, chosen.sha256).startswith(f"as {edits.PACKAGE} 6.12")
