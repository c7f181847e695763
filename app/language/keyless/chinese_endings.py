"""What an ending said in Chinese ends: 用户从阿里辞职了, 用户家猫没了, 用户搬走了.

Reads sentences in the third person, as `endings` does.
"""

import re
from typing import Final

from app.language.keyless.attributes import attribute_of, comparable
from app.language.keyless.chinese_words import either, simplified
from app.language.keyless.patterns import exact
from app.language.text.lazy_pattern import lazy_pattern

_WHEN: Final = (
    r"(?:在?[0-9]{4}年\S{0,8}?|刚|刚刚|已经|终于|又|也|都|正式|最近|现在|早就?|前阵子){0,4}"
)
_JOB_ENDS: Final = exact(
    rf"""
        用户{_WHEN}(?:
            (?:从(?P<from>\S{{2,12}}?))?{_WHEN}
            (?:辞职|离职|裸辞|退休|下岗|失业|被(?:\S{{2,10}}?)?(?:裁|辞退|优化|开除|劝退)(?:员|掉)?)|
            (?:不在|离开|离开了)(?P<left>\S{{2,12}}?)(?:干|上班|工作|做)?
        )了?$
    """
)
_COUPLE: Final = exact(
    rf"""
        用户{_WHEN}(?:[跟和与](?P<who>\S{{1,8}}?))?{_WHEN}
        (?:离婚|离了|分手|分开|掰|闹掰|分居)了?(?P<tail>$|\S{{0,3}}$)
    """
)
_PARTNERS: Final = either("""
    老公 老婆 丈夫 妻子 太太 先生 爱人 对象 女朋友 男朋友 女友 男友 未婚夫 未婚妻 媳妇
""")
_COUPLED: Final = exact(
    rf"用户(?:家|的)?{_PARTNERS}|用户\S{{0,4}}(?:有(?:了)?{_PARTNERS}|已婚|[结订]婚|领证|[跟和]\S{{1,8}}(?:在一起|恋爱|同居|结婚))"
)
_PETS: Final = either("""
    狗狗 狗 猫咪 猫 兔子 仓鼠 鹦鹉 乌龟 金毛 柯基 橘猫 布偶 泰迪 哈士奇 拉布拉多 边牧 英短 柴犬
""")
_PET_ENDS: Final = exact(
    rf"用户(?:家|的|家的|养的){{0,2}}(?:那只)?(?P<kind>{_PETS})(?P<name>[\u4e00-\u9fff]{{1,4}}?)?{_WHEN}"
    r"(?:去世|过世|走|没|死|不在|丢|送人)了?$"
)
_PET: Final = exact(
    rf"用户(?:家|家里)?(?:的)?(?:有|养)(?:了|着)?(?:一)?(?:只|条|个)?\S{{0,4}}?(?P<kind>{_PETS})"
    rf"(?:\S{{0,3}}?叫(?P<name>\S{{1,6}}))?$|用户(?:家|的|家的)?(?P<kind2>{_PETS})\S{{0,3}}?叫(?P<name2>\S{{1,6}})$"
)
_MOVED: Final = exact(
    rf"用户{_WHEN}(?:从(?P<from>\S{{2,10}}?))?搬(?:走|离|出)了?(?P<out>\S{{2,8}}?)?了?$"
)
_QUIT: Final = exact(
    rf"用户{_WHEN}(?:把)?(?:戒(?:掉)?了?(?P<what>\S{{1,4}}?)|(?P<what2>\S{{1,3}})戒(?:掉)?)了?$"
)
_NO_MORE_OF: Final = exact(r"用户\S{0,8}?(?:抽|吸|喝|吃|玩|喝点|爱|喜欢|每天|天天|一天)\S*")
_SOLD: Final = exact(
    rf"用户{_WHEN}把(?P<what>\S{{1,8}}?)(?:卖|送人|转让|盘|扔)(?:了|掉了?|出去了?)$"
)
_OWNED: Final = exact(r"用户(?:家|家里|自己|现在|的)*(?:有|养|买|开|骑|用|入手|经营)\S*")
_MEAT_AGAIN: Final = exact(rf"用户{_WHEN}(?:重新|又|现在)?(?:开始)?(?:吃(?:肉|荤)|不吃素|开荤)了?$")
_MEATLESS: Final = exact(r"用户\S{0,8}(?:吃(?:全|长|纯)?素|素食|纯素)(?!.*(?:不|没))")
_SWITCHED: Final = exact(
    rf"""
        用户{_WHEN}(?:从(?P<old>\S{{1,16}}?))?(?:决定)?
        (?:换到|换成|换了|转到|转用|改用|改成|切到|换用|迁到|迁移到)了?(?P<new>\S{{1,16}}?)了?$
    """
)
_USES: Final = exact(
    r"用户(?:的\S{1,4})?(?:主要|平时|一直|现在|都|目前|写代码|是){0,4}(?:用的?是?|使用|主力是?)(?P<what>\S{1,16}?)(?:写\S*)?$"
)
_COUNT: Final = exact(
    r"用户(?:家|家里)?(?:现在)?有(?P<number>[0-9]{1,2}|[一两二三四五六七八九十])(?:个|只|条|辆|套)"
    r"(?P<what>孩子|娃|儿子|女儿|猫|狗|车|房子?|哥哥|弟弟|姐姐|妹妹|孙子|孙女)$"
)
# An end without a name that lies years back is none of what holds now.
_YEARS_BACK: Final = lazy_pattern(r"(?:19|20)[0-9]{2}年(?![0-9])|年前|以前|当年")
_RIVALS: Final = (
    {"vim", "neovim", "emacs", "vs code", "vscode", "sublime", "idea", "pycharm", "cursor"},
    {"windows", "linux", "macos", "mac", "ubuntu"},
    {"chrome", "firefox", "safari", "edge"},
    {"iphone", "安卓", "安卓机", "安卓手机", "苹果", "苹果手机", "华为", "小米", "华为手机"},
    {"飞书", "钉钉", "企业微信", "slack"},
    {"notion", "obsidian", "语雀", "印象笔记"},
    {"网易云", "qq音乐", "spotify", "apple music"},
)


def chinese_ends(new: str, old: str) -> bool:
    """Tell whether an old statement in Chinese holds no longer, now that the new one does."""
    one, other = simplified(new).rstrip("。"), simplified(old).rstrip("。")
    return any(found(one, other) for found in (_job, _couple, _pet, _home, _habit, _thing, _count))


def _holds(old: str, *attributes: str) -> str | None:
    given = attribute_of(old)
    return comparable(given[1]) if given and given[0] in attributes else None


def _job(new: str, old: str) -> bool:
    found = _JOB_ENDS.match(new)
    employer = _holds(old, "user.employer") if found else None
    if not found or employer is None:
        return False
    named = found["from"] or found["left"]
    return comparable(named) in employer if named else not _YEARS_BACK.search(new)


def _couple(new: str, old: str) -> bool:
    found = _COUPLE.match(new)
    if not found or not (_COUPLED.match(old) or _holds(old, "user.partner")):
        return False
    who = found["who"]
    if who is None or who.startswith(("他", "她")):
        return not _YEARS_BACK.search(new)
    return re.sub(r"^(?:用户|的)+", "", who) in old


def _pet(new: str, old: str) -> bool:
    found, pet = _PET_ENDS.match(new), _PET.match(old)
    if not found or not pet:
        return False
    name = pet["name"] or pet["name2"]
    same = found["kind"][0] == (pet["kind"] or pet["kind2"])[0]
    return same and (not found["name"] or not name or found["name"] == name)


def _home(new: str, old: str) -> bool:
    found = _MOVED.match(new)
    home = _holds(old, "user.residence") if found else None
    if not found or home is None:
        return False
    named = found["from"] or found["out"]
    return comparable(named) in home if named else not _YEARS_BACK.search(new)


def _habit(new: str, old: str) -> bool:
    if _MEAT_AGAIN.match(new) and _MEATLESS.match(old):
        return True
    found = _QUIT.match(new)
    what = str(found["what"] or found["what2"] or "") if found else ""
    return what != "" and what in old and "不" not in old and bool(_NO_MORE_OF.match(old))


def _thing(new: str, old: str) -> bool:
    sold = _SOLD.match(new)
    if sold:
        what = re.sub(r"^(?:那|这|用户的?|老|旧|破)?[辆台套只条]?", "", sold["what"])
        return bool(what) and what in old and bool(_OWNED.match(old))
    found, used = _SWITCHED.match(new), _USES.match(old)
    if not found or not used:
        return False
    now, before = comparable(found["new"]), comparable(used["what"])
    if found["old"]:
        return comparable(found["old"]) == before
    return now != before and any(now in group and before in group for group in _RIVALS)


def _count(new: str, old: str) -> bool:
    one, other = _COUNT.match(new), _COUNT.match(old)
    if not one or not other:
        return False
    return one["what"] == other["what"] and one["number"] != other["number"]
