"""What is said in the demo, in English and Chinese, and what is to be remembered of it."""

from dataclasses import dataclass
from typing import Any

FIRST_SESSION: list[list[dict[str, Any]]] = [
    [
        {"role": "user", "content": "Hi! I moved to Munich last month, and I still get lost."},
        {
            "role": "assistant",
            "content": "Welcome to Munich! Shall I look up the way to work for you?",
        },
        {"role": "user", "content": "Yes please. I start at 9 and I go by bike."},
    ],
    [
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [
                {
                    "id": "call_route",
                    "type": "function",
                    "function": {"name": "route", "arguments": '{"by": "bike", "arrive": "09:00"}'},
                }
            ],
        },
        {
            "role": "tool",
            "tool_call_id": "call_route",
            "name": "route",
            "content": '{"minutes": 22, "along": "Isar"}',
        },
        {"role": "assistant", "content": "22 minutes along the Isar. Leave at 8:35."},
    ],
]

SECOND_SESSION: list[list[dict[str, Any]]] = [
    [
        {"role": "user", "content": "我对花生过敏，请推荐一家餐厅。"},
        {"role": "assistant", "content": "好的。您喜欢吃辣吗？"},
        {
            "role": "user",
            "content": "喜欢，我最爱川菜。By the way, I changed jobs: it is Siemens now.",
        },
    ],
    [
        {"role": "assistant", "content": "恭喜！I will remember Siemens. 有一家不用花生的川菜馆。"},
    ],
]


@dataclass(frozen=True, slots=True)
class Save:
    """One statement to remember. `secret`: its text is not printed, here either."""

    content: str
    memory_type: str = "fact"
    secret: bool = False


SAVES = (
    Save("She moved to Munich in October and still learns her way around."),
    Save("She rides her bike to work and has to be there at 9.", "habit"),
    Save("She works as a data engineer at BMW."),
    Save("她对花生过敏。", "constraint"),
    Save("她最喜欢吃川菜，而且喜欢很辣。", "preference"),
    Save("She drinks green tea in the morning.", "preference"),
    # From here on the gate has something to say.
    Save("She drinks  GREEN tea in the morning. ", "preference"),
    Save("In the morning she drinks green tea.", "preference"),
    Save("Tea"),
    Save("Her card number is 4111 1111 1111 1111, she said.", secret=True),
    Save("The deploy key is AKIAIOSFODNN7EXAMPLE, she said.", secret=True),
)

CORRECTED = "She works as a data engineer at BMW."
CORRECTION = "She works as a data engineer at Siemens, no longer at BMW."
FORGOTTEN = "She rides her bike to work and has to be there at 9."

QUERIES = (
    "Who does she work for as an engineer?",
    "她对什么过敏？",
    "她喜欢吃什么？",
    "What does she drink in the morning?",
    "How does she get to work?",
)

HEARD = (
    ("Hi! I'm Mei, I live in Munich and I work as a nurse.", "Nice to meet you, Mei."),
    ("我对花生过敏，平时喜欢喝绿茶。", "记住了。"),
    ("Thanks!", "You are welcome."),
    ("By the way, I moved to Hamburg.", "How do you like it there?"),
)
"""What is said in a session that is then read by itself, with the replies."""
