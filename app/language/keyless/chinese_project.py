"""What Chinese says of a team and what it makes: 我们项目用Go, 后端必须用Java 17."""

from typing import Final

from app.language.keyless import chinese_words as words
from app.language.keyless.chinese_words import either
from app.language.keyless.patterns import exact

_OURS: Final = exact(
    r"""
        (?:
            我们|咱们|咱|
            我(?=的?(?:项目|团队|公司|部门|小组|学校|班|产品|店|厂|单位|实验室|工作室|创业))
        )(?:的|这个?|那个?|这边|那边)?
    """
    "(?P<what>"
    + either("""
        项目组? 团队 team Team 公司 部门 小组 组里? 产品 后端 前端 服务端? 系统 代码库? 仓库
        数据库 服务器
        线上 平台 App APP app 网站 接口 班 学校 实验室 工作室 架构 技术栈 测试 生产环境 发布日
        周会 例会 站会 财年 甲方 客户 办公室 店 厂 单位 发布 上线时间 CI 小程序 早会 流水线 镜像
        缓存 日志 监控 业务 创业团队 创业公司 社团 乐队
    """)
    + r")(?P<rest>\S+)"
)
_TECHNICAL: Final = exact(
    r"""
        (?:
            后端|前端|数据库|服务端|客户端|服务器|技术栈|线上|生产环境|缓存|消息队列|部署|日志|
            CI|网关
        )(?:主要|都|全|是|统一|一直|现在|最终|最后|还是){0,6}
        (?:用(?!户|不|完|的?是什么)|采用|部署|跑|基于|是用|走|放)(?!户|不|完)\S|
        (?:接口|文档|接口文档|代码|需求|任务|设计稿)(?:我们|都|全|统一|现在){0,6}
        (?:托管在|放在|写在|管在|存在)\S{2}
    """
)
_TOOLS: Final = exact(
    r"""
        (?:我们|咱们)(?:这边|内部|组|都|一直|主要|现在|统一|开发|平时){0,6}
        用(?!户|不|完|的|什么|哪|这|那|它|你)(?:[A-Z][A-Za-z0-9+#.-]+|飞书|钉钉|企业微信|语雀)\S*$
    """
)
_WITHIN: Final = exact(
    r"""
        (?:店里|库里|组里|厂里|班里|部门里|车间|仓库里|队里)
        (?:现在|目前|一共|总共|就|共|连我|有|才){0,6}[0-9一二两三四五六七八九十百千万]+\S+
    """
)
_LIMIT: Final = exact(
    r"""
        \S{0,8}?(?:
            必须|只能|不能|不可以|不允许|不许|禁止|务必|一律|只允许|规定|要求(?!很|特别|高|严)|
            最多|不得|限制|仅支持|只支持|强制|不让|不准
        )\S
    """
)
_DECIDED: Final = exact(
    r"""
        (?:已经|最后|最终|终于|都|这周|上周|昨天|今天|刚刚?|一致){0,6}
        (?:决定|定了|改用|换成|选了|选定|敲定|统一用|拍板|放弃|弃用|切到|迁到|改成|推迟到|定在)
        (?!不了)\S
    """
)
_FACT: Final = exact(
    rf"""
        (?:现在|目前|都|全|主要|的|还|也|一直|统一|全部|是|一共|总共|这边|那边|就|才|大概){{0,6}}(?:
            把\S{{1,6}}(?:搬|迁)到\S|(?:接口|需求|设计)?(?:文档|代码|任务|设计稿|需求)(?:都|全|统一){{0,3}}(?:在|放)\S|
            用(?!完|不|户|得)\S|采用\S|使用\S|基于\S|部署在\S|跑在\S|托管在\S|放在\S|
            是(?:用|基于|做|个|一个|一家|[A-Z]|每|周|在|\S{{1,8}}(?:公司|团队|项目|架构))\S*|叫\S|
            名叫\S|名字\S|有(?:[0-9一二两三四五六七八九十百几]+)\S|
            [0-9一二两三四五六七八九十百]+(?:个|名|口|号)?(?:多个?|来)?人|做\S{{2,}}|开发\S|
            写的?\S|在(?:{words.PLACES})\S*|在(?![搬招裁赶开做改用等扩找加忙测准考讨融缩转])[\u4e00-\u9fff]{{2,4}}$|在\S{{2,10}}(?:区|路|街|园|楼|大厦|广场|中心|办公)$|每(?:周|天|月|两|个|季)\S|从\S{{1,6}}开始|从\S{{1,10}}[迁换切转]到\S|后端\S|前端\S|由\S|走\S|
            周[一二三四五]\S*|迁移\S|接入\S|依赖\S|[一二三四五六七八九十0-9]+月\S*|面向\S|支持\S|
            规模\S|靠\S|卖\S|搞\S|主打\S|负责\S|主营\S|代号\S
        )
    """
)
_WEAK: Final = {
    "学校",
    "班",
    "发布",
    "上线时间",
    "测试",
    "店",
    "厂",
    "单位",
    "客户",
    "甲方",
    "业务",
}


def of_project(folded: str) -> str | None:
    """The type of what a clause says of a team; "" for nothing that lasts, None if of none."""
    match = _OURS.match(folded)
    if not match:
        told = any(each.match(folded) for each in (_WITHIN, _TOOLS, _TECHNICAL))
        return "fact" if told else None
    rest = match["rest"]
    if _LIMIT.match(rest):
        return "constraint"
    if _DECIDED.match(rest):
        return "decision"
    if _FACT.match(rest):
        return "fact"
    return None if match["what"] in _WEAK else ""
