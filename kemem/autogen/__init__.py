"""`KeMemMemory`, a memory for agents of AutoGen.

Needs the extra: `pip install "kemem-client[autogen]"`.
"""

from kemem.autogen.memory import KeMemMemory

__all__ = ["KeMemMemory"]
