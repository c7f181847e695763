"""The demo itself: two sessions, what is said in them in English and Chinese, and what is
remembered of that, corrected, found and forgotten.
"""

import secrets
from dataclasses import dataclass
from typing import Any

from app.console import out, print_table
from app.evaluation.api import Answer, Api

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


HITS = 3
NUMBERS = ("score", "similarity", "= rel.", "+ conf.", "+ scope")


class Story:
    """One run, under ids that nobody had before."""

    def __init__(self, api: Api) -> None:
        self._api = api
        run = f"demo-{secrets.token_hex(4)}"
        self.user_id = run
        self.agent_id = f"{run}-assistant"
        self._sessions = (f"{run}-monday", f"{run}-friday")
        self._memories: dict[str, str] = {}

    async def talk(self) -> None:
        """An agent, a user, two sessions with their messages; the first one ended."""
        _heading("A conversation")
        await self._api.post("/agents", {"agent_id": self.agent_id, "agent_name": "Demo assistant"})
        await self._api.post(
            "/users", {"user_id": self.user_id, "agent_id": self.agent_id, "user_name": "李明 Ming"}
        )
        for session_id, batches in zip(
            self._sessions, (FIRST_SESSION, SECOND_SESSION), strict=True
        ):
            # What this part shows is saved by hand: nothing else is to be remembered of it.
            await self._api.post(
                "/sessions",
                {
                    "session_id": session_id,
                    "user_id": self.user_id,
                    "memory_enabled": session_id != self._sessions[0],
                },
            )
            for batch in batches:
                await self._append(session_id, batch)
        ended = await self._api.post(f"/sessions/{self._sessions[0]}/end")
        out.print(f"\nThe session {self._sessions[0]} is {ended.body['status']} now.")

    async def _append(self, session_id: str, batch: list[dict[str, Any]]) -> None:
        appended = await self._api.post(f"/sessions/{session_id}/messages", {"messages": batch})
        for message in appended.body["messages"]:
            said = message["content"] or "calls " + ", ".join(
                call["function"]["name"] for call in message["tool_calls"] or []
            )
            out.print(f"  {message['sequence_no']:>2}  {message['role']:<9}  {said}", markup=False)

    async def listen(self) -> None:
        """A session of somebody else becomes memories by itself."""
        listener = f"{self.user_id}-heard"
        session_id = f"{listener}-talk"
        _heading("What a conversation leaves by itself")
        for said, reply in HEARD:
            batch = [{"role": "user", "content": said}, {"role": "assistant", "content": reply}]
            appended = await self._api.post(
                f"/sessions/{session_id}/messages",
                {"user_id": listener, "agent_id": self.agent_id, "messages": batch},
            )
            told = appended.body["extraction"]
            when = f"read at {told['due_at']}" if told["scheduled"] else told["reason"]
            out.print(f"  {said}  [{when}]", markup=False)
        read = await self._api.post(f"/sessions/{session_id}/extract", {"wait": True})
        if not read.body["done"]:
            out.print("  Nobody has read it yet: is a worker running?")
            return
        listed = await self._api.get("/memories/decisions", user_id=listener)
        print_table(
            f"Read by {read.body['result']['extractor']}",
            ("statement", "event", "why"),
            [
                (line["content"], line["event"], ", ".join(line["codes"]))
                for line in reversed(listed["items"])
            ],
        )

    async def remember(self) -> None:
        """Each statement, and what the gate made of it."""
        rows = []
        for save in SAVES:
            answer = await self._api.post(
                "/memories",
                {
                    "messages": save.content,
                    "user_id": self.user_id,
                    "session_id": self._sessions[1],
                    "memory_type": save.memory_type,
                    "infer": False,
                },
                expected=(409, 422),
            )
            if answer.ok:
                self._memories.setdefault(save.content, answer.body["results"][0]["memory_id"])
            shown = "(not shown)" if save.secret else save.content
            rows.append((shown, answer.status, *_verdict(answer)))
        _heading("What was stored, and what was refused")
        print_table("", ("statement", "status", "verdict", "why"), rows, right=("status",))

    async def correct(self) -> None:
        """A newer statement takes the place of an old one; then one is deleted."""
        old = self._memories[CORRECTED]
        answer = await self._api.post(
            f"/memories/{old}/supersede",
            {"content": CORRECTION, "reason": "She changed jobs."},
        )
        _heading("A correction")
        out.print(f"  before  {answer.body['previous']}", markup=False)
        out.print(f"  now     {answer.body['memory']['content']}", markup=False)
        history = await self._api.get(f"/memories/{old}/history")
        print_table(
            "History of the old one",
            ("event", "version", "status", "valid to", "reason"),
            [
                (
                    line["event"],
                    line["version"],
                    (line["after"] or {}).get("status"),
                    (line["after"] or {}).get("valid_to"),
                    line["reason"],
                )
                for line in history["items"]
            ],
            right=("version",),
        )

    async def search(self) -> None:
        """What is found, with every part of every score."""
        _heading("What is found")
        models: set[str] = set()
        for query in QUERIES:
            answer = await self._api.post(
                "/memories/search",
                {
                    "query": query,
                    "user_id": self.user_id,
                    "session_id": self._sessions[1],
                    "limit": HITS,
                    "explain": True,
                },
            )
            print_table(
                query,
                ("memory", *NUMBERS),
                [_hit(hit) for hit in answer.body["results"]],
                right=NUMBERS,
            )
            models.update(answer.body["embedding_models"])
        out.print(f"Embedded by {', '.join(sorted(models))}.", markup=False)

    async def forget(self) -> None:
        """Delete one, and show that it is not found again."""
        await self._api.call("DELETE", f"/memories/{self._memories[FORGOTTEN]}")
        answer = await self._api.post(
            "/memories/search", {"query": FORGOTTEN, "user_id": self.user_id, "limit": HITS}
        )
        found = any(hit["content"] == FORGOTTEN for hit in answer.body["results"])
        _heading("Forgetting")
        out.print(f"  deleted      {FORGOTTEN}", markup=False)
        out.print(f"  found again  {'yes, which is wrong' if found else 'no'}")

    async def sum_up(self) -> None:
        """The gate's verdicts and the counts."""
        decisions = await self._api.get("/memories/decisions", user_id=self.user_id)
        stats = await self._api.get("/memories/stats", user_id=self.user_id)
        _heading("In numbers")
        out.print(f"  verdicts listed  {len(decisions['items'])}")
        for name in ("total", "by_status", "by_memory_type", "decisions"):
            out.print(f"  {name:<15}  {_counts(stats[name])}", markup=False)

    async def clean(self) -> None:
        """Delete everything this run made."""
        for path in (
            f"/users/{self.user_id}",
            f"/users/{self.user_id}-heard",
            f"/agents/{self.agent_id}",
        ):
            await self._api.call("DELETE", path, params={"confirm": True})
        out.print(f"\nDeleted {self.user_id} and {self.agent_id} again.")


async def play_story(api: Api, *, keep: bool) -> None:
    """Play the demo and print it; `keep` leaves what it made."""
    story = Story(api)
    await story.talk()
    await story.listen()
    await story.remember()
    await story.correct()
    await story.search()
    await story.forget()
    await story.sum_up()
    if not keep:
        await story.clean()
        return
    out.print(
        f"\nEverything is still there under the user {story.user_id}; look around in the "
        "dashboard, or run with --clean next time."
    )


def _heading(text: str) -> None:
    out.print()
    out.rule(text, align="left")


def _verdict(answer: Answer) -> tuple[str, str]:
    """The event or the refusal, and its reasons; never the text itself."""
    if answer.ok:
        result = answer.body["results"][0]
        why = "the same text is there already" if result["event"] == "NONE" else ""
        return result["event"], why
    if answer.status == 409:
        return "refused: duplicate", f"similarity {answer.body['similarity']:.2f}"
    reasons = answer.body.get("reasons", [])
    codes = ", ".join(reason["code"] for reason in reasons)
    return f"refused: {codes}", " ".join(reason["detail"] for reason in reasons)


def _hit(hit: dict[str, Any]) -> tuple[str, ...]:
    parts = hit["explain"]
    figures = (
        hit["score"], hit["similarity"], parts["relevance"], parts["confidence"], parts["scope"],
    )  # fmt: skip
    return (hit["content"], *(f"{figure:.3f}" for figure in figures))


def _counts(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {count}" for name, count in value.items())
    return str(value)
