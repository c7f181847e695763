"""How a question is put to an endpoint, and what is left out of it after a refusal.

Nothing here knows a provider: the fullest request goes first, and the words of a refusal say what
the endpoint does not take.
"""

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal

from app.language.llm.chat import JsonSchema, Opening
from app.language.llm.embedder import encodable
from app.language.llm.prompts import format_note

if TYPE_CHECKING:
    from openai.types.chat.completion_create_params import ResponseFormat

Limit = Literal["max_completion_tokens", "max_tokens"]

# Templates of some models have no place for a system's turn, and say so in many ways.
_ROLES: Final = re.compile(r"\broles?\b|\b(?:developer|system)[ _](?:instruction|message)")
_LIMITS: Final = re.compile(r"max_(?:completion_)?tokens|in the completion")
_THINKING: Final = re.compile(r"enable[ _]thinking")


@dataclass(frozen=True, slots=True)
class Dialect:
    """What of a request an endpoint takes for a model."""

    limits: tuple[Limit, ...]
    answers: Literal["schema", "object", "text"] = "schema"
    system: bool = True
    temperature: bool = True
    thinking: bool = True
    """False: the endpoint is told that its model is not to think."""

    def without(self, words: str) -> "Dialect | None":
        """A plainer one after a refusal in these words; None when nothing is left to leave out."""
        # First, because some refusals repeat the whole request, with all of these words.
        about_format = "response_format" in words or "schema" in words
        if about_format and self.answers != "text":
            return self.plainer()
        dialect: Dialect | None = None
        if self.system and about_roles(words):
            dialect = replace(self, system=False)
        elif self.temperature and "temperature" in words:
            dialect = replace(self, temperature=False)
        elif self.limits and about_limit(words):
            dialect = replace(self, limits=self.limits[1:])
        elif self.thinking and _THINKING.search(words):
            dialect = replace(self, thinking=False)
        elif plainer := self.plainer():
            # A model that always thinks may not be told otherwise, and is not held to JSON.
            dialect = replace(plainer, thinking=True) if _THINKING.search(words) else plainer
        return dialect

    def plainer(self) -> "Dialect | None":
        """One that asks less of the form of the answer."""
        if self.answers == "text":
            return None
        return replace(self, answers="object" if self.answers == "schema" else "text")


def about_roles(words: str) -> bool:
    """Whether a refusal is about whose turns a conversation may have."""
    return _ROLES.search(words) is not None


def about_limit(words: str) -> bool:
    """Whether a refusal is about how long an answer may be."""
    return _LIMITS.search(words) is not None


@dataclass(frozen=True, slots=True)
class ChatQuestion:
    """What is asked, in whatever dialect."""

    system: str
    user: str
    schema: JsonSchema
    schema_name: str
    max_output_tokens: int
    opening: Opening | None = None

    def request(self, dialect: Dialect) -> dict[str, Any]:
        import openai

        formats: dict[str, ResponseFormat] = {
            "schema": {
                "type": "json_schema",
                "json_schema": {
                    "name": self.schema_name,
                    "schema": dict(self.schema),
                    "strict": True,
                },
            },
            "object": {"type": "json_object"},
        }
        return {
            "messages": [
                {"role": role, "content": encodable(text)} for role, text in self._turns(dialect)
            ],
            "response_format": formats.get(dialect.answers, openai.omit),
            "temperature": 0 if dialect.temperature else openai.omit,
            "extra_body": None if dialect.thinking else {"enable_thinking": False},
            **dict.fromkeys(dialect.limits[:1], self.max_output_tokens),
        }

    def _turns(self, dialect: Dialect) -> list[tuple[str, str]]:
        system = self.system
        if dialect.answers != "schema":
            system = f"{system}\n\n{format_note(self.schema)}"
        turns = [("user", self.user)]
        if self.opening is not None:
            turns = [*zip(("user", "assistant"), self.opening, strict=True), *turns]
        if dialect.system:
            return [("system", system), *turns]
        return [("user", f"{system}\n\n{turns[0][1]}"), *turns[1:]]
