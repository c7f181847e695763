"""Answers of a chat model kept in a folder by a hash of what was asked, so that a run repeats.

Only answers that can be used are kept; a failure is asked again by the next run.
"""

import asyncio
import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from app.console import progress
from app.evaluation.run import each_of
from app.language.llm.chat import ChatModel, JsonSchema
from app.language.llm.errors import ModelUnavailableError
from app.language.llm.tokens import EstimatedTokens

HOPELESS: Final = frozenset({"authentication", "model_not_found", "quota_exhausted"})
"""After one of these no other prompt is sent: the next would fail alike."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a model is asked."""

    system: str
    user: str
    schema_name: str
    schema: JsonSchema
    most_tokens: int
    """Of the answer."""

    usable: Callable[[Mapping[str, Any]], bool]
    """Whether an answer of this shape is one."""

    def key(self, model: str) -> str:
        """The same for the same question to the same model."""
        asked = [model, self.system, self.user, self.schema_name, self.schema]
        return hashlib.sha256(json.dumps(asked, ensure_ascii=False).encode()).hexdigest()

    @property
    def tokens(self) -> int:
        """An estimate of what is sent."""
        return sum(EstimatedTokens().count_many([self.system, self.user]))


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """What came of a prompt: an answer, or why there is none."""

    data: Mapping[str, Any] | None
    problem: str | None = None


@dataclass(slots=True)
class GradingUse:
    """What was asked of a model in this run, as the provider counts it."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    kept: int = 0
    """Answers that were there already."""


class KeptAnswers:
    """One model and the folder of its answers, which is made when the first is kept."""

    def __init__(self, chat: ChatModel, folder: Path) -> None:
        self._chat = chat
        self._folder = folder
        self._hopeless: str | None = None
        self.spent = GradingUse()

    @property
    def model(self) -> str:
        """`provider/model`."""
        return self._chat.name

    def find(self, prompt: Prompt) -> ModelAnswer | None:
        """The answer that is kept, if there is one and it can be used."""
        try:
            data = json.loads(self._file(prompt).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return ModelAnswer(data) if isinstance(data, dict) and prompt.usable(data) else None

    def missing(self, prompts: Iterable[Prompt]) -> list[Prompt]:
        """Those that have no answer yet, each once."""
        once = {prompt.key(self.model): prompt for prompt in prompts}
        return [prompt for prompt in once.values() if self.find(prompt) is None]

    async def ask(
        self, prompts: Iterable[Prompt], what: str, concurrency: int
    ) -> dict[str, ModelAnswer]:
        """By key, what came of each prompt; the same prompt is sent once."""
        once = {prompt.key(self.model): prompt for prompt in prompts}
        answers: dict[str, ModelAnswer] = {}
        with progress("answers") as bar:
            task = bar.add_task(what, total=len(once))

            async def ask(key: str) -> None:
                answers[key] = await self._answer(once[key])
                bar.advance(task)

            await each_of(once, ask, concurrency)
        return answers

    async def _answer(self, prompt: Prompt) -> ModelAnswer:
        kept = self.find(prompt)
        if kept is not None:
            self.spent.kept += 1
            return kept
        if self._hopeless is not None:
            return ModelAnswer(None, self._hopeless)
        try:
            answer = await self._chat.answer(
                prompt.system,
                prompt.user,
                schema=prompt.schema,
                schema_name=prompt.schema_name,
                max_output_tokens=prompt.most_tokens,
            )
        except ModelUnavailableError as error:
            use = error.use
            result = ModelAnswer(None, error.fault or error.reason)
            if error.reason in HOPELESS:
                self._hopeless = error.reason
        else:
            use = answer.use
            usable = prompt.usable(answer.data)
            result = ModelAnswer(answer.data) if usable else ModelAnswer(None, "unreadable")
            if usable:
                await asyncio.to_thread(self._keep, prompt, answer.data)
        self.spent.calls += use.calls
        self.spent.input_tokens += use.input_tokens
        self.spent.output_tokens += use.output_tokens
        return result

    def _keep(self, prompt: Prompt, data: Mapping[str, Any]) -> None:
        file = self._file(prompt)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{json.dumps(data, ensure_ascii=False)}\n", encoding="utf-8")

    def _file(self, prompt: Prompt) -> Path:
        return self._folder / f"{prompt.key(self.model)}.json"
