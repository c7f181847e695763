"""The object in what a model wrote, and never half of one."""

import json
import re
import time

import pytest

from app.language.llm.answer_schemas import EXPERIENCE_SCHEMA, extraction_schema, reconcile_schema
from app.language.llm.json_answers import _LONGEST_MENDED, LONGEST, read_answer
from app.language.llm.reconciler import NO_AGENDA

SCHEMA = extraction_schema(("user",))
DECISIONS = reconcile_schema(NO_AGENDA)
ENTRY = {"content": "用户住在慕尼黑。", "type": "fact"}
WHOLE = {"reflection": "r", "memories": [ENTRY]}
TEXT = json.dumps(WHOLE, ensure_ascii=False)
DRAFT = '{"memories": [{"content": "a draft"}]}'


@pytest.mark.parametrize(
    "text",
    [
        TEXT,
        f"\n\t {TEXT}\n",
        f"```json\n{TEXT}\n```",
        f"```\n{TEXT}\n```\n",
        f"Sure, here's what I've found [1] (it isn't much):\n{TEXT}\nIs it what you meant? {{:}}",
        f"Here it is:\n```json\n{TEXT}\n```\nThat's all.",
        f"<think>Perhaps {DRAFT}?</think>\n{TEXT}",
        f"<thinking>So.</thinking><think>Or not.</think>```json\n{TEXT}\n```",
        f"they live in Munich, so…\n</think>\n\n{TEXT}",
        f"{DRAFT}\n\nFinal answer:\n{TEXT}",
        f"{DRAFT}\n{TEXT}",
        f"[{TEXT}]",
        TEXT.replace("}]}", "},],}"),
        TEXT.replace('"', "'"),
        re.sub(r'"([^"]*)"', r"“\1”", TEXT),
        TEXT.replace(", ", " "),
        TEXT.replace('"reflection"', "reflection").replace('"memories"', "memories"),
        f"{TEXT} // done",
        f"{TEXT}}}}}",
    ],
)
def test_json_object_is_found_whatever_stands_around_it(text: str):
    assert read_answer(text, SCHEMA) == WHOLE


@pytest.mark.parametrize(
    ("text", "contents"),
    [
        ('{"memories": []}', []),
        ("[]", []),
        ("```json\n[]\n```", []),
        ('[{"content": "a"}, {"content": "b"}]', ["a", "b"]),
        ('[{"content": "a"}, {"content": "b"},]', ["a", "b"]),
        ('{"content": "a"}\n{"content": "b"}', ["a", "b"]),
        ('{"content": "a"}, {"content": "b"}', ["a", "b"]),
        ('{"memories": [{"content": "The user said "no" to tea"}]}', ['The user said "no" to tea']),
        ("{'memories': [{'content': 'The user's dog', 'type': 'fact'}]}", ["The user's dog"]),
        ("{'memories': [{'content': \"The user's old dog\"}]}", ["The user's old dog"]),
        ('{"memories": [{"content": "two\nlines"}]}', ["two\nlines"]),
        ('{"memories": [{"content": "</think> is a tag"}]}', ["</think> is a tag"]),
        ('{"memories": [{"content": "write {\\"memories\\": []}"}]}', ['write {"memories": []}']),
    ],
)
def test_entries_keep_their_words(text: str, contents: list[str]):
    answer = read_answer(text, SCHEMA)

    assert answer is not None
    assert [one["content"] for one in answer["memories"]] == contents


# json-repair would close each of them, and half a sentence would be remembered.
@pytest.mark.parametrize("length", range(1, len(TEXT)))
def test_an_answer_that_was_cut_off_is_none_wherever_it_was(length: int):
    cut = TEXT[:length]

    assert read_answer(cut, SCHEMA) is None
    assert read_answer(f"Here:\n```json\n{cut}", SCHEMA) is None
    assert read_answer(f"```json\n{cut}\n```", SCHEMA) is None
    assert read_answer(cut.replace('"', "'"), SCHEMA) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        "I'm sorry, I can't help with that.",
        "{}",
        '{"reflection": "nothing was said"}',
        '{"error": "overloaded"}',
        '{"memory": []}',
        "null",
        "[1, 2]",
        '["The user likes tea."]',
        f"<think>and so on {TEXT}",
        f"{TEXT}\n" + TEXT[:-10],
        # The library would keep only the second of them.
        "{'content': 'a'}\n{'content': 'b'}",
        # Here it would shorten a sentence, make a part of one a member, or run on into the next.
        "{'memories': [{'content': 'The user's dog likes \"tea\" O'Neil, 'best' it's'}]}",
        "{'memories': [{'content': 'The user's dog is old'}]}",
        """{"memories": [{"content": "5" {x} "tea" “喜欢” rock 'n' roll O'Neil,"}]}""",
        "{'memories': [{'content': 'rock 'n' roll, bus: 5 it's'}]}",
        """{'memories': [{'content': '"tea" {x} The user's the [y] dog', 'type': 'fact'}]}""",
        # Which of the two is the answer cannot be told.
        '{"memories": [{"content": "she said {"memories": []}", "type": "fa',
        "[" * 20_000,
        '{"memories":' * 2_000,
    ],
    ids=lambda text: text[:30],
)
def test_what_is_no_answer_is_none(text: str):
    assert read_answer(text, SCHEMA) is None


def test_the_length_is_bounded():
    padding = LONGEST - len(TEXT)

    assert read_answer(TEXT + " " * (padding - 1), SCHEMA) == WHOLE
    assert read_answer(TEXT + " " * padding, SCHEMA) == WHOLE
    assert read_answer(TEXT + " " * (padding + 1), SCHEMA) is None


@pytest.mark.slow
@pytest.mark.parametrize("worst", ["(", "[{", '(((("', '{"memories": [{"content": "a "b" ', "x"])
def test_the_worst_text_ends(worst: str):
    started = time.process_time()

    read_answer((worst * _LONGEST_MENDED)[:_LONGEST_MENDED], SCHEMA)
    read_answer((worst * LONGEST)[:LONGEST], SCHEMA)

    # 1.5 s measured; without the second bound 11 s.
    assert time.process_time() - started < 8


def test_an_answer_without_a_list_is_found_too():
    null = read_answer('Well: {"experience": null}', EXPERIENCE_SCHEMA)
    some = read_answer("{'experience': {'content': 'a',},}", EXPERIENCE_SCHEMA)

    assert null == {"experience": None}
    assert some == {"experience": {"content": "a"}}
    assert read_answer("[]", EXPERIENCE_SCHEMA) is None


def test_an_entrys_own_keys_do_not_make_it_the_answer():
    # A decision has a member `memories`, as an extraction has.
    decision = '{"statement": "q1", "event": "ADD", "memories": []}'

    assert read_answer(decision, DECISIONS) == {"decisions": [json.loads(decision)]}
    assert read_answer(f'{{"decisions": [{decision}', DECISIONS) is None
