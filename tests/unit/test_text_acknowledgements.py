"""What only keeps a conversation going is trivial, in either language; anything more is not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.language.text.traits import LONGEST, is_trivial

TRIVIAL = [
    "ok", "OK!", "Okay.", "okkkk", "k", "thanks", "Thanks!!!", "THANK YOU",
    "thank you so much 🙏",
    "thanks a lot", "thx", "ty :)", "Thanks for your help!", "great, thanks",
    "Perfect, thank you!",
    "hi", "Hello there!", "hey", "good morning", "bye", "see you tomorrow", "yes", "yes please",
    "No, thanks.", "yeahhh", "sure", "got it", "I see...", "makes sense", "sounds good 👍",
    "cool",
    "lol", "hahaha", "haha ok", "hmm", "wow!", "go on", "please continue", "that’s fine", "np",
    "you're welcome", "+1", "👍", "🎉🎉", "❤️", "...", "?", "", "   ", "\n", "ＯＫ", "ok ok ok",
    "Good night! Bye bye", "ｔｈａｎｋｓ", "okay great",
    "好", "好的", "好的好的", "好的！", "好吧。", "行", "可以", "嗯", "嗯嗯", "嗯嗯嗯嗯",
    "哦", "是的", "对对对",
    "没错", "没问题", "谢谢", "謝謝", "谢谢你！", "非常感谢🙏", "多谢啦", "辛苦了", "收到",
    "明白了", "明白，谢谢", "知道了",
    "知道了，謝謝您", "瞭解", "你好", "您好！", "早上好", "晚安", "再见", "拜拜", "哈哈哈哈",
    "太好了", "太棒了👏", "厉害",
    "继续", "请继续", "然后呢？", "不用了，谢谢", "不客气", "沒問題", "對", "666",
    "好，谢谢，再见", "ok好的", "OK，谢谢",
]  # fmt: skip

TELLING = [
    "ok, I moved to Munich", "thanks, I am vegetarian now", "hi, I'm Ana", "yes, two kids",
    "no, I live in Bonn", "that's wrong", "good coffee", "hello world program in Rust", "42", "6",
    "Munich", "call me Kim", "I prefer tea", "my hi-fi", "thanks to my wife", "ok google",
    "great wall", "sure, use Postgres", "what time is it", "right-handed", "no sugar", "tea",
    "not ok", "never", "1️⃣", "morning person", "Yes, München", "はい、東京です", "да",
    "好的，我搬到慕尼黑了", "谢谢，我吃素", "你好，我是李雷", "对，两个孩子", "不对",
    "不是这样", "我喜欢喝茶", "不好", "好人",
    "是老师", "行李", "三个", "上海", "对花生过敏", "嗯，我住在上海", "谢霆锋", "早上七点",
    "你说错了", "可以叫我小李", "不要",
    "收到了三封信", "哈尔滨", "好，用中文",
]  # fmt: skip


class TestEitherLanguage:
    @pytest.mark.parametrize("text", TRIVIAL)
    def test_an_acknowledgement_is_trivial(self, text: str) -> None:
        assert is_trivial(text)

    @pytest.mark.parametrize("text", TELLING)
    def test_what_tells_something_is_not(self, text: str) -> None:
        assert not is_trivial(text)


class TestLimits:
    @pytest.mark.parametrize(
        ("size", "trivial"), [(LONGEST - 1, True), (LONGEST, True), (LONGEST + 1, False)]
    )
    def test_a_long_text_is_never_trivial(self, size: int, trivial: bool) -> None:
        assert is_trivial("!" * (size - 2) + "ok") is trivial

    def test_space_around_does_not_count(self) -> None:
        assert is_trivial(" " * LONGEST + "ok" + "\n" * LONGEST)


class TestAnyText:
    @given(st.text())
    def test_none_is_too_strange(self, text: str) -> None:
        assert is_trivial(text) in {True, False}

    @given(st.lists(st.sampled_from([text for text in TRIVIAL if len(text) < 15]), max_size=4))
    def test_a_row_of_them_says_no_more(self, texts: list[str]) -> None:
        assert is_trivial(", ".join(texts))

    @given(st.sampled_from(TRIVIAL), st.sampled_from(["Munich", "慕尼黑", "vegan", "三月"]))
    def test_a_word_with_content_makes_it_telling(self, text: str, word: str) -> None:
        assert not is_trivial(f"{text} {word}")
