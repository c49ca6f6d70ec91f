"""What entries take and refuse: JAX's own arrays, states, parameters, what is traced."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from traceback import format_exception
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import linnet.jax
from linnet.ir import Program
from linnet.ir.evaluate import Evaluator
from linnet.jax import InputError
from linnet.jax.runtime import load as loading

from .support import checked, difference, oracle

TEXT = """
module program
use std.nn.attention::{attention}
pub enum Mode { Add, Sub }
pub op cond<N: Dim>(x: Tensor[N; f32], b: Tensor[N; f32]? = none) -> Tensor[N; f32] {
    return match b { some(c) => x * c, none => x }
} grad(y, dy) {
    return (
        match b { some(c) => dy * c * 7.0, none => dy * 3.0 },
        match b { some(c) => some(dy * x), none => none }
    )
}
pub entry look<N: Dim, M: Dim>(x: Tensor[N; f32], i: Tensor[M; i64]) -> Tensor[M; f32] {
    let y[m] = x[i[m]]
    return y
}
pub entry one(x: Tensor[4; f32], i: i32) -> f32 { return x[i] }
pub entry wide<N: Dim>(i: Tensor[N; i64], k: u64, x: Tensor[N; f64]? = none)
    -> (Tensor[N; i64], u64)
{
    return (i + 4294967296, k)
}
pub entry square<N: Dim, T: Float>(x: Tensor[N; T]) -> Tensor[N; T] { return x * x }
pub entry packed<*S: Shape>(x: Tensor[*S; f32]) -> Tensor[*S; f32] { return x + x }
pub entry both<N: Dim>(x: Tensor[N; f32], b: Tensor[N; f32]) -> f32 {
    let y = cond(x, some(b)) + cond(x)
    return sum[n] y[n]
}
pub op fixed<N: Dim>(k: Tensor[N; i32], b: Tensor[N; f32]? = none) -> Tensor[N; f32] {
    return match b { some(c) => c, none => fill<f32>([N], 1.0) }
} grad(y, dy) {
    return match b { some(c) => some(dy * 5.0), none => none }
}
pub entry single<N: Dim>(k: Tensor[N; i32], x: Tensor[N; f32]) -> f32 {
    let y = fixed(k, some(x)) + fixed(k)
    return sum[n] y[n]
}
pub entry maybe(b: bool, x: f32) -> f32? {
    let r: f32? = if b { some(x * x) } else { none }
    return r
}
pub entry flipped(m: Mode, x: f32) -> Mode {
    return if x > 0.0 { match m { Mode.Add => Mode.Sub, Mode.Sub => Mode.Add } } else { m }
}
pub entry powers<N: Dim>(x: Tensor[N; f32], k: i32) -> f32 {
    var y = x
    for i in 0..k { y = y * x }
    var i: i32 = 0
    while i < k {
        y = y + x
        i = i + 1
    }
    return sum[n] y[n]
}
pub entry divided<N: Dim>(a: Tensor[N; i32], b: Tensor[N; i32]) -> Tensor[N; i32] {
    return a / b
}
pub entry attend<B: Dim, H: Dim, Q: Dim, K: Dim, D: Dim>(
    q: Tensor[B, H, Q, D; f32], k: Tensor[B, H, K, D; f32], v: Tensor[B, H, K, D; f32]
) -> Tensor[B, H, Q, D; f32]
where
    K > 0
{
    return attention(q, k, v, 0.5)
}
pub block Model {
    param w: Tensor[2; f32]
    state s: Tensor[2; f32]
    state count: Tensor[1; i32]
    pub entry step(x: Tensor[2; f32]) -> Tensor[2; f32] {
        s = s + x * w
        return s * s
    }
    pub entry peek() -> Tensor[2; f32] { return s + w }
    pub entry counted(z: i32) -> Tensor[1; i32] {
        count = count + 6 / z
        return count
    }
}
pub block Peaks {
    state calls: Tensor[1; i32]
    pub entry peaks<N: Dim, K: Dim>(x: Tensor[N, K; f32]) -> Tensor[N; f32] {
        calls = calls + 1
        let y[n] = max[k] x[n, k]
        return y
    }
    pub entry least<N: Dim, K: Dim, M: Dim>(x: Tensor[N, K, M; i32]) -> Tensor[N; i32] {
        let y[n] = min[k, m] x[n, k, m]
        return y
    }
}
pub block Layer {
    param w: Tensor[2; f32]
    state s: Tensor[2; f32]
    pub fn f(x: Tensor[2; f32]) -> Tensor[2; f32] {
        s = s + x
        return x * w + s * 0.001
    }
}
pub block Deep<N: Dim> {
    sub layers: [Layer; N]
    pub fn all(x: Tensor[2; f32]) -> Tensor[2; f32] {
        var y = x
        static for layer in layers { y = layer.f(y) }
        return y
    }
    pub entry f(x: Tensor[2; f32]) -> Tensor[2; f32] { return all(x) }
    pub entry twice(x: Tensor[2; f32], n: i32) -> Tensor[2; f32] {
        var y = x
        for i in 0..n { y = all(y) }
        return y
    }
}
"""
LOADERS = [linnet.jax.load_source, linnet.jax.load]
W = {"w": np.array([1.0, 2.0], np.float32)}
X = np.array([1.0, 2.0, 3.0], np.float32)
Loader = Callable[..., Any]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Program:
    return checked(tmp_path_factory.mktemp("calls"), TEXT)


def entry(program: Program, name: str, load: Loader = linnet.jax.load_source) -> Any:
    return load(program, entry=name)


def stateful(program: Program, name: str, load: Loader = linnet.jax.load) -> Any:
    return load(program, root="Model", entry=name, weights=W)


def long(*numbers: int) -> jax.Array:
    with jax.enable_x64(True):
        return jnp.array(numbers, jnp.int64)


# --- JAX's arrays ---------------------------------------------------------------------------------


@pytest.mark.parametrize("i", [long(0, 7), long(-1, 0), jnp.array([0, 4])], ids=str)
def test_jax_arrays_are_looked_at_as_others_are(program: Program, i: jax.Array) -> None:
    with pytest.raises(InputError, match=r"(max|min)\(`i`\) is "):
        entry(program, "look")(X, i)


def test_a_jax_number_is_looked_at(program: Program) -> None:
    one = entry(program, "one")
    x = np.arange(4, dtype=np.float32)
    assert one(x, jnp.int32(3)) == 3
    with pytest.raises(InputError, match="`i` is 4, past the last position"):
        one(x, jnp.int32(4))
    assert jax.jit(one)(x, 2) == 2  # traced, and so not known


def test_short_jax_integers_are_taken_for_long_ones(program: Program) -> None:
    wide = entry(program, "wide")
    want = np.arange(3, dtype=np.int64) + 4294967296
    ids, k = jnp.arange(3), jnp.uint32(2**32 - 1)
    assert ids.dtype == jnp.int32
    for got in (wide(ids, k), wide(np.arange(3), np.uint64(2**32 - 1)), jax.jit(wide)(ids, k)):
        assert got[0].dtype == jnp.int64
        assert np.array_equal(got[0], want)
        assert int(got[1]) == 2**32 - 1
    with pytest.raises(InputError, match=r"i64, but got int8; convert it with i.astype\('int32'\)"):
        wide(ids.astype(jnp.int8), k)
    with pytest.raises(InputError, match="`x` is f64, but got float32"):
        wide(ids, k, jnp.ones(3))


def test_an_array_that_is_gone_is_named(program: Program) -> None:
    gone = jnp.ones(3)
    gone.delete()
    with pytest.raises(InputError, match="`x` is an array whose memory a call took over"):
        entry(program, "square")(gone)


@pytest.mark.parametrize("load", LOADERS)
def test_entries_with_dtypes_and_shapes_of_their_own(program: Program, load: Loader) -> None:
    square = entry(program, "square", load)
    assert np.array_equal(square(X), X * X)
    assert square(X.astype(np.float64)).dtype == jnp.float64
    assert np.array_equal(jax.jit(square)(X), X * X)
    assert entry(program, "packed", load)(X.reshape(1, 3)).shape == (1, 3)
    with pytest.raises(InputError, match="generics come as a dict of values by name, not a list"):
        square(X, generics=[1])


def test_enum_numbers_are_of_any_integer_type(program: Program) -> None:
    flipped = entry(program, "flipped")
    for case in (1, np.int64(1), np.array(1, np.int8), "Sub"):
        assert flipped(case, 1.0) == 0
    for other in (True, np.bool_(True), 1.0, 2, -1):
        with pytest.raises(InputError, match="a case of `Mode`: one of Add, Sub"):
            flipped(other, 1.0)


def test_results_while_jax_traces(program: Program) -> None:
    """An enum is its number; whether an optional is there cannot be told."""
    flipped, maybe = entry(program, "flipped"), entry(program, "maybe")
    assert int(jax.jit(lambda x: flipped("Add", x))(2.0)) == 1
    assert maybe(True, 3.0) == 9.0
    assert maybe(False, 3.0) is None
    with pytest.raises(InputError, match="not known while JAX traces"):
        jax.jit(lambda x: maybe(True, x))(3.0)


# --- integers divided by zero ---------------------------------------------------------------------


def test_a_divisor_of_zero_is_refused_where_inputs_show_it(program: Program) -> None:
    divided = entry(program, "divided")
    a = np.array([7, -7], np.int32)
    assert divided(a, np.array([2, 2], np.int32)).tolist() == [3, -3]
    for b in (np.array([1, 0], np.int32), jnp.array([-1, 0]), [0, 5]):
        with pytest.raises(InputError, match="is 0, and an integer is divided by it"):
            divided(a, b)
    assert divided(np.zeros(0, np.int32), np.zeros(0, np.int32)).shape == (0,)


def test_a_refused_division_leaves_the_state(program: Program) -> None:
    made = linnet.jax.load_model(program, root="Model", weights=W)
    assert made.run_entry("counted", [2]).tolist() == [3]
    with pytest.raises(InputError, match="`z` is 0"):
        made.run_entry("counted", [0])
    assert made.run_entry("counted", [3]).tolist() == [5]


# --- states and parameters ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ({"s": np.ones((3, 2), np.float32)}, r"the state `s` is float32\[2\], not float32\[3, 2\]"),
        ({"s": np.float32(1)}, r"not float32\[\]"),
        ({"s": np.ones(2)}, r"not float64\[2\]"),
        ({"s": np.ones(2, np.int32)}, r"not int32\[2\]"),
        ({"s": [1.0, 1.0]}, "not a list: give an array"),
        ({"s": None}, "not a NoneType"),
        ({"q": np.ones(2, np.float32)}, "there is no state `q`"),
        ("s", "state is a dict of arrays by path, not a str"),
        ({}, "the state lacks `s`, `count`: give every state, or leave out state="),
        ({"s": np.ones(2, np.float32)}, "the state lacks `count`"),
    ],
)
def test_a_state_is_what_the_program_declares(program: Program, state: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        stateful(program, "step")(np.ones(2, np.float32), state=state)


def test_states_of_a_reading_entry_can_be_given_again(program: Program) -> None:
    peek = stateful(program, "peek")
    _, after = peek()
    assert after.keys() == peek.initial_state().keys()
    assert np.array_equal(peek(state=after)[0], W["w"])


def test_a_state_that_was_taken_over_is_named(program: Program) -> None:
    step = stateful(program, "step")
    x = np.ones(2, np.float32)
    first = step.initial_state()
    _, after = step(x, state=first)
    with pytest.raises(InputError, match="the state `s` was taken over by an earlier call: give"):
        step(x, state=first)
    assert np.array_equal(step(x, state=after)[0], (2 * W["w"]) ** 2)


def test_a_call_takes_over_nothing_but_the_state(program: Program) -> None:
    """Neither an input, a parameter nor a caller's NumPy array, which a state may also be."""
    step = stateful(program, "step")
    x = jnp.ones(2)
    count = np.zeros(1, np.int32)
    got, _ = step(x, state={"s": x, "count": count})
    assert np.array_equal(got, (1 + W["w"]) ** 2)
    assert x.tolist() == [1, 1]
    step(x, state={"s": step.parameters["w"], "count": count})
    assert step.parameters["w"].tolist() == [1, 2]
    space = np.zeros(64, np.float32)
    at = -space.ctypes.data % 64 // 4
    mine = space[at : at + 2]  # aligned as XLA's own memory is
    _, after = step(x, state={"s": mine, "count": count})
    step(x, state=after)
    assert mine.tolist() == [0, 0]


def test_an_entry_that_only_reads_gives_the_state_back(program: Program) -> None:
    state = {"s": np.ones(2, np.float32), "count": np.zeros(1, np.int32)}
    got, after = stateful(program, "peek")(state=state)
    assert np.array_equal(got, 1 + W["w"])
    assert after == state


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ([1.0, 1.0], r"the parameter `w` is float32\[2\], not a list: give an array"),
        (None, "not a NoneType"),
        (np.ones(2), r"not float64\[2\]"),
    ],
)
def test_parameters_are_arrays(program: Program, value: Any, said: str) -> None:
    made = linnet.jax.load_source_model(program, root="Model", weights=W)
    with pytest.raises(InputError, match=said):
        made.parameters = {"w": value}
    with pytest.raises(InputError, match="parameters are a dict of arrays by path"):
        made.parameters = [value]  # type: ignore[assignment]
    assert np.array_equal(made.run_entry("peek"), W["w"])


@pytest.mark.parametrize("load", [linnet.jax.load_source_model, linnet.jax.load_model])
def test_parameters_of_a_model_are_read_and_assigned(program: Program, load: Loader) -> None:
    made = load(program, root="Model", entry="step", weights=W)
    with pytest.raises(TypeError, match=r"model\.parameters = "):
        made.parameters["w"] = jnp.zeros(2)
    slopes = jax.grad(lambda p: made.apply(p, X[:2])[0].sum())(made.parameters)
    assert np.array_equal(slopes["w"], 2 * W["w"] * X[:2] ** 2)
    made.parameters = jax.tree.map(lambda a, b: a + b, made.parameters, slopes)
    assert np.array_equal(made.parameters["w"], W["w"] + slopes["w"])
    made.parameters = {**made.parameters, "w": jnp.ones(2)}
    assert np.array_equal(made(X[:2]), X[:2] ** 2)


@pytest.mark.parametrize("load", [linnet.jax.load_source_model, linnet.jax.load_model])
def test_a_model_says_what_its_entries_take(program: Program, load: Loader) -> None:
    made = load(program, entry="look")
    assert made.signature("look") == "look<N: Dim, M: Dim>(x: Tensor[N; f32], i: Tensor[M; i64])"
    with pytest.raises(InputError, match="there is no entry `nope`"):
        made.signature("nope")


@pytest.mark.parametrize("load", [linnet.jax.load_source_model, linnet.jax.load_model])
@pytest.mark.parametrize("numerics", ["exact", "fast"])
def test_the_largest_of_no_elements(program: Program, load: Loader, numerics: str) -> None:
    made = load(program, root="Peaks", numerics=numerics)
    line = 1 + TEXT[: TEXT.index("max[k] x")].count("\n")
    said = rf"^peaks<.*: the max of no elements has no value at .*program.linnet:{line}$"
    with pytest.raises(InputError, match=said):
        made.run_entry("peaks", [np.ones((2, 0), np.float32)])
    assert made.run_entry("peaks", [np.ones((0, 0), np.float32)]).shape == (0,)
    assert made.run_entry("peaks", [np.array([[1, 5], [7, 2]], np.float32)]).tolist() == [5, 7]
    assert made.state("calls").tolist() == [2]  # what was refused changed nothing
    small = made.run_entry("least", [np.zeros((0, 3, 0), np.int32)])
    assert (small.shape, small.dtype) == ((0,), np.int32)


def test_a_name_of_any_type_is_looked_for(program: Program) -> None:
    made = linnet.jax.load_source_model(program, root="Model", weights=W)
    names: list[tuple[Any, str]] = [
        (["step"], r"\['step'\]"),
        (None, "None"),
        ("a\x1b", r"a\\u\{1b\}"),
    ]
    for name, shown in names:
        with pytest.raises(InputError, match=f"there is no entry `{shown}`; the model's entries"):
            made.run_entry(name, [])


# --- gradients ------------------------------------------------------------------------------------


@pytest.mark.parametrize("load", LOADERS)
def test_a_gradient_of_optionals_known_while_compiling(program: Program, load: Loader) -> None:
    both = entry(program, "both", load)
    of_x, of_b = jax.grad(lambda x, b: both.apply({}, x, b), argnums=(0, 1))(X, X + 1)
    assert np.array_equal(of_x, (X + 1) * 7 + 3)
    assert np.array_equal(of_b, X)
    single = entry(program, "single", load)
    assert jax.grad(lambda x: single.apply({}, np.ones(3, np.int32), x))(X).tolist() == [5, 5, 5]


def test_what_has_no_reverse_derivative_names_its_line(program: Program) -> None:
    powers = entry(program, "powers")
    run = lambda x: powers.apply({}, x, 2)  # noqa: E731
    value, slope = jax.jvp(run, (jnp.asarray(X),), (jnp.ones(3),))
    assert value == np.sum(X**3 + 2 * X)
    assert slope == np.sum(3 * X**2 + 2)
    line = 1 + TEXT[: TEXT.index("while i < k")].count("\n")
    with pytest.raises(ValueError, match="Reverse-mode") as failed:
        jax.grad(run)(X)
    told = "".join(format_exception(failed.value))
    assert re.search(rf"no reverse gradient: `while` at .*program.linnet:{line}\b", told)


def test_forward_mode_says_which_gradient_is_in_its_way(program: Program) -> None:
    both = entry(program, "both")
    with pytest.raises(TypeError, match="forward-mode") as failed:
        jax.jvp(lambda x: both.apply({}, x, X), (jnp.asarray(X),), (jnp.ones(3),))
    assert "the `grad` clause of `cond` is a reverse gradient alone" in failed.value.__notes__[0]


# --- many layers, no heads, no JAX ----------------------------------------------------------------


@pytest.mark.parametrize(("many", "once"), [(95, False), (96, True), (300, True)])
def test_many_layers_are_compiled_once(program: Program, many: int, once: bool) -> None:
    """A program that repeated them would take XLA too long."""
    made = linnet.jax.load_model(program, root="Deep", generics={"N": many})
    assert ("donate_argnames" in made.generated_source("f")) is once
    assert ("lax.scan(" in made.generated_source("twice")) is once


def test_layers_compiled_once_give_the_same(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    many, x = 4, np.array([1.0, -2.0], np.float32)
    monkeypatch.setattr(loading, "LONG", many)
    rng = np.random.default_rng(0)
    weights = {f"layers.{k}.w": rng.uniform(0.9, 1.1, 2).astype(np.float32) for k in range(many)}
    options = {"root": "Deep", "generics": {"N": many}, "weights": weights}
    made = linnet.jax.load_model(program, **options)
    model = Evaluator(program, root="program::Deep", generics={"N": many}, params=weights)
    step = linnet.jax.load(program, entry="f", **options)
    wants = [model.run("program::Deep.f", [x]) for _ in range(2)]
    first, state = step(x)
    for want, got in zip(wants, (first, step(x, state=state)[0]), strict=True):
        assert difference(np.asarray(got), want) < 1e-4
        assert difference(np.asarray(made.run_entry("f", [x])), want) < 1e-4
    want = model.run("program::Deep.twice", [x, 2])
    assert difference(np.asarray(made.run_entry("twice", [x, 2])), want) < 1e-4


def test_attention_without_heads(program: Program) -> None:
    attend = entry(program, "attend")
    q, k = np.ones((1, 0, 2, 4), np.float32), np.ones((1, 0, 3, 4), np.float32)
    want = oracle(program, "attend", [q, k, k])
    assert attend(q, k, k).shape == want.shape == (1, 0, 2, 4)


def test_a_missing_package_says_what_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [n for n in sys.modules if n.split(".")[:2] == ["linnet", "jax"]]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'linnet\[jax\]'") as failed:
        __import__("linnet.jax")
    assert failed.value.name == "jax"
