"""Whom and what a stored statement joins, as triples for the graph, in English and Chinese.

Reads the user's own words ("my sister Anna lives in Rome") and the third person ("The user's
sister Anna lives in Rome."). Where somebody lives, works and studies is read as attributes are, of
others only where they are named. Beside that it knows family, partners, friends, colleagues and
pets that have a name, and things that the user says they use or own by name. Names are told by
their frame and look, and where that is not plain there is no relation: silence is cheaper than a
wrong neighbour.
"""

import re
from collections.abc import Iterator, Mapping
from re import Match
from typing import Final

from app.language.keyless.attributes import attributes_of
from app.language.keyless.endings import endings_in
from app.language.llm.extractor import MOST_RELATIONS, SPEAKER, ProposedRelation
from app.language.text.function_words import ENGLISH, STOP_WORDS
from app.language.text.lazy_pattern import lazy_pattern
from app.language.text.normal_forms import has_cjk, simplify
from app.language.text.periods import MONTHS, WEEKDAYS

LONGEST: Final = 400
"""Characters of a statement that is read."""

_PERSON: Final = "person"
_VALUES: Final = {
    "user.employer": ("works_at", "organization"),
    "user.workplace": ("works_at", "organization"),
    "user.school": ("studies_at", "organization"),
    "user.residence": ("lives_in", "place"),
}
# Where somebody works or lives is often said without a name: 在医院工作, 住在附近.
_NAMES_NOTHING: Final = lazy_pattern(
    r".*(?:[里边外内]|附近|隔壁|对面|老家|网上|线[上下]|地|行业)|.*[的这那哪某他她们].*|.*[一两几三][家个所间].*"
    r"|.?(?:公司|银行|[医学法]院|大学|学校|[中小]学|工?厂|局|酒店|宿舍)"
    r"|努力|认真|拼命|兼职|全职|加班|远程|居家|国外"
)


def relations_of(content: str, *, retracts: bool = False) -> tuple[ProposedRelation, ...]:
    """The triples of a statement, each once; nothing of what was, or is denied or supposed.

    Args:
        retracts: it says that something holds no longer, and the triples are what does not.

    """
    text = " ".join(content.replace("’", "'").split())
    if not text or len(text) > LONGEST:
        return ()
    if retracts:
        found = list(_ended(text))
    else:
        found = list(_values(SPEAKER, text))
        folded = simplify(text)
        read = _chinese if has_cjk(text) else _english
        for sentence in _SENTENCE.finditer(folded):
            if not _UNREAL.search(sentence[0]):
                found += read(sentence[0], text[sentence.start() : sentence.end()])
    return tuple(dict.fromkeys(found))[:MOST_RELATIONS]


_SENTENCE: Final = lazy_pattern(
    r"[^\s.!?。！？;；…](?:[^.!?。！？;；…]|\.(?=\S)|(?<=\b[DM]r)\.|(?<=\bMrs)\.|(?<=\bMs)\.)*[?？]?"
)
# Here no relation of the sentence is sure; "not" and "was" are: "my son Tim was not at school".
_UNREAL: Final = lazy_pattern(
    r"[?？]|\b(?:if|suppose|imagine|maybe|perhaps|might|no longer|any ?more|used to|former(?:ly)?"
    r"|ex|broke up|split up|divorced|died|dead|passed away|wish|pretend|novel|fictional|named? my"
    r"|call my)\b|[吗呢]$|如果|要是|假如|也许|可能|听说|以前|曾|前(?:妻|夫|任|男友|女友)|去世|过世"
    r"|离婚|分手|不再|小说|主角|[影剧]里",
    re.IGNORECASE,
)


def _values(subject: str, said: str) -> Iterator[ProposedRelation]:
    """Where the subject lives, works and studies, by a statement in the first person."""
    for given in attributes_of(said):
        if given.name in _VALUES and not _NAMES_NOTHING.fullmatch(simplify(given.value)):
            relation, what = _VALUES[given.name]
            value = given.value.split(",")[0].strip().removeprefix("the ")
            yield ProposedRelation(subject, relation, value, _PERSON, what)


def _ended(text: str) -> Iterator[ProposedRelation]:
    for ending in endings_in(text):
        for attribute in sorted(ending.attributes & _VALUES.keys()):
            if ending.value is not None:
                relation, what = _VALUES[attribute]
                yield ProposedRelation(SPEAKER, relation, ending.value, _PERSON, what)


def _kin(relation: str, name: str) -> ProposedRelation:
    if relation == "owns":
        return ProposedRelation(SPEAKER, relation, name, _PERSON, "pet")
    if relation == "child":
        return ProposedRelation(name, "child_of", SPEAKER, _PERSON, _PERSON)
    return ProposedRelation(SPEAKER, relation, name, _PERSON, _PERSON)


def _kinds(table: Mapping[str, str]) -> str:
    """One alternative for each relation, which is the name of its group."""
    return "(?:" + "|".join(f"(?P<{name}>{words})" for name, words in table.items()) + ")"


def _said(match: Match[str], table: Mapping[str, str]) -> str:
    return next(name for name in table if match[name])


# English.

_ENGLISH_KIN: Final = {
    "relative_of": r"aunt|uncle|cousin|niece|nephew|grand(?:mother|father|ma|pa|son|daughter)"
    r"|(?:mother|father|sister|brother|son|daughter)-in-law",
    "child": r"(?:step|god)?(?:daughter|son)|child(?:ren)?|kid|baby",
    "child_of": r"mother|father|mom|mum|dad",
    "sibling_of": r"sister|brother|sibling",
    "married_to": r"wife|husband|spouse",
    "engaged_to": r"fianc[eé]e?",
    "in_relationship_with": r"partner|girlfriend|boyfriend",
    "friend_of": r"(?:old |childhood )?friend",
    "colleague_of": r"colleague|co-?worker|teammate",
    "classmate_of": r"classmate",
    "roommate_of": r"roommate|flatmate",
    "reports_to": r"boss|manager",
    "advised_by": r"adviso?e?r|supervisor|mentor",
    "owns": r"dog|cat|puppy|kitten|pet|rabbit|hamster|parrot|horse",
}
_NAME: Final = (
    r"(?-i:(?:(?:Dr|Mr|Mrs|Ms|Prof|Professor)\.? )?"
    r"[A-ZÀ-Þ](?:[a-zà-ÿ]+|[a-zà-ÿ]*['-]?[A-ZÀ-Þ][a-zà-ÿ]+)(?:-[A-ZÀ-Þ][a-zà-ÿ]+)?"
    r"(?: [A-ZÀ-Þ][a-zà-ÿ]+){0,2}(?![\w-]))"
)
_NAMES: Final = rf"{_NAME}(?:(?:, and | and |, ){_NAME}){{0,4}}"
_OF_SPEAKER: Final = r"(?:\bmy|\bour|\bthe user's|^user's)"
_NO_LONGER: Final = "late|former|old|previous|future|first|imaginary|furry"
_ADJECTIVES: Final = rf"(?:(?!(?:{_NO_LONGER})\b)[a-z]+(?:-[a-z]+)*,? ){{0,2}}"
_ANY_KIN: Final = rf"{_kinds(_ENGLISH_KIN)}(?P<many>s|(?<=en))?"
_I: Final = r"(?:^|(?<=[ ,]))(?:i|we|the user|user)"
_KIN_FRAMES: Final = tuple(
    lazy_pattern(frame, re.IGNORECASE)
    for frame in (
        rf"{_OF_SPEAKER} {_ADJECTIVES}{_ANY_KIN} (?:(?:is|are) (?:called |named )|named |called )?"
        rf"(?P<names>{_NAMES})",
        rf"{_OF_SPEAKER} {_ADJECTIVES}{_ANY_KIN}, (?P<names>{_NAME})(?=,(?! and| or| my| our)|$)",
        rf"{_OF_SPEAKER} {_ADJECTIVES}{_kinds(_ENGLISH_KIN)}(?:s|(?<=en))(?P<many>),"
        rf" (?P<names>{_NAMES})(?=$|,)",
        rf"{_OF_SPEAKER} {_ADJECTIVES}{_ANY_KIN}'s name is (?P<names>{_NAME})",
        rf"{_I}(?: have| has|'ve got| own| owns) (?:an?|one|two|three) {_ADJECTIVES}{_ANY_KIN},?"
        rf" (?:named|called) (?P<names>{_NAMES})",
        rf"^(?P<names>{_NAME}) is (?:also )?{_OF_SPEAKER} {_ADJECTIVES}{_ANY_KIN}"
        r"(?=$|,| (?:and|from|who)\b)",
        rf"^(?P<names>{_NAME}), {_OF_SPEAKER} {_ADJECTIVES}{_ANY_KIN}(?=$|,)",
        rf"^(?P<names>{_NAME}) is an? {_ADJECTIVES}{_ANY_KIN} of (?:mine|ours|the user)\b",
        rf"^(?P<names>{_NAME}) and (?:i|the user) are {_ADJECTIVES}{_ANY_KIN}$",
        rf"{_I}(?:'m| am|'re| are| is) {_ADJECTIVES}{_ANY_KIN} with (?P<names>{_NAME})",
        rf"{_I}(?:'m| am| is)(?: now| happily| still)* (?:(?P<married_to>married)"
        rf"|(?P<engaged_to>engaged)) to (?P<names>{_NAME})",
        rf"{_I}(?:'m| am| is) (?P<in_relationship_with>dating) (?P<names>{_NAME})",
    )
)
_ALONE: Final = r"(?:^|(?<=[ ,]))(?:i|the user|user)"
_THING: Final = (
    r"(?P<thing>(?-i:[A-Z][\w+#.-]*[\w+#]|[A-Z])(?: (?-i:[A-Z0-9][\w+#.-]*[\w+#]|[0-9]+)){0,2})"
)
_THING_FRAMES: Final = tuple(
    (relation, lazy_pattern(frame, re.IGNORECASE))
    for relation, frame in (
        ("uses", rf"{_ALONE}(?: (?:mainly|mostly|usually|always|also|still))? uses? {_THING}"
                 r"(?=$|,| (?:for|at|every|to|as|and|on|daily|because)\b)"),
        ("owns", rf"{_ALONE} (?:owns?|drives?) (?:an? |my )?(?:(?:old|new|used) )?{_THING}"
                 r"(?=$|,| (?:and|to|that)\b)"),
    )
)  # fmt: skip
_SUBJECT: Final = lazy_pattern(
    rf"(?:{_OF_SPEAKER} {_ADJECTIVES}{_ANY_KIN},? )?(?P<name>{_NAME}),? (?P<rest>[a-z].*)",
    re.IGNORECASE,
)


def _english(sentence: str, _: str) -> Iterator[ProposedRelation]:
    for frame in _KIN_FRAMES:
        for match in frame.finditer(sentence):
            relation = next(name for name in _ENGLISH_KIN if match.groupdict().get(name))
            names = re.split(r", and | and |, ", match["names"])
            several = match.groupdict().get("many") is not None
            for name in names if several else names[:1]:
                if _is_name(name):
                    yield _kin(relation, name)
    for relation, frame in _THING_FRAMES:
        for match in frame.finditer(sentence):
            yield ProposedRelation(SPEAKER, relation, match["thing"], _PERSON, "thing")
    named = _SUBJECT.match(sentence)
    if named and _is_name(named["name"]) and named["name"].casefold() not in MONTHS:
        yield from _values(named["name"], f"I {named['rest']}")


_OPENS: Final = STOP_WORDS[ENGLISH] | {"last", "next"}


def _is_name(name: str) -> bool:
    first = name.split(maxsplit=1)[0].casefold()
    return first not in _OPENS and not any(word in WEEKDAYS for word in name.casefold().split())


# Chinese, in simplified characters.

_CHINESE_KIN: Final = {
    "relative_of": "爷爷|奶奶|外[公婆]|姥[姥爷]|[表堂][哥姐弟妹]|[叔舅姑姨][叔舅姑姨父妈]?"
    "|孙[子女]|岳[父母]",
    "child": "女儿|闺女|儿子|孩子|宝宝",
    "child_of": "爸爸?|妈妈?|父亲|母亲",
    "sibling_of": "哥哥?|姐姐?|弟弟?|妹妹?",
    "married_to": "妻子|老[公婆]|太太|媳妇|丈夫|爱人",
    "engaged_to": "未婚[夫妻]",
    "in_relationship_with": "[男女]朋?友|对象",
    "friend_of": "好?朋友|好友|闺蜜|发小",
    "colleague_of": "同事|搭档",
    "classmate_of": "同学|同桌",
    "roommate_of": "[室舍]友",
    "reports_to": "老板|上司|领导|经理",
    "advised_by": "导师",
    "owns": "宠物|[小]?[猫狗][咪狗]?|兔子?|仓鼠|鹦鹉|乌龟",
}
_CHINESE_ANY_KIN: Final = _kinds(_CHINESE_KIN)
_SURNAMES: Final = (
    "王李张刘陈杨黄赵吴周徐孙马朱胡郭何高林罗郑梁谢宋唐许韩冯邓曹彭曾肖田董袁潘蔡蒋余杜叶魏苏吕丁"
    "任沈姚卢姜崔谭陆汪范石廖贾夏韦付方邹孟熊秦邱江尹薛闫段雷侯龙史陶黎贺顾毛郝龚邵万钱严覃武戴莫孔汤"
)
# Words that begin as a family name does.
_NO_NAME: Final = (
    r"周[一二三四五六日末围边]|马[上路虎]|高[兴考中三校铁中]|万一|方[便面法案]|任[何务性]|何[时况必]|许多|孙[子女]|"
    r"顾[客问及]|石[头油]|黄[色金]|严[重格肃]|夏天|江[苏西南边]|王[国者]|陆续|程序|经理|曾经|余下|范围|史上|武[汉术]|田[地野]|"
    r"[小老](?:[孩学猫狗时区说心气朋伙]|师|板|公|婆|家|人|是|大|实|爷|外)"
)
_LATIN: Final = r"[A-Z][A-Za-z'-]+(?: [A-Z][A-Za-z'-]+)?"
_LOOKS: Final = (
    rf"(?!{_NO_NAME})(?:[{_SURNAMES}](?![^，。]{{0,2}}[员者们店厂部组院校省市县区镇村街路长])[^\W\da-zA-Z在是的有了"
    r"着过个里我你他她这那都也还就和跟让到对很太不]{1,2}?"
    rf"|[小老阿][\u4e00-\u9fff]|(?P<twice>[\u4e00-\u9fff])(?P=twice)|{_LATIN})"
)
"""What is a name by its look alone: a family name and one or two characters, 小李, 圆圆, Anna."""
_CALLED: Final = rf"(?:(?![我你他她它了])[\u4e00-\u9fff·]{{2,4}}?|{_LATIN})"
_ENDS: Final = (
    r"(?=$|[，,、）)]|[在是叫住有也都很就去刚已要说给和跟与喜爱想会每今昨明最比从把让送考生上来结]|现在"
    "|目前|打算)"
)
_ME: Final = r"(?:我们?|咱们?|用户|本人)"
_HIS: Final = rf"{_ME}家?的?[大小老二三]?(?:最?好的|大学|以前的|新)?{_CHINESE_ANY_KIN}"
_CHINESE_FRAMES: Final = tuple(
    lazy_pattern(frame)
    for frame in (
        rf"{_HIS}(?:的?名字)?(?:是?叫做?|名叫)(?P<name>{_CALLED}){_ENDS}",
        rf"{_HIS}(?:的名字)?是?(?P<name>{_LOOKS}){_ENDS}",
        rf"(?:^|[，,])(?P<name>{_LOOKS})是{_HIS}(?=$|[，,])",
        rf"(?:^|[，,]){_ME}(?:和|跟|与)(?P<name>{_LOOKS})是.{{0,4}}?{_CHINESE_ANY_KIN}(?=$|[，,])",
        rf"(?:^|[，,])(?P<name>{_LOOKS})(?:和|跟|与){_ME}是.{{0,4}}?{_CHINESE_ANY_KIN}(?=$|[，,])",
        rf"(?:^|[，,])(?:{_ME}家?(?:现在|还|也)*)?[有养]了?[一两]?[个只条位]?.{{0,3}}?{_CHINESE_ANY_KIN}[，,]?(?:它|他|她)?(?:名字)?(?:叫|名叫)"
        rf"(?P<name>{_CALLED}){_ENDS}",
    )
)
_CHINESE_USES: Final = lazy_pattern(
    r"(?:我(?!们)|用户)(?:平时|一直|主要|每天|现在|都|在)*用"
    r"(?P<thing>[A-Z][\w+#.-]*(?: [A-Z0-9][\w+#.-]*){0,2})",
    re.ASCII,
)
_CHINESE_SUBJECT: Final = lazy_pattern(
    rf"(?:{_HIS}是?)?(?P<name>{_LOOKS})(?P<rest>(?:现在|目前)?(?:在|住|就职|任职|入职|搬|定居).+)"
)


def _chinese(sentence: str, written: str) -> Iterator[ProposedRelation]:
    for frame in _CHINESE_FRAMES:
        for match in frame.finditer(sentence):
            name = written[match.start("name") : match.end("name")]
            yield _kin(_said(match, _CHINESE_KIN), name)
    for match in _CHINESE_USES.finditer(sentence):
        yield ProposedRelation(SPEAKER, "uses", match["thing"], _PERSON, "thing")
    named = _CHINESE_SUBJECT.match(sentence)
    if named:
        name = written[named.start("name") : named.end("name")]
        yield from _values(name, f"我{written[named.start('rest') :]}")
