"""Triples of stored sentences, in both languages, and the sentences that give none."""

import pytest

from app.language.keyless.relations import relations_of
from app.language.keyless.relations_told import LONGEST, told_of_others
from app.language.llm.extractor import MOST_RELATIONS, SPEAKER
from tests.unit.keyless.rules_support import proposed

GIVEN = [
    ("用户在北京大学学计算机科学", ["user studies_at 北京大学", "user studies 计算机科学"]),
    ("用户的导师是张教授", ["user advised_by 张教授"]),
    ("用戶的導師是張教授", ["user advised_by 張教授"]),
    ("用户女儿叫小雨", ["小雨 child_of user"]),
    ("用户住在慕尼黑", ["user lives_in 慕尼黑"]),
    ("用户在2026年5月搬到了柏林", ["user lives_in 柏林"]),
    ("用户在西门子工作", ["user works_at 西门子"]),
    ("用户加入了腾讯", ["user works_at 腾讯"]),
    ("用户养了一只猫叫咪咪", ["user owns 咪咪"]),
    ("用户的狗叫旺财", ["user owns 旺财"]),
    ("用户毕业于清华大学", ["user graduated_from 清华大学"]),
    ("用户是北京大学的学生", ["user studies_at 北京大学"]),
    ("用户来自四川", ["user comes_from 四川"]),
    ("用户的妻子王芳在腾讯上班", ["user married_to 王芳", "王芳 works_at 腾讯"]),
    ("用户会说法语", ["user speaks 法语"]),
    ("用户对花生过敏", ["user allergic_to 花生"]),
    ("用户在做KeMem项目", ["user works_on KeMem"]),
    (
        "李明在北京大学学计算机科学，导师是张教授，张教授是人工智能专家。",
        [
            "李明 studies_at 北京大学",
            "李明 studies 计算机科学",
            "李明 advised_by 张教授",
            "张教授 expert_in 人工智能",
        ],
    ),
    (
        "The user studies computer science at Peking University.",
        ["user studies_at Peking University", "user studies computer science"],
    ),
    ("The user lives in Munich.", ["user lives_in Munich"]),
    ("The user moved to Berlin in May 2026.", ["user lives_in Berlin"]),
    (
        "The user lives in Peking and works for Bosch.",
        ["user lives_in Peking", "user works_at Bosch"],
    ),
    ("The user's daughter Emma is five.", ["Emma child_of user"]),
    ("The user's sister's name is Lily.", ["user sibling_of Lily"]),
    (
        "The user's brother Tom lives in Berlin.",
        ["user sibling_of Tom", "Tom lives_in Berlin"],
    ),
    (
        "The user's advisor is Professor Zhang, who is an expert in artificial intelligence.",
        ["user advised_by Professor Zhang", "Professor Zhang expert_in artificial intelligence"],
    ),
    ("The user has a dog named Rex.", ["user owns Rex"]),
    ("The user is married to Anna.", ["user married_to Anna"]),
    ("The user graduated from MIT.", ["user graduated_from MIT"]),
    ("The user is a member of the Green Party.", ["user member_of Green Party"]),
    ("The user is working on a project called KeMem.", ["user works_on KeMem"]),
    ("The user was born in Lyon.", ["user comes_from Lyon"]),
]

NOT_GIVEN = [
    "用户当工程师",
    "用户妻子在医院工作",
    "用户想搬到上海",
    "用户不再在西门子工作",
    "用户曾在谷歌工作",
    "用户的前女友叫小红",
    "用户的哥哥是医生",
    "用户的老师是好人",
    "用户的儿子很高",
    "用户在北京工作",
    "用户住在酒店",
    "今天天气很好",
    "",
    "The user works as an engineer.",
    "The user works at a small startup.",
    "The user wants to move to Berlin.",
    "The user no longer works at Siemens.",
    "The user does not work at Siemens.",
    "The user's ex-wife is called Anna.",
    "The user's boss is angry.",
    "The user may move to Rome.",
    "The user works on Sundays.",
    "The user's wife works at Google.",
    "the weather is nice",
    "The user lives in Munich. " * 20,
]


# Said in a conversation, by the user.
TOLD = [
    ("张三在字节跳动工作", ["张三 works_at 字节跳动"]),
    ("张三在字节跳动工作。", ["张三 works_at 字节跳动"]),
    ("張偉在台積電工作。", ["張偉 works_at 台積電"]),
    ("小王在腾讯上班", ["小王 works_at 腾讯"]),
    ("老李现在住在成都", ["老李 lives_in 成都"]),
    ("王芳住在慕尼黑，在西门子工作。", ["王芳 lives_in 慕尼黑", "王芳 works_at 西门子"]),
    ("欧阳娜娜毕业于清华大学", ["欧阳娜娜 graduated_from 清华大学"]),
    ("张教授是人工智能专家", ["张教授 expert_in 人工智能"]),
    ("李明的导师是张教授", ["李明 advised_by 张教授"]),
    ("陈静的老公是刘伟", ["陈静 married_to 刘伟"]),
    ("赵敏的女儿叫周婷", ["周婷 child_of 赵敏"]),
    ("孙丽会说流利的德语", ["孙丽 speaks 德语"]),
    ("吴磊出生于四川", ["吴磊 comes_from 四川"]),
    ("小吴来自四川", ["小吴 comes_from 四川"]),
    ("郑爽养了一只猫叫咪咪", ["郑爽 owns 咪咪"]),
    ("刘洋是北京大学的学生", ["刘洋 studies_at 北京大学"]),
    ("何平入职了华为。", ["何平 works_at 华为"]),
    ("王医生在协和医院工作", ["王医生 works_at 协和医院"]),
    ("我住在北京。张三在字节跳动工作。", ["张三 works_at 字节跳动"]),
    (
        "李明在北京大学学计算机科学，导师是张教授，张教授是人工智能专家。",
        [
            "李明 studies_at 北京大学",
            "李明 studies 计算机科学",
            "李明 advised_by 张教授",
            "张教授 expert_in 人工智能",
        ],
    ),
    ("Tom works at Siemens.", ["Tom works_at Siemens"]),
    ("Tom works for Siemens", ["Tom works_at Siemens"]),
    ("Zhang San works at ByteDance.", ["Zhang San works_at ByteDance"]),
    ("Dr. Meyer lives in Munich.", ["Dr. Meyer lives_in Munich"]),
    ("Anna Berg is currently living in Berlin.", ["Anna Berg lives_in Berlin"]),
    (
        "Maria studies computer science at MIT.",
        ["Maria studies_at MIT", "Maria studies computer science"],
    ),
    ("Emma studies law.", ["Emma studies law"]),
    ("Peter graduated from Oxford University in 2019.", ["Peter graduated_from Oxford University"]),
    ("Sarah is married to David.", ["Sarah married_to David"]),
    ("Paul's wife is Julia.", ["Paul married_to Julia"]),
    ("Paul's daughter is called Lily.", ["Lily child_of Paul"]),
    (
        "Chen Wei speaks Cantonese and English.",
        ["Chen Wei speaks Cantonese", "Chen Wei speaks English"],
    ),
    ("Carlos is from Brazil.", ["Carlos comes_from Brazil"]),
    ("Nina has a dog named Rex.", ["Nina owns Rex"]),
    (
        "Professor Zhang is an expert in artificial intelligence.",
        ["Professor Zhang expert_in artificial intelligence"],
    ),
    (
        "Lukas lives in Hamburg and works at Airbus.",
        ["Lukas lives_in Hamburg", "Lukas works_at Airbus"],
    ),
    ("I live in Bonn. Tom works at Siemens.", ["Tom works_at Siemens"]),
    ("Felix is a student at the University of Vienna.", ["Felix studies_at University of Vienna"]),
    ("Hannah works as a nurse at Charité.", ["Hannah works_at Charité"]),
]

NOT_TOLD = [
    # Questions.
    "张三在字节跳动工作吗",
    "张三在字节跳动工作？",
    "张三是不是在腾讯上班",
    "张三在哪家公司工作",
    "谁在腾讯工作",
    "张三在字节跳动工作。他住哪儿？",
    "Tom works at Siemens?",
    "Does Tom work at Siemens?",
    "Tom works at Siemens, right?",
    "Tom works at Siemens. Where does Anna work?",
    "Who works at Siemens?",
    # Denials, and what is over.
    "张三不在字节跳动工作",
    "张三没在腾讯上班",
    "张三以前在腾讯工作",
    "张三曾在腾讯工作",
    "张三去年在腾讯工作",
    "张三从腾讯离职了",
    "张三三年前在腾讯工作",
    "Tom does not work at Siemens.",
    "Tom no longer works at Siemens.",
    "Tom used to work at Siemens.",
    "Tom never lived in Berlin.",
    "Tom worked at Siemens.",
    "Tom isn't from Spain.",
    # Suppositions, plans and hearsay.
    "如果张三在腾讯工作",
    "张三可能在腾讯工作",
    "听说张三在腾讯工作",
    "张三想在腾讯工作",
    "张三将在腾讯工作",
    "我觉得张三在腾讯工作",
    "据说李明毕业于清华大学",
    "张三好像住在上海",
    "张三说李四在腾讯工作",
    "If Tom works at Siemens, he is rich.",
    "Maybe Tom works at Siemens.",
    "Tom might live in Berlin.",
    "I think Tom works at Siemens.",
    "Anna says Tom works at Siemens.",
    "Apparently Tom lives in Rome.",
    "Tom wants to work at Siemens.",
    "Suppose Tom lives in Berlin.",
    "Tom works at Siemens, I guess.",
    "I heard Anna lives in Rome.",
    # Quotations, tasks, stories and puzzles.
    "“张三在字节跳动工作”",
    "翻译：张三在字节跳动工作",
    "请把张三在腾讯工作翻译成英文",
    "写个故事。张三在腾讯工作。",
    "小说的主角叫张三。张三在腾讯工作。",
    "我在看一部电影。李明住在上海。",
    "造句：王芳住在北京",
    "帮我给张三写封邮件。张三在腾讯工作。",
    '"Tom works at Siemens."',
    "'Tom works at Siemens.'",
    "Translate: Tom works at Siemens.",
    "Translate this. Tom lives in Berlin.",
    "Write a story. Tom lives in Berlin.",
    "My novel is done. Tom lives in Berlin.",
    "Tom lives in Berlin. Anna is taller than Tom.",
    "Tom works at Siemens. Just kidding.",
    "> Tom works at Siemens.",
    # Nobody is named, or nothing.
    "何时在北京大学学习",
    "方便在腾讯工作",
    "任何人在腾讯工作",
    "周六在腾讯上班",
    "凌晨在腾讯上班",
    "项目经理在腾讯工作",
    "程序员在字节跳动工作",
    "顾问在腾讯上班",
    "孙子在腾讯工作",
    "他在腾讯工作",
    "有人在腾讯工作",
    "华为在北京工作",
    "张三在努力工作",
    "张三在公司工作",
    "张三在北京工作",
    "张三在一家公司工作",
    "张三在互联网行业工作",
    "张三住在隔壁",
    "张三住在酒店",
    "张三说实话",
    "李明在大学读书",
    "李明在国外大学读书",
    "李明在北京大学学习很努力",
    "李明的老师是好人",
    "李明的朋友是东北人",
    "张三有女朋友叫李四",
    "张三和李四在腾讯工作",
    "张三在字节跳动工作，很开心",
    "张三每天在腾讯加班",
    "王教授是著名专家",
    "孔子出生于山东的一个小镇",
    "金刚石来自南非",
    "安踏加入了腾讯",
    "张三在腾讯做算法工作",
    "He works at Siemens.",
    "Somebody works at Siemens.",
    "Friday works for Tom.",
    "Zoom works for Anna.",
    "Coffee comes from Ethiopia.",
    "Docker lives in Production.",
    "Config lives in Git.",
    "Google is based in California.",
    "Toyota is from Japan.",
    "Paris lives in Films.",
    "Tom works at a startup.",
    "Tom works at home.",
    "Tom works for Anna.",
    "Tom is from Accounting.",
    "Tom is from HR.",
    "Tom lives in fear.",
    "Tom studies hard.",
    "Tom works on Sundays.",
    "Tom is allergic to work.",
    "Tom is allergic to peanuts.",
    "张总对海鲜过敏",
    "Tom and Anna live in Berlin.",
    "Tom, who works at Siemens, is nice.",
    "tom works at siemens",
    "The user works at Siemens.",
    "Tom moved to Monday.",
    "Everyone works at Siemens.",
    "Tom's idea is Anna.",
    "Tom speaks Python.",
    "Tom is married to his job.",
    "Tom has a dog.",
]


def read(content: str, **told) -> list[str]:
    return [
        f"{one.source} {one.relation} {one.destination}" for one in relations_of(content, **told)
    ]


@pytest.mark.parametrize(("content", "wanted"), GIVEN)
def test_a_plain_sentence_gives_its_triples(content: str, wanted: list[str]) -> None:
    assert read(content) == wanted


@pytest.mark.parametrize("content", NOT_GIVEN)
def test_what_denies_wishes_or_names_nobody_gives_none(content: str) -> None:
    assert read(content) == []


@pytest.mark.parametrize(
    ("content", "wanted"),
    [
        ("用户不再在西门子工作", ["user works_at 西门子"]),
        ("The user no longer works at Siemens.", ["user works_at Siemens"]),
        ("用户不喜欢咖啡", []),
    ],
)
def test_a_retraction_gives_what_holds_no_longer(content: str, wanted: list[str]) -> None:
    assert read(content, retracts=True) == wanted


def test_of_many_only_so_many_are_read() -> None:
    many = "用户的导师是张教授，" + "，".join(
        f"用户对花{sign}过敏" for sign in "生菜草木鱼粉蜜椒茶"
    )
    assert len(relations_of(many)) == MOST_RELATIONS


def of_others(*turns: str) -> list[str]:
    return [
        f"{one.source} {one.relation} {one.destination}"
        for each in proposed(*turns)
        for one in each.relations
        if SPEAKER not in {one.source, one.destination}
    ]


@pytest.mark.parametrize(("turn", "wanted"), TOLD)
def test_what_is_said_of_somebody_named_is_kept_with_its_triples(
    turn: str, wanted: list[str]
) -> None:
    assert of_others(turn) == wanted


@pytest.mark.parametrize("turn", NOT_TOLD)
def test_what_is_not_plainly_said_of_somebody_named_is_left_alone(turn: str) -> None:
    assert list(told_of_others(turn)) == []
    assert of_others(turn) == []


def test_what_is_to_be_remembered_of_another_gives_triples_too() -> None:
    assert of_others("Please remember that Tom works at Siemens.") == ["Tom works_at Siemens"]


def test_the_assistant_and_long_texts_tell_nothing_of_others() -> None:
    assert of_others("A: Tom works at Siemens.") == []
    assert of_others("C: Tom works at Siemens.") == []
    assert of_others("Tom works at Siemens. " * (LONGEST // 22)) == ["Tom works_at Siemens"]
    assert of_others("Tom works at Siemens. " * (LONGEST // 22 + 1)) == []


def test_the_words_of_another_are_kept_as_they_were_said() -> None:
    told = [each.content for each in proposed("張偉在台積電工作。", "Tom works at Siemens!")]
    assert told == ["張偉在台積電工作", "Tom works at Siemens."]
