"""Requirements for one set of sizes as sums of inputs that are not negative: cheap to look at."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from linnet.dims import Dim, Symbol
from linnet.passes.bounding.values import Leaf
from linnet.passes.bounds import Requirement

Sum = tuple[int, tuple[tuple[int, int], ...]]  # a constant, and numbers of leaves with factors


@dataclass(frozen=True, slots=True)
class Ranges:
    """All of `sums` are at least 0, in terms of the leaves' values."""

    leaves: tuple[Leaf, ...]
    sums: tuple[Sum, ...]

    @staticmethod
    def of(requirements: Iterable[Requirement], sizes: Mapping[str, int]) -> Ranges | None:
        """What the requirements come to, None where that takes more than ranges."""
        leaves: dict[Leaf, int] = {}
        sums: dict[Sum, None] = {}
        for requirement in requirements:
            known = requirement.known(sizes)
            dims = _not_negative(requirement, {s: Dim.of(size) for s, size in known.items()})
            if dims is None:
                return None
            for dim in dims:
                found = _sum(dim, requirement.leaves.by_symbol, leaves)
                if found is None:
                    return None
                sums[found] = None
        return Ranges(tuple(leaves), tuple(sums))

    def hold(self, values: Sequence[int]) -> bool:
        """Whether all hold for the leaves' values."""
        for constant, terms in self.sums:
            for leaf, factor in terms:
                constant += factor * values[leaf]
            if constant < 0:
                return False
        return True


def _not_negative(requirement: Requirement, known: Mapping[Symbol, Dim]) -> list[Dim] | None:
    """The dims that are at least 0 where the requirement holds."""
    if requirement.guards or requirement.extent is None:
        return None
    if requirement.host is not None and (requirement.lo is None or requirement.hi is None):
        return None
    positive = [dim.substitute(known).constant for dim in requirement.positive]
    if any(value is not None and value < 1 for value in positive):
        return []  # it does not count
    if any(value is None for value in positive):
        return None
    found = [] if requirement.lo is None else [requirement.lo]
    if requirement.hi is not None:
        found.append(requirement.extent - 1 - requirement.hi)
    return [dim.substitute(known) for dim in found]


def _sum(dim: Dim, by_symbol: Mapping[Symbol, Leaf], leaves: dict[Leaf, int]) -> Sum | None:
    """A dim as a sum over leaves, None where it is none, or where it cannot hold."""
    constant, terms = 0, []
    for monomial, factor in dim.terms.items():
        if not monomial:
            constant = factor
            continue
        atom = monomial[0]
        if len(monomial) > 1 or not isinstance(atom, Symbol) or atom not in by_symbol:
            return None
        leaf = by_symbol[atom]
        terms.append((leaves.setdefault(leaf, len(leaves)), factor))
    return None if not terms and constant < 0 else (constant, tuple(terms))
