"""Assumed relations and what follows from them, with three answers."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import ClassVar

from linnet.dims.dim import Dim, Symbol
from linnet.dims.knowledge import Choice, Knowledge, OutOfWork, Sign
from linnet.dims.normalize import equalities, simplified
from linnet.dims.polynomial import DimError, content
from linnet.dims.relation import Relation

MAX_RELATIONS = 160
MAX_SPLITS = 4


class Verdict(Enum):
    """`PROVED`: true for every assignment that satisfies the facts; `REFUTED`: false for every
    one; `UNKNOWN`: neither could be shown."""

    PROVED = "proved"
    REFUTED = "refuted"
    UNKNOWN = "unknown"

    def opposite(self) -> Verdict:
        match self:
            case Verdict.PROVED:
                return Verdict.REFUTED
            case Verdict.REFUTED:
                return Verdict.PROVED
            case Verdict.UNKNOWN:
                return Verdict.UNKNOWN


class Facts:
    """An immutable set of assumed relations; every `Symbol` is at least 0 besides.

    From facts that contradict each other anything may be proved. Only the first 160 relations are
    used, and a question has a fixed amount of work: past it the answer is `UNKNOWN`.
    """

    __slots__ = ("_answers", "_equalities", "_knowledge", "relations")

    EMPTY: ClassVar[Facts]

    def __init__(self, relations: tuple[Relation, ...] = ()) -> None:
        self.relations = relations
        self._knowledge: Knowledge | None = None
        self._equalities: dict[Symbol, Dim] | None = None
        self._answers: dict[tuple[Sign, Dim], Verdict] = {}

    def assume(self, *relations: Relation) -> Facts:
        """These facts and more."""
        fresh = dict.fromkeys(relations)
        added = tuple(relation for relation in fresh if relation not in self.relations)
        return Facts(self.relations + added) if added else self

    def prove(self, relation: Relation) -> Verdict:
        """Whether the relation holds under the facts; asked twice, answered at once."""
        try:
            sign, dim = _question(relation)
            if sign == "not_zero":
                return self._answer("zero", dim).opposite()
            return self._answer(sign, dim)
        except DimError:
            return Verdict.UNKNOWN

    def proves(self, relation: Relation) -> bool:
        return self.prove(relation) is Verdict.PROVED

    def equal(self, a: Dim, b: Dim) -> Verdict:
        if a == b:
            return Verdict.PROVED
        return self.prove(Relation(a, "==", b))

    def proves_equal(self, a: Dim, b: Dim) -> bool:
        return self.equal(a, b) is Verdict.PROVED

    def normalize(self, dim: Dim) -> Dim:
        """An equal dimension, simpler under the facts: declared equalities put in, divisions and
        the like decided, `d * (a / d)` as `a` where `a % d == 0`."""
        if self._equalities is None:
            self._equalities = equalities(self.relations)
        try:
            return simplified(dim.substitute(self._equalities), self)
        except DimError:
            return dim

    def _answer(self, sign: Sign, dim: Dim) -> Verdict:
        constant = dim.constant
        if constant is not None:
            holds = constant == 0 if sign == "zero" else constant >= 0
            return Verdict.PROVED if holds else Verdict.REFUTED
        key = (sign, dim)
        if key not in self._answers:
            try:
                self._answers[key] = self._work_out(sign, dim)
            except (DimError, OutOfWork):
                self._answers[key] = Verdict.UNKNOWN
        return self._answers[key]

    def _work_out(self, sign: Sign, dim: Dim) -> Verdict:
        if self._knowledge is None:
            self._knowledge = _gather(self.relations)
        knowledge = self._knowledge
        if not dim.ops <= knowledge.atoms.keys():
            knowledge = knowledge.fork()
        knowledge.steps = 0
        return _decide(knowledge, sign, knowledge.canonical(dim), MAX_SPLITS)


Facts.EMPTY = Facts()


def _question(relation: Relation) -> tuple[Sign, Dim]:
    left, right = relation.left, relation.right
    match relation.op:
        case "==":
            return "zero", left - right
        case "!=":
            return "not_zero", left - right
        case "<":
            return "at_least_zero", right - left - 1
        case "<=":
            return "at_least_zero", right - left
        case ">":
            return "at_least_zero", left - right - 1
        case ">=":
            return "at_least_zero", left - right


def _gather(relations: tuple[Relation, ...]) -> Knowledge:
    """All relations taken in, those that need another one (a positive divisor) after it."""
    knowledge = Knowledge()
    waiting: list[tuple[Sign, Dim]] = []
    for relation in relations[:MAX_RELATIONS]:
        try:
            waiting.append(_question(relation))
        except DimError:
            continue
    last = False
    while waiting:
        later: list[tuple[Sign, Dim]] = []
        for sign, dim in waiting:
            try:
                trial = knowledge.fork()
                canonical = trial.canonical(dim)
                if len(trial.unspecified) > len(knowledge.unspecified) and not last:
                    later.append((sign, dim))
                    continue
                trial.learn(sign, canonical)
                knowledge = trial
            except (DimError, OutOfWork):
                continue  # leaving a fact out is always sound
        if last:
            break
        last = len(later) == len(waiting)
        waiting = later
    return _remember(knowledge, relations)


def _remember(knowledge: Knowledge, relations: tuple[Relation, ...]) -> Knowledge:
    """Work out the atoms of the relations once, for all questions."""
    knowledge.atoms.clear()
    for relation in relations[:MAX_RELATIONS]:
        try:
            trial = knowledge.fork()
            trial.canonical(relation.left)
            trial.canonical(relation.right)
            knowledge = trial
        except (DimError, OutOfWork):
            continue
    return knowledge


def _decide(knowledge: Knowledge, sign: Sign, dim: Dim, splits: int) -> Verdict:
    if knowledge.absurd:
        return Verdict.PROVED
    dim = knowledge.resolve(dim)
    verdict = _verdict(knowledge, sign, dim)
    if verdict is not Verdict.UNKNOWN or not splits or not knowledge.choices:
        return verdict
    found: Verdict | None = None
    choice = min(knowledge.choices, key=lambda c: c.result.symbols.isdisjoint(dim.symbols))
    for branch in _branches(knowledge, choice):
        if branch.absurd:
            continue
        verdict = _decide(branch, sign, dim, splits - 1)
        if verdict is Verdict.UNKNOWN or (found is not None and verdict is not found):
            return Verdict.UNKNOWN
        found = verdict
    return Verdict.PROVED if found is None else found


def _branches(knowledge: Knowledge, choice: Choice) -> Iterator[Knowledge]:
    """One for each operand that may be the chosen one."""
    for place, arg in enumerate(choice.args):
        branch = knowledge.fork()
        branch.choices.remove(choice)
        branch.learn("zero", branch.resolve(choice.result - arg))
        for other_place, other in enumerate(choice.args):
            if other_place != place:
                gap = other - arg if choice.kind == "min" else arg - other
                branch.learn("at_least_zero", branch.resolve(gap) - (other_place < place))
        yield branch


def _verdict(knowledge: Knowledge, sign: Sign, dim: Dim) -> Verdict:
    if sign == "zero":
        return _verdict_zero(knowledge, dim)
    if knowledge.at_least_zero(dim):
        return Verdict.PROVED
    return Verdict.REFUTED if knowledge.at_least_zero(-dim - 1) else Verdict.UNKNOWN


def _verdict_zero(knowledge: Knowledge, dim: Dim) -> Verdict:
    if not dim.terms:
        return Verdict.PROVED
    common = content(c for monomial, c in dim.terms.items() if monomial)
    if common == 0 or dim.terms.get((), 0) % common:
        return Verdict.REFUTED
    dim = Dim({m: c // common for m, c in dim.terms.items()})
    if dim in knowledge.not_zero or -dim in knowledge.not_zero:
        return Verdict.REFUTED
    if knowledge.at_least_zero(dim - 1) or knowledge.at_least_zero(-dim - 1):
        return Verdict.REFUTED
    if knowledge.at_least_zero(dim) and knowledge.at_least_zero(-dim):
        return Verdict.PROVED
    return Verdict.UNKNOWN
