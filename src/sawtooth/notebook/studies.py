"""Shows a study: its question; and its result: the terminal's table and the first figure of the report."""

from __future__ import annotations

from sawtooth.figures.figure import TableFigure
from sawtooth.figures.static import draw
from sawtooth.notebook.page import picture, table
from sawtooth.report.figures import figures
from sawtooth.study import Study, StudyResult
from sawtooth.study.shares import ALL

_MOST_LINES = 12
_COLUMNS = ("mean_mbps", "std_mbps", "q25_mbps", "q50_mbps", "q75_mbps", "published_mean_mbps")


class StudyDisplay:
    """Display of a study that has not run."""

    @staticmethod
    def text(study: Study) -> str:
        """Several lines."""
        heading, lines, _, _ = StudyDisplay.parts(study)
        return "\n".join([heading, *(f"  {line}" for line in lines)])

    @staticmethod
    def parts(study: Study) -> tuple[str, list[str], list[str], list[str]]:
        """Heading, lines, pictures and tables for ``page``."""
        lines = [study.question.strip()] if study.question.strip() else []
        for field, values in study.vary.items():
            values_text = ", ".join(map(str, values)) if isinstance(values, list) else str(values)
            if isinstance(values, dict):
                values_text = ", ".join(f"{word} {value}" for word, value in values.items())
            lines.append(f"varies {field}: {values_text if len(values_text) < 100 else values_text[:99] + '…'}")
        points = len(study.points())
        lines.append(f"{points} points")
        return f"Study {study.name}: {study.title}" if study.title else f"Study {study.name}", lines, [], []


class ResultDisplay:
    """Display of a study's result."""

    @staticmethod
    def text(result: StudyResult) -> str:
        """The terminal's table, shortened if it is long."""
        lines = result.table().splitlines()
        cut = [f"… and {len(lines) - _MOST_LINES} more lines: .table()"] if len(lines) > _MOST_LINES else []
        return "\n".join([*lines[:_MOST_LINES], *cut, f"in {result.directory}"])

    @staticmethod
    def parts(result: StudyResult) -> tuple[str, list[str], list[str], list[str]]:
        """Heading, lines, pictures and tables for ``page``."""
        best = figure(result)
        pictures = []
        if best is not None:
            pictures = [picture(lambda aside: draw(best, aside), f"{best.title}. {best.caption}")]
        together = result.summary[result.summary["seed"] == ALL]
        rows = together if len(together) else result.summary
        keys = [name for name in result.places[0].key if name in rows]
        rows = rows[[*keys, *_COLUMNS]].dropna(axis="columns", how="all")
        said = [line for line in (result.study.question, *result.warnings) if line]
        heading = f"{result.study.title or result.study.name}, engine {result.engine}"
        return heading, [*said, f"in {result.directory}"], pictures, [table(rows)]


def figure(result: StudyResult) -> TableFigure | None:
    """The first figure of the report; None if it has none."""
    made = figures(result)
    return next((one for one in made if one.name.startswith("mean")), made[0] if made else None)
