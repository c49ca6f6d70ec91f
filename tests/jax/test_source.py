"""The generated text and what runs from it: steps, whole programs, state, loops, gradients."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import linnet.jax
from linnet.ir.evaluate import Evaluator

from .support import checked, difference, oracle, to_numpy

TOY = """
module toy
use std.nn.cache::{write_at}
use std.nn.embedding::{Embedding}
use std.nn.linear::{Linear}
use std.nn.norm::{RmsNorm}

pub block Layer<H: Dim, Batch: Dim, MaxSeq: Dim, T: Float>
where
    H > 0
{
    sub norm: RmsNorm<H, T>
    sub linear: Linear<H, H, T>
    state cache: Tensor[Batch, 1, MaxSeq, H; T]

    pub fn forward<B: Dim, S: Dim>(x: Tensor[B, S, H; T]) -> Tensor[B, S, H; T] {
        return x + linear.forward(norm.forward(x))
    }

    pub fn step(x: Tensor[Batch, 1, H; T], pos: i32) -> Tensor[Batch, 1, H; T] {
        cache = write_at(cache, reshape(x, [Batch, 1, 1, H]), pos)
        let total[b, h] = sum[s] cache[b, 0, s, h]
        return forward(x) + reshape(total, [Batch, 1, H])
    }
}

pub block Model<V: Dim, H: Dim, Layers: Dim, Batch: Dim = 2, MaxSeq: Dim = 8, T: Float = f32>
where
    H > 0
{
    sub embedding: Embedding<V, H, T>
    sub layers: [Layer<H, Batch, MaxSeq, T>; Layers]
    sub head: Linear<H, V, T>

    pub entry forward<B: Dim, S: Dim>(tokens: Tensor[B, S; i32]) -> Tensor[B, S, V; T] {
        var x = embedding.forward(tokens)
        static for layer in layers {
            x = layer.forward(x)
        }
        return head.forward(x)
    }

    pub entry step(token: Tensor[Batch, 1; i32], pos: i32) -> Tensor[Batch, 1, V; T] {
        var x = embedding.forward(token)
        static for layer in layers {
            x = layer.step(x, pos)
        }
        return head.forward(x)
    }

    pub entry many<N: Dim>(token: Tensor[Batch, 1; i32], pos: i32) -> Tensor[N, Batch, 1, V; T] {
        let all = for i in 0..N {
            yield step(token, pos + cast<i32>(i))
        }
        return all
    }
}
"""
GENERICS = {"V": 11, "H": 4, "Layers": 3}
TOKENS = np.array([[1], [5]], np.int32)


def weights(seed: int = 0, **generics: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    shapes = {"embedding.weight": (11, 4), "head.weight": (11, 4)}
    for k in range({**GENERICS, **generics}["Layers"]):
        shapes[f"layers.{k}.norm.weight"] = (4,)
        shapes[f"layers.{k}.linear.weight"] = (4, 4)
    return {path: rng.normal(size=shape).astype(np.float32) for path, shape in shapes.items()}


def model(folder: Path, load: str = "load_source_model", **options: Any) -> Any:
    program = checked(folder, TOY)
    return getattr(linnet.jax, load)(
        program, generics=GENERICS, root="Model", weights=weights(), **options
    )


def reference(folder: Path) -> Evaluator:
    return Evaluator(checked(folder, TOY), root="program::Model", generics={**GENERICS, "Batch": 2,
                     "MaxSeq": 8, "T": "f32"}, params=weights())  # fmt: skip


# --- text -----------------------------------------------------------------------------------------


def test_a_step_calls_one_compiled_layer(tmp_path: Path) -> None:
    text = model(tmp_path).generated_source("step")
    assert '@partial(jax.jit, donate_argnames=("state",))\ndef Layer_step(' in text
    assert "    for i, layer in enumerate(block.layers):\n        x, part = Layer_step(" in text
    assert "lax.scan" not in text
    assert re.search(r"# program::Layer.step  .*program.linnet:\d+\n@partial", text)


def test_a_loop_around_layers_scans_stacked_blocks(tmp_path: Path) -> None:
    text = model(tmp_path).generated_source("many")
    assert "# stacked along a first axis: Model.layers\n" in text
    assert text.count("lax.scan(") == 2


def test_depth_changes_numbers_only(tmp_path: Path) -> None:
    program = checked(tmp_path, TOY)
    few, many = (
        linnet.jax.generate_source(program, "Model", "step", {**GENERICS, "Layers": n})
        for n in (2, 36)
    )
    assert few == many


HOSTILE = """
module m
// `'''"\\ + \u2028 __import__('os')
pub struct jnp { def: Tensor[2; f32], _x: i32 }
pub block forward {
    param lambda: Tensor[2; f32]
    param lambda_: Tensor[2; f32]
    param __class__: Tensor[2; f32]
    param count: Tensor[2; f32]
    state put: Tensor[2; f32]
    pub entry lax(int: Tensor[2; f32], partial: Tensor[2; f32], print: i32) -> Tensor[2; f32] {
        let jax = int + lambda * partial
        let x = jnp(def = jax, _x = print)
        put = x.def + lambda_
        return put + cast<f32>(x._x) + __class__ + count
    }
}
"""


def test_names_of_python_and_jax_are_only_names(tmp_path: Path) -> None:
    arrays = {n: np.full(2, k, np.float32) for k, n in enumerate(
        ("lambda", "lambda_", "__class__", "count"), 2)}  # fmt: skip
    made = linnet.jax.load_source_model(checked(tmp_path, HOSTILE), weights=arrays)
    got = to_numpy(made(np.ones(2, np.float32), np.ones(2, np.float32), 3))
    assert got.tolist() == [1 + 2 + 3 + 3 + 4 + 5] * 2
    assert to_numpy(made.state("put")).tolist() == [6.0, 6.0]


@pytest.mark.parametrize("name", ["class", "None", "class_", "_part", "print"])
@pytest.mark.parametrize("load", ["load_source_model", "load_model"])
def test_blocks_are_called_anything(tmp_path: Path, name: str, load: str) -> None:
    text = f"""
module program
pub block {name} {{
    param w: Tensor[2; f32]
    state s: Tensor[2; f32]
    pub fn go(x: f32) -> Tensor[2; f32] {{
        s = s + w * x
        return s
    }}
}}
pub block root {{
    sub parts: [{name}; 2]
    pub entry go(x: f32) -> Tensor[2; f32] {{
        var y = fill<f32>([2], 0.0)
        static for part in parts {{ y = y + part.go(x) }}
        return y
    }}
}}
"""
    held = {f"parts.{k}.w": np.full(2, k + 1, np.float32) for k in range(2)}
    made = getattr(linnet.jax, load)(checked(tmp_path, text), root="root", weights=held)
    assert [made(2.0).tolist() for _ in range(2)] == [[6.0, 6.0], [12.0, 12.0]]


# --- running --------------------------------------------------------------------------------------


@pytest.mark.parametrize("load", ["load_source_model", "load_model"])
@pytest.mark.parametrize("numerics", ["exact", "fast"])
def test_state_and_loops_agree_with_the_oracle(tmp_path: Path, load: str, numerics: str) -> None:
    made, want = model(tmp_path, load, numerics=numerics), reference(tmp_path)
    for pos in (0, 1, 7):
        got = to_numpy(made.run_entry("step", [TOKENS, pos]))
        assert difference(got, want.run("program::Model.step", [TOKENS, pos])) < 1e-5
    got = to_numpy(made.run_entry("many", [TOKENS, 2], generics={"N": 3}))
    assert difference(got, want.run("program::Model.many", [TOKENS, 2], {"N": 3})) < 1e-5
    for k in range(3):
        path = f"layers.{k}.cache"
        assert difference(to_numpy(made.state(path)), want.state[path]) < 1e-5
    made.reset_state()
    assert not np.any(to_numpy(made.state("layers.0.cache")))


@pytest.mark.parametrize("load", ["load_source_model", "load_model"])
def test_states_of_16_bits_are_seen_as_what_they_are(tmp_path: Path, load: str) -> None:
    """However they are held between calls; a call takes over their memory."""
    generics = {**GENERICS, "T": "bf16"}
    made = getattr(linnet.jax, load)(
        checked(tmp_path, TOY), generics=generics, root="Model", weights=weights(), cast_dtype=True
    )
    want = Evaluator(checked(tmp_path, TOY), root="program::Model",
                     generics={**generics, "Batch": 2, "MaxSeq": 8},
                     params={p: np.asarray(a) for p, a in made.parameters.items()})  # fmt: skip
    for pos in (0, 3):
        before = [a.unsafe_buffer_pointer() for a in jax.tree.leaves(made._state)]
        got = to_numpy(made.run_entry("step", [TOKENS, pos]))
        assert [a.unsafe_buffer_pointer() for a in jax.tree.leaves(made._state)] == before
        assert difference(got, want.run("program::Model.step", [TOKENS, pos])) < 3e-2
    made.run_entry("many", [TOKENS, 4], generics={"N": 2})
    want.run("program::Model.many", [TOKENS, 4], {"N": 2})
    state = to_numpy(made.state("layers.1.cache"))
    assert state.dtype == jnp.bfloat16
    assert difference(state, want.state["layers.1.cache"]) < 3e-2


def test_a_pure_entry_leaves_its_state_alone(tmp_path: Path) -> None:
    step = model(tmp_path, "load_source", entry="step")
    first, state = step(TOKENS, 0)
    again, _ = step(TOKENS, 0, state=step.initial_state())
    assert np.array_equal(first, again)
    before = {path: np.asarray(array) for path, array in state.items()}
    step(TOKENS, 1, state=state)
    assert all(np.array_equal(before[path], state[path]) for path in state)
    assert set(step.parameters) == set(weights())


def test_settings_of_jax_stay_the_users(tmp_path: Path) -> None:
    assert not jax.config.jax_enable_x64
    made = model(tmp_path)
    assert made(np.array([[1, 2]], np.int32)).dtype == jnp.float32
    assert not jax.config.jax_enable_x64 and jnp.arange(2).dtype == jnp.int32


def test_inputs_of_every_kind_and_their_errors(tmp_path: Path) -> None:
    made = model(tmp_path)
    want = to_numpy(made([[1, 2]]))
    assert np.array_equal(to_numpy(made(jnp.array([[1, 2]], jnp.int32))), want)
    with pytest.raises(linnet.jax.InputError, match=r"convert it with tokens.astype\('int32'\)"):
        made(np.array([[1, 2]]))
    with pytest.raises(linnet.jax.InputError, match="11"):
        made(np.array([[1, 11]], np.int32))
    with pytest.raises(linnet.jax.InputError, match="takes 2 inputs"):
        made.run_entry("step", [TOKENS])


def test_a_failed_call_says_so_until_the_state_is_reset(tmp_path: Path) -> None:
    made = model(tmp_path)
    made.run_entry("step", [TOKENS, 0])
    program = made._program
    call, program.call = program.call, lambda *_: 1 / 0  # type: ignore[method-assign]
    with pytest.raises(ZeroDivisionError):
        made.run_entry("step", [TOKENS, 1])
    program.call = call  # type: ignore[method-assign]
    with pytest.raises(linnet.jax.StateError, match="reset_state"):
        made.run_entry("step", [TOKENS, 1])
    made.reset_state()
    made.run_entry("step", [TOKENS, 0])


def test_a_call_that_raises_late_is_no_step_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the state was taken over, while the result is made one of the caller's."""
    made = model(tmp_path)
    made.run_entry("step", [TOKENS, 0])

    def stopped(*_: Any) -> None:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(type(made), "_apart", stopped)
        with pytest.raises(MemoryError):
            made.run_entry("step", [TOKENS, 1])
    with pytest.raises(linnet.jax.StateError, match="`step` failed part-way"):
        made.run_entry("step", [TOKENS, 1])


def test_a_state_that_a_failed_call_took_over(tmp_path: Path) -> None:
    made = model(tmp_path)
    program = made._program
    call = program.call

    def late(*args: Any) -> Any:
        call(*args)
        raise ZeroDivisionError

    program.call = late  # type: ignore[method-assign]
    with pytest.raises(ZeroDivisionError):
        made.run_entry("step", [TOKENS, 0])
    with pytest.raises(linnet.jax.StateError, match=r"`step` failed part-way.*reset_state"):
        made.state(made.state_paths()[0])
    program.call = call  # type: ignore[method-assign]
    made.reset_state()
    assert not to_numpy(made.state(made.state_paths()[0])).any()


# --- gradients ------------------------------------------------------------------------------------


def test_gradients_go_through_stacked_layers(tmp_path: Path) -> None:
    f = model(tmp_path, "load_source", entry="forward")
    params = {path: jnp.asarray(a) for path, a in weights().items()}
    tokens = np.array([[1, 2, 3]], np.int32)
    loss = lambda p: jnp.sum(jnp.square(f.apply(p, tokens)))  # noqa: E731
    slopes = jax.grad(loss)(params)
    assert set(slopes) == set(params)
    for path in ("layers.1.linear.weight", "layers.2.norm.weight", "embedding.weight"):
        at = (1,) * params[path].ndim
        step = jnp.zeros_like(params[path]).at[at].set(1e-2)
        above, below = params[path] + step, params[path] - step
        rise = loss({**params, path: above}) - loss({**params, path: below})
        assert abs(float(rise) / 2e-2 - float(slopes[path][at])) < 2e-2 * max(
            1.0, abs(float(slopes[path][at]))
        ), path


CLAUSE = """
module m
op tripled<N: Dim>(x: Tensor[N; f32], ids: Tensor[N; i32], w: Tensor[N; f32], s: f32)
    -> Tensor[N; f32] {
    return x * w * s
} grad(y, dy) {
    return (dy * 3.0 + cast<f32>(ids), dy * y * s)
}
pub entry run<N: Dim>(x: Tensor[N; f32], ids: Tensor[N; i32], w: Tensor[N; f32], s: f32)
    -> Tensor[N; f32] {
    return tripled(x, ids, w, s)
}
"""


def test_a_grad_clause_is_the_gradient(tmp_path: Path) -> None:
    f = linnet.jax.load_source(checked(tmp_path, CLAUSE), entry="run")
    x, w = (jnp.array(a, jnp.float32) for a in ([1, 2], [3, 4]))
    ids = jnp.array([10, 20], jnp.int32)
    to_x, to_w = jax.grad(lambda x, w: jnp.sum(f(x, ids, w, 2.0)), argnums=(0, 1))(x, w)
    assert to_x.tolist() == [13.0, 23.0]
    assert to_w.tolist() == [2 * 6.0, 2 * 16.0]


# --- control flow ---------------------------------------------------------------------------------

CONTROL = """
module m
pub enum Kind { Add, Twice, Half }
pub struct Pair { left: Tensor[2; f32], kind: Kind }
pub entry run(x: Tensor[2; f32], n: i32, kind: Kind, extra: Tensor[2; f32]? = none)
    -> (Tensor[2; f32], i32, Kind, Tensor[2; f32]?) {
    let y = match kind {
        Kind.Add => x + 1.0,
        Kind.Twice => x * 2.0,
        Kind.Half => x * 0.5,
    }
    let z = match extra {
        some(e) => y + e,
        none => y,
    }
    var total = z
    var count: i32 = 0
    for i in 2..n {
        total = total + cast<f32>(i)
        count = count + 1
    }
    while count < 3 {
        count = count + 2
    }
    let pair = Pair(left = total, kind = if n > 3 { Kind.Half } else { kind })
    let found = if n > 3 { some(pair.left) } else { extra }
    return (pair.left, count, pair.kind, found)
}
"""


@pytest.mark.parametrize("numerics", ["exact", "fast"])
def test_branches_enums_and_optionals(tmp_path: Path, numerics: str) -> None:
    program = checked(tmp_path, CONTROL)
    made = linnet.jax.load_source_model(program, numerics=numerics)
    x = np.array([1.0, -3.0], np.float32)
    for n in (0, 3, 6):
        for kind in ("Add", "Twice", "Half"):
            for extra in (None, x * 2):
                want = oracle(program, "run", [x, n, kind, extra])
                got = made.run_entry("run", [x, n, kind, extra])
                assert np.array_equal(got[0], want[0]) and int(got[1]) == int(want[1])
                assert ("Add", "Twice", "Half")[got[2]] == want[2]
                assert (got[3] is None) == (want[3] is None)
                assert want[3] is None or np.array_equal(got[3], want[3])
