"""Find: answers a question for a scenario or for each point of a study, and checks it on another engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from typing import Any

from sawtooth import engines
from sawtooth.engines import Engine
from sawtooth.errors import InputError
from sawtooth.io.parallel import Workers
from sawtooth.scenario import Scenario
from sawtooth.search.answers import Answers
from sawtooth.search.frontier import Frontier
from sawtooth.search.question import Question
from sawtooth.search.result import Threshold
from sawtooth.search.scalar import one
from sawtooth.search.vector import several
from sawtooth.study import Study


def find(
    what: Scenario | Study,
    *,
    vary: str | Sequence[str] | None = None,
    want: str | None = None,
    scale: str | None = None,
    within: str | None = None,
    most: int | None = None,
    minimize: str | None = None,
    engine: str | Engine = "sim",
    check: str | Engine | None = None,
    jobs: int | None = None,
    executor: Executor | Workers | None = None,
    overrides: Mapping[str, Any] | None = None,
    quiet: bool = True,
) -> Threshold | Frontier | Answers:
    """The value at which a goal begins or ceases to hold; see ``verbs.find``."""
    given: dict[str, Any] = dict(what.find.given()) if isinstance(what, Study) and what.find is not None else {}
    stated = {"vary": vary, "want": want, "scale": scale, "within": within, "most": most}
    stated["minimize"] = minimize
    given |= {name: value for name, value in stated.items() if value not in (None, (), [])}
    for name, example in (("vary", "path.loss=0.0001%..5%"), ("want", "goodput >= 90% of path.rate")):
        if name not in given:
            raise InputError("missing-field", "is missing", field=name, fix=f'add --{name} "{example}"')
    points: list[tuple[dict[str, Any], Scenario]] = (
        [({}, what.set(overrides or {}))]
        if isinstance(what, Scenario)
        else [(point.key, point.scenario) for point in what.points(seeds=[1], overrides=overrides)]
    )
    chosen = engines.get(engine) if isinstance(engine, str) else engine
    checking = engines.get(check) if isinstance(check, str) else check
    many = isinstance(what, Study) and bool(what.vary)
    found: list[Threshold | Frontier] = []
    for key, scenario in points:
        name = f"{what.name} ({', '.join(str(one) for one in key.values())})" if many else what.name
        question = Question.of(
            name,
            scenario,
            given,
            engine=chosen,
            checking=checking,
            jobs=jobs,
            executor=executor,
            quiet=quiet,
        )
        found.append(one(question) if len(question.vary) == 1 else several(question))
    if many and isinstance(what, Study):
        return Answers(what.name, tuple(key for key, _ in points), tuple(found))
    return found[0]
