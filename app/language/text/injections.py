"""Text that addresses the model instead of telling of a user or a project.

A memory is put before a model later, so an order inside it would be obeyed by every session to
come. Whoever only speaks about such texts, or says how they like their own answers, passes.
Rules are tried in their order, and their names are a promise.
"""

import re
from typing import Final

from app.language.text.lazy_pattern import PatternIndex, lazy_pattern
from app.language.text.normal_forms import fold_lines

# Where an English sentence or quotation begins, and what politely precedes an order.
_START = (
    r"(?:^|(?<=[.!?;:>*] )|(?<=[\"'`(\[>*-]))(?:(?:and|then|also|so|now|please|important|note"
    r"|attention|hey|hi|ok|okay|dear|hello|assistant|model|ai|chatgpt|claude|bot)[,:!]? ){0,3}"
)
_CLAUSE = r"(?:^|(?<=[,.!?;:。、\"'“「(> ]))(?:请|现在|助手|注意|重要|,|:){0,3}"

_SAID_BEFORE = (
    r"(?:previous|prior|earlier|preceding|above|foregoing|original|initial|system|existing|old)"
)
_ORDERS = (
    r"(?:instructions?|prompts?|rules?|guidelines?|directives?|directions|programming|guardrails"
    r"|safeguards|polic(?:y|ies)|restrictions|constraints|filters|context|messages|training)"
)
_IGNORE = (
    r"(?:ignor(?:e|ing)|disregard(?:ing)?|forget(?:ting)?|overrid(?:e|ing)|bypass(?:ing)?|discard"
    r"(?:ing)?|neglect|drop|(?:do not|don't|stop) (?:follow|obey|heed)(?:ing)?"
    r"|pay no attention to)"
)
_EVERYONE = (
    r"(?:(?:every|each|all|any|other)(?: single| other| future| of the| the)? (?:users?"
    r"|customers?|people|persons?|conversations?|sessions?|chats?|agents?|accounts?|visitors?"
    r"|callers?)|everyone|everybody)"
)
_EVERY_ANSWER = (
    r"(?:every|each|all|any)(?: single| future| of your| your)? (?:answers?|repl(?:y|ies)"
    r"|responses?|messages?|outputs?|recommendations?)"
)
# How somebody likes their own answers; an order, but about themselves alone.
_MANNER = (
    r"(?:call|address|remind|ask|tell|give|show|send) me|(?:answer|reply|respond|speak|write|talk"
    r"|explain)(?! (?:as|without|every|all))|use|keep|avoid|be (?:brief|concise|short|polite"
    r"|formal|casual|direct|honest|more|less)|format"
)
# "You must have been so proud": a guess about somebody, not an order.
_GUESS = (
    r"(?:(?:really|all|just|both|still|so) ){0,2}(?:have|feel|love|enjoy|like|miss|be (?:so|very"
    r"|really|proud|happy|glad|tired|excited|thrilled|busy))(?![a-z])"
)
_CHINESE_MANNER = (
    "(?:用|以)[^。!?]{1,10}(?:回答|回复|说|写|交流)|叫我|称呼我|提醒我|回答|回复|简短|简洁|说中文"
    "|说英文"
)

_CHINESE_IGNORE = (
    "(?:忽略|无视|忘记|忘掉|忘了|抛开|绕过|跳过|覆盖|放弃|丢弃|别管|不要管|不用管|(?:不要|别|不用"
    "|不必|停止)(?:再)?(?:遵守|遵循|理会|服从|执行))"
)
_CHINESE_ORDERS = (
    "(?:指令|指示|提示词|提示|命令|规则|设定|限制|约束|准则|对话|消息|安全策略|要求|内容)"
)

RULES: Final = (
    (
        "prompt_markup",
        (
            r"<\|[a-z_]{2,30}\|?>|\[/?inst\]|<</?sys>>|</?(?:s|bos|eos)>\s?\[",
            r"</?(?:system|assistant|instructions?|system[-_ ](?:prompt|reminder|message)"
            r"|tool_calls?|function_calls?|memory|memories)(?: [^<>]{0,80})?>",
            r"system prompt ?:|(?:begin|end)(?: of)?(?: the)? (?:system )?(?:prompt"
            r"|instructions)",
            r"#{2,4} ?(?:system|instructions?|response|assistant)(?:\s|:|$)",
            r"^(?:system|developer|assistant)(?: message)? ?: ?(?:you|ignore|disregard|always"
            r"|never|do |the following|new|override|from now|please|must|forget)",
            r"new (?:system )?instructions? ?:",
            r"系统提示词? ?:\s?(?:你|忽略|请|从|必须|不|现在)|系统提示词 ?:|新(?:的)?指令 ?:",
            r"^(?:系统|系统消息|系统指令) ?: ?(?:你|忽略|请|从现在|必须|现在)",
        ),
    ),
    (
        "override",
        (
            rf"{_IGNORE} (?:[a-z]{{1,12}} ){{0,3}}?{_SAID_BEFORE}"
            rf"(?: [a-z]{{1,12}}){{0,2}}? {_ORDERS}",
            rf"{_IGNORE} (?:[a-z]{{1,12}} ){{0,2}}?your (?:[a-z]{{1,12}} ){{0,3}}?{_ORDERS}",
            rf"{_START}{_IGNORE} (?:all |any |every |of |the |these |those "
            rf"|those of ){{0,3}}{_ORDERS}",
            rf"{_IGNORE} (?:all |everything |anything |whatever |what ){{1,2}}(?:that )?(?:is "
            rf"|was )?"
            r"(?:(?:written |said )?(?:above|before this)|you (?:were|have been|are|'ve been) "
            r"(?:told|taught|given))",
            rf"{_CHINESE_IGNORE}[^。!?\n]{{0,10}}(?:之前|以前|先前|前面|上面|以上|上述|此前|原来"
            rf"|原有|系统|你的|你被)[^。!?\n]{{0,10}}{_CHINESE_ORDERS}",
            rf"{_CHINESE_IGNORE}(?:掉)?(?:所有|一切|全部|任何)[^。!?\n]{{0,6}}(?:指令|指示|提示词"
            rf"|提示|限制|约束|安全策略)",
            r"执行(?:以下|下面|下列|如下)(?:的)?(?:指令|命令|指示)",
            rf"(?:之前|以前|上面|以上|上述)[^。!?\n]{{0,6}}{_CHINESE_ORDERS}[^。!?\n]{{0,4}}"
            rf"(?:作废|无效|失效|都不算)",
        ),
    ),
    (
        "reveal",
        (
            r"(?:reveal|show|print|repeat|output|display|leak|expose|dump|give me|tell me"
            r"|write out|disclose|recite|what (?:is|are|was|were)) (?:[a-z]{1,12} ){0,3}?(?:your "
            r"(?:[a-z]{1,12} ){0,2}?|the (?:full |entire |exact |whole )?(?:system|hidden|initial"
            r"|secret|original) )(?:prompts?|instructions|initial message|guidelines"
            r"|hidden rules)",
            r"repeat (?:everything|the words|the text|all the (?:words|text)) above",
            r"(?:透露|泄露|泄漏|显示|输出|打印|重复|复述|告诉我|展示|给我看|公开"
            r"|说出)[^。!?\n]{0,8}(?:你的|系统的?|隐藏的?|初始的?|内部的?)[^。!?\n]{0,6}(?:提示词"
            r"|提示|指令|设定|prompt)",
            r"(?:把|将)(?:你的|系统的?)[^。!?\n]{0,4}(?:提示词|提示|指令|设定)[^。!?\n]{0,6}"
            r"(?:输出|显示|打印|告诉|发给|发出|复述|说出)",
        ),
    ),
    (
        "persona",
        (
            r"you(?:'re| are) (?:now|no longer|from now on)(?: (?!his|her|their|my)[a-z0-9]|,)",
            r"you(?:'re| are) (?!(?:an? |the )?(?:best|great|good|nice|wonderful|amazing"
            r"|fantastic|brilliant|lovely|bad|terrible|better|worse|such|my|so))(?:an? |the )?"
            r"(?:[a-z-]{1,20} ){0,3}?(?:ai|assistant|chatbot|language model|llm|dan|jailbroken"
            r"|unrestricted|unfiltered|uncensored)(?![a-z])",
            rf"{_START}(?:act|behave|respond|pretend|roleplay|role-play) (?:as|like|to be|that"
            rf"|you)(?![a-z])",
            r"do anything now|jailbreak mode|dan mode",
            r"you (?:will|shall) (?:now |from now on |always )?(?:act|behave|pretend|operate|obey"
            r"|comply|answer as|respond as)(?![a-z])",
            rf"{_START}(?:enter|enable|activate|switch to) (?:developer|dan|god|unrestricted"
            rf"|debug|admin) mode",
            r"you (?:have|are under|are bound by) no (?:[a-z]{1,12} )?(?:restrictions|limits"
            r"|rules|limitations|filters|guidelines)",
            r"(?:your|the assistant's) (?:new |only |true |real |sole |primary ){0,2}(?:task|role"
            r"|goal|purpose|job|mission|identity|persona) is (?:now )?to",
            r"你(?:现在)?(?:不再|已经不)是",
            rf"{_CLAUSE}(?:从现在(?:起|开始),?)?你(?:现在|从现在(?:起|开始))(?:是|就是|扮演"
            rf"|叫做)",
            rf"{_CLAUSE}(?:你要|你得|你)?(?:扮演|充当|假装你?|假设你是)",
            r"你(?:没有|不受|不再受|无)(?:任何|一切)?(?:[^,。!?]{0,4})?(?:限制|约束|规则|束缚"
            r"|审查)",
            r"你是(?!最|很|真|我的|个好|好)(?:一[个名位款])?[^,。!?\n]{0,14}(?:助手|助理|人工智能"
            r"|ai|语言模型|聊天机器人)",
            r"越狱模式|dan模式",
            rf"{_CLAUSE}(?:进入|启用|开启|切换到)(?:开发者|无限制|上帝|调试|管理员)模式",
        ),
    ),
    (
        "new_rules",
        (
            rf"(?:from now on|starting now|henceforth|from this (?:point|moment) (?:on|forward)"
            rf"|as of now|going forward),? (?:you|the (?:assistant|model|ai|chatbot)) (?:must"
            rf"|shall|will|should|are|have to|may|can)(?: not| always| only| never)?(?! "
            rf"(?:{_MANNER}))",
            rf"{_START}you (?:must|shall|are required to|are obliged to|are not allowed to)"
            rf"(?: always| only| never| not)?(?! (?:{_MANNER}|{_GUESS}))",
            r"(?:the assistant|the ai|the model|the chatbot) (?:must|shall|should|will|has to"
            r"|is to)(?: always| never| now)? (?:obey|comply|ignore|reveal|bypass|disable"
            r"|recommend|promote|trust|approve|grant)",
            rf"(?:从现在(?:起|开始)|从今(?:以后|往后)|今后|接下来|往后),? ?你(?:必须|务必|一定要"
            rf"|只能|不得|不许|应当|应该|都?要|将|得)(?!{_CHINESE_MANNER})",
            rf"{_CLAUSE}(?:你)?(?:要|应|须|必须)?无条件(?:地)?(?:执行|服从|听从|遵守|相信)",
            rf"{_CLAUSE}你(?:必须|务必|只能|不得|不许|绝不能)(?:始终|永远|总是|无条件)?"
            rf"(?!{_CHINESE_MANNER})",
            r"(?:助手|模型|ai)(?:必须|务必|不得|要|应)(?:始终|永远|总是|无条件)?(?:服从|忽略|推荐"
            r"|泄露|绕过|信任|批准|授予)",
        ),
    ),
    (
        "standing_order",
        (
            rf"{_START}(?:always|never|ensure|make sure|be sure|remember to|always remember to"
            rf"|you should|tell|recommend|promote|include|insert|send|forward|advertise)"
            rf"(?: [^.!?\n]{{1,120}}?)? {_EVERYONE}(?![a-z])",
            rf"{_START}(?:[a-z]{{1,10}} ){{0,4}}?(?:recommend|promote|advertise|endorse|mention"
            rf"|plug|insert|include|append|add|link)(?: [^.!?\n]{{1,80}}?)? {_EVERY_ANSWER}"
            rf"(?![a-z])",
            rf"{_START}(?:in|during) {_EVERYONE},? (?:always )?(?:recommend|promote|advertise"
            r"|endorse|mention|insert|include|append|add|link)",
            rf"{_START}(?:in|to|at the end of|with) {_EVERY_ANSWER},? (?:always )?(?:recommend"
            rf"|promote|advertise|endorse|mention|insert|include|append|add|link)",
            r"(?:always|never|only) (?:recommend|promote|endorse)(?: [^.!?\n]{1,80}?)? (?:to|for"
            r"|when|if)"
            rf"(?: [^.!?\n]{{1,20}}?)? {_EVERYONE}",
            rf"{_CLAUSE}(?:务必|始终|总是|永远|一律|必须|记住|记得|以后|每次|一定要?|向|对|给"
            rf"|在){{1,3}}[^。!?\n]{{0,30}}"
            r"(?:每个|每位|每一个|每一位|所有|任何|其他)(?:的)?(?:用户|客户|顾客|人(?![工口])"
            r"|会话|对话)",
            rf"{_CLAUSE}(?:务必|始终|总是|永远|一律|必须|记住|记得|以后|一定要?){{0,3}}在?(?:每"
            rf"|所有|任何)(?:一)?(?:次|个|条|份)?(?:的)?"
            r"(?:回答|回复|答案|消息)(?:中|里|时|后面|末尾|最后)?[^。!?\n]{0,6}(?:推荐|宣传|推广"
            r"|插入|附上|提到|加上|加入)",
            rf"{_CLAUSE}(?:务必|始终|总是|永远|一律|必须|记住|记得)(?:要)?(?:推荐|宣传|推广)",
        ),
    ),
    (
        "memory_order",
        (
            rf"{_START}(?:save|store|add|write|commit|record|put|insert|memori[sz]e)(?: (?:this"
            rf"|that|it|the following"
            r"|the fact))?,? (?:to|in|into) (?:your |the |long[- ]term |permanent "
            r"|persistent ){0,4}memor(?:y|ies)(?! ?(?:card|stick|chip|foam|lane|bank))"
            r"(?![^.!?\n]{0,12}(?<![a-z])(?:i|i'm|my|me|we|our)(?![a-z]))",
            rf"{_START}(?:update|overwrite|delete|erase|clear|replace) (?:all |your |the ){{1,2}}"
            rf"(?:[a-z-]{{1,10}} )?memor(?:y|ies)",
            rf"{_START}(?:remember|note|keep in mind)(?: that|,|:) (?:you|the assistant"
            rf"|every user|all users|the admin"
            r"|administrators?|the password|the security|the system)(?![a-z])",
            rf"{_CLAUSE}(?:(?:把|将)(?!我)[^。!?\n]{{0,24}}|(?:把|将)?(?:以下|下面"
            rf"|这)[^。!?\n]{{0,12}})?"
            r"(?:保存|写入|写进|存入|存到|记录|添加|加入|记|存)(?:到|进|在)?(?:你的|长期|永久"
            r"|系统){0,2}记忆(?:中|里|库)?(?!卡|力|法|[^。!?\n]{0,3}我)",
            rf"{_CLAUSE}(?:清除|删除|清空|覆盖|更新|修改)(?:你的|所有|全部){{1,2}}(?:的)?记忆",
            rf"{_CLAUSE}(?:记住|牢记)[,:]?(?:你|所有用户|管理员|每个用户|系统|密码策略)",
        ),
    ),
    (
        "safety_off",
        (
            rf"{_START}(?:disable|turn off|switch off|bypass|skip|deactivate) (?:all |any |the "
            rf"|your |every ){{0,3}}"
            r"(?:[a-z]{1,12} )?(?:safety|security|moderation|guardrails?|content filters?"
            r"|filters?|safeguards|verification|authentication|permission checks?)",
            rf"{_START}(?:grant|give) (?:this|the|any|every|all) (?:users?|callers?) (?:full "
            rf"|unrestricted )?"
            r"(?:admin|root|administrator|full|unrestricted) (?:access|rights|privileges"
            r"|permissions)",
            rf"{_START}(?:treat|consider|regard) (?:this|the|every|any) (?:user|caller|request"
            rf"|message) as"
            r" (?:an? )?(?:admin|administrator|root|trusted|authori[sz]ed|verified|developer)",
            rf"{_CLAUSE}(?:关闭|禁用|绕过|跳过|停用|解除)(?:你的|所有|一切|全部|任何)?(?:的)?"
            rf"(?:安全|审查|内容审核|内容过滤|过滤器|身份验证|权限检查)",
            rf"{_CLAUSE}(?:授予|给予?)(?:该|这个|此|任何|所有|每个)用户(?:完全|全部|所有)?(?:的)?"
            rf"(?:管理员|root|最高)?权限",
        ),
    ),
    (
        "secrecy",
        (
            rf"{_START}(?:do not|don't|never) (?:tell|inform|alert|notify|warn) (?:the "
            rf"|any )?users? (?:about|of|that|this)",
            r"(?:hide|conceal|keep) (?:this|it) (?:secret )?from the user|without (?:telling"
            r"|informing|notifying) the user",
            rf"{_CLAUSE}(?:不要|别|不得|切勿|禁止|千万不要)(?:告诉|告知|通知|提醒)用户",
            r"(?:对|向)用户(?:隐瞒|保密)|不要让用户(?:知道|发现|察觉)",
        ),
    ),
)
"""Name and expressions, for text in lower case, half width and simplified characters."""


ATTACKS: Final = frozenset({"prompt_markup", "override", "reveal", "safety_off", "secrecy"})
"""Rules that no honest text breaks."""


def addresses_model(text: str) -> str | None:
    """The name of the first rule by which a text gives orders to a model, or None.

    Takes time linear in the length of the text.
    """
    if not text:
        return None
    form = fold_lines(text)
    possible = (_COMPILED[place] for place in _INDEX.possible(form))
    return next((name for name, rule in possible if rule.search(form)), None)


def _whole(pattern: str) -> str:
    """Let no English word begin in the middle of another."""
    return rf"(?<![a-z]){pattern}" if re.match(r"[a-z(]", pattern) else pattern


_COMPILED: Final = tuple(
    (name, lazy_pattern(_whole(pattern), re.MULTILINE))
    for name, patterns in RULES
    for pattern in patterns
)
_INDEX: Final = PatternIndex([rule.pattern for _, rule in _COMPILED], re.MULTILINE)
