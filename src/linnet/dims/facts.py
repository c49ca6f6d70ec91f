"""Assumed relations and what follows from them, with three answers."""

from __future__ import annotations

from enum import Enum
from typing import ClassVar

from linnet.dims.budget import Budget, OutOfWork
from linnet.dims.decide import Answer, decide
from linnet.dims.dim import Dim, Symbol
from linnet.dims.gather import Question, gather, question
from linnet.dims.knowledge import Knowledge
from linnet.dims.normalize import equalities, simplified
from linnet.dims.polynomial import DimError
from linnet.dims.relation import Relation

QUESTION_STEPS = 100_000


class Verdict(Enum):
    """`PROVED`: true for every assignment that satisfies the facts; `REFUTED`: false for every
    one; `UNKNOWN`: neither could be shown."""

    PROVED = "proved"
    REFUTED = "refuted"
    UNKNOWN = "unknown"


_VERDICTS = {True: Verdict.PROVED, False: Verdict.REFUTED, None: Verdict.UNKNOWN}
_OPPOSITE = {
    Verdict.PROVED: Verdict.REFUTED,
    Verdict.REFUTED: Verdict.PROVED,
    Verdict.UNKNOWN: Verdict.UNKNOWN,
}


class Facts:
    """An immutable set of assumed relations; every `Symbol` is at least 0 besides.

    From facts that contradict each other anything may be proved. Only the first 160 relations are
    used, and a question has a fixed amount of work: past it the answer is `UNKNOWN`. Nothing is
    ever derived about a division or remainder by what is not known to be at least 1.
    """

    __slots__ = ("_answers", "_equalities", "_knowledge", "_parent", "relations")

    EMPTY: ClassVar[Facts]

    def __init__(self, relations: tuple[Relation, ...] = ()) -> None:
        self.relations = relations
        self._parent: Facts | None = None
        self._knowledge: Knowledge | None = None
        self._equalities: dict[Symbol, Dim] | None = None
        self._answers: dict[Question, Verdict] = {}

    def assume(self, *relations: Relation) -> Facts:
        """These facts and more."""
        known = set(self.relations)
        added = tuple(r for r in dict.fromkeys(relations) if r not in known)
        if not added:
            return self
        more = Facts(self.relations + added)
        more._parent = self if self.relations else None
        return more

    def prove(self, relation: Relation) -> Verdict:
        """Whether the relation holds under the facts; asked twice, answered at once."""
        try:
            sign, dim = question(relation)
        except DimError:
            return Verdict.UNKNOWN
        if sign == "not_zero":
            return _OPPOSITE[self._verdict("zero", dim)]
        return self._verdict(sign, dim)

    def proves(self, relation: Relation) -> bool:
        return self.prove(relation) is Verdict.PROVED

    def equal(self, a: Dim, b: Dim) -> Verdict:
        return Verdict.PROVED if a == b else self.prove(Relation(a, "==", b))

    def proves_equal(self, a: Dim, b: Dim) -> bool:
        return self.equal(a, b) is Verdict.PROVED

    @property
    def contradictory(self) -> bool:
        """Whether the relations are seen to contradict each other; then anything is proved."""
        return self._gathered().absurd

    def normalize(self, dim: Dim) -> Dim:
        """An equal dimension, simpler under the facts: declared equalities put in, divisions and
        the like decided, `d * (a / d)` as `a` where `a % d == 0`."""
        if self._equalities is None:
            self._equalities = equalities(self.relations)
        try:
            return simplified(dim.substitute(self._equalities), self)
        except DimError:
            return dim

    def _verdict(self, sign: Answer, dim: Dim) -> Verdict:
        constant = dim.constant
        if constant is not None:
            return _VERDICTS[constant == 0 if sign == "zero" else constant >= 0]
        known = self._answers.get((sign, dim))
        if known is None:
            known = self._answers[sign, dim] = _VERDICTS[self._work_out(sign, dim)]
        return known

    def _work_out(self, sign: Answer, dim: Dim) -> bool | None:
        knowledge = self._gathered()
        if not dim.ops <= knowledge.atoms.keys():
            knowledge = knowledge.fork()
        knowledge.budget = Budget(QUESTION_STEPS)
        try:
            return decide(knowledge, sign, knowledge.canonical(dim))
        except (DimError, OutOfWork):
            return None

    def _gathered(self) -> Knowledge:
        """What the relations say, worked out once; what the parent's say is built upon."""
        if self._knowledge is None:
            parent = self._parent
            if parent is None:
                self._knowledge = gather(self.relations)
            else:
                if parent._knowledge is None:
                    parent._knowledge = gather(parent.relations)
                self._knowledge = gather(self.relations, parent._knowledge, len(parent.relations))
        return self._knowledge


Facts.EMPTY = Facts()
