"""Pure: names, relations, periods, and which near names are one."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.language.text.names import name_key, name_keys
from app.memory.graph.statements import (
    MOST_KEYS,
    RelationPeriod,
    cut_by,
    ends_where,
    fits,
    keys_in,
    relation_name,
    same_name,
)

# Spellings of one name.
SAME = [
    ("Acme, Inc.", "Acme Inc"),
    ("coffee shop", "coffee shops"),
    ("U.S. Army", "US Army"),
    ("T-shirt", "T shirt"),
    ("New York City", "New-York City"),
    ("Peking University", "peking  university"),
    ("machine-learning", "machine learning"),
    ("北京 大学", "北京大学"),
    ("阿里·巴巴", "阿里巴巴"),
    ("computer sciences", "computer science"),
]

# Others, however near.
OTHERS = [
    ("Anna Schmidt", "Anne Schmidt"),
    ("John Smith", "Jane Smith"),
    ("Peter", "Peter Parker"),
    ("Boeing 737", "Boeing 747"),
    ("iPhone 14", "iPhone 15"),
    ("Terminal 1", "Terminal 2"),
    ("North Korea", "South Korea"),
    ("New York", "York"),
    ("Acme Research", "Acme"),
    ("张教授", "王教授"),
    ("李明", "李敏"),
    ("北京大学", "北京师范大学"),
    ("上海", "上海市"),
    ("2024 budget", "2025 budget"),
    ("小红", "小明"),
]


@pytest.mark.parametrize(("a", "b"), SAME)
def test_spellings_of_a_name_are_the_same_name(a: str, b: str) -> None:
    assert same_name(a, b)
    assert same_name(b, a)


@pytest.mark.parametrize(("a", "b"), OTHERS)
def test_different_names_are_not_the_same(a: str, b: str) -> None:
    assert not same_name(a, b)
    assert not same_name(b, a)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("studies at", "studies_at"),
        ("StudiesAt", "studies_at"),
        (" studies-at ", "studies_at"),
        ("STUDIES_AT", "studies_at"),
        ("étudie", "etudie"),
        ("likes", "likes"),
        ("x" * 100, "x" * 100),
        ("x" * 101, None),
        ("就读于", None),
        ("likes 茶", None),
        ("учится", None),
        ("2nd_of", None),
        ("", None),
        ("__", None),
        ("a;drop", None),
    ],
)
def test_relation_name_is_snake_case_or_none(text: str, name: str | None) -> None:
    assert relation_name(text) == name


def test_name_key_folds_case_and_nothing_else() -> None:
    assert name_key("  Ａna\u3000MÜLLER ") == "ana müller"
    assert name_key("李明") == "李明"
    assert name_key("v1.2") != name_key("v12")


@pytest.mark.parametrize(
    "name",
    ["约翰·史密斯", "约翰 史密斯", "约翰•史密斯", "约翰\u3000史密斯", "约翰・史密斯", "约翰･史密斯",
     "约翰‧史密斯", "约翰．史密斯", "约翰.史密斯", " 约 翰 · 史密斯 ", "约翰∙⋅史密斯"],
)  # fmt: skip
def test_chinese_name_ignores_spaces_and_dots(name: str) -> None:
    assert name_key(name) == "约翰史密斯"


@pytest.mark.parametrize(
    ("one", "other"),
    [("Jo Ann", "Joann"), ("J.R. Smith", "JR Smith"), ("李 Ming", "李Ming"), ("张3 丰", "张3丰"),
     ("김 철수", "김철수"), ("北京-上海", "北京上海"), ("Ana·Maria", "Ana Maria")],
)  # fmt: skip
def test_latin_name_keeps_spaces_and_dots(one: str, other: str) -> None:
    assert name_key(one) != name_key(other)


SIGNS = "李明约翰々ジョガか゛゜ﾞｶ\u3099㍿ｲー〇김각\u1100\u1161aBß3 .·•‧∙⋅・･．\u3000\u00a0\n'-"


@given(st.text(st.characters(exclude_categories=("Cs",))) | st.text(SIGNS))
def test_name_key_is_idempotent(name: str) -> None:
    assert name_key(name_key(name)) == name_key(name)


@given(
    st.lists(st.text("李明约翰ジョー", min_size=1), min_size=1), st.text(" .·•・\u3000", min_size=1)
)
def test_name_parts_may_be_joined_in_any_way(parts: list[str], between: str) -> None:
    assert name_key(between.join(parts)) == name_key("".join(parts))


@pytest.mark.parametrize("name", ["李 明", "约翰·史密斯", "弗拉基米尔·弗拉基米罗维奇·普京"])
def test_spaced_names_are_found_in_a_text(name: str) -> None:
    for text in (name, f"我见过 {name}，很好。", f"Did {name} come?"):
        assert name_key(name) in name_keys(text, most=300)
        if len(name) < 12:
            assert name_key(name) in keys_in(text)


def test_number_of_keys_is_bounded() -> None:
    text = "中华人民共和国教育部 公布了名单。" * 200
    assert len(name_keys(text, most=40)) == 40
    assert name_keys(text, most=1) == ["中华人民共和国教育部"]


@pytest.mark.parametrize(
    ("name", "good"),
    [("x" * 255, True), ("x" * 256, False), ("ß" * 127, True), ("ß" * 128, False),
     ("", False), (" \t", False), ("a\x00b", False), ("李", True)],
)  # fmt: skip
def test_fits_accepts_names_alone(name: str, good: bool) -> None:
    assert fits(name) is good


def test_names_in_a_text_are_found_in_both_scripts() -> None:
    keys = keys_in("Where did Ana Müller's friend 李明 study at O'Neil & Sons?")

    assert {"ana müller", "李明", "o'neil & sons"} <= set(keys)
    assert keys == sorted(keys, key=len, reverse=True)
    assert len(keys_in("".join(map(chr, range(0x4E00, 0x4F00))))) == MOST_KEYS
    assert keys_in("") == []


def day(number: int) -> datetime:
    return datetime(2026, 1, number, tzinfo=UTC)


NOW = day(20)


@pytest.mark.parametrize(
    ("old", "new", "end"),
    [
        (RelationPeriod(None, None), RelationPeriod(None, None), NOW),
        (RelationPeriod(day(1), None), RelationPeriod(day(5), None), day(5)),
        (RelationPeriod(day(1), day(3)), RelationPeriod(day(5), None), None),
        (RelationPeriod(day(7), None), RelationPeriod(day(5), None), None),
        (RelationPeriod(day(5), None), RelationPeriod(day(5), None), day(5)),
        (RelationPeriod(day(1), None), RelationPeriod(day(5), day(6)), None),
        (RelationPeriod(day(1), day(6)), RelationPeriod(day(5), day(6)), day(5)),
        (RelationPeriod(day(1), None), RelationPeriod(day(25), None), day(25)),
    ],
)
def test_old_value_ends_where_the_new_begins(
    old: RelationPeriod, new: RelationPeriod, end: datetime | None
) -> None:
    assert ends_where(old, new, NOW) == end


def test_late_value_ends_where_the_next_begins() -> None:
    later = [
        RelationPeriod(day(9), None),
        RelationPeriod(day(7), None),
        RelationPeriod(day(2), None),
    ]

    assert cut_by(RelationPeriod(day(5), None), later) == day(7)
    assert cut_by(RelationPeriod(day(5), day(6)), later) == day(6)
    assert cut_by(RelationPeriod(None, None), later) is None
