"""Making a stranger's text safe to print: no control sequence reaches the terminal."""

from __future__ import annotations

import unicodedata

_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\0"}
_UNSAFE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def escape_char(char: str) -> str:
    r"""`char` itself when it is harmless, else an escape such as `\u{1b}`.

    Controls, invisible and direction-changing characters and lone surrogates are not harmless.
    """
    if " " <= char <= "~":
        return char
    if "\udc80" <= char <= "\udcff":  # a byte that was no UTF-8, kept by `surrogateescape`
        return f"\\x{ord(char) - 0xDC00:02x}"
    if unicodedata.category(char) in _UNSAFE:
        return _NAMED.get(char) or f"\\u{{{ord(char):x}}}"
    return char


def escape_text(text: str, limit: int) -> str:
    """`text` on one line with harmful characters escaped, cut in the middle past `limit`."""
    if len(text) > limit:
        keep = limit // 2
        text = f"{text[:keep]} … {text[-keep:]}"
    if text.isascii() and text.isprintable():
        return text
    return "".join(map(escape_char, text))


def char_width(char: str) -> int:
    """The terminal columns of a harmless character."""
    if " " <= char <= "~":
        return 1
    if unicodedata.combining(char) or unicodedata.category(char) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def text_width(text: str) -> int:
    """The terminal columns of a text without harmful characters."""
    return len(text) if text.isascii() else sum(map(char_width, text))
