"""The one style of Linnet source: 4 spaces, 100 columns, comments where they are."""

from __future__ import annotations

from dataclasses import replace

from linnet.diagnostics.diagnostic import Diagnostic
from linnet.diagnostics.span import SourceFile
from linnet.syntax.layout import Writer
from linnet.syntax.lexer import build_tokens, lex
from linnet.syntax.parser import parse_tokens
from linnet.syntax.shape_items import ModuleShaper


def format_module(file: SourceFile) -> tuple[str | None, tuple[Diagnostic, ...]]:
    """The file's text in the one style, or None and why when it has syntax errors.

    The result depends on the tokens, the comments, what stands on one line with a comment, and
    blank lines: no other white space. It parses to the same tree, and formats to itself.
    """
    lexed, found = lex(file)
    # The parser splits `>=` where it closes generic arguments; the formatter does so for itself.
    whole = replace(
        lexed, kinds=list(lexed.kinds), texts=list(lexed.texts), starts=list(lexed.starts)
    )
    module, diagnostics = parse_tokens(file, lexed, found)
    if diagnostics:
        return None, diagnostics
    out = Writer()
    ModuleShaper(build_tokens(file, whole)).lines(module).write(out, 0, True)
    return out.finish(), ()
