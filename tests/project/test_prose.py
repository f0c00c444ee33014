"""The documentation is plain English: its vocabulary, the length of its sentences and of its lines."""

import ast
import inspect
import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from sawtooth.cli.program import SECTIONS, sawtooth

ROOT = Path(__file__).parents[2]
PROSE = ROOT / "tools" / "prose"
OUTSIDE = {"start.md", "changelog.md", "contributing/index.md", "field.md", "gallery.in.md", "validation.in.md"}
"""Stand-ins for pages outside docs/, and templates of other pages."""
DOCS = {page.relative_to(ROOT / "docs").as_posix(): page for page in sorted((ROOT / "docs").rglob("*.md"))}
PAGES = [ROOT / "README.md", *(page for name, page in DOCS.items() if name not in OUTSIDE)]
WIDEST = 100
"""Columns of a line of prose."""
LONGEST_MEAN = 15.0
"""Words in a page's mean sentence."""
FENCED = re.compile(r"^(```|~~~).*?^\1[^\n]*$", re.MULTILINE | re.DOTALL)
NOT_PROSE = re.compile(r"^(?: {4,}|\||!\[|#|:::|<!--|%).*$", re.MULTILINE)


CODE = ("src/**/*.py", "tests/**/*.py", "tools/*.py", "crates/**/*.rs", "web/**/*.ts")
COMMENT = re.compile(r"^\s*(?:#|//[/!]?|/?\*\*?) +(.*?)(?: \*/)?$", re.MULTILINE)
SHAPES = re.compile(
    r"\b(?:is|are|was|were) told\b(?! to\b)|\btold apart\b|\btells? of\b"
    r"|(?:^|[.!?] )Of (?:the|an?|each|all|its|these|those|what|one|two|such)\b"
    r"|\bof (?:its|their|your|our|one's) own\b(?= *[.,;:)]|$)"
    r"|\bno more\.|\blooked at\b|\b(?:two|each|every|between) looks\b|\b(?:is|are) to (?:be|hold)\b"
    r"|\banew\b|\bfor ever\b|\bluck\b(?!`)|\bseldom\b|\bheeds?\b|\bgoes on\b|\bat the least\b"
    r"|\b(?:stands?|lies) (?:in(?! for)|at|beside|under|below|on|above)\b|\bso (?:many|much) (?:bytes|segments)\b"
)
"""Riddles, fronted genitives and archaic words, which comments and docstrings avoid."""


def prose(page: Path) -> str:
    """The page without code, tables, headings and pictures."""
    return NOT_PROSE.sub("", FENCED.sub("", page.read_text(encoding="utf-8")))


def mean_sentence(text: str) -> float:
    """Words per sentence; inline code and the target of a link count as one word or none."""
    plain = re.sub(r"`[^`]*`", "code", re.sub(r"\]\([^)]*\)", "]", text))
    paragraphs = re.split(r"\n\s*\n|\n(?=[-*] |\d+\. |: )", plain)
    sentences = [one for part in paragraphs for one in re.split(r"(?<=[.!?:])\s+", part) if re.search(r"\w", one)]
    return sum(len(re.findall(r"[\w'’-]+", one)) for one in sentences) / max(len(sentences), 1)


@pytest.fixture(scope="module")
def textlint(npm: str) -> Path:
    """textlint with the rules of tools/prose, installed from its lock file."""
    installed, lock = PROSE / "node_modules" / ".package-lock.json", PROSE / "package-lock.json"
    if not installed.is_file() or installed.stat().st_mtime < lock.stat().st_mtime:
        command = [npm, "ci", "--no-audit", "--no-fund", "--silent"]
        subprocess.run(command, cwd=PROSE, check=True, capture_output=True, timeout=280)
    return PROSE / "node_modules" / ".bin" / "textlint"


def complaints(textlint: Path, *pages: Path) -> list[str]:
    command = [textlint, "--format", "json", *pages]
    ran = subprocess.run(command, cwd=PROSE, capture_output=True, text=True, timeout=280)
    assert ran.returncode in (0, 1), ran.stderr
    return [
        f"{Path(page['filePath']).name}:{told['line']}: {told['message'].splitlines()[0]}"
        for page in json.loads(ran.stdout)
        for told in page["messages"]
    ]


def test_the_list_of_what_is_left_names_pages_that_exist() -> None:
    assert not OUTSIDE - set(DOCS)


def test_pages_use_the_vocabulary_and_short_sentences(textlint: Path) -> None:
    assert complaints(textlint, *PAGES) == []


def test_what_the_vocabulary_bans_is_found(textlint: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# Title\n\nThe sender is told the loss. Of the path it says little. It is luck.\n", encoding="utf-8"
    )
    assert len(complaints(textlint, page)) == 3


def remarks(source: Path) -> Iterator[str]:
    """The comments and docstrings of a file."""
    text = source.read_text(encoding="utf-8")
    if source.suffix == ".py":
        for node in ast.walk(ast.parse(text)):
            if (
                isinstance(node, ast.Expr)
                and isinstance(node.value, ast.Constant)
                and isinstance(node.value.value, str)
            ):
                yield node.value.value
    yield from (found[1] for found in COMMENT.finditer(text))


@pytest.mark.usefixtures("patience")
def test_comments_and_docstrings_avoid_the_same_shapes() -> None:
    sources = [
        path for kind in CODE for path in sorted(ROOT.glob(kind)) if not {"node_modules", "built"} & {*path.parts}
    ]
    assert len(sources) > 900
    found = [(path.relative_to(ROOT), text, SHAPES.search(text)) for path in sources for text in remarks(path)]
    assert [f"{path}: {one[0]!r} in {text!r}" for path, text, one in found if one] == []


def commands(command: click.Command = sawtooth, *names: str) -> Iterator[tuple[str, click.Command]]:
    """Every command by its words; groups come before their commands."""
    yield " ".join(("sawtooth", *names)), command
    if isinstance(command, click.Group):
        for name, below in command.commands.items():
            yield from commands(below, *names, name)


def test_help_uses_the_vocabulary_and_short_sentences(textlint: Path, tmp_path: Path) -> None:
    page = tmp_path / "help.md"
    texts = []
    for words, command in commands():
        told = re.sub(r"^\s*\x08\n(?:.+\n?)*", "", inspect.cleandoc(command.help or ""), flags=re.MULTILINE)
        options = [one.help or "" for one in command.params if isinstance(one, click.Option)]
        texts.append("\n\n".join([f"# {words}", told, *options]))
    page.write_text("\n\n".join(texts), encoding="utf-8")
    assert complaints(textlint, page) == []


def test_every_command_is_in_a_section_and_its_line_of_help_is_whole() -> None:
    assert sorted(name for names in SECTIONS.values() for name in names) == sorted(sawtooth.commands)
    # With the command's own settings: click keeps the help option of the first context, for all that follow.
    with click.Context(sawtooth, terminal_width=80, **sawtooth.context_settings) as context:
        assert "..." not in sawtooth.get_help(context).partition("Options:")[2]


@pytest.mark.parametrize(
    ("words", "command"), list(commands()), ids=lambda value: value if isinstance(value, str) else ""
)
def test_help_shows_an_example_and_every_option_says_what_it_does(words: str, command: click.Command) -> None:
    if not isinstance(command, click.Group):
        assert re.search(rf"^ *(?:.*\| )?{words}\b", command.help or "", re.MULTILINE), "an example to type"
    for one in command.params:
        if isinstance(one, click.Option):
            assert one.help, one.opts
            assert re.match(r"[A-Z].*\.$", one.help, re.DOTALL), one.help


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_lines_of_prose_fit_and_sentences_are_short_on_average(page: Path) -> None:
    text = prose(page)
    assert len(text.split()) > 30
    unbroken = re.compile(r"\S{60,}")
    assert [line for line in text.splitlines() if len(line) > WIDEST and not unbroken.search(line)] == []
    assert mean_sentence(text) <= LONGEST_MEAN


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_line_of_prose_disappears_as_a_comment(page: Path) -> None:
    assert [line for line in page.read_text(encoding="utf-8").splitlines()[1:] if line.startswith("%")] == []
