"""Sentences people might say, English and Chinese, and questions about them; from a seed."""

from itertools import count
from random import Random

_WHO = (
    "She", "He", "My sister", "The customer", "Ana", "Our neighbour", "The team lead", "Grandpa",
    "My colleague Li", "The new intern",
)  # fmt: skip
_LIKES = (
    "drinks", "prefers", "orders", "recommends", "cannot stand", "always asks for", "cooks with",
    "is allergic to", "collects recipes for", "stopped buying",
)  # fmt: skip
_WHAT = (
    "green tea", "dark roast coffee", "oat milk", "spicy noodles", "sourdough bread", "mango ice",
    "grilled fish", "lentil soup", "peanut butter", "fresh basil", "cold brew", "rice porridge",
)  # fmt: skip
_WHEN = (
    "in the morning", "after the gym", "on Sundays", "before long flights", "when it rains",
    "during code reviews", "at the office", "with the children", "late at night", "in winter",
)  # fmt: skip
_WHY = (
    "because it helps to focus", "since moving to Lisbon", "as the doctor advised",
    "and has done so for years", "though it is expensive", "to save time for the violin",
)  # fmt: skip

_ZH_WHO = ("她", "他", "我妹妹", "客户王女士", "邻居", "新来的同事", "项目经理", "爷爷")
_ZH_LIKES = ("喜欢", "不喜欢", "经常点", "推荐大家试试", "已经不再买", "对外总是提到")
_ZH_WHAT = ("绿茶", "黑咖啡", "燕麦奶", "辣面条", "全麦面包", "芒果冰", "烤鱼", "小米粥", "花生酱")
_ZH_WHEN = ("早上起床以后", "健身之后", "每个周日", "出差之前", "下雨的时候", "加班到很晚的时候")

_QUESTIONS = (
    "What does {who} drink {when}?",
    "Does {who} like {what}?",
    "Why {what} {when}?",
    "Tell me what to cook for {who}, maybe {what}",
)


def sentences(seed: int) -> list[str]:
    """100,000 different statements, a quarter of them Chinese, in no order."""
    random = Random(seed)
    kept: dict[str, None] = {}
    for number in count():
        if len(kept) == 100_000:
            break
        kept[_chinese(random) if number % 4 == 0 else _english(random)] = None
    return list(kept)


def questions(seed: int, number: int) -> list[str]:
    """Questions as they come before a turn, one in five in Chinese."""
    random = Random(seed)
    asked = []
    for place in range(number):
        if place % 5 == 0:
            asked.append(f"{_one(random, _ZH_WHO)}{_one(random, _ZH_WHEN)}喝什么?")
        else:
            asked.append(
                _one(random, _QUESTIONS).format(
                    who=_one(random, _WHO), what=_one(random, _WHAT), when=_one(random, _WHEN)
                )
            )
    return asked


def _one(random: Random, words: tuple[str, ...]) -> str:
    return random.choice(words)


def _english(random: Random) -> str:
    parts = (_WHO, _LIKES, _WHAT, _WHEN, _WHY)
    said = " ".join(_one(random, words) for words in parts)
    return f"{said}, since 19{random.randint(60, 99)}"


def _chinese(random: Random) -> str:
    parts = (_ZH_WHEN, _ZH_WHO, _ZH_LIKES, _ZH_WHAT)
    said = "".join(_one(random, words) for words in parts)
    return f"{said},第{random.randint(1, 900)}次说起"
