"""Dimensions as text: Linnet or Python, with exactly the parentheses the two need."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from linnet.dims import polynomial
from linnet.dims.polynomial import Monomial

if TYPE_CHECKING:
    from linnet.dims.dim import Atom, Dim, Op, Symbol


def render(
    dim: Dim, name: Callable[[Symbol], str], floordiv: str, functions: Mapping[str, str]
) -> str:
    """Positive terms first, higher degrees before lower, the constant last."""
    return _Renderer(name, floordiv, functions).sum(dim)


class _Renderer:
    def __init__(
        self, name: Callable[[Symbol], str], floordiv: str, functions: Mapping[str, str]
    ) -> None:
        self.name = name
        self.signs = {"floordiv": floordiv, "mod": "%"}
        self.functions = functions

    def sum(self, dim: Dim) -> str:
        if not dim.terms:
            return "0"
        leads = any(monomial and c > 0 for monomial, c in dim.terms.items())
        monomials = sorted(dim.terms, key=lambda m: _place(m, dim.terms[m], leads))
        first, *rest = monomials
        text = self.term(first, dim.terms[first], leading=True)
        for monomial in rest:
            coefficient = dim.terms[monomial]
            sign = "+" if coefficient > 0 else "-"
            text += f" {sign} {self.term(monomial, abs(coefficient), leading=False)}"
        return text

    def term(self, monomial: Monomial, coefficient: int, *, leading: bool) -> str:
        if not monomial:
            return str(coefficient)
        factors = list(monomial)
        prefix = ""
        if coefficient == -1:
            prefix = "-"
        elif coefficient != 1:
            prefix = f"{coefficient} * "
        # A division may open a product bare: `a / b * c` is `(a / b) * c`.
        opening = self.atom(factors[0], bare=not prefix)
        return prefix + " * ".join([opening, *(self.atom(f, bare=False) for f in factors[1:])])

    def atom(self, atom: Atom, *, bare: bool) -> str:
        if atom.key[1] == 0:
            return self.name(atom)  # type: ignore[arg-type]
        op: Op = atom  # type: ignore[assignment]
        if op.kind in self.functions:
            *rest, last = (self.sum(arg) for arg in op.args)
            text = last
            for arg in reversed(rest):
                text = f"{self.functions[op.kind]}({arg}, {text})"
            return text
        left, right = op.args
        text = f"{self.operand(left, left_side=True)} {self.signs[op.kind]} {self.operand(right)}"
        return text if bare else f"({text})"

    def operand(self, dim: Dim, *, left_side: bool = False) -> str:
        text = self.sum(dim)
        if len(dim.terms) > 1:
            return f"({text})"
        for monomial, coefficient in dim.terms.items():
            plain = not monomial or all(not self._divides(atom) for atom in monomial)
            simple = plain and coefficient >= (0 if not monomial else 1)
            single = simple and len(monomial) + (coefficient != 1) <= 1
            if not (single or (left_side and simple)):
                return f"({text})"
        return text

    def _divides(self, atom: Atom) -> bool:
        return atom.key[1] != 0 and atom.kind in self.signs  # type: ignore[union-attr]


def _place(monomial: Monomial, coefficient: int, leads: bool) -> tuple[object, ...]:
    """`leads`: a positive term with atoms can open the sum, so the constant may close it."""
    degree, keys = polynomial.monomial_order(monomial)
    closing = coefficient < 0 or (leads and not monomial)
    return (closing, -degree, keys)
