"""What a Chinese frame fits and yet nothing is kept of, and what is said twice."""

import pytest
from rules_support import proposed, said

DOUBTFUL = [
    # Hanging on another clause, or said to deny it.
    "省得我每次都找",
    "我会才怪",
    "我又不是医生",
    # Pointing at what nobody named.
    "我去过那里",
    "我讨厌这种感觉",
    # Of others, of everybody, of what is written somewhere.
    "会游泳的人不怕水",
    "老人不能久坐",
    "小王每天健身",
    "我们小区每天早上六点就开始施工",
    "我领导天天让我背锅",
    "岗位要求：三年以上经验，熟悉Linux",
    "用户每天早上喝绿茶",
    # Verdicts, complaints, errands, and plans for today.
    "在家办公效率低",
    "明年会更好",
    "总是连不上",
    "去了趟厕所",
    "我决定先睡了",
    "我目标是今晚把这章看完",
    # In fun or in play.
    "我是秦始皇，打钱",
    "逗你玩呢，我才十八",
    "从前有个书生，家住苏州，最爱养鸟",
    "现在开始你是我的健身教练，我叫阿强",
    # Wishes that come to nothing.
    "我想养猫，但是我妈不让",
    # Of what is at hand, of a worry, of this week, of nobody.
    "我更倾向于第二种写法",
    "我怕老师不高兴",
    "我每次考试都考砸",
    "我每天都做了好多练习题",
    "我周五要交作业",
    "我决定点外卖",
    "我打算用循环实现",
    "我也想学",
    "我不吃了",
    "人总是会变的",
    "张总对海鲜过敏",
    "银行每天五点关门",
    "我是受害者",
    "我想告诉老师",
    "我在北京玩了三天",
    "就当我是个普通用户",
    # No orders to an assistant.
    "每次听老师讲课，我都觉得好困",
    "以后多喝热水",
    "下次别再问了",
]
LOOSE = [
    ("我开网店的，每个月流水三四万", ["用户开网店的"]),
    ("我买了辆二手车，能装下全家", ["用户买了辆二手车"]),
    ("我带了个徒弟，姓罗，手稳得很", ["用户带了个徒弟"]),
    ("我开货车的，能独立装八吨", ["用户开货车的"]),
    ("我今年30岁，住在杭州", ["用户2026年30岁", "用户住在杭州"]),
    ("我不吃香菜，还喜欢爬山", ["用户不吃香菜", "用户还喜欢爬山"]),
]
INTRODUCED = [
    ("我刚认识一女孩，是护士，住海淀", []),
    ("我在追一部剧，女主是律师，三十岁，单身", []),
    ("给我妈买个手机，六十五岁，眼睛不好", []),
    ("我偶像是梅西，阿根廷人，今年三十八了", ["用户偶像是梅西"]),
    ("我租客是学生，不抽烟，挺安静", ["用户租客是学生"]),
    ("我公司在滨江，做游戏的", ["用户公司在滨江"]),
    ("我想给女朋友买礼物，属兔，喜欢手账", []),
    # Its name is the speaker's own, and so is what follows.
    ("我名字叫陈一诺，今年30岁", ["用户名字叫陈一诺", "用户2026年30岁"]),
    # What brings somebody up need not be kept itself.
    ("我家孩子今天开学，早上哭得不行", []),
    ("我今天看了一本书，叫《活着》", []),
    ("三月五号我爷爷走了，九十三岁", ["2026年三月五号用户爷爷走了"]),
    ("我认识一个人，做投资的", []),
    ("我看了个纪录片，讲渔民的，每天凌晨三点出海", []),
    ("我们班长，清华毕业，现在在谷歌", []),
    ("听我妈说我小时候特别皮，天天打架", []),
    ("我女儿不是过敏性鼻炎，是腺样体肥大", ["用户女儿是腺样体肥大"]),
]
ONCE = [
    ("我姓周，周可欣，你叫我可欣就好", ["用户叫周可欣"]),
    ("免贵姓段，朋友都喊我老段", ["用户免贵姓段"]),
    ("都奔五的人了，今年47", ["用户2026年47"]),
    ("车卖了，我现在没车了", ["用户车卖了"]),
]
ORDERS = [
    ("别给我推荐VS Code", ["用户希望助手别给用户推荐VS Code"]),
    ("跟我讲话请用粤语，我是香港人", ["用户希望助手跟用户讲话请用粤语", "用户是香港人"]),
    ("你以后直接说结论", ["用户希望助手以后直接说结论"]),
]


def contents(*turns: str) -> list[str]:
    return [content for _, content in said(*turns)]


@pytest.mark.parametrize("text", DOUBTFUL)
def test_of_a_doubtful_clause_nothing_is_kept(text):
    assert said(text) == []


@pytest.mark.parametrize(("text", "found"), LOOSE)
def test_a_later_clause_without_a_subject_counts_only_where_it_can_mean_the_speaker(text, found):
    assert contents(text) == found


@pytest.mark.parametrize(("text", "found"), INTRODUCED)
def test_a_clause_behind_somebody_or_something_new_is_not_about_the_speaker(text, found):
    assert contents(text) == found


@pytest.mark.parametrize(("text", "found"), ONCE)
def test_what_is_said_twice_in_a_message_is_kept_once(text, found):
    assert contents(text) == found


@pytest.mark.parametrize(("text", "found"), ORDERS)
def test_an_order_ends_where_the_speaker_speaks_of_themselves(text, found):
    assert contents(text) == found


def test_a_sentence_of_four_signs_is_made_long_enough_to_be_remembered():
    assert contents("我吃素") == ["用户本人吃素"]
    assert contents("我吃全素") == ["用户吃全素"]


def test_what_somebody_refuses_for_the_time_to_come_takes_nothing_back():
    (found,) = proposed("以后我不吃主食了")
    assert (found.memory_type, found.retracts) == ("decision", False)


@pytest.mark.parametrize("text", ["那个乐高班退了", "猫送人了", "我车卖了", "烟戒了快一百天了"])
def test_what_is_given_up_is_taken_back(text):
    (found,) = proposed(text)
    assert found.retracts


def test_a_yes_and_its_elaboration_are_one_statement():
    assert contents("A: 您好像不喝酒。", "嗯，滴酒不沾") == ["用户不喝酒"]
    assert contents("A: 您住在柏林对吧？", "对，不过我搬走了") == ["用户搬走了"]
    assert contents("A: 您住在柏林对吧？", "对，我还养了只狗") == ["用户住在柏林", "用户还养了只狗"]


def test_an_appointment_that_the_assistant_repeats_can_be_set_right():
    (found,) = proposed("A: 已记录：您的航班是18号下午。", "错了，是19号")
    assert (found.content, found.source_error) == (
        "用户的航班是19号下午",
        "用户的航班是18号下午",
    )
    (found,) = proposed("A: 您下周三的体检我已记下。", "不是周三，周四")
    assert found.content == "用户的体检是2026年3月19日"


SET_RIGHT = [
    (("A: 记下了，会议在周五上午。", "哎等等，挪到周四下午了"), "用户的会议是周四下午"),
    (("A: 您的会议是下午两点。", "改到三点了"), "用户的会议是下午三点"),
    (("A: 好的，您在招商银行。", "不是招行，浦发"), "用户在浦发"),
    (("纠正一下，我老家不是宜昌，是宜春",), "用户老家是宜春"),
    (("之前说我女儿五岁，说错了，是六岁",), "用户女儿六岁"),
]


@pytest.mark.parametrize(("turns", "mended"), SET_RIGHT)
def test_what_is_set_right_takes_the_place_of_what_was_said(turns, mended):
    (found,) = proposed(*turns)
    assert (found.memory_type, found.content) == ("correction", mended)


def test_a_correction_of_the_assistant_does_not_say_again_what_the_user_said():
    turns = ("我女儿在学钢琴", "A: 您的女儿在学小提琴，对吧？", "是钢琴，不是小提琴")
    assert contents(*turns) == ["用户女儿在学钢琴"]


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ("六岁了", []),
        ("在北京读大三", []),
        ("我儿子六岁了", ["用户儿子六岁了"]),
        ("六岁了。我三十五岁", ["用户三十五岁"]),
    ],
)
def test_what_answers_a_question_after_somebody_else_is_not_said_of_the_user(answer, found):
    assert contents("A: 您孩子多大了？", answer) == found


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("请问收件人是谁？", "王磊，住朝阳区"),
        ("您想让他几岁？", "三十岁，单身"),
        ("您是想给谁买？", "我妈，六十五岁"),
        ("您父亲有过敏史吗？", "对青霉素过敏"),
        ("您住在北京吧？", "不是，那是我弟"),
        ("您每天跑步吗？", "偶尔吧"),
    ],
)
def test_an_answer_that_names_somebody_else_or_nothing_says_nothing(question, answer):
    assert contents(f"A: {question}", answer) == []


def test_an_answer_about_oneself_is_kept():
    assert contents("A: 您多大了？", "六十岁了") == ["用户六十岁了"]


def test_traditional_signs_are_read_as_simplified_ones():
    assert contents("我閨蜜叫筱萱") == ["用户閨蜜叫筱萱"]
    assert contents("說真的我滿討厭排隊的") == ["用户滿討厭排隊的"]
