"""What a set of relations says, in a form that makes most questions arithmetic.

Relations are taken in one at a time and turned into

- rules `symbol = polynomial` (a declared equality, or `a = b * q + r` for a division of `a` by
  `b`, with `r = 0` where divisibility is declared), so that equal things get one normal form;
- lower bounds of symbols;
- rules `monomial = polynomial`, for equalities of products;
- and what is left over, as polynomials known to be `>= 0`.

Inside, everything is a polynomial over symbols only: each division, remainder, minimum and maximum
is named by symbols of its own, which are `>= 0` like all others (a number of unknown sign is the
difference of two).
"""

from __future__ import annotations

from collections.abc import Set

from linnet.dims import polynomial
from linnet.dims.dim import ONE, ZERO, Atom, Dim, Kind, Op, Symbol
from linnet.dims.polynomial import DimError, Monomial
from linnet.dims.search import tighten
from linnet.dims.store import Choice, Sign, Store


class Knowledge(Store):
    """A store that takes relations in; `fork` before adding what only one question needs."""

    # -- taking relations in ------------------------------------------------------------------

    def learn(self, sign: Sign, dim: Dim) -> None:
        """Add `dim == 0`, `dim >= 0` or `dim != 0` (in canonical form) and all that follows."""
        self.queue.append((sign, dim))
        if self.busy:
            return
        self.busy = True
        while self.queue:
            self.budget.spend(20 + 4 * len(self.rules) + 4 * len(self.bounds))
            sign, dim = self.queue.popleft()
            try:
                dim = self.resolve(dim)
                if sign == "zero":
                    self._learn_zero(dim)
                elif sign == "at_least_zero":
                    self._learn_bound(dim)
                else:
                    self._learn_not_zero(dim)
            except DimError:
                continue  # too large to be of use; leaving a fact out is always sound
        self.busy = False

    def _learn_zero(self, dim: Dim) -> None:
        dim = self._simplest_zero(dim)
        constant = dim.constant
        if constant is not None:
            self.absurd |= constant != 0
            return
        if self._one_signed(dim):
            return
        symbol = self._solvable(dim)
        if symbol is not None:
            coefficient = dim.terms[(symbol,)]
            self._bind(symbol, Dim.of(symbol) - dim * coefficient)
            return
        if self._common_multiple(dim) or dim in self.equations or -dim in self.equations:
            return
        self.equations[dim] = None
        self._force_positive(dim)
        self._force_positive(-dim)
        lead = max(dim.terms, key=polynomial.monomial_order)
        if abs(dim.terms[lead]) == 1 and lead not in self.products:
            self._rewrite(lead, Dim({lead: 1}) - dim * dim.terms[lead])

    def _simplest_zero(self, dim: Dim) -> Dim:
        """Without the positive factors that all terms share."""
        shared = polynomial.common_monomial(dim.terms)
        positive = tuple(symbol for symbol in shared if self.lower.get(symbol, 0) >= 1)
        dim = Dim(polynomial.exact_quotient(dim.terms, positive, 1))
        common = polynomial.content(c for m, c in dim.terms.items() if m)
        if common > 1:
            if dim.terms.get((), 0) % common:
                return ONE
            dim = Dim(polynomial.exact_quotient(dim.terms, (), common))
        return dim

    def _one_signed(self, dim: Dim) -> bool:
        """`dim == 0` with all coefficients of one sign: every term is 0."""
        signs = {c > 0 for c in dim.terms.values()}
        if len(signs) > 1:
            return False
        if () in dim.terms:
            self.absurd = True
            return True
        known = True
        for monomial in dim.terms:
            maybe = {symbol for symbol in monomial if self.lower.get(symbol, 0) < 1}
            if not maybe:
                self.absurd = True
            elif len(maybe) == 1:
                self._bind(maybe.pop(), ZERO)
            else:
                known = False
        return known

    def _solvable(self, dim: Dim) -> Symbol | None:
        """The symbol to write as a polynomial of the others: it stands alone with coefficient
        1 or -1; best is one whose polynomial is plainly not negative."""
        uses: dict[Symbol, int] = {}
        for monomial in dim.terms:
            for symbol in set(monomial):
                uses[symbol] = uses.get(symbol, 0) + 1
        found = None
        for symbol in sorted(uses, key=lambda s: -s.uid):
            coefficient = dim.terms.get((symbol,), 0)
            if uses[symbol] != 1 or abs(coefficient) != 1:
                continue
            if self.plain(Dim.of(symbol) - dim * coefficient):
                return symbol
            found = symbol
        return found

    def _common_multiple(self, dim: Dim) -> bool:
        """`a * x == b * y` with coprime `a`, `b`: `x = b * t`, `y = a * t`."""
        if len(dim.terms) != 2:
            return False
        (m, a), (n, b) = dim.terms.items()
        if len(m) != 1 or len(n) != 1 or a * b > 0 or m == n:
            return False
        t = Dim.of(self.name("t"))
        self._bind(m[0], t * abs(b))
        self._bind(n[0], t * abs(a))
        return True

    def _learn_bound(self, dim: Dim) -> None:
        dim = tighten(dim)
        if self.plain(dim):
            return
        if all(c < 0 for c in dim.terms.values()) and self._one_signed(dim):
            return
        if len(dim.terms) == 2 and () in dim.terms:
            [(monomial, coefficient)] = [(m, c) for m, c in dim.terms.items() if m]
            if coefficient == 1 and len(monomial) == 1:
                self._raise(monomial[0], -dim.terms[()])
                return
        if self._force_positive(dim):
            return
        if -dim in self.bounds:
            del self.bounds[-dim]
            self.queue.append(("zero", dim))
        else:
            self.bounds[dim] = None

    def _force_positive(self, dim: Dim) -> bool:
        """`dim >= 0` with a negative constant: a symbol in every positive term is at least 1."""
        if dim.terms.get((), 0) >= 0:
            return False
        shared: set[Symbol] | None = None
        for monomial, coefficient in dim.terms.items():
            if coefficient > 0:
                shared = set(monomial) if shared is None else shared & set(monomial)
        raised = False
        for symbol in sorted(shared or (), key=lambda s: s.uid):
            if self.lower.get(symbol, 0) < 1:
                self._raise(symbol, 1)
                raised = True
        if raised:
            self.queue.append(("at_least_zero", dim))
        return raised

    def _raise(self, symbol: Symbol, least: int) -> None:
        if least > self.lower.get(symbol, 0):
            self.lower[symbol] = least
            self.shifted.clear()
            self._reopen({symbol})

    def _learn_not_zero(self, dim: Dim) -> None:
        if self.at_least_zero(dim):
            self.queue.append(("at_least_zero", dim - 1))
        elif self.at_least_zero(-dim):
            self.queue.append(("at_least_zero", -dim - 1))
        else:
            self.not_zero[dim] = None

    def _bind(self, symbol: Symbol, value: Dim) -> None:
        """From now on `symbol` is written as `value`, everywhere."""
        if symbol in self.rules:
            self.queue.append(("zero", self.rules[symbol] - value))
            return
        step = {symbol: value}
        for name, old in self.rules.items():
            self.rules[name] = old.substitute(step)
        self.rules[symbol] = value
        self.queue.append(("at_least_zero", value - self.lower.get(symbol, 0)))
        self._replace(step)

    def _rewrite(self, lead: Monomial, value: Dim) -> None:
        self.products[lead] = value
        self._replace({})

    def _replace(self, step: dict[Symbol, Dim]) -> None:
        """Bring all that is stored up to date with a new rule; what changes is learned anew."""
        self.shifted.clear()
        stores: tuple[tuple[Sign, dict[Dim, None]], ...]
        stores = (("at_least_zero", self.bounds), ("not_zero", self.not_zero))
        for sign, store in stores:
            for dim in [d for d in store if self.resolve(d) is not d]:
                del store[dim]
                self.queue.append((sign, dim))
        self._reopen(step.keys())
        self._replace_names()

    def _reopen(self, symbols: Set[Symbol]) -> None:
        """Learn the equations with these symbols anew, and what was made of them."""
        for dim in [d for d in self.equations if not d.symbols.isdisjoint(symbols)]:
            del self.equations[dim]
            self.queue.append(("zero", dim))
        for lead, value in [*self.products.items()]:
            rule = Dim({lead: 1}) - value
            if not rule.symbols.isdisjoint(symbols):
                del self.products[lead]
                self.queue.append(("zero", rule))

    def _replace_names(self) -> None:
        """Two divisions that have become the same one have the same value."""
        for key, (q, r) in [*self.divisions.items()]:
            a, b = self.resolve(key[0]), self.resolve(key[1])
            if (a is key[0] and b is key[1]) or self.divisions.pop(key, None) is None:
                continue
            again = self.divide(a, b)
            if again is None:
                continue
            self.queue.append(("zero", again[0] - q))
            self.queue.append(("zero", again[1] - r))
        for name, value in [*self.unspecified.items()]:
            a, b = self.resolve(name[1]), self.resolve(name[2])
            if a is name[1] and b is name[2]:
                continue
            del self.unspecified[name]
            same = self.unspecified.setdefault((name[0], a, b), value)
            if same is not value:
                self.queue.append(("zero", same - value))
        self.choices = [
            Choice(c.kind, tuple(self.resolve(arg) for arg in c.args), self.resolve(c.result))
            for c in self.choices
        ]

    # -- canonical forms ----------------------------------------------------------------------

    def canonical(self, dim: Dim) -> Dim:
        """`dim` as a polynomial over symbols; equal dimensions mostly get equal polynomials."""

        def value(atom: Atom) -> Dim | None:
            if isinstance(atom, Symbol):
                return None
            known = self.atoms.get(atom)
            if known is None:
                known = self.atoms[atom] = self._atom(atom)
            return known

        return self.resolve(dim.replace_atoms(value))

    def _atom(self, op: Op) -> Dim:
        args = [self.canonical(arg) for arg in op.args]
        args = [self.resolve(arg) for arg in args]
        if op.kind == "min" or op.kind == "max":
            return self._chosen(op.kind, args)
        result = self.divide(args[0], args[1])
        if result is not None:
            return result[0] if op.kind == "floordiv" else result[1]
        key = (op.kind, args[0], args[1])
        if key not in self.unspecified:
            self.unspecified[key] = self.unknown("u", signed=True)
        return self.unspecified[key]

    def divide(self, a: Dim, b: Dim) -> tuple[Dim, Dim] | None:
        """Quotient and remainder; `None` unless `b >= 1` is known."""
        if not self.at_least_zero(b - 1):
            return None
        quotient, rest = polynomial.divide(a.terms, b.terms)
        small, divisor, shared = polynomial.cancel(rest, b.terms)
        q, r = self._small_division(Dim(small), Dim(divisor))
        return self.resolve(Dim(quotient) + q), self.resolve(r * Dim(shared))

    def _small_division(self, a: Dim, b: Dim) -> tuple[Dim, Dim]:
        """`divide` after whole multiples of `b >= 1` and common factors are taken out."""
        if b == ONE:
            return a, ZERO
        if self.at_least_zero(a):
            below = self.at_least_zero(b - 1 - a)
            return (ZERO, a) if below else self._named_division(a, b)
        if self.at_least_zero(a + b):
            q, r = self._named_division(a + b, b)
            return q - 1, r
        return self._named_division(a, b, signed=True)

    def _named_division(self, a: Dim, b: Dim, *, signed: bool = False) -> tuple[Dim, Dim]:
        """Names for `a / b` and `a % b`, with `a = b * q + r`, `0 <= r <= b - 1` learned."""
        known = self.divisions.get((a, b))
        if known is not None:
            return known
        q = self.unknown("q", signed=signed)
        r = self.unknown("r")
        self.divisions[a, b] = (q, r)
        self.learn("at_least_zero", b - 1 - r)  # first: the other one is taken apart by it
        self.learn("zero", a - b * q - r)
        return q, r

    def _chosen(self, kind: Kind, args: list[Dim]) -> Dim:
        kept: list[Dim] = []
        for arg in args:
            if not any(self._beats(kind, other, arg) for other in kept):
                kept = [other for other in kept if not self._beats(kind, arg, other)] + [arg]
        if len(kept) == 1:
            return kept[0]
        for choice in self.choices:
            if choice.kind == kind and set(choice.args) == set(kept):
                return choice.result
        known = [self.at_least_zero(arg) for arg in kept]
        positive = any(known) if kind == "max" else all(known)
        result = self.unknown("m", signed=not positive)
        self.choices.append(Choice(kind, tuple(kept), result))
        for arg in kept:
            self.learn("at_least_zero", arg - result if kind == "min" else result - arg)
        return self.resolve(result)

    def _beats(self, kind: Kind, a: Dim, b: Dim) -> bool:
        return self.at_least_zero(b - a if kind == "min" else a - b)
