"""`KeMemMemoryBlock`, a memory block for `Memory` of LlamaIndex.

Needs the extra: `pip install "kemem-client[llama-index]"`.
"""

from kemem.llama_index.block import KeMemMemoryBlock

__all__ = ["KeMemMemoryBlock"]
