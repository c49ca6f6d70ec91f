"""The diagnostics of cards, fetching and text generation."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NoReturn

from linnet.diagnostics.diagnostic import CompileError, Diagnostic
from linnet.diagnostics.span import Span
from linnet.weights.errors import quoted

NEST_CODES: dict[str, str] = {
    "E5020": "a `nest.toml` that is missing or broken",
    "E5021": "no such model card",
    "E5022": "weights or a card could not be fetched",
    "E5023": "fetched data is not what the card says it is",
    "E5024": "a tokenizer is missing, damaged or of an unknown kind",
    "E5025": "a chat template failed or asked for too much",
    "E5026": "a prompt or a sampling setting that cannot be used",
    "E5027": "a backend that does not exist or is not installed",
    "E5028": "a model folder that lacks something it must have",
}


class NestError(CompileError):
    """A card, a fetch or a generation request that cannot go on; `.diagnostics` says why."""


GIVE_WEIGHTS = "give weights that are already here: --weights, in Python weights="


def problem(
    code: str,
    message: str,
    *,
    span: Span | None = None,
    notes: tuple[str, ...] = (),
    help: str | None = None,
) -> Diagnostic:
    """One diagnostic of this package; the code has to stand in `NEST_CODES`."""
    if code not in NEST_CODES:
        raise KeyError(code)
    return Diagnostic(code, message, span, notes=notes, help=help)


def fail(
    code: str, message: str, *, notes: tuple[str, ...] = (), help: str | None = None
) -> NoReturn:
    """Raise one problem as a `NestError`."""
    raise NestError((problem(code, message, notes=notes, help=help),))


def fail_all(problems: Iterable[Diagnostic]) -> None:
    """Raise all problems together; return when there are none."""
    found = tuple(problems)
    if found:
        raise NestError(found)


__all__ = ["GIVE_WEIGHTS", "NEST_CODES", "NestError", "fail", "fail_all", "problem", "quoted"]
