"""Conversations out of files: every shape, in order, with ids that stay, or why and where not."""

import gzip
import json
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from app.cli.conversation_formats import FilesRead, read_conversations
from app.cli.conversation_messages import Times
from app.cli.conversation_records import UnreadableError, records_of

NOW = datetime(2026, 11, 24, tzinfo=UTC)


def read(
    tmp_path: Path, text: str | bytes, name: str = "a.jsonl", user: str | None = None
) -> FilesRead:
    file = tmp_path / name
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_conversations(records_of(file), user_id=user, times=Times(NOW))


def lines(*values: Any) -> str:
    return "\n".join(json.dumps(one) for one in values)


def line(content: str, session_id: Any = "s", role: str = "user", **fields: Any) -> dict[str, Any]:
    return {"session_id": session_id, "role": role, "content": content, **fields}


def node(name: str, parent: str | None, role: str = "user", **message: Any) -> dict[str, Any]:
    text = message.pop("text", f"Said in {name}.")
    content = {"content_type": "text", "parts": [text]}
    return {
        "id": name,
        "parent": parent,
        "children": [],
        "message": {"id": name, "author": {"role": role}, "content": content, **message},
    }


def chatgpt(*nodes: dict[str, Any], **fields: Any) -> dict[str, Any]:
    root = {"id": "root", "parent": None, "children": [], "message": None}
    mapping = {"root": root} | {one["id"]: one for one in nodes}
    return {
        "title": "T",
        "create_time": 1700000000.5,
        "conversation_id": "c-1",
        "mapping": mapping,
        "current_node": nodes[-1]["id"],
    } | fields


def claude(*messages: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"uuid": "u-1", "name": "T", "chat_messages": list(messages)} | fields


def contents(reading: FilesRead) -> list[list[str]]:
    return [[said.content for said in one.messages] for one in reading.conversations]


class TestShapes:
    def test_lines_of_one_session_are_a_conversation_in_order_of_time(self, tmp_path: Path) -> None:
        text = lines(
            line("Second.", client_time="2024-05-02T10:00:00+02:00", user_id="ana", name="Ana"),
            line("Other.", "t", client_time="2023-01-01T00:00:00Z", user_id="ben"),
            line("First.", client_time="2024-05-02T07:00:00Z", user_id="ana"),
        )

        found = read(tmp_path, text)

        assert contents(found) == [["Other."], ["First.", "Second."]]
        assert [one.user_id for one in found.conversations] == ["ben", "ana"]
        sent = found.conversations[1].to_append()
        assert [one["metadata"] for one in sent] == [
            {"client_time": "2024-05-02T07:00:00+00:00"},
            {"client_time": "2024-05-02T10:00:00+02:00"},
        ]
        assert sent[1]["name"] == "Ana"

    def test_ids_typed_in_two_forms_are_one(self, tmp_path: Path) -> None:
        text = lines(
            line("First.", "Zoe\u0308", client_time="2024-05-02T07:00:00Z", user_id="Zo\u00eb"),
            line("Second.", "Zo\u00eb", client_time="2024-05-02T08:00:00Z", user_id="Zoe\u0308"),
        )

        found = read(tmp_path, text)

        assert contents(found) == [["First.", "Second."]]
        assert found.conversations[0].user_id == "Zo\u00eb"

    def test_line_may_be_a_conversation(self, tmp_path: Path) -> None:
        parts = [{"type": "text", "text": "A picture:"}, {"type": "image_url", "image_url": {}}]
        messages = [
            {"role": "developer", "content": "Be brief."},
            {"role": "user", "content": parts},
            {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]},
            {"role": "tool", "tool_call_id": "1", "content": "42"},
            {"role": "assistant", "content": "A tree.", "message_id": "mine"},
        ]
        text = lines({"session_id": 7, "client_time": 1700000000, "messages": messages})

        [one] = read(tmp_path, text, user="ana").conversations

        assert (one.session_id, one.user_id) == ("7", "ana")
        assert [(said.role, said.content) for said in one.messages] == [
            ("system", "Be brief."), ("user", "A picture:"), ("assistant", "A tree."),
        ]  # fmt: skip
        assert one.left_out == {"tools": 2}
        assert one.to_append()[1]["content"] == parts
        assert {said.said_at for said in one.messages} == {datetime.fromtimestamp(1700000000, UTC)}
        assert one.to_append()[2]["message_id"] == "mine"

    def test_list_without_an_id_is_named_by_what_was_said(self, tmp_path: Path) -> None:
        def ids(*said: str) -> list[str]:
            found = read(
                tmp_path, lines(*({"messages": [{"role": "user", "content": one}]} for one in said))
            )
            return [one.session_id for one in found.conversations]

        assert ids("Hello.", "Good day.", "Hello.") == ids("Hello.", "Good day.")
        assert len(set(ids("Hello.", "Good day."))) == 2

    def test_chatgpt_shows_the_branch_that_was_on_the_screen(self, tmp_path: Path) -> None:
        export = [
            chatgpt(
                node("a", "root", "system"),
                node("old", "a", create_time=1700000001.0),
                node("new", "a", create_time=1700000002.5),
                node("think", "new", "assistant", recipient="python"),
                node("out", "think", "tool"),
                node("picture", "out", "user", content={"content_type": "image", "parts": [{}]}),
                node("secret", "picture", metadata={"is_visually_hidden_from_conversation": True}),
                node("reply", "secret", "assistant", create_time=None, recipient=None),
            )
        ]

        found = read(tmp_path, json.dumps(export, indent=1), "conversations.json")

        [one] = found.conversations
        assert one.session_id == "chatgpt-c-1"
        assert [(said.role, said.content) for said in one.messages] == [
            ("user", "Said in new."), ("assistant", "Said in reply."),
        ]  # fmt: skip
        assert one.messages[0].said_at == datetime(2023, 11, 14, 22, 13, 22, 500000, UTC)
        assert found.left_out == {"another branch": 1, "hidden": 2, "tools": 2, "no text": 1}

    def test_chatgpt_without_a_current_node_follows_the_last(self, tmp_path: Path) -> None:
        tree = chatgpt(node("a", "root"), node("b", "a"), node("c", "a"), current_node=None)

        assert contents(read(tmp_path, json.dumps(tree))) == [["Said in a.", "Said in c."]]

    def test_ring_of_messages_ends(self, tmp_path: Path) -> None:
        tree = chatgpt(node("a", "b"), node("b", "a"))

        assert contents(read(tmp_path, json.dumps(tree))) == [["Said in a.", "Said in b."]]

    def test_claude_says_text_or_blocks(self, tmp_path: Path) -> None:
        blocks = [{"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": "Blocks."}]
        export = [
            claude(
                {"uuid": "1", "sender": "human", "text": "Text.",
                 "created_at": "2024-02-14T10:04:22Z"},
                {"uuid": "2", "sender": "assistant", "text": "Both.", "content": blocks,
                 "created_at": "2024-02-14T10:04:30.5Z"},
                {"uuid": "3", "sender": "human", "text": "", "files": [{"file_name": "a.png"}]},
            )
        ]  # fmt: skip

        found = read(tmp_path, json.dumps(export))

        assert contents(found) == [["Text.", "Blocks.", ""]]
        assert found.conversations[0].session_id == "claude-u-1"
        assert [one["content"] for one in found.conversations[0].to_append()] == [
            "Text.", "Blocks.", [{"type": "file", "filename": "a.png"}],
        ]  # fmt: skip

    def test_images_of_chatgpt_are_named_with_where_they_are(self, tmp_path: Path) -> None:
        image = {"content_type": "image_asset_pointer", "asset_pointer": "file-service://f1"}
        sound = {"content_type": "audio_asset_pointer", "asset_pointer": "sediment://f2"}
        heard = {"content_type": "audio_transcription", "text": "Hello."}
        given = {"content_type": "multimodal_text"}
        export = chatgpt(
            node("a", "root", content=given | {"parts": [image, "Which\0 breed?"]}),
            node("b", "a", content=given | {"parts": [image]}),
            node("c", "b", content=given | {"parts": [heard, sound]}),
            node("d", "c", content=given | {"parts": ["Only text.", ""]}),
        )

        [one] = read(tmp_path, json.dumps(export)).conversations

        picture = {"type": "image", "file_id": "file-service://f1"}
        assert [message["content"] for message in one.to_append()] == [
            [picture, {"type": "text", "text": "Which breed?"}],
            [picture],
            [{"type": "text", "text": "Hello."}, {"type": "audio", "file_id": "sediment://f2"}],
            "Only text.",
        ]
        assert [message.content for message in one.messages] == [
            "Which breed?", "", "Hello.", "Only text.",
        ]  # fmt: skip

    def test_claude_with_parents_shows_the_branch_of_the_newest(self, tmp_path: Path) -> None:
        def message(name: str, parent: str) -> dict[str, Any]:
            return {"uuid": name, "sender": "human", "text": name, "parent_message_uuid": parent}

        branches = [message("a", "0"), message("b", "a"), message("c", "a")]
        leaf = claude(*branches, uuid="u-2", current_leaf_message_uuid="b")

        found = read(tmp_path, json.dumps([claude(*branches), leaf]))

        assert contents(found) == [["a", "c"], ["a", "b"]]

    def test_archive_is_read_with_all_its_files(self, tmp_path: Path) -> None:
        with zipfile.ZipFile(tmp_path / "e.zip", "w") as archive:
            archive.writestr("user.json", "{}")
            archive.writestr(
                "export/conversations-000.json", json.dumps([chatgpt(node("a", "root"))])
            )
            other = chatgpt(node("b", "root"), conversation_id="c-2")
            archive.writestr("export/conversations-001.json", json.dumps([other]))

        found = read_conversations(records_of(tmp_path / "e.zip"), user_id=None, times=Times(NOW))

        assert contents(found) == [["Said in a."], ["Said in b."]]
        assert found.conversations[1].place == "e.zip/export/conversations-001.json, line 1"

    def test_ids_stay_when_a_conversation_grows(self, tmp_path: Path) -> None:
        def ids(*said: str) -> list[str]:
            [one] = read(tmp_path, lines(*map(line, said))).conversations
            return [message["message_id"] for message in one.to_append()]

        assert ids("Yes.", "Yes.", "No.")[:2] == ids("Yes.", "Yes.")
        assert len(set(ids("Yes.", "Yes."))) == 2

    def test_ids_stay_when_a_line_comes_in_between(self, tmp_path: Path) -> None:
        def ids(*given: dict[str, Any]) -> list[str]:
            [conversation] = read(tmp_path, lines(*given)).conversations
            return [message["message_id"] for message in conversation.to_append()]

        timed = [line("Yes.", client_time=f"2024-01-0{day}T00:00:00Z") for day in (1, 2, 3)]
        assert ids(timed[0], timed[2]) == [ids(*timed)[at] for at in (0, 2)]
        # What has no time of its own does not go by that of another one.
        untimed = [line("A.", client_time=1e9), line("B.", client_time=1.1e9), line("C.")]
        assert ids(untimed[0], untimed[2]) == [ids(*untimed)[at] for at in (0, 2)]
        by_two = [line("Yes.", name=name) for name in ("Ana", "Ben")]
        assert ids(*by_two) == ids(*reversed(by_two))[::-1]

    def test_what_no_database_keeps_is_replaced(self, tmp_path: Path) -> None:
        assert contents(read(tmp_path, lines(line("half \ud83d, nul \x00.")))) == [
            ["half ?, nul ."]
        ]

    def test_message_without_a_time_has_that_of_the_one_before(self, tmp_path: Path) -> None:
        def years(*records: dict[str, Any]) -> list[int | None]:
            [conversation] = read(tmp_path, lines(*records)).conversations
            return [message.said_at and message.said_at.year for message in conversation.messages]

        between = [line("A."), line("B.", client_time=1e9), line("C.")]
        assert years(*between) == [None, 2001, 2001]
        whole = {"session_id": "s", "client_time": 0, "messages": between}
        assert years(whole) == [1970, 2001, 2001]

    def test_conversations_without_a_time_come_last(self, tmp_path: Path) -> None:
        found = read(tmp_path, lines(line("A."), line("B.", "t", client_time="2026-11-24T10:00Z")))

        assert contents(found) == [["B."], ["A."]]

    def test_blank_lines_and_a_byte_order_mark_are_nothing(self, tmp_path: Path) -> None:
        text = f"\ufeff\n{json.dumps(line('A.'))}\r\n\n"
        assert contents(read(tmp_path, text)) == [["A."]]
        assert contents(read(tmp_path, "")) == []
        assert contents(read(tmp_path, "[]")) == []


class TestTimeZone:
    """A day such as yesterday is one of the place where it was said."""

    @pytest.mark.parametrize(
        ("told", "sent"),
        [
            ("2024-05-01T16:30:00Z", "2024-05-02T00:30:00+08:00"),
            (1714581000, "2024-05-02T00:30:00+08:00"),
            ("2024-05-02T00:30:00", "2024-05-02T00:30:00+08:00"),
            ("2024-05-01T18:30:00+02:00", "2024-05-01T18:30:00+02:00"),
        ],
    )
    def test_time_zone_is_that_of_the_file_or_else_the_one_that_is_given(
        self, tmp_path: Path, told: Any, sent: str
    ) -> None:
        file = tmp_path / "a.jsonl"
        file.write_text(lines(line("I moved here yesterday.", client_time=told)))
        there = Times(NOW, ZoneInfo("Asia/Shanghai"))

        [one] = read_conversations(records_of(file), user_id=None, times=there).conversations

        [message] = one.to_append()
        assert message["metadata"] == {"client_time": sent}

    def test_time_zone_changes_no_id(self, tmp_path: Path) -> None:
        file = tmp_path / "a.jsonl"
        said = {"role": "user", "content": "Hello.", "client_time": "2024-05-01T16:30:00Z"}
        file.write_text(lines({"messages": [said]}, line("B.", client_time=1e9)))
        zones = (None, ZoneInfo("Asia/Shanghai"), ZoneInfo("America/New_York"))

        read = [
            read_conversations(records_of(file), user_id=None, times=Times(NOW, zone))
            for zone in zones
        ]

        ids = [
            [(one.session_id, one.to_append()[0]["message_id"]) for one in found.conversations]
            for found in read
        ]
        assert len(ids[0]) == 2
        assert ids[0] == ids[1] == ids[2]


class TestUnreadable:
    @pytest.mark.parametrize(
        ("wrong", "reason"),
        [
            ({"session_id": None}, "session_id is missing"),
            ({"session_id": True}, "session_id is no text"),
            ({"session_id": "a/b"}, "session_id"),
            ({"session_id": "z", "user_id": "a/b"}, "user_id"),
            ({"role": "narrator"}, "role is none of user"),
            ({"role": []}, "role is none of user"),
            ({"content": {"text": "A."}}, "content is neither a text nor a list"),
            ({"content": "a" * 200_001}, "content String should have at most 200000 characters"),
            ({"name": "n" * 256}, "name String"),
            ({"message_id": "a b"}, "message_id"),
            ({"client_time": "yesterday"}, "client_time is no time"),
            ({"client_time": "2024-05-02T10:00:00"}, "client_time has no zone"),
            ({"client_time": 1.7e12}, "client_time is no time"),
            ({"client_time": True, "content": "x"}, "client_time is no time"),
            ({"client_time": "1899-12-31T23:59:59Z"}, "client_time is before 1900"),
            (
                {"client_time": "2026-11-25T00:00:01Z"},
                "client_time is before 1900 or in the future",
            ),
        ],
    )
    def test_part_that_cannot_be_read_bars_its_conversation(
        self, tmp_path: Path, wrong: dict[str, Any], reason: str
    ) -> None:
        text = lines(line("Good.", "other"), line("A."), line("B.") | wrong)

        found = read(tmp_path, text)

        [told] = found.unreadable
        assert told.startswith("a.jsonl, line 3")
        assert reason in told
        assert "narrator" not in told
        barred = "session_id" not in wrong
        assert contents(found) == ([["Good."]] if barred else [["Good."], ["A."]])

    @pytest.mark.parametrize("time", ["1900-01-01T00:00:00Z", "2026-11-25T00:00:00Z", 0])
    def test_times_at_the_limits_are_read(self, tmp_path: Path, time: Any) -> None:
        assert read(tmp_path, lines(line("A.", client_time=time))).unreadable == []

    def test_content_at_the_limit_is_read(self, tmp_path: Path) -> None:
        assert read(tmp_path, lines(line("a" * 200_000))).unreadable == []

    @pytest.mark.parametrize(
        ("record", "reason"),
        [
            ({"title": "T"}, "none of role, messages"),
            ({"messages": {}}, "messages is no list of objects"),
            ({"messages": ["Hello"]}, "messages is no list of objects"),
            (chatgpt(node("a", "root"), mapping=None), "conversation"),
            (chatgpt(node("a", "root"), mapping={"a": 1}), "a is no object"),
            (chatgpt(node("a", "root"), conversation_id=None), "no id"),
            (chatgpt(node("a", "root", "narrator")), "message a: role is none of"),
            (chatgpt(node("a", "root", create_time="soon")), "message a: create_time is no time"),
            (claude({"uuid": "1", "sender": "dog", "text": "A."}), "message 1: sender is none of"),
            (claude({"uuid": "1", "sender": "human", "text": "A.", "created_at": "x"}), "no time"),
            (claude({"uuid": "1", "sender": "human", "text": "a" * 200_001}), "message 1: content"),
        ],
    )  # fmt: skip
    def test_record_that_cannot_be_read_is_told(
        self, tmp_path: Path, record: dict[str, Any], reason: str
    ) -> None:
        found = read(tmp_path, json.dumps([line("Good."), record], indent=1))

        assert contents(found) == [["Good."]]
        if record.get("mapping", {}) is not None:
            [told] = found.unreadable
            assert told.startswith("a.jsonl, line 7")
            assert reason in told

    def test_line_without_a_user_has_that_of_its_session(self, tmp_path: Path) -> None:
        def users(*given: dict[str, Any]) -> list[str | None]:
            found = read(tmp_path, lines(*given), user="ben")
            assert found.unreadable == []
            return [conversation.user_id for conversation in found.conversations]

        named, unnamed = line("A.", user_id="ana"), line("B.", role="assistant")
        assert users(named, unnamed) == users(unnamed, named) == ["ana"]
        assert users(unnamed) == ["ben"]

    def test_two_users_cannot_have_one_session(self, tmp_path: Path) -> None:
        found = read(tmp_path, lines(line("A.", user_id="ana"), line("B.", user_id="ben")))

        assert found.unreadable == [
            "a.jsonl, line 2: the session is another user's in a.jsonl, line 1"
        ]
        assert found.conversations == []

    def test_two_conversations_cannot_have_one_session(self, tmp_path: Path) -> None:
        def one(said: str) -> dict[str, Any]:
            return {"session_id": "s", "messages": [{"role": "user", "content": said}]}

        assert read(tmp_path, lines(one("A."), one("A."))).unreadable == []
        found = read(tmp_path, lines(one("A."), one("B.")))
        assert "says something else in a.jsonl, line 1" in found.unreadable[0]
        assert found.conversations == []

    def test_message_id_is_there_once(self, tmp_path: Path) -> None:
        found = read(tmp_path, lines(line("A.", message_id="m"), line("B.", message_id="m")))

        assert found.unreadable == ["a.jsonl, line 2: its message_id is there twice"]

    @pytest.mark.parametrize(
        ("text", "told"),
        [
            (f"{json.dumps(line('A.'))}\n{{'role'", "a.jsonl, line 2: it is not JSON"),
            ('"text"', "a.jsonl, line 1: it is no JSON object"),
            ("[{}", "a.jsonl, line 1: it is not JSON (the array is cut off"),
            ("[{},", "a.jsonl, line 1: it is not JSON (the array is cut off"),
            ("[{}\n{}]", "a.jsonl, line 2: it is not JSON (the array is cut off or lacks a comma"),
            ("[{}]\n{}", "a.jsonl, line 1: it is not JSON (something follows the array"),
            (b'{"a": "\n\xff"}', "a.jsonl, line 2: it is not UTF-8"),
            ("[" * 200_000, "a.jsonl: it is nested too deeply"),
        ],
    )
    def test_file_that_is_no_json_is_refused_as_a_whole(
        self, tmp_path: Path, text: str | bytes, told: str
    ) -> None:
        with pytest.raises(UnreadableError) as refusal:
            read(tmp_path, text)
        assert str(refusal.value).startswith(told)

    def test_archive_without_conversations_is_refused(self, tmp_path: Path) -> None:
        with zipfile.ZipFile(tmp_path / "e.zip", "w") as archive:
            archive.writestr("user.json", "{}")

        with pytest.raises(UnreadableError, match=r"there is no conversations\*\.json in it"):
            records_of(tmp_path / "e.zip")


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (lines({"type": "manifest", "format": 1}, {"type": "user", "row": {}}), "`kemem import`"),
        (gzip.compress(b"{}"), "compressed"),
    ],
)
def test_export_of_kemem_is_told_where_it_is_read(
    tmp_path: Path, data: str | bytes, told: str
) -> None:
    with pytest.raises(UnreadableError, match=told):
        read(tmp_path, data, name="export.ndjson")
