"""`if`, `match`, loops of all kinds, and what they carry."""

from __future__ import annotations

import numpy as np

from .programs import Runner, floats, same


def test_if_and_else_if(run: Runner) -> None:
    text = """
    pub entry main<N: Dim>(x: Tensor[N; f32], k: i32) -> (Tensor[N; f32], i32) {
        let y = if k == 0 { x } else if k < 0 { -x } else { x * cast<f32>(k) }
        return (y, if k > 2 && k != 5 { k } else { 0 })
    }
    """
    x = floats(3)
    for k in (0, -4, 3, 5):
        y = x if k == 0 else -x if k < 0 else x * np.float32(k)
        same(run(text, [x, k]), (y, k if k > 2 and k != 5 else 0))


def test_if_on_a_value_of_a_tensor(run: Runner) -> None:
    text = """
    pub entry main<N: Dim>(x: Tensor[N; f32]) -> Tensor[N; f32]
    where N > 0 {
        let s = sum[n] x[n]
        return if s > 0.0 { x / s } else { fill<f32>([N], 0.0) }
    }
    """
    same(run(text, [np.array([1, 3], np.float32)]), np.array([0.25, 0.75], np.float32))
    same(run(text, [np.array([1, -3], np.float32)]), np.zeros(2, np.float32))


def test_while_counts_collatz(run: Runner) -> None:
    text = """
    pub entry main(start: i64) -> (i64, i64) {
        var n = start
        var steps: i64 = 0
        var top = start
        while n != 1 {
            n = if n % 2 == 0 { n / 2 } else { 3 * n + 1 }
            top = max(top, n)
            steps = steps + 1
        }
        return (steps, top)
    }
    """
    same(run(text, [27]), (111, 9232))
    same(run(text, [1]), (0, 1))


def test_while_on_tensors(run: Runner) -> None:
    """Newton's square roots until all are close enough."""
    text = """
    pub entry main<N: Dim>(x: Tensor[N; f64]) -> (Tensor[N; f64], i32) {
        var guess = fill<f64>([N], 1.0)
        var rounds: i32 = 0
        var open = true
        while open && rounds < 100 {
            guess = (guess + x / guess) / 2
            let gap = abs(guess * guess - x)
            open = any[n] gap[n] > 1e-9
            rounds = rounds + 1
        }
        return (guess, rounds)
    }
    """
    roots, rounds = run(text, [np.array([2.0, 9.0, 100.0])])
    np.testing.assert_allclose(roots, [2**0.5, 3, 10], rtol=1e-9)
    assert 4 < rounds < 15


def test_for_with_yield_stacks(run: Runner) -> None:
    text = """
    pub entry main<N: Dim, D: Dim>(x: Tensor[N, D; f32], decay: f32)
        -> (Tensor[N, D; f32], Tensor[D; f32], Tensor[N; i64]) {
        var held = fill<f32>([D], 0.0)
        let all_held = for n in 0..N {
            held = held * decay + x[n, :]
            yield held
        }
        let squares = for k in 0..N {
            yield k * k
        }
        return (all_held, held, squares)
    }
    """
    for n in (0, 1, 5):
        x, held, rows = floats(n, 3), np.zeros(3, np.float32), []
        for row in x:
            held = held * np.float32(0.5) + row
            rows.append(held)
        stacked = np.array(rows, np.float32).reshape(n, 3)
        same(run(text, [x, 0.5]), (stacked, held, np.arange(n) ** 2))


def test_for_with_run_time_bounds(run: Runner) -> None:
    text = """
    pub entry main(first: i32, last: i32) -> (i32, i64) {
        var total: i32 = 0
        var rounds: i64 = 0
        for k in first..last {
            total = total + k
            for j in 0..k {
                rounds = rounds + cast<i64>(j)
            }
        }
        return (total, rounds)
    }
    """
    same(run(text, [2, 6]), (14, sum(sum(range(k)) for k in range(2, 6))))
    same(run(text, [6, 2]), (0, 0))


def test_static_for_over_entry_generics(run: Runner) -> None:
    text = """
    pub entry main<Steps: Dim, N: Dim>(x: Tensor[N; f32]) -> (Tensor[N; f32], i64) {
        var y = x
        var last: i64 = -1
        static for i in 1..Steps + 1 {
            y = y * cast<f32>(i) + 1
            last = i
        }
        return (y, last)
    }
    """
    x = floats(3)
    for steps in (0, 1, 4):
        y = x
        for i in range(1, steps + 1):
            y = y * np.float32(i) + 1
        same(run(text, [x], sizes={"Steps": steps}), (y, steps or -1), 1e-5)


def test_fibonacci_with_swapped_vars(run: Runner) -> None:
    """Both are carried: neither is overwritten before the other has read it."""
    text = """
    pub entry main(n: i32) -> (i64, i64) {
        var a: i64 = 0
        var b: i64 = 1
        for _ in 0..n {
            let next = a + b
            a = b
            b = next
        }
        return (a, b)
    }
    """
    same(run(text, [10]), (55, 89))


def test_optionals_and_match(run: Runner) -> None:
    text = """
    fn or_zero<N: Dim>(x: Tensor[N; f32]?) -> Tensor[N; f32] {
        return match x { some(v) => v, none => fill<f32>([N], 0.0) }
    }
    pub entry main<N: Dim>(x: Tensor[N; f32], y: Tensor[N; f32]? = none, k: i32? = none)
        -> (Tensor[N; f32], i32) {
        let extra = if (match k { some(v) => v, none => 0 }) > 3 { some(x) } else { y }
        return (x + or_zero(y) + or_zero(extra), match k { some(v) => v + 1, none => -1 })
    }
    """
    x, y = floats(3), floats(3, seed=1)
    same(run(text, [x]), (x, -1))
    same(run(text, [x, y]), (x + y + y, -1))
    same(run(text, [x, None, 9]), (x + x, 10))
    same(run(text, [x, y, 9]), (x + y + x, 10))


def test_enums(run: Runner) -> None:
    text = """
    pub enum Kind { Sum, Mean, Top }
    fn next(k: Kind) -> Kind {
        return match k { Kind.Sum => Kind.Mean, Kind.Mean => Kind.Top, _ => Kind.Sum }
    }
    pub entry main<N: Dim>(x: Tensor[N; f32], how: Kind) -> (f32, f32)
    where N > 0 {
        let s = sum[n] x[n]
        let t = max[n] x[n]
        let now = match how { Kind.Sum => s, Kind.Mean => s / cast<f32>(N), Kind.Top => t }
        let later = match next(how) { Kind.Sum => s, Kind.Mean => s / cast<f32>(N), Kind.Top => t }
        return (now, later)
    }
    """
    x = floats(4)
    s, m, t = float(x.sum()), float(x.mean()), float(x.max())
    same(run(text, [x, "Sum"]), (s, m), 1e-5)
    same(run(text, [x, "Mean"]), (m, t), 1e-5)
    same(run(text, [x, 2]), (t, s), 1e-5)


def test_structs_and_tuples_in_and_out(run: Runner) -> None:
    text = """
    struct Stats<N: Dim> { mean: Tensor[N; f32], spread: (Tensor[N; f32], f32) }
    type Two<N: Dim> = (Tensor[N; f32], Tensor[N; f32])
    fn centred<M: Dim, N: Dim>(x: Tensor[M, N; f32], s: Stats<N>) -> Tensor[M, N; f32] {
        return x - s.mean
    }
    pub entry main<M: Dim, N: Dim>(x: Tensor[M, N; f32], pair: Two<N>)
        -> (Stats<N>, (Tensor[M, N; f32], Tensor[N; f32])?) {
        let total[n] = sum[m] x[m, n]
        let (a, b) = pair
        let s = Stats(mean = total / cast<f32>(M), spread = (a - b, 0.5))
        let (low, half) = s.spread
        return (s, some((centred(x, s), low * half)))
    }
    """
    x, a, b = floats(3, 2), floats(2, seed=1), floats(2, seed=2)
    mean = x.sum(0) / np.float32(3)
    want = ((mean, (a - b, 0.5)), (x - mean, (a - b) * np.float32(0.5)))
    same(run(text, [x, (a, b)]), want)


def test_struct_fields_of_a_result_have_names(run: Runner) -> None:
    text = """
    struct Inner { class: i32, lambda: f32 }
    struct Outer { inner: Inner, count: i32 }
    pub entry main(given: Inner, n: i32) -> Outer {
        return Outer(inner = Inner(class = given.class + n, lambda = given.lambda * 2), count = n)
    }
    """
    model = run.load(text)
    made = model.run_entry("main", [{"class": 3, "lambda": 0.25}, 4])
    assert made.count == 4
    assert tuple(float(v) for v in made[0]) == (7.0, 0.5)


def test_tuples_and_structs_carried_by_loops(run: Runner) -> None:
    text = """
    struct Pair<N: Dim> { a: Tensor[N; f32], n: i32 }
    pub entry main<N: Dim>(x: Tensor[N; f32])
        -> (Tensor[N; f32], i32, Tensor[3, N; f32], Tensor[3; i32]) {
        var p = Pair(a = x, n = 0)
        var t = (x, x * 2)
        let (rows, counts) = for k in 0..3 {
            let (u, v) = t
            t = (v, u)
            p = Pair(a = p.a + u, n = p.n + 1)
            yield (p.a, p.n)
        }
        return (p.a, p.n, rows, counts)
    }
    """
    x = floats(2)
    rows = np.stack([x + x, x + x + x * 2, x + x + x * 2 + x])
    same(run(text, [x]), (rows[2], 3, rows, np.array([1, 2, 3], np.int32)))
