"""Whom the clauses behind a Chinese clause may be about, when they name nobody themselves."""

import re
from typing import Final

from app.language.keyless import chinese_words as words
from app.language.keyless.chinese_frames import ADVERBS
from app.language.keyless.chinese_words import either
from app.language.keyless.patterns import exact

# What is said of these is said of the speaker: 我名字叫陈一诺，今年三十.
_OWN: Final = either("""
    名字 姓名 全名 真名 大名 本名 英文名 中文名 网名 昵称 小名 外号 生日 年龄 职业 工作 老家 家乡
    祖籍 籍贯 户口 专业 学历 本科 硕士 博士 身高 体重 血型 星座 属相 爱好 口味 兴趣 特长 强项
    母语 目标 梦想 副业 主业 本职 职位 岗位 房租 工资 预算 家 人 坐标 MBTI 身份证 本命 性格 脾气
    视力 民族
""")
_PEOPLE: Final = rf"(?:{words.RELATIONS}|{either(words.ACQUAINTANCES)})"
_COUNTED: Final = r"(?:一|两|几|个|位|名|只|条|台|套|部|本|家|间|款|辆|所)"
_MET: Final = exact(
    rf"""
        (?:有|养|带|收|招|认识|碰到|遇到)(?:了|着|过)?{_COUNTED}{{0,3}}\S{{0,4}}?{_PEOPLE}|
        (?:找|追|请|雇|捡|领养|面试|看|相|读|听|玩|租|买|订|关注|认识)(?:
            (?:了|着|过|到|中|上){_COUNTED}{{0,3}}|{_COUNTED}{{1,3}}
        )\S{{0,4}}?(?:
            {_PEOPLE}|女孩|男生|女生|男孩|姑娘|小伙|书|电影|剧|小说|漫画|综艺|动漫|公司|岗位|
            房子?|车|店|学校|游戏|博主|主播|歌手|演员
        )|
        (?:看|刷|听|读|翻)(?:到|了|过){{0,2}}(?:一?[个篇条本部]|有人|网上)|
        (?:有|认识|碰到|遇到|看到)(?:了|过)?一?[个位]\S{{0,3}}人$
    """
)
_FOR_OTHERS: Final = exact(rf"(?:给|帮|替|为|陪|送|让|劝|想给)(?:我|咱|俺)?(?:的|家)?{_PEOPLE}")
_THINGS: Final = exact(
    rf"""
        (?:我|咱|俺)(?:的|那个|这个|们)?(?!{ADVERBS}(?:是|叫|在|姓))(?!{ADVERBS}{_OWN})
        (?:
            [^，是叫]{{1,9}}(?:是|叫)(?!否)|
            (?:公司|学校|单位|店|厂|医院|工作室|部门|项目|团队|宿舍|小区)\S{{0,3}}(?:在|有)|
            (?:养|带|用|开|住|教|管|喜欢|爱看|崇拜)的\S{{1,4}}
        )
    """
)
_OTHER_FIRST: Final = exact(
    rf"(?!{ADVERBS}(?:是|叫|姓))(?!{ADVERBS}(?:的)?{_OWN})(?:{_PEOPLE}|女主|男主|主角|相亲对象|对方|[\u4e00-\u9fff]{{1,4}}对象)(?:是|叫|姓|今年|在)"
)


_OTHERS: Final = "收件人|主角|人物|角色|对方|病人|患者|嘉宾|(?<![您你]是)谁|他|她|它"
_ASKED_AFTER: Final = exact(rf"(?:{_PEOPLE}|{_OTHERS})[^，,。！？?]{{0,16}}[?？。]?\s*$")
_ROLE: Final = exact(
    rf"(?:我|咱|俺|本人)?{ADVERBS}(?:(?:是|当|做|干|退休)|在\S{{1,10}}(?:当|做|教)|{_PEOPLE}$)"
)
_SOMEBODY: Final = exact(
    rf"(?:我|咱|俺)?(?:们|家)?的?(?:{_PEOPLE}|偶像|男神|女神|班长|队长|校长|院长|店员|保姆|月嫂|司机)(?:们|俩)?"
)
_NAMED: Final = exact(rf"(?:{words.RELATIONS})(?![，,])|我|咱|俺|本人")


def asks_of_others(question: str) -> bool:
    """Tell what asks or says something of somebody else: 您孩子多大了？, 您的孩子是五岁。."""
    return _ASKED_AFTER.search(question) is not None


def names_nobody(answer: str) -> bool:
    """Tell an answer in which neither the speaker nor a relative is named: 六岁了."""
    return _NAMED.search(answer) is None


def introduces(folded: str) -> bool:
    """Tell a clause after which one without a subject may be about what it brings up."""
    if _SOMEBODY.fullmatch(folded):
        return True
    return any(each.search(folded) for each in (_MET, _FOR_OTHERS)) or bool(_THINGS.match(folded))


def brings_others(folded: str) -> bool:
    """Tell a clause that names anybody or anything besides the speaker; their job is not one."""
    if introduces(folded):
        return True
    return _ROLE.match(folded) is None and mentions_people(folded)


def is_of_another(folded: str) -> bool:
    """Tell a clause without "I" whose subject is somebody brought up: 女主是律师."""
    return _OTHER_FIRST.match(folded) is not None


def mentions_people(folded: str) -> bool:
    """Tell a task in which somebody besides the speaker is named: 给我妈买个手机."""
    return re.search(_PEOPLE, folded) is not None
