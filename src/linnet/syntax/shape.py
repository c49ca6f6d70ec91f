"""From tree and tokens to pieces: the cursor that keeps both in step, and lists."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from linnet.syntax.layout import Bracket, Entry, Piece, Remark, Seq, Text
from linnet.syntax.tokens import Comment, Token
from linnet.syntax.tree import Path

Node = TypeVar("Node")


def at_line_end(comment: Comment) -> Comment:
    """A comment that stood in the line, to stand at its end."""
    return replace(comment, place="trailing") if comment.place == "inline" else comment


class Shaper:
    """Walks the tokens in order while the tree is walked. Every token goes through `take` or
    `skip`, so that no comment is lost: those no list or body has claimed stay before their token.
    """

    def __init__(self, tokens: list[Token]) -> None:
        self.tokens = tokens
        self.comments = [list(token.comments) for token in tokens]
        self.at = 0

    @property
    def kind(self) -> str:
        return self.tokens[self.at].kind

    @property
    def start(self) -> int:
        return self.tokens[self.at].span.start

    def take(self, extra: int = 4) -> Piece:
        """The current token with the comments before it; they go on `extra` columns further in."""
        token, comments = self.tokens[self.at], self.comments[self.at]
        self.at += 1
        if not comments:
            return Text(token.text)
        return Seq([*(Remark(comment, extra) for comment in comments), Text(token.text)])

    def words(self, *texts: str) -> list[Piece]:
        """The next tokens, which are these, each with a space after it."""
        result: list[Piece] = []
        for _ in texts:
            result += [self.take(), Text(" ")]
        return result

    def lead(self) -> list[Comment]:
        """Claim the comments before the current token."""
        comments, self.comments[self.at] = self.comments[self.at], []
        return comments

    def trailing(self) -> list[Comment]:
        """Claim those comments before the current token that end the line of the one before."""
        comments = self.comments[self.at]
        count = 0
        while count < len(comments) and comments[count].place == "trailing":
            count += 1
        self.comments[self.at] = comments[count:]
        return comments[:count]

    def ending(self) -> list[Comment]:
        """Claim the comments before an operand or value up to the last that ends its line; those
        behind it stay with the token."""
        comments = self.comments[self.at]
        count = len(comments)
        while count and comments[count - 1].place == "inline":
            count -= 1
        self.comments[self.at] = comments[count:]
        return [at_line_end(comment) for comment in comments[:count]]

    def close_angle(self) -> None:
        """Skip a `>`, or the first half of a `>=`."""
        token = self.tokens[self.at]
        if token.kind == ">=":
            self.tokens[self.at] = Token("=", "=", token.span)
        else:
            self.at += 1

    # --- lists ---

    def bracket(
        self,
        nodes: Sequence[Node],
        element: Callable[[Node], Piece],
        *,
        comma: bool = True,
        force: bool = False,
        pad: str = "",
        separators: str = "",
    ) -> Piece:
        """The list from the current token, which opens it. A comma before its end breaks it,
        where `comma` allows one there; `separators` are those after each element if not commas.
        """
        opening = self.tokens[self.at].text
        before = [Remark(comment, 4) for comment in self.lead()]
        self.at += 1
        opened = self.trailing()
        entries: list[Entry] = []
        carried: list[Comment] = []
        for number, node in enumerate(nodes):
            entry = Entry(Text(""), carried + self.lead())
            entry.piece = element(node)
            if separators:
                entry.separator = separators[number] if number < len(separators) else ""
            carried = []
            while self.kind in (",", ";"):
                force = force or (self.kind == "," and number + 1 == len(nodes) and comma)
                carried += self.behind(entry)
                self.at += 1
            carried += self.behind(entry, last=number + 1 == len(nodes))
            entries.append(entry)
        last = carried + self.lead()
        closing = ">" if opening == "<" else self.tokens[self.at].text
        if opening == "<":
            self.close_angle()
        else:
            self.at += 1
        made = Bracket(
            opening,
            entries,
            closing,
            opened=opened,
            last=last,
            comma=comma,
            force=force,
            pad=pad,
        )
        return Seq([*before, made], "hug") if before else made

    def behind(self, entry: Entry, last: bool = True) -> list[Comment]:
        """Give an element the comments before the current token that belong behind it; the
        others, which stand alone on their lines, are returned.

        After a comma, with another element to come, those in the line belong to that one.
        """
        entry.trail += self.trailing()
        if not last:
            return []
        own: list[Comment] = []
        for comment in self.lead():
            if comment.place == "inline" and not own:
                entry.inner.append(comment)
            elif comment.place == "trailing" and not own:
                entry.trail.append(comment)
            else:
                own.append(comment)
        return own

    def path(self, path: Path) -> Piece:
        parts = [self.take()]
        for _ in path.parts[1:]:
            parts += [self.take(), self.take()]
        return parts[0] if len(parts) == 1 else Seq(parts)
