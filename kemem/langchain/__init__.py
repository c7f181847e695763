"""KeMem for chains of LangChain: a retriever and the messages of a chat.

Needs the extra: `pip install "kemem-client[langchain]"`.
"""

from kemem.langchain.history import KeMemChatMessageHistory
from kemem.langchain.retriever import KeMemRetriever
from kemem.owners import KEY_USER

__all__ = ["KEY_USER", "KeMemChatMessageHistory", "KeMemRetriever"]
