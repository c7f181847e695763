"""What speaks for and against a Chinese clause being worth remembering, each with a name.

The patterns name grammar and a few closed classes (kinship, aspect, measure words), not things of
the world; how much each counts is learnt. Texts are folded to simplified characters before.
"""

import math
from itertools import product
from typing import Final

from app.language.text.lazy_pattern import lazy_pattern

PERSON: Final = (
    "(?:爸爸?|妈妈?|父母|父亲|母亲|爷爷|奶奶|外公|外婆|姥[姥爷]|哥哥?|姐姐?|弟弟?|妹妹?|老公|老婆|丈夫|妻子"
    "|爱人|媳妇|对象|[男女]朋?友|未婚[夫妻]|儿子|女儿|孩子|小孩|宝宝|[大小]?娃|闺女|孙[子女]|[叔舅姑姨伯婶]+[父母妈]?"
    "|[表堂][哥姐弟妹]|公公|婆婆|岳[父母]|家人|亲戚|朋友|闺蜜|发小|同学|同桌|[室舍]友|老师|导师|同事|老板|领导"
    "|上司|主管|经理|客户|邻居|房东|医生|教练|搭档|合伙人|队友)"
)
"""Who people speak of without a name."""
NICKNAME: Final = "[小老阿](?![时说学区家板是实想程组型心孩猫狗鸟朋伙吃公师婆姨])[\u4e00-\u9fff]"
_NUMBER: Final = "[0-9０-９〇零一二两三四五六七八九十百千万亿半几]"
_MEASURE: Final = (
    "(?:多)?(?:个?[岁年月天周日号点分]|个?(?:小时|星期|礼拜)|[次个名位只条套辆本部台间家件张份门种篇届级班楼层瓶杯]"
    "|公?斤|公?里|米|厘米|平米?|块|元|万|亿|美[元金]|欧元|%|％|[kKwW]\\b)"
)
_MOOD: Final = (
    "(?:[开伤担灰]心|难[过受]|高兴|快乐|失望|害怕|焦虑|无聊|紧张|兴奋|激动|生气|烦躁?|郁闷|沮丧|委屈"
    "|孤单|孤独|幸福|满足|惊讶|期待|感动|崩溃|压力|疲惫|累|迷茫|纠结|后悔|尴尬|丢脸|糟糕|不舒服|舒服"
    "|好玩|有趣|有意思)"
)
_DEGREE: Final = (
    "(?:我|咱|们|也|都|还|就|真的?|好像?|很|太|非常|特别|超级?|挺|蛮|有点儿?|有些|一直|现在|今天|最近"
    "|心里|心情|感[觉到]|觉得|让|是|的|不|这|那|听起来|实在|确实)"
)
_MOOD_ONLY: Final = lazy_pattern(
    rf"(?:(?!{_MOOD}){_DEGREE})*+{_MOOD}++[死极坏透]?[了啊呀呢的吧哦啦哈喔嘛！!~]*"
)
_ASIDE: Final = lazy_pattern(
    "[但可是不过就还也]*我?(?:还是)?(?:感觉|觉得|好想|真的?|太|超级?|心里|听起来|看起来).*"
)
"""What is said beside an event, in a later part."""

_TIME_BEFORE: Final = (
    "(?:(?:今|昨|前|明|后|大前|大后)[天晚早年]|[早晚]上|[上中下]午|(?:上|下|这|本)+个?(?:周|月|星期|礼拜|学期|季度)[一二三四五六日天末]?"
    "|[周星][期]?[一二三四五六日天末]|去年|最近|现在|目前|以前|之前|小时候|刚才?|平时|每[天周年晚]|[0-9一二三四五六七八九十]+[月年日号点][0-9份初底]*|其实|本来|一直|当时|那时候?|后来|终于)"
)
_OPENING: Final = rf"(?:{_TIME_BEFORE}[，,的 ]?)*+"
_SUBJECTS: Final = (
    ("subject_person_of_speaker", lazy_pattern(
        rf"{_OPENING}(?:我们?|咱们?|俺)(?:(?:家|的|家的|班|学校|公司)?[新最老大小二三]?好?的?{PERSON}"
        "|[家的][^，。是在有了]{1,5}(?=[是在有也都很叫今快]))"
    )),
    ("subject_speaker", lazy_pattern(rf"{_OPENING}(?:我|咱|俺|本人|自己)")),
    ("subject_user", lazy_pattern("该?用户(?![们数量增反体界名都])|使用者")),
    ("subject_pronoun", lazy_pattern(rf"{_OPENING}(?:[他她它]们?|大家|人家|这[个是]|那[个是])")),
    ("subject_person", lazy_pattern(
        rf"{_OPENING}(?:{PERSON}|{NICKNAME}|[A-Z][a-z]+"
        "|[\u4e00-\u9fff](?:[姐哥总工叔姨]|老师|医生|教练|经理|主任|教授|律师))"
    )),
    ("subject_speaker", lazy_pattern(
        rf"(?![^我]*{PERSON})[^，的是让给叫说跟和对把被比他她它]{{1,8}}我(?![们了的，。！]|$)"
    )),
)  # fmt: skip
"""How a clause opens; the first that fits counts."""
NO_SUBJECT: Final = "subject_none"

_CUES: Final = {
    "speaker": lazy_pattern("我(?!们)|咱|俺|本人"),
    "we": lazy_pattern("我们|咱们"),
    "person": lazy_pattern(PERSON),
    "third_person": lazy_pattern("(?<![吉其])他|[她它]"),
    "nickname": lazy_pattern(rf"(?<![最从很大太幼弱]){NICKNAME}"),
    "latin_name": lazy_pattern(r"\b[A-Z][A-Za-z+#.]*|\b[a-z]+[A-Z]\w*"),
    "title": lazy_pattern("《[^》]+》"),
    "named": lazy_pattern("(?:名字|名)?叫(?!我|你|他|她|做)|我姓|昵称"),
    "relative_day": lazy_pattern("(?:今|昨|前|明|后)[天晚早]|刚刚?|刚才|[上中下]午|早上|晚上|半夜"),
    "relative_period": lazy_pattern(
        "[上下这本]个?(?:周|月|星期|礼拜|学期|季度|半年)|[去今明前后]年|[年月]底|[年月]初|以前|之前|小时候|从小|当年|那年"
        "|[春夏秋冬]天|[暑寒]假|最近|周末|周[一二三四五六日]|星期[一二三四五六日天]"
    ),
    "date": lazy_pattern(rf"{_NUMBER}+[年月日号](?!个)|\d+[-/.]\d+[-/.]?\d*"),
    "quantity": lazy_pattern(rf"{_NUMBER}+{_MEASURE}"),
    "digits": lazy_pattern(r"\d"),
    "money": lazy_pattern(r"(?:块|元|万|美金|工资|月薪|年薪|预算|房贷|首付|存款|[¥￥$])"),
    "age": lazy_pattern(rf"{_NUMBER}+(?:多)?岁|年龄|生日|出生"),
    "done": lazy_pattern(
        "(?<![除为太极])[\u4e00-\u9fff](?:了|过|完|到了?|上了)(?!头|程|分|来|去|解|多)"
    ),
    "lives": lazy_pattern(
        "住(?!院)|家在|老家|[在从到][^，]{1,12}(?:工作|上班|上学|读|念|住|实习|做|当|任教)|就职|任职|在读|[入离辞]职|跳槽|上[小中大]学"
    ),
    "is_a": lazy_pattern("是(?:[一个名位做搞学]|.{1,8}[人师生员长的])"),
    "state": lazy_pattern(
        "毕业|退休|单身|[结离]婚|怀孕|去世|出生|未婚|已婚|属[鼠牛虎兔龙蛇马羊猴鸡狗猪]|岁了|[血]型"
    ),
    "likes": lazy_pattern(
        "喜欢|[最很超]爱|(?<!可)爱(?![情心的好])|热爱|偏[好爱]|感兴趣|迷上|宁愿|更愿意"
    ),
    "dislikes": lazy_pattern(
        "讨厌|不喜欢|受不了|不爱|不能?[吃喝碰]|(?<![害担恐可])怕(?=[^，不没会更被我他她]{1,4}(?:[，了的]|$))|嫌|反感"
    ),
    "health": lazy_pattern(
        "过敏|确诊|手术|住院|失眠|体检|[吃服]药|复查|病|[疼痛](?!快|苦)|受伤|近视|耐受"
    ),
    "habit": lazy_pattern(
        "每(?:天|周|次|晚|年|月|个|逢|隔)|总是|从不|从来|经常|常常|习惯|一直|平时|一般|通常|有时候?|天天|老是|每日"
    ),
    "plan": lazy_pattern(
        "打算|准备|计划|[决]定|报[了]?名|[约订预]了|马上[要就]|即将|就要|快要|会去|要[去考参搬换开交上做结生]|目标|攒|备考|正在|在学"
    ),
    "wish": lazy_pattern("想(?!起|到|法|象|着|知|问|想|一想)|希望|梦想|愿望|[等盼]着|期待|还没"),
    "decision": lazy_pattern("选了|改[用成了]|换[成了]|不再|戒|放弃|再也不|搬[到家了]|分手"),
    "skill": lazy_pattern(
        "会[说做弹写用游开修画唱跳讲]|擅长|学[了过会着]|熟悉|精通|拿手|水平|自学"
    ),
    "rule": lazy_pattern(
        "以后|今后|从现在起|从今天起|叫我|称呼我|不要再|别再|记住|回答|回复|跟我说|(?:写|说|用).{0,6}(?:时|我|都)|都[说用]|一律|始终"
    ),
    "project": lazy_pattern(
        "项目|版本|系统|接口|数据库|服务器|部署|框架|代码|论文|上线|用的是|团队|公司|甲方"
    ),
    "school": lazy_pattern("学校|班|课|考[试了上研]|专业|大学|[小初高]中|年级|成绩"),
    "told": lazy_pattern(
        rf"(?:{PERSON}|[他她]们?|[小老][\u4e00-\u9fff])(?:们)?(?:跟我|对我|也|都|今天|总|一直)?(?:说|夸|批评|让|叫|告诉|答应|送|建议|教|给我)"
    ),
    "doubt": lazy_pattern("可能|也许|好像|似乎|或许|说不定|大概|估计|应该[是会能]|不知道|不确定"),
    "opinion": lazy_pattern("(?<!总)(?:觉得|感觉)|认为|看起来|听起来|看来|显得|以为"),
    "mood": lazy_pattern(_MOOD),
    "question_word": lazy_pattern("什么|怎么|哪|谁|为何|多少|吗|是否|如何|几[点个号]"),
    "second_person": lazy_pattern("你|您"),
    "praise": lazy_pattern("谢|太棒|真棒|好主意|说得对|有道理|厉害|不错|加油"),
    "worry": lazy_pattern("担心|害怕|怕[^，]*[不没会更被我他她]|生怕|怎么办"),
    "procedure": lazy_pattern(
        "首先|其次|最后(?!一)|步骤|先.{1,20}(?:再|然后)|把[^，]{1,6}[切打拆洗剁]|关键是|即可|就(?:可以|行|好)了?$|需要|应该|根据|按照|要(?:多|注意|保持|学会)|(?:分钟|小时)左右"
        "|第[一二三]步|适量|[放加倒]入|才能|能够|的方法|有助于"
    ),
    "chats": lazy_pattern("聊|认识你|到这里|先这样|再见|下次(?:再|见)|晚安|告诉你|跟你说|陪我"),
    "tries": lazy_pattern(
        r"试[试一]|([看想尝听读查])一?\1|尝试(?![^，]*了)|考虑|努力|加油|建议|你说的|推荐的|相信"
    ),
    "proposes": lazy_pattern("吧[！!]?$|我们(?:来|可以|一起|再|先)|一起(?:来|去)吧"),
    "introduces": lazy_pattern(
        "(?:我|^)(?:现在|目前|已经|刚)?(?:叫(?![他她你])|姓|住(?!院)|家在|对.{1,9}过敏|[在从][^，]{1,12}(?:工作|上班|上学|读|[离辞]职|毕业))"
        "|我是(?!说|不是|想|要|觉|真|在)|名字[叫是]"
    ),
    "exercise": lazy_pattern(
        "求(?:解|证|导|值|出|面积)|方程|函数|公式|[这本下]道?题|选择题|计算|已知|设[a-zA-Z]|造句|布置|小明[有买]|作文|答案|题目"
    ),
    "fiction": lazy_pattern("主角|[男女]主|人物|角色|故事|小说|[剧书]里|从前|设定|扮演|游戏里"),
    "general": lazy_pattern("人们|世界|社会|人类|所有人|每个人|历史|一种|据说|听说|有人|网上"),
    "quotation": lazy_pattern('[“"]'),
    "that_one": lazy_pattern(
        "[这那](?:[个种些样款次件只本条]|里|儿|边)(?!人|时候|月|周|星期|礼拜|学期|暑|寒)"
    ),
}
_TOGETHER: Final = (
    *product(
        ("subject_speaker", "subject_none", "subject_person", "subject_pronoun"),
        ("done", "likes", "mood", "opinion", "wish", "lives", "is_a", "state", "plan", "habit",
         "age"),
    ),
    *product(("done", "plan"), ("relative_day", "relative_period", "quantity")),
    *product(("third_person", "nickname"), ("told", "relative_day", "relative_period")),
    *product(("short",), ("likes", "plan", "habit", "dislikes", "state", "skill")),
    ("opinion", "mood"),
)  # fmt: skip
"""Cues that say more together."""
_SHORT: Final = 7
_LONG: Final = 60
_USUAL: Final = 2.5
"""Logarithm of the usual number of characters."""


def subject_of(clause: str) -> str:
    """Whom it opens with, as the name of a cue."""
    for name, pattern in _SUBJECTS:
        if pattern.match(clause):
            return name
    return NO_SUBJECT


def cues_of(clause: str, subject: str) -> dict[str, float]:
    """The cues that a clause in simplified characters has by itself; an event stays one beside a
    mood.
    """
    parts = clause.split("，")
    telling = [
        part
        for place, part in enumerate(parts)
        if not _MOOD_ONLY.fullmatch(part) and not (place and _ASIDE.match(part))
    ]
    told = "，".join(telling or parts)
    cues = {name: 1.0 for name, pattern in _CUES.items() if pattern.search(told)}
    cues[subject] = 1.0
    cues["length"] = math.log(1 + len(told)) - _USUAL
    cues["short"] = float(len(told) < _SHORT)
    cues["long"] = float(len(told) > _LONG)
    cues["mood_only"] = float(not telling)
    cues["mood_beside"] = float(0 < len(telling) < len(parts))
    for first, second in _TOGETHER:
        if first in cues and second in cues:
            cues[f"{first}+{second}"] = 1.0
    return {name: value for name, value in cues.items() if value}
