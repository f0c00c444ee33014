"""Follows the fix of an error as a reader would: types its words into the tables of the file."""

import copy
import re
from typing import Any

from sawtooth.scenario.toml import parse_toml

SETTING = re.compile(r"([\w.-]+) = (.+)")


def retyped(tables: dict[str, Any], code: str, field: str, typed: str) -> dict[str, Any]:
    """The file's tables after ``typed``, which is text of the fix of an error of ``field``.

    ``did you mean "rate"`` is another name or value, ``remove bytes`` removes a field of the same table (``remove it``
    the field itself), ``swap them`` turns a list round, ``load = "30%"`` sets a field of the same table, and anything
    else is a value: ``"20 ms"``, ``250``, ``{ every = 1000 }``, or text without quotes where it is no TOML.
    """
    changed = copy.deepcopy(tables)
    holder, key = _place(changed, field)
    if meant := re.fullmatch(r'(?:did you mean|it is called) "(.+)"', typed):
        if code == "unknown-field" or isinstance(holder[key], dict):
            holder[meant[1]] = holder.pop(key)
        else:
            holder[key] = meant[1]
    elif link := re.fullmatch(r'add a link: from = "(.+)", to = "(.+)"', typed):
        changed["links"].append({"from": link[1], "to": link[2]})
    elif typed == '[hosts.a], [hosts.b] and [[links]] with from = "a" and to = "b"':
        changed |= {"hosts": {"a": {}, "b": {}}, "links": [{"from": "a", "to": "b"}]}
    elif kept := re.fullmatch(r"remove all but one of (\w+) and (\w+)", typed):
        del holder[kept[2]]
    elif removed := re.fullmatch(r"remove (?:the )?([\w.]+(?: and \w+)?)", typed):
        for name in removed[1].split(" and "):
            _remove(changed, field, name)
    elif moved := re.fullmatch(r"set (\w+)\.(\w+) instead", typed):
        changed.setdefault(moved[1], {})[moved[2]] = holder[key].pop(moved[2])
        if not holder[key]:
            del holder[key]
    elif turned := re.fullmatch(r"swap (\w+) and (\w+)", typed):
        ends = holder[key] if isinstance(holder[key], dict) else holder
        ends[turned[1]], ends[turned[2]] = ends[turned[2]], ends[turned[1]]
    elif typed == "swap them":
        holder[key] = holder[key][::-1]
    elif SETTING.fullmatch(typed):
        for one in re.split(r" and (?=\w+ = )", typed):
            setting = SETTING.fullmatch(one)
            assert setting is not None
            above, name = _place(changed, _beside(field, setting[1]))
            own = holder[key] if isinstance(holder, list) or key in holder else None
            if isinstance(own, dict) and name != key and (code == "missing-field" or name in own):
                above = own
            above[name] = _value(setting[2])
    else:
        holder[key] = _value(typed)
    return changed


def _remove(tables: dict[str, Any], field: str, name: str) -> None:
    """A field of the same table, the field itself (``it``), a table that contains it, or a field of that table."""
    holder, key = _place(tables, field)
    steps = field.split(".")
    if name in ("it", "this"):
        del holder[key]
    elif isinstance(holder, dict) and name in holder:
        del holder[name]
    elif name in steps[:-1]:
        above, last = _place(tables, ".".join(steps[: steps.index(name) + 1]))
        del above[last]
    elif isinstance(holder[key], dict):
        holder[key].pop(name, None)


def _value(text: str) -> Any:
    """TOML's value, or the text itself where the fix shows a quantity without quotes."""
    bare = re.fullmatch(r"[\w.%/-]+( [\w/%]+)?", text) and not re.fullmatch(r"-?\d+|true|false", text)
    return text if bare else parse_toml(f"x = {text}")["x"]


def _beside(field: str, name: str) -> str:
    """The field ``name`` of the table with ``field``, or that table itself; a dotted name starts at the top."""
    *above, _ = field.split(".")
    if "." in name:
        return name
    return ".".join(above if above and above[-1] == name else [*above, name])


def _place(tables: Any, field: str) -> tuple[Any, Any]:
    """The table or list with the field, and its key there. Creates missing tables on the way."""
    steps = field.split(".")
    while len(steps) > 1:
        if isinstance(tables, list):
            tables = tables[int(steps.pop(0))]
            continue
        # A key may contain dots itself, like those of [vary].
        keys = [(".".join(steps[:size]), size) for size in range(len(steps), 0, -1)]
        key, size = next((one for one in keys if one[0] in tables), (steps[0], 1))
        if size == len(steps):
            return tables, key
        tables, steps = tables.setdefault(key, {}), steps[size:]
    return tables, int(steps[0]) if isinstance(tables, list) else steps[0]
