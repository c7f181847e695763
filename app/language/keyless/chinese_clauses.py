"""The clauses of a Chinese message in which the speaker may tell something, in their own words.

A sentence is cut at its commas into parts; questions, requests and hypotheses among them are left
out, and what stays is joined again. Subjects are dropped as long as they stay the same, so a part
without one belongs to the part before it, and a sentence without one may need the sentence before.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from app.language.keyless.chinese_cues import NICKNAME, NO_SUBJECT, PERSON, cues_of, subject_of
from app.language.keyless.clauses import ASKED, LONGEST_LEAD, Clause, without_pasted
from app.language.text.lazy_pattern import lazy_pattern
from app.language.text.normal_forms import simplify

_HAN: Final = "\u3400-\u9fff"
_SENTENCE: Final = lazy_pattern(
    rf"(?:[^。！？!?；;\n…~～.]|\.(?![\s{_HAN}]|\Z))+[。！？!?；;…~～.]*"
)
_PART_END: Final = lazy_pattern(
    rf"(?<!\d)[，,]|[，,](?!\d)|——+|(?<!\d)[：:](?!\d|//)|(?<=[{_HAN}])[ \u3000]+(?=[{_HAN}])"
    "|[（）()]"
)
_CONNECTIVE: Final = lazy_pattern(
    r"(?:嗯+|哈[喽啰]|哇塞|[啊哦哎唉诶欸哇嘿哈呀嗨]+(?=[，,、\s我你他她这那今昨]|\Z)"
    r"|对[啊呀的了]*(?![我你他她不面方])|是[啊的](?=[，, ])|没错|可(?=[我他她])"
    r"|(?:不过|但是?+|可是|其实)(?!没有|不是)|所以|而且|然后|另外|还有(?=[，, ])|话说|只是|只不过"
    r"|毕竟|再说|总之|那么|于是|结果|并且|以及|就是(?=我)|反正|首先|其次|当然(?!是)"
    r"|说实话|老实说|说真的|顺便说一下|补充一下|比如说?|例如|[，,、\s])+"
)
_MARKS: Final = ' ”"」\n'
_TRAILING: Final = " ，,、：:。！？!?；;…~～.—（("
_FILLER: Final = lazy_pattern(
    r"(?:[嗯啊哦噢哇呀唉哎嘿哈呵额呃诶欸呜嗨咦]+|[对好行是]+[啊呀的吧了呢哦]*|没错|当然[了啦可以]*|(?:[说搞弄记]|你)*错了|不对|不是这样的?|[更纠]正一下"
    r"|真的[吗啊呢]?|没事[的了]?|(?:谢谢|多谢|感谢|你好|您好|[早晚]上好|[早晚]安|好主意|太好了).*|.{0,3}[师家位生]好"
    r"|再见|拜拜|不是[哦的啊]?|没有[耶啊呢]?|可以[的啊]?|不好意思|抱歉|我?[很超也最]?级?喜欢[啊呀的]?"
    r"|没(?:问题|关系|什么|有了)|(?:很|真)?高兴(?:认识|见到)[你您].*|明白了?|知道了|说[到起].{0,12}|是这样的?|(?:我的)?(?:情况|问题|背景)(?:是|如下)?"
    r"|还有|(?:万一|如果|要是|怕)你(?:忘[了记]*|不知道|不记得)(?:的话)?|[oO][kK]|[hH](?:i|ello|ey)|[\W\d_]*)\W*"
)
# 学会了怎么 and 不知道为什么 ask nothing.
_HOW: Final = r"(?<![学教懂道到])(?<![学教]了)(?<!教[你我他她])怎么(?!都|也)|(?<![道解])为什么"
_WHETHER: Final = "能不能|可不可以|要不要|(?<![但可])是不是|会不会|该不该|有没有"
_QUESTION: Final = lazy_pattern(
    rf"{_HOW}|{_WHETHER}|吗$|什么意思|有什么|如何|应该怎|是否|能否|可否|多少钱|好呢$|哪[个些种里]"
    "|什么是|是什么"
)
_OF_WORDS: Final = lazy_pattern("[”」]|.*(?:怎么[说读念写译]|什么意思)")
"""It asks about the words before it: “我对坚果过敏”用意大利语怎么说."""
_INDIRECT: Final = lazy_pattern(
    "(?:学|教|知道|懂|了解|明白|发现|忘|记得|决定)[^，]{0,4}(?:怎么|如何|为什么|哪|有什么|是不是)"
)
_TAIL: Final = lazy_pattern(
    rf"(?P<request>请问|请[你帮给]|(?<!(?<!现)在)帮我|麻烦|给我推荐(?!的)|求推荐|想[问请]|你觉得|你说(?![的过得]))"
    rf"|我?(?:应该|该)(?:怎|如何|不该|吃|做|买|选|去)|{_HOW}|{_WHETHER}|有什么"
    "|(?:需要|适合)(?=.*(?:吗|什么))|[我还]?(?:能|可以)(?=[^，]*吗)"
)
"""Where the question or request begins in a part that tells something before."""
_ASKED_FOR: Final = f"[什怎哪谁几啥]|多[少大久远高长]|是否|如果|{_WHETHER}"
_KNOWN: Final = lazy_pattern(
    rf"你(?:还?记得|知道)(?![他她它])((?:(?!{_ASKED_FOR}|我的?意思).)*我(?:(?!{_ASKED_FOR}).)*?)吗[啊呀]?"
)
"""What a question takes for granted."""
_STATES: Final = lazy_pattern(
    "(?![^是叫]*的[^是叫在住了过]{1,6}$).*(?:[是叫在住有了过不没会爱搬去]|[喜讨]|对.+过敏|岁$)"
)
"""It says something, and does not only name it."""
_REQUEST: Final = lazy_pattern(
    r"(?:那|就|再|先|所以|现在|今天|你)*+(?:请问|请(?![假客了过教吃])|帮(?:我|忙|一下|个忙)|麻烦|劳烦"
    "|能否|能不能|可不可以|可以(?:请你|给我|帮|告诉|教|推荐|讲|说说)|告诉我|教教?我|举个|有什么"
    "|给我(?:写|讲|推荐|列|做|出|一[个份些]|来|举|介绍|解释|分析|点|生成|设计)"
    "|推荐[一几个些点下]|求(?:推荐|助|教|问|一)|我?想(?:知道|问|请|让你|请教|了解|听听?你|咨询)|想要?你"
    "|我?需要你|用.{1,8}(?:语气|口吻|风格)|(?:介绍|解释|总结|分析|对比|比较)一下|讲[讲一]|说说|翻译"
    "|[列写][出一][个篇封段首份]?|生成一|设计一|有没有(?:什么|推荐|办法|好)"
    "|给[^，]{1,8}写一?|把[^，]{1,12}(?:改一?[下成]|整理|扩写)|以[^，]{1,12}(?:写|为题)"
    "|你(?:觉得|认为|说说?|看|知道|能|可以|有|会|给|帮))"
)
_TRANSFORMS: Final = lazy_pattern("翻译|[改译]成|改写|润色|造句|修改|续写|语病|[这下]句话|句子")
"""What follows its colon is not told but to be worked on."""
_HYPOTHESIS: Final = lazy_pattern(
    ".{0,4}(?:如果|要是|假如|假设|万一|倘若|即使|就算|哪怕|除非|比方说?)|.*的话$"
)
_RULE: Final = lazy_pattern(
    "(?:以后|今后|从[现今][在天]起|从今以后|接下来|每次|一直|永远|始终|一律|都|不用再|别再?|不要再?|千万)"
    ".{0,24}(?:回答|回复|称呼|叫我|跟我说|给我|对我|提醒|说[话明]|用[中英简繁]|术语|表情)"
    "|[请你]?(?:就|可以|都)?(?:叫我|称呼我)|(?:回答|回复)(?:时|的时候|我|要|请|尽量|用)"
)
_REMEMBER: Final = "(?:记[住好牢下]|记一下|备注一下|别忘了)(?![的过])[吧啊哈哦]?(?:这[点个])?"
_ASKED: Final = lazy_pattern(rf"(?:请|你|帮[我忙]|麻烦|务必|一定要?|先)*+{_REMEMBER}")
_WAS_ASKED: Final = lazy_pattern(rf"(?<![\w]){_ASKED.pattern}[，,：: ]*\Z")
_ADDRESS: Final = lazy_pattern("[你您](?!们家)")
_TELLS_AGAIN: Final = lazy_pattern(
    rf"我(?!想[知问请让了])|咱|{PERSON}|[他她]|[小老][{_HAN}]|现在|目前|最近|[今昨明去前]|[上下][周个]"
    "|平时|之前|本人|家里|[^0-9一二两三四五六七八九十]*[0-9一二两三四五六七八九十百千万]++(?![字词句段行首个条点篇种])"
)
_OTHERS: Final = lazy_pattern(rf"[他她](?!们?的话)|[你您](?:的|家)?的?(?:{PERSON}|[猫狗])")
_REFERS_BACK: Final = lazy_pattern(
    "[他她它]们?|这(?:个|些|件|让|样|是|对)|那(?:个|些|次|时|天|边|里)|其中|里面|两[个人]都"
)
_OWN_PREDICATE: Final = lazy_pattern(
    r"(?:今年)?[0-9一二三四五六七八九十]+岁|住在|在.{1,12}(?:工作|上班|上学|读|实习|做)|是[一个名]|毕业于"
    "|[很最特别]*[不讨]?(?:喜欢|讨厌|爱|吃)|对.{1,8}过敏|养了|有[一两三个0-9]|[月年]薪|身高|体重|老家|平时|每[天周]|打算|计划|准备"
)
_POINTER: Final = lazy_pattern("(?<![吉其])他|[她它]")
_ANTECEDENT: Final = lazy_pattern(
    rf"{PERSON}|{NICKNAME}|[A-Z][a-z]|[一两三几][个只条位]|叫(?!我)|每个|别人|[养有]了?[^没，]"
)
_INTRODUCES: Final = lazy_pattern(rf"养|有[一个两]|^[^是]*(?:{PERSON}|[猫狗])")
"""Who may be the next subject that is dropped."""
_GOES_ON: Final = lazy_pattern("(?:的时候|时|[之以]?[前后]|期间|那[天年次])$")
"""What ends so only says when."""
_REASON: Final = lazy_pattern("因为|由于")
_ASKING: Final = ("知道", "记得")
_SHORTEST: Final = 3
_TELLING: Final = 6
_FEW: Final = 7
_NEXT: Final = 5
_NEAR: Final = 14
_LONG: Final = 36
_LONGEST: Final = 400
"""Characters; a longer run without any mark is read in pieces of this length."""
_ANSWER: Final = 2
"""Sentences of a message that may answer the question before it."""

_Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class _Part:
    """What stands between two commas, with its place in the message."""

    start: int
    end: int
    text: str


def chinese_clauses(text: str, before: str | None) -> list[Clause]:
    """In the order of the message; `before` is the message that it answers, or nothing."""
    plain = simplify(without_pasted(text))
    answered = simplify(before or "")
    asked = answered.rstrip(_MARKS)[-1:] in set("?？吗呢")
    clauses: list[Clause] = []
    topic: Clause | None = None
    whom = NO_SUBJECT
    for place, sentence in enumerate(_SENTENCE.finditer(plain)):
        aside = ""
        for spans in _units(sentence):
            shown = " … ".join(text[first:last].strip(_TRAILING) for first, last in spans)
            folded = simplify(shown)
            subject = subject_of(folded)
            start, end = spans[0][0], spans[-1][1]
            cues = cues_of(folded, subject)
            cues |= _context(folded, subject, whom if topic else None, answered)
            cues |= {"answer": 1.0} if asked and place < _ANSWER else {}
            cues |= {} if clauses else {"first": 1.0}
            cues |= {"inside": 1.0} if plain[max(start - 3, 0) : start].endswith(_ASKING) else {}
            cues |= {"orders": 1.0} if _RULE.match(folded) else {}
            if _WAS_ASKED.search(plain, max(start - _NEAR, 0), start):
                cues[ASKED] = 1.0
            points = _dangles(folded)
            cues |= {"led" if topic else "unresolved": 1.0} if points else {}
            lead = topic.text if topic and (points or _leans(folded, subject, whom)) else ""
            lead = lead if len(lead) <= LONGEST_LEAD else ""
            clauses.append(Clause(shown, start, end, cues, lead, aside))
            aside = f"{shown}，"
            if "mood_only" not in cues and not lead:
                whom = whom if topic and subject == NO_SUBJECT else subject
                topic = clauses[-1]
    return clauses


def _context(folded: str, subject: str, whom: str | None, answered: str) -> dict[str, float]:
    """Cues of what came before, for a clause that does not say whom it is about."""
    if subject not in {NO_SUBJECT, "subject_pronoun"} and not _REFERS_BACK.match(folded):
        return {}
    if whom:
        return {f"after_{whom}": 1.0} if subject == NO_SUBJECT else {"led": 1.0}
    cues = {"others_before": 1.0} if _OTHERS.search(answered) else {}
    return cues if subject == NO_SUBJECT else cues | {"unresolved": 1.0}


def _leans(folded: str, subject: str, whom: str) -> bool:
    """Whether it cannot be understood without the clause before."""
    if _REFERS_BACK.match(folded):
        return True
    return subject == NO_SUBJECT and whom not in {NO_SUBJECT, "subject_speaker"}


def _dangles(folded: str) -> bool:
    """Whether it speaks of him, her or them before it has named anybody."""
    pointer = _POINTER.search(folded)
    return pointer is not None and not _ANTECEDENT.search(folded, 0, pointer.start())


def _units(sentence: re.Match[str]) -> Iterator[list[_Span]]:
    """What of one sentence may be told: for each statement the places of what is joined."""
    asks = sentence[0].rstrip(_MARKS).endswith(("?", "？"))
    unit: list[_Part] = []
    whom = NO_SUBJECT
    for part in _told(list(_parts(sentence)), asks=asks):
        own = subject_of(part.text)
        if unit and _opens_unit(part, unit, own, whom):
            yield from _joined(unit)
            unit = []
        unit.append(part)
        whom = whom if own == NO_SUBJECT else own
    yield from _joined(unit)


def _parts(sentence: re.Match[str]) -> Iterator[_Part]:
    text, offset = sentence[0], sentence.start()
    begin = 0
    for mark in _PART_END.finditer(text):
        yield from _pieces(text, begin, mark.start(), offset)
        if mark[0] in "：:" and _TRANSFORMS.search(text, begin, mark.start()):
            return
        begin = mark.end()
    yield from _pieces(text, begin, len(text), offset)


def _pieces(text: str, begin: int, end: int, offset: int) -> Iterator[_Part]:
    for first in range(begin, end, _LONGEST):
        piece = text[first : min(first + _LONGEST, end)]
        opened = _CONNECTIVE.match(piece)
        start = first + (opened.end() if opened else 0)
        bare = text[start : first + len(piece)].rstrip(_TRAILING)
        if bare:
            yield _Part(start + offset, start + offset + len(bare), bare)


def _told(parts: list[_Part], *, asks: bool) -> Iterator[_Part]:
    """The parts that are no question, request, hypothesis or filler."""
    swallows = False
    for part in parts:
        asked = asks and part is parts[-1]
        opened = _ASKED.match(part.text)
        if not asked and (opened or _RULE.match(part.text)):
            swallows = False
            start = part.start + (opened.end() if opened else 0)
            if start < part.end:
                yield _Part(start, part.end, part.text[start - part.start :])
            continue
        if _HYPOTHESIS.match(part.text) and not _FILLER.fullmatch(part.text):
            return
        if _REQUEST.match(part.text):
            swallows = True
            continue
        told = _before_question(part, asked=asked)
        if told and not (swallows and not _TELLS_AGAIN.match(told.text)):
            swallows = False
            yield told


def _before_question(part: _Part, *, asked: bool) -> _Part | None:
    """What of the part is told: nothing of a question, of thanks, of talk about the assistant."""
    known = _KNOWN.fullmatch(part.text)
    if known and _STATES.match(known[1]):
        return _Part(part.start + known.start(1), part.start + known.end(1), known[1])
    found = _QUESTION.search(part.text)
    asked = asked or (found is not None and not _INDIRECT.search(part.text))
    tail = _TAIL.search(part.text)
    if tail and (asked or tail["request"]):
        told = part.text[: tail.start()].rstrip(" 我还就都")
        if len(told) < _TELLING or _OF_WORDS.match(part.text):
            return None
        return _Part(part.start, part.start + len(told), told)
    addressed = _ADDRESS.match(part.text) is not None and "我" not in part.text
    return None if asked or addressed or _FILLER.fullmatch(part.text) else part


def _opens_unit(part: _Part, unit: list[_Part], own: str, whom: str) -> bool:
    """Whether it tells something of its own, after a unit that is about whom."""
    length = part.start - unit[0].start
    if _GOES_ON.search(unit[-1].text) or _REASON.match(part.text):
        return length > _LONGEST
    if own in {"subject_speaker", "subject_person_of_speaker", "subject_user"}:
        return length >= _FEW or _OWN_PREDICATE.match(unit[0].text) is not None
    if own == NO_SUBJECT and whom == "subject_speaker":
        if _INTRODUCES.search(unit[-1].text):
            return length > 2 * _LONG
        return _OWN_PREDICATE.match(part.text) is not None or length > _LONG
    return length > 2 * _LONG


def _joined(unit: list[_Part]) -> Iterator[list[_Span]]:
    if sum(len(part.text) for part in unit) < _SHORTEST:
        return
    spans: list[_Span] = []
    for part in unit:
        # What stands next to it, but for a mark and a connective, is taken with it.
        if spans and part.start - spans[-1][1] <= _NEXT:
            spans[-1] = (spans[-1][0], part.end)
        else:
            spans.append((part.start, part.end))
    yield spans
