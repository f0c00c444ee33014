"""Dependencies point down only: the imports of the package and of the crates, against the table in docs/design.md."""

import ast
from graphlib import CycleError, TopologicalSorter

import architecture
import pytest
from architecture import MODULES, imported, unit

OUTSIDE = ("bench", "experiments", "fidelity", "fuzz", "tests", "tools")
DEPTH = {path: depth for depth, (_, paths) in enumerate(architecture.layers()) for path in paths}


def test_every_module_and_every_crate_is_in_the_table_once_and_nothing_else_is() -> None:
    named = [path for _, paths in architecture.layers() for path in paths]
    assert sorted(named) == sorted({unit(module) for module in MODULES} | set(architecture.crates()))


@pytest.mark.parametrize("source", sorted(DEPTH))
def test_imports_and_dependencies_point_down(source: str) -> None:
    assert [target for target in architecture.uses()[source] if DEPTH[target] <= DEPTH[source]] == []


@pytest.mark.usefixtures("patience")
def test_the_package_imports_nothing_from_outside() -> None:
    for source, path in MODULES.items():
        for module, _, _ in imported(ast.parse(path.read_text(encoding="utf-8"))):
            assert module.partition(".")[0] not in OUTSIDE, f"{source} imports {module}"


def test_no_module_leads_back_to_itself() -> None:
    """Imports within functions count. Imports for types do not, because both sides may name a type."""
    known: dict[str, set[str]] = {module: set() for module in MODULES}
    for one in architecture.imports():
        if not one.typing:
            known[one.source].add(one.target)
    try:
        TopologicalSorter(known).prepare()
    except CycleError as error:
        pytest.fail(f"a circle: {' <- '.join(error.args[1])}")


@pytest.mark.usefixtures("patience")
def test_the_page_of_the_architecture_is_what_the_code_says() -> None:
    assert architecture.PAGE.read_text(encoding="utf-8") == architecture.page(), "run tools/architecture.py"
    assert architecture.DRAWING.read_text(encoding="utf-8") == architecture.drawing(), "run tools/architecture.py"
