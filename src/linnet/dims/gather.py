"""From a list of relations to `Knowledge`, whatever their order."""

from __future__ import annotations

from linnet.dims.budget import Budget, OutOfWork
from linnet.dims.dim import Dim
from linnet.dims.knowledge import Knowledge
from linnet.dims.polynomial import DimError
from linnet.dims.relation import Relation
from linnet.dims.store import Sign

MAX_RELATIONS = 160
GATHER_STEPS = 400_000

Question = tuple[Sign, Dim]


def question(relation: Relation) -> Question:
    """A relation as one about a single dimension."""
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


def gather(
    relations: tuple[Relation, ...], base: Knowledge | None = None, taken: int = 0
) -> Knowledge:
    """What all the relations say. `base` is what the first `taken` of them say.

    A relation with a division waits until its divisor is known to be positive; if it never is,
    the division stands for an unspecified number. Facts that take too much work are left out.
    """
    if base is None or base.waiting:
        knowledge, taken = Knowledge(Budget(GATHER_STEPS)), 0
    else:
        knowledge = base.fork()
        knowledge.budget = Budget(GATHER_STEPS)
    fresh = relations[taken:MAX_RELATIONS]
    waiting = _questions(fresh)
    while waiting:
        knowledge, later = _take(knowledge, waiting, unspecified=False)
        if len(later) == len(waiting):
            knowledge, _ = _take(knowledge, later, unspecified=True)
            knowledge.waiting = later
            break
        waiting = later
    return _with_atoms(_settled(knowledge), fresh)


def _questions(relations: tuple[Relation, ...]) -> list[Question]:
    found = []
    for relation in relations:
        try:
            found.append(question(relation))
        except DimError:
            continue  # leaving a fact out is always sound
    return found


def _take(
    knowledge: Knowledge, questions: list[Question], *, unspecified: bool
) -> tuple[Knowledge, list[Question]]:
    """With what could be taken in now, and what has to wait."""
    later: list[Question] = []
    for sign, dim in questions:
        trial = knowledge.fork()
        try:
            canonical = trial.canonical(dim)
            if len(trial.unspecified) > len(knowledge.unspecified) and not unspecified:
                later.append((sign, dim))
                continue
            trial.learn(sign, canonical)
            knowledge = trial
        except (DimError, OutOfWork):
            continue
    return knowledge, later


def _settled(knowledge: Knowledge) -> Knowledge:
    """With every `!=` that has become a `<` or `>` taken as one."""
    before = len(knowledge.not_zero) + 1
    while len(knowledge.not_zero) < before:
        before = len(knowledge.not_zero)
        questions: list[Question] = [("not_zero", dim) for dim in knowledge.not_zero]
        knowledge.not_zero.clear()
        knowledge, _ = _take(knowledge, questions, unspecified=True)
    return knowledge


def _with_atoms(knowledge: Knowledge, relations: tuple[Relation, ...]) -> Knowledge:
    """The atoms of the relations worked out once, for all questions."""
    for relation in relations:
        trial = knowledge.fork()
        try:
            trial.canonical(relation.left)
            trial.canonical(relation.right)
            knowledge = trial
        except (DimError, OutOfWork):
            continue
    return knowledge
