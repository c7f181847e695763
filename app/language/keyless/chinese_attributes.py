"""Which attribute a Chinese sentence in the third person gives, as data and how it is read."""

import re
from typing import Final

from app.language.keyless.chinese_words import PLACES, RELATIONS, SURNAMES, simplified
from app.language.keyless.english_attributes import bare
from app.language.keyless.patterns import exact

_ME: Final = r"(?:用户|客户|他|她|我|本人)(?:本人|自己)?"
_ZSOME: Final = r"""
        (?:
            现在|目前|已经|一直|刚刚|刚|最近|今年|就|是|也|还|又|终于|正式|马上|都|都是|其实|
            长期|常年|从小|从|快|才|将|即将|大概|差不多|主要|的确|原来|不再|不|没|没有|后来|平时|
            当时|以后|上个?月|上周|去年|前年|明年|下个?月|下周|
            [0-9一二三四五六七八九十两]+(?:年|个?月|天|周)(?:前|以前|之前)?|
            (?:20|19)[0-9]{2}年(?:[0-9]{1,2}月)?|今天|昨天|前天|,|，
        ){0,6}
    """
_ZV: Final = r"(?P<value>[^，,。；;！!、的]{1,24}?)"
_ZEND: Final = r"""
        (?=
            $|[，,。；;！!、]|的$|的。|了|工作|上班|生活|读书|上学|定居|那边|那儿|这边|已经|
            [0-9一二三四五六七八九十两]+年|很久|多年
        )
    """
_CHINESE: Final = tuple(
    (name, exact(pattern))
    for name, pattern in (
        (
            "name",
            (
                rf"""
                    {_ME}(?:的)?(?:名字|姓名|全名|真名|中文名|大名)(?:是|叫做?|为)?{_ZV}
                    (?=$|[，,。；;！!、])
                """
            ),
        ),
        (
            "name",
            (
                rf"""
                    (?:大家|朋友|同事|别人|家人|朋友们|同事们)?(?:都|一般|平时)?(?:叫|喊|称呼)
                    {_ME}(?:为|作)?{_ZV}(?=$|[，,。；;！!、]|就行|就好|吧)
                """
            ),
        ),
        (
            "name",
            (
                rf"""
                    {_ME}{_ZSOME}(?:
                        名叫|全名叫|本名叫|本名|姓名叫|叫做|叫|希望被称为|希望被称作|希望被叫做|
                        名为
                    )(?!什么|人|外卖|车|他|她)(?:作)?{_ZV}(?=$|[，,。；;！!、])
                """
            ),
        ),
        ("name", rf"{_ME}(?:免贵|复|敝)?姓(?!名){_ZV}(?=$|[，,。；;！!、])"),
        (
            "name",
            rf"""
            {_ME}是(?P<value>(?:{SURNAMES})[\u4e00-\u9fff]{{1,2}})(?=$|[，,。])
            (?<![师员生人医兵])
        """,
        ),
        (
            "age",
            rf"""
                {_ME}{_ZSOME}(?:正好|刚满|虚岁|周岁)?
                (?P<value>[1-9][0-9]|[二三四五六七八九]?十[有又]?[一二三四五六七八九]?)$
            """,
        ),
        (
            "residence",
            rf"""
                {_ME}{_ZSOME}(?:人|都|如今|来|在){{0,3}}在?(?P<value>(?:{PLACES}))
                (?:安了?家|待了|呆了|漂了|讨生活|定居|生活了|住了|[0-9一二三四五六七八九十]+年)
            """,
        ),
        ("residence", rf"{_ME}(?:租的房子|房子|租房){_ZSOME}在{_ZV}{_ZEND}"),
        (
            "age",
            (
                rf"""
                    {_ME}{_ZSOME}(?:年龄是|年纪是)?{_ZSOME}(?:满|有|快|刚满|刚过)?
                    (?P<value>[0-9]{{1,3}}|[一二三四五六七八九]?十[一二三四五六七八九]?)
                    (?:周?岁|了(?=$|[，,。]))
                """
            ),
        ),
        (
            "birthday",
            (
                rf"""
                    {_ME}(?:的)?(?:生日|出生日期)(?:是|在|为)?(?:每年)?(?:农历|阴历|阳历)?
                    (?P<value>[^，,。；;！!]{{2,20}}?)(?=$|[，,。；;！!])
                """
            ),
        ),
        (
            "birthday",
            (
                rf"""
                    {_ME}{_ZSOME}(?:是)?(?P<value>
                        (?:[0-9]{{2,4}}|[零〇一二三四五六七八九]{{2,4}})年
                        (?:[0-9一二三四五六七八九十]+月)?(?:[0-9一二三四五六七八九十]+[日号])?
                    )(?:出)?生
                """
            ),
        ),
        ("birthday", rf"{_ME}(?:出)?生于(?P<value>[0-9]{{4}}年[^，,。]{{0,8}}?)(?=$|[，,。；;])"),
        ("timezone", rf"{_ME}(?:的|所在的?)?时区(?:是|为|在)?{_ZV}(?=$|[，,。；;！!])"),
        (
            "occupation",
            (
                rf"""
                    {_ME}(?:的)?(?:职业|工作|本职|岗位|职位)(?:是|为){_ZV}(?=$|[，,。；;！!])
                """
            ),
        ),
        (
            "occupation",
            (
                rf"""
                    {_ME}{_ZSOME}(?:在[^，,。；;]{{1,20}}?)(?:里|那边)?(?:担任|当|做|任)
                    (?!饭|菜|事|了一|生意|梦|过|项目|开发工作)(?:一名|一个|个|一位|名)?{_ZV}
                    (?=$|[，,。；;！!])
                """
            ),
        ),
        (
            "occupation",
            (
                rf"""
                    {_ME}{_ZSOME}(?:做|搞|从事|担任)(?!饭|菜|事|了|完|好|到|生意|梦|过|项目|一|的|不|什么)
                    (?P<value>[^，,。；;！!]{{1,16}}?)(?:的|工作|这行|行业|方面的工作|相关工作)?
                    (?=$|[，,。；;！!])
                """
            ),
        ),
        (
            "occupation",
            (
                rf"""
                    {_ME}{_ZSOME}(?:当|担任|做)(?:一名|一个|个|一位|名|了)?(?P<value>
                        [^，,。；;！!]{{0,14}}(?:
                            师|员|医生|律师|护士|老师|经理|总监|教授|会计|司机|警察|军人|法官|
                            厨师|演员|作家|画家|编辑|记者|翻译|主管|顾问|店长|学徒|助理
                        )
                    )(?=$|[，,。；;！!])
                """
            ),
        ),
        (
            "occupation",
            (
                rf"""
                    {_ME}{_ZSOME}(?:是|作为)?(?:一名|一个|个|一位|名|位)?(?P<value>
                        (?!升|考|完|找|换|辞|退|做完)[^，,。；;！!是不]{{0,14}}(?:
                            工程师|设计师|程序员|老师|教师|医生|律师|护士|厨师|会计|会计师|司机|
                            警察|军人|法官|演员|歌手|作家|画家|编辑|记者|翻译|经理|总监|主管|
                            顾问|学生|研究生|博士生|本科生|大学生|高中生|留学生|实习生|教练|教授|
                            讲师|研究员|科学家|飞行员|空姐|空乘|公务员|销售|运营|产品经理|架构师|
                            分析师|药剂师|牙医|兽医|农民|工人|保安|保姆|店长|老板|创业者|
                            自由职业者|自由职业|摄影师|美容师|理发师|电工|木工|快递员|外卖员|
                            导游|图书管理员|售货员|服务员|咖啡师|调酒师|建筑师|心理咨询师|咨询师|
                            码农|前端|后端|测试|运维|全职妈妈|家庭主妇|退休教师|博主|主播|插画师|
                            裁缝|消防员|社工|检察官|审计|出纳|文员|前台|技术员|水手|牧师|化妆师|
                            造价师|规划师|培训师|策划|文案|产品|人事|HR|CEO|CTO
                        )
                    )(?:一枚)?(?=$|[，,。；;！!])
                """
            ),
        ),
        (
            "employer",
            (
                rf"""
                    {_ME}{_ZSOME}(?:入职|加入|跳槽到|跳槽去|跳到)(?:了)?
                    (?P<value>[^，,。；;！!、的了]{{1,20}}?)(?:公司)?(?:工作|上班|任职)?(?:了)?
                    (?=$|[，,。；;！!、])
                """
            ),
        ),
        ("employer", rf"{_ME}{_ZSOME}(?:供职于|就职于|任职于|受雇于|效力于){_ZV}{_ZEND}"),
        (
            "employer",
            (
                rf"""
                    {_ME}{_ZSOME}在(?!
                        家|这|那|学校|外面|外地|国外|
                        [^，,。]{{1,8}}(?:市|省|国)(?:上班|工作|打工)|线|公司
                    ){_ZV}(?:公司|集团)?(?:上班|工作|任职|就职|实习|供职|干活|干|打工)
                """
            ),
        ),
        ("employer", rf"{_ME}(?:的)?(?:公司|单位|雇主|东家)(?:是|叫){_ZV}(?=$|[，,。；;！!])"),
        (
            "residence",
            (
                rf"""
                    {_ME}(?:的)?(?:家|家人|现居地|住址|地址|住处)?{_ZSOME}(?:
                        住在|居住在|住|定居在|定居于|定居|现居|现住|人在|蜗居在|居于|常驻|客居|旅居|落户在|落户|
                        安家在
                    )(?!酒店|院|校|宿舍|了|得|一起|的|宾馆|进)(?:了)?{_ZV}{_ZEND}
                """
            ),
        ),
        ("residence", rf"{_ME}{_ZSOME}坐标(?:是|在|：)?{_ZV}{_ZEND}"),
        ("residence", rf"{_ME}{_ZSOME}在{_ZV}(?:住|定居|漂)了?{_ZEND}"),
        ("residence", rf"{_ME}(?:的)?家{_ZSOME}(?:就)?在(?!哪){_ZV}{_ZEND}"),
        (
            "residence",
            (
                rf"""
                    {_ME}{_ZSOME}(?:全家|一家人|一家)?(?:从[^，,。]{{1,10}}?)?{_ZSOME}
                    (?:搬到|搬去|搬来|搬回|搬进|移居到?|移民到?|迁到|搬家到)(?:了)?
                    (?!新家|新房|一起){_ZV}{_ZEND}
                """
            ),
        ),
        (
            "origin",
            (
                rf"""
                    {_ME}(?:的)?(?:老家|家乡|故乡|祖籍|籍贯|出生地){_ZSOME}(?:是|在|为)?
                    (?P<value>[^，,。；;！!、的]{{1,16}}?)(?:人)?(?:的)?(?=$|[，,。；;！!、])
                """
            ),
        ),
        (
            "origin",
            (
                rf"""
                    {_ME}{_ZSOME}(?:来自于?|出生在|出生于|生在|生于|长在|长大于|生长在)(?![0-9])
                    {_ZV}(?:长大)?(?:的)?(?=$|[，,。；;！!、])
                """
            ),
        ),
        (
            "origin",
            (
                rf"""
                    {_ME}{_ZSOME}在(?P<value>[^，,。；;！!、]{{1,12}}?)(?:长大|出生)(?:的)?
                    (?=$|[，,。；;！!、])
                """
            ),
        ),
        (
            "origin",
            (
                rf"""
                    {_ME}{_ZSOME}(?:土生土长的?|地道的?|地地道道的?)?(?P<value>
                        [^，,。；;！!、的个名位做对在不]{{1,8}}(?<!撰稿)(?<!主持)(?<!经纪)
                        (?<!负责)(?<!创始)(?<!合伙)(?<!工)(?<!军)(?<!商)(?<!诗)(?<!老)(?<!年轻)
                        (?<!打工)(?<!媒体)(?<!投资)(?<!成年)(?<!病)(?<!盲)(?<!男)(?<!女)(?<!好)
                        (?<!单身)(?<!普通)(?<!素食)(?<!新)(?<!手艺)(?<!音乐)(?<!独立)(?<!发起)
                        (?<!继承)(?<!监护)(?<!环保)(?<!法)(?<!牧)(?<!猎)(?<!主)
                    )人(?=$|[，,。；;！!、])
                """
            ),
        ),
        (
            "partner",
            (
                rf"""
                    {_ME}(?:的)?(?:
                        老公|老婆|妻子|丈夫|太太|先生|爱人|女朋友|男朋友|对象|女友|男友|未婚夫|
                        未婚妻|媳妇
                    )(?:的名字)?
                    (?:叫做?|名叫|是(?=(?:{SURNAMES})[^，。师员生人医兵家工者]{{1,2}}(?:$|。)))
                    (?P<value>[^，,。；;！!]{{2,10}}?)(?=$|[，,。；;！!])
                """
            ),
        ),
        ("marital_status", rf"{_ME}{_ZSOME}(?P<value>已婚|未婚|单身|离异|离婚|丧偶|结婚|订婚)"),
        ("language", rf"{_ME}(?:的)?母语(?:是|为){_ZV}(?=$|[，,。；;！!])"),
        (
            "language",
            (
                r"""
                    用户希望助手(?:总是|一律|都|始终)?用(?P<value>[\u4e00-\u9fff]{1,3}[文语话])
                    (?:来)?(?:回答|回复|交流|沟通)
                """
            ),
        ),
        (
            "diet",
            (
                rf"""
                    {_ME}{_ZSOME}(?:是|只)?(?:一个|个)?(?P<value>
                        吃素|纯素|素食主义者|素食者|素食|纯素食者|蛋奶素|清真|吃全素|全素|
                        严格素食
                    )
                """
            ),
        ),
    )
)
_CHINESE_OTHERS: Final = exact(rf"(?:用户|他|她)(?:的|家)?的?(?:{RELATIONS})")
_CHINESE_NOT_ME: Final = ("用户的团队", "用户的项目", "用户的公司", "用户希望助手不", "用户的朋友")
_CHINESE_FAVOURITE: Final = exact(
    r"""
        (?:用户|他|她)(?:的)?最
        (?:喜欢|爱|喜爱|钟爱|爱吃|爱喝|爱看|爱听|喜欢吃|喜欢看|喜欢听|喜欢喝)的
        (?:一[本部首个位种支])?(?P<kind>[^是，,。]{1,6}?)(?:一直|就|永远|始终)?(?:是|叫|为)
        (?P<value>[^，,。；;！!]{1,30})
    """
)
_CHINESE_KINDS: Final = {
    "颜色": "colour", "电影": "film", "书": "book", "歌": "song", "歌手": "singer",
    "乐队": "band", "食物": "food", "菜": "dish", "水果": "fruit", "季节": "season",
    "城市": "city", "国家": "country", "动物": "animal", "运动": "sport", "球队": "team",
    "游戏": "game", "饮料": "drink", "作家": "author", "作者": "author", "演员": "actor",
    "编程语言": "programming_language", "语言": "language", "花": "flower", "数字": "number",
    "电视剧": "series", "剧": "series", "小说": "book", "导演": "director", "科目": "subject",
    "餐厅": "restaurant", "明星": "artist", "球星": "player", "零食": "snack",
    "蔬菜": "vegetable", "甜品": "dessert", "专辑": "album", "动漫": "anime", "综艺": "show",
}  # fmt: skip
_CHINESE_AT_PLACE: Final = exact(
    rf"""
        {_ME}{_ZSOME}在(?P<value>(?:{PLACES})(?:[^，,。；;]{{0,4}}?[市省县区镇])?)(?:这边|那边)?
        (?:工作|上班|生活|打工|做|当|读书|上学|念书|读研|读博|上大学|创业|租房|开店|实习)
    """
)


def chinese_attribute(text: str) -> tuple[str, str] | None:
    folded = simplified(text)
    if folded.startswith(_CHINESE_NOT_ME):
        return None
    if _CHINESE_OTHERS.match(folded):
        partner = next((p for name, p in _CHINESE if name == "partner"), None)
        match = partner.match(folded) if partner else None
        return ("user.partner", bare(_slice(text, match))) if match else None
    favourite = _CHINESE_FAVOURITE.match(folded)
    if favourite:
        kind = _CHINESE_KINDS.get(favourite["kind"])
        if kind:
            return f"user.favourite_{kind}", bare(_slice(text, favourite))
    placed = _CHINESE_AT_PLACE.match(folded)
    if placed:
        return "user.residence", bare(_slice(text, placed))
    for name, pattern in _CHINESE:
        match = pattern.match(folded)
        # A value with the user in it is said of somebody else: 用户老婆是日本人.
        if match and "用户" not in match["value"]:
            return f"user.{name}", bare(_slice(text, match))
    return None


def _slice(text: str, match: re.Match[str]) -> str:
    return text[match.start("value") : match.end("value")]
