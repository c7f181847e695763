"""我 and 本人 inside other words and titles are no persons."""

from datetime import UTC, datetime

import pytest

from app.language.keyless.attributes import attribute_of
from app.language.keyless.extractor import RulesExtractor
from app.language.llm.extractor import ConversationTurn, ExtractionRequest

NOW = datetime(2026, 3, 14, tzinfo=UTC)


async def said(text: str) -> list[str]:
    found = await RulesExtractor().extract(
        ExtractionRequest([ConversationTurn("m1", "user", text, NOW)])
    )
    return [one.content for one in found.proposals]


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("我是日本人。", "日本人"),
        ("我喜欢自我提升。", "自我提升"),
        ("我喜欢《我和我的祖国》这首歌。", "《我和我的祖国》"),
    ],
)
async def test_words_and_titles_stay_whole(text, kept):
    assert any(kept in content for content in await said(text))


def test_what_is_said_of_a_relative_is_no_attribute_of_the_user():
    assert attribute_of("用户老婆是日本人") is None
    assert attribute_of("用户是日本人")[:2] == ("user.origin", "日本")
