"""The checker: syntax trees to typed, generic IR, reporting every problem on the way."""

from linnet.elaborate.check import check

__all__ = ["check"]
