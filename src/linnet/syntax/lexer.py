"""From text to tokens, on one compiled regular expression."""

from __future__ import annotations

import re
from typing import Literal

from linnet.diagnostics.diagnostic import Diagnostic
from linnet.diagnostics.span import SourceFile, Span
from linnet.syntax import literals
from linnet.syntax.tokens import (
    EOFS,
    KEYWORDS,
    MAX_CHARACTERS,
    MAX_DIAGNOSTICS,
    MAX_TOKENS,
    PUNCTUATION,
    RESERVED,
    Comment,
    Lexed,
    Token,
)

# The groups' numbers: the lexer branches on `match.lastindex`.
_NAME, _PUNCTUATION, _NUMBER, _LINE, _BLOCK, _STRING, _UNCLOSED, _BAD, _END = range(1, 10)
_SPACE = r" \t\r\n\f\v"
_MASTER = re.compile(
    rf"[{_SPACE}]*(?:"
    r"([A-Za-z_][A-Za-z0-9_]*)"
    r"|(/(?![/*])|" + "|".join(re.escape(mark) for mark in PUNCTUATION if mark != "/") + r")"
    r"|([0-9][0-9_]*(?:\.[0-9][0-9_]*)?(?:[eE][+-]?[0-9][0-9_]*)?[A-Za-z0-9_]*)"
    r"|(//[^\n]*)"
    r"|(/\*)"
    r'|("[^"\\\n]*(?:\\[^\n][^"\\\n]*)*")'
    r'|("[^\n]*)'
    rf'|([^{_SPACE}A-Za-z0-9_"/(){{}}\[\]<>=!+\-*%&|^.,:;?]+)'
    r"|(\Z))"
)
_NESTED = re.compile(r"/\*|\*/")
_WORDS = {word: word for word in KEYWORDS} | dict.fromkeys(RESERVED, "reserved")
_MARKS = {mark: mark for mark in PUNCTUATION}


class _Lexer:
    def __init__(self, file: SourceFile) -> None:
        self.file = file
        self.out = Lexed([], [], [], [], {}, {})
        self.diagnostics: list[Diagnostic] = []

    def report(
        self, code: str, message: str, start: int, end: int, help: str | None = None
    ) -> None:
        if len(self.diagnostics) < MAX_DIAGNOSTICS:
            span = Span(self.file, start, end)
            self.diagnostics.append(Diagnostic(code, message, span, help=help))

    def run(self) -> None:
        text = self.file.text
        at = 1 if text.startswith("\ufeff") else 0
        while at != -1:
            at = self.stretch(at)

    def stretch(self, at: int) -> int:
        """Lex from `at` to the next block comment or the end; where to go on, or -1."""
        out = self.out
        kinds, texts, starts, ends = out.kinds, out.texts, out.starts, out.ends
        word_kind, mark_kind = _WORDS.get, _MARKS
        for match in _MASTER.finditer(self.file.text, at):
            group = match.lastindex
            start, end = match.span(group or 0)
            if group == _NAME:
                word = match[_NAME]
                kinds.append(word_kind(word, "name"))
                texts.append(word)
            elif group == _PUNCTUATION:
                mark = mark_kind[match[_PUNCTUATION]]
                kinds.append(mark)
                texts.append(mark)
            elif group == _LINE:
                out.comments.setdefault(len(kinds), []).append((start, end))
                continue
            elif group == _BLOCK:
                return self.block_comment(start)
            elif group == _END:
                return self.finish(end)
            else:
                kind = self.other(group or 0, match[group or 0], start)
                kinds.append(kind)
                texts.append(match[group or 0])
            starts.append(start)
            ends.append(end)
            if len(starts) > MAX_TOKENS:
                message = f"the file has more than {MAX_TOKENS:,} tokens"
                self.report("E1101", message, start, end, help="split it into modules")
                out.cut = True
                return self.finish(end)
        return self.finish(len(self.file.text))

    def other(self, group: int, text: str, start: int) -> str:
        """The kind of a number, a string or a run of impossible characters, reporting what is
        wrong with it."""
        index = len(self.out.kinds)
        if group == _NUMBER:
            value, wrong = literals.number(text)
            if value is None:
                self.report("E1005", wrong or "", start, start + len(text))
                return "number"
            self.out.literals[index] = value
            return "float" if isinstance(value, float) else "int"
        if group == _STRING:
            return self.string(text, start)
        if group == _UNCLOSED:
            message = "the string is not closed on its line"
            self.report("E1003", message, start, start + len(text.rstrip()), help='end it with `"`')
            return "bad"
        shown = text[0] if text[0].isprintable() else f"U+{ord(text[0]):04X}"
        self.report("E1001", f"`{shown}` cannot stand in a Linnet file", start, start + len(text))
        return "bad"

    def string(self, text: str, start: int) -> str:
        value, bad = literals.string(text)
        for first, last in bad:
            self.report(
                "E1003",
                f"`{text[first:last]}` is not an escape",
                start + first,
                start + last,
                help=r"the escapes are \n \t \r \0 \\ \" \xNN \u{NNNN}",
            )
        self.out.literals[len(self.out.kinds)] = value
        return "string"

    def block_comment(self, start: int) -> int:
        depth = 0
        for mark in _NESTED.finditer(self.file.text, start):
            depth += 1 if mark[0] == "/*" else -1
            if depth == 0:
                self.out.comments.setdefault(len(self.out.kinds), []).append((start, mark.end()))
                return mark.end()
        self.report("E1002", "the comment is not closed", start, start + 2, help="end it with `*/`")
        self.out.cut = True
        return self.finish(len(self.file.text))

    def finish(self, end: int) -> int:
        out = self.out
        for _ in range(EOFS):
            out.kinds.append("eof")
            out.texts.append("")
            out.starts.append(end)
            out.ends.append(end)
        return -1


def lex(file: SourceFile) -> tuple[Lexed, list[Diagnostic]]:
    """Every token of a file, and what is wrong in it: codes E1001, E1002, E1003 and E1005."""
    lexer = _Lexer(file)
    if len(file.text) > MAX_CHARACTERS:
        message = f"the file is larger than {MAX_CHARACTERS:,} characters"
        lexer.report("E1101", message, 0, 0, help="split it into modules")
        lexer.out.cut = True
        lexer.finish(0)
    else:
        lexer.run()
    return lexer.out, lexer.diagnostics


def tokens(file: SourceFile) -> tuple[tuple[Token, ...], tuple[Diagnostic, ...]]:
    """The tokens of a file with their comments; the last one is `eof`."""
    lexed, diagnostics = lex(file)
    return tuple(build_tokens(file, lexed)), tuple(diagnostics)


def build_tokens(file: SourceFile, lexed: Lexed) -> list[Token]:
    """`Token` objects for parallel lists; the last one is `eof`."""
    result: list[Token] = []
    previous = 0
    text = file.text
    for index in range(len(lexed.kinds) - EOFS + 1):
        start, end = lexed.starts[index], lexed.ends[index]
        comments: tuple[Comment, ...] = ()
        if index in lexed.comments:
            comments = _comments(file, lexed.comments[index], previous, start)
            previous = lexed.comments[index][-1][1]
        blank = text.count("\n", previous, start) > 1
        span = Span(file, start, end)
        result.append(Token(lexed.kinds[index], lexed.texts[index], span, comments, blank))
        previous = end
    return result


def _comments(
    file: SourceFile, ranges: list[tuple[int, int]], previous: int, following: int
) -> tuple[Comment, ...]:
    result: list[Comment] = []
    text = file.text
    # Whether a token follows on the line: found from the last comment backwards.
    token_follows: list[bool] = []
    after, follows = following, following < len(text)
    for start, end in reversed(ranges):
        follows = follows and "\n" not in text[end:after] and not text.startswith("//", start)
        token_follows.append(follows)
        after = start
    for start, end in ranges:
        breaks = text.count("\n", previous, start)
        place: Literal["own", "trailing", "inline"]
        if token_follows.pop():
            place = "inline"
        else:
            place = "own" if breaks or previous == 0 else "trailing"
        result.append(Comment(text[start:end], place, breaks > 1, Span(file, start, end)))
        previous = end
    return tuple(result)
