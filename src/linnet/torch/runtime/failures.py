"""What PyTorch gives up in the middle of a call, in the words of the program."""

from __future__ import annotations

import re

from linnet.backends.errors import RunError
from linnet.backends.failures import place_of

_MEMORY = re.compile("out of memory|allocate memory|enough memory")
_BOUNDS = re.compile(
    r"index -?\d+ is out of bounds for dimension \d+ with size (\d+)"
    r"|INDICES element is out of DATA bounds, id=-?\d+ axis_dim=(\d+)"
    r"|.*index out of bounds: 0 <= \w+ < (?:(\d+)L?|\w+)$",
    re.DOTALL,
)
_PROBLEMS = (RuntimeError, IndexError, ZeroDivisionError)
_WORDS = {
    "ZeroDivisionError": "integer division by zero",
    "integer division or modulo by zero": "integer division by zero",
    "index out of range in self": "an index lies outside its axis",
}


def refusal(entry: str, error: BaseException) -> RunError | None:
    """The error for a value that the program has no meaning for; None for every other failure,
    such as too little memory."""
    if type(error) not in _PROBLEMS:  # a class of its own is another's, or a signal's handler's
        return None
    said = str(error)
    if _MEMORY.search(said):
        return None
    where = place_of(error.__traceback__, "torch")
    return RunError(f"`{entry}`: {_reason(said)}{f' in {where}' if where else ''}")


def _reason(said: str) -> str:
    """PyTorch's message; a negative index has become the extent by then (see `not_negative`)."""
    found = _BOUNDS.match(said)
    if found is not None:
        extent = found[1] or found[2] or found[3]
        return f"an index lies outside {f'an axis of extent {extent}' if extent else 'its axis'}"
    return _WORDS.get(said, said)
