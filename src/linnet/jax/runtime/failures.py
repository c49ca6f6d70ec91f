"""What generated code gives up while JAX traces it, in the words of the program."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from linnet.backends.errors import InputError, RunError
from linnet.backends.failures import place_of
from linnet.backends.signature import Signature


@contextmanager
def refusals(entry: Signature) -> Iterator[None]:
    """What code refuses for its shapes is an input that does not fit; a division by zero of numbers
    that are known before anything runs is the call's failure."""
    try:
        yield
    except ValueError as error:
        if "of no elements has no value" not in str(error) or isinstance(error, InputError):
            raise
        raise entry.fail(str(error)) from None
    except ZeroDivisionError as error:
        where = place_of(error.__traceback__, "jax")
        if not where or type(error) is not ZeroDivisionError:
            raise
        raise RunError(f"`{entry.name}`: integer division by zero in {where}") from None
