"""Ids that callers choose: one rule, in the service and in the client."""

import unicodedata
from itertools import chain

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from app.platform.outbox.models import Event
from app.platform.values.fields import ID_PATTERN, LONGEST, OwnId, composed, is_own_id
from kemem.ids import checked_id, in_header, is_id

READ = TypeAdapter(OwnId).validate_python

CODES = tuple(chain(range(0x20000), range(0xE0000, 0xE0200)))
"""What lies beyond are ideographs, private and unassigned characters."""

GOOD = [
    "ana", "a", "a.b_c:d@e|f+g=h~i-j", "0" * 64, "张三", "José", "Zoë", "محمد", "שרה", "Ωμέγα",
    "नमस्ते", "山田 太郎", "a b", "🦊", "🦊" * 64, "名" * 64, "%2F", "%", "?", "#", "a?b#c&d=e", "\\",
    "-x", "...x", "**", "O'Neil", '"', "<b>", "{id}", ":", "~", "!",
]  # fmt: skip
BAD = {
    "empty": "", "a space": " ", "before": " a", "behind": "a ", "in a row": "a  b",
    "slash": "al/ice", "slash alone": "/", "dot": ".", "dots": "..", "three dots": "...",
    "star": "*", "line": "a\nb", "line at the end": "ana\n", "return": "a\rb", "tab": "a\tb",
    "NUL": "a\0b", "delete": "a\x7fb", "next line": "a\x85b", "line separator": "a\u2028b",
    "no-break space": "a\u00a0b", "ideographic space": "张\u3000三", "half a pair": "a\ud83d",
    "zero width space": "a\u200bb", "joiner": "a\u200db", "non-joiner": "a\u200cb",
    "byte order mark": "\ufeffa", "soft hyphen": "a\u00adb", "override": "a\u202eb",
    "isolate": "a\u2066b", "right-to-left mark": "a\u200fb", "variation": "❤\ufe0f",
    "tag": "a\U000e0041", "noncharacter": "a\uffff", "private": "a\ue000", "unassigned": "a\u0378",
    "replacement": "a\ufffd", "Hangul filler": "a\u3164", "empty Braille": "a\u2800",
    "grapheme joiner": "a\u034fb", "a mark first": "\u0301a",
    "long": "x" * 65, "long 名": "名" * 65,
}  # fmt: skip


@pytest.mark.parametrize("text", GOOD)
def test_an_id_is_text_of_any_script(text: str) -> None:
    assert READ(text) == text
    assert checked_id("user", text) == text


@pytest.mark.parametrize("text", BAD.values(), ids=BAD.keys())
def test_what_is_not_seen_or_cannot_stand_in_a_path_is_refused(text: str) -> None:
    with pytest.raises(ValidationError):
        READ(text)
    with pytest.raises(ValueError, match="cannot be the id of a user"):
        checked_id("user", text)


def test_two_forms_of_a_name_are_one_id() -> None:
    for name in ("Zoë", "각", "Việt", "ṩ"):
        apart = unicodedata.normalize("NFD", name)

        assert apart != name
        assert READ(apart) == READ(name) == checked_id("user", apart) == name
        assert not is_own_id(apart)


def test_the_length_is_that_in_nfc() -> None:
    longest = "ᾂ" * LONGEST
    apart = unicodedata.normalize("NFD", longest)
    assert len(apart) == 4 * LONGEST
    assert READ(apart) == longest
    # U+0958 is taken apart by NFC.
    assert len(READ("\u0958" * (LONGEST // 2))) == LONGEST
    for long in (apart + "x", "ᾂ" * (LONGEST + 1), "\u0958" * (LONGEST // 2) + "x"):
        with pytest.raises(ValidationError, match="at most 64"):
            READ(long)


def test_marks_of_a_long_text_are_not_put_into_order() -> None:
    long = "a" + "\u0301\u0316" * 200

    assert composed(long) == long


def test_every_character_that_unicode_calls_ignorable_is_refused() -> None:
    ignorable = regex.compile(r"\p{Default_Ignorable_Code_Point}")
    for code in CODES:
        text = f"a{chr(code)}b"
        if ignorable.search(text):
            assert not is_own_id(text), hex(code)
        if is_own_id(text):
            kind = unicodedata.category(chr(code))[0]
            assert kind not in {"C", "Z"} or chr(code) == " ", hex(code)


def test_the_client_knows_the_same_rule() -> None:
    for code in CODES:
        for text in (chr(code), f"a{chr(code)}b"):
            assert is_id(text) == is_own_id(composed(text)), hex(code)


def test_what_was_an_id_still_is_one() -> None:
    plain = regex.compile(ID_PATTERN)
    for code in range(128):
        for text in (chr(code), f"a{chr(code)}b"):
            if plain.fullmatch(text):
                assert READ(text) == text


@given(st.text(max_size=70))
def test_an_id_once_read_is_read_the_same(text: str) -> None:
    try:
        found = READ(text)
    except ValidationError:
        return
    assert READ(found) == found == unicodedata.normalize("NFC", text)
    assert READ(unicodedata.normalize("NFD", found)) == found
    assert in_header(found).isascii()


class TestEvents:
    def test_an_event_names_users_in_every_script(self) -> None:
        event = Event("memory.added", {"user_id": "张三", "session_id": "a b"}, user_id="张三")

        assert event.data["user_id"] == "张三"

    @pytest.mark.parametrize("name", ["content", "memory_id", "error_code"])
    def test_no_other_part_may_be_words(self, name: str) -> None:
        with pytest.raises(ValueError, match="ids, codes and numbers"):
            Event("memory.added", {name: "张三"})

    @pytest.mark.parametrize("text", ["al/ice", "名" * 65, "a\nb"])
    def test_and_what_is_no_id_is_no_user(self, text: str) -> None:
        with pytest.raises(ValueError, match="ids, codes and numbers"):
            Event("memory.added", {"user_id": text}, user_id=text)
