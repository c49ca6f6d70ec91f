"""Substitutions that remember: a function mentions few types, each many times."""

from __future__ import annotations

from dataclasses import dataclass, field

from linnet.dims import Dim
from linnet.types import Subst, Type


@dataclass(frozen=True, slots=True)
class Memo(Subst):
    """`Memo.of_subst(subst)` does as `subst` does."""

    seen: dict[Type, Type] = field(default_factory=dict, compare=False)
    sizes: dict[Dim, Dim] = field(default_factory=dict, compare=False)

    @staticmethod
    def of_subst(subst: Subst) -> Memo:
        return Memo(subst.dims, subst.packs, subst.dtypes)

    def type(self, type_: Type) -> Type:
        known = self.seen.get(type_)
        if known is None:
            known = self.seen[type_] = Subst.type(self, type_)
        return known

    def dim(self, dim: Dim) -> Dim:
        known = self.sizes.get(dim)
        if known is None:
            known = self.sizes[dim] = dim.substitute(self.dims)
        return known
