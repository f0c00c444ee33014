"""The common parts of all pages: the look, figures with the script that draws them, and the content security
policy."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from importlib import resources
from typing import Any

from sawtooth.figures.content_security import sealed
from sawtooth.figures.figure import Figure
from sawtooth.figures.palette import DARK, ROLES
from sawtooth.io.untrusted import json_value

_CONTENTS = "<!-- contents -->"
_FIGURES = '<script type="application/json" class="figures">'
"""The element with the figures, as in the shell's template."""


def render(
    package: str,
    template: str,
    content: Mapping[str, Any],
    figures: Sequence[Figure] = (),
    filters: Mapping[str, Callable[..., str]] | None = None,
) -> str:
    """Render the page of ``template``, a file in the templates of ``package`` that extends ``shell.html.j2``.

    The template gets ``content``. It may import ``parts.html.j2``, which has the place of a figure, ``drawn(NAME)``,
    and tables. Raises ValueError if a figure is inconsistent.
    """
    from jinja2 import ChoiceLoader, Environment, FunctionLoader, StrictUndefined
    from markupsafe import Markup

    def loader(name: str) -> FunctionLoader:
        home = resources.files(name) / "templates"

        def load(file: str) -> str | None:
            found = home / file
            return found.read_text(encoding="utf-8") if found.is_file() else None

        return FunctionLoader(load)

    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        loader=ChoiceLoader([loader(package), loader("sawtooth.figures")]),
    )
    environment.filters.update(filters or {})
    shell = {
        "shell_styles": Markup(styles()),
        "shell_script": Markup(script() if figures else ""),
        "shell_figures": Markup(embedded([figure.json() for figure in figures])),
    }
    return sealed(_with_contents(environment.get_template(template).render(**content, **shell)))


def _with_contents(page: str) -> str:
    """Where a template has ``<!-- contents -->``, a list of links to all headings of the second level."""
    if _CONTENTS not in page:
        return page
    links: list[str] = []

    def addressed(heading: re.Match[str]) -> str:
        links.append(f'<li><a href="#part-{len(links) + 1}">{heading[1]}</a></li>')
        return f'<h2 id="part-{len(links)}">{heading[1]}</h2>'

    page = re.sub(r"<h2>(.*?)</h2>", addressed, page, flags=re.DOTALL)
    listed = f'<nav class="contents" aria-label="On this page"><ul>{"".join(links)}</ul></nav>'
    return page.replace(_CONTENTS, listed, 1)


def styles() -> str:
    """CSS of pages and figures, with the palette's colours as variables, light and dark."""
    return f"{_variables()}\n{_read('templates', 'page.css')}\n{_read('built', 'draw.css')}"


def script(name: str = "draw") -> str:
    """A script of ``web`` for inclusion in a page: "draw", which has uPlot, draws figures; "capture", which needs it,
    every segment of a capture."""
    return _read("built", f"{name}.js").replace("</script", "<\\/script")


def embedded(content: Any) -> str:
    """JSON that is safe in a script element: "<" is escaped, because it could end the element."""
    return json.dumps(content, allow_nan=False, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")


def embedded_figures(page: str) -> list[Any]:
    """The figures of a page made by ``render``, as JSON values. Raises ValueError if there are none that can be
    read."""
    _, mark, rest = page.rpartition(_FIGURES)
    content, end, _ = rest.partition("</script>")
    if not mark or not end:
        raise ValueError("it is not a page with figures")
    found = json_value(content)
    if not isinstance(found, list):
        raise ValueError("its figures are no list")
    return found


def _variables() -> str:
    light = "; ".join(f"--{role}: {colour}" for role, colour in ROLES.items())
    dark = "; ".join(f"--{role}: {DARK[colour]}" for role, colour in ROLES.items())
    return (
        f":root {{ color-scheme: light dark; {light} }}\n"
        f"@media screen and (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}"
    )


def _read(*place: str) -> str:
    return resources.files("sawtooth.figures").joinpath(*place).read_text(encoding="utf-8")
