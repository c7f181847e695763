"""KeMem for agents of LangGraph and LangChain: `KeMemSaver`, `KeMemStore` and `KeMemMiddleware`.

They need the extra `pip install "kemem-client[langgraph]"`, `KeMemMiddleware` instead
`pip install "kemem-client[langchain]"`.
"""

from typing import TYPE_CHECKING, Any

from kemem.langgraph.saver import KeMemSaver
from kemem.langgraph.store import KeMemStore
from kemem.langgraph.threads import session_id_of
from kemem.owners import KEY_USER, PER_RUN

if TYPE_CHECKING:
    from kemem.langgraph.middleware import KeMemMiddleware

__all__ = [
    "KEY_USER",
    "PER_RUN",
    "KeMemMiddleware",
    "KeMemSaver",
    "KeMemStore",
    "session_id_of",
]


def __getattr__(name: str) -> Any:
    """Load what needs LangChain when it is asked for."""
    if name == "KeMemMiddleware":
        from kemem.langgraph.middleware import KeMemMiddleware

        return KeMemMiddleware
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
