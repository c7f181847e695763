"""How what somebody says in Chinese is told in the third person."""

import re
from typing import Final

from app.language.keyless.chinese_words import simplified
from app.language.keyless.patterns import exact
from app.language.keyless.statements import EXPLICIT, Statement
from app.language.text.lazy_pattern import lazy_pattern

SHORTEST: Final = 5
"""Signs of a sentence that the gate of memories takes for one."""


def wanted(order: str, confidence: float = EXPLICIT) -> Statement:
    """A standing order: what the assistant is to do from now on."""
    order = re.sub(r"^(?:请|麻烦|你|您)+", "", order)
    kind = (
        "constraint"
        if re.search(r"千万|禁止|必须|务必|永远不|绝不|别|不要|不许|甭|请勿", simplified(order))
        else "preference"
    )
    return Statement(f"用户希望助手{third_person(order, subject=False)}", kind, confidence)


_OURS: Final = exact(
    r"""
        (?:我们|我們|咱们|咱們)的?(?=
            公司|团队|團隊|项目|專案|組|组|部门|部門|班|学校|學校|产品|產品|后端|後端|前端|服务|
            服務|系统|系統|代码|代碼|接口|平台|发布|發布|財年|财年
        )
    """
)
_PERSONS: Final = (
    (exact(r"我自己|我本人|我这个?人|我這個?人|本人|在下|鄙人|本宝宝|小弟(?!弟)|晚辈"), "我"),
    (_OURS, "用户的"),
    (exact(r"我们(?!家)|咱们(?!家)|我們(?!家)|我俩|咱俩"), "用户和同伴"),
    (exact(r"我们家|我們家|咱们家"), "用户家"),
    (exact(r"咱|俺|我"), "用户"),
    (exact(r"你们|您|你|妳"), "助手"),
)


# Titles, quotations, and words in which 我 or 本人 is part of another: 自我提升, 日本人.
_KEPT: Final = lazy_pattern(
    r"《[^》]*》|“[^”]*”|「[^」]*」|『[^』]*』|\"[^\"]*\"|日本人|自我|忘我|敌我|真我|超我|我行我素"
)


def third_person(text: str, *, subject: bool = True) -> str:
    """From "I" and "you" into the third person; "我" at the beginning is the subject."""
    told, end = [], 0
    for kept in _KEPT.finditer(text):
        told += [_turned(text[end : kept.start()]), kept[0]]
        end = kept.end()
    text = "".join([*told, _turned(text[end:])])
    if text.startswith("用户和同伴"):
        text = text.replace("用户和同伴", "用户", 1)
    if not subject:
        return text
    told_whole = text if "用户" in text else f"用户{text}"
    if len(told_whole) < SHORTEST and told_whole.startswith("用户"):
        # "用户吃素" is too short to be remembered.
        return f"用户本人{told_whole[2:]}"
    return told_whole


def _turned(text: str) -> str:
    for pattern, said in _PERSONS:
        text = pattern.sub(said, text)
    return text
