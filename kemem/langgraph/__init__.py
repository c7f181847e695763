"""`KeMemSaver` and `KeMemStore`, for agents of LangGraph and LangChain.

Needs the extra: `pip install "kemem-client[langgraph]"`.
"""

from kemem.langgraph.saver import PER_RUN, KeMemSaver
from kemem.langgraph.store import KeMemStore
from kemem.langgraph.threads import session_id_of

__all__ = ["PER_RUN", "KeMemSaver", "KeMemStore", "session_id_of"]
