"""Writes docs/tutorial.ipynb: the tutorial as a notebook, with the text and code of docs/tutorial.md."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parents[1] / "docs"
_BLOCK = re.compile(r"^```(python|toml)\n(.*?)^```\n", re.MULTILINE | re.DOTALL)


def notebook(text: str) -> dict[str, Any]:
    """Python code becomes code cells, a scenario file a cell that writes it, the rest Markdown. Without outputs."""
    cells, at = [], 0
    for found in _BLOCK.finditer(text):
        cells.append(_cell("markdown", text[at : found.start()]))
        at = found.end()
        code = found[2]
        if found[1] == "toml":
            code = f"%%writefile {tomllib.loads(code)['name']}.toml\n{code}"
        cells.append(_cell("code", code))
    cells.append(_cell("markdown", text[at:]))
    shown = [cell for cell in cells if "".join(cell["source"]).strip()]
    for number, cell in enumerate(shown):
        cell["id"] = f"cell-{number}"
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return {"cells": shown, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def _cell(kind: str, text: str) -> dict[str, Any]:
    cell: dict[str, Any] = {"cell_type": kind, "metadata": {}, "source": text.strip("\n").splitlines(keepends=True)}
    if kind == "code":
        cell |= {"execution_count": None, "outputs": []}
    return cell


def text_of(found: dict[str, Any]) -> str:
    return json.dumps(found, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    told = notebook((DOCS / "tutorial.md").read_text(encoding="utf-8"))
    (DOCS / "tutorial.ipynb").write_text(text_of(told), encoding="utf-8")
