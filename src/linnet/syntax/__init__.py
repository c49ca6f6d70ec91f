"""Text: tokens, the tree, the parser and the formatter. Knows nothing of names or types."""

from __future__ import annotations

from linnet.syntax import tree
from linnet.syntax.dump import dump_tree, same_tree
from linnet.syntax.formatter import format_module
from linnet.syntax.lexer import tokens
from linnet.syntax.parser import parse_module
from linnet.syntax.tokens import Comment, Token

__all__ = [
    "Comment",
    "Token",
    "dump_tree",
    "format_module",
    "parse_module",
    "same_tree",
    "tokens",
    "tree",
]
