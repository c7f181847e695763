"""What is read from Chinese talk, simplified and traditional, and what is left alone."""

from time import perf_counter

import pytest
from rules_support import proposed, request, said

from app.language.keyless.extractor import RulesExtractor

FACTS = [
    ("我住在慕尼黑。", "fact", "用户住在慕尼黑"),
    ("我叫王小明", "fact", "用户叫王小明"),
    ("我不吃羊肉", "constraint", "用户不吃羊肉"),
    ("我喜欢茶、狗和爵士乐", "preference", "用户喜欢茶、狗和爵士乐"),
    ("我比較喜歡靠窗的位子", "preference", "用户比較喜歡靠窗的位子"),
    ("我会弹古筝", "skill", "用户会弹古筝"),
    ("我每天六点起床", "habit", "用户每天六点起床"),
    ("我打算明年学希腊语", "goal", "用户打算2027年学希腊语"),
    ("我们决定用Kafka了", "decision", "用户决定用Kafka了"),
    ("我太太叫周敏", "fact", "用户太太叫周敏"),
    ("我2012年毕业于复旦大学", "event", "用户2012年毕业于复旦大学"),
    ("以后请用德语回答", "preference", "用户希望助手以后请用德语回答"),
    ("预算最多五千块", "constraint", "用户预算最多五千块"),
]
TALK = [
    "我住在哪里？",
    "如果我住在罗马，我天天吃冰淇淋",
    "我好累",
    "谢谢，帮大忙了",
    "你来扮演飞行员，我叫小鹰",
    "翻译：我住在罗马，我喜欢猫。",
    "他说他住在罗马",
    "我朋友住在罗马",
    "我可能会搬去罗马",
    "我以前住在罗马",
    "我有个问题想问",
    "我喜欢你的回答",
    "你知道我住哪吗",
]

WORDINGS = [
    # Without "I", as people write in chat.
    ("刚搬来昆明，还在适应", "fact", "用户刚搬来昆明"),
    ("在大连待了快八年了", "fact", "用户在大连待了快八年了"),
    ("土生土长的兰州人", "fact", "用户土生土长的兰州人"),
    ("会拉一点二胡", "skill", "用户会拉一点二胡"),
    ("晚饭后都要散步半小时", "habit", "用户晚饭后都要散步半小时"),
    ("打算年底考教师资格证", "goal", None),
    # By other names for oneself.
    ("俺姓赵", "fact", "用户本人姓赵"),
    ("咱家养了三只鸭子", "fact", "用户家养了三只鸭子"),
    # With a pause behind the subject, or a label before the value.
    ("我这个人吧，最烦排队", "preference", "用户最烦排队"),
    ("生日嘛，农历九月初九", "fact", "用户生日是农历九月初九"),
    # A topic and its comment.
    ("韭菜一概不碰", "constraint", "用户韭菜一概不碰"),
    ("螃蟹我一吃就起疹子", "constraint", "螃蟹用户一吃就起疹子"),
    ("豆汁儿yyds", "preference", "用户豆汁儿yyds"),
    ("书法我挺在行", "skill", "书法用户挺在行"),
    # With a reason, in brackets, before a question, beside a task.
    ("因为我住郊区，所以通勤特别远", "fact", "用户住郊区"),
    ("推荐几家馆子，我不吃香菜", "constraint", "用户不吃香菜"),
    ("我有高血压能喝咖啡吗", "constraint", "用户有高血压"),
    ("给我六岁的儿子挑本书", "fact", "用户的儿子六岁"),
    ("作为一名护士，我经常倒班", "fact", "用户是护士"),
    # People of theirs.
    ("我妹夫在检察院上班", "fact", "用户妹夫在检察院上班"),
    ("闺女今年上初二", "fact", None),
    # Limits with a figure or a date.
    ("装修撑死十万", "constraint", "用户装修撑死十万"),
    ("稿子得在六月一号前交", "constraint", None),
    # Standing orders and things to keep, wherever they stand.
    ("安排行程，记得我晕船", "constraint", "用户本人晕船"),
    ("我的储物柜密码锁是红色的，记一下", "fact", "用户的储物柜密码锁是红色的"),
]
LEFT_ALONE = [
    "搭不搭呀",
    "你就当自己是导演，我来试镜",
    "写个文案：我在青岛开了家咖啡馆",
    "真想辞职去环岛",
    "要是能养只猫就好了",
    "听说我们楼下要开超市",
    "我刚才在开会",
    "我决定不了，你选吧",
    "那个演员是湖南人，今年三十八",
    "这家酒店的早餐不错",
    "我孩子的同学过敏",
    "机票最便宜是几月份",
    "我朋友会弹吉他",
    "我可太喜欢半夜加班了",
]


@pytest.mark.parametrize(("text", "kind", "content"), FACTS)
def test_what_people_say_of_themselves_becomes_a_sentence_about_the_user(text, kind, content):
    assert said(text) == [(kind, content)]


@pytest.mark.parametrize("text", TALK)
def test_chinese_talk_yields_nothing(text):
    assert said(text) == []


def test_several_facts_between_commas_are_several_proposals():
    assert said("我今年30岁，住在杭州，喜欢爬山") == [
        ("fact", "用户2026年30岁"),
        ("fact", "用户住在杭州"),
        ("preference", "用户喜欢爬山"),
    ]


def test_what_is_to_be_remembered_in_chinese_is_certain():
    (found,) = proposed("请记住：我的柜子是41号")
    assert (found.content, found.confidence) == ("用户的柜子是41号", 1.0)


def test_a_chinese_correction_names_the_mistake():
    (found,) = proposed("A: 您住在柏林对吧？", "不对，我住在汉堡，不是柏林")
    assert (found.memory_type, found.content, found.source_error, found.attribute) == (
        "correction",
        "用户住在汉堡",
        "用户住在柏林",
        "user.residence",
    )


def test_a_chinese_change_over_time_is_no_correction():
    (found,) = proposed("我上个月搬到慕尼黑了")
    assert (found.memory_type, found.attribute) == ("fact", "user.residence")
    assert found.valid_from is not None
    assert found.valid_from.date().isoformat() == "2026-02-01"


def test_what_holds_no_longer_is_retracted_in_chinese():
    (found,) = proposed("我不再吃素了")
    assert (found.retracts, found.content) == (True, "用户不再吃素了")


def test_what_the_user_affirms_in_chinese_counts_with_both_turns_as_evidence():
    (found,) = proposed("A: 您住在柏林对吧？", "对，没错")
    assert (found.content, found.evidence) == ("用户住在柏林", ("msg_1", "msg_2"))
    assert said("A: 您住在柏林对吧？", "先回答我的问题") == []


def test_what_a_team_does_is_for_the_project_in_chinese_too():
    (found,) = proposed("我们项目用Go", scopes=("user", "project"))
    assert (found.scope, found.content) == ("project", "用户的项目用Go")


async def test_a_chinese_session_teaches_in_chinese():
    extraction = await RulesExtractor().summarise(request("我们决定用Kafka", "我打算学希腊语"))
    (found,) = extraction.proposals
    assert found.content == "本次会话：用户决定用Kafka；用户打算学希腊语。"
    assert found.memory_type == "experience"


@pytest.mark.parametrize(("text", "kind", "content"), WORDINGS)
def test_people_say_the_same_in_many_wordings(text, kind, content):
    found = said(text)
    assert kind in {one for one, _ in found}
    assert content is None or (kind, content) in found


@pytest.mark.parametrize("text", LEFT_ALONE)
def test_what_only_sounds_like_a_statement_yields_nothing(text):
    assert said(text) == []


@pytest.mark.parametrize("word", ["每天", "一定要", "哈", "从来", "我不", "上个月", "现在"])
def test_a_word_said_over_and_over_is_read_in_no_time(word):
    begin = perf_counter()
    said(word * (390 // len(word)))
    assert perf_counter() - begin < 1
