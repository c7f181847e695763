"""Which parts of a Chinese message become clauses, and what is known of them."""

import time

import pytest

from app.language.keyless.chinese_clauses import chinese_clauses
from app.language.keyless.chinese_cues import cues_of, subject_of
from app.language.keyless.classifier import classifier
from app.language.keyless.english_clauses import ASKED


def told(text: str, before: str | None = None) -> list[str]:
    return [clause.text for clause in chinese_clauses(text, before)]


def test_places_are_those_of_the_message():
    text = "嗯，我们家的狗叫豆豆！你呢？我在鐵路局上班。"
    for clause in chinese_clauses(text, None):
        assert text[clause.start : clause.end] == clause.text


@pytest.mark.parametrize(
    "text",
    [
        "你知道做操有什么好处吗？",
        "请问怎么用Python合并两个字典？",
        "帮我写一份辞职信，语气客气一点。",
        "写一首关于秋天的诗，不超过八句",
        "能不能再详细一点",
        "我妈最喜欢吃的东西是什么？",
        "老师会不会不相信我",
        "为什么他总是叫我的绰号",
        "你觉得哪一个好",
        "幫我把這段話翻譯成日文。",
    ],
)
def test_questions_and_requests_are_no_clauses(text):
    assert told(text) == []


@pytest.mark.parametrize(
    "text", ["如果我去北京，我就住在海淀。", "万一我没考上怎么办", "要是我有钱的话，我买三套房。"]
)
def test_hypotheses_are_no_clauses(text):
    assert told(text) == []


@pytest.mark.parametrize(
    "text", ["嗯嗯，好的！", "谢谢你帮了我这么多", "对啊！", "你真厉害！", "😀", ""]
)
def test_acknowledgements_are_no_clauses(text):
    assert told(text) == []


def test_request_is_cut_out_of_what_is_told():
    assert told("我下周去日本玩帮我列个清单") == ["我下周去日本玩"]
    assert told("我妈妈60岁有糖尿病能吃西瓜吗？") == ["我妈妈60岁有糖尿病"]
    assert told("小李说他后天生日，送什么好？") == ["小李说他后天生日"]


def test_dropped_request_takes_what_follows_until_somebody_tells_again():
    assert told("帮我写封邮件，语气正式，两百字左右，我叫周舟") == ["我叫周舟"]


@pytest.mark.parametrize(
    ("text", "clauses"),
    [
        ("你还记得我搬到柏林了吗？", ["我搬到柏林了"]),
        ("我刚搬到柏林了，你能推荐一家面包店吗？", ["我刚搬到柏林了"]),
        ("你知道夏天是我最喜欢的季节吗？", ["夏天是我最喜欢的季节"]),
        ("帮我规划一下，税后一万二，房租三千一。", ["税后一万二，房租三千一"]),
        ("最近在帮我爷爷写回忆录", ["最近在帮我爷爷写回忆录"]),
    ],
)
def test_what_questions_and_requests_take_for_granted_is_told(text, clauses):
    assert told(text) == clauses
    inside = "inside" in chinese_clauses(text, None)[0].cues
    assert inside == text.startswith("你")


@pytest.mark.parametrize(
    "text",
    [
        "为什么我住在柏林呢？",
        "你觉得我住在柏林吗？",
        "你知道我住在哪里吗？",
        "你知道我是不是过敏吗？",
        "你记得我妈妈的名字吗？",
        "如果我住在柏林呢？",
        "帮我爷爷写回忆录",
        "现在帮我爷爷写回忆录",
        "帮我妈妈订一张去北京的票",
        "帮我女儿取个名字",
    ],
)
def test_what_is_asked_or_asked_for_is_not_told(text):
    assert told(text) == []


def test_interjection_is_not_cut_out_of_a_word():
    assert told("哈尔滨有我外婆的老房子。哈喽，我叫王芳。") == [
        "哈尔滨有我外婆的老房子",
        "我叫王芳",
    ]
    assert told("哇塞，我考上了清华！") == ["我考上了清华"]


def test_reason_stays_with_what_it_is_a_reason_of():
    assert told("我不敢看恐怖片，因为我会哭。") == ["我不敢看恐怖片，因为我会哭"]


def test_another_subject_begins_a_clause_after_a_short_one():
    assert told("我叫李雷，是一名护士，我妹妹住在成都。")[1:] == ["是一名护士", "我妹妹住在成都"]


def test_parts_that_stood_apart_are_joined():
    assert told("上上个月，你知道吗，在花市买了两盆兰花") == ["上上个月 … 在花市买了两盆兰花"]


def test_connectives_and_marks_are_trimmed():
    assert told("对了，不过其实我不吃香菜……") == ["我不吃香菜"]


def test_speaker_who_tells_again_begins_another_clause():
    assert told("我叫李明，今年28岁，住在北京，在一家银行工作") == [
        "我叫李明",
        "今年28岁",
        "住在北京",
        "在一家银行工作",
    ]


def test_what_is_said_of_another_person_stays_together():
    assert told("我妈妈六十岁，住在苏州，有高血压") == ["我妈妈六十岁，住在苏州，有高血压"]


def test_spaces_between_characters_are_commas():
    assert told("我养了一只猫 我天天喂它") == ["我养了一只猫", "我天天喂它"]
    assert told("后端用的是 FastAPI 0.110") == ["后端用的是 FastAPI 0.110"]


def test_numbers_and_times_stay_whole():
    assert told("我每天7:40出门，房租是3,500块") == ["我每天7:40出门，房租是3,500块"]
    assert told("我跑了3.5公里") == ["我跑了3.5公里"]


def test_pronoun_has_the_clause_before_as_lead():
    first, second, third = chinese_clauses("我姐姐在医院当护士。她经常上夜班！她属马。", None)
    assert (first.lead, second.lead, third.lead) == ("", first.text, first.text)
    assert second.content == "我姐姐在医院当护士。她经常上夜班"


def test_dropped_subject_after_another_person_has_a_lead_and_after_the_speaker_none():
    assert chinese_clauses("我爸退休了。每天去钓鱼。", None)[1].lead == "我爸退休了"
    speaker = chinese_clauses("我退休了。每天去钓鱼。", None)[1]
    assert speaker.lead == ""
    assert "after_subject_speaker" in speaker.cues


def test_mood_is_no_lead():
    assert chinese_clauses("我好担心。它是妈妈的碗。", None)[1].lead == ""


def test_message_before_tells_whether_a_dropped_subject_may_be_another():
    assert "others_before" in chinese_clauses("每天都去跑步", "你妈妈身体还好吗？")[0].cues
    assert "others_before" not in chinese_clauses("每天都去跑步", "你喜欢运动吗？")[0].cues
    assert "answer" in chinese_clauses("每天都去跑步", "你喜歡運動嗎？")[0].cues


def test_rules_for_the_assistant_are_kept():
    assert told("以后请一直用中文回答我") == ["以后请一直用中文回答我"]
    assert told("回答都用繁体") == ["回答都用繁体"]
    assert told("叫我阿强吧") == ["叫我阿强吧"]


def test_what_is_to_be_remembered_is_marked():
    (clause,) = chinese_clauses("記住我的生日是5月3號", None)
    assert (clause.text, clause.start) == ("我的生日是5月3號", 2)
    assert ASKED in clause.cues
    (clause,) = chinese_clauses("你好，请记住：我的车位是B12", None)
    assert (clause.text, ASKED in clause.cues) == ("我的车位是B12", True)
    assert told("你记住了吗？") == []
    assert ASKED not in chinese_clauses("我记住了你说的", None)[0].cues


def test_what_opens_a_correction_is_cut():
    (clause,) = chinese_clauses("不对，我们项目用的是Rust", None)
    assert (clause.text, clause.start) == ("我们项目用的是Rust", 3)


def test_third_person_is_kept_as_it_is():
    assert told("用户喜欢编程") == ["用户喜欢编程"]


def test_dropped_subject_may_be_whom_the_speaker_just_named():
    assert told("我养过一条狗，去年走丢了") == ["我养过一条狗，去年走丢了"]


def test_what_only_says_when_begins_no_clause_of_its_own():
    assert told("上山的时候，我的食物吃完了") == ["上山的时候，我的食物吃完了"]


def test_english_within_a_chinese_sentence_is_told_with_it():
    assert told("我叫Tom, I live in Rome") == ["我叫Tom, I live in Rome"]


def test_sentence_to_work_on_is_not_told():
    assert told("请把这句话变成英文：我每天跑步。") == []


def test_learning_how_is_no_question():
    assert told("我上个月学了怎么种花") == ["我上个月学了怎么种花"]


def test_recommended_thing_is_no_request():
    assert told("上次你给我推荐的书我看完了") == ["上次你给我推荐的书我看完了"]


def test_pasted_text_is_not_read():
    assert told("帮我润色：我在上海住了十年，养了三只猫，每天跑步。") == []


def test_traditional_characters_stay_and_count_as_simplified():
    (clause,) = chinese_clauses("我養了兩隻貓", None)
    assert clause.text == "我養了兩隻貓"
    assert clause.cues == chinese_clauses("我养了两只猫", None)[0].cues


@pytest.mark.parametrize(
    ("clause", "subject"),
    [
        ("我住在上海", "subject_speaker"),
        ("去年三月我辞职了", "subject_speaker"),
        ("我的新同学叫丽丽", "subject_person_of_speaker"),
        ("我们家的狗叫豆豆", "subject_person_of_speaker"),
        ("小李后天生日", "subject_person"),
        ("医生说要休息", "subject_person"),
        ("Lisa跳槽了", "subject_person"),
        ("张姐下周过生日", "subject_person"),
        ("王医生周四出诊", "subject_person"),
        ("今天体育课我跳了两米", "subject_speaker"),
        ("期中考试我只考了六十分", "subject_speaker"),
        ("妈妈给我买了鞋", "subject_person"),
        ("他经常加班", "subject_pronoun"),
        ("用户喜欢编程", "subject_user"),
        ("每天跑步", "subject_none"),
        ("小时候住在乡下", "subject_none"),
    ],
)
def test_subject(clause, subject):
    assert subject_of(clause) == subject


@pytest.mark.parametrize(
    ("clause", "cue"),
    [
        ("我昨天买了两本书", "relative_day"),
        ("我昨天买了两本书", "quantity"),
        ("我昨天买了两本书", "done"),
        ("房贷每个月六千五", "money"),
        ("我女儿三岁", "age"),
        ("我对青霉素过敏", "health"),
        ("我不吃香菜", "dislikes"),
        ("我喜欢爵士乐", "likes"),
        ("我每天跑步", "habit"),
        ("我打算明年去京都", "plan"),
        ("我想学游泳", "wish"),
        ("以后叫我老徐", "rule"),
        ("我会弹吉他", "skill"),
        ("妈妈答应带我去", "told"),
        ("可能下雨", "doubt"),
        ("感觉好难过", "mood_only"),
        ("求函数的最小值", "exercise"),
        ("听说房价要涨", "general"),
        ("谢谢你", "praise"),
    ],
)
def test_cue(clause, cue):
    assert cue in cues_of(clause, subject_of(clause))


def test_event_with_a_mood_is_more_than_a_mood():
    (clause,) = chinese_clauses("我和朋友吵架了，感觉好难过", None)
    assert "mood_only" not in clause.cues
    assert "done" in clause.cues


@pytest.mark.parametrize(
    "text",
    [
        "我叫张三",
        "我住在深圳",
        "前年我在广州工作",
        "我从那家公司离职了",
        "我对花生过敏",
        "我女儿Mia在上游泳课",
        "我打算明年去京都",
        "以后叫我小美",
        "用户喜欢编程",
        "我单身",
        "我喜欢跑步",
        "以后回答都用繁体",
        "从字节跳动离职了",
        "小李说他后天生日",
        "我媽媽上個月做了手術",
        "我们项目用的是Rust",
        "我和最好的朋友吵架了，感觉好难过",
    ],
)
def test_plain_statements_are_likely(text):
    (clause,) = chinese_clauses(text, None)
    assert classifier("chinese").probability(clause) > 0.7


@pytest.mark.parametrize(
    "text",
    [
        "我好累啊",
        "我觉得中国经济会越来越好",
        "可能要下雨",
        "我会去试试的",
        "我们明天再聊吧",
        "首先要选好主题，其次要搜集素材",
        "听说今年冬天会很冷",
        "我有点担心",
    ],
)
def test_moods_hedges_and_small_talk_are_unlikely(text):
    for clause in chinese_clauses(text, None):
        assert classifier("chinese").probability(clause) < 0.5


@pytest.mark.parametrize(
    "piece",
    [
        "我昨天去了，",
        "真的",
        "好",
        "1月1",
        "“我",
        "他好，",
        "。",
        "请",
        "能吗",
        "我在",
        "需要",
        "没标点",
    ],
)
def test_time_grows_with_length_only(piece):
    def seconds(text, said):
        began = time.process_time()
        chinese_clauses(text, said)
        return time.process_time() - began

    short, long = piece * (5_000 // len(piece)), piece * (40_000 // len(piece))
    # Eight times the text; with a square it would be sixty-four times. The best of two.
    bound = 24 * min(seconds(short, None) for _ in range(3)) + 0.05
    assert any(seconds(long, long) < bound for _ in range(2))


def test_pronoun_within_a_clause_gets_the_sentence_that_names_them():
    _, led = chinese_clauses("我有一个弟弟。我喜欢和他一起做饭", None)
    assert led.content == "我有一个弟弟。我喜欢和他一起做饭"
    (alone,) = chinese_clauses("我喜欢和他一起做饭", None)
    assert "unresolved" in alone.cues
    (named,) = chinese_clauses("我弟弟养了一只猫，他每天喂它", None)
    assert "unresolved" not in named.cues
