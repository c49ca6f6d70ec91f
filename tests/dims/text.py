"""Dimensions and relations from text, for tests: `/` floors, `min` and `max` are functions."""

from __future__ import annotations

import ast

from linnet.dims import Dim, Relation, RelationOp, Symbol, dmax, dmin, floordiv, mod

_COMPARE: dict[type[ast.cmpop], RelationOp] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}


class Names:
    """One symbol for each name that turns up."""

    def __init__(self) -> None:
        self.symbols: dict[str, Symbol] = {}

    def symbol(self, name: str) -> Symbol:
        return self.symbols.setdefault(name, Symbol(name, len(self.symbols)))

    def dim(self, text: str) -> Dim:
        return self._dim(ast.parse(text, mode="eval").body)

    def relation(self, text: str) -> Relation:
        node = ast.parse(text.strip(), mode="eval").body
        assert isinstance(node, ast.Compare) and len(node.ops) == 1, text
        op = _COMPARE[type(node.ops[0])]
        return Relation(self._dim(node.left), op, self._dim(node.comparators[0]))

    def relations(self, text: str) -> tuple[Relation, ...]:
        """A list separated by commas outside parentheses."""
        if not text.strip():
            return ()
        node = ast.parse(f"({text},)", mode="eval").body
        assert isinstance(node, ast.Tuple)
        return tuple(self.relation(ast.unparse(element)) for element in node.elts)

    def _dim(self, node: ast.expr) -> Dim:
        match node:
            case ast.Constant(value=int(value)):
                return Dim.of(value)
            case ast.Name(id=name):
                return Dim.of(self.symbol(name))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -self._dim(operand)
            case ast.Call(func=ast.Name(id="min"), args=[a, b]):
                return dmin(self._dim(a), self._dim(b))
            case ast.Call(func=ast.Name(id="max"), args=[a, b]):
                return dmax(self._dim(a), self._dim(b))
            case ast.BinOp(left=left, op=op, right=right):
                return _combined(op, self._dim(left), self._dim(right))
        raise AssertionError(ast.dump(node))


def _combined(op: ast.operator, a: Dim, b: Dim) -> Dim:
    match op:
        case ast.Add():
            return a + b
        case ast.Sub():
            return a - b
        case ast.Mult():
            return a * b
        case ast.Div() | ast.FloorDiv():
            return floordiv(a, b)
        case ast.Mod():
            return mod(a, b)
    raise AssertionError(ast.dump(op))
