"""The card of the whole model, without weights: what `nest show` prints of it, and its bindings."""

from __future__ import annotations

from pathlib import Path

from linnet import nest
from linnet.nest.describe import check_folder
from linnet.weights import read_bindings

FOLDER = Path(__file__).parent.parent.parent / "models" / "qwen3.6-35b-a3b"


def test_show() -> None:
    """Sizes as published: 35 B parameters, of which a token goes through 3 B."""
    text = nest.show(FOLDER)
    lines = [line.strip() for line in text.splitlines()]
    assert "34,660,610,688 parameters in 693 tensors, 69.3 GB" in lines
    assert "active: 2,946,431,616 parameters a token, 8.5% of them" in lines
    parts = {" ".join(line.split()[:-3]): line.split()[-3:] for line in lines if " GB" in line}
    assert parts["groups[10] experts"] == ["32,212,254,720", "64.4", "GB"]
    # Ten caches of two heads of 256 in bf16, twice; thirty states of 32 x 128 x 128 in f32.
    assert lines[-1].startswith("a row: 5.4 GB, 20.5 kB for each of 262,144 positions")
    assert lines[-1].endswith("64.4 MB beside them")


def test_bindings() -> None:
    result = check_folder(FOLDER)
    assert result.ok, result.diagnostics
    assert result.manifest is not None
    bound, problems = read_bindings(FOLDER / "bindings.json").expand(result.manifest)
    assert not problems
    assert len(bound) == 693
    assert len(set(bound.values())) == 693
    assert bound["groups.9.full.self_attn.q_proj.weight"].endswith(
        "layers.39.self_attn.q_proj.weight"
    )
    conv = bound["groups.3.linear.2.linear_attn.conv_weight"]
    assert conv == "model.language_model.layers.14.linear_attn.conv1d.weight"


def test_sums_in_templates() -> None:
    """A placeholder in a tensor's name adds up numbers and the path's placeholders alone."""
    from linnet.weights.bindings import _filled, _line_problem

    assert _filled("l.{4g+i+1}.{g}{3}", {"g": "2", "i": "3"}) == "l.12.23"
    assert _line_problem("a.{g}.b.{i}", "x.{4g+i}") is None
    for wrong in ("{4g+j}", "{g*4}", "{+g}", "{g+}", "{}", "{-g}", "{00g}", "{g+g+g+g+g+g+g+g+g}"):
        assert _line_problem("a.{g}.b.{i}", f"x.{wrong}") is not None
