"""What images, audio and files take of a window: formulas, headers, and what is no header."""

import io
import wave
from base64 import b64decode, b64encode, urlsafe_b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pypdf import PdfWriter

from app.language.llm.content_parts import ContentPart
from app.language.llm.media_tokens import (
    BYTES_PER_PAGE,
    LOW_DETAIL,
    TILE,
    TOKENS_PER_PAGE,
    UNKNOWN_AUDIO,
    UNKNOWN_IMAGE,
    image_size,
    media_tokens,
    tile_tokens,
)
from tests.support.images import IMAGES


def image(**fields) -> ContentPart:
    return ContentPart("image_url", "image", **fields)


def file(data: bytes, media_type: str | None = None) -> ContentPart:
    return ContentPart("file", "file", data=b64encode(data).decode(), media_type=media_type)


class TestImages:
    @pytest.mark.parametrize(
        ("width", "height", "tiles"),
        [
            (1, 1, 1),
            (512, 512, 1),
            (513, 512, 2),
            (512, 513, 2),
            (768, 512, 2),
            # Scaled by its shorter side to 768 × 768.
            (1024, 1024, 4),
            # Into 2048 × 2048, then to 768 × 1536.
            (2048, 4096, 6),
            (2048, 768, 8),
            (2049, 768, 8),
            (100_000, 1, 4),
        ],
    )
    def test_tokens_follow_the_tiles(self, width: int, height: int, tiles: int) -> None:
        assert tile_tokens(width, height) == LOW_DETAIL + TILE * tiles

    @given(st.integers(1, 10**6), st.integers(1, 10**6))
    def test_no_image_takes_more_than_eight_tiles(self, width: int, height: int) -> None:
        assert LOW_DETAIL + TILE <= tile_tokens(width, height) <= LOW_DETAIL + 8 * TILE
        assert tile_tokens(width, height) == tile_tokens(height, width)

    @pytest.mark.parametrize("kind", IMAGES)
    def test_its_size_stands_in_its_header(self, kind: str) -> None:
        data = IMAGES[kind]
        safe = urlsafe_b64encode(b64decode(data)).decode()

        assert image_size(b64decode(data)) == (300, 200)
        assert media_tokens(image(data=data)) == LOW_DETAIL + TILE
        assert media_tokens(image(data=safe)) == LOW_DETAIL + TILE

    def test_a_photograph_has_its_size_behind_a_preview(self) -> None:
        jpeg = b64decode(IMAGES["jpeg"])
        preview = b"\xff\xe1\xff\xff" + b"x" * 0xFFFD

        assert image_size(jpeg[:2] + 2 * preview + jpeg[2:]) == (300, 200)

    @pytest.mark.parametrize("kind", IMAGES)
    @given(cut=st.integers(0, 700), changed=st.integers(0, 60), value=st.integers(0, 255))
    def test_a_damaged_one_is_counted_all_the_same(
        self, kind: str, cut: int, changed: int, value: int
    ) -> None:
        data = bytearray(b64decode(IMAGES[kind])[:cut])
        if changed < len(data):
            data[changed] = value

        tokens = media_tokens(image(data=b64encode(bytes(data)).decode()))

        assert LOW_DETAIL + TILE <= tokens <= LOW_DETAIL + 8 * TILE

    @pytest.mark.parametrize("data", [None, "", "AAAA", "é", "not Base64", "A" * 999])
    def test_one_of_unknown_size_has_a_flat_estimate(self, data: str | None) -> None:
        assert media_tokens(image(data=data, url="https://a.b/c.png")) == UNKNOWN_IMAGE

    def test_low_detail_is_the_same_for_every_image(self) -> None:
        assert media_tokens(image(url="https://a.b/c.png", detail="low")) == LOW_DETAIL
        assert media_tokens(image(data=IMAGES["png"], detail="low")) == LOW_DETAIL
        assert media_tokens(image(data=IMAGES["png"], detail="high")) == LOW_DETAIL + TILE


class TestAudio:
    @pytest.mark.parametrize(("rate", "channels"), [(8000, 1), (16_000, 1), (44_100, 2)])
    def test_a_wav_takes_10_tokens_a_second(self, rate: int, channels: int) -> None:
        written = io.BytesIO()
        with wave.open(written, "wb") as sound:
            sound.setnchannels(channels)
            sound.setsampwidth(2)
            sound.setframerate(rate)
            sound.writeframes(bytes(2 * channels * rate * 3))
        data = b64encode(written.getvalue()).decode()

        # The header itself is a moment of sound.
        assert media_tokens(ContentPart("input_audio", "audio", data=data)) in {30, 31}

    def test_another_is_taken_for_128_kbit_a_second(self) -> None:
        data = b64encode(b"\xff\xfb" + bytes(31_998)).decode()

        assert media_tokens(ContentPart("audio", "audio", data=data)) == 20
        assert media_tokens(ContentPart("audio", "audio", data="AAAA")) == 1
        assert media_tokens(ContentPart("audio", "audio", url="https://a")) == UNKNOWN_AUDIO


class TestFiles:
    def test_a_pdf_counts_by_its_pages(self) -> None:
        writer, written = PdfWriter(), io.BytesIO()
        for _ in range(3):
            writer.add_blank_page(200, 200)
        writer.write(written)

        assert media_tokens(file(written.getvalue())) == 3 * TOKENS_PER_PAGE

    @pytest.mark.parametrize(
        ("size", "pages"),
        [(1, 1), (BYTES_PER_PAGE, 1), (BYTES_PER_PAGE + 1, 2)],
    )
    def test_one_whose_pages_are_unknown_counts_by_its_bytes(self, size: int, pages: int) -> None:
        assert media_tokens(file(bytes(size), "application/zip")) == pages * TOKENS_PER_PAGE
        pdf = b"%PDF-".ljust(size, b"x")
        assert media_tokens(file(pdf, "application/pdf")) == pages * TOKENS_PER_PAGE

    def test_a_text_counts_as_one(self) -> None:
        assert media_tokens(file(b"word " * 800, "text/csv")) == 1000
        assert media_tokens(file(b"{}", "application/json")) == 1

    def test_one_known_by_its_id_counts_as_a_page(self) -> None:
        assert media_tokens(ContentPart("file", "file", file_id="file-1")) == TOKENS_PER_PAGE
