"""The words `distinctions.py` knows, as data, in English and Chinese.

Every table may grow. A missing word costs a second copy of a statement or an unnoticed
contradiction; a wrong one costs the same, so rare senses stay out.
"""

from typing import Final

NEGATORS: Final = (
    "not|no|never|without|yet to|neither|nor|nobody|nothing|none|nowhere|hardly|former|formerly"
    "|previously"
    r"|(?<!\bis )(?<!\bare )(?<!\bam )(?<!\bwas )(?<!\bwere )(?<!\bbe )"
    r"(?<!\bbeen )(?<!'s )(?<!'re )"
    r"(?<!\bget )(?<!\bgets )(?<!\bgot )used to"
)
"""What was is not now: "used to" counts, but not "is used to"."""
NEGATIVE_VERBS: Final = (
    "hate|hates|hated|dislike|dislikes|disliked|detest|detests|loathe|loathes|refuse|refuses|refused"
    "|avoid|avoids|avoided|stop|stops|stopped|quit|quits|cease|ceased|lack|lacks|lacking"
    "|cancel|cancelled|canceled|gave up|give up|gives up|can not stand|sold|sells"
)
"""What says no without the word; after a negator it says yes."""
NEGATION_IDIOMS: Final = (
    "not only|no doubt|no problem|nothing but|no matter|no one else but|why not"
)

CHINESE_NEGATORS: Final = (
    "没有|没|沒有|沒|不再|从不|從不|从未|从来不|不|无法|無法|无|無|未|别再|别|別|勿|非"
    # Once, unless it is a time ("before eight", "the past year") or an experience.
    r"|(?<![点點年月日天周时時\s久之饭觉学班])以前|(?<=[a-z] )以前|从前|從前"
    r"|(?<![走跑拿开飞搬送看放骑游掉])过去(?![\s了年月日天周几这那])(?!$)"
    r"|曾经(?![^,.;，。；]{0,6}过)|曾經(?![^,.;，。；]{0,6}過)"
)
CHINESE_NEGATIVE_VERBS: Final = (
    "讨厌|討厭|厌恶|反感|痛恨|拒绝|拒絕|避免|戒掉|戒了|戒|停止|放弃|放棄|取消|缺乏|辞掉|辞去"
)
CHINESE_NEGATION_IDIOMS: Final = (
    "不但|不仅|不僅|不过(?!敏|期|度|滤|问)|不過(?!敏|期|度|濾|問)|不同|不错|不錯|不久|不少|不断|不斷|不管|不如|不论|不必说|不客气|不得不"
    "|不知不觉|不好意思|对不起|了不起|差不多|没关系|无锡|無錫|无论|無論|无人机|无线|无糖|别人|別人|别的"
    "|特别|特別|区别|區別|分别|分別|性别|性別|级别|級別|类别|個別|个别|告别|未来|未來|非常|非洲|除非|并非只"
)

REWRITTEN: Final = {
    "hate|hates|hated|dislike|dislikes|disliked|detest|detests|loathe|loathes": "not like",
    "can not stand": "not like",
    "would like": "want",
    "unmarried": "not married",
    "is vegetarian|is a vegetarian|am vegetarian|am a vegetarian|i vegetarian": "not eat meat",
    "unable": "not",
    "no more than|up to|maximum of": "at most",
    "no less than|no fewer than|minimum of": "at least",
}
CHINESE_REWRITTEN: Final = {
    "讨厌|討厭|厌恶|厭惡|反感": "不喜欢",
    "不再吃素|不吃素": "吃肉",
    "是吃素的人|一直吃素|吃素|是素食者|是素食主义者": "不吃肉",
    "未婚|单身|單身": "没有结婚",
    "已婚": "结婚",
    "无法|無法|没法": "不",
    "不要|不必|不用|不需要|无需|不会|不能|不想|不愿意?": "不",
    "不超过|不多于|至多|不超過": "最多",
    "不少于|不低于|至少": "最少",
}
"""Words that hold a no or an intention, said as the others say it."""

OPPOSITES: Final = (
    "open|closed", "on|off", "long|short", "before|after", "more|less", "early|late",
    "always|sometimes|rarely", "left|right", "married|single|divorced|widowed",
    "morning|afternoon|evening|night", "yesterday|today|tomorrow", "daily|weekly|monthly|yearly",
    "first|last", "allow|forbid", "start|finish",
)  # fmt: skip
CHINESE_OPPOSITES: Final = (
    "打开|关闭", "开着|关着", "开门|关门", "结婚|离婚", "早上|中午|下午|晚上", "上午|下午|晚上",
    "之前|之后", "总是|偶尔|很少", "昨天|今天|明天", "每天|每周|每月|每年", "允许|禁止",
    "最高|最低", "左|右",
)  # fmt: skip

SYNONYMS: Final = (
    "like|enjoy|love|prefer|fond|adore|rather", "live|reside|dwell", "work|employed|job",
    "child|children|kid", "movie|film", "color|colour", "favorite|favourite", "call|named|name",
    "have|has|own|possess|had", "want|wish|would|desire|hope", "plan|intend",
    "buy|bought|purchase", "short|brief|concise", "fast|quick|rapid", "begin|start|began|begun",
    "study|learn|student|studie", "medicine|medical", "speak|talk|spoke", "home|house",
    "meet|meeting|appointment", "birthday|born|birth", "month|monthly", "week|weekly",
    "day|daily", "year|yearly|annual", "usually|often|frequently|regularly", "use|utilize",
    "trip|journey|travel", "user|he|she|they|person|i|me|him|them|we|you", "mother|mom|mum",
    "father|dad", "need|require", "allergic|allergy", "swim|swimming", "run|running|ran",
    "afraid|fear|scared|frightened", "go|visit|attend|went|goes", "leave|depart", "wake|get|woke",
    "raise|raised|grow|grew",
)  # fmt: skip
CHINESE_SYNONYMS: Final = (
    "喜欢|喜爱|喜歡|爱好|热爱|偏好|爱", "居住|住在|住", "希望|想要|想|愿意", "计划|打算",
    "学习|学", "孩子|小孩|儿女", "阅读|读|看", "工作|上班|就职|任职|办公", "名字|名叫|叫做|叫",
    "简短|简洁|简单", "出生|生日|生于", "懂|会", "妻子|太太|老婆", "丈夫|先生|老公", "妈妈|母亲",
    "爸爸|父亲", "用户|他们|她们|我们|他|她|我|你|本人", "经常|常常|常", "特别|非常|很|十分|超级",
    "居家|在家", "早上|早晨|清晨", "晚上|夜里|夜晚", "需要|要", "使用|采用|用", "拥有|养|有",
    "航班|飞机", "去过|前往|去", "回答|回复|答复", "睡觉|入睡|睡",
)  # fmt: skip
"""Longer variants come first where one holds the other; the first is the common form."""

STOP_WORDS: Final = (
    "a|an|the|is|are|was|were|be|been|being|am|of|in|on|at|to|for|from|by|with|as|and|or|that|this"
    "|these|those|it|its|do|does|did|has|have|had|will|would|can|could|should|may|might|must|very"
    "|really|quite|so|also|too|just|currently|now|already|still|there|about|into|than|then|since|became|become|becomes|every"
    "|each|per|any|some|one|who|which|what|stand|longer|anymore|again|ever|like to|up|able"
    "|my|his|her|their|our|your|own|o'clock|s"
)
CHINESE_STOP_CHARACTERS: Final = (
    "的了着過过是在也都就还還很地得把被跟和与與吗呢吧啊这這那个個只位条條件正曾當当對对會会说說为為上里裡中到"
    "于於从從每所其来來去给給又再才将將家"
)

UNITS: Final = {
    "km": "km|kilometer|kilometers|kilometre|kilometres|公里|千米", "mi": "mi|mile|miles|英里",
    "m": "m|meter|meters|metre|metres|米", "cm": "cm|centimeter|centimeters|厘米|公分",
    "kg": "kg|kgs|kilo|kilos|kilogram|kilograms|公斤|千克", "mg": "mg|milligram|milligrams|毫克",
    "µg": "μg|mcg|ug|microgram|micrograms|微克",
    "ml": "ml|milliliter|milliliters|millilitre|millilitres|毫升",
    "mm": "mm|millimeter|millimeters|millimetre|millimetres|毫米", "oz": "oz|ounce|ounces|盎司",
    "ft": "ft|foot|feet|英尺", "in": "inch|inches|英寸", "ms": "ms|millisecond|milliseconds|毫秒",
    "kb": "kb|kilobyte|kilobytes", "kcal": "kcal|calories|大卡|千卡", "g": "g|gram|grams|克",
    "lb": "lb|lbs|pound|pounds|磅", "jin": "斤", "l": "l|liter|liters|litre|litres|升",
    "s": "s|sec|second|seconds|秒", "min": "min|mins|minute|minutes|分钟|分鐘",
    "h": "h|hr|hrs|hour|hours|小时|小時", "day": "day|days|天", "week": "week|weeks|周|星期",
    "month": "month|months|个月|個月", "year": "year|years|岁|歲", "%": "%|percent|percentage",
    "usd": "usd|dollar|dollars|美元|美金", "eur": "eur|euro|euros|欧元|歐元", "gbp": "gbp|英镑",
    "cny": "cny|rmb|yuan|元|块|塊|人民币", "jpy": "jpy|yen|日元", "c": "°c|celsius|摄氏度",
    "f": "°f|fahrenheit|华氏度", "gb": "gb|gigabyte|gigabytes", "mb": "mb|megabyte|megabytes",
    "tb": "tb|terabyte|terabytes",
}  # fmt: skip
CURRENCY_SIGNS: Final = {"$": "usd", "€": "eur", "£": "gbp", "¥": "cny"}

NUMBER_WORDS: Final = {
    word: value
    for value, words in {
        0: "zero", 2: "two|twice|couple|pair|both", 3: "three|thrice|third", 4: "four|fourth",
        5: "five|fifth", 6: "six|sixth", 7: "seven|seventh", 8: "eight|eighth", 9: "nine|ninth",
        10: "ten|tenth", 11: "eleven", 12: "twelve|dozen", 13: "thirteen", 14: "fourteen",
        15: "fifteen", 16: "sixteen", 17: "seventeen", 18: "eighteen", 19: "nineteen",
        20: "twenty", 30: "thirty", 40: "forty", 50: "fifty", 60: "sixty", 70: "seventy",
        80: "eighty", 90: "ninety",
    }.items()
    for word in words.split("|")
}  # fmt: skip
SCALES: Final = {
    "hundred": 100, "thousand": 1000, "million": 10**6, "billion": 10**9, "k": 1000,
    "百": 100, "千": 1000, "万": 10**4, "萬": 10**4, "亿": 10**8, "億": 10**8,
}  # fmt: skip
CHINESE_DIGITS: Final = {
    char: value
    for value, chars in enumerate(
        ("零〇", "一", "二两兩", "三", "四", "五", "六", "七", "八", "九")
    )
    for char in chars
}
CHINESE_NUMBER_IDIOMS: Final = (
    "十分|三明治|四川|四季|千万|万一|万能|百货|百度|百事|二手|双十一|老百姓|五金|七夕|三亚"
)
COMPARISONS: Final = "over|rather than|than|instead of"
PREPOSITIONS: Final = "from|to|in|at|on|with|by|for|of|near|into|via"
PHRASE_STARTS: Final = (
    "during|about|after|before|until|since|through|without|every|each|last|next|this|today|tomorrow"
    "|yesterday|now|always|usually|often|sometimes|never|once|twice|together|alone"
)
"""Besides the prepositions, what begins a phrase that may stand elsewhere."""
TURNED_AROUND: Final = "is|are|was|were|and|or|but|while|whereas|和|与|與|跟|或|是|、|,|;"
"""What may stand between two parts that change places without a change of meaning."""
MUTUAL: Final = (
    "married|engaged|dating|divorced|friends|cousins|colleagues|neighbours|neighbors|siblings|twins"
    "|classmates|roommates|partners|met|meets|meet"
)
CHINESE_MUTUAL: Final = "结婚|離婚|离婚|朋友|同事|同学|邻居|夫妻|认识|见面"
"""What two people are to each other, whoever is named first."""
CHINESE_MOVABLE: Final = (
    "用户|他们|她们|我们|他|她|我|今天|昨天|明天|今年|去年|明年"
    "|上周|下周|上个月|下个月|以后|现在|每天|每周|每月|每年|了|的"
)
"""Who and when stand at the beginning or later, as one likes."""
CHINESE_COMPARISONS: Final = "而不是|而非|胜过|多于|比"
