"""What an ending said in Chinese ends, and what it leaves."""

import pytest
from rules_support import proposed

from app.language.keyless.reconciler import decide
from app.language.llm.reconciler import Neighbour, ReconcileQuestion

ENDED = [
    ("我从阿里辞职了", "用户在阿里上班"),
    ("我辞职了", "用户在阿里工作"),
    ("我被裁了", "用户在京东工作"),
    ("我跟老公离婚了", "用户老公叫李强"),
    ("我离婚了", "用户已婚"),
    ("我和小李分手了", "用户女朋友叫小李"),
    ("我家狗没了", "用户养了一只狗"),
    ("我家猫豆豆去世了", "用户家猫叫豆豆"),
    ("我搬走了", "用户住在北京"),
    ("我从北京搬走了", "用户住在北京朝阳"),
    ("我戒咖啡了", "用户每天喝两杯咖啡"),
    ("我戒烟了", "用户一天抽一包烟"),
    ("我把车卖了", "用户有一辆车"),
    ("我又开始吃肉了", "用户本人吃素"),
    ("我有三个孩子", "用户有两个孩子"),
    ("我从Java转到Go了", "用户主要用Java"),
    ("我换到Emacs了", "用户用Vim"),
]
NOT_ENDED = [
    ("我从阿里辞职了", "用户在腾讯工作"),
    ("我2010年辞职了", "用户在腾讯工作"),
    ("我和小李分手了", "用户女朋友叫小王"),
    ("我家猫豆豆去世了", "用户家猫叫花花"),
    ("我从北京搬走了", "用户住在上海"),
    ("我戒烟了", "用户喜欢喝酒"),
    ("我把车卖了", "用户有一架钢琴"),
    ("我有三个孩子", "用户有两只猫"),
    ("我换到Emacs了", "用户用Python"),
]


def decided(text: str, old: str) -> str:
    """What becomes of the first proposal of a text beside one memory."""
    found = proposed(text)[0]
    return decide(ReconcileQuestion(found, [Neighbour("mem_1", old, "fact", 1.0, 0.7)])).event


@pytest.mark.parametrize(("text", "old"), ENDED)
def test_an_ending_in_chinese_takes_the_place_of_what_it_ends(text, old):
    assert decided(text, old) == "SUPERSEDE"


@pytest.mark.parametrize(("text", "old"), NOT_ENDED)
def test_an_ending_in_chinese_leaves_what_it_does_not_end(text, old):
    assert decided(text, old) == "ADD"


def test_what_is_done_no_more_is_deleted():
    assert decided("我不养狗了", "用户养了一只狗") == "DELETE"
    assert decided("我不喝咖啡了", "用户每天早上喝咖啡") == "DELETE"
    assert decided("我不喝咖啡了", "用户弟弟每天喝咖啡") == "NONE"
