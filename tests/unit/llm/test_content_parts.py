"""What parts of a message are in every dialect, their placeholders, and data URLs in a text."""

from base64 import b64encode
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.language.llm.content_parts import (
    ContentPart,
    placeholders,
    read_part,
    readable_size,
    text_with_placeholders,
    without_data_urls,
    without_media,
)

DATA = b64encode(b"x" * 3000).decode()
PNG = f"data:image/png;base64,{DATA}"
PDF = f"data:application/pdf;base64,{DATA}"

SAME_IMAGE: list[dict[str, Any]] = [
    {"type": "image_url", "image_url": {"url": PNG}},
    {"type": "image_url", "image_url": PNG},
    {"type": "input_image", "image_url": PNG},
    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": DATA}},
    {"type": "image", "source_type": "base64", "mime_type": "image/png", "data": DATA},
    {"type": "image", "mime_type": "image/png", "base64": DATA},
]
SAME_FILE: list[dict[str, Any]] = [
    {"type": "file", "file": {"filename": "a.pdf", "file_data": PDF}},
    {"type": "input_file", "filename": "a.pdf", "file_data": PDF},
    {
        "type": "document",
        "title": "a.pdf",
        "source": {"type": "base64", "media_type": "application/pdf", "data": DATA},
    },
    {"type": "file", "mime_type": "application/pdf", "base64": DATA, "filename": "a.pdf"},
]


class TestReading:
    @pytest.mark.parametrize("part", SAME_IMAGE)
    def test_an_image_is_the_same_in_every_dialect(self, part: dict[str, Any]) -> None:
        read = read_part(part)

        assert (read.kind, read.media_type, read.data) == ("image", "image/png", DATA)
        assert (read.url, read.size) == (None, 3000)

    @pytest.mark.parametrize("part", SAME_FILE)
    def test_a_file_is_the_same_in_every_dialect(self, part: dict[str, Any]) -> None:
        read = read_part(part)

        assert (read.kind, read.media_type, read.data) == ("file", "application/pdf", DATA)
        assert (read.name, read.is_pdf) == ("a.pdf", True)

    def test_an_audio_says_its_format(self) -> None:
        read = read_part({"type": "input_audio", "input_audio": {"data": DATA, "format": "wav"}})

        assert (read.kind, read.media_type, read.size) == ("audio", "audio/wav", 3000)

    def test_where_a_part_is_otherwise_is_known(self) -> None:
        by_url = {"type": "image", "source": {"type": "url", "url": "https://a.b/c.png"}}
        detailed = {"type": "image_url", "image_url": {"url": "https://a.b/c", "detail": "low"}}

        assert read_part(by_url).url == "https://a.b/c.png"
        assert (read_part(detailed).url, read_part(detailed).detail) == ("https://a.b/c", "low")
        assert read_part({"type": "file", "file": {"file_id": "file-1"}}).file_id == "file-1"
        assert read_part({"type": "input_file", "file_url": "https://a.b/c"}).url == "https://a.b/c"

    def test_a_document_that_is_a_text_is_its_text(self) -> None:
        plain = {"type": "text", "media_type": "text/plain", "data": "Once."}
        blocks = {"type": "content", "content": [{"type": "text", "text": "Twice."}]}

        assert read_part({"type": "document", "source": plain}).text == "Once."
        assert read_part({"type": "document", "source": blocks}).text == "Twice."
        assert not read_part({"type": "document", "source": plain}).is_media

    @given(
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.text(max_size=20),
            lambda inner: st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    ["type", "text", "source", "image_url", "file", "input_audio", "url", "data",
                     "media_type", "format", "filename", "refusal", "content", "detail"]
                ),
                inner | st.sampled_from(["image", "document", "file", "text", "content", PNG]),
                max_size=6,
            ),
        )
    )  # fmt: skip
    def test_nothing_that_is_stored_fails_to_be_read(self, part: object) -> None:
        read = read_part(part)

        assert read.placeholder("m1").startswith("[")
        assert "\n" not in read.placeholder("m1")
        assert DATA not in read.placeholder("m1")


class TestPlaceholders:
    @pytest.mark.parametrize(
        ("part", "name"),
        [
            (SAME_IMAGE[0], "[image, png, 3 kB, message m1]"),
            (
                {"type": "input_audio", "input_audio": {"data": DATA, "format": "wav"}},
                "[audio, wav, 3 kB, message m1]",
            ),
            (SAME_FILE[0], "[file, a.pdf, 3 kB, message m1]"),
            (
                {"type": "image_url", "image_url": {"url": "https://a.b/c.png"}},
                "[image, https://a.b/c.png, message m1]",
            ),
            ({"type": "file", "file": {"file_id": "file-1"}}, "[file, file-1, message m1]"),
            ({"type": "video", "video": {"fps": 2}}, "[video, message m1]"),
            ({"type": "ho\nlo]", "x": 1}, "[ho lo), message m1]"),
            ({"type": "file", "file": {"filename": "x" * 200, "file_id": "f"}}, None),
        ],
    )
    def test_one_says_what_is_there_and_where(self, part: dict[str, Any], name: str) -> None:
        shown = read_part(part).placeholder("m1")

        assert shown == name if name else len(shown) < 130

    @pytest.mark.parametrize(
        ("size", "shown"),
        [
            (0, "0 bytes"),
            (999, "999 bytes"),
            (1000, "1 kB"),
            (999_499, "999 kB"),
            (999_500, "1.0 MB"),
            (2_340_000, "2.3 MB"),
        ],
    )
    def test_a_size_is_read_at_a_glance(self, size: int, shown: str) -> None:
        assert readable_size(size) == shown

    @given(st.binary(max_size=200))
    def test_the_size_is_that_of_the_data(self, data: bytes) -> None:
        encoded = b64encode(data).decode()

        assert (ContentPart("image", "image", data=encoded).size or 0) == len(data)

    def test_texts_and_placeholders_stand_in_order(self) -> None:
        parts = [
            {"type": "text", "text": "Before."},
            SAME_IMAGE[0],
            {"type": "text", "text": "After."},
            {"type": "refusal", "refusal": "No."},
        ]

        assert text_with_placeholders("", parts) == "Before.\n[image, png, 3 kB]\nAfter.\nNo."
        assert text_with_placeholders("Look:", parts).startswith("Look:\nBefore.")
        # Many send the same words as content and as parts.
        assert text_with_placeholders("Before.", parts).startswith("Before.\n[image")
        assert placeholders(parts, sized=False) == ["[image, png]"]

    def test_what_is_only_for_its_model_was_not_sent_by_anybody(self) -> None:
        parts = [{"type": "thinking", "thinking": "Hm."}, {"type": "tool_use", "id": "c1"}]

        assert placeholders(parts) == []
        assert text_with_placeholders("", parts) == "[thinking]\n[tool_use]"

    def test_media_are_replaced_and_nothing_else(self) -> None:
        text, by_url = (
            {"type": "text", "text": "See"},
            {"type": "image_url", "image_url": "http://a"},
        )
        other = {"type": "video", "x": 1}

        assert without_media([text, SAME_IMAGE[0], other, by_url], "m1") == [
            text,
            {"type": "text", "text": "[image, png, 3 kB, message m1]"},
            other,
            {"type": "text", "text": "[image, http://a, message m1]"},
        ]
        assert without_media([by_url, SAME_FILE[0]], "m1", inline_only=True) == [
            by_url,
            {"type": "text", "text": "[file, a.pdf, 3 kB, message m1]"},
        ]


class TestDataUrls:
    @pytest.mark.parametrize(
        ("text", "shown"),
        [
            (f"Look ![a]({PNG}) here", "Look ![a]([image, png, 3 kB]) here"),
            (f'<img src="{PNG}">', '<img src="[image, png, 3 kB]">'),
            (f"{PDF} and {PNG}。好", "[file, pdf, 3 kB] and [image, png, 3 kB]。好"),
            (f"data:text/plain;charset=utf-8;base64,{DATA}", "[file, plain, 3 kB]"),
            (f"data:;base64,{DATA}", "[file, 3 kB]"),
            (
                "data:image/png;base64," + "A" * 76 + "\r\n" + "A" * 76 + "\nDone",
                "[image, png, 114 bytes]\nDone",
            ),
            ("Say ;base64, data:image/svg+xml,%3C", "Say ;base64, data:image/svg+xml,%3C"),
            ("", ""),
        ],
    )  # fmt: skip
    def test_one_is_named_and_the_text_around_it_stays(self, text: str, shown: str) -> None:
        assert without_data_urls(text) == shown

    @given(st.text(max_size=100), st.text(max_size=100), st.binary(min_size=100, max_size=300))
    def test_no_data_are_left(self, before: str, after: str, data: bytes) -> None:
        encoded = b64encode(data).decode()

        left = without_data_urls(f"{before} data:image/png;base64,{encoded} {after}")

        assert encoded not in left
        assert before in left
        assert after in left

    def test_a_megabyte_takes_no_time_to_name(self) -> None:
        """It is read with each append."""
        text = "data:image/png;base64," + "A" * 1_000_000

        assert without_data_urls(text * 2).startswith("[image, png, 750 kB]")
