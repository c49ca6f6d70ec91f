"""Checks of a call's values that its types don't say: ids, positions, slots and pages in range."""

from __future__ import annotations

from collections.abc import Callable

from linnet.backends.inputs import Checked
from linnet.backends.signature import Signature
from linnet.dims import Dim, Symbol
from linnet.passes import Binding
from linnet.passes.bounds import Requirement, bound_requirements, violations


class Bounds:
    """What the entries of a bound model require of their integers, worked out when first asked."""

    def __init__(self, binding: Binding | Callable[[], Binding]) -> None:
        self._binding = binding  # or how to get it, which is done when it is needed
        self.known: dict[str, tuple[Requirement, ...]] = {}

    def of(self, signature: Signature) -> tuple[Requirement, ...]:
        """What one entry requires."""
        name = signature.name
        if name not in self.known:
            plain = all(isinstance(g.var, Symbol) for g in signature.generics)
            binding = self._binding if isinstance(self._binding, Binding) else self._binding()
            self.known[name] = bound_requirements(binding, name) if plain else ()
        return self.known[name]

    def check(self, signature: Signature, checked: Checked) -> None:
        """Raises `InputError` where a value on the host lies outside the axis it indexes."""
        known = self.of(signature)
        if not known:
            return
        sizes: dict[str, int] = {}
        for generic in signature.generics:
            size = checked.generics[generic.var]
            if isinstance(size, Dim) and size.constant is not None:
                sizes[generic.name] = size.constant
        found = violations(known, checked.host, sizes)
        if found:
            raise signature.fail("; ".join(found))
