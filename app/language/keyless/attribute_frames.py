"""The frames in which a sentence gives an attribute, in English and Chinese, as data.

A frame begins behind what may lead a sentence, and ends with it. Words in braces stand for
parts that frames share; `{v}` and `{v2}` are the values, in the order of the attributes.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from app.language.text.distinction_words import NUMBER_WORDS
from app.language.text.lazy_pattern import lazy_pattern
from app.language.text.periods import MONTHS, SEASONS, WEEKDAYS, either


@dataclass(frozen=True, slots=True)
class Frame:
    """How a sentence gives attributes.

    Args:
        groups: of the pattern, each with the attribute whose value it holds.
        began: it says that something came to be so.

    """

    pattern: re.Pattern[str]
    groups: tuple[tuple[str, str], ...]
    began: bool

    @property
    def passes(self) -> bool:
        """Whether it may say what is so for a while: where somebody is, and what they do there."""
        return not self.began and self.groups[0][1] in _PASSING


_PASSING: Final = ("residence", "employer", "workplace", "occupation", "school")


def _frames(table: str, parts: Mapping[str, str]) -> tuple[Frame, ...]:
    """Read lines of `attribute attribute [began] = pattern`; an indented line goes on."""
    lines = table.strip().replace("\n    ", "").splitlines()
    return tuple(_frame(line, parts) for line in lines)


def _frame(line: str, parts: Mapping[str, str]) -> Frame:
    names, pattern = line.split(" = ", 1)
    attributes = [name for name in names.split() if name != "began"]
    groups = tuple(zip(("v", "v2"), attributes, strict=False))
    for _ in range(4):
        for part, said in parts.items():
            pattern = pattern.replace(f"{{{part}}}", said)
    return Frame(lazy_pattern(pattern, re.IGNORECASE), groups, "began" in names.split())


# English.

_MONTH: Final = either(MONTHS)
_SEASON: Final = either(season for season in SEASONS if season.isascii())
_NUMBER: Final = either((*NUMBER_WORDS, "one"))
_TIMES: Final = (
    r"since|for|in|on|at|last|this|next|ago|now|currently|these|those|days?|right|moment|about|over|"
    r"almost|nearly|around|years?|months?|weeks?|yesterday|today|again|already|still|too|also|here|"
    r"the|an?|of|as|early|late|mid|beginning|start|end|past|couple|few|several|then|more|than|"
    rf"finally|recently|just|{_MONTH}|{either(WEEKDAYS)}|{_NUMBER}|{_SEASON}|[0-9][0-9-]*(?:st|nd|rd|th|s)?"
)
TIME: Final = lazy_pattern(_TIMES, re.IGNORECASE)
WORD: Final = lazy_pattern(r"[^\W_]+(?:['.&+-][^\W_]+)*")
SENTENCE: Final = lazy_pattern(r"(?<=[^\s.][.!?])\s+|(?<=…)|\s*;\s*")
PIECE: Final = lazy_pattern(
    r"\s*(?:,?\s(?:and|but|so|because)\s|,(?=\s)|\s[–—-](?=\s)|:(?=\s)|…)\s*", re.IGNORECASE
)
GREETING: Final = lazy_pattern(r"(?:hi|hello|hey)(?: there| all| everyone)?", re.IGNORECASE)
LEAD: Final = lazy_pattern(
    r"(?:(?:(?:hi|hello|hey)(?: there)?|and|but|so|well|actually|oh|btw|by the way|yes|yeah|no|"
    r"that|ok|okay|anyway|because|remember|note|please|fyi|for context|honestly|"
    rf"{_TIMES})(?:,? |$))+",
    re.IGNORECASE,
)
_I: Final = r"(?:i|we|the user|user)"
SELF: Final = lazy_pattern(rf"{_I}(?=[ '])", re.IGNORECASE)
VERB: Final = lazy_pattern(
    r"(?:currently |now )?(?:lives?|works?|moved|resides?|study|studies|started|joined|turned|am) ",
    re.IGNORECASE,
)
UNSURE: Final = lazy_pattern(
    r"\b(?:if|when|suppose|supposing|imagine|unless|assuming|whether|pretend|what|where|who|how|why|"
    r"wish|would|could|maybe|perhaps|probably|might|kidding|joking)\b|\?$|^(?:do|does|did|is|are|am|"
    r"was|were|can|should|will|have|has)\b",
    re.IGNORECASE,
)
NOT_NOW: Final = lazy_pattern(
    r"\b(?:until|till|temporar\w*|for now|visit\w*|trip|vacation|holidays?|while|during|before|"
    r"previously|formerly|used to|once|back then|at the time|not|never|no longer|any ?more|soon|"
    r"going to|gonna|about to|then|left|returned|as a (?:kid|child))\b|\bfrom\b.*\bto\b.*[0-9]",
    re.IGNORECASE,
)
FOR_SO_LONG: Final = lazy_pattern(
    rf"\bfor (?:about |only |just )*(?:an?|the|[0-9]+|{_NUMBER}|several)(?: few| couple of)?[ -]"
    rf"(?:\w+ )?(?:days?|weeks?|weekend|months?|{_SEASON}|semester|term|years?)\b(?! ago)",
    re.IGNORECASE,
)
FOR_A_WHILE: Final = lazy_pattern(
    rf"\b(?:this|next) (?:week\w*|month|{_SEASON}|semester|year)\b"
    r"|(?:am|is|are|'m|'re|'s) (?:\w+ )?\w+ing\b.* for (?:an?|the|[0-9]+|\w+) (?:\w+ )?"
    rf"(?:days?|weeks?|weekend|months?|{_SEASON}|semester|term|years?)\b",
    re.IGNORECASE,
)
GOES_ON: Final = lazy_pattern(r"(?:the )?[A-ZÀ-Þ][\w.]*(?: [A-ZÀ-Þ][\w.]*){0,2}|[0-9]{4}")
IS_ENGLISH: Final = lazy_pattern(r"(?:the user|i|my)(?=[ '])", re.IGNORECASE)
_MY: Final = r"(?:my|our|the user's|user's)"
INTRODUCED: Final = lazy_pattern(
    r"(?i:i'm|i am|this is) (?P<v>[A-ZÀ-Þ][\w'-]+(?: [A-ZÀ-Þ][\w'-]+)?)"
)
_CAPITAL: Final = r"(?-i:[A-ZÀ-Þ]|(?![0-9]+ ?[ap]m)[0-9]+[A-Za-z])"
ENGLISH: Final = _frames(
    r"""
name = {my} (?:full |first |real )?name(?:'s| is) {name}{tail}
name = {i}{be} (?:called|named) {name}{tail}
nickname = {i} goe?s? by {name}{tail}
nickname = (?:(?:you can|just|please) )*call me {name}
age = {i}{be}{adv} {number}(?: years? old|-years-old| yo| y/o)?(?P<tail> (?:now|today|already))?
age = {i}{have} turn(?:ed|s) {number}{tail}
age = {my} age is {number}
birthday = {my} (?:birthday|birth ?date|date of birth)(?:'s| is)(?: on)? (?P<v>.*[0-9].*)
birthday = {i} (?:was|were) born (?:on|in) (?P<v>[^,]*?[0-9].*?)(?P<tail> (?:in|at|near) [^0-9]*)?
residence = {i}{living}{adv}(?P<with> (?:alone|together|with [\w' ]+?))?
     (?:in|at) {v}{tail}
residence began = (?:i|the user|user){have} (?:moved|relocated|emigrated|immigrated)
    (?: back| over| here)*(?P<with> from [\w ]+?)? to
     (?!\S*(?-i:[a-z][A-Z0-9]|\.\w))(?!\S+ [0-9])(?=(?:the )?(?-i:[A-ZÀ-Þ])){v}{tail}
residence = {my} (?:home|home address|address|residence) is (?:in |at )?{v}{tail}
occupation employer = {i}{working} as {as}{job} (?:at|for) {v2}{tail}
employer occupation = {i}{working} (?:at|for) {v} as {as}(?P<v2>[^,;]+?){tail}
occupation began = {i}{have} started(?: work| working)? as {as}{job}{tail}
occupation = {i}{working} as {as}{job}(?P<with> in (?-i:[A-Z]).*?)?{tail}
employer = {i}{working} (?:at|for) {v}{tail}
employer began = {i}{have} started(?: work| working)? at {v}{tail}
employer began = {i}{have} (?:started|got|took|accepted|landed) (?:an?|my|the)(?: new| \w+)?
     (?:job|position|role) (?:at|with|for) {v}{tail}
employer began = {i}{have} joined {v}(?P<tail> as .*)
employer = {my} (?:employer|company)(?:'s name)? is(?: called)? {v}{tail}
school = {i}{be}{adv} an? (?:\w+ )?student at {v}{tail}
school = {i}(?:{be}{adv} studying|{adv} (?:study|studies))(?: [\w ]+?)? at {v}{tail}
occupation employer = {i}{be}{adv} an?
     (?!(?:\w+ )*(?:regular|member|guest|customer|patient|fan|visitor)\b){job} at {v2}{tail}
occupation = {i}{be}{adv} an? {job} by (?:profession|trade){tail}
occupation = {i}{be}{adv} an? (?P<v>(?:{rank}) [\w/ -]{2,50}?){tail}
occupation = {my} (?:current |day )?(?:job|occupation|profession) is (?:as )?{as}{job}{tail}
origin = {i}(?:{be}(?: originally)? from| comes?(?: originally)? from| hails? from
    |(?: was)? (?:grew up|born and raised|raised) in) {v}(?P<tail> originally)?
origin = {my} (?:home ?town|home country|nationality) is {v}{tail}
partner = {my} {spouse}(?:'s name is| is (?:called|named)| is)
     (?!(?:\w+(?:ish|ese|[eim]an|ch))\b){name}{tail}
partner = {i}(?:{be}{adv}|{have} got) (?:married|engaged) to {name}{tail}
marital_status = {i}(?:{be}{adv}|{have} got) (?P<v>married|single|divorced|engaged|widowed)
    (?P<tail> (?:since|for|now|last|this|in [0-9]|on [0-9]|[0-9]).*)?
diet = {i}{be}{adv} (?:an? |on an? )?(?:strict )?{food}(?: diet)?{tail}
diet began = {i}{have} (?:became|went|turned) (?:an? )?{food}{tail}
diet = {i}(?: follows?| keeps? to| sticks? to|{be} on) an? (?P<v>[\w -]+?) diet{tail}
language = {my} (?:native|first|mother) (?:language|tongue) is {v}{tail}
language = {i}{be} an? native {v} speaker
timezone = {my} time ?zone is {v}{tail}
budget = {my}(?: total| overall)? budget is(?: about| around| now| only)* (?P<v>[^ ]*[0-9].*)
""",
    {
        "living": r"(?:{be}{adv} (?:living|based)|{adv} (?:lives?|resides?)"
        r"|(?:'ve| have| has){adv} (?:lived|been{adv} living){since})",
        "working": r"(?:{be}{adv} (?:working|employed)|{adv} works?"
        r"|(?:'ve| have| has){adv} (?:worked|been{adv} (?:working|employed)){since}){adv}",
        "have": r"(?:'ve| have| has)?{adv}",
        "since": r"(?=.* (?:since|for) )",
        "be": r"(?:'m|'re| am| are| is|'s)",
        "adv": r"(?: (?:now|currently|just|still|also|actually|really|recently|both|permanently|"
        r"finally|already|happily|mostly|mainly|full-time|part-time|remotely|newly))*",
        "i": _I,
        "my": _MY,
        "name": rf"(?P<v>{_CAPITAL}[\w'-]+(?: {_CAPITAL}[\w'.-]+){{0,3}})",
        "number": rf"(?P<v>1?[0-9]{{1,2}}|(?:{_NUMBER})(?:[ -](?:{_NUMBER}))?)",
        "as": r"(?:an? |the |my |being |to be )*",
        "job": r"(?P<v>[\w/&' -]{2,50}?)",
        "rank": "senior|junior|lead|chief|head|freelance|self-employed|trainee|professional|"
        "certified|licensed|registered|retired|principal|full-time|part-time",
        "spouse": r"(?:wife|husband|spouse|partner|girlfriend|boyfriend|fianc[eé]e?)",
        "food": r"(?P<v>vegan|vegetarian|pescatarian|flexitarian)\b",
        # A name has a capital, and a few small words may stand before it: "a suburb of Boston".
        "v": rf"(?=(?:[a-z]+ ){{0,4}}{_CAPITAL})(?P<v>[^,;]+?)",
        "v2": rf"(?=(?:[a-z]+ ){{0,2}}{_CAPITAL})(?P<v2>[^,;]+?)",
        "tail": r"(?P<tail> (?:since|for|as|with|near|where|which|who|that|by|now|right|these|at|"
        r"currently|last|this|on|after|from|until|till|before|while|again|too|already|yesterday|"
        r"today|together|originally|not|any ?more|then|(?:an?|one|two|three|a few|[0-9]+) \w+ ago|"
        rf"in (?:[0-9]+|the \w+ of|early|late|mid|{_MONTH}|{_SEASON}))\b.*)?",
    },
)

# Chinese, in simplified characters.

_NUMERAL: Final = "[0-9一二两三四五六七八九十百千万亿零〇]"
_YEAR: Final = "[0-9〇零一二三四五六七八九]{2,4}年"
_WHEN: Final = (
    rf"(?:{_YEAR}|大?前年|去年|今年|{_NUMERAL}{{1,3}}(?:年|个月|天|周)(?:以前|之前|前)|上个?月"
    rf"|上上?周|昨天|前天|今天|{_NUMERAL}{{1,3}}月份?[底初中]?|{_NUMERAL}{{1,3}}[日号]|[春夏秋冬]天)"
)
CHINESE_SENTENCE: Final = lazy_pattern(r"[^。！？!?；;…]+[。！？!?；;…]*")
CHINESE_PIECE: Final = lazy_pattern(r"(?:[^，,。！？!?；;…]|(?<=[0-9]),(?=[0-9]))+")
CHINESE_LEAD: Final = lazy_pattern(
    r"(?:哦|嗯|对了|其实|另外|还有|而且|但是?|不过|因为|所以|你好|大家好|现在|目前|如今|从|自|起|开始|那时候?"
    rf"|{_WHEN})*(?P<who>我家|我们?(?:本人|自己)?|用户|本人|俺|咱们?)?"
)
CHINESE_KIN: Final = (
    "女儿|儿子|[老大小二三]?(?:爸|妈|爹|娘|爷|奶|哥|姐|弟|妹|叔|姑|舅|姨|嫂|婆|儿|孙)|[老外公]公|父|母|妻|丈夫|爱人"
    "|太太|媳妇|对象|[男女]友|[男女]?朋友|孩子|同[事学]|领导|室友|邻居|导师|家人|亲戚"
)
CHINESE_OTHERS: Final = lazy_pattern(rf"(?:的|家)?(?:{CHINESE_KIN})|[他她它你您]")
CHINESE_INTRODUCED: Final = lazy_pattern(
    rf"的|{CHINESE_OTHERS.pattern}|[^，,]*(?:养|有(?:[一两三几]?[个只条位]|[一两三几]))"
)
"""Whom a piece without a subject after it may be about: 我养了一只猫，今年三岁."""
CHINESE_UNSURE: Final = lazy_pattern(
    r"[？?]|[吗呢]$|什么|哪[里儿个座家]|如果|要是|假如|假设|比如|也许|可能|或许|开玩笑|听说"
)
CHINESE_PASSING: Final = lazy_pattern(
    r"直到|为止|出差|旅[游行]|度假|暂时|临时|这[周几]|[几两三]天|短期|借住|不|没|想|打算|准备|计划|希望|将|马上|明年|下个?[月周]"
)
CHINESE_UNTIL: Final = lazy_pattern(r"一?直到(?!现在|今|目前|如今)|到.*为止")
CHINESE_PAST: Final = lazy_pattern(
    rf"以前|之前|从前|曾|当时|那[时会]|小时候|时候|[前去]年|年前|昨天|上个?月|上上?周|{_YEAR}"
)
CHINESE_SINCE: Final = lazy_pattern(r"起|开始|以来|至今|到现在|一直")
CHINESE_EMPTY: Final = frozenset("了的着过在是也都就还又和与跟很这那个家有到从自我用户你他她们叫")
CHINESE: Final = _frames(
    r"""
name = {of}?(?:大名|全名|真名|中文名|英文名|名字|姓名)(?:是|叫){name}
name = {adv}名?叫做?(?![我他她你了过不停车醒人]|外卖|快递|.*[吃去来帮买送开请把说看]
    |[爸妈爹娘爷奶哥姐弟妹叔姑舅姨]|老[公婆师板]|朋友|孩子|[儿女][儿子]|同[事学]){name}
nickname = (?:可以|请|就)*叫我{name}
age = {of}?(?:年龄|年纪)?{adv}[是有满]?(?P<v>{n}{1,3})周?岁[了半]?
birthday = {of}?(?:生日|出生日期)[是在为]?(?:每年)?的?(?P<v>.*{n}.*)
birthday = {adv}出?生于(?P<v>{date})
birthday = {adv}(?P<v>{date})出?生的?
residence = {adv}(?:家?住在|住于|居住[在于]|定居[在于]?|现居住?在?|常住|家在){place}{stay}
residence = {adv}住(?![院校了得过一在不宿酒宾]){place}{stay}
residence = {adv}在{place}(?:居住|定居|住|生活|安家){stay}
residence began = {adv}(?:全家|一家人?)?(?:从.{1,10}?)?(?:搬家?[到来去回]|移[居民]到?|迁到)了?
    (?!新|[来去]了?$|[^，,]*(?:组|(?<![东南西北中])部门?|班|团队|岗位?)了?$)
    (?![^，,]*(?:实习|{n}(?:个?星期|周|个月|天))){place}{stay}
residence = 坐标[是在：:]?{place}
residence = {of}?(?:现居地|居住地|住址|地址|住处)[是在为]{place}
employer = {adv}(?:就职|任职|供职|效力|受雇)于{v}
employer began = {adv}(?:入职|跳槽[到去]|跳到)了?{v}(?:工作|上班)?了?
employer began = {adv}加入了?{org}(?:工作|上班)?了?
employer = {adv}在{org}{work}
workplace = {adv}在(?![家这那]|外[地面]|国外|一[家个所]|努力|认真|拼命|加班){v}{work}
employer = {of}?(?:公司|单位|雇主|东家)[是叫]{v}
occupation workplace = {adv}在(?P<v2>[^，,在]{2,16}?)(?:当|做|担任)(?:一?[名个位])?{job}
occupation = {of}?(?:职业|工作|本职|岗位|职位)[是为](?:一?[名个位])?{job}
occupation = {adv}[是当做](?:一|1)?[名位]{job}
occupation = {adv}(?:担任|当(?![然真时天初地年中作成心]))(?:一?[名个位])?{job}
occupation began = {adv}(?:[转改]行[去来]?[当做干]|开始[当做](?=[^，,]*[师员家工生士长手人]了?$))
    了?(?:一?[名个位])?{job}了?
occupation = {adv}从事{job}(?:的?工作|行业|这行)?
school = {adv}在{v}(?:读书|上学|念书|读研|读博|读本科|[读上]大学|就读){dur}
school = {adv}在(?P<v>[^，,]{2,12}(?:大学|学院|[中小]学|高中))(?:学习?|攻?读)[^，,了过着]{2,12}
school = {adv}就读于{v}
origin = {of}?(?:老家|家乡|故乡|祖籍|籍贯)[是在为]?{v}[人的]?
origin = {adv}来自于?{v}
origin = {adv}是(?![一个]|[成青老]年|年轻|打工|普通|单身|素食|负责|主持|媒体|合伙|创始)
    (?P<v>[\u4e00-\u9fff]{2,4}?)人
partner = {of}?(?:老[公婆]|妻子|丈夫|太太|先生|爱人|[男女]朋?友|对象|未婚[夫妻]|媳妇)
    (?:的名字)?(?:是?叫做?|名叫){name}
marital_status = {adv}(?P<v>已婚|未婚|单身|离异|离婚|丧偶|结婚|订婚){dur}
diet = {adv}只?(?P<v>吃[全纯]?素|纯素食者|素食主义者|素食者|[纯全]素|素食|吃清真)[了的]?
language = {of}?母语[是为]{v}
timezone = {of}?(?:所在的?)?时区[是为在]?{v}
budget = {of}?总?预算(?:是|为|有|在|大概|大约|约|只有|：|:)*(?P<v>.*{n}.*)
""",
    {
        "adv": r"(?:现在|目前|如今|就|是|也|还|又|都|已经|一直|刚刚?|最近|其实|长期|常年|正式"
        rf"|终于|从小?|自|起|开始|以来|人|{_WHEN})*",
        "of": r"(?:的|本人的?)",
        "place": r"(?!家|[^，,]+家$|一起|酒店|宾馆|医院|宿舍|[这那哪]|{n}+楼){v}",
        "stay": r"(?:那边|这边|附近|工作|上班|生活|定居|居住|住)*{dur}",
        "work": r"(?:工作|上班|任职|就职|供职|打工|干活){dur}",
        "dur": r"(?:了?(?:快|有|已经)?{n}+多?(?:年|个月)[多半]?)?[了的]?",
        "org": r"(?!一[家个所])(?P<v>[^，,]{0,14}?(?:公司|集团|银行|医院|大学|学院|学校|[中小]学"
        r"|研究[所院]|事务所|工作室|科技|局|厂|[A-Za-z0-9][A-Za-z0-9&. -]*))",
        "job": r"(?P<v>(?![^，,]*(?:者|迷|粉丝|新手)$)[^，,了过的我你他她]{2,14})",
        "date": _YEAR + r"(?:{n}{1,3}月(?:{n}{1,3}[日号])?)?",
        "name": r"(?P<v>[\u4e00-\u9fff·]{2,4}?|[A-Za-z][A-Za-z .'-]{0,30})(?:就行|就好|吧|即可)?",
        "v": r"(?P<v>[^，,、的了]{1,24}?)",
        "n": _NUMERAL,
    },
)
