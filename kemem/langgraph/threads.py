"""LangGraph's ids: a thread is a session, whose id cannot be any text, so some are mapped."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import get_checkpoint_id

LONGEST = 255
"""Most characters of a `thread_id` or a `checkpoint_ns`."""

_SESSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@|+=~-]{0,63}")
_PREFIX = "thread~"
_MAPPED = re.compile(_PREFIX + "[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class Address:
    """A namespace of a thread, and optionally one checkpoint in it.

    Args:
        owner: `user_id` and `agent_id` whose thread it must be, where known.

    """

    thread_id: str
    namespace: str
    checkpoint_id: str | None = None
    owner: Mapping[str, str] = field(default_factory=dict)


def session_id_of(thread_id: object) -> str:
    """The id of the session that a LangGraph thread is kept in; no two threads share one.

    It is the `thread_id` itself where that is 1 to 64 ASCII letters, digits or
    `. _ : @ | + = ~ -`, beginning with a letter or a digit. Any other is hashed, ids that a
    session could have too: threads that are stored so are found again.

    Raises:
        ValueError: it is not a text of 1 to 255 characters without NUL.

    """
    text = thread_of(thread_id)
    if _SESSION.fullmatch(text) and not _MAPPED.fullmatch(text):
        return text
    return _PREFIX + hashlib.sha256(text.encode()).hexdigest()[:32]


def thread_of(thread_id: object) -> str:
    """A `thread_id` as text.

    Raises:
        ValueError: it is not a text of 1 to 255 characters without NUL.

    """
    text = _checked("thread_id", str(thread_id))
    if not text:
        raise ValueError("a thread_id has at least 1 character")
    return text


def namespace_of(namespace: object) -> str:
    """A `checkpoint_ns` as text.

    Raises:
        ValueError: it is not a text of at most 255 characters without NUL.

    """
    return _checked("checkpoint_ns", str(namespace or ""))


def _checked(name: str, text: str) -> str:
    if len(text) > LONGEST:
        raise ValueError(f"a {name} has at most {LONGEST} characters, and this has {len(text)}")
    if "\x00" in text:
        raise ValueError(f"a {name} has no NUL")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"a {name} has no half of a surrogate pair") from None
    return text


def address_of(config: RunnableConfig, owner: Mapping[str, str]) -> Address:
    """The thread, namespace and checkpoint that `config` names.

    Raises:
        ValueError: it names no thread, or an id is too long.

    """
    configurable = config.get("configurable", {})
    if "thread_id" not in configurable:
        raise ValueError('the config names no thread: {"configurable": {"thread_id": "…"}}')
    return Address(
        thread_of(configurable["thread_id"]),
        namespace_of(configurable.get("checkpoint_ns")),
        get_checkpoint_id(config),
        owner,
    )


def config_of(thread_id: str, namespace: str, checkpoint_id: str) -> RunnableConfig:
    return {
        "configurable": {
            "thread_id": thread_id,
            "checkpoint_ns": namespace,
            "checkpoint_id": checkpoint_id,
        }
    }
