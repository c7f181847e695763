"""What can have one value at a time: which attribute a stored sentence gives, and its value.

Reads sentences in the third person, however they came to be stored, so that a memory that
somebody saved by hand is comparable with an extracted one.
"""

import re
from typing import Final

from app.language.keyless.chinese_attributes import chinese_attribute
from app.language.keyless.chinese_words import simplified
from app.language.keyless.english_attributes import english_attribute
from app.language.keyless.patterns import compiled
from app.language.text.lazy_pattern import lazy_pattern
from app.language.text.normal_forms import has_cjk, normalise

_SUBJECT: Final = compiled(
    r"""
    (?:the|i|my|he|she|they|their|his|her|we|our|it|this|that|a|an|in|on|at)\b
    """,
)
_CHINESE_LEAD: Final = lazy_pattern(r"[^，。]{1,14}?，?(?=用户(?!的?(?:团队|公司)))")

# 用户在2026年11月2日那一周搬到了汉堡: when it was stands before what happened.
_CHINESE_WHEN: Final = lazy_pattern(
    r"(?<=用户)[在于]?(?:19|20)[0-9]{2}年(?:[0-9]{1,2}月(?:[0-9]{1,2}日)?)?(?:那一周|那个周末)?(?!生)"
)


def attribute_of(content: str) -> tuple[str, str] | None:
    """The attribute that a sentence gives, as `user.name`, and its value as written; or None.

    A sentence about somebody else than the user gives none, and neither does one longer than
    a few lines.
    """
    text = " ".join(content.split())
    if not text or len(text) > 300:
        return None
    if has_cjk(text):
        # People who save by hand leave the subject out, and say when first.
        later = _CHINESE_LEAD.match(simplified(text))
        return (
            chinese_attribute(text)
            or chinese_attribute(_CHINESE_WHEN.sub("", text, count=1))
            or chinese_attribute(text[later.end() :] if later else f"用户{text}")
            or (english_attribute(text) if text.startswith("The user") else None)
        )
    found = english_attribute(text)
    if found is None and re.match(r"[A-Z]?[a-z]+(?:s|ed|n)? ", text) and not _SUBJECT.match(text):
        found = english_attribute(f"The user {text[0].lower()}{text[1:]}")
    return found


def gives(memory_type: str, attribute: str) -> bool:
    """Tell whether a statement of a type says what is, and not what is wished or done often."""
    if memory_type in {"preference", "constraint"}:
        return attribute.startswith(("user.favourite", "user.language", "user.diet"))
    return memory_type in {"fact", "event", "correction", "context", "knowledge"}


def comparable(value: str) -> str:
    """The form in which two values are the same: "Munich" and "munich."."""
    return normalise(simplified(value)).strip(" .,;:!?\"'“”《》。，、").removeprefix("the ")
