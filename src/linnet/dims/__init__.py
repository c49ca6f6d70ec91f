"""Symbolic dimensions and the prover over declared facts. Knows nothing of the language.

A `Dim` is in normal form (`polynomial`, `dim`; as text `render`). `Facts` answer whether a
`Relation` follows from others: `gather` turns the relations into `Knowledge` (a `Store` of rules
and bounds over symbols), `decide` answers a question from it, with `search` and `simplex` for the
inequalities that signs alone do not settle, and a `Budget` that ends every search. On top of that:
`normalize`, `solve` (one equation, one unknown) and `suggest` (what to declare).
"""

from linnet.dims.dim import Dim, Symbol, dmax, dmin, floordiv, fresh_symbol, mod
from linnet.dims.facts import Facts, Verdict
from linnet.dims.polynomial import DimError
from linnet.dims.relation import Relation, RelationOp
from linnet.dims.solve import solve
from linnet.dims.suggest import suggest

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
    "suggest",
]
