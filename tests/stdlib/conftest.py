"""The library, checked once and run by the NumPy evaluator: bodies as they are, no backend."""

from __future__ import annotations

from typing import Any

import pytest

from linnet.api import Checked, check_paths
from linnet.ir.evaluate import Evaluator

from .std_support import STDLIB, Run


@pytest.fixture(scope="session")
def checked() -> Checked:
    return check_paths([STDLIB])


@pytest.fixture(scope="session")
def evaluator(checked: Checked) -> Evaluator:
    assert not checked.has_errors, [str(each) for each in checked.diagnostics]
    return Evaluator(checked.program)


@pytest.fixture(scope="session")
def run(evaluator: Evaluator) -> Run:
    """`run("std.nn.linear::linear", x, weight, Generic=...)`."""

    def call(name: str, *inputs: Any, **generics: Any) -> Any:
        return evaluator.run(name, inputs, generics)

    return call
