"""A fixed amount of work for a question, counted in small equal steps, never in time."""

from __future__ import annotations


class OutOfWork(Exception):
    """The question takes more work than it is given; its answer is unknown."""


class Budget:
    """What may be spent on one question, shared by everything that works on it.

    A step is about one number or term handled, roughly a microsecond.
    """

    __slots__ = ("left",)

    def __init__(self, steps: int) -> None:
        self.left = steps

    def spend(self, steps: int) -> None:
        self.left -= steps
        if self.left < 0:
            raise OutOfWork
