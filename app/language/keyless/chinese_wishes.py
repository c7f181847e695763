"""What is asked of the assistant for good: to remember something, or to answer in a manner."""

import re
from typing import Final

from app.language.keyless.chinese_words import either
from app.language.keyless.patterns import exact

_ASKING: Final = (
    either("""
        请 麻烦 劳烦 拜托 你 您 帮我 帮忙 帮 给我 替我 要 得 一定 一定要 千万 务必 可以 能 能不能
        可不可以 顺便 也 另外 还 先 好好 那 就 对了 可得 可要 可 给 再 都 助手 ， 以后
    """)
    + "{0,6}"
)
_KEEP: Final = either("""
    记住 记得 记一下 记一笔 记下来? 记好 记牢 记录一下 记录 记着 别忘了? 别忘记 不要忘了?
    不要忘记 勿忘 备注一下 备注 备个注 备忘 留意一下 存一下 存着 存下来? 保存一下 保存 做个笔记
    做个备忘 写下来 牢记 谨记 记个事儿? mark一下 Mark一下 标记一下 登记一下 记心里 记在心里
    记到心里 记小本本上? 录入一下 更新一下(?:我的)?(?:资料|档案|信息|记忆) 加到记忆里? 放进记忆
    录一下 mark
""")
_TAIL: Final = (
    either("了 哦 喔 啊 哈 呀 吧 噢 哟 一件事 这件事 这点 这一点 这个 以下 下面 个事 一下 几点")
    + "{0,6}"
)
_BEFORE: Final = exact(
    rf"{_ASKING}{_KEEP}{_TAIL}(?P<mark>[，,：:\s]*)(?!\S{{0,3}}(?:没有|吗|的吗|不))"
)
_AFTER: Final = exact(
    rf"""
        [，,。\s]*(?:这个|这点|这一点|这件事|这事儿?|这条)?{_ASKING}(?:把)?
        (?:这个|这点|这一点|这件事|这事儿?|这条|它)?{_ASKING}{_KEEP}
        (?:这个|这点|这一点|这件事|一下|心里|下来){{0,6}}(?:了|哦|喔|啊|哈|呀|吧|啦|噢|哟){{0,6}}$
    """
)

_SUBJECTS: Final = either("""
    回我 代码示例 示例 洋文 英语 外语 文言文 官腔 废话 回答 回复 答复 答案 解释 说明 表情 emoji
    感叹号 废话 客套话?
    敬语 列表 markdown Markdown 代码注释 注释 语气 英文 中文 简体 繁体 例子 单位 公制 摄氏 标题
    要点 格式 缩写 专业术语 术语 长篇大论 啰嗦 分点 编号 颜文字 引用 链接 来源 邮件 文案 东西
    报告 代码 会议 提醒 餐厅 酒店 机票 推荐 菜谱 食谱 字 说教 大道理 鸡汤 套话 成语 网络用语
    火星文 波浪号 省略号 粗体 加粗 表格 流程图 图表 步骤 结论 免责声明 道歉 开场白 寒暄 总结
""")
_ALWAYS: Final = either("""
    以后 今后 从现在起 从今以后 从今往后 从今天起 从今天开始 往后 之后 今后都 每次 默认 凡是 一律
    永远 始终 总是 任何时候 千万 记得 下次 接下来 日后 但凡 以后凡是 每回
""")
_DO: Final = either("""
    用 不要 别 不用 要 都 请 先 只 必须 叫我 称呼 尽量 简短 简洁 直接 避免 禁止 少 多 附 加 带 给
    控制 说 讲 说得 讲得 喊我 不许 无需 不必 当 拿 写
""")
_SHORT: Final = either("""
    尽量 简短 简洁 简单 短 直接 详细 精简 正式 口语化 轻松 幽默 用 不要 别 少用 带 加 分 控制
    先给 先说 先讲 不超过 精炼 干脆 通俗 接地气 温柔 严谨 利索 委婉 礼貌 亲切 活泼
""")
# 每次我分享，他们都觉得很奇怪 is told of them.
_TOLD: Final = exact(r"，(?:[他她它]们?|大家|别人|人家|老板|领导)")
_ORDER: Final = exact(
    "|".join(
        (
            # 以后都用中文回答我
            rf"""
                (?:请|麻烦|你|您|给我|跟我|帮我|对我|回答|回复|写代码|写东西|解释){{0,6}}{_ALWAYS}
                (?:[^，]{{0,16}}?，)?
                (?:请|你|您|都|给我|跟我|帮我|和我|对我|回答|回复|写|时|的时候|就){{0,6}}
                (?:[^，。]{{0,14}}?)(?P<do>{_DO})\S.*
            """,
            # 跟我说话直接点
            r"""
                (?:请|麻烦|你|您|跟我|和我|对我){0,6}(?:说话|讲话|聊天|沟通|交流)
                (?:时|的时候|请|能|可以|希望){0,6}(?:再|尽量|要|都|别|不要|不用){0,6}(?:
                    直接|简洁|简单|温柔|正式|幽默|客气|口语|随意|太|这么|那么|绕|打官腔|端着|像|
                    用|委婉|文绉绉|轻松|接地气
                )\S*
            """,
            # 回答尽量简短
            rf"""
                (?:请|麻烦|你|您|都|的时候|给我的?|你的){{0,6}}{_SUBJECTS}(?:我)?
                (?:时|的时候|里|中|内容|方面|得|也|语言){{0,6}}
                (?:请|都|要|尽量|最好|希望|能|可以|务必|一定|不要|别|少|多|一律|给我){{0,6}}{_SHORT}\S*
            """,
            # 别给我发表情
            rf"""
                (?:请|麻烦|你|您|尽量|也){{0,6}}
                (?:别|甭|莫|少给我|不要|不许|禁止|请勿|少|避免|不用|不必|无需)(?:
                    再|总是|老是?|总|给我|跟我|对我|用|使用|加|发|写|说|在|讲|这么|那么|太|那样|
                    每次都?|动不动就?|一上来就?|整|搞|扯|堆|列
                ){{0,6}}{_SUBJECTS}\S*
            """,
            # 给我列点的时候别用表情符号
            r"""
                (?:请|麻烦|你|您|以后){0,4}(?:给我|跟我|帮我|回答|回复|写|列|推荐|解释|翻译)[^我，]{0,8}(?:的时候|时)
                (?:请|都|就|尽量|最好|一定|务必){0,3}(?:别|不要|用|先|只|不用|少|避免)\S+
            """,
            # 晚上九点以后别打电话
            r"""
                (?:晚上|早上|中午|夜里|周末|节假日)\S{0,4}(?:以后|之后|以前|之前|后|前)?(?:请|都)?(?:别|不要|勿)(?:再|给我|跟我)?
                (?:打电话|来电|发消息|打扰|联系|吵|推送|提醒|安排)\S*
            """,
            # 用简体中文回答
            r"""
                (?:请|麻烦|你|您|可以|都|尽量|直接|全程|一律|一直|始终|统一){0,6}(?:用|使用|讲|说)(?:
                    中文|英文|英语|日语|简体中文?|繁体中文?|粤语|法语|德语|韩语|西班牙语|公制|
                    摄氏度?|口语|大白话|人话|白话|通俗|简单的?语言|简短|简洁|正式|markdown|
                    普通话|表格|列表|比喻
                )\S*?(?:
                    回答|回复|交流|沟通|跟我说|和我说|解释|单位|对话|语气|语言|说话|聊|讲|给我|
                    呈现
                )\S*
            """,
        )
    )
)
# What an assistant does; "以后要养只猫" and "下次别迟到" are no orders to it.
_ITS_WORK: Final = exact(
    rf"""
        {_SUBJECTS}|你|您|[给跟对帮和]我|回|答|说|讲|写|叫|称|喊|推荐|解释|发|问|提(?!交|供)|聊|用|
        算|翻|译|查|列|总结|排|改|啰|废|绕|长|短|简|详|重复|道歉|夸|客气|拍马屁|金额|日期|时间|变量
    """
)
_OPEN_TO_BOTH: Final = exact(
    r"(?:不要|别|要|都|先|只|必须|禁止|少|多|带|不许|无需|不必|不用|当|拿|避免|控制)$"
)
POLITE: Final = exact(
    r"""
        关照|指教|再说|联系|再见|见面|开心|快乐|加油|顺利|愉快|这次|这个表|这张|这份|这篇|这段|
        这封|这个(?!习惯)|这些|这里|就靠你|多多|下雨|天气
    """
)
_OWN_WORDS: Final = exact(
    r"[，,](?:因为)?(?=(?:我|本人)(?:是|不|有|没|对|在|住|就|也|看|读|的|眼|耳|家))"
)
# "下次别再问了" does not say what.
_NO_ORDER: Final = exact(
    r"(?:以后|下次|请|你|您|千万|可)*(?:别|不要|不用|不必)(?:再|总|老)?(?:给我|跟我)?(?:问|提醒|说|讲|提|写|发|改)(?:我)?了?(?:$|[，,])"
)
# 每次听老师讲课，我都觉得好困: told, and not asked.
_OWN_TIMES: Final = exact(
    r"(?:每次|每回|总是|永远|始终)(?:听|看|我|他|她|它|说|想|去|到|一|上|吃|睡|见|考|打|玩|做(?!题)|都(?:说|是))"
)
_ADDRESSED: Final = exact(r"你|请|别|不要|给我|跟我|回[答复]|帮我|告诉我")
_LATIN_WORDS: Final = exact(r"(?: [A-Za-z0-9]\S*)+")
CALLED: Final = exact(
    r"""
        (?:平时|一般|私下)?(?:
            大家|朋友们?|同事们?|同学们?|别人|家里人?|家人|身边人|熟人|圈里人?|粉丝们?|街坊|
            邻居们?|学生们?|孩子们?|你们?|您
        )?(?:平时|一般)?(?:都|一般|平时|习惯|可以|就|请|以后|直接|爱|喜欢|老|总|也|管){0,6}
        (?:(?:叫|喊|称呼|唤|称)(?:我|咱|俺|在下|本人)(?:为|作|一声|声)?|管(?:我|俺)叫)(?P<name>
            (?!
                什么|干|去|来|做|怎么|起床|吃|别|不|把|帮|的|给|回|写|说|加班|交|过|先|啥|好|用|
                改|走|看|早|多|少|快|慢|赶|睡|小心|注意|滚|加油|出|起|等|放|下|上|再|喝|闭|赔
            )[^，,。！!就吧的]{1,10}?
        )(?=$|就[行好成可]|吧|即可|也行|都行|，|,|好了|得了|呗|哈|就OK|就ok)
    """
)


def ordered(folded: str) -> re.Match[str] | None:
    """What the assistant is to do from now on, at the beginning of a text; None if nothing is."""
    order = _ORDER.match(folded)
    if order and _OWN_TIMES.match(folded) and not _ADDRESSED.search(folded):
        return None
    if order and _TOLD.search(folded[: max(order.start("do"), 0)]):
        return None
    if order and (_NO_ORDER.match(folded) or folded.startswith("是", max(order.end("do"), 0))):
        return None
    if (
        order
        and _OPEN_TO_BOTH.match(order["do"] or "")
        and not _ITS_WORK.search(folded, order.start("do"))
    ):
        return order if _ITS_WORK.search(folded[: order.start("do")]) else None
    return order


def order_end(text: str, end: int) -> int:
    """Where an order ends whose last words are Latin: 别给我推荐VS Code."""
    more = _LATIN_WORDS.match(text, end)
    return more.end() if more else end


def parted(order: str) -> tuple[str, str]:
    """An order, and what the speaker says of themselves behind it: 请用粤语，我是香港人."""
    own = _OWN_WORDS.search(order)
    return (order[: own.start()], order[own.end() :]) if own else (order, "")


def asked_before(folded: str) -> re.Match[str] | None:
    """Tell where, in "记住，我的柜子是41号", what is to be kept begins."""
    return _BEFORE.match(folded)


def asked_after(folded: str) -> int | None:
    """Tell where, in "我的柜子是41号，记一下", what is to be kept ends."""
    tail = _AFTER.search(folded)
    return tail.start() if tail and tail.start() >= 4 else None
