"""Run by mem0ai's own interpreter: writes memories into its stores, with an embedder of its own.

Arguments: the address of a database for pgvector, and the file of the history. Prints their ids.
"""

import hashlib
import json
import os
import sys

os.environ["OPENAI_API_KEY"] = "unused"

from mem0 import Memory

dsn, history = sys.argv[1:]


class Embedder:
    """The same text has the same vector."""

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        return [byte / 255 for byte in hashlib.sha256(text.encode()).digest()[:8]]


memory = Memory.from_config(
    {
        "vector_store": {
            "provider": "pgvector",
            "config": {
                "connection_string": dsn,
                "collection_name": "mem0",
                "embedding_model_dims": 8,
                "hnsw": False,
            },
        },
        "history_db_path": history,
    }
)
memory.embedding_model = Embedder()


def add(text: str, **options: object) -> str:
    return memory.add(text, infer=False, **options)["results"][0]["id"]


ids = {
    "tea": add("She drinks green tea.", user_id="ana", metadata={"topic": "tea", "n": 1}),
    "moved": add("She lives in Porto.", user_id="ana", run_id="trip"),
    "agent": add("Answers are short.", agent_id="helper"),
    "dated": add(
        "Sie mag Käse. 她喜欢茶。",
        user_id="ben",
        metadata={"created_at": "2023-05-04T03:02:01+00:00"},
    ),
    "expiring": add("The trial ends soon.", user_id="ben", expiration_date="2031-01-31"),
    "secret": add("My key is sk-proj-" + "Ab3dE5gH" * 6, user_id="ana"),
    "gone": add("She owns a car.", user_id="ana"),
}
memory.update(ids["moved"], "She lives in Lisbon.")
memory.delete(ids["gone"])
print(json.dumps(ids))
