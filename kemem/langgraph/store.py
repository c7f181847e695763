"""`KeMemStore`: LangGraph's interface of long-term memory; items are kept in KeMem."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, TypeVar

from langgraph.store.base import BaseStore, Op, Result, TTLConfig

from kemem._async.sender import AsyncSender
from kemem._sync.sender import Sender
from kemem.calls import Call, Operation
from kemem.langgraph.runner import Runner
from kemem.langgraph.store_calls import USER, Fields, run_batch, sweep

Found = TypeVar("Found")

WHOLE = ("$",)
USER_NAMESPACES = (("users", USER),)


class KeMemStore(BaseStore):
    """A store for LangGraph and LangChain agents, and for LangMem, that keeps items in KeMem.

    It does what LangGraph's own stores promise. The service makes the vectors, deletes what has
    expired, and shows nothing that has. Requests are repeated as the client repeats others; an
    item is never put twice.

    With `Memory`, the async methods run in threads, and threads may share the store. With
    `AsyncMemory`, they run in its event loop, and the sync methods may be called from other
    threads while the loop runs.

    Args:
        client: a `Memory` or `AsyncMemory`; it is not closed.
        user_id: work in a store of this user's own, as `client.acting_as(user_id)` does.
        index: `{"fields": [...]}`, the paths that are searched by meaning unless a put names
            others; by default the whole item. False: nothing is, and `query` is ignored.
        ttl: `default_ttl` in minutes and `refresh_on_read`, as LangGraph's stores take them.
        user_namespaces: which namespaces name a user, such as `("memories", "{user_id}")`. What
            is put there belongs to that user, and goes with an erasure and an export.

    Raises:
        ValueError: an argument is not valid.

    """

    supports_ttl = True

    def __init__(
        self,
        client: Sender | AsyncSender,
        *,
        user_id: str | None = None,
        index: Mapping[str, Any] | Literal[False] | None = None,
        ttl: TTLConfig | None = None,
        user_namespaces: Sequence[Sequence[str]] = USER_NAMESPACES,
    ) -> None:
        super().__init__()
        acting = client if user_id is None else client.acting_as(user_id)
        self._runner = Runner("KeMemStore", acting)
        self._fields = _fields(index)
        self._user_namespaces = _patterns(user_namespaces)
        self.ttl_config = ttl

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Results of operations, in their order, from one request.

        Reads see the store as it was before the batch; of several puts of one item the last
        counts. What is put is one transaction. More than 1,000 operations or 1.5 MB are sent in
        several requests, what reads first.

        Raises:
            InvalidNamespaceError, ValueError, TypeError: an operation is not valid, or a value is
                no JSON; nothing was sent.
            KememError: the service did not answer, or refused.

        """
        return self._runner.run(run_batch(ops, self._fields, self._user_namespaces))

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Like `batch`."""
        return await self._runner.run_async(run_batch(ops, self._fields, self._user_namespaces))

    def sweep_ttl(self) -> int:
        """Delete what has expired, and say how many items; the service does so once an hour."""
        return self._runner.run(_one(sweep()))

    async def asweep_ttl(self) -> int:
        """Like `sweep_ttl`."""
        return await self._runner.run_async(_one(sweep()))


def _one(call: Call[Found]) -> Operation[Found]:
    found: Found = yield call
    return found


def _fields(index: Mapping[str, Any] | Literal[False] | None) -> Fields:
    """Raises ValueError."""
    if index is False:
        return False
    given = dict(index or {})
    fields = given.pop("fields", None)
    if given:
        raise ValueError(
            f"index takes `fields` alone, not {', '.join(sorted(given))}: the service makes the "
            "vectors, with the embedder that it is configured with."
        )
    if isinstance(fields, str):
        fields = [fields]
    return WHOLE if fields is None else tuple(fields)


def _patterns(patterns: Sequence[Sequence[str]]) -> tuple[tuple[str, ...], ...]:
    """Raises ValueError."""
    for pattern in patterns:
        if isinstance(pattern, str) or list(pattern).count(USER) != 1:
            raise ValueError(f"a pattern of user_namespaces has the label {USER!r} once")
    return tuple(map(tuple, patterns))
