"""How `make docs` builds the site: Sphinx reads these pages as they are; README.md is the page "start"."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.writers.html5 import HTML5Translator

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
html_static_path = ["_static"]
html_css_files = ["width.css"]
html_favicon = "_static/icon.svg"
html_title = f"Sawtooth {release}"
html_copy_source = False
html_show_copyright = False
copybutton_prompt_text = "$ "

# Pages that lie outside of docs/, and where the site has them.
OUTSIDE = {"README.md": "start.md", "CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing/index.md"}
OUTSIDE["fidelity/field/README.md"] = "field.md"


def from_outside(app: Sphinx, docname: str, source: list[str]) -> None:
    """Files outside docs/ become pages of the site, and links lead to those pages. The first line of a page's
    stand-in in docs/ only says which file that is."""
    up = "../" * docname.count("/")
    for path, page in OUTSIDE.items():
        if f"{docname}.md" == page:
            text = (ROOT / path).read_text(encoding="utf-8")
            below = source[0].partition("\n")[2]
            source[0] = re.sub(r"\]\((?:(?:\.\./)*docs/|(?:\.\./)+)", f"]({up}", text) + "\n" + below
    for path, page in OUTSIDE.items():
        source[0] = re.sub(rf"\]\((?:\.\./)*{re.escape(path)}", f"]({up}{page}", source[0])


class Translator(HTML5Translator):
    """Sphinx gives the captions of a table of contents the role of a heading without its level, which WAI-ARIA 1.2
    requires: a screen reader then takes them for any level. They stand below the page's title."""

    def starttag(self, node: Any, tagname: str, suffix: str = "\n", empty: bool = False, **attributes: Any) -> str:
        if attributes.get("ROLE") == "heading":
            attributes["ARIA-LEVEL"] = "2"
        return str(super().starttag(node, tagname, suffix, empty, **attributes))

    def visit_literal_block(self, node: Any) -> None:
        """A block that is wider than the page is scrolled by keyboard, too."""
        try:
            super().visit_literal_block(node)
        finally:
            self.body[-1] = self.body[-1].replace("<pre>", '<pre tabindex="0">', 1)


def levels(app: Sphinx, failed: Exception | None) -> None:
    """A heading by its role that has no level is a warning, which ends `make docs`."""
    for page in sorted(app.outdir.rglob("*.html")) if failed is None and app.builder.name == "html" else ():
        for tag in re.findall(r"<[^<>]*\brole=[\"']?heading\b[^<>]*>", page.read_text(encoding="utf-8")):
            if "aria-level" not in tag:
                logging.getLogger(__name__).warning("%s: a heading without aria-level: %s", page.name, tag)


def setup(app: Sphinx) -> None:
    app.set_translator("html", Translator)
    app.connect("source-read", from_outside)
    app.connect("build-finished", levels)
