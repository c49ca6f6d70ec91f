"""Comparisons of two dimensions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from linnet.dims.dim import Dim, Symbol

RelationOp = Literal["==", "!=", "<", "<=", ">", ">="]


@dataclass(frozen=True, slots=True)
class Relation:
    """`left op right`, as a `where` clause states it."""

    left: Dim
    op: RelationOp
    right: Dim

    def substitute(self, mapping: Mapping[Symbol, int | Symbol | Dim]) -> Relation:
        return Relation(self.left.substitute(mapping), self.op, self.right.substitute(mapping))

    def evaluate(self, mapping: Mapping[Symbol, int]) -> bool:
        """Whether it holds; `DimError` as `Dim.evaluate` raises it."""
        left, right = self.left.evaluate(mapping), self.right.evaluate(mapping)
        match self.op:
            case "==":
                return left == right
            case "!=":
                return left != right
            case "<":
                return left < right
            case "<=":
                return left <= right
            case ">":
                return left > right
            case ">=":
                return left >= right

    def __str__(self) -> str:
        return f"{self.left} {self.op} {self.right}"
