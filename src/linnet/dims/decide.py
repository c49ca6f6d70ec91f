"""One question about a polynomial in canonical form: true, false or not known."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from linnet.dims.dim import Dim
from linnet.dims.knowledge import Knowledge
from linnet.dims.polynomial import content
from linnet.dims.store import Choice

MAX_SPLITS = 4

Answer = Literal["zero", "at_least_zero"]


def decide(knowledge: Knowledge, sign: Answer, dim: Dim, splits: int = MAX_SPLITS) -> bool | None:
    """Whether `dim == 0` or `dim >= 0`; case by case over minima and maxima where that helps."""
    if knowledge.absurd:
        return True
    dim = knowledge.resolve(dim)
    answer = _zero(knowledge, dim) if sign == "zero" else _at_least_zero(knowledge, dim)
    if answer is not None or not splits or not knowledge.choices:
        return answer
    choice = min(knowledge.choices, key=lambda c: c.result.symbols.isdisjoint(dim.symbols))
    answers = set()
    for branch in _branches(knowledge, choice):
        if not branch.absurd:
            answers.add(decide(branch, sign, dim, splits - 1))
            if None in answers or len(answers) > 1:
                return None
    return answers.pop() if answers else True


def _branches(knowledge: Knowledge, choice: Choice) -> Iterator[Knowledge]:
    """One for each operand that may be the first of those chosen."""
    for place, arg in enumerate(choice.args):
        branch = knowledge.fork()
        branch.choices.remove(choice)
        branch.learn("zero", choice.result - arg)
        for other_place, other in enumerate(choice.args):
            if other_place != place:
                gap = other - arg if choice.kind == "min" else arg - other
                branch.learn("at_least_zero", gap - (other_place < place))
        yield branch


def _at_least_zero(knowledge: Knowledge, dim: Dim) -> bool | None:
    if knowledge.at_least_zero(dim):
        return True
    return False if knowledge.at_least_zero(-dim - 1) else None


def _zero(knowledge: Knowledge, dim: Dim) -> bool | None:
    if not dim.terms:
        return True
    common = content(c for monomial, c in dim.terms.items() if monomial)
    if common == 0 or dim.terms.get((), 0) % common:
        return False
    dim = Dim({m: c // common for m, c in dim.terms.items()})
    if dim in knowledge.not_zero or -dim in knowledge.not_zero:
        return False
    if knowledge.at_least_zero(dim - 1) or knowledge.at_least_zero(-dim - 1):
        return False
    if knowledge.at_least_zero(dim) and knowledge.at_least_zero(-dim):
        return True
    return None
