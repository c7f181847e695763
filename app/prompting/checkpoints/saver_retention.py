"""What a pruned thread must keep so that its newest state can still be read. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

OUTERMOST = ""


@dataclass(frozen=True, slots=True)
class Step:
    """One checkpoint, as far as pruning looks at it.

    Args:
        channels: those whose value is stored with it.
        rebuilt: those whose value is made of the writes since an earlier checkpoint had one.
        outer: the checkpoint of the outermost graph in which this graph was called.

    """

    namespace: str
    checkpoint_id: str
    parent_id: str | None
    channels: frozenset[str]
    rebuilt: frozenset[str]
    outer: str | None


def kept(steps: Sequence[Step]) -> set[tuple[str, str]]:
    """Namespaces and ids of the newest of each namespace, and of what it is rebuilt from.

    A namespace that one call of a subgraph had (LangGraph ends it with the id of the task) goes
    with the checkpoint of the outermost graph that made the call.
    """
    by_id = {(one.namespace, one.checkpoint_id): one for one in steps}
    newest: dict[str, Step] = {}
    for one in steps:
        known = newest.get(one.namespace)
        if known is None or known.checkpoint_id < one.checkpoint_id:
            newest[one.namespace] = one
    keep = _needed(newest[OUTERMOST], by_id) if OUTERMOST in newest else set()
    for namespace, head in newest.items():
        called_in = (OUTERMOST, head.outer or "")
        is_call = ":" in namespace
        if namespace != OUTERMOST and not (
            is_call and called_in in by_id and called_in not in keep
        ):
            keep |= _needed(head, by_id)
    return keep


def _needed(head: Step, by_id: dict[tuple[str, str], Step]) -> set[tuple[str, str]]:
    """The head and its ancestors, back to where every channel has a value."""
    found: set[tuple[str, str]] = set()
    open_channels = set(head.rebuilt)
    step: Step | None = head
    while step is not None and (step.namespace, step.checkpoint_id) not in found:
        found.add((step.namespace, step.checkpoint_id))
        open_channels -= step.channels
        if not open_channels or step.parent_id is None:
            break
        step = by_id.get((step.namespace, step.parent_id))
    return found
