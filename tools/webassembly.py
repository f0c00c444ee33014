"""Builds the core as WebAssembly, for pages.

    python tools/webassembly.py simulator|captures FILE.wasm

The compiler is rustup's where that has the target wasm32-unknown-unknown, else Debian's (rustc-web), fetched by apt-get
download and unpacked into the cache, nothing installed. A build of the same sources is taken from the cache.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sawtooth.io.tempdirs import cache

ROOT = Path(__file__).resolve().parents[1]
TARGET = "wasm32-unknown-unknown"
CRATES = ("units", "tcp", "net", "scenario", "limits", "capture", "bindings/wasm")
"""The files that it is made from."""


class MissingError(Exception):
    """No compiler for WebAssembly is available: why, and what to do."""


@dataclass(frozen=True)
class Compiler:
    """``version`` is the compiler's own text; the rest is what cargo needs to use it, beyond its usual arguments and
    environment.
    """

    version: str
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)


SMALL = ("sawtooth-scenario", "sawtooth-limits", "serde", "serde_core", "serde_json", "sha2", "toml", "toml_parser")
"""Packages that a page calls once per scenario or picture, and loads: optimized for size."""
PARTS = ("simulator", "captures")
"""The parts of the core, each a module: features of crates/bindings/wasm."""


def build(part: str, made: Path) -> None:
    """Writes a part of the core to ``made``. Raises MissingError."""
    if shutil.which("cargo") is None:
        raise MissingError("there is no cargo on the PATH; fix: install Rust with rustup, see https://rustup.rs")
    kept = cache() / "webassembly"
    compiler = _installed() or _debians(kept)
    done = kept / f"{part}-{_digest(compiler)}.wasm"
    if not done.exists():
        settings = {"PANIC": "abort", "DEBUG": "false"}
        profile = {f"CARGO_PROFILE_RELEASE_{name}": value for name, value in settings.items()}
        # Specific to this checkout: cargo distinguishes builds of one name only by time, and another checkout's may be
        # newer.
        target = ROOT / "target" / "webassembly"
        places = ["--target", TARGET, "--target-dir", str(target)]
        # Function names are more than half of the file.
        places += ["--config", "profile.release.package.sawtooth-wasm.strip=true"]
        for package in SMALL:
            places += ["--config", f'profile.release.package.{package}.opt-level="z"']
        places += ["-p", "sawtooth-wasm", "--no-default-features", "--features", part]
        subprocess.run(
            ["cargo", "build", "--quiet", "--locked", "--release", *places, *compiler.arguments],
            cwd=ROOT,
            env={**os.environ, **profile, **compiler.environment},
            check=True,
        )
        shutil.copy(target / TARGET / "release" / "sawtooth.wasm", _aside(done))
        _aside(done).replace(done)
    made.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(done, made)


def _digest(compiler: Compiler) -> str:
    """A digest of everything that determines the output."""
    found = hashlib.sha256(f"{compiler.version}\n{Path(__file__).read_text()}".encode())
    for path in sorted(_sources()):
        found.update(f"{path.relative_to(ROOT)}\n".encode() + path.read_bytes())
    return found.hexdigest()[:24]


def _sources() -> Iterator[Path]:
    yield from (ROOT / "Cargo.toml", ROOT / "Cargo.lock")
    for crate in CRATES:
        yield ROOT / "crates" / crate / "Cargo.toml"
        yield from (ROOT / "crates" / crate / "src").rglob("*.rs")


def _aside(path: Path) -> Path:
    return path.with_name(f"{path.name}.{os.getpid()}")


def _installed() -> Compiler | None:
    """The compiler on the PATH, if it has this target's standard library."""
    rustc = os.environ.get("RUSTC", "rustc")
    found = subprocess.run([rustc, "--print", "target-libdir", "--target", TARGET], capture_output=True, text=True)
    if found.returncode or not any(Path(found.stdout.strip()).glob("libstd-*.rlib")):
        return None
    return Compiler(_told([rustc, "--version"]))


@functools.cache
def _debians(kept: Path) -> Compiler:
    """Debian's compiler, with its own linker and the sources of its standard library, which cargo builds as well."""
    rustup = f"where rustup has it: rustup target add {TARGET}"
    if shutil.which("apt-get") is None or shutil.which("dpkg") is None or platform.machine() != "x86_64":
        raise MissingError(
            f"no compiler here has the target {TARGET}, and there are no packages of Debian; fix: {rustup}"
        )
    versions = dict(_packages(rustup))
    place = kept / hashlib.sha256(repr(sorted(versions.items())).encode()).hexdigest()[:24]
    if not place.exists():
        _unpack(versions, place, rustup)
    usr = place / "usr"
    (linker,) = usr.glob("bin/wasm-ld-*")
    libraries = usr / "lib" / "x86_64-linux-gnu"
    environment = {
        "RUSTC": str(usr / "bin" / "rustc"),
        "LD_LIBRARY_PATH": str(libraries),
        # build-std works with nightly compilers only.
        "RUSTC_BOOTSTRAP": "1",
        f"CARGO_TARGET_{TARGET.upper().replace('-', '_')}_LINKER": str(linker),
    }
    return Compiler(f"rustc-web {versions['rustc-web']}", ("-Z", "build-std=std,panic_abort"), environment)


def _packages(rustup: str) -> Iterator[tuple[str, str]]:
    """Names and versions of everything needed, as apt would install them now."""
    standard = _needed_by("libstd-rust-web-dev", r"libstd-rust-web-[0-9.]+")
    llvm = _needed_by(standard, r"libllvm[0-9]+") if standard else ""
    linker = llvm.replace("libllvm", "lld-")
    names = ("rustc-web", "libstd-rust-web-dev", "rust-web-src", standard, llvm, linker)
    # In one call, because each takes apt a second or more.
    told = _told(["apt-cache", "policy", *filter(None, names)])
    for name in names:
        found = re.search(rf"(?m)^{re.escape(name)}:\n  Installed: .*\n  Candidate: (?!\(none\))(\S+)$", told)
        if not name or found is None:
            message = f"no compiler here has the target {TARGET}, and apt knows no {name or 'libstd-rust-web-dev'}"
            raise MissingError(f"{message}; fix: apt-get update on Debian 12 with its security archive, or {rustup}")
        yield name, found[1]


def _needed_by(package: str, pattern: str) -> str:
    """The first dependency that matches the pattern."""
    found = re.search(rf"(?m)^ +Depends: ({pattern})$", _told(["apt-cache", "depends", package]))
    return "" if found is None else found[1]


def _unpack(versions: Mapping[str, str], place: Path, rustup: str) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    print(f"fetching Debian's compiler for {TARGET}: {', '.join(versions)}", file=sys.stderr)
    with tempfile.TemporaryDirectory(dir=place.parent) as aside:
        wanted = [f"{name}={version}" for name, version in versions.items()]
        fetched = subprocess.run(["apt-get", "download", "--quiet", *wanted], cwd=aside, capture_output=True, text=True)
        if fetched.returncode:
            told = fetched.stderr.strip() or "apt-get says nothing"
            raise MissingError(f"Debian's compiler could not be fetched: {told}; fix: try again, or {rustup}")
        whole = Path(aside, "whole")
        for package in Path(aside).glob("*.deb"):
            subprocess.run(["dpkg", "-x", package, whole], check=True)
        # Another process may have been faster.
        if not place.exists():
            whole.replace(place)


def _told(command: Sequence[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("made", type=Path, metavar="FILE.wasm")
    try:
        given = parser.parse_args()
        build(given.part, given.made)
    except MissingError as missing:
        sys.exit(f"lab: {missing}")


if __name__ == "__main__":
    main()
