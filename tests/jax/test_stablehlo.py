"""StableHLO modules: what they are told, and that they are whole."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import linnet.jax
from linnet.passes import BindError

from .support import checked
from .test_source import GENERICS, TOKENS, TOY, model


def test_arguments_and_results_say_what_they_are(tmp_path: Path) -> None:
    text = linnet.jax.stablehlo(checked(tmp_path, TOY), "Model", "step", GENERICS)
    assert 'tensor<4x4xf32> {linnet.parameter = "layers.2.linear.weight"}' in text
    assert text.count('linnet.state = "layers.1.cache"') == 2
    assert '{linnet.input = "pos"}' in text and "stablehlo." in text


def test_sizes_have_to_be_known(tmp_path: Path) -> None:
    with pytest.raises(BindError, match="needs the generic `B`"):
        linnet.jax.stablehlo(checked(tmp_path, TOY), "Model", "forward", GENERICS)


def test_load_takes_over_the_state(tmp_path: Path) -> None:
    step = model(tmp_path, "load", entry="step")
    want, _ = model(tmp_path, "load_source", entry="step")(TOKENS, 0)
    first, state = step(TOKENS, 0)
    assert np.allclose(first, want, atol=1e-5)
    step(TOKENS, 1, state=state)
    assert state["layers.0.cache"].is_deleted()
