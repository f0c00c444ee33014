"""Parser of wants: tokens, and a descent of one function for each rule.

    comparison = sum ("<" | "<=" | ">" | ">=") sum
    sum        = product { ("+" | "-") product }
    product    = factor { ("*" | "/") factor }
    factor     = number [unit] | number "%" "of" factor | measure | "(" sum ")" | "-" factor
    measure    = name [ "(" setting { "," setting } ")" ]
    setting    = name "=" ( number [unit] | 'text' | "text" | word )

A "-" between two names has spaces around it: ``parking-lot.rate`` is one name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

from sawtooth.errors import InputError
from sawtooth.sanitize import plain
from sawtooth.scenario.expressions.amount import Amount
from sawtooth.scenario.expressions.tree import Comparison, Expression, Measure, Number, Operation

LONGEST = 500
"""Characters of a want."""
DEEPEST = 20
"""Most nested brackets."""
MOST_SETTINGS = 20

_EXAMPLE = 'write it like "goodput >= 90% of path.rate"'
_TOKENS = re.compile(
    r"""\s*(?:
    (?P<number>(?:[0-9]{1,15}(?:\.[0-9]{0,15})?|\.[0-9]{1,15})(?:[eE][+-]?[0-9]{1,2}(?![0-9A-Za-z_]))?)(?![0-9._]|,[0-9])
    |(?P<word>[A-Za-z_µμ]\w*(?:-[A-Za-z]\w*)*(?:/s\b|(?:\.\w+(?:-[A-Za-z]\w*)*)*))
    |(?P<text>'[^'\n]{0,100}'|"[^"\n]{0,100}")
    |(?P<sign><=|>=|[<>+\-*/(),=%])
    )""",
    re.VERBOSE | re.ASCII,
)
_COMPARES = ("<", "<=", ">", ">=")


def parse(text: str) -> Comparison:
    """Parses a comparison. Raises SawtoothError: ``bad-expression`` with the position, ``unknown-unit``,
    ``wrong-type``."""
    reader = _Reader(text)
    found = reader.comparison()
    reader.end()
    return found


def parse_expression(text: str) -> Expression:
    """Parses one side of a comparison. Raises SawtoothError as ``parse`` does."""
    reader = _Reader(text)
    found = reader.sum()
    reader.end()
    return found


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    at: int
    """Position, from 1."""


class _Reader:
    def __init__(self, text: str) -> None:
        if not isinstance(text, str):
            raise InputError("wrong-type", f"a comparison is text, not a {type(text).__name__}", fix=_EXAMPLE)
        if len(text) > LONGEST:
            message = f"{len(text)} characters; at most {LONGEST}"
            raise InputError("bad-expression", message, fix="write a shorter one")
        self.text = text
        self.tokens = list(_tokens(text))
        self.next = 0
        self.depth = 0

    def comparison(self) -> Comparison:
        left = self.sum()
        sign = self.here
        if sign.text not in _COMPARES or sign.kind != "sign":
            if sign.text == "=":
                fix = "use <, <=, > or >=: what is measured is never exactly equal"
                self.wrong('"=" does not compare here', fix)
            self.wrong(f"a comparison is missing before {_named(sign)}", "use <, <=, > or >=")
        self.next += 1
        return Comparison(left, sign.text, self.sum(), self.text.strip(), sign.at)

    def sum(self) -> Expression:
        return self.joined(self.product, "+-")

    def product(self) -> Expression:
        return self.joined(self.factor, "*/")

    def joined(self, part: Callable[[], Expression], signs: str) -> Expression:
        found = part()
        while self.here.kind == "sign" and self.here.text in signs:
            sign = self.take()
            found = Operation(sign.text, found, part(), sign.at)
        return found

    def factor(self) -> Expression:
        token = self.here
        self.depth += 1
        if self.depth > DEEPEST:
            raise InputError("bad-expression", f"brackets are more than {DEEPEST} deep", fix="use fewer brackets")
        found: Expression
        if token.kind == "number":
            found = self.number(self.take())
        elif token.kind == "word" and token.text != "of":
            found = self.measure(self.take())
        elif token.text == "(":
            self.take()
            found = self.sum()
            self.expect(")")
        elif token.text == "-":
            self.take()
            found = Operation("*", Number(Amount(-1.0), "-1"), self.factor(), token.at)
        else:
            self.wrong(f"a number or a name is missing before {_named(token)}", _EXAMPLE)
        self.depth -= 1
        return found

    def number(self, token: _Token) -> Expression:
        unit = self.unit()
        try:
            amount = Amount.of_unit(float(token.text), unit) if unit else Amount(float(token.text))
        except InputError as error:
            raise InputError(error.code, f"at character {token.at}: {error.message}", fix=error.fix) from None
        written = Number(amount, f"{token.text}{unit}" if unit == "%" else f"{token.text} {unit}".strip())
        if self.here.text == "of":
            if unit != "%":
                self.wrong('"of" comes after a share', "write it like 90% of path.rate, or use *")
            of = self.take()
            return Operation("*", written, self.factor(), of.at)
        return written

    def unit(self) -> str:
        """The unit after a number; empty if there is none."""
        token = self.here
        if token.text == "%" or (token.kind == "word" and token.text != "of"):
            self.next += 1
            return token.text
        return ""

    def measure(self, token: _Token) -> Measure:
        if self.here.text != "(":
            return Measure(token.text, at=token.at)
        settings: dict[str, Any] = {}
        while self.here.text == ("," if settings else "("):
            self.take()
            field = self.here
            if field.kind != "word":
                self.wrong(f"a field's name is missing before {_named(field)}", "write it like (cc='bbr', loss=1%)")
            if field.text in settings:
                self.wrong(f"{plain(field.text, 40)} is set twice", "leave one out")
            if len(settings) == MOST_SETTINGS:
                self.wrong(f"more than {MOST_SETTINGS} settings", "set fewer fields")
            self.take()
            self.expect("=")
            settings[field.text] = self.value()
        self.expect(")")
        return Measure(token.text, tuple(settings.items()), token.at)

    def value(self) -> Any:
        """The value as in a scenario file."""
        token = self.here
        if token.kind not in ("number", "text", "word"):
            self.wrong(f"a value is missing before {_named(token)}", "write it like cc='bbr' or loss=1%")
        self.take()
        if token.kind == "text":
            return token.text[1:-1]
        if token.kind == "word":
            return {"true": True, "false": False}.get(token.text, token.text)
        unit = self.unit()
        if unit:
            return f"{token.text}{unit}" if unit == "%" else f"{token.text} {unit}"
        return int(token.text) if token.text.isdigit() else float(token.text)

    @property
    def here(self) -> _Token:
        return self.tokens[self.next]

    def take(self) -> _Token:
        token = self.here
        # The last token marks the end and is never passed.
        self.next = min(self.next + 1, len(self.tokens) - 1)
        return token

    def expect(self, text: str) -> None:
        if self.here.text != text or self.here.kind != "sign":
            self.wrong(f'"{text}" is missing before {_named(self.here)}', f'add "{text}"')
        self.take()

    def end(self) -> None:
        if self.here.kind != "end":
            fix = "ask for one thing at a time" if self.here.text in _COMPARES else "join two by +, -, * or /"
            self.wrong(f"nothing can follow here, but {_named(self.here)} does", fix)

    def wrong(self, message: str, fix: str) -> NoReturn:
        raise InputError("bad-expression", f"at character {self.here.at}: {message}", fix=fix)


def _tokens(text: str) -> Iterator[_Token]:
    at = 0
    while text[at:].strip():
        found = _TOKENS.match(text, at)
        if found is None:
            at += len(text[at:]) - len(text[at:].lstrip())
            fix = "write text in quotes, numbers with a point, and nothing but names, numbers, units and + - * / < >"
            message = f"at character {at + 1}: {plain(text[at : at + 10])} is not part of an expression"
            raise InputError("bad-expression", message, fix=fix)
        kind = str(found.lastgroup)
        yield _Token(kind, found[kind], found.start(kind) + 1)
        at = found.end()
    yield _Token("end", "", len(text) + 1)


def _named(token: _Token) -> str:
    return "the end" if token.kind == "end" else f'"{plain(token.text, 40)}"'
