"""Counting tokens: the estimate beside a real tokenizer, messages, and which counter is opened."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.language.llm.media_tokens import UNKNOWN_IMAGE
from app.language.llm.tokens import (
    OVERHEAD,
    REMEMBERED,
    REMEMBERED_LENGTH,
    EstimatedTokens,
    TiktokenTokens,
    message_tokens,
    open_counter,
)
from app.language.llm.wordllama_embedder import WordLlamaEmbedder
from tests.support.token_samples import HELD_OUT, OTHER_SCRIPTS, SEEN

if TYPE_CHECKING:
    from tokenizers import Tokenizer


@pytest.fixture(scope="module")
def tokenizer() -> "Tokenizer":
    """The tokenizer of Llama 2, from the wheel of the local embedder."""
    return WordLlamaEmbedder.load()._tokenizer


def real(tokenizer: "Tokenizer", text: str) -> int:
    return len(tokenizer.encode(text, add_special_tokens=False).ids)


counter = EstimatedTokens()


class TestRememberedCounts:
    def test_the_same_text_has_the_same_number_when_it_comes_again(self) -> None:
        one = EstimatedTokens()
        texts = ["word " * 20, "12345" * 20, "", "茶" * 100]
        texts += ["a1 " * length for length in range(REMEMBERED_LENGTH // 3 - 1, 340)]

        first = [one.count(text) for text in texts]

        assert [one.count(text) for text in texts] == first
        assert first == [EstimatedTokens().count(text) for text in texts]
        assert len(set(first[:4])) == 4

    @pytest.mark.parametrize("texts", [REMEMBERED - 1, REMEMBERED, REMEMBERED + 1, 3 * REMEMBERED])
    def test_no_more_are_kept_than_the_limit(self, texts: int) -> None:
        one = EstimatedTokens()
        for number in range(texts):
            one.count(f"{number}")

        assert len(one._known) <= REMEMBERED
        assert one.count("12345 words") == EstimatedTokens().count("12345 words")

    @pytest.mark.parametrize(("length", "kept"), [(-1, 1), (0, 1), (1, 0)])
    def test_long_texts_are_not_kept(self, length: int, kept: int) -> None:
        one = EstimatedTokens()

        one.count("x" * (REMEMBERED_LENGTH + length))

        assert len(one._known) == kept


class TestEstimate:
    @pytest.mark.parametrize("text", HELD_OUT.values(), ids=HELD_OUT)
    def test_estimate_is_within_15_percent_of_a_tokenizer_on_texts_it_was_not_fitted_to(
        self, tokenizer: "Tokenizer", text: str
    ) -> None:
        assert counter.count(text) == pytest.approx(real(tokenizer, text), rel=0.15)

    @pytest.mark.parametrize("text", SEEN.values(), ids=SEEN)
    def test_estimate_still_is_on_those_it_was_tuned_with(
        self, tokenizer: "Tokenizer", text: str
    ) -> None:
        assert counter.count(text) == pytest.approx(real(tokenizer, text), rel=0.15)

    @pytest.mark.parametrize("name", OTHER_SCRIPTS)
    def test_other_scripts_are_within_a_factor_of_2(
        self, tokenizer: "Tokenizer", name: str
    ) -> None:
        text = OTHER_SCRIPTS[name]

        assert 0.5 <= counter.count(text) / real(tokenizer, text) <= 2

    def test_100_chinese_characters_are_not_29_tokens(self, tokenizer: "Tokenizer") -> None:
        """Four characters a token is far too few for Chinese."""
        text = SEEN["chinese-letter"][:100]

        assert counter.count(text) == pytest.approx(real(tokenizer, text), rel=0.15)
        assert counter.count(text) > 100

    def test_nothing_is_0_and_anything_is_1(self) -> None:
        assert counter.count("") == 0
        assert counter.count(" ") == counter.count("a") == 1

    @given(st.text(max_size=300), st.text(max_size=300))
    def test_more_text_is_never_fewer_tokens(self, one: str, other: str) -> None:
        both = counter.count(one + "\n" + other)

        assert both >= max(counter.count(one), counter.count(other))
        assert counter.count_many([one, other]) == [counter.count(one), counter.count(other)]

    def test_its_name_says_that_it_is_an_estimate(self) -> None:
        assert counter.name == "estimate/v1"


class TestMessages:
    def test_a_message_costs_more_than_its_text(self) -> None:
        assert message_tokens(counter, content="Hello") == OVERHEAD + counter.count("Hello")
        assert message_tokens(counter, content="") == OVERHEAD

    def test_calls_count_as_they_are_sent(self) -> None:
        """A message with nothing but a large call is not a small one."""
        call = {"id": "c1", "function": {"name": "save", "arguments": '{"text": "天气"}' * 50}}

        assert message_tokens(counter, content="", tool_calls=[call]) > 400

    def test_what_is_not_english_is_sent_as_it_is(self) -> None:
        """Escaped, Chinese arguments would count several times what they are."""
        text = "明天的天气怎么样" * 20
        call = {"id": "c1", "function": {"name": "save", "arguments": text}}

        assert message_tokens(counter, content="", tool_calls=[call]) < counter.count(text) + 40

    def test_an_image_counts_as_one_however_long_its_data(self) -> None:
        """Base64 is not text."""
        image = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 9999}}
        text = {"type": "text", "text": "What is this?"}

        both = message_tokens(counter, content="", content_parts=[text, image])

        assert both == OVERHEAD + counter.count("What is this?") + UNKNOWN_IMAGE

    def test_a_text_beside_its_data_counts_too(self) -> None:
        image = {"type": "image", "text": "green tea " * 100}

        assert message_tokens(counter, content="", content_parts=[image]) == (
            OVERHEAD + UNKNOWN_IMAGE + counter.count("green tea " * 100)
        )

    @pytest.mark.parametrize("kind", ["image", "image_url", "input_image"])
    def test_every_dialect_of_images_is_known(self, kind: str) -> None:
        assert message_tokens(counter, content="", content_parts=[{"type": kind}]) == (
            OVERHEAD + UNKNOWN_IMAGE
        )

    def test_other_parts_count_as_they_are_sent(self) -> None:
        part = {"type": "document", "title": "x", "data": {"text": "green tea " * 100}}

        assert message_tokens(counter, content="", content_parts=[part]) > 200

    def test_a_part_of_an_unknown_type_counts_as_its_placeholder(self) -> None:
        """That is all of it that is sent."""
        part = {"type": "video", "video": "A" * 100_000}

        assert message_tokens(counter, content="", content_parts=[part]) == (
            OVERHEAD + counter.count("[video]")
        )

    def test_a_block_of_anthropics_counts_as_it_is_sent_and_its_data_as_an_image(self) -> None:
        source = {"type": "base64", "media_type": "image/png", "data": "iVBOR" * 1000}
        content = [{"type": "text", "text": "green tea " * 100}]
        result = {"type": "tool_result", "tool_use_id": "c1", "content": content}
        shown = {**result, "content": [*content, {"type": "image", "source": source}]}

        without, with_image = (
            message_tokens(counter, content="", content_parts=[part]) for part in (result, shown)
        )

        assert without > 200
        assert UNKNOWN_IMAGE < with_image - without < UNKNOWN_IMAGE + 60

    def test_a_name_counts(self) -> None:
        assert message_tokens(counter, content="Hi", name="Ana Costa") > message_tokens(
            counter, content="Hi"
        )


class TestOpening:
    def test_without_the_package_it_is_the_estimate(self, tmp_path: Path) -> None:
        assert open_counter(tmp_path, "no_such_package").name == "estimate/v1"

    def test_without_a_folder_it_is_the_estimate(self) -> None:
        """tiktoken has a folder of its own then, and downloads what is not in it."""
        assert open_counter(None, "antigravity").name == "estimate/v1"

    def test_without_its_file_it_is_the_estimate(self, tmp_path: Path) -> None:
        """Nothing is downloaded: an installed package without its file is not even imported."""
        assert open_counter(tmp_path, "antigravity").name == "estimate/v1"

    def test_a_damaged_file_is_not_one(self, tmp_path: Path) -> None:
        """tiktoken would delete it and download another."""
        file = tmp_path / "fb374d419588a4632f3f557e76b4b70aebbca790"
        file.write_bytes(b"not an encoding")

        assert open_counter(tmp_path, "antigravity").name == "estimate/v1"
        assert file.read_bytes() == b"not an encoding"

    def test_tiktoken_counts_what_its_encoding_says(self) -> None:
        class Words:
            def encode_ordinary(self, text: str) -> list[int]:
                return [len(word) for word in text.split()]

        counting = TiktokenTokens(Words())

        assert counting.name == "tiktoken/o200k_base"
        assert counting.count_many(["one two", ""]) == [2, 0]
