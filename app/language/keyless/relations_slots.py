"""What fills a slot of the Chinese triples and names nothing: 在努力工作, 住在隔壁, 学了三年."""

import re
from collections.abc import Mapping
from typing import Final

from app.language.keyless.chinese_words import PLACES, either
from app.language.keyless.patterns import exact

LANGUAGE: Final = (
    r"(?:英|法|德|日|韩|俄|汉|国|粤|西|葡|意|泰|越|藏|手|荷兰|瑞典|挪威|丹麦|芬兰|波兰|捷克|希腊|"
    r"土耳其|西班牙|葡萄牙|意大利|阿拉伯|波斯|印地|印尼|马来|越南|蒙古|维吾尔|拉丁|客家|闽南)语|"
    r"[中英日法德韩俄]文|"
    r"(?:普通|客家|闽南|潮汕|广东|上海|四川|东北|北京|温州|湖南|河南|山东|天津)话"
)

_HOW: Final = either("""
    努力 认真 拼命 安心 专心 用心 辛苦 刻苦 勤奋 兼职 全职 加班 远程 居家 独立 自由 户外 室内 室外
    现场 线上 线下 网上 晚上 夜里 白天 周末 平时 早上 业余 默默 埋头 继续 带病 高温 低温 团结 合作
""")
_WHERE: Final = either("""
    政府 基层 一线 前线 实验室 车间 工地 楼上 楼下 旁边 隔壁 里面 外面 外地 北方 南方 东部 西部 沿海
    内地 乡下 咖啡店 咖啡馆 咖啡厅 餐厅 餐馆 饭店 酒店 商场 超市 便利店 书店 药店 诊所 一起 国企
    央企 外企 民企 私企 事业单位 机关 部队 大厂 小厂 创业公司 互联网 金融 体制 体制内 幼儿园 机场
    车站 港口 律所 事务所 研究所 研究院 出版社 电视台 报社 法院 检察院 派出所 公安局 税务局 办公室
    学校 大学 中学 小学 高中 总部 分部 分公司 子公司 门店 前台 后台 后勤 团队 地方 地铁 老家 家乡
    工业 农业 教育 医疗 物流 游戏 房地产 制造业 服务业 媒体 影视 广告 电商 客栈 民宿 农场 牧场 矿山
    船上 车上
""")
_HOUSE: Final = exact(
    rf"""
    .*(?:的|这|那|某|我|你|他|她|同一|同家|同所|哪|当地|附近|国内|国外|海外|著名|知名|重点|
    [做搞]|从事|担任|负责|(?<!当)当(?!当|代)).*|
    .*[省市区县镇村们里]|[一两几三多][所个家间].*|.*[一二两三四五六七八九十几]年|
    (?:{_HOW}地?|[\u4e00-\u9fff]{{0,3}}{_WHERE}|(?:IT|[\u4e00-\u9fff]{{1,4}})行业|(?:{PLACES})+)
    """
)
_SCHOOL: Final = exact(
    r"""
    .*(?:的|这|那|某|我|你|他|她|同一|同所|哪|当地|附近|国内|国外|海外|著名|知名|重点|名牌|普通|全国|一流|
    顶尖|[一两几三多][所个家]).*|(?:公立|私立|民办|寄宿)?(?:大学|学院|中学|高中|小学|学校|研究所)
    """
)
_PLACE: Final = exact(
    r"""
    .*(?:的|这|那|某|我|他|她|你|哪|同一).*|
    (?:隔壁|附近|对面|楼[上下]|[一二三四五六七八九十0-9]+[楼层号栋]|旁边|里面|外面|郊区|市区|市中心|城[里外]|
    海边|山[上里]|河边|湖边|乡下|农村|国[内外]|海外|外地|本地|当地|医院|一[个间套所]|朋友|父母|亲戚|
    宾馆|旅馆|民宿|公寓|别墅|小区|出租屋|地下室|阁楼|单位|员工|集体|新家|老家|老房|新房|旧房|工地|帐篷|船上|
    车[里上]|网上|心里|梦里|同学|妈妈|爸爸|奶奶|爷爷|哥哥|姐姐|弟弟|妹妹).*
    """
)
_FIELD: Final = exact(
    r"""
    (?:了|过|得|着|很|努力|认真|刻苦|时|期间|的|好|三|两|一|二|四|五|六|几|多|半|不|知识|成绩|生活|技能|经验|
    东西|本领|习|完|会|到|著名|知名|资深|顶级|业内|行业|这|那|该|国际|国内|真正|我|有名|所谓|各).*
    """
)
_THING: Final = exact(
    r"(?:这|那|此|它|什么|所有|一切|谁|我|你|他|她|人|大家|加班|上班|工作|学习).*"
)

_OF: Final[Mapping[str, re.Pattern[str]]] = {
    "works_at": _HOUSE,
    "interns_at": _HOUSE,
    "member_of": _SCHOOL,
    "studies_at": _SCHOOL,
    "graduated_from": _SCHOOL,
    "lives_in": _PLACE,
    "comes_from": _PLACE,
    "studies": _FIELD,
    "expert_in": _FIELD,
    "allergic_to": _THING,
}


def is_nothing(relation: str, value: str) -> bool:
    """Tell what is no name of what the relation leads to, in simplified signs."""
    nothing = _OF.get(relation)
    return nothing is not None and nothing.fullmatch(value) is not None
