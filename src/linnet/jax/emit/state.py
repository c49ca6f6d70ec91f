"""The function's state in generated code: one variable, `state`, that every write binds anew."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from linnet.ir import Ref, Region
from linnet.ir.walk import walk
from linnet.jax.emit.names import STATE, field

if TYPE_CHECKING:
    from linnet.jax.emit.writer import Writer

# A step from the function's state down: a member, an element's number, or a loop's counter.
Step = str | int


@dataclass(frozen=True, slots=True)
class Element:
    """What a loop over a sub array calls its element: the block, its declaration, and the way to
    its state, in which `counter` is the loop's number."""

    block: str
    kind: str
    state: tuple[Step, ...]
    counter: str


def state_path(w: Writer, ref: Ref) -> tuple[Step, ...]:
    start = () if ref.root is None else w.subs[ref.root].state
    steps: list[Step] = [f"<{step}>" if stacked else step for step, stacked in w.steps(ref)]
    return (*start, *steps)


def state_text(w: Writer, path: Sequence[Step]) -> str:
    text = STATE
    for step in path:
        if not _is_index(step):
            text += f".{field(str(step))}"
        elif str(step).startswith("<"):
            text = f"{w.module.helper('element')}({text}, {str(step).strip('<>')})"
        else:
            text += f"[{str(step).strip('[]')}]"
    return text


def _is_index(step: Step) -> bool:
    """Whether the step numbers an element: of a tuple (`[i]`), of stacked blocks (`<i>`)."""
    return isinstance(step, int) or step.startswith(("[", "<"))


def state_names(w: Writer, ref: Ref) -> frozenset[str]:
    """The variables in the text of a state."""
    counter = "" if ref.root is None else w.subs[ref.root].counter
    return frozenset((STATE, counter)) if counter else frozenset((STATE,))


def store(w: Writer, path: Sequence[Step], text: str) -> None:
    """Rebinds `state` with `text` at `path`."""
    if not path:
        if text != STATE:
            w.line(f"{STATE} = {text}")
        return
    if len(path) == 1:
        w.line(f"{STATE} = {STATE}._replace({field(str(path[0]))}={text})")
        return
    steps = ", ".join(str(s).strip("[]<>") if _is_index(s) else repr(field(str(s))) for s in path)
    w.line(f"{STATE} = {w.module.helper('put')}({STATE}, {text}, {steps})")


def writes_state(w: Writer, region: Region) -> bool:
    """Whether running the region may change the function's state."""
    for op in walk(region):
        if op.kind == "state_write":
            return True
        if op.kind == "call" and w.module.callee(op.attrs["callee"]).writes:
            return True
    return False


def touches_element(w: Writer, body: Region, var: object) -> bool:
    """Whether a loop over a sub array reads or writes state of its element `var`."""
    for op in walk(body):
        if op.kind in ("state_read", "state_write") and op.attrs["ref"].root == var:
            return True
        if op.kind == "for_subs" and op.attrs["array"].root == var:
            return True
        receiver = op.attrs.get("receiver")
        own = receiver is not None and receiver.root == var
        if own and w.module.callee(op.attrs["callee"]).takes_state:
            return True
    return False
