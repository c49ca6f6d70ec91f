"""Checks of a call's values that its types don't say: ids, positions, slots and pages in range."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from linnet.backends.inputs import Checked
from linnet.backends.signature import Signature, frozen
from linnet.passes import Binding
from linnet.passes.bounds import Requirement, bound_requirements, violations
from linnet.types import GenericArg


class Bounds:
    """What the entries of a bound model require of their integers, worked out when first asked."""

    def __init__(self, binding: Binding | Callable[[], Binding]) -> None:
        self._binding = binding  # or how to get it, which is done when it is needed
        # By the entry's name and its own dtypes and shapes.
        self.known: dict[tuple[str, Any], tuple[Requirement, ...]] = {}

    def of(self, signature: Signature, forms: Mapping[str, GenericArg]) -> tuple[Requirement, ...]:
        """What one entry requires, for the dtypes and shapes that it is called with."""
        key = (signature.name, frozen(forms))
        if key not in self.known:
            binding = self._binding if isinstance(self._binding, Binding) else self._binding()
            self.known[key] = bound_requirements(binding, signature.name, forms)
        return self.known[key]

    def check(self, signature: Signature, checked: Checked) -> None:
        """Raises `InputError` where a value on the host lies outside the axis it indexes."""
        known = self.of(signature, signature.forms(checked.generics))
        if not known:
            return
        found = violations(known, checked.host, signature.sizes(checked.generics))
        if found:
            raise signature.fail("; ".join(found))
