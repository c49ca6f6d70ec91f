"""Symbolic dimensions and the prover over declared facts."""

from linnet.dims.dim import Dim, Symbol, dmax, dmin, floordiv, fresh_symbol, mod
from linnet.dims.facts import Facts, Verdict
from linnet.dims.polynomial import DimError
from linnet.dims.relation import Relation, RelationOp
from linnet.dims.solve import solve

__all__ = [
    "Dim",
    "DimError",
    "Facts",
    "Relation",
    "RelationOp",
    "Symbol",
    "Verdict",
    "dmax",
    "dmin",
    "floordiv",
    "fresh_symbol",
    "mod",
    "solve",
]
