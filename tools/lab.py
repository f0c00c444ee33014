"""Builds the page of `sawtooth lab`: its scripts with esbuild, the core as WebAssembly.

    python tools/lab.py [--to DIRECTORY]

It installs the packages of web/package-lock.json from npm's registry, into web/node_modules.
"""

from __future__ import annotations

import argparse
import gzip
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import webassembly

from sawtooth.lab.site import KINDS, SERVED
from sawtooth.study import published

ROOT = Path(__file__).resolve().parents[1]
WEB = ROOT / "web"
SITE = ROOT / "src" / "sawtooth" / "lab" / "built"
HELD = ("uplot",)
"""Packages that are included in the page."""
PARTS = {"page": "page.ts", "worker": "worker.ts", "capture": "capture/reader.ts", "results": "results/page.ts"}
PARTS |= {"watcher": "understand/watcher.ts", "offline": "offline.ts"}
"""Files of the page, by the name that they have in it."""
FOR_NODE = ("amount", "core", "experiment", "heavy", "language", "presets", "series", "summary")
FOR_NODE += ("sliders", "warnings", "understand/events", "capture/estimate")
"""Files that the tests run in node."""


def build(site: Path) -> None:
    """Write the page's files. Raises MissingError if there is no Rust compiler, or no node with npm."""
    esbuild = _esbuild()
    site.mkdir(parents=True, exist_ok=True)
    for part in webassembly.PARTS:
        core = site / f"{part}.wasm"
        webassembly.build(part, core)
        (site / f"{core.name}.gzip").write_bytes(gzip.compress(core.read_bytes(), 9, mtime=0))
        core.unlink()
    bundle = [esbuild, "--bundle", "--format=esm", "--target=es2022", "--log-level=warning"]
    pages = [f"{name}={WEB / 'lab' / source}" for name, source in PARTS.items()]
    known = [f"--define:PUBLISHED={json.dumps([_figures(name) for name in published.shipped()])}"]
    known.append(f"--define:FIRST={_first(bundle)}")
    known.append(f"--define:FILES={json.dumps(['./', *(name for name in KINDS if name not in SERVED)])}")
    # Remove comments, because some contain host names. The full licences are at the start of the file.
    told = ["--legal-comments=none", f"--banner:js={_licences()}"]
    subprocess.run([*bundle, "--minify", *known, *told, f"--outdir={site}", *pages], check=True)
    for file in ("index.html", "results.html", "preview.png"):
        shutil.copy(WEB / "lab" / file, site)


def for_node(directory: Path) -> None:
    """Write the files that the tests run in node."""
    parts = [str(WEB / "lab" / f"{name}.ts") for name in FOR_NODE]
    ending = "--out-extension:.js=.mjs"
    bundle = ["--bundle", "--format=esm", "--target=es2022", "--log-level=warning", ending, f"--outdir={directory}"]
    subprocess.run([_esbuild(), *bundle, *parts], check=True)
    for part in webassembly.PARTS:
        webassembly.build(part, directory / f"{part}.wasm")


def _first(bundle: list[str]) -> str:
    """The answers that the page shows before its core is loaded, as JSON: what the core simulates."""
    with tempfile.TemporaryDirectory() as aside:
        directory = Path(aside)
        core = directory / "simulator.wasm"
        webassembly.build("simulator", core)
        subprocess.run([*bundle, f"--outfile={directory / 'first.mjs'}", WEB / "lab/opening/first.ts"], check=True)
        code = "const { first } = await import('./first.mjs'); const { readFileSync } = await import('node:fs');"
        code += f"console.log(JSON.stringify(await first(readFileSync('{core.name}'))));"
        node = ["node", "--input-type=module", "--eval", code]
        return subprocess.run(node, cwd=directory, check=True, capture_output=True, text=True).stdout.strip()


def _licences() -> str:
    """The licences of the packages in the page."""
    texts = [f"{name}:\n{(WEB / 'node_modules' / name / 'LICENSE').read_text().strip()}" for name in HELD]
    return "/*! sawtooth, Apache-2.0. With " + "\n\n".join(texts) + "\n*/"


def _figures(name: str) -> dict[str, object]:
    """Data of published figures for the page: means against loss, with acknowledgements on a different path."""
    given = published.load(name)
    table = given.figures[given.figures["trusted"]]
    if "path" in table:
        table = table[table["path"] == "asymmetric"]
    curves = []
    if "loss_percent" in table:
        for cc, rows in table[table["loss_percent"] > 0].groupby("cc"):
            points = [{"loss": row.loss_percent, "mbps": row.mean_mbps} for row in rows.itertuples()]
            curves.append({"cc": cc, "points": points})
    return {"name": name, "source": given.source, "curves": curves}


def _esbuild() -> str:
    """Install the packages of the lock file, if not yet done."""
    if shutil.which("npm") is None or shutil.which("node") is None:
        raise webassembly.MissingError("there is no node with npm; fix: apt install nodejs npm")
    modules = WEB / "node_modules"
    lock, done = WEB / "package-lock.json", modules / ".of-lock"
    if not done.exists() or done.read_bytes() != lock.read_bytes():
        command = ["npm", "ci", "--no-audit", "--no-fund", "--silent"]
        installed = subprocess.run(command, cwd=WEB, capture_output=True, text=True)
        if installed.returncode:
            told = (installed.stderr or installed.stdout).strip()
            raise webassembly.MissingError(f"npm could not install web/package-lock.json: {told}; fix: try again")
        shutil.copy(lock, done)
    return str(modules / ".bin" / "esbuild")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--to", type=Path, default=SITE, metavar="DIRECTORY")
    try:
        build(parser.parse_args().to)
    except webassembly.MissingError as missing:
        sys.exit(f"lab: {missing}")


if __name__ == "__main__":
    main()
