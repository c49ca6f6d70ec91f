"""Statements and bodies."""

from __future__ import annotations

from linnet.diagnostics.diagnostic import Label
from linnet.syntax.cursor import ITEM_STARTS, MEMBER_STARTS, Failed
from linnet.syntax.parse_exprs import ExpressionParser
from linnet.syntax.tokens import MAX_BODIES
from linnet.syntax.tree import (
    Assign,
    Body,
    ErrorExpr,
    ErrorType,
    Expr,
    For,
    Let,
    LetIndexed,
    Return,
    Statement,
    StaticFor,
    Type,
    Var,
    While,
    Yield,
)

# A body that is not closed ends before one of these; `const`, `type` and the like are reported
# where they stand and the body goes on.
_ENDS_BODY = MEMBER_STARTS | {"pub", "fn", "op", "entry", "block", "module"}
_NOT_IN_BODY = (ITEM_STARTS | {"use"}) - _ENDS_BODY
_NO_VALUE = frozenset("} let var return static for while yield eof".split()) | ITEM_STARTS


class StatementParser(ExpressionParser):
    """Reads bodies. A statement that cannot be read is left out; one whose value cannot be read
    keeps its names, so that their uses are not reported as unknown."""

    def body(self) -> Body:
        first = self.expect("{")
        if self.bodies == MAX_BODIES:
            self.skip_to_end(first, self.bracket_ends())
            return Body((), self.since(first))
        statements: list[Statement] = []
        self.bodies += 1
        while not self.accept("}"):
            if self.ends_body():
                self.unclosed(first, "a statement or `}`")
                break
            start, depth, bodies = self.pos, self.depth, self.bodies
            try:
                statements.append(self.statement())
            except Failed:
                self.depth, self.bodies = depth, bodies
                self.skip_statement(start)
        self.bodies -= 1
        return Body(tuple(statements), self.since(first))

    def ends_body(self) -> bool:
        kind = self.kinds[self.pos]
        return kind == "eof" or (kind in _ENDS_BODY and self.kinds[self.pos + 1] != "=")

    def unclosed(self, opening: int, expected: str) -> None:
        related = (Label(self.span_at(opening), "this `{` is not closed"),)
        message = f"expected {expected}, found {self.found()}"
        self.report(message, self.pos, related=related)

    def statement(self) -> Statement:
        first = self.pos
        kind = self.kinds[first]
        match kind:
            case "let":
                return self.let()
            case "var":
                return self.var()
            case "return":
                return self.return_()
            case "static":
                return self.static_for()
            case "for":
                return self.for_()
            case "while":
                return self.while_()
            case "yield":
                self.pos += 1
                value = self.value(first)
                return Yield(value, self.since(first))
        name = self.assigned_name()
        if name is not None:
            value = self.value(first)
            return Assign(name, value, self.since(first))
        self.not_a_statement()
        raise Failed

    def not_a_statement(self) -> None:
        """Report what stands where a statement should."""
        kind, following = self.kinds[self.pos], self.kinds[self.pos + 1]
        if kind in _NOT_IN_BODY:
            message = f"`{kind}` cannot stand in a body"
            self.report(message, self.pos, help="move it out of the function")
        elif kind == "reserved":
            self.reserved_syntax()
        elif kind == "name" and following in "+-*/%" and self.kinds[self.pos + 2] == "=":
            name, op = self.texts[self.pos], following
            message = f"there is no `{op}=`"
            self.report(message, self.pos + 1, help=f"write `{name} = {name} {op} ...`")
        elif kind == "name" and following == "[":
            message = "expected a statement, found an expression"
            help = "an indexed definition begins with `let`: `let y[i] = ...`"
            self.report(message, self.pos, help=help)
        else:
            message = f"expected a statement, found {self.found()}"
            help = "there are no expression statements: give the value a name with `let`"
            begins = kind in ("name", "(", "[", "if", "match", "int", "float", "some", "none")
            self.report(message, self.pos, help=help if begins else self.hint())

    def value(self, first: int) -> Expr:
        """The value that ends the statement begun at token `first`."""
        start, depth = self.pos, self.depth
        try:
            return self.expr()
        except Failed:
            self.depth = depth
            value = ErrorExpr(self.since(start))
            self.skip_statement(first)
            return value

    def declared_type(self) -> Type | None:
        """`: type` before `=`, when there is one."""
        if not self.accept(":"):
            return None
        start, depth = self.pos, self.depth
        try:
            return self.type_()
        except Failed:
            self.depth = depth
            broken = ErrorType(self.since(start))
            if not self.skip_to("="):
                raise
            return broken

    def let(self) -> Statement:
        first = self.expect("let")
        if self.kinds[first + 1] == "name" and self.kinds[first + 2] == "[":
            name = self.name()
            indices = self.index_names()
            self.expect("=")
            value = self.value(first)
            return LetIndexed(name, indices, value, self.since(first))
        if self.kinds[self.pos] == "reserved" and self.texts[self.pos] == "mut":
            self.report("`mut` is reserved", self.pos, code="E1103", help="a `var` can be assigned")
            self.pos += 1
        pattern = self.pattern()
        declared = self.declared_type()
        self.expect("=")
        if self.kinds[self.pos] == "for":
            loop = self.for_()
            return Let(pattern, declared, loop, self.since(first))
        value = self.value(first)
        return Let(pattern, declared, value, self.since(first))

    def var(self) -> Var:
        first = self.expect("var")
        name = self.name()
        declared = self.declared_type()
        self.expect("=")
        value = self.value(first)
        return Var(name, declared, value, self.since(first))

    def return_(self) -> Return:
        first = self.expect("return")
        kind = self.kinds[self.pos]
        if kind in _NO_VALUE or self.kinds[self.pos + 1] == "=":
            return Return(None, self.since(first))
        value = self.value(first)
        return Return(value, self.since(first))

    # --- loops ---

    def loop_expr(self) -> Expr:
        """An expression in a loop's header; one that cannot be read ends before `..` or `{`."""
        start, depth = self.pos, self.depth
        try:
            return self.expr()
        except Failed:
            self.depth = depth
            broken = ErrorExpr(self.since(start))
            while self.kinds[self.pos] not in ("..", "{", "}", "eof"):
                if self.kinds[self.pos] in _NO_VALUE:
                    raise
                self.pos += 1
            return broken

    def static_for(self) -> StaticFor:
        first = self.expect("static")
        self.expect("for", " after `static`")
        pattern = self.pattern()
        self.expect("in")
        start = self.loop_expr()
        stop = self.loop_expr() if self.accept("..") else None
        body = self.body()
        return StaticFor(pattern, start, stop, body, self.since(first))

    def for_(self) -> For:
        first = self.expect("for")
        name = self.name()
        self.expect("in")
        start = self.loop_expr()
        if self.kinds[self.pos] == "{":
            help = "a run-time loop counts: `for i in 0..n`; over a sub array it is `static for`"
            self.report("expected `..`, found `{`", self.pos, help=help)
            stop: Expr = ErrorExpr(self.here())
        else:
            self.expect("..")
            stop = self.loop_expr()
        body = self.body()
        return For(name, start, stop, body, self.since(first))

    def while_(self) -> While:
        first = self.expect("while")
        condition = self.loop_expr()
        body = self.body()
        return While(condition, body, self.since(first))
