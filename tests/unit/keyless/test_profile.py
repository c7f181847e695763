"""What rules make of memories: each quoted in one place, and values that stand plainly."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from app.language.keyless.profile import EARLIER, RECENT, RulesProfiler
from app.language.llm.profiler import ProfileMemory, ProfileRequest, Slot, SlotValue
from app.memory.profiles.slots import PROJECT_SLOTS, USER_SLOTS

NOW = datetime(2026, 11, 24, 12, tzinfo=UTC)
YESTERDAY = NOW - timedelta(days=1)


def memory(
    content: str,
    memory_type: str = "fact",
    *,
    number: int = 1,
    days: float = 1,
    own: str | None = "ana",
    attribute: str | None = None,
) -> ProfileMemory:
    """In the words of `own`; in the third person without."""
    since = NOW - timedelta(days=days)
    said_at = None if own is None else since
    return ProfileMemory(f"mem_{number}", content, memory_type, attribute, 0.9, since, own, said_at)


async def derived(
    *known: ProfileMemory, slots: tuple[Slot, ...] = USER_SLOTS
) -> dict[str, tuple[SlotValue, tuple[str, ...]]]:
    found = await RulesProfiler().derive(ProfileRequest("user", slots, known, NOW))
    return {one.slot: (one.value, one.memory_ids) for one in found.values}


async def values(
    *known: ProfileMemory, slots: tuple[Slot, ...] = USER_SLOTS
) -> dict[str, SlotValue]:
    return {name: value for name, (value, _) in (await derived(*known, slots=slots)).items()}


@pytest.mark.parametrize(
    ("slot", "content", "memory_type", "value"),
    [
        ("username", "My name is Ana", "fact", "Ana"),
        ("username", "叫我小李", "preference", "小李"),
        ("profession", "I work as a nurse", "fact", "nurse"),
        ("profession", "用户是一名软件工程师。", "fact", "软件工程师"),
        ("communication_style", "please keep your answers short", "constraint", "concise"),
        ("communication_style", "用户希望助手用中文简洁地回答。", "preference", "concise"),
        ("response_format", "always answer in markdown", "constraint", "markdown"),
        ("language_preference", "please reply in German", "constraint", "de"),
        ("language_preference", "请用中文回答", "constraint", "zh-CN"),
        ("expertise_areas", "I'm good at chess and baking", "skill", ["chess", "baking"]),
        ("expertise_areas", "用户精通Python和Go。", "skill", ["Python", "Go"]),
        ("programming_languages", "I code in Python and Rust", "skill", ["Python", "Rust"]),
        ("programming_languages", "我平时写Python和Go代码", "habit", ["Python", "Go"]),
        ("frequently_used_tools", "I use Vim every day", "habit", ["Vim"]),
        ("frequently_used_tools", "用户每天用VS Code写代码。", "habit", ["VS Code"]),
    ],
)
async def test_single_value_is_read_where_it_stands_plainly(
    slot: str, content: str, memory_type: str, value: SlotValue
) -> None:
    assert (await derived(memory(content, memory_type)))[f"attributes.{slot}"] == (
        value, ("mem_1",),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("slot", "content", "memory_type"),
    [
        ("username", "Anna is my sister", "fact"),
        ("profession", "I want to work as a nurse", "goal"),
        ("profession", "I used to work as a nurse", "event"),
        ("communication_style", "I like short films", "preference"),
        ("communication_style", "don't keep your answers short", "constraint"),
        ("language_preference", "I watched it in German", "event"),
        ("expertise_areas", "I'm not good at chess", "skill"),
        ("programming_languages", "I write letters in English", "habit"),
        ("programming_languages", "I want to code in Rust", "goal"),
        ("programming_languages", "我用VS Code写代码", "habit"),
        ("frequently_used_tools", "I stopped using Vim", "event"),
    ],
)
async def test_what_is_not_told_stays_empty(slot: str, content: str, memory_type: str) -> None:
    assert f"attributes.{slot}" not in await values(memory(content, memory_type))


@pytest.mark.parametrize(
    ("speaker", "told"),
    [("ana", True), ("ANA", True), (None, True), ("Ben", False), ("assistant", False)],
)
@pytest.mark.parametrize(
    ("said", "does"), [("I work as a nurse", "nurse"), ("我是一名软件工程师", "软件工程师")]
)
async def test_other_speaker_fills_no_slot_of_the_user(
    speaker: str | None, told: bool, said: str, does: str
) -> None:
    known = [memory(said, own=speaker, attribute="user.occupation")]
    request = ProfileRequest("user", USER_SLOTS, known, NOW, names=frozenset({"ana"}))

    found = {one.slot: one.value for one in (await RulesProfiler().derive(request)).values}

    assert (found.get("attributes.profession") == does) == told
    assert bool(found) == told


async def test_every_member_speaks_for_a_project() -> None:
    known = [memory("never push to main", "constraint", own="ben")]
    request = ProfileRequest("project", PROJECT_SLOTS, known, NOW, names=frozenset({"ana"}))

    found = (await RulesProfiler().derive(request)).values

    assert [one.value for one in found] == [["ben: never push to main"]]


@pytest.mark.parametrize(("until", "told"), [(-1, False), (0, False), (1, True)])
async def test_what_has_ended_is_not_told(until: int, told: bool) -> None:
    one = replace(memory("I work as a nurse"), valid_to=NOW + timedelta(days=until))

    assert ("attributes.profession" in await values(one)) == told


@pytest.mark.parametrize(("begins", "told"), [(-1, True), (0, True), (1, False)])
async def test_what_begins_later_is_not_told_as_of_now(begins: int, told: bool) -> None:
    assert ("attributes.profession" in await values(memory("I work as a nurse", days=-begins))) == (
        told
    )


async def test_newest_memory_gives_a_single_value() -> None:
    found = await values(
        memory("I work as a nurse", number=1, days=20),
        memory("I work as a surgeon", number=2, days=2),
    )

    assert found["attributes.profession"] == "surgeon"


@pytest.mark.parametrize(
    ("content", "memory_type", "days", "slot"),
    [
        ("I grew up in Porto", "fact", 1, "attributes.background"),
        ("I work at Acme", "fact", 1, "sections.work_context"),
        ("I run every morning", "habit", 1, "attributes.characteristics"),
        ("I love jazz", "preference", 1, "sections.personal_context"),
        ("I live in Lisbon", "fact", 1, "sections.personal_context"),
        ("I plan to learn Danish", "goal", 59, "sections.top_of_mind"),
        ("I plan to learn Danish", "goal", 61, "sections.recent_months"),
        ("I fly to Oslo", "event", -3, "sections.top_of_mind"),
        ("I flew to Oslo", "event", 3, "sections.recent_months"),
        ("I flew to Oslo", "event", RECENT.days - 1, "sections.recent_months"),
        ("I flew to Oslo", "event", RECENT.days, "sections.earlier_context"),
        ("I flew to Oslo", "event", EARLIER.days - 1, "sections.earlier_context"),
        ("I can juggle", "skill", EARLIER.days, "sections.long_term_background"),
        ("我在字节跳动工作", "fact", 1, "sections.work_context"),
    ],
)
async def test_statement_is_quoted_in_one_place(
    content: str, memory_type: str, days: float, slot: str
) -> None:
    found = await values(memory(content, memory_type, days=days))

    assert [name for name, value in found.items() if content in value] == [slot]


async def test_no_memory_is_quoted_twice() -> None:
    known = [
        memory(f"I work on project {number} and studied it every day", kind, number=number)
        for number, kind in enumerate(["fact", "event", "habit", "goal", "context"] * 8)
    ]

    found = await derived(*known, slots=(*USER_SLOTS, *PROJECT_SLOTS))

    quoted = [one for _, ids in found.values() for one in ids]
    assert len(quoted) == len(set(quoted)) > 10


async def test_slots_of_applications_are_filled_first() -> None:
    own = Slot("slots.diet.allergies", "text", "diet / allergies: What she must not eat.")

    found = await values(
        memory("My allergies: nuts, and I work around them"), slots=(*USER_SLOTS, own)
    )

    assert found == {own.name: "In ana's own words: My allergies: nuts, and I work around them."}


async def test_own_words_name_their_speaker_once_and_the_day_they_go_by() -> None:
    found = await derived(
        memory("I work at Acme", number=1, days=3),
        memory("My team moved offices last week", number=2, days=2),
        memory("The user works as a nurse.", number=3, days=4, own=None),
    )

    assert found["sections.work_context"] == (
        "The user works as a nurse. In ana's own words: I work at Acme. 22 November 2026: My team "
        "moved offices last week.",
        ("mem_1", "mem_3", "mem_2"),
    )


async def test_day_stands_once_before_what_was_said_on_it() -> None:
    found = await values(
        memory("I flew to Oslo", "event", number=1, days=2),
        memory("I met Ben", "event", number=2, days=2.1),
        memory("I decided to stay", "decision", number=3, days=4),
        memory("I met Zoe", "event", number=4, days=4.1),
    )

    assert found["sections.recent_months"] == (
        "In ana's own words: 22 November 2026: I flew to Oslo. I met Ben. 20 November 2026: I "
        "decided to stay. I met Zoe."
    )


async def test_statement_that_gives_an_attribute_is_quoted_before_newer_ones() -> None:
    found = await values(
        memory("I live in Lisbon", number=1, days=300),
        memory("I love jazz", "preference", number=2),
        memory("I love tea", "preference", number=3, days=2),
    )

    assert found["sections.personal_context"] == (
        "In ana's own words: I live in Lisbon. I love jazz."
    )


async def test_own_words_in_chinese() -> None:
    found = await values(
        memory("我在字节跳动工作", number=1, own="小李"),
        memory("上周我的团队换了办公室", "context", number=2, days=2, own="小李"),
    )

    assert found["sections.work_context"] == (
        "小李的原话：我在字节跳动工作。22 November 2026: 上周我的团队换了办公室。"
    )


async def test_quotation_that_does_not_fit_whole_is_left_out() -> None:
    sentences = "I work at Acme. I like the team. We sell tea."
    found = await derived(
        memory(f"{sentences} It is fun.", number=1), memory(sentences, number=2, days=2),
        memory("I work a lot", number=3, days=3),
    )  # fmt: skip

    assert found["sections.work_context"] == (f"In ana's own words: {sentences}", ("mem_2",))
    short = (Slot("slots.a.work", "text", "a / work: .", characters=45),)
    text = "In ana's own words: I work at Acme and in NYC."
    assert len(text) == 46
    assert await values(memory("I work at Acme and in NYC"), slots=short) == {}
    assert await values(memory("I work at Acme and in NY"), slots=short) != {}


async def test_project_is_quoted_with_who_said_it() -> None:
    found = await values(
        memory("we ship on Fridays", "habit", number=1),
        memory("the project uses PostgreSQL and Redis, built with FastAPI", number=2),
        memory("项目用的是Rust", number=3, days=2, own=None),
        memory("never push to main", "constraint", number=4, own="ben"),
        slots=PROJECT_SLOTS,
    )

    assert found == {
        "attributes.team_conventions": ["ana: we ship on Fridays"],
        "attributes.tech_stack": ["PostgreSQL", "Redis", "FastAPI", "Rust"],
        "attributes.constraints": ["ben: never push to main"],
    }
