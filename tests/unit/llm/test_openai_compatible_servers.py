"""Providers and servers as their documentation or their users' reports show them.

Each server below plays one of them; its docstring names where the answer was seen. None was
called: the answers are played by a plain HTTP server on this machine.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest

from app.language.llm.answer_schemas import extraction_schema
from app.language.llm.chat import ChatAnswer, Opening
from app.language.llm.embedder import EmbeddingUse
from app.language.llm.errors import ModelUnavailableError
from app.language.llm.openai_chat import OpenAIChat
from app.language.llm.openai_client import connect
from app.language.llm.openai_vectors import request_vectors

Body = dict[str, Any]
Answer = tuple[int, Any]
Server = Callable[[Body], Answer]

DATA = {"reflection": "r", "memories": []}
TEXT = json.dumps(DATA)
SCHEMA = extraction_schema(("user",))
SPACES = "\n" * 150


@dataclass
class Endpoint:
    """A server on a port of this machine, and what it was asked."""

    address: str = ""
    paths: list[str] = field(default_factory=list)
    headers: list[str] = field(default_factory=list)
    bodies: list[Body] = field(default_factory=list)


@asynccontextmanager
async def listening(server: Server) -> AsyncIterator[Endpoint]:
    endpoint = Endpoint()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = head.partition("content-length: ")[2].partition("\r\n")[0]
        body = json.loads(await reader.readexactly(int(length)))
        endpoint.paths.append(head.split(" ")[1])
        endpoint.headers.append(head)
        endpoint.bodies.append(body)
        status, answer = server(body)
        sent = json.dumps(answer).encode()
        writer.write(
            b"HTTP/1.1 %d X\r\ncontent-type: application/json\r\nconnection: close\r\n"
            b"content-length: %d\r\n\r\n" % (status, len(sent)) + sent
        )
        await writer.drain()
        writer.close()

    listener = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with listener:
        port = listener.sockets[0].getsockname()[1]
        endpoint.address = f"http://127.0.0.1:{port}"
        yield endpoint


@asynccontextmanager
async def chatting(
    server: Server, path: str = "/v1", key: str | None = "sk-k"
) -> AsyncIterator[tuple[OpenAIChat, Endpoint]]:
    async with (
        listening(server) as endpoint,
        connect(
            api_key=key,
            base_url=endpoint.address + path,
            timeout=timedelta(seconds=10),
            max_retries=0,
        ) as client,
    ):
        yield OpenAIChat(client, "local-model"), endpoint


async def ask(chat: OpenAIChat, opening: Opening | None = None) -> ChatAnswer:
    return await chat.answer(
        "Read it.",
        "my diary",
        schema=SCHEMA,
        schema_name="memories",
        max_output_tokens=500,
        opening=opening,
    )


def form_of(body: Body) -> str | None:
    return body.get("response_format", {}).get("type")


def roles_of(body: Body) -> list[str]:
    return [message["role"] for message in body["messages"]]


def error(status: int, message: str, **members: Any) -> Answer:
    return status, {"error": {"message": message, "code": None, "param": None, **members}}


def says(
    content: Any = TEXT,
    *,
    finish_reason: str | None = "stop",
    usage: Any = None,
    **members: Any,
) -> Answer:
    message = {"role": "assistant", "content": content, **members}
    choice = {"index": 0, "message": message, "finish_reason": finish_reason}
    told = {"prompt_tokens": 12, "completion_tokens": 3} if usage is None else usage
    return 200, {"object": "chat.completion", "choices": [choice], "usage": told}


# Servers from which an answer is read.


def openai(body: Body) -> Answer:
    """langchaingo#1355 and ESPHomeDesigner#379: newer models of OpenAI and Azure."""
    if "max_tokens" in body:
        said = "Unsupported parameter: 'max_tokens' is not supported with this model."
        return error(400, f"{said} Use 'max_completion_tokens' instead.", param="max_tokens")
    if "temperature" in body:
        said = "Unsupported value: 'temperature' does not support 0 with this model."
        return error(400, said, param="temperature", code="unsupported_value")
    return says()


def litellm(body: Body) -> Answer:
    """litellm#13327: LiteLLM wraps what the provider says, and its code is a text."""
    if "temperature" in body:
        said = "AzureException - Unsupported parameter: 'temperature' is not supported"
        return error(400, f"litellm.BadRequestError: {said}", code="400")
    return says()


def openrouter_raw(body: Body) -> Answer:
    """litellm#10957: OpenRouter puts what the provider says beside its own message."""
    if "temperature" in body:
        raw = '{"error": {"message": "Unsupported parameter: \'temperature\'"}}'
        return error(400, "Provider returned error", code=400, metadata={"raw": raw})
    return says()


def openrouter_router(body: Body) -> Answer:
    """anon-kode#2 and zed#36094: OpenRouter has no provider that takes a parameter."""
    if form_of(body) == "json_schema":
        said = "No endpoints found that support the provided 'response_format' value."
        return error(404, said, code=404)
    return says()


def deepseek(body: Body) -> Answer:
    """inspect_ai#4916 and stagehand#1204: DeepSeek has no schemas, and JSON by its name alone."""
    if form_of(body) == "json_schema":
        return error(400, "This response_format type is unavailable now", code="invalid_request")
    if form_of(body) == "json_object" and "json" not in str(body["messages"]).lower():
        return error(400, "Prompt must contain the word 'json' in some form")
    return says()


def deepseek_422(body: Body) -> Answer:
    """deep-research#22 and browser-use#215: the same from an earlier version."""
    if form_of(body) == "json_schema":
        said = "Failed to deserialize the JSON body into the target type: response_format"
        return error(422, f"{said}: `json_schema` is unavailable now at line 1 column 12440")
    return says()


def deepseek_limit(body: Body) -> Answer:
    """doge-code#32: a limit of the answer that is above the model's own."""
    if "max_tokens" in body:
        return error(400, "Invalid max_tokens value, the valid range of max_tokens is [1, 8192]")
    return says()


def gemini_schema(body: Body) -> Answer:
    """prism#974 and PromptFuzz#42: Gemini refuses a schema's keyword, and its error is a list."""
    if form_of(body) == "json_schema":
        at = "generation_config.response_schema.properties[0].value.items"
        said = f"Unknown name \"additionalProperties\" at '{at}': Cannot find field."
        return 400, [{"error": {"code": 400, "message": said, "status": "INVALID_ARGUMENT"}}]
    return says()


def gemma_at_google(body: Body) -> Answer:
    """vscode#258088: Gemma at Google has no system instruction."""
    if "system" in roles_of(body):
        said = "Developer instruction is not enabled for models/gemma-3-27b-it"
        return 400, [{"error": {"code": 400, "message": said, "status": "INVALID_ARGUMENT"}}]
    return says()


def gemma_at_vllm(body: Body) -> Answer:
    """vllm#2964: Gemma's template has no system turn; vLLM's error is not inside of `error`."""
    if "system" in roles_of(body):
        said = {"message": "System role not supported", "type": "BadRequestError"}
        return 400, {"object": "error", "param": None, "code": 400, **said}
    return says()


def mistral_at_llama_cpp(body: Body) -> Answer:
    """sdialog#122 and autogen#1037: a template that breaks is a failure of llama.cpp."""
    expected = ["user", "assistant"] * len(body["messages"])
    if any(role != right for role, right in zip(roles_of(body), expected, strict=False)):
        said = "Jinja Exception: Conversation roles must alternate user/assistant/user/..."
        return error(500, said, code=500, type="server_error")
    return says()


def vllm_grammar(body: Body) -> Answer:
    """vllm#16321: vLLM's grammar does not know all of a schema."""
    if form_of(body) == "json_schema":
        said = "The provided JSON schema contains features not supported by xgrammar."
        return 400, {"object": "error", "message": said, "param": None, "code": 400}
    return says()


def vllm_window(body: Body) -> Answer:
    """ogx#4534: at vLLM the answer's limit alone is as long as the window."""
    if {"max_tokens", "max_completion_tokens"} & body.keys():
        said = "This model's maximum context length is 6048 tokens. However, you requested 6616"
        said += " tokens (568 in the messages, 6048 in the completion)."
        return 400, {"object": "error", "message": said, "param": None, "code": 400}
    return says()


def groq(body: Body) -> Answer:
    """g1#23: Groq checks the JSON itself, and refuses its own model's."""
    if form_of(body) is not None:
        said = "Failed to generate JSON. Please adjust your prompt."
        return error(400, said, code="json_validate_failed", failed_generation="```json")
    return says()


def dashscope(body: Body) -> Answer:
    """supersonic#2355: Qwen at DashScope thinks by default, but not for who waits for the whole."""
    if body.get("enable_thinking") is not False:
        said = "parameter.enable_thinking must be set to false for non-streaming calls"
        return error(400, said, code="invalid_parameter_error")
    return says()


def dashscope_json(body: Body) -> Answer:
    """presenton#184 and agno#5317: a Qwen that always thinks is not held to JSON."""
    if form_of(body) is not None:
        return error(400, "Json mode response is not supported when enable_thinking is true")
    return says() if body.get("enable_thinking") is not False else error(400, "restricted")


def lm_studio(body: Body) -> Answer:
    """tada#16: LM Studio has schemas or text, and its error is a text; here a model in prose."""
    if form_of(body) == "json_object":
        return 400, {"error": "'response_format.type' must be 'json_schema' or 'text'"}
    return says("Of course!" if form_of(body) else TEXT)


def lm_studio_types(body: Body) -> Answer:
    """lmstudio-bug-tracker#909 and outlines#1676: a list of types breaks an older Outlines."""
    if "'type': [" in str(body.get("response_format")):
        return 400, {"error": "ValueError: 'type' must be a string"}
    return says()


def anthropic(body: Body) -> Answer:
    """OpenAI SDK compatibility (platform.claude.com): `response_format` is ignored."""
    told = "# Form" in body["messages"][0]["content"]
    return says() if told else says("Nothing here is worth remembering.")


def ollama_other_keys(body: Body) -> Answer:
    """ollama#10001 and ollama#14645: the schema is ignored, and the answer has other keys."""
    other = json.dumps({"facts": ["They keep a diary."]})
    return says(TEXT) if "# Form" in body["messages"][0]["content"] else says(other)


def runs_of_space(body: Body) -> Answer:
    """omlx#2990 and atlas#143: held to a schema, a model writes white space until the limit."""
    if form_of(body) == "json_schema":
        return says('{"reflection": "r"' + SPACES, finish_reason="length")
    return says()


def space_behind(_: Body) -> Answer:
    """ollama#4446 and ollama#2577: the object is whole, and white space follows to the limit."""
    return says(TEXT + SPACES, finish_reason="length")


def thoughts_in_front(_: Body) -> Answer:
    """vllm#21130: Qwen's thoughts stand in the content."""
    return says(f"<think>\nIs {{this}} worth it? No.\n</think>\n\n{TEXT}")


def answer_among_thoughts(_: Body) -> Answer:
    """vllm#17349 and Qwen3#1297: the answer is put where thoughts belong."""
    return says(None, reasoning_content=TEXT)


def thoughts_beside(_: Body) -> Answer:
    """DeepSeek API docs, reasoning model: thoughts have a member of their own."""
    return says(TEXT, reasoning_content="First, the user says nothing of themselves.")


def in_parts(_: Body) -> Answer:
    """nanobot#2494: Mistral's thinking models answer in parts."""
    thoughts = {"type": "thinking", "thinking": [{"type": "text", "text": "{}"}]}
    halves = [{"type": "text", "text": half} for half in (TEXT[:9], TEXT[9:])]
    return says([thoughts, *halves])


def mistral(body: Body) -> Answer:
    """eca#231: Mistral takes no parameter that it does not know."""
    if "max_completion_tokens" in body:
        found = {"type": "extra_forbidden", "loc": ["body", "max_completion_tokens"]}
        return 422, {"object": "error", "message": {"detail": [found]}, "code": None}
    return says()


def fenced(_: Body) -> Answer:
    """pollinations#5184 and api-docs#264 (Venice): JSON inside of a fence."""
    return says(f"```json\n{TEXT}\n```")


def prose_around(_: Body) -> Answer:
    """FastFlowLM#554: JSON, and sentences about it."""
    return says(f"Here it is:\n{TEXT}\nThis JSON object contains the memories.")


def no_usage(_: Body) -> Answer:
    """llm#1697: an endpoint does not say what it cost."""
    status, answer = says()
    return status, {name: value for name, value in answer.items() if name != "usage"}


def null_usage(_: Body) -> Answer:
    """llm#1697: or says null."""
    status, answer = says()
    return status, answer | {"usage": None}


def no_finish_reason(_: Body) -> Answer:
    """inspect_ai#3687: members of a completion are left out by what is only nearly compatible."""
    status, answer = says(finish_reason=None)
    return status, {"choices": answer["choices"]}


READ = [
    # server, calls of the first question, and what the last request asks for
    (openai, 3, {"form": "json_schema", "limit": "max_completion_tokens"}),
    (litellm, 2, {"form": "json_schema"}),
    (openrouter_raw, 2, {"form": "json_schema"}),
    (openrouter_router, 2, {"form": "json_object"}),
    (deepseek, 2, {"form": "json_object"}),
    (deepseek_422, 2, {"form": "json_object"}),
    (deepseek_limit, 2, {"form": "json_schema", "limit": "max_completion_tokens"}),
    (gemini_schema, 2, {"form": "json_object"}),
    (gemma_at_google, 2, {"form": "json_schema"}),
    (gemma_at_vllm, 2, {"form": "json_schema"}),
    (mistral_at_llama_cpp, 2, {"form": "json_schema"}),
    (vllm_grammar, 2, {"form": "json_object"}),
    (vllm_window, 3, {"form": "json_schema", "limit": None}),
    (groq, 3, {"form": None}),
    (dashscope, 2, {"form": "json_schema"}),
    (dashscope_json, 5, {"form": None}),
    (lm_studio, 3, {"form": None}),
    (lm_studio_types, 1, {"form": "json_schema"}),
    (anthropic, 2, {"form": "json_object"}),
    (ollama_other_keys, 2, {"form": "json_object"}),
    (runs_of_space, 2, {"form": "json_object"}),
    (space_behind, 1, {"form": "json_schema"}),
    (thoughts_in_front, 1, {"form": "json_schema"}),
    (answer_among_thoughts, 1, {"form": "json_schema"}),
    (thoughts_beside, 1, {"form": "json_schema"}),
    (in_parts, 1, {"form": "json_schema"}),
    (mistral, 1, {"form": "json_schema"}),
    (fenced, 1, {"form": "json_schema"}),
    (prose_around, 1, {"form": "json_schema"}),
    (no_usage, 1, {"form": "json_schema"}),
    (null_usage, 1, {"form": "json_schema"}),
    (no_finish_reason, 1, {"form": "json_schema"}),
]


@pytest.mark.parametrize(("server", "calls", "last"), READ)
async def test_answer_is_read_and_what_was_learned_is_kept(
    server: Server, calls: int, last: dict[str, Any]
):
    async with chatting(server) as (chat, endpoint):
        first, second = await ask(chat), await ask(chat)

    assert first.data == second.data == DATA
    assert (first.use.calls, second.use.calls) == (calls, 1)
    assert len(endpoint.bodies) == calls + 1
    asked = endpoint.bodies[-1]
    assert form_of(asked) == last["form"]
    limits = [name for name in ("max_tokens", "max_completion_tokens") if name in asked]
    wanted = last.get("limit", "max_tokens")
    assert limits == ([] if wanted is None else [wanted])


async def test_tokens_of_an_answer_that_was_no_use_are_counted():
    async with chatting(anthropic) as (chat, _):
        first, second = await ask(chat), await ask(chat)

    assert (first.use.input_tokens, first.use.output_tokens) == (24, 6)
    assert (second.use.input_tokens, second.use.output_tokens) == (12, 3)


@pytest.mark.parametrize("server", [gemma_at_google, gemma_at_vllm, mistral_at_llama_cpp])
async def test_what_a_system_turn_says_stands_in_the_first_turn(server: Server):
    async with chatting(server) as (chat, endpoint):
        await ask(chat)
        await ask(chat, ("Earlier question.", "Earlier answer."))

    assert [message["content"] for message in endpoint.bodies[1]["messages"]] == [
        "Read it.\n\nmy diary"
    ]
    assert endpoint.bodies[2]["messages"] == [
        {"role": "user", "content": "Read it.\n\nEarlier question."},
        {"role": "assistant", "content": "Earlier answer."},
        {"role": "user", "content": "my diary"},
    ]


async def test_form_that_is_ignored_once_more_is_not_kept():
    async with chatting(lambda _: says("I would rather not.")) as (chat, endpoint):
        with pytest.raises(ModelUnavailableError) as caught:
            await ask(chat)
        with pytest.raises(ModelUnavailableError):
            await ask(chat)

    assert caught.value.fault == "unreadable"
    assert caught.value.use.calls == 2
    assert [form_of(body) for body in endpoint.bodies] == ["json_schema", "json_object"] * 2


@pytest.mark.parametrize(("spaces", "fault"), [(99, "truncated"), (100, None), (101, None)])
async def test_so_much_white_space_is_no_part_of_an_answer(spaces: int, fault: str | None):
    def server(_: Body) -> Answer:
        return says(TEXT + " " * spaces, finish_reason="length")

    async with chatting(server) as (chat, _):
        if fault is None:
            assert (await ask(chat)).data == DATA
        else:
            with pytest.raises(ModelUnavailableError, match="cut off"):
                await ask(chat)


# Servers that give no answer.


def overloaded(_: Body) -> Answer:
    """claude-code#5184: Anthropic is overloaded."""
    said = {"type": "overloaded_error", "message": "Overloaded"}
    return 529, {"type": "error", "error": said}


def openrouter_inside(_: Body) -> Answer:
    """OpenRouter docs, Errors and Debugging: a failure while the model writes has status 200."""
    return 200, {"error": {"code": 502, "message": "Your chosen model is down"}}


def openrouter_limited(_: Body) -> Answer:
    """computer#293 (Open WebUI): the provider behind OpenRouter limits its requests."""
    raw = {"raw": "temporarily rate-limited upstream", "provider_name": "BaseTen"}
    said = {"message": "Provider returned error", "code": 429, "metadata": raw}
    return 200, {"error": said, "user_id": "u"}


def openrouter_choice(_: Body) -> Answer:
    """OpenRouterChoice (api.koog.ai): the first choice holds the error."""
    status, answer = says('{"reflection": "', finish_reason="error")
    answer["choices"][0]["error"] = {"code": 502, "message": "Upstream idle"}
    return status, answer


def limited(_: Body) -> Answer:
    """DeepSeek API docs, Error Codes: 429 without a word of how long."""
    return error(429, "Rate Limit Reached")


def deepseek_busy(_: Body) -> Answer:
    """DeepSeek API docs, Create Chat Completion: interrupted for want of resources."""
    return says('{"reflection"', finish_reason="insufficient_system_resource")


def mistral_failed(_: Body) -> Answer:
    """Mistral AI API, ChatCompletionChoice: `error` is a finish reason."""
    return says("", finish_reason="error")


def deepseek_unpaid(_: Body) -> Answer:
    """continue#9180 and DeepSeek API docs, Error Codes: nothing left to pay with."""
    return error(402, "Insufficient Balance", code="invalid_request_error")


def anthropic_unpaid(_: Body) -> Answer:
    """claude-code#66314: the same at Anthropic is a bad request."""
    said = "Your credit balance is too low to access the Anthropic API."
    return 400, {"type": "error", "error": {"type": "invalid_request_error", "message": said}}


def dashscope_unpaid(_: Body) -> Answer:
    """TradingAgents-CN#170: and at DashScope."""
    said = "Access denied, please make sure your account is in good standing."
    return error(400, said, code="Arrearage", type="Arrearage")


def azure_filter(_: Body) -> Answer:
    """compl-ai#20: Azure filters what is sent."""
    said = "The response was filtered due to the prompt triggering Azure OpenAI's policy."
    inner = {"code": "ResponsibleAIPolicyViolation", "content_filter_result": {}}
    return error(400, said, code="content_filter", param="prompt", innererror=inner)


def dashscope_filter(_: Body) -> Answer:
    """owl#432: so does DashScope."""
    said = "Input data may contain inappropriate content."
    return error(400, said, code="data_inspection_failed", type="data_inspection_failed")


def dashscope_filter_2(_: Body) -> Answer:
    """qwen-code#2905: under another name."""
    said = "<400> InternalError.Algo.DataInspectionFailed: Input text data may contain"
    return error(400, said, code="invalid_parameter_error")


def deepseek_filter(_: Body) -> Answer:
    """BettaFish#108: so does DeepSeek."""
    return error(400, "Content Exists Risk", code="invalid_request_error")


def openrouter_filter(_: Body) -> Answer:
    """OpenRouter docs, Moderation Errors: 403 is no matter of the key then."""
    found = {"reasons": ["violence"], "flagged_input": "my diary", "provider_name": "x"}
    return error(403, "Your chosen model requires moderation", code=403, metadata=found)


def filtered(_: Body) -> Answer:
    """OpenAI API reference, finish_reason: content was left out by a filter."""
    return says("", finish_reason="content_filter")


def gemini_filter(_: Body) -> Answer:
    """Vibe-Trading#308: Gemini passes on the name of its own API."""
    return says(None, finish_reason="SAFETY")


def declined(_: Body) -> Answer:
    """OpenAI docs, Structured Outputs, Refusals."""
    return says(None, refusal="I'm sorry, I cannot assist with that request.")


def cut_off(_: Body) -> Answer:
    """OpenAI docs, Structured Outputs: the limit was reached."""
    return says('{"reflection": "r", "memor', finish_reason="length")


def mistral_cut_off(_: Body) -> Answer:
    """Mistral AI API, ChatCompletionChoice: the window was full."""
    return says('{"reflection": "r", "memor', finish_reason="model_length")


def gemini_cut_off(_: Body) -> Answer:
    """planet#10281: the limit by the name of Gemini's own API."""
    return says('{"reflection": "r", "memor', finish_reason="MAX_TOKENS")


def gemini_thought_too_long(_: Body) -> Answer:
    """evalscope#1432: Gemini has thought until the limit, and sends no message."""
    usage = {"prompt_tokens": 12, "total_tokens": 25}
    return 200, {"choices": [{"finish_reason": "length", "index": 0}], "usage": usage}


def thought_too_long(_: Body) -> Answer:
    """chatlas#327: thoughts of a local model use up the limit."""
    return says("", finish_reason="length", reasoning="{The user asks")


def thoughts_alone(_: Body) -> Answer:
    """Mail-Otter#275: Kimi K2.6 thinks, and its content is null; a draft is no answer."""
    return says(None, reasoning_content=f"Perhaps {TEXT}, or something of the diary?")


def no_message(_: Body) -> Answer:
    """fast-agent#184: Gemini sends a message of null."""
    status, answer = says()
    answer["choices"][0]["message"] = None
    return status, answer


def deepseek_empty(_: Body) -> Answer:
    """DeepSeek API docs, JSON Output: content may be empty."""
    return says("")


def no_choices(_: Body) -> Answer:
    """dify#9197: OpenRouter's answer has no choice to read."""
    return 200, {"object": "chat.completion", "choices": []}


NOT_READ = [
    (overloaded, "provider_error", None),
    (openrouter_inside, "provider_error", None),
    (openrouter_limited, "rate_limited", None),
    (openrouter_choice, "provider_error", None),
    (limited, "rate_limited", None),
    (deepseek_busy, "provider_error", None),
    (mistral_failed, "provider_error", None),
    (deepseek_unpaid, "quota_exhausted", None),
    (anthropic_unpaid, "quota_exhausted", None),
    (dashscope_unpaid, "quota_exhausted", None),
    (azure_filter, "bad_answer", "filtered"),
    (dashscope_filter, "bad_answer", "filtered"),
    (dashscope_filter_2, "bad_answer", "filtered"),
    (deepseek_filter, "bad_answer", "filtered"),
    (openrouter_filter, "bad_answer", "filtered"),
    (filtered, "bad_answer", "filtered"),
    (gemini_filter, "bad_answer", "filtered"),
    (declined, "bad_answer", "declined"),
    (cut_off, "bad_answer", "truncated"),
    (mistral_cut_off, "bad_answer", "truncated"),
    (gemini_cut_off, "bad_answer", "truncated"),
    (gemini_thought_too_long, "bad_answer", "truncated"),
    (thought_too_long, "bad_answer", "truncated"),
    (thoughts_alone, "bad_answer", "empty"),
    (no_message, "bad_answer", "empty"),
    (deepseek_empty, "bad_answer", "empty"),
    (no_choices, "bad_answer", "empty"),
]


@pytest.mark.parametrize(("server", "reason", "fault"), NOT_READ)
async def test_failure_is_told_by_its_reason_and_asked_once(
    server: Server, reason: str, fault: str | None
):
    async with chatting(server) as (chat, endpoint):
        with pytest.raises(ModelUnavailableError) as caught:
            await ask(chat)

    assert (caught.value.reason, caught.value.fault) == (reason, fault)
    assert caught.value.retry_after is None
    assert caught.value.use.calls == len(endpoint.bodies) == 1
    assert "my diary" not in f"{caught.value} {caught.value.members}"


# A request that is longer than the model takes.


def gemini_too_long(_: Body) -> Answer:
    """gemini-cli#12214"""
    said = "The input token count (134123) exceeds the maximum number of tokens allowed (131072)."
    return 400, [{"error": {"code": 400, "message": said, "status": "INVALID_ARGUMENT"}}]


def llama_cpp_too_long(_: Body) -> Answer:
    """llmmllab-api#69 and llama.cpp#15780"""
    said = "request (25837 tokens) exceeds the available context size (25088 tokens)"
    return error(400, said, code=400, type="exceed_context_size_error", n_ctx=25088)


def llama_cpp_too_long_200(_: Body) -> Answer:
    """textgen#7257: with status 200."""
    return 200, llama_cpp_too_long(_)[1]


def lm_studio_too_long(_: Body) -> Answer:
    """openclaude#353"""
    said = "The number of tokens to keep from the initial prompt is greater than the context"
    return 400, {"error": f"{said} length (n_keep: 13055>= n_ctx: 4096)."}


def vllm_too_long(_: Body) -> Answer:
    """vllm#20409: also when nothing is said of how long the answer may be."""
    said = "This model's maximum context length is 16384 tokens. However, you requested 122946"
    said += " tokens (112946 in the messages, 10000 in the completion)."
    return 400, {"object": "error", "message": said, "param": None, "code": 400}


def openai_too_long(_: Body) -> Answer:
    """chathub#126"""
    said = "This model's maximum context length is 4097 tokens. Your messages resulted in 4294"
    return error(400, said, param="messages", code="context_length_exceeded")


def openrouter_too_long(_: Body) -> Answer:
    """refly#1177"""
    said = "This endpoint's maximum context length is 32768 tokens. However, you requested about"
    return error(400, said, code=400)


def anthropic_too_long(_: Body) -> Answer:
    """claude-code#11281"""
    said = "prompt is too long: 201130 tokens > 200000 maximum"
    return 400, {"type": "error", "error": {"type": "invalid_request_error", "message": said}}


def dashscope_too_long(_: Body) -> Answer:
    """QwenPaw#6255"""
    said = "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 983616]"
    return error(400, said, code="invalid_parameter_error")


def groq_too_large(_: Body) -> Answer:
    """ha-groq-cloud-api#27: more than a minute's share."""
    said = "Request too large for model on tokens per minute (TPM): Limit 6000, Requested 12328"
    return error(413, said, type="tokens", code="rate_limit_exceeded")


@pytest.mark.parametrize(
    ("server", "calls"),
    [
        (gemini_too_long, 1),
        (llama_cpp_too_long, 1),
        (llama_cpp_too_long_200, 1),
        (lm_studio_too_long, 1),
        (vllm_too_long, 3),
        (openai_too_long, 1),
        (openrouter_too_long, 1),
        (anthropic_too_long, 1),
        (dashscope_too_long, 1),
        (groq_too_large, 1),
    ],
)
async def test_request_that_is_too_long_is_told_apart(server: Server, calls: int):
    async with chatting(server) as (chat, _):
        with pytest.raises(ModelUnavailableError) as caught:
            await ask(chat)

    assert caught.value.reason == "too_long"
    assert caught.value.use.calls == calls


@pytest.mark.parametrize(
    "said", ["my context window is open", "I have insufficient balance", "content_filter"]
)
async def test_words_of_the_conversation_are_not_taken_for_the_providers(said: str):
    """eca#231 and mistralai/platform-docs-public#7: a refusal may repeat the request."""

    def server(_: Body) -> Answer:
        messages = [{"role": "user", "content": said}]
        return 422, {"message": {"detail": [{"loc": ["body"], "input": {"messages": messages}}]}}

    async with chatting(server) as (chat, _):
        with pytest.raises(ModelUnavailableError) as caught:
            await ask(chat)

    assert caught.value.reason == "refused"


# Addresses.


@pytest.mark.parametrize(
    ("written", "called"),
    [
        # Ollama, vLLM, llama.cpp, LM Studio, DeepSeek: with the version or without.
        ("", "/v1/chat/completions"),
        ("/v1", "/v1/chat/completions"),
        ("/v1/", "/v1/chat/completions"),
        # docs.spring.io, Perplexity Chat: its routes have no version.
        ("/", "/chat/completions"),
        # ai.google.dev, OpenAI compatibility.
        ("/v1beta/openai/", "/v1beta/openai/chat/completions"),
        # learn.microsoft.com, Azure OpenAI v1 API.
        ("/openai/v1/", "/openai/v1/chat/completions"),
        ("/openai/v1/?api-version=preview", "/openai/v1/chat/completions?api-version=preview"),
        # Archon#585: Azure by deployment and dated version.
        (
            "/openai/deployments/mini?api-version=2024-10-21",
            "/openai/deployments/mini/chat/completions?api-version=2024-10-21",
        ),
        ("/compatible-mode/v1", "/compatible-mode/v1/chat/completions"),
    ],
)
async def test_address_is_called_as_it_is_written(written: str, called: str):
    async with chatting(lambda _: says(), written) as (chat, endpoint):
        assert (await ask(chat)).data == DATA

    assert endpoint.paths == [called]
    azure = "api-version" in written
    assert ("api-key: sk-k" in endpoint.headers[0]) == azure
    assert "authorization: bearer sk-k" in endpoint.headers[0]


async def test_server_without_a_key_gets_none_of_ours():
    """LM Studio (docs.litellm.ai): the key of a local server is empty."""
    async with chatting(lambda _: says(), key=None) as (chat, endpoint):
        assert (await ask(chat)).data == DATA

    assert "authorization: bearer none" in endpoint.headers[0]
    assert "api-key" not in endpoint.headers[0]


async def test_vectors_come_from_the_same_address():
    def server(_: Body) -> Answer:
        return 200, {"data": [{"index": 0, "embedding": [0.6, 0.8]}]}

    query = "?api-version=2024-10-21"
    async with (
        listening(server) as endpoint,
        connect(
            api_key="k",
            base_url=f"{endpoint.address}/openai/deployments/e{query}",
            timeout=timedelta(seconds=10),
            max_retries=0,
        ) as client,
    ):
        await request_vectors(client, "e", ["a"], dimensions=None, use=EmbeddingUse())

    assert endpoint.paths == [f"/openai/deployments/e/embeddings{query}"]
