"""What the backends share, none of it on a framework.

Entries seen from outside: `source` (what a loader is given), `signature`, `inputs`, `checks`,
`errors`. Ops: `natives` (the form of a backend's table), `predicates`, `limits`. Printing Python:
`emit`, on `expr` (pieces of text), `hosts` and `folding` (which scalars are Python's numbers, and
their arithmetic), `names`, and `sources` (functions of `kernels` copied into modules).
"""
