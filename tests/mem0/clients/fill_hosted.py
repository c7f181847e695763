"""Run by the interpreter of mem0ai 2: fills the hosted API, and prints what it shows of it.

Arguments: the address and the key; then a file whose lines are arguments of `add`, if it shall be
filled with these alone.
"""

import json
import sys
from pathlib import Path

from mem0 import MemoryClient

host, key, *file = sys.argv[1:]
client = MemoryClient(api_key=key, host=host)
LONG = 130


def add(text: str, **options: object) -> str:
    messages = [{"role": "user", "content": text}]
    return client.add(messages, infer=False, **options)["results"][0]["id"]


def fill() -> dict[str, str]:
    ids = {
        "tea": add(
            "She drinks green tea.", user_id="ana", app_id="shop", metadata={"topic": "tea", "n": 1}
        ),
        "dated": add("她住在里斯本。", user_id="张三", run_id="旅行", timestamp=1700000000),
        "expiring": add("The trial ends soon.", user_id="ana", expiration_date="2031-01-31"),
        "shared": add("Answers are short.", agent_id="helper"),
        "gone": add("She owns a car.", user_id="ana"),
    }
    client.update(ids["tea"], text="She drinks black tea.")
    client.update(ids["tea"], metadata={"topic": "tea", "n": 2})
    client.delete(ids["gone"])
    for number in range(LONG):
        words = "".join(chr(0x4E00 + (number * 97 + at * 7) % 20_000) for at in range(1980))
        ids[f"long {number}"] = add(f"第{number}号报告：{words}", user_id="bo")
    return ids


def shown(memory_id: str) -> dict:
    return {"memory": client.get(memory_id), "history": client.history(memory_id)}


if file:
    for line in Path(file[0]).read_text(encoding="utf-8").splitlines():
        client.add(**json.loads(line))
    print(json.dumps([one for page in (1, 2) for one in client.get_all(
        filters={"OR": [{"user_id": "*"}, {"agent_id": "*"}]}, page=page, page_size=100
    )["results"]]))  # fmt: skip
else:
    ids = fill()
    few = {name: shown(one) for name, one in ids.items() if name != "gone" and " " not in name}
    print(json.dumps({"ids": ids, "shown": few}))
