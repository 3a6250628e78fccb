"""Functions of strings count lengths and places in characters."""

from __future__ import annotations

import base64
import hashlib
import re
import zlib
from collections.abc import Callable

from sqlglot import exp

from fivm_dbt.testing.interpreter.errors import NotUnderstood
from fivm_dbt.testing.interpreter.expressions import compile_expression, constant_of, converted, reads, uses
from fivm_dbt.testing.interpreter.functions import function
from fivm_dbt.testing.interpreter.scope import Context, Env, Expression, strict
from fivm_dbt.testing.interpreter.types import BIGINT, BINARY, BOOLEAN, INT, STRING, Type, array
from fivm_dbt.testing.interpreter.values import Value


def text(argument: Expression, node: exp.Expr) -> Expression:
    """A string; whatever can be written is."""
    if argument.type.name in ("array", "map", "struct", "binary"):
        raise NotUnderstood(f"{node.name} of {argument.type}", node)
    return converted(argument, STRING)


def _sliced(s: str, start: int, length: int | None = None) -> str:
    """From a place that counts from one, or from the end."""
    begin = start - 1 if start > 0 else len(s) + start if start < 0 else 0
    end = len(s) if length is None else begin + length
    return s[max(0, begin) : max(0, end)]


def _found(s: str, part: str, start: int = 1) -> int:
    return s.find(part, start - 1) + 1 if start > 0 else 0


def _padded(left: bool) -> Callable[..., str]:
    def of(s: str, length: int, pad: str = " ") -> str:
        if length <= len(s) or not pad:
            return s[: max(0, length)]
        more = (pad * length)[: length - len(s)]
        return more + s if left else s + more

    return of


def _trimmed(s: str, characters: str = " ") -> str:
    return s.strip(characters)


def _translated(s: str, source: str, target: str) -> str:
    pairs = {c: target[i] if i < len(target) else "" for i, c in reversed(list(enumerate(source)))}
    return "".join(pairs.get(c, c) for c in s)


def _initcap(s: str) -> str:
    return " ".join(w[:1].upper() + w[1:].lower() for w in s.split(" "))


_TEXTS: dict[str, tuple[Type, Callable[..., Value]]] = {
    "UPPER": (STRING, str.upper),
    "UCASE": (STRING, str.upper),
    "LOWER": (STRING, str.lower),
    "LCASE": (STRING, str.lower),
    "REVERSE": (STRING, lambda s: s[::-1]),
    "INITCAP": (STRING, _initcap),
    "TRIM": (STRING, _trimmed),
    "BTRIM": (STRING, _trimmed),
    "MD5": (STRING, lambda s: hashlib.md5(s.encode()).hexdigest()),
    "SHA": (STRING, lambda s: hashlib.sha1(s.encode()).hexdigest()),
    "SHA1": (STRING, lambda s: hashlib.sha1(s.encode()).hexdigest()),
    "CRC32": (BIGINT, lambda s: zlib.crc32(s.encode())),
    "BASE64": (STRING, lambda s: base64.b64encode(s.encode()).decode()),
    "ASCII": (INT, lambda s: ord(s[0]) if s else 0),
    "CONTAINS": (BOOLEAN, lambda s, t: t in s),
    "STARTSWITH": (BOOLEAN, lambda s, t: s.startswith(t)),
    "ENDSWITH": (BOOLEAN, lambda s, t: s.endswith(t)),
    "INSTR": (INT, _found),
    "TRANSLATE": (STRING, _translated),
    "REPLACE": (STRING, lambda s, a, b="": s.replace(a, b) if a else s),
}


@function(*_TEXTS)
def of_texts(arguments: list[Expression], node: exp.Expr) -> Expression:
    type_, change = _TEXTS[node.name]
    return strict(type_, change, *(text(a, node) for a in arguments))


@function("LTRIM", "RTRIM")
def trim_side(arguments: list[Expression], node: exp.Expr) -> Expression:
    """With two arguments the first is what is taken off."""
    change = str.lstrip if node.name == "LTRIM" else str.rstrip
    values = [text(a, node) for a in arguments]
    if len(values) == 1:
        return strict(STRING, lambda s: change(s, " "), *values)
    return strict(STRING, lambda c, s: change(s, c), *values)


@reads(exp.Trim)
def trim_from(node: exp.Expr, context: Context) -> Expression:
    changes = {"LEADING": str.lstrip, "TRAILING": str.rstrip, "BOTH": str.strip, "": str.strip}
    change = changes[str(node.args.get("position") or "").upper()]
    parts = [n for n in (node.this, node.args.get("expression")) if n is not None]
    values = [text(compile_expression(n, context), node) for n in parts]
    return strict(STRING, lambda s, c=" ": change(s, c), *values)


uses(exp.Trim, "this", "expression", "position")


@function("LENGTH", "CHAR_LENGTH", "CHARACTER_LENGTH", "LEN")
def length(arguments: list[Expression], node: exp.Expr) -> Expression:
    value = arguments[0] if arguments[0].type == BINARY else text(arguments[0], node)
    return strict(INT, len, value)


@function("SUBSTRING", "SUBSTR", "LEFT", "RIGHT", "LPAD", "RPAD", "REPEAT", "SUBSTRING_INDEX")
def with_numbers(arguments: list[Expression], node: exp.Expr) -> Expression:
    """A string, and numbers; what pads is a string again."""
    changes: dict[str, Callable[..., Value]] = {
        "SUBSTRING": _sliced,
        "SUBSTR": _sliced,
        "LEFT": lambda s, n: s[: max(0, n)],
        "RIGHT": lambda s, n: s[-n:] if n > 0 else "",
        "LPAD": _padded(True),
        "RPAD": _padded(False),
        "REPEAT": lambda s, n: s * max(0, n),
    }
    if node.name not in changes:
        raise NotUnderstood(f"function {node.name}", node)
    values = [text(arguments[0], node), converted(arguments[1], INT)]
    values += [converted(a, STRING if node.name.endswith("PAD") else INT) for a in arguments[2:]]
    return strict(STRING, changes[node.name], *values)


@reads(exp.Substring)
def substring_from(node: exp.Expr, context: Context) -> Expression:
    parts = [n for n in (node.this, node.args.get("start"), node.args.get("length")) if n is not None]
    first, *numbers = [compile_expression(n, context) for n in parts]
    return strict(STRING, _sliced, text(first, node), *(converted(n, INT) for n in numbers))


uses(exp.Substring, "this", "start", "length")


@reads(exp.StrPosition)
def position(node: exp.Expr, context: Context) -> Expression:
    values = [text(compile_expression(n, context), node) for n in (node.this, node.args["substr"])]
    return strict(INT, _found, *values)


uses(exp.StrPosition, "this", "substr")


@function("LOCATE", "POSITION")
def locate(arguments: list[Expression], node: exp.Expr) -> Expression:
    values = [text(arguments[1], node), text(arguments[0], node), *(converted(a, INT) for a in arguments[2:])]
    return strict(INT, _found, *values)


@function("CONCAT")
def concat(arguments: list[Expression], node: exp.Expr) -> Expression:
    if any(a.type.name in ("array", "binary") for a in arguments):
        raise NotUnderstood("CONCAT of lists", node)
    return strict(STRING, lambda *parts: "".join(parts), *(text(a, node) for a in arguments))


@reads(exp.DPipe)
def concatenation(node: exp.Expr, context: Context) -> Expression:
    operands = [converted(compile_expression(n, context), STRING) for n in (node.this, node.expression)]
    return strict(STRING, lambda a, b: a + b, *operands)


uses(exp.DPipe, "this", "expression", "safe")


@function("CONCAT_WS")
def concat_ws(arguments: list[Expression], node: exp.Expr) -> Expression:
    """NULLs are passed over."""
    separator = text(arguments[0], node).of
    parts = [a if a.type.name == "array" else text(a, node) for a in arguments[1:]]

    def of(env: Env) -> Value:
        between = separator(env)
        found: list[Value] = []
        for part in parts:
            value = part.of(env)
            found += value if isinstance(value, tuple) else [value]
        return None if between is None else between.join(v for v in found if v is not None)

    return Expression(STRING, of)


def pattern(written: str) -> re.Pattern[str]:
    """A regular expression of Java, of which the common part is Python's too."""
    if re.search(r"\(\?<[a-zA-Z]|\\p\{|&&|\\[GQEZzA]|[*+?}]\+", written):
        raise NotUnderstood(f"regular expression {written}")
    return re.compile(written)


@function("SPLIT")
def split(arguments: list[Expression], node: exp.Expr) -> Expression:
    by = pattern(constant_of(arguments[1], node.expressions[1]))
    limit = int(constant_of(arguments[2], node.expressions[2])) if len(arguments) > 2 else -1

    def of(s: str) -> tuple[str, ...]:
        if s == "":
            return ("",)
        if by.pattern == "":
            return (
                tuple(s) if limit <= 0 else (*s[: limit - 1], *([s[limit - 1 :]] if len(s) >= limit else []))
            )
        places = [m.span() for m in by.finditer(s) if m.end() > 0 and m.end() > m.start()]
        if limit > 0:
            places = places[: limit - 1]
        starts, ends = [0, *(e for _, e in places)], [*(b for b, _ in places), len(s)]
        return tuple(s[a:b] for a, b in zip(starts, ends, strict=True))

    return strict(array(STRING), of, text(arguments[0], node))


@function("REGEXP_REPLACE", "REGEXP_EXTRACT", "RLIKE", "REGEXP_LIKE", "REGEXP")
def regular(arguments: list[Expression], node: exp.Expr) -> Expression:
    by = pattern(constant_of(arguments[1], node.expressions[1]))
    value = text(arguments[0], node)
    if node.name == "REGEXP_REPLACE":
        replacement = re.sub(r"\$(\d)", r"\\g<\1>", constant_of(arguments[2], node.expressions[2]))
        return strict(STRING, lambda s: by.sub(replacement, s), value)
    if node.name == "REGEXP_EXTRACT":
        group = constant_of(arguments[2], node.expressions[2]) if len(arguments) > 2 else 1
        return strict(STRING, lambda s: (m.group(group) or "") if (m := by.search(s)) else "", value)
    return strict(BOOLEAN, lambda s: by.search(s) is not None, value)


@function("HEX")
def hex_(arguments: list[Expression], node: exp.Expr) -> Expression:
    if arguments[0].type.is_integral:
        return strict(STRING, lambda n: f"{n & ((1 << 64) - 1):X}", arguments[0])
    return strict(STRING, lambda s: (s if isinstance(s, bytes) else s.encode()).hex().upper(), arguments[0])


@function("SHA2")
def sha2(arguments: list[Expression], node: exp.Expr) -> Expression:
    bits = constant_of(arguments[1], node.expressions[1])
    name = {0: "sha256", 256: "sha256", 224: "sha224", 384: "sha384", 512: "sha512"}.get(bits)
    if name is None:
        raise NotUnderstood(f"SHA2 of {bits} bits", node)
    return strict(STRING, lambda s: hashlib.new(name, s.encode()).hexdigest(), text(arguments[0], node))
