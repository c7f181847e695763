"""Older results of tools, left out of one call: their calls stay, and all stays stored.
Pure.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from app.language.llm.tokens import TokenCounter, message_tokens
from app.prompting.context.scene import SceneConversation
from app.prompting.context.schemas import ClearToolResults

PLACEHOLDER: Final = "[This result was left out to save room. Call the tool again if you need it.]"

FURTHER: Final = 4
"""So many times the budget is read of a window whose results are cleared, for more of it will
fit then."""


def cleared(
    conversation: SceneConversation, wish: ClearToolResults, counter: TokenCounter
) -> tuple[SceneConversation, int]:
    """The conversation with older results replaced, and how many were.

    The newest `keep` results stay, and those of tools in `exempt`, and whatever is no longer
    than the words that would replace it.

    """
    window, spoken = conversation.window, dict(conversation.spoken)
    taken = sum(one.tokens for one in window.messages)
    if wish.above_tokens is not None and taken <= wish.above_tokens:
        return conversation, 0
    names = _names_of_calls(conversation)
    results = [one for one in window.messages if one.role == "tool" and one.answers is not None]
    older = results[: max(len(results) - wish.keep, 0)]
    shorter = {}
    for one in older:
        said = spoken[one.message_id]
        if (said.name or names.get(one.answers or "")) in wish.exempt:
            continue
        tokens = message_tokens(counter, content=PLACEHOLDER, name=said.name)
        if tokens < one.tokens:
            shorter[one.message_id] = replace(one, tokens=tokens)
            spoken[one.message_id] = replace(said, content=PLACEHOLDER, content_parts=None)
    messages = tuple(shorter.get(one.message_id, one) for one in window.messages)
    return (
        replace(conversation, window=replace(window, messages=messages), spoken=spoken),
        len(shorter),
    )


def _names_of_calls(conversation: SceneConversation) -> dict[str, str]:
    """The tool that each call names; a later call of the same id counts."""
    return {
        str(call.get("id")): str(_function(call).get("name", ""))
        for one in conversation.window.messages
        for call in conversation.spoken[one.message_id].tool_calls or ()
    }


def _function(call: Mapping[str, Any]) -> Mapping[str, Any]:
    function = call.get("function")
    return function if isinstance(function, Mapping) else call
