"""The pieces of statements and bodies."""

from __future__ import annotations

from typing import assert_never

from linnet.syntax.layout import Entry, Piece, Remark, Seq, Text
from linnet.syntax.layout_items import Braces, Lines
from linnet.syntax.shape import at_line_end
from linnet.syntax.shape_exprs import ExprShaper
from linnet.syntax.tokens import Comment
from linnet.syntax.tree import (
    Assign,
    Body,
    Expr,
    For,
    Let,
    LetIndexed,
    Return,
    Statement,
    StaticFor,
    Var,
    While,
    Yield,
)


class StatementShaper(ExprShaper):
    """Shapes bodies."""

    def entry(self, entries: list[Entry], kind: str) -> Entry:
        """A new entry for the statement, member or item at the current token, whose piece is
        still to come, with the comments around it."""
        if entries:
            entries[-1].trail += self.trailing()
        made = Entry(Text(""), self.lead(), kind=kind, blank=self.tokens[self.at].blank)
        entries.append(made)
        return made

    def body(self, node: Body) -> Piece:
        before, opened = self.open_body()
        entries: list[Entry] = []
        for statement in node.statements:
            entry = self.entry(entries, "small")
            entry.piece = self.statement(statement)
        return self.close_body(before, opened, entries)

    def open_body(self) -> tuple[list[Piece], list[Comment]]:
        """Skip a body's `{`: the comments in the line before it, and those to go after it."""
        # Behind the brace, a documentation comment would document the first member.
        documents = any(comment.doc for comment in self.comments[self.at])
        inline = all(comment.place == "inline" for comment in self.comments[self.at])
        comments = self.lead()
        self.at += 1
        if documents or inline:
            return [Remark(comment, 0) for comment in comments], self.trailing()
        return [], [at_line_end(comment) for comment in comments] + self.trailing()

    def close_body(self, before: list[Piece], opened: list[Comment], entries: list[Entry]) -> Piece:
        """The body whose `}` is the current token."""
        if entries:
            entries[-1].trail += self.trailing()
        last = self.lead()
        self.at += 1
        made = Braces(Lines(opened, entries, last))
        return Seq([*before, made]) if before else made

    def statement(self, node: Statement) -> Piece:
        match node:
            case Let():
                prefix = [*self.words("let"), self.pattern(node.pattern)]
                prefix += [*self.annotation(node.type), Text(" "), self.take()]
                if isinstance(node.value, For):
                    return Seq([*prefix, Text(" "), self.loop(node.value)])
                return self.assigned(prefix, node.value)
            case LetIndexed():
                prefix = [*self.words("let"), self.take()]
                prefix += [self.bracket(node.indices, self.index_name), Text(" "), self.take()]
                return self.assigned(prefix, node.value)
            case Var():
                prefix = [*self.words("var"), self.take(), *self.annotation(node.type)]
                return self.assigned([*prefix, Text(" "), self.take()], node.value)
            case Assign():
                return self.assigned([self.take(), Text(" "), self.take()], node.value)
            case Return():
                if node.value is None:
                    return self.take()
                return Seq([*self.words("return"), self.expr(node.value)])
            case Yield():
                return Seq([*self.words("yield"), self.expr(node.value)])
            case For():
                return self.loop(node)
            case StaticFor():
                head = [*self.words("static", "for"), self.pattern(node.pattern), Text(" ")]
                return self.ranged([*head, *self.words("in")], node.start, node.stop, node.body)
            case While():
                head = [*self.words("while"), self.expr(node.condition), Text(" ")]
                return Seq([*head, self.body(node.body)])
            case _:
                assert_never(node)

    def loop(self, node: For) -> Piece:
        head = [*self.words("for"), self.take(), Text(" "), *self.words("in")]
        return self.ranged(head, node.start, node.stop, node.body)

    def ranged(self, head: list[Piece], start: Expr, stop: Expr | None, body: Body) -> Piece:
        parts = [*head, self.expr(start)]
        if stop is not None:
            parts += [self.take(), self.expr(stop)]
        return Seq([*parts, Text(" "), self.body(body)])
