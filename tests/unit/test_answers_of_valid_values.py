"""An answer made of valid values is the one that validation would make."""

from datetime import UTC, datetime

import pytest

from app.conversation.messages.schemas import MessageRead

SAID = {
    "message_id": "msg_1", "session_id": "talk", "agent_id": "agent", "user_id": "ana",
    "role": "user", "content": "Tea.", "content_type": "text", "content_parts": None,
    "tool_calls": None, "tool_call_id": None, "name": None, "metadata": {"mood": "good"},
    "parent_message_id": None, "sequence_no": 1,
    "create_time": datetime(2026, 11, 21, 12, tzinfo=UTC),
}  # fmt: skip


def test_answer_of_valid_values_is_as_validated() -> None:
    made = MessageRead.of_valid({**SAID, "token_count": 3})
    validated = MessageRead.model_validate(SAID)
    assert made == validated
    assert made.model_dump_json(by_alias=True) == validated.model_dump_json(by_alias=True)


def test_answer_without_a_value_is_refused() -> None:
    with pytest.raises(KeyError):
        MessageRead.of_valid({name: value for name, value in SAID.items() if name != "content"})
