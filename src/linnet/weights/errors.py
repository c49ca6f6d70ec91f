"""The diagnostics of bindings and weights: codes, and the error that carries them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NoReturn

from linnet.diagnostics.diagnostic import CompileError, Diagnostic
from linnet.diagnostics.span import Span

WEIGHT_CODES: dict[str, str] = {
    "E5002": "a weight file or folder cannot be opened, or is of a kind that is not read",
    "E5003": "a weight file is truncated, damaged or hostile",
    "E5004": "a shard index is wrong, or leads out of its folder",
    "E5005": "a bindings file is malformed",
    "E5006": "a binding names a parameter the model does not have",
    "E5007": "a parameter has no binding",
    "E5008": "the checkpoint lacks a tensor that a parameter is bound to",
    "E5009": "a tensor's shape differs from its parameter's",
    "E5010": "a tensor's dtype differs from its parameter's",
    "E5011": "a GGUF file's architecture or quantisation is not supported",
    "E5012": "a pickle file was refused",
    "E5013": "a value of a weights mapping is no array",
}


class WeightError(CompileError):
    """Bindings or weights that do not fit; `.diagnostics` lists every problem found."""


def problem(
    code: str,
    message: str,
    *,
    span: Span | None = None,
    notes: tuple[str, ...] = (),
    help: str | None = None,
) -> Diagnostic:
    """One diagnostic of this package; the code has to stand in `WEIGHT_CODES`."""
    if code not in WEIGHT_CODES:
        raise KeyError(code)
    return Diagnostic(code, message, span, notes=notes, help=help)


def fail(
    code: str, message: str, *, notes: tuple[str, ...] = (), help: str | None = None
) -> NoReturn:
    """Raise one problem as a `WeightError`."""
    raise WeightError((problem(code, message, notes=notes, help=help),))


def fail_all(problems: Iterable[Diagnostic]) -> None:
    """Raise all problems together; return when there are none."""
    found = tuple(problems)
    if found:
        raise WeightError(found)


FETCH_AGAIN = "delete the file and download it again"


def quoted(name: str, limit: int = 120) -> str:
    """A stranger's text for a message: on one line, of bounded length, unprintables escaped."""
    text = name if len(name) <= limit else name[: limit - 3] + "..."
    return "`" + "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text) + "`"
