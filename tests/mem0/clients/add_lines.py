"""Run by mem0ai's own interpreter: gives every line of a file to add(), prints what is there.

Arguments: the file, and a folder for qdrant.
"""

import hashlib
import json
import os
import sys
from pathlib import Path

os.environ["OPENAI_API_KEY"] = "unused"

from mem0 import Memory

file, folder = sys.argv[1:]


class Embedder:
    """The same text has the same vector."""

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        return [byte / 255 for byte in hashlib.sha256(text.encode()).digest()[:8]]


memory = Memory.from_config(
    {
        "vector_store": {
            "provider": "qdrant",
            "config": {"path": f"{folder}/qdrant", "embedding_model_dims": 8, "on_disk": True},
        },
        "history_db_path": f"{folder}/history.db",
    }
)
memory.embedding_model = Embedder()
for line in Path(file).read_text(encoding="utf-8").splitlines():
    memory.add(**json.loads(line))
print(json.dumps(memory.get_all(filters={"user_id": "ana"}, top_k=100)["results"]))
