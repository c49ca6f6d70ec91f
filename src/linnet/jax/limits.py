"""What JAX has no exact way to do, and what it does otherwise without a word."""

from __future__ import annotations

from linnet.backends.limits import Difference, Limit

LIMITS: tuple[Limit, ...] = (
    Limit(
        "while",
        frozenset(),
        "a `while` whose condition changes state",
        "the condition of `lax.while_loop` gives nothing but its answer",
        "change the state in the loop's body",
    ),
)

DIFFERENCES: tuple[Difference, ...] = (
    Difference(
        "`/` and `%` of integers by 0 (an error of the program) are refused before a call where "
        "inputs on the host decide the divisor",
        "elsewhere XLA's code cannot raise: `x / 0` is -1, or the largest value of an unsigned "
        "dtype, and `x % 0` is `x`",
    ),
    Difference(
        "an index outside its axis is refused before a call where inputs on the host decide it",
        "elsewhere the code takes an element that is there, and raises nothing",
    ),
    Difference(
        "subnormal numbers of f32, bf16 and f64 are zeros to XLA's code for CPUs",
        "operands and results nearer to 0 than the least normal number (1.2e-38 in f32) count as 0",
    ),
)
