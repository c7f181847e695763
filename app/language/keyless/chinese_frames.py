"""What a frame of a Chinese predicate is, and the slots that frames are made of."""

import re
from dataclasses import dataclass
from typing import Final

from app.language.keyless import chinese_words as words
from app.language.keyless.chinese_words import either
from app.language.keyless.patterns import exact, joined
from app.language.keyless.statements import EXPLICIT

NUMBER: Final = r"(?:[0-9]+(?:\.[0-9]+)?|[一二两三四五六七八九十百千万几半俩仨]+)(?:多|来|几)?"
YEARS: Final = rf"{NUMBER}个?(?:多)?(?:年|载|个月|月|周|天|星期|礼拜)(?:多|半)?"
AGE: Final = (
    r"(?:[0-9]{1,3}|[一二三四五六七八九]?十[有又]?[一二三四五六七八九]?|[二三四五六七八九])"
)
JOB: Final = either(words.JOBS)
# What is at hand or was just spoken of is nobody's taste.
THING: Final = joined(r"""
        (?!
            这(?!种|类|样|方面|行|边|座)|那(?!种|类|边)|它|他|她|你|您|上面|下面|后者|前者|前一|
            后一|第[一二三四五0-9]|原来那|刚才|的|得|都|了|吗|就|死|是|个人|
            我(?!们|家|妈|爸|老|女|儿)
        )[^，,。]
    """)
MONTH: Final = r"(?:[0-9]{1,2}|[一二三四五六七八九十]{1,2})"
SOON: Final = joined(
    "(?:"
    + either("""
        今年 明年 后年 大后年 下个?月 下下个?月 下周[一二三四五六日末天]? 下下周 下个?星期
        下个?礼拜[一二三四五六天]? 下半年 上半年 年底 年前 年后 年初 开年 开春 入秋 入冬 明天
        后天 大后天 暑假 寒假 春节 国庆 五一 十一 元旦 中秋 端午 过年 过完年
        这个?(?:夏天|秋天|冬天|春天|月底|月|学期|周末|暑假|寒假) 今年(?:夏天|秋天|冬天|春天)
        明年(?:夏天|秋天|冬天|春天|初|底) 春天 夏天 秋天 冬天 毕业后 毕业以?后 退休以?后 将来
        未来 以后 往后 月底
        (?:[二三四五六七八]十[一二三四五六七八九]?|[0-9]+)岁(?:之?前|以前|那年) 双十一 下学期
        新学期
        新的一年 年内 近期 很快 赶在\\S{1,6} 争取 有机会 早晚 迟早 总有一天 有朝一日
    """)
    + rf"""
        |{MONTH}月(?:份|底|初|中旬|[0-9]+[号日])?(?!前)|
        {NUMBER}个?(?:年|月|天|周|星期)(?:之内|以内|内|后|之后|以后))
    """
)
PAST_TIME: Final = exact(
    either("""
        昨[天晚儿]个? 前[天晚] 大前天 上个?月 上上个?月 大?上周[一二三四五六日末天]? 上上周
        上个?星期[一二三四五六日天]? 上个?礼拜[一二三四五六天]? 去年 前年 大前年 今年 年初 年前
        上半年 上学期 春节 国庆 五一 元旦 暑假 寒假 前不久 前阵子 前段时间 不久前 最近 刚刚 刚 才
        终于 总算 早就 今[天早]
    """)
    + rf"|{YEARS}(?:之|以)?前|(?:19|20)?[0-9]{{2}}年|{MONTH}月(?:[0-9]+[号日])?|[0-9]+[号日]"
)
_TIMES: Final = joined(rf"""
    (?:
        前阵子|前段时间|前不久|不久前|这阵子|前些天|前几天|
    (?:大学|高中|大专|本科|硕士|研究生|博士)?(?:毕业|退休|退伍|辞职|离职|下岗|结婚|离婚|工作|当兵)(?:之|以)?后|
    去年|前年|大前年|今年|昨[天晚儿]个?|前[天晚]|大前天|年初|年底|上个?月|上半年|下半年|
        这学期|上学期
    )(?:的)?
    (?:[春夏秋冬]天|{MONTH}月(?:份|底|初)?|年?底|初|夜里|晚上|早上|上午|中午|下午|[0-9]+号)?|
    (?:春节|国庆|五一|元旦|中秋|端午|暑假|寒假|过年|[春夏秋冬]天)(?:那天|那会儿|期间|的时候)?|
    {MONTH}月(?:份|底|初|[0-9]+[号日])?(?!生)|(?:19|20)[0-9]{{2}}年(?:[0-9]{{1,2}}月)?|
    [上下这]个?(?:周末?|月|星期)|[大前昨]天|(?:周|星期|礼拜)[一二三四五六日天末]|
    从\S{{1,6}}(?:起|开始)就?|跟着\S{{2,4}}(?=学|自学|练)|{NUMBER}(?:年|个?月|天|周)(?:以|之)?前
""")
_WITH: Final = joined(rf"""
    (?:和|跟|与|陪|带着?)(?:我|咱|俺)?(?:{words.RELATIONS}|{either(words.ACQUAINTANCES)})
    (?:一起|一块儿?)?
""")
ADVERBS: Final = rf"""
        (?:
            {either(words.ADVERBS)}|{_TIMES}|{_WITH}|是(?=对|从|在|跟|和|去年|前年|[0-9]{{4}})
        ){{0,6}}
    """


@dataclass(frozen=True, slots=True)
class Frame:
    """A shape of predicate.

    Args:
        memory_type: of what it says; None where it says nothing that lasts.
        past: whether a month without a year lies behind.
        may_retract: ended with 不…了 it takes something back.
        bare: it may stand without "I".
        within: must be found anywhere in the clause.

    """

    pattern: re.Pattern[str]
    memory_type: str | None
    confidence: float = EXPLICIT
    past: bool = True
    may_retract: bool = False
    bare: bool = True
    within: re.Pattern[str] | None = None


def frame(
    kind: str | None,
    *patterns: str,
    past: bool = True,
    may_retract: bool = False,
    bare: bool = True,
    within: re.Pattern[str] | None = None,
) -> Frame:
    """A frame of which any pattern may follow the adverbs."""
    pattern = exact(f"{ADVERBS}(?:{'|'.join(patterns)})")
    return Frame(pattern, kind, past=past, may_retract=may_retract, bare=bare, within=within)


def at_once(*patterns: str) -> Frame:
    """A veto that no adverb may precede."""
    return Frame(exact("|".join(patterns)), None)
