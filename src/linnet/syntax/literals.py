"""The values of numbers and strings, and what is wrong with those that have none."""

from __future__ import annotations

import math
import re

_DECIMAL = re.compile(r"[0-9]+(?:_[0-9]+)*")
_HEX = re.compile(r"0x[0-9a-fA-F]+(?:_[0-9a-fA-F]+)*")
_BINARY = re.compile(r"0b[01]+(?:_[01]+)*")
_FLOAT = re.compile(r"[0-9]+(?:_[0-9]+)*(?:\.[0-9]+(?:_[0-9]+)*)?(?:[eE][+-]?[0-9]+(?:_[0-9]+)*)?")
_ESCAPE = re.compile(r"\\(?:x[0-9a-fA-F]{2}|u\{[0-9a-fA-F]{1,6}\}|.)", re.DOTALL)
_SIMPLE = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "\\": "\\", '"': '"', "'": "'"}

# One past the largest i64: a literal may have this value only right after a minus.
I64_LIMIT = 2**63
_MAX_FLOAT_LENGTH = 400


def number(text: str) -> tuple[int | float, None] | tuple[None, str]:
    """`(value, None)`, or `(None, what is wrong)`."""
    for pattern, base in ((_DECIMAL, 10), (_HEX, 16), (_BINARY, 2)):
        if pattern.fullmatch(text):
            return _integer(text, base)
    if not _FLOAT.fullmatch(text):
        return None, f"`{_short(text)}` is not a number"
    if len(text) > _MAX_FLOAT_LENGTH:
        return None, f"a number has at most {_MAX_FLOAT_LENGTH} characters"
    value = float(text.replace("_", ""))
    if math.isinf(value):
        return None, f"`{text}` is larger than any `f64`"
    return value, None


def _integer(text: str, base: int) -> tuple[int, None] | tuple[None, str]:
    digits = text.replace("_", "")
    digits = (digits if base == 10 else digits[2:]).lstrip("0") or "0"
    value = int(digits, base) if len(digits) <= 64 else I64_LIMIT + 1
    if value > I64_LIMIT:
        return None, f"`{_short(text)}` is larger than any `i64`"
    return value, None


def _short(text: str) -> str:
    return text if len(text) <= 40 else text[:37] + "..."


def string(text: str) -> tuple[str, list[tuple[int, int]]]:
    """The value of a string with its quotes on, and the ranges in it of escapes without meaning."""
    bad: list[tuple[int, int]] = []

    def value(match: re.Match[str]) -> str:
        escape = match[0]
        if len(escape) > 2:
            code = int(escape[2:].strip("{}"), 16)
            if code <= 0x10FFFF and not 0xD800 <= code <= 0xDFFF:
                return chr(code)
        elif escape[1] in _SIMPLE:
            return _SIMPLE[escape[1]]
        bad.append((match.start(), match.end()))
        return ""

    result = _ESCAPE.sub(value, text)
    return result[1:-1], bad
