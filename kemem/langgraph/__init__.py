"""`KeMemSaver`, a checkpointer for agents of LangGraph and LangChain.

Needs the extra: `pip install "kemem-client[langgraph]"`.
"""

from kemem.langgraph.saver import KeMemSaver

__all__ = ["KeMemSaver"]
