"""The examples on the pages work: their Python runs, their files are valid, their commands and options exist."""

import ast
import re
import shlex
import tomllib
from pathlib import Path

import click
import nbformat
import pytest
from nbclient import NotebookClient

import notebook
from sawtooth import run
from sawtooth.cli.program import sawtooth
from sawtooth.scenario import Scenario

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def blocks(page: Path, language: str) -> list[str]:
    return [text for kind, text in BLOCK.findall(page.read_text(encoding="utf-8")) if kind == language]


def commands(page: Path) -> list[str]:
    """Terminal lines that call sawtooth, with continuation lines joined."""
    text = page.read_text(encoding="utf-8").replace("\\\n", " ")
    fenced = "\n".join(body for kind, body in BLOCK.findall(text) if kind in ("", "sh", "console"))
    indented = "\n".join(re.findall(r"^ {4,}(\S.*)$", text, re.MULTILINE))
    return re.findall(r"^\s*(?:\$ )?(sawtooth [a-z][^;:\n]*)", f"{fenced}\n{indented}", re.MULTILINE)


def leaf(words: list[str]) -> tuple[click.Command, list[str]]:
    """The command that the words name, and the words after its name."""
    found: click.Command = sawtooth
    context = click.Context(found)
    while isinstance(found, click.Group) and words and not words[0].startswith("-"):
        below = found.get_command(context, words[0])
        assert below is not None, f"there is no command {words[0]!r}"
        found, words = below, words[1:]
    return found, words


def test_the_page_of_tables_lists_every_table_and_column_of_a_run() -> None:
    pages = {"kind": "pages", "objects": 2, "sizes": "10 kB"}
    sources = [pages, {"kind": "requests", "sizes": "10 kB"}, {"kind": "video"}, {"kind": "udp"}]
    path = {"loss": "1%", "policer": {"rate": "10 Mbit/s", "burst": "64 KiB"}}
    flows = [{}, *({"source": source} for source in sources)]
    made = run(Scenario.from_dict({"duration": "2 s", "path": path, "flows": flows, "probes": [{}]}))
    page = (ROOT / "docs/reference/tables.md").read_text(encoding="utf-8")
    rows = {row[1]: row[0] for row in re.finditer(r"^\| `(\w+)` \|.*$", page, re.MULTILINE)}
    for table, frame in made.tables.items():
        assert set(frame.columns) <= set(re.findall(r"`(\w+)`", rows[table])), table
    assert {"probes", "datagrams", "responses", "pages", "segments"} <= set(made.tables)


@pytest.mark.usefixtures("patience")
def test_the_python_of_the_readme_runs_from_top_to_bottom(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = ROOT / "README.md"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    for text in blocks(page, "toml"):
        named = tomllib.loads(text).get("name")
        if named is not None:
            (tmp_path / f"{named}.toml").write_text(text, encoding="utf-8")
    namespace: dict[str, object] = {}
    ran = blocks(page, "python")
    assert ran
    for text in ran:
        exec(compile(text, name(page), "exec"), namespace)


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")], ids=name)
def test_what_the_python_of_a_page_imports_is_there(page: Path) -> None:
    if page.name == "api.md":
        # Signatures: tests/project/test_public_api.py compares them with the package.
        return
    if page.parent.name == "contributing":
        # The guide adds it, so it does not exist yet.
        return
    for text in blocks(page, "python"):
        tree = ast.parse(text)
        imports = [one for one in tree.body if isinstance(one, ast.Import | ast.ImportFrom)]
        exec(compile(ast.Module(imports, []), name(page), "exec"), {})


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "toml")], ids=name)
def test_the_files_of_a_page_are_read(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    # How pages name a distribution of sizes.
    (tmp_path / "transfers.cdf").write_text("1000 0.5\n100000 1\n", encoding="utf-8")
    for text in blocks(page, "toml"):
        tables = tomllib.loads(text)
        # Other blocks are parts of a file, or lists of all fields.
        if (
            "flows" in tables
            and not {"path", "links"} <= set(tables)
            and set(tables) <= set(Scenario.json_schema()["properties"])
        ):
            Scenario.from_dict(tables)


@pytest.mark.parametrize("page", [page for page in PAGES if commands(page)], ids=name)
def test_the_commands_of_a_page_and_their_options_exist(page: Path) -> None:
    for line in commands(page):
        words = shlex.split(line, comments=True)[1:]
        if page.name == "verb.md" and words[0] == "ceiling":
            # The guide adds it.
            continue
        found, rest = leaf(words)
        known = {option for one in found.params for option in (*one.opts, *one.secondary_opts)} | {
            "--help",
            "--version",
        }
        for word in rest:
            if word in ("|", ">", "&&", ";", "--"):
                break
            if re.match(r"--?[a-z]", word):
                option = word.partition("=")[0]
                assert option in known or option[:2] in known, f"{name(page)}: {line}: there is no {option}"


def test_the_notebook_is_the_tutorial() -> None:
    made = notebook.text_of(notebook.notebook((ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")))
    fix = "python tools/notebook.py writes it"
    assert (ROOT / "docs" / "tutorial.ipynb").read_text(encoding="utf-8") == made, fix


@pytest.mark.usefixtures("patience")
def test_the_notebook_runs_in_jupyter(tmp_path: Path) -> None:
    found = nbformat.read(ROOT / "docs" / "tutorial.ipynb", as_version=4)
    ran = NotebookClient(found, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = [output for cell in ran.cells if cell.cell_type == "code" for output in cell.outputs]
    assert any("image/png" in output.get("data", {}) for output in shown), "a figure is among what cells show"


def test_the_citation_names_this_version() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
