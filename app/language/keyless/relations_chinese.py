"""Triples of Chinese sentences in the third person, as data and how it is read.

A sentence is clauses with one subject: the user, somebody of theirs who has a name, or a name
that shows as one by its surname or its title. A clause without a subject has the last one's.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from app.language.keyless.chinese_words import PLACES, SURNAMES, simplified
from app.language.keyless.patterns import exact
from app.language.keyless.relations_names import TITLES as _TITLES
from app.language.keyless.relations_names import is_name
from app.language.keyless.relations_slots import LANGUAGE, is_nothing
from app.language.llm.extractor import SPEAKER, ProposedRelation
from app.language.text.lazy_pattern import lazy_pattern

_NAME: Final = (
    rf"(?:(?:{SURNAMES})[\u4e00-\u9fff]{{0,2}}?(?:{_TITLES})|(?:{SURNAMES})[\u4e00-\u9fff]{{1,2}}|"
    r"[小老阿][\u4e00-\u9fff]{1,2}|[A-Z][A-Za-z'’.-]+(?: [A-Z][A-Za-z'’.-]+){0,2}|"
    r"[\u4e00-\u9fff]{2,4})"
)
_SURE_NAME: Final = (
    rf"(?:(?:{SURNAMES})[\u4e00-\u9fff]{{0,2}}?(?:{_TITLES})|"
    rf"(?:{SURNAMES})(?![是在也都的有])[\u4e00-\u9fff]{{1,2}}?|[小老](?:{SURNAMES})|"
    r"[A-Z][A-Za-z'’.-]+)"
)
_ADVERBS: Final = (
    r"(?:现在|目前|如今|一直|已经|刚刚|刚|也|还|正在|正|都|就|现|今年|去年|前年|最近|后来|"
    r"[在于]?(?:19|20)[0-9]{2}年(?:[0-9]{1,2}月)?(?:[0-9]{1,2}日)?|从?[0-9一二两三四五六七八九十]+年前)*"
)
_SCHOOL: Final = (
    r"[\u4e00-\u9fffA-Za-z]{1,14}?(?:大学|学院|中学|高中|小学|学校|研究所|科大|师大|交大)|"
    r"北大|清华|复旦|浙大|同济|武大|南大|中大|人大|厦大|MIT|[A-Z][A-Za-z]+大学"
)
_FIELD: Final = r"[\u4e00-\u9fffA-Za-z+#]{2,12}?"
_ORGANISATION: Final = (
    rf"(?!医院|学校|公司|银行|工厂|机关|家|这|那|外|当地|国|线|一家|某|哪|(?:{PLACES})(?:市|省)?"
    r"(?:工作|上班|任职|就职|实习|供职|当|做|$))[\u4e00-\u9fffA-Za-z0-9·&]{2,16}?"
)
_PLACE: Final = (
    r"(?!在|酒店|宾馆|学校|宿舍|公司|家|这|那|一起|哪|外|院)[\u4e00-\u9fffA-Za-z]{2,10}?"
)
_END: Final = r"(?:了|的)?$"
# A sentence that denies, wishes, supposes or tells of the past joins nothing that holds.
_VOID: Final = exact(
    r"""
    不|没|未|曾|以前|从前|之前|原来|前夫|前妻|前女友|前男友|前同事|如果|要是|假如|(?<!联)想|打算|希望|计划|
    准备|可能|也许|大概|听说|好像|将|吗|？|\?|离婚|离职|辞职|分手|去世
    """
)
_RETRACTED: Final = lazy_pattern(r"(?:已经)?不再(?:是)?")


@dataclass(frozen=True, slots=True)
class _Predicate:
    """What is said of a subject; the groups `one` and `two` are what it is joined with."""

    pattern: re.Pattern[str]
    one: tuple[str, str]
    two: tuple[str, str] | None = None


def _said(pattern: str, *joins: tuple[str, str]) -> _Predicate:
    return _Predicate(exact(rf"{_ADVERBS}{pattern}"), joins[0], joins[1] if joins[1:] else None)


_STUDY: Final = r"(?:攻读|就读|念书|读书|上学|学习|进修|读研|读博|读本科|主修|读|念|学|上)"

_PREDICATES: Final = (
    _said(
        rf"(?:在|就读于|就读在)(?P<one>{_SCHOOL})的?{_STUDY}(?:的)?(?P<two>{_FIELD})(?:专业|系)?{_END}",
        ("studies_at", "organization"),
        ("studies", "field"),
    ),
    _said(
        rf"(?:在(?P<one>{_SCHOOL}){_STUDY}|就读[于在](?P<one2>{_SCHOOL})){_END}",
        ("studies_at", "organization"),
    ),
    _said(
        rf"是(?P<one>{_SCHOOL})的?(?P<two>[\u4e00-\u9fff]{{2,8}}?)(?:系|专业)的?(?:本科|硕士|博士)?"
        rf"(?:学生|研究生|博士生|硕士生|本科生){_END}",
        ("studies_at", "organization"),
        ("studies", "field"),
    ),
    _said(
        rf"是(?P<one>{_SCHOOL})的?(?:在读)?(?:学生|研究生|博士生|硕士生|本科生|博士|硕士){_END}",
        ("studies_at", "organization"),
    ),
    _said(
        rf"是(?P<one>{_SCHOOL})的?(?:副?教授|老师|讲师|研究员|教师){_END}",
        ("works_at", "organization"),
    ),
    _said(
        rf"(?:毕业于(?P<one>{_SCHOOL})|(?:从|是)(?P<one2>{_SCHOOL})毕业)(?:的)?{_END}",
        ("graduated_from", "organization"),
    ),
    _said(
        rf"(?:学习|攻读|主修|学的是|读的是|学|专业是)(?P<one>[\u4e00-\u9fff]{{2,8}}?(?:学|科学|工程|"
        rf"技术|语言|管理|设计|法律|金融|会计|智能|数学|物理|化学|新闻|建筑|软件|[英法德日韩俄]语|音乐"
        rf"|美术)|法语|英语|日语|德语|数学|物理|化学|金融|会计|法律|设计|建筑|音乐)(?:专业|系)?{_END}",
        ("studies", "field"),
    ),
    _said(
        rf"(?:在(?P<one>{_ORGANISATION})(?:公司|集团)?(?:工作|上班|任职|就职|供职)|"
        rf"(?:供职|就职|任职)于(?P<one2>{_ORGANISATION})){_END}",
        ("works_at", "organization"),
    ),
    _said(rf"在(?P<one>{_ORGANISATION})(?:公司|集团)?实习{_END}", ("interns_at", "organization")),
    _said(
        rf"(?:入职|加入|跳槽到|跳槽去)了?(?P<one>{_ORGANISATION})(?:公司)?{_END}",
        ("works_at", "organization"),
    ),
    _said(
        rf"(?:家?住在|居住在|定居在|定居于|定居|现居|常住|住)(?P<one>{_PLACE})(?:市|县|区)?{_END}",
        ("lives_in", "place"),
    ),
    _said(
        rf"(?:从[\u4e00-\u9fff]{{2,8}}?)?(?:搬到|搬去|搬回|移居|移民|迁到)了?(?P<one>{_PLACE}){_END}",
        ("lives_in", "place"),
    ),
    _said(
        rf"(?:来自于?|的?(?:老家|家乡|故乡|祖籍)(?:是|在)?|出生于|出生在|生于|生在)(?P<one>{_PLACE}){_END}",
        ("comes_from", "place"),
    ),
    _said(
        rf"(?:会说|会讲|说|讲)(?:流利的|一口流利的)?(?P<one>{LANGUAGE}){_END}",
        ("speaks", "language"),
    ),
    _said(rf"对(?P<one>[\u4e00-\u9fff]{{1,8}}?)(?:严重)?过敏{_END}", ("allergic_to", "thing")),
    _said(
        rf"是(?:一[名位个])?(?P<one>{_FIELD})(?:方面的?|领域的?|的)?(?:资深)?(?:专家|权威|大牛){_END}",
        ("expert_in", "field"),
    ),
    _said(
        rf"(?:嫁给了?|娶了|[跟和与](?=\S+结婚))(?P<one>{_NAME})(?:结婚)?{_END}",
        ("married_to", "person"),
    ),
    _said(
        r"(?:养着|养了|养|有)(?:[一二两三][只条个匹])?(?:小|宠物)?(?:猫咪|小猫|小狗|猫|狗|兔子|鹦鹉|仓鼠|乌龟|金毛|柯基|橘猫|泰迪|哈士奇|金鱼|龙猫|蜥蜴)"
        r"[,，]?(?:名字)?(?:叫做?|名叫|是)(?P<one>[\u4e00-\u9fffA-Za-z]{1,8})$",
        ("owns", "pet"),
    ),
    _said(
        rf"(?:在做|在开发|开发了?|负责|在写|参与了?|主导)(?:一个)?(?:叫|名叫|名为)?"
        rf"(?P<one>[A-Z][A-Za-z0-9-]{{1,30}}|[\u4e00-\u9fffA-Za-z0-9]{{2,10}}?(?=项目))(?:的)"
        rf"?(?:项目)?{_END}",
        ("works_on", "project"),
    ),
    _said(
        rf"是(?P<one>[\u4e00-\u9fffA-Za-z]{{2,14}}?(?:协会|俱乐部|社团|乐队|球队|学会|委员会))的?(?:会员|成员|队员|理事)"
        rf"{_END}",
        ("member_of", "organization"),
    ),
)

# Somebody of the subject: how they stand to each other, and which way. "-" is from the other.
_PEOPLE: Final[Mapping[str, str]] = {
    "导师": "advised_by", "博导": "advised_by", "硕导": "advised_by",
    "老板": "reports_to", "上司": "reports_to", "领导": "reports_to", "主管": "reports_to",
    "经理": "reports_to",
    "老师": "taught_by", "教练": "coached_by", "医生": "treated_by",
    "好朋友": "friend_of", "最好的朋友": "friend_of", "朋友": "friend_of", "好友": "friend_of",
    "闺蜜": "friend_of", "发小": "friend_of",
    "同事": "colleague_of", "室友": "roommate_of", "舍友": "roommate_of", "同学": "classmate_of",
    "邻居": "neighbour_of",
    "老婆": "married_to", "妻子": "married_to", "太太": "married_to", "老公": "married_to",
    "丈夫": "married_to", "爱人": "married_to", "媳妇": "married_to",
    "女朋友": "in_relationship_with", "男朋友": "in_relationship_with",
    "女友": "in_relationship_with", "男友": "in_relationship_with",
    "女儿": "-child_of", "儿子": "-child_of", "大女儿": "-child_of", "小女儿": "-child_of",
    "大儿子": "-child_of", "小儿子": "-child_of", "孩子": "-child_of", "闺女": "-child_of",
    "爸爸": "child_of", "父亲": "child_of", "妈妈": "child_of", "母亲": "child_of",
    "哥哥": "sibling_of", "弟弟": "sibling_of", "姐姐": "sibling_of", "妹妹": "sibling_of",
}  # fmt: skip
_PETS: Final = "猫咪|小猫|小狗|狗狗|猫|狗|兔子|鹦鹉|仓鼠|乌龟|金毛|柯基|橘猫"
_KIN: Final = "|".join(sorted(_PEOPLE, key=len, reverse=True))

_IS: Final = r"(?:的名字)?(?:叫做?|名叫|就?是)"
_SOMEBODY: Final = exact(
    rf"的?(?P<who>{_KIN})(?:{_IS}(?P<name>{_NAME})|(?P<bare>{_SURE_NAME}))(?P<rest>.*)$"
)
_PET: Final = exact(rf"的?(?:{_PETS}){_IS}(?P<name>[\u4e00-\u9fffA-Za-z]{{1,8}})$")
_NO_NAME: Final = exact(
    r"""
    .*(?:[一个名位的了过很]|[师员生人工手家者长兵商]$)|(?:医生|老师|教授|律师|护士|学生|好人|东北|中国|美国).*
    """
)
_TITLED: Final = exact(rf"(?:{SURNAMES})[\u4e00-\u9fff]{{0,2}}(?:{_TITLES})")
_SUBJECT: Final = exact(
    rf"用户(?!们|的?(?:团队|公司|体验|界面|数据))|(?P<named>{_SURE_NAME})(?={_ADVERBS}(?:是|在|住|学|来自|毕业|对|养|"
    rf"会说|会讲|就读|攻读|主修|供职|任职|就职|入职|加入|跳槽|搬|定居|移民|出生|的|和|跟|嫁|娶|有))"
)
# Goods come from somewhere too, and houses join others: then a surname is no sign of a person.
_OF_THINGS: Final = exact(
    rf"(?:{SURNAMES})(?!\S{{0,2}}?(?:{_TITLES}))\S{{1,2}}?{_ADVERBS}(?:来自|加入)"
)
_CUT: Final = lazy_pattern(r"[，,。；;！!]+")


def chinese_relations(text: str, *, retracts: bool = False) -> Iterator[ProposedRelation]:
    """The triples of a sentence, clause by clause."""
    for _, found in _by_clause(text, retracts=retracts):
        yield from found


def is_plain_chinese(text: str) -> bool:
    """Tell a sentence about somebody who is named, of which every clause gives a triple."""
    read = list(_by_clause(text))
    return bool(read) and all(subject not in {None, SPEAKER} and found for subject, found in read)


def _by_clause(
    text: str, *, retracts: bool = False
) -> Iterator[tuple[str | None, list[ProposedRelation]]]:
    """The subject of each clause, if it is known, and the triples of the clause."""
    folded = simplified(text)
    said = _RETRACTED.sub("是" if "不再是" in folded else "", folded) if retracts else folded
    if _VOID.search(said):
        return
    # What was cut away would shift names, which are taken from the text as it was written.
    whole = text if said == folded else said
    subject: str | None = None
    start = 0
    for clause in _clauses(said):
        start = said.index(clause, start)
        written = whole[start : start + len(clause)]
        start += len(clause)
        match = _SUBJECT.match(clause)
        said_of_it, written_of_it = clause, written
        if match:
            named = match["named"]
            subject = SPEAKER if named is None else None
            if named is not None and is_name(named) and not _OF_THINGS.match(clause):
                subject = written[: match.end()]
            said_of_it, written_of_it = clause[match.end() :], written[match.end() :]
        found = [] if subject is None else list(_of(subject, said_of_it, written_of_it))
        yield subject, found


def _clauses(text: str) -> list[str]:
    return [clause for clause in _CUT.split(text) if clause]


def _of(subject: str, clause: str, written: str) -> Iterator[ProposedRelation]:
    """What one clause says of its subject; `written` is the clause in its own signs."""
    somebody = _SOMEBODY.match(clause)
    if somebody:
        yield from _of_somebody(subject, somebody, written)
        return
    pet = _PET.match(clause)
    if pet:
        yield ProposedRelation(subject, "owns", _cut(written, pet, "name"), "person", "pet")
        return
    for predicate in _PREDICATES:
        match = predicate.pattern.match(clause)
        if match is None:
            continue
        first = "one" if match["one"] else "one2"
        joins = [(predicate.one, first)]
        if predicate.two is not None:
            joins.append((predicate.two, "two"))
        if not any(is_nothing(how[0], match[group]) for how, group in joins):
            for how, group in joins:
                yield _joined(subject, how, _cut(written, match, group))
        return


def _of_somebody(subject: str, match: re.Match[str], written: str) -> Iterator[ProposedRelation]:
    group = "name" if match["name"] else "bare"
    name = _cut(written, match, group)
    rest = match["rest"]
    if _NO_NAME.fullmatch(match[group]) and not _TITLED.fullmatch(match[group]):
        return
    if group == "name" and rest:
        return
    relation = _PEOPLE[match["who"]]
    if relation.startswith("-"):
        yield ProposedRelation(name, relation[1:], subject, "person", "person")
    else:
        yield ProposedRelation(subject, relation, name, "person", "person")
    if rest:
        yield from _of(name, rest, written[match.start("rest") :])


def _joined(subject: str, how: tuple[str, str], value: str) -> ProposedRelation:
    relation, kind = how
    return ProposedRelation(subject, relation, value, "person", kind)


def _cut(written: str, match: re.Match[str], group: str) -> str:
    return written[match.start(group) : match.end(group)].strip()
