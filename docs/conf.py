"""How `make docs` builds the site: Sphinx reads these pages as they are; README.md is the page "start"."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from sphinx.application import Sphinx

ROOT = Path(__file__).parents[1]

project = "Sawtooth"
release = version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
extensions = ["myst_parser", "sphinx_copybutton"]
# What the other pages are made from.
exclude_patterns = ["*.in.md"]
myst_heading_anchors = 4
myst_enable_extensions = ["deflist", "dollarmath"]
# Blocks of a terminal's words have no language.
highlight_language = "none"
html_theme = "furo"
html_title = f"Sawtooth {release}"
html_copy_source = False
html_show_copyright = False
copybutton_prompt_text = "$ "

# Pages that lie outside of docs/, and where the site has them.
OUTSIDE = {"README.md": "start.md", "CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md"}
OUTSIDE["fidelity/field/README.md"] = "field.md"


def from_outside(app: Sphinx, docname: str, source: list[str]) -> None:
    """Files outside docs/ become pages of the site, and links lead to those pages."""
    for path, page in OUTSIDE.items():
        if f"{docname}.md" == page:
            text = (ROOT / path).read_text(encoding="utf-8") + "\n" + source[0]
            source[0] = re.sub(r"\]\((?:\.\./)*(?:docs/)?", "](", text)
    for path, page in OUTSIDE.items():
        source[0] = re.sub(rf"\]\((?:\.\./)*{re.escape(path)}", f"]({page}", source[0])


def setup(app: Sphinx) -> None:
    app.connect("source-read", from_outside)
