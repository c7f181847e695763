"""How a Chinese sentence falls into clauses, and who each of them is about."""

import re
from collections.abc import Iterator
from typing import Final

from app.language.keyless import chinese_words as words
from app.language.keyless.chinese_frames import SOON
from app.language.keyless.chinese_words import either, simplified
from app.language.keyless.patterns import exact, joined

ME: Final = joined(r"""
    (?:
        我自己|我本人|我这个?人|我这(?=都|已经)|我个人|我|本人(?!亲自|来|到)|咱(?!们|俩)|俺|笔者|在下|鄙人|
        小弟(?!弟)|晚辈|小女子|老娘(?!家|说)|本宝宝|人家(?=最|就|不|喜欢|想|怕|只|才|也)
    )
""")
WE: Final = joined(r"""
    (?:
        我们|咱们|俺们|咱俩|我俩(?!双胞胎|小孩|孩子|娃|儿|女|猫|狗)|
        (?:我家|咱家|俺家|我们家|家里|家中)(?!就?在|住|是|离|的)|咱
    )(?:一家\S口|\S口人|小两口|两口子|俩|两个|一家|全家|几个)?
""")

_ANYWHERE: Final = either("""
    因为 所以 但是 但(?!是|凡|求|愿) 不过 而且 虽然 尽管 由于 可是 可惜 只是(?=我|咱|俺|本人) 并且
    因此 其实 毕竟 反正 既然 然而 于是 补充一下 补充一句 另外 此外 何况 况且 只不过
    主要是(?!做|教|卖) 主要(?=因为) 关键是 问题是 原因是 谁让 谁叫(?=我|咱) 鉴于 考虑到 话说回来
    说白了 说起来 算起来 要说 说到底 就是(?=我|咱|俺) 还有(?=我|咱|俺|就是) 尤其是(?=我) 万一以后
    自从(?=\\S{3,12}以?后) 更何况 再说(?!吧|一遍|$) 再加上 加上(?=我|家|平时|最近|本来)
    比如我(?=会)
    (?:说真的|说实话|老实说|讲真|坦白说|不瞒你说|妈呀|哎呀|天哪|天啊|卧槽|救命|bro|兄弟|大哥|姐妹|不是啊|然后|总之|呜呜+)(?=我|咱|俺|本人)
""")
_BEFORE_A_STOP: Final = either("""
    你好呀?啊? 您好 大家好 各位好? 嗨 哈喽 哈啰 hello Hello hi Hi hey 早上好 晚上好 下午好 早
    在吗 在么 亲 老师 大神 大佬 宝子们? 家人们 朋友们 姐妹们 对了 话说 顺便说(?:一下|一句|下)?
    顺便提一下 顺便说说 顺带一提 说实话 老实说 说真的 讲真 坦白说 不瞒你说 不瞒您说 实不相瞒
    说来惭愧 说来话长 说起来 讲道理 有一说一 说句实话 还有 另外 同时 因此 那么 那 总之 首先 其次
    最后 第[一二三四] 自我介绍一?下?哈? 简单(?:自我)?介绍一?下 介绍一下 先说一?下 先介绍下
    说一?下 说下 背景 背景是 情况是这样的? 情况 基本情况 我的情况 好消息 坏消息 更新一下 更新
    报告 汇报一下 哦 噢 嗯+ 啊 唉 哎呀? 哎哟 哈哈+ 嘿嘿 呃 额 emmm* 好的 好吧 好 行吧? ok OK Ok
    谢谢你?啦? 多谢 感谢 是的 没错 对 对啊 那个 这个 就是说 简单来说 简单说 事实上 实际上
    众所周知 跟你说(?:个事|件事|一下)? 跟您说 告诉你(?:个事|一下)? 和你说 悄悄说 偷偷说 别笑
    忘了说 忘记说 差点忘了 忘了自我介绍哈? 忘了告诉你 对我来说 于我而言 个人而言 就我而言
    就我个人来说 于我来说 你知道吗 要知道 你懂的 btw BTW PS ps p\\.s\\. 提前说 先声明一?下?
    声明一下 友情提示 提醒一下 温馨提示 提醒你一下 是这样的? 这样的? 事情是这样的? 想了想 没办法
    没法子 结果 刚好 正好 反而 终于 说不好意思 不好意思 抱歉 惭愧 如题 rt RT 救命 天哪 天啊 妈呀
    卧槽 我靠 靠 哇 哇塞 啧 害 嗐 hh+ 算了 怎么说呢 咋说呢 你也知道 您也知道 老样子 以防万一
    供参考 仅供参考 举个例子 话不多说 长话短说 总的来说 总体来说 一句话 一般来说 按理说 按说
    没骗你 真的 真心话 真事儿? 注意 注意哈 切记 先说好 丑话说前头 说正经的 言归正传 题外话 插一句
    多嘴一句 多说一句
""")
_MARKER: Final = exact(
    rf"""
        (?:
            {_ANYWHERE}[，,：:、\s]*|
            {_BEFORE_A_STOP}(?:呀|啊|哈|哦|呢|吧|了|啦|嘛){{0,6}}(?:[，,：:！!、~～\s]+)
        )
    """
)
_STANDALONE: Final = exact(
    rf"(?:{_BEFORE_A_STOP}|{_ANYWHERE}|{ME})(?:呀|啊|哈|哦|呢|吧|了|啦|嘛|们|的){{0,6}}$"
)
_AFTER_I: Final = exact(rf"(?P<i>{ME})(?:吧|呢|啊|嘛|呀|哈|哦)[，,\s]*(?=\S)")
_NOUN_PAUSE: Final = exact(r"(?P<noun>[\u4e00-\u9fff]{2,6})(?:嘛|呢|吧|啊|呀|么|[：:])$")
_TAIL: Final = exact(
    r"""
    (?:
        # One sign at a time, or a long laugh could be cut in too many ways.
        [哈嘿嘻呵呜嘤啊呀哦喔噢啦呢嘛诶欸哎唉吧嗷捏滴咯喽啰呗哩咧哟耶嘞~～!！…\U0001F300-\U0001FAFF\u2600-\u27bf]|
        的说|来着|lol|orz|\^\^|:\)|的(?=[呢啦哦]+$)|\[\S{1,4}\]|而已|罢了|这样子?|的样子
    )+$
    """
)
_BREAK: Final = exact(
    r"""
        [，,]\s*|(?<=[\u4e00-\u9fff0-9])\s+(?=[\u4e00-\u9fff])|\s+(?=我|本人)|——|--|[（(）)]|
        (?<=[\u4e00-\u9fff]{3})
        (?=(?:但是|但(?=我|也|不|是)|所以我|而且我?|不过我|因为我|可是我|并且))
    """
)
_LABEL: Final = exact(r"""
                现居地|住址|所在地|城市|姓名|昵称|性别|学历|生日|名字|年龄|职业|工作|爱好|老家|
                家乡|星座|血型|专业|口味|预算|目标|身高|体重|单位|公司|兴趣
            """)
_IS_TIME: Final = exact(
    rf"""
        (?:从|自|到|在|就在|大概|大约|就)?(?:
            {SOON}|
            [0-9一二两三四五六七八九十〇零]+
            (?:年|个?月|天|周|号|日|点|岁(?=以?前|时|的时候|那年|生日|之前|起|后))|
            (?:大?前|去|今|明|后|昨)[年天儿]个?(?:夜里|晚上|早上)?|
            大?[上下这本]个?(?:周|月|星期|礼拜|学期)[一二三四五六日天末]?(?:月?底|初|中旬)?|昨天|
            昨晚|最近|目前|现在|平时|周末|每[^我咱俺]{{1,5}}|毕业后|以后|将来|前|后|之前|之后|以前|初|
            底|的时候|夏天|冬天|春天|秋天|早上|晚上|下午|中午|上午|开始|起|暑假|寒假|份|
            [早午晚]?饭后|睡前|下班后|放假|闲暇时?|空闲时?|没事的?时候?|等[^我咱俺]{{2,10}}|讨论了半天|
            想了很久|经过\S{{1,4}}|商量之后|综合考虑|考虑再三|深思熟虑|思来想去|想来想去|
            纠结了\S{{1,4}}|跟\S{{1,5}}商量(?:了|过|完|后)\S{{0,3}}|最终|最后
        ){{1,6}}
    """
)
_NOT_THIS: Final = exact(
    rf"(?P<who>(?:{ME}|我们|我家)(?:的|家)?(?:{words.RELATIONS}))不是[^，]{{1,12}}"
)
_SURNAME: Final = exact(rf"姓(?P<name>{words.SURNAMES})$")
_NAMES: Final = exact(r"(?:它|她|他)?(?:的)?(?:名字)?(?:叫做?|名叫|取名|小名)(?!我)\S{1,8}$")
_COUNTED: Final = exact(
    rf"(?:还有)?[一二两三四五六七八九十几][只条个匹头][\u4e00-\u9fff]{{0,2}}(?:{words.RELATIONS}|狗|鱼|龟|鸟)"
)
_COUNTING: Final = exact(
    r"(?:有|养)(?:了|着)?[一二两三四五六七八九十几][只条个辆台套匹头][^，]{1,6}$"
)
_WHERE: Final = exact(r"(?:就)?(?:在|位于)(?!哪|这|那)[\u4e00-\u9fffA-Za-z]{2,8}")


def clauses(said: str) -> list[str]:
    """Clauses in order, without the connectives before and the particles behind them."""
    found: list[str] = []
    paused = False
    for piece in _BREAK.split(re.sub(r"(?<=[^，,])([：:])\s*", r"\1，", said)):
        raw = _without_markers(piece.strip())
        clause = clean(raw).rstrip("：:")
        folded = simplified(clause)
        if not clause:
            continue
        before = simplified(found[-1]) if found else ""
        full = _full_name(before, folded)
        rather = _NOT_THIS.fullmatch(before) if folded.startswith(("是", "而是")) else None
        if full:
            # "我姓周，周可欣" gives one name.
            found[-1] = re.sub(r"(?:免[贵貴])?姓.$", f"叫{clause}", found[-1])
        elif rather:
            # "我女儿不是鼻炎，是腺样体肥大" says what she has.
            found[-1] = f"{found[-1][: rather.end('who')]}{clause.removeprefix('而')}"
        elif before and any(
            each(before, folded) for each in (_continues_name, _continues_place, _continues_count)
        ):
            found[-1] = f"{found[-1]}，{clause}"
        elif paused:
            # "生日嘛，农历八月十五" is one clause.
            found[-1] = f"{found[-1]}是{clause}"
        else:
            found.append(clause)
        pause = _NOUN_PAUSE.fullmatch(simplified(raw))
        paused = pause is not None and _is_label(pause["noun"])
    return found


def _full_name(before: str, folded: str) -> bool:
    """Tell the whole name of somebody who gave their family name before it."""
    named = _SURNAME.search(before)
    return (
        named is not None
        and re.fullmatch(rf"{named['name']}[\u4e00-\u9fff]{{1,2}}", folded) is not None
    )


def _is_label(noun: str) -> bool:
    return _LABEL.search(noun) is not None


def _continues_name(before: str, folded: str) -> bool:
    """Tell ",叫胖虎", which names the animal or person before it."""
    named = _NAMES.match(folded) and re.search(rf"(?:{words.RELATIONS}|[只条])", before)
    return bool(named) and re.search(r"[有养捡]|是", before) is not None


def _continues_place(before: str, folded: str) -> bool:
    return (
        _WHERE.fullmatch(folded) is not None
        and re.search(r"买|租|开|房|店|公司", before) is not None
    )


def _continues_count(before: str, folded: str) -> bool:
    """Tell ",一只狗", which goes on counting."""
    return _COUNTED.fullmatch(folded) is not None and _COUNTING.search(before) is not None


def is_time(folded: str) -> bool:
    """Tell a clause that only says when the next one holds."""
    return len(folded) <= 16 and _IS_TIME.fullmatch(folded) is not None


def is_subject_only(folded: str) -> bool:
    """Tell "我这个人吧", after which the clause proper follows."""
    return _STANDALONE.fullmatch(folded) is not None


def _without_markers(piece: str) -> str:
    for _ in range(4):
        match = _MARKER.match(simplified(piece) + "\n")
        if not match or match.end() >= len(piece):
            break
        piece = piece[match.end() :]
    paused = _AFTER_I.match(simplified(piece))
    return piece[: paused.end("i")] + piece[paused.end() :] if paused else piece


def clean(clause: str) -> str:
    """Without spaces and the particles that end it."""
    clause = clause.strip(" \t，,。.!！、~～；;")
    cut = _TAIL.search(simplified(clause))
    if cut and cut.start() >= 2:
        clause = clause[: cut.start()].rstrip(" ，,")
    return clause


# Who a clause is about.

_OBJECT_BEFORE: Final = exact(
    r"""
        (?:
            给|对|让|叫|帮|跟|和|与|比|被|教|陪|送|告诉|问|找|为|替|请|向|催|劝|骂|说|夸|像|是|
            把|喊|带|逼|骗|爱|喜欢|想|等|懂|信|理|管|知道|觉得|认为|以为|显示|提示|看|听|发现|没|
            要|于|嫌|怪|气|吓|坑|救|求|离|推荐|随|顾|养|使|令|欠|借|还|生|认识|笑|烦|盯|派|安排|
            害|由|归|都说|包括|除了|关于|名叫|不如|答应|欺负|甩|记得|证明|建议|允许|允|不让|提醒|
            回|看着|跟着|劝过|绕|当|在
        )$
    """
)
_THIRD: Final = exact(
    r"""
        你|您|他|她|它|谁|
        (?:^|[^几])这
        (?!几年|些年|个?月|个?周|辈子|两年|个冬|个夏|个季|边|座城|行|一行|种|类|方面|点)|
        那(?!种|类|会|时)|问题|问你|老板|同事|朋友|老师|医生|客户|网友|网上|书上|据|群里|别人|
        大家|人家说|系统|软件|电脑|手机|程序|代码|显示|提示|报错|页面|说|导师|领导|房东|邻居|
        室友|同学
    """
)
_OTHERS: Final = exact(
    rf"""
        (?:{words.SURNAMES})(?:
            总|老师|经理|姐|哥|叔|阿姨|主任|教授|医生|大夫|工|导|先生|女士|太太|同学|律师|局|处|科长|书记|
            校长|院长|师傅|大爷|大妈
        )(?!是我|作)|
        [A-Z][a-z]+(?:在|因为|说|昨天|今天|喜欢|跟|和我|觉得)|
        (?:我|我家)(?:{words.RELATIONS})的(?:同学|老师|朋友|同事|老板|同桌)|
        有(?:个|一个|位|一位|些|的)
        (?!{words.RELATIONS}|习惯|毛病|爱好|目标|梦想|计划|外号|小|弟|妹|哥|姐)[^，]{{0,3}}
        (?:人|客户|同事|朋友|同学|老师|学生|网友|邻居)|
    """
    + either("""
        用户 我方 对方辩友 楼主 题主 博主 原作者
        我们(?:小区|这[儿边里]|那[儿边里]|村|楼|单元|镇上?|街上?)(?!工作) 他 她 它 你 您
        这(?!几年|些年|两年|辈子|么多年) 那 大家 人家 别人 有人 很多人 有的人
        有些人 人们 老师 医生 大夫 朋友 同事 老板 书里 新闻 电影 邻居 对方 客户 某 谁 网上 群里
        网友 甲方 领导 同学 室友 房东 导师 软件 系统 程序 页面 文件 公司 学校 快递 外卖 天气 外面
        题目 答案 文章 视频(?!剪辑)
        代码 报错 电脑 手机(?!号|用|是) 网络 wifi 浏览器 插件 窗口 接口 数据
        图片 照片 字体 颜色 标题 结果 问题 上面 下面 前面 后面 里面 第[一二三四五0-9]
        我(?:电脑|手机(?!号|用|是)|(?:的)?代码|问题|意思|程序|文件|论文|作业|脸|头(?!发|围)|天(?!天)|靠|去(?!年|过|了)|的天|说的|住的|问的|要的|想的|发的|写的|买的|订的|点的|用的(?!是|手机|电脑|一直|都))
        楼上 路人 演员 歌手 明星 作者 主播 博主 导演 球员 客服 警察 司机 孩子们 年轻人 男人 女人
        现在的 一个人$ 如今的 隔壁 楼下 对面 中国 日本人 北京人 外国人 南方人 北方人
    """)
)
_POSSESSED: Final = exact(
    "(?:的|这)?"
    + either("""
        身子骨? 身板 人 胃 腰 嘴 肠胃 脾气 性格 脑子 体质 生日 名字 姓名 爱好 目标 梦想 职业
        工作(?=就?是|单位) 最爱 预算 老家 家乡 兴趣 计划 愿望 母语 英文名 中文名 血型 身高 体重 专业
        理想 年龄 星座 MBTI mbti 邮箱 电话 手机号 微信 QQ 口味 偏好 车牌 新年 日语 英语 法语 德语
        韩语 厨艺 作息 车(?=是|叫|牌) 电脑(?=是|用|一直|配) 手机(?=是|用|号|一直) 学校(?=是|在)
        部门 航班 宠物 网名 昵称 小名 外号 笔名 全名 真名 大名 国籍 鞋码 工号 学号 偶像 强项 特长
        弱项 短板 底线 上限 原则 习惯 主业 副业 本职 研究方向 导师 座右铭 户口 学历 本科 硕士
        会员号 房号 属相 尺码 收入 月薪 年薪 工资 公司(?=是|叫|在) 单位(?=是|叫|在) 工位 酒量
        记性 视力 听力 膝盖 腰 胃 眼睛 颈椎 皮肤 肠胃 睡眠 普通话 住址 地址 生肖 雷点 时区
        论文(?=得|必须|要|\\S{0,3}截) 答辩 婚礼 房租 租的房 消遣 解压方式 本命 男神 女神 主力机
        开发机 编辑器 系统(?=是) 安排 家(?=在|住|离) 早餐 早饭 晚饭 午饭 通勤
    """)
)
_KIN: Final = exact(
    rf"""
        (?:
            (?:{ME}|我们|我家|咱家|俺家|我们家|咱们家|家里|家)
            (?:的|家|家的|那个?|那位|最大的|最小的|大的|小的|这|们家|们)?(?:亲|大|小|二|老)?
        )(?P<kin>(?:{words.RELATIONS}){{1,2}}(?:和(?:我)?(?:{words.RELATIONS}))?(?:们|儿|俩)?)(?!
            粮|子(?!女)|砂|气|仪|味|
            (?:的(?!名字|生日|职业|专业|工作|小名|大名|血型|电话|手机|公司))
        )(?P<rest>\S.*)
    """
)
_BARE_KIN: Final = exact(
    r"""
        (?P<kin>
            老公|老婆|媳妇儿?|丈夫|妻子|对象|男朋友|女朋友|男友|女友|未婚夫|未婚妻|闺女|女儿|儿子|
            大儿子|小儿子|大女儿|小女儿|孩子|娃|爸妈|父母|爸爸|妈妈|爷爷|奶奶|外公|外婆|姥姥|
            姥爷|公公|婆婆|岳父|岳母|弟弟|妹妹|哥哥|姐姐|孙子|孙女|老大|老二|大宝|二宝|父亲|母亲|
            老爸|老妈|爱人|老伴
        )(?:俩|们|他|她)?(?!的(?!生日|名字)|和我|[吗呢怎什])(?P<rest>\S.*)
    """
)
_ACQUAINTED: Final = exact(
    rf"""
        (?:{ME}|我们|咱们)(?:的|公司的?|部门的?|组的?|家|那个?|这个?)?(?:新来的?|刚来的|合租的?|以前的?|最好的)?(?P<who>{either(words.ACQUAINTANCES)})
        (?P<rest>
            (?:的名字)?(?:叫(?!我|人|外卖)|名叫|姓|是(?=[\u4e00-\u9fff]姓)).+|
            (?:以前|现在|也|都)?是(?:个|一个|一名|名|位)?[\u4e00-\u9fff]{{0,6}}{either(words.JOBS)}$|
            是(?:做|搞|干|开|教|卖|研究|学|画|拍|跑)\S{{1,8}}的$|
            在[\u4e00-\u9fffA-Za-z]{{2,10}}?(?:做|当|开|教|卖|工作|上班|读书|读研|读博|创业)\S*
        )|
        (?:合租的|对门的?|楼下的?)?{either(words.ACQUAINTANCES)}(?:叫|姓)(?!我|人|什么|你)
        \S{{1,5}}$
    """
)


_ACQUAINTANCE_FIRST: Final = exact(
    rf"""
        (?:{ME}|我们|咱们)(?:的|那个?|这个?|公司|部门|组|家|有(?:一?[个位些]|几个|不少|很多|好多)?)?
        (?:{either(words.ACQUAINTANCES)})(?!兄弟|姐妹|圈|证|卡|号|时代|党|会|师傅|是我|台|们?聚)
    """
)


def is_about_others(folded: str) -> bool:
    """Tell a clause about somebody or something else than the speaker."""
    return _OTHERS.match(folded) is not None


def subject_end(folded: str) -> tuple[int, int] | None:
    """Where "I" stands, and where the predicate begins; None when the speaker is no subject.

    What stands before "I" is a time or a topic: "川菜我做得不错".
    """
    for match in re.finditer(rf"{WE}(?!的(?!{_POSSESSED.pattern}))|{ME}", folded[:24]):
        before = folded[: match.start()]
        if _OBJECT_BEFORE.search(before) or _THIRD.search(before):
            return None
        rest = folded[match.end() :]
        possessed = _POSSESSED.match(rest)
        if rest.startswith("的"):
            return (match.start(), match.end() + 1) if possessed else None
        return match.start(), match.end()
    return None


_WHEN: Final = exact(rf"{_IS_TIME.pattern}(?=我|咱|俺|家里)")


def kin_predicate(folded: str, *, bare: bool) -> str | None:
    """What is said of a relative or pet of the speaker; None if the clause is not about one."""
    lead = _WHEN.match(folded)
    told = folded[lead.end() :] if lead else folded
    match = _KIN.match(told) or (_BARE_KIN.match(told) if bare else None)
    return match["rest"] if match else None


def names_acquaintance(folded: str) -> bool:
    """Tell a clause that begins with such a person, whatever it says: 我老板是个处女座."""
    return _ACQUAINTANCE_FIRST.match(folded) is not None


def is_acquaintance(folded: str) -> bool:
    """Tell "我们组长姓王", all that is kept of people who are no relatives."""
    return _ACQUAINTED.match(folded) is not None


_OF_KIN: Final = exact(
    rf"""
        (?:{ME}|我们|我家|咱家)(?:家|的)?
        (?P<age>[0-9一二两三四五六七八九十]+(?:周?岁|个月大?)(?:半|多)?)的?
        (?P<kin>{words.RELATIONS})
    """
)


def kin_in_passing(folded: str) -> Iterator[tuple[str, str]]:
    """Relatives and their age named by the way: "给我五岁的女儿挑本书"."""
    for match in _OF_KIN.finditer(folded):
        yield match["kin"], match["age"]
