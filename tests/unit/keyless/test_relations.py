"""Triples of stored statements, in the user's own words and in the third person."""

import pytest

from app.language.keyless.relations import LONGEST, relations_of
from app.language.llm.extractor import MOST_RELATIONS, ProposedRelation

GIVEN = [
    # Where the user works, lives and studies.
    ("I work at Acme", ["user works_at Acme"]),
    ("The user works at Acme.", ["user works_at Acme"]),
    ("I've worked at Bosch since 2019", ["user works_at Bosch"]),
    ("I live in Rome, Italy", ["user lives_in Rome"]),
    ("I moved to Lisbon last month", ["user lives_in Lisbon"]),
    ("The user lives in Peking and works for Bosch.",
     ["user lives_in Peking", "user works_at Bosch"]),
    ("I study law at the University of Vienna", ["user studies_at University of Vienna"]),
    ("我在字节跳动工作", ["user works_at 字节跳动"]),
    ("用户在腾讯上班", ["user works_at 腾讯"]),
    ("我搬到了柏林", ["user lives_in 柏林"]),
    ("我住在慕尼黑，在西门子工作", ["user lives_in 慕尼黑", "user works_at 西门子"]),
    ("我在北京大学读书", ["user studies_at 北京大学"]),
    ("李明在北京大学学计算机科学，导师是张教授", ["李明 studies_at 北京大学"]),
    ("我的导师是张教授", ["user advised_by 张教授"]),
    # Family, partners, friends, colleagues and pets.
    ("my daughter Mia takes swimming lessons", ["Mia child_of user"]),
    ("The user's daughter Emma is five.", ["Emma child_of user"]),
    ("my kids, Francis, Michael, and Rachel",
     ["Francis child_of user", "Michael child_of user", "Rachel child_of user"]),
    ("my mom Kimberly disagrees with me", ["user child_of Kimberly"]),
    ("My younger sister's name is Lily", ["user sibling_of Lily"]),
    ("My mother-in-law Anna cooks well", ["user relative_of Anna"]),
    ("I'm married to Anna", ["user married_to Anna"]),
    ("My partner, Tanya, is away", ["user in_relationship_with Tanya"]),
    ("my best friend Dr. Smith came by", ["user friend_of Dr. Smith"]),
    ("Tom is a friend of mine", ["user friend_of Tom"]),
    ("Tom, my colleague, is leaving", ["user colleague_of Tom"]),
    ("Tom and I are colleagues", ["user colleague_of Tom"]),
    ("My boss Karen was late", ["user reports_to Karen"]),
    ("I have a dog named Rex", ["user owns Rex"]),
    ("We have two cats called Luna and Milo", ["user owns Luna", "user owns Milo"]),
    ("我女儿叫米娅", ["米娅 child_of user"]),
    ("用戶女兒叫小雨", ["小雨 child_of user"]),
    ("小雨是我女儿", ["小雨 child_of user"]),
    ("我女儿圆圆今年五岁", ["圆圆 child_of user"]),
    ("我妻子王芳", ["user married_to 王芳"]),
    ("我爸爸李强在医院工作", ["user child_of 李强"]),
    ("我有一个妹妹叫小红", ["user sibling_of 小红"]),
    ("小李和我是同事", ["user colleague_of 小李"]),
    ("我和小李是大学同学", ["user classmate_of 小李"]),
    ("我养了一只猫，叫咪咪", ["user owns 咪咪"]),
    ("我的狗叫旺财", ["user owns 旺财"]),
    # Things by name.
    ("I use Vim every day", ["user uses Vim"]),
    ("I drive a Tesla Model 3", ["user owns Tesla Model 3"]),
    ("我平时用VS Code写代码", ["user uses VS Code"]),
    # Others who are named.
    ("Anna lives in Berlin", ["Anna lives_in Berlin"]),
    ("my sister Anna is a nurse in Rome", ["user sibling_of Anna"]),
    ("My sister Anna lives in Rome and works at Bosch",
     ["user sibling_of Anna", "Anna lives_in Rome", "Anna works_at Bosch"]),
    ("We had lunch. Tom works at Siemens.", ["Tom works_at Siemens"]),
    ("Chen Wei is a student at MIT", ["Chen Wei studies_at MIT"]),
    ("張偉在台積電工作。", ["張偉 works_at 台積電"]),
    ("王芳住在慕尼黑，在西门子工作。", ["王芳 lives_in 慕尼黑", "王芳 works_at 西门子"]),
    ("我妻子王芳在腾讯上班", ["user married_to 王芳", "王芳 works_at 腾讯"]),
]  # fmt: skip

NOT_GIVEN = [
    "",
    "the weather is nice",
    "今天天气很好",
    # What was, is over, denied, wished, asked or supposed.
    "I used to work at Siemens",
    "I no longer work at Siemens",
    "I don't work at Siemens",
    "I want to work at Siemens",
    "Do I work at Siemens?",
    "I may move to Rome",
    "My ex-wife Anna lives in Rome",
    "My late dog Rex",
    "My old boss Karen",
    "My dog Rex died last year",
    "I don't have a sister named Anna",
    "Tom is not my colleague",
    "If my daughter Mia comes, we leave",
    "I want to name my daughter Mia",
    "I used to use Vim",
    "Tom no longer works at Siemens.",
    "Tom worked at Siemens.",
    "Tom works at Siemens, maybe",
    "我想搬到上海",
    "我以前在谷歌工作",
    "我不在西门子工作",
    "我没有女儿叫米娅",
    "我的前女友叫小红",
    "小李和我不是同事",
    "张三在腾讯工作吗",
    "听说张三在腾讯工作",
    # Nobody and nothing is named.
    "My wife works at Google",
    "my boss is German",
    "my friend's daughter Mia",
    "her sister Anna",
    "Last Friday, my partner and I talked",
    "my faithful furry friend Daisy lay down",
    "I work at a small startup",
    "I work on Sundays",
    "I use it every day",
    "I have a dog",
    "He works at Siemens.",
    "我妻子在医院工作",
    "我在医院工作",
    "我在努力工作",
    "我在一家公司工作",
    "我住在酒店",
    "我女儿生病了",
    "我女儿高兴坏了",
    "我儿子高中毕业",
    "我老公周末加班",
    "我老板让我加班",
    "小明有个妹妹叫小红",
    "项目经理在腾讯工作",
    "程序员在字节跳动工作",
    "周六在腾讯上班",
    "他在腾讯工作",
]


def read(content: str, *, retracts: bool = False) -> list[str]:
    return [
        f"{one.source} {one.relation} {one.destination}"
        for one in relations_of(content, retracts=retracts)
    ]


@pytest.mark.parametrize(("content", "wanted"), GIVEN)
def test_plain_statement_gives_its_triples(content: str, wanted: list[str]) -> None:
    assert read(content) == wanted


@pytest.mark.parametrize("content", NOT_GIVEN)
def test_statement_that_is_not_plain_and_present_gives_none(content: str) -> None:
    assert read(content) == []


@pytest.mark.parametrize(
    ("content", "wanted"),
    [
        ("I no longer work at Siemens", ["user works_at Siemens"]),
        ("The user no longer lives in Rome.", ["user lives_in Rome"]),
        ("我不再在西门子工作了", ["user works_at 西门子"]),
        ("I don't like coffee any more", []),
    ],
)
def test_retraction_gives_what_holds_no_longer(content: str, wanted: list[str]) -> None:
    assert sorted(set(read(content, retracts=True))) == wanted


def test_ends_of_a_triple_have_types() -> None:
    assert relations_of("my dog Rex") == (ProposedRelation("user", "owns", "Rex", "person", "pet"),)
    assert relations_of("Anna lives in Berlin") == (
        ProposedRelation("Anna", "lives_in", "Berlin", "person", "place"),
    )


def test_statement_that_names_many_gives_only_so_many() -> None:
    many = "my sons Tom, Ben, Sam, Max and Leo. my dogs Rex, Bob, Kai, Ace and Zoe"
    assert len(relations_of(many)) == MOST_RELATIONS


def test_only_statements_up_to_the_limit_are_read() -> None:
    def long(characters: int) -> str:
        return "my dog Rex is here".ljust(characters, "x")

    assert read(long(LONGEST - 1)) == read(long(LONGEST)) == ["user owns Rex"]
    assert read(long(LONGEST + 1)) == []
