"""The rules behind `linnet.ir.shapes`, one file a group of rows."""

from linnet.ir.shape_rules import aggregates, control, elementwise, layout
from linnet.ir.shape_rules.case import RULES, Case, Equal, same_type, structural

__all__ = [
    "RULES",
    "Case",
    "Equal",
    "aggregates",
    "control",
    "elementwise",
    "layout",
    "same_type",
    "structural",
]
