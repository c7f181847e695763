"""What people say when they correct, confirm, prefer, introduce, plan and decide, as data.

Expressions for text that `signals.py` has folded: lower case, half width, simplified characters.
Of each pair, the first is searched for once the second, its lookalikes, is blanked out. English
is matched in whole words. No repetition is without a bound, so searching stays linear.
"""

from typing import Final, Literal

Signal = Literal["correction", "reinforcement", "preference", "identity", "goal", "decision"]

START = r"(?:^|(?<=[.!?;] )|(?<=, ))"
"""Where an English clause begins."""
CLAUSE = r"(?:^|(?<=[,.!?;:。、 ]))"
"""Where a Chinese clause begins; the folded comma stands for both commas."""
END = r"(?= ?(?:[.!,;:)]|$))"
"""Where a statement ends that is no question."""
CHINESE_END = r"(?=[吧啊呀哦喔啦呢的了]{0,2}(?:[ ,.!;。、~]|$))"

_IT = r"(?:that|this|it)"
_RELATIVE = (
    "wife|husband|partner|girlfriend|boyfriend|fiancee?|mother|mom|mum|father|dad|parents|son"
    "|daughter|kids?|child|children|brother|sister|grandmother|grandfather|dog|cat"
)
CHINESE_RELATIVE = (
    "妻子|太太|老婆|丈夫|先生|老公|女朋友|男朋友|儿子|女儿|孩子|爸爸|父亲|妈妈|母亲|爸|妈|哥哥"
    "|姐姐|弟弟|妹妹|爷爷|奶奶|狗|猫"
)

ENGLISH_CONFIRMATIONS: Final = (
    r"yes,? (?:exactly|precisely|that's (?:right|correct|it)|correct)",
    rf"{_IT}(?:'s| is) exactly it{END}",
    r"exactly what i meant",
    rf"{START}(?:exactly|precisely|correct|spot on)(?: right| correct)?{END}",
    rf"{_IT}(?:'s| is| was)(?: exactly| absolutely| just| totally)? (?:right|correct|spot on)",
    rf"you(?:'re| are)(?: absolutely| exactly| completely| totally)? (?:right|correct)"
    rf"(?: about (?:that|this|it))?{END}",
    rf"you got (?:it|that)(?: exactly)?(?: right)?{END}",
)
CHINESE_CONFIRMATIONS: Final = (
    r"(?:完全|非常|十分|很|说得)(?:正确|对|没错)",
    rf"(?:{CLAUSE}|是|对)(?:没错){{1,3}}{CHINESE_END}",
    rf"{CLAUSE}(?:对的|正确){{1,3}}{CHINESE_END}",
    rf"{CLAUSE}(?:对对?|是的|嗯),?(?:就是这样|就是这个意思|就是它|正是)",
    rf"{CLAUSE}(?:就是这样|就是这个意思|正是这样|正是如此){CHINESE_END}",
    r"正是我(?:想)?(?:要|说|需要|想要)的",
    r"(?:你)?说得(?:很|太|非常|都)?对",
    r"你(?:是|说)对的?|你说得?没错",
)
"""Those of `reinforcement` by which a reply says that what was said before is so."""

ENGLISH: Final[dict[Signal, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    "correction": (
        (
            rf"{_IT}(?:'s| is| was)(?: still| just| completely| totally| all| actually| simply)?"
            r" (?:wrong|incorrect|false|mistaken|not (?:quite |entirely )?(?:right|correct|true"
            r"|accurate|what i|how i|my ))",
            rf"{_IT} (?:isn't|wasn't) (?:quite |entirely )?"
            r"(?:right|correct|true|accurate|what i|how i|my )",
            r"you(?:'re| are| were) (?:wrong|mistaken|incorrect)",
            r"you(?:'ve| have)? (?:misunderstood|misheard|misread|mixed up|confused)",
            r"you(?:'ve| have)? got (?:me|it|that|this|my [a-z]{1,20}) wrong",
            r"no,? (?:i (?:said|meant|mean|wanted|asked|told|live|work|am)|i'm not|it's|it is|its"
            r"|not|actually|my name|that's not|wait)",
            r"i(?:'ve)? (?:already )?told you",
            r"i(?:'ve)? never said (?:that|so|this|i)",
            r"(?:that's not )?what i (?:meant|said|asked for) (?:was|is|were)",
            r"i (?:actually )?meant (?!to |it |every|well|no )",
            r"i (?:said|asked for|meant|wanted) [^.!?\n]{1,60},? not ",
            r"(?:it's|it is|i'm|i am|my name is|spelled|named|called) [^.!?,\n]{1,40}, not "
            r"(?!only|just|yet|sure|bad|really|even|too|that|because|to mention|necessarily)",
            rf"{START}actually,? (?:it's|it is|i'm|i am|i (?:live|work|moved|meant|said|was)|my"
            r"|that's not|that isn't|that's wrong)",
            r"(?:let me|i (?:need|want|have) to|i must) correct (?:myself|that|you|this)",
            r"please correct (?:that|this|it|your|my)",
            r"(?:small |quick |one )?correction:",
            r"scratch that",
            rf"{START}(?:please )?(?:try again|do (?:it|that|this) (?:again|over)|redo)",
            r"there(?:'s| is| was) (?:a mistake|an error) in (?:your|what you)",
            r"you made (?:a|another) mistake",
            rf"{START}(?:please )?(?:stop|quit) (?:calling me|doing (?:that|this)|using|adding"
            r"|saying|writing|answering|replying)",
            rf"{START}(?:wrong|incorrect|not (?:correct|right|true)){END}",
            rf"{START}wrong (?:name|date|day|time|one|person|place|city|number|file|language"
            rf"|way)",
        ),
        (
            rf"(?:if|whether|in case|unless|sure|think|why|how|(?:don't|not) (?:think|believe|say"
            rf"|saying|mean)(?: that)?) {_IT}(?:'s| is| was| isn't| wasn't)",
            rf"{_IT}(?:'s| is| was) (?:not|never) (?:wrong|incorrect|false|mistaken)",
            r"(?:not|never|isn't|wasn't|nothing(?:'s| is)) (?:wrong|incorrect)",
            rf"{_IT}(?:'s| is) (?:wrong|incorrect|not right|not true) ?\?",
            r"no,? (?:it's|it is|its|that's) (?:fine|ok|okay|all|good|great|perfect|right|alright"
            r"|correct|enough|it)",
            r"no,? not (?:yet|really|now|today|at all)",
            r"actually,? (?:it's|it is|i'm|i am) (?:fine|ok|okay|good|great|perfect|right|correct"
            r"|happy|glad|not sure|curious|wondering)",
        ),
    ),
    "reinforcement": (
        (
            *ENGLISH_CONFIRMATIONS,
            r"yes,? (?:perfect|that's perfect)",
            r"exactly what i (?:needed|wanted|was looking for)",
            rf"(?:that|this|it) worked(?: perfectly| great)?{END}",
            rf"{START}(?:perfect|well done|great job|good job|nice work|great work|excellent"
            rf"|brilliant|bingo)(?: right| correct)?{END}",
            rf"{_IT}(?:'s| is| was)(?: exactly| absolutely| just| totally)? (?:perfect"
            r"|what i (?:wanted|needed|meant|was looking for))",
            rf"{_IT}(?:'s| is| was)(?: really| very| so)? (?:great|helpful|useful"
            rf"|excellent){END}",
            r"keep (?:doing (?:it|that|this)|it up|it (?:that way|like (?:this|that))|that up)",
            rf"(?:{START}|(?:do|keep|want|like) it )(?:exactly|just) like (?:that|this)",
            r"(?:that|this|it) (?:works|worked) (?:perfectly|great|really well|much better)",
            r"i (?:really )?(?:love|like) (?:this|that|it|how you|the way you)",
            rf"(?:that|this) (?:helps|helped)(?: a lot| so much)?{END}",
            r"much better(?: now)?",
        ),
        (
            rf"(?:if|whether|in case|sure|think|hope) {_IT}(?:'s| is| was)",
            rf"{_IT}(?:'s| is) (?:right|correct|great|perfect|helpful) ?\?",
            r"if you(?:'re| are) right",
            r"not (?:exactly|perfect|helpful|great|useful)",
            r"don't (?:really )?(?:love|like)",
            r"would (?:really )?(?:love|like)",
            r"(?:much )?better (?:than|if)",
        ),
    ),
    "preference": (
        (
            r"i(?:'d| would)? (?:really |much |strongly |always |usually |generally |still )?"
            r"(?:prefer|rather)",
            r"i (?:really |also |absolutely |just |still |never )?(?:love|like|enjoy|hate|dislike"
            r"|adore|detest|loathe|can't stand|cannot stand|don't (?:really )?(?:like|enjoy|eat"
            r"|drink|want you))",
            r"i(?:'m| am) (?:not )?(?:a (?:big |huge )?fan of|fond of|allergic to|into|keen on"
            r"|more of an? )",
            r"my (?:all-time )?(?:favou?rite|preference)",
            r"i (?:always|never|usually|only) (?:use|drink|eat|wear|buy|order|book|choose|pick"
            r"|take|fly|sit|write|work)",
            r"i(?:'d| would)? (?:want|like|love|expect) you to",
            r"please (?:always|never|don't|do not|avoid|call me)",
            r"(?:answer|reply|respond|speak|write)(?: to me| me)? (?:only |always )?(?:in "
            r"(?:english|chinese|german|french|spanish|japanese|bullet|short|full|plain)|briefly"
            r"|concisely)",
            r"keep (?:it|your (?:answers|replies|responses)) (?:short|brief|simple|concise"
            r"|formal)",
            rf"{START}(?:please )?(?:always|never|don't ever) (?:answer|use|reply|write|call|give"
            r"|add|ask|show|start|explain|speak)",
            rf"{START}from now on",
            r"[a-z]{2,20} over [a-z]{2,20},? (?:for me|any day|every time)",
        ),
        (
            r"i(?: really| also| still)? (?:love|like) (?:it|that|this)",
            r"i(?: really)? (?:love|like) (?:how you|the way you)",
            r"i (?:would|'d) like to",
        ),
    ),
    "identity": (
        (
            r"my (?:full |first |last |real )?name(?:'s| is)",
            r"(?:you can |please |just )?call me (?!later|back|when|if|tomorrow|at|on|again|maybe"
            r"|asap|a )",
            rf"{START}(?:hi|hello|hey),? (?:i'm|i am|this is) (?=[a-z])",
            r"i(?:'m| am) an? (?!bit|little|lot|fan|big fan|huge fan|tad|few|moment|fast|slow)"
            r"(?=[a-z])",
            r"i(?:'m| am) (?:originally )?(?:from|based in|living in|married|divorced|single"
            r"|retired|vegan|vegetarian|pregnant|[0-9]{1,3} years old|[0-9]{1,3}(?=[.,!]|$))",
            r"i (?:currently |now |still |also )?(?:live|reside) (?:in|at|near|with|on|alone)",
            r"i (?:currently |now |still |also )?(?:work|teach|study|studied) (?:as|at|for|in"
            r"|with)",
            r"i was (?:born|raised)",
            r"i grew up",
            r"i(?:'ve| have)? (?:just |recently )?moved (?:to|from|in)",
            r"we(?:'ve| have)? (?:just |recently )?moved to",
            rf"{START}i(?:'m| am) [a-z]{{2,20}}, [0-9]{{2}}(?![0-9a-z])",
            r"i speak (?:[a-z]{1,20} )?(?:english|chinese|mandarin|german|french|spanish"
            r"|japanese)",
            rf"my (?:{_RELATIVE}|job|birthday|age|pronouns|nationality|hometown|home town"
            r"|mother tongue|native language|profession|company|email|address)(?:'s| is| are"
            r"| was)",
            rf"i have (?:an?|one|two|three|four|five|no|[0-9]{{1,2}}) (?:[a-z]{{1,12}} )?"
            rf"(?:{_RELATIVE}|dogs|cats|sons|daughters|brothers|sisters)",
        ),
        (),
    ),
    "goal": (
        (
            r"(?:i'm|i am|we're|we are) (?:currently |now |still )?(?:planning|hoping|aiming"
            r"|saving|training|preparing|learning|working towards?)",
            rf"{START}(?:planning|hoping|aiming|saving up) to",
            r"(?:i'm|i am|we're|we are) (?:trying|going) to (?!ask|tell|say|understand|find out)",
            r"(?:my|our) (?:main |big |long-term |next )?(?:goal|aim|plan|dream|target|objective"
            r"|ambition|resolution)s?(?:'s| is| are| for)",
            r"(?:i|we)(?:'d| would)? (?:really |also |still )?(?:plan|intend|aim|hope|want|like"
            r"|love) to (?!know|ask|see|hear|say|tell|thank|check|understand|point|clarify"
            r"|make sure|confirm)",
        ),
        (
            r"(?:don't|do not) (?:really )?(?:plan|intend|want|like) to",
            r"(?:i|we)(?: really| also| still)? (?:like|love) to",
        ),
    ),
    "decision": (
        (
            r"(?:i|we)(?:'ve| have)?(?: finally| already| just| now)? (?:decided|chosen|chose"
            r"|settled on|agreed (?:on|to)|opted|picked|ruled out)",
            r"(?:i|we)(?:'ve| have)? made up (?:my|our) minds?",
            r"(?:let's|we'll|we will|i'll|i will|i'm going to|we're going to|we are going to) "
            r"(?:go|stick|stay|proceed) (?:with|for)",
            r"(?:i'm|i am|we're|we are) (?:going|sticking|staying) (?:with|for)",
            r"(?:i'm|i am|we're|we are) (?:switching|migrating) to",
            r"(?:my|our|the)(?: final)? decision (?:is|was)",
            r"it(?:'s| is| was| has been) (?:been )?decided",
            r"(?:i|we) ended up (?:choosing|picking|using|buying|taking|going (?:with|for))",
        ),
        (
            r"(?:haven't|have not|hasn't|not|never|can't|cannot|couldn't) (?:yet )?(?:really )?"
            r"(?:decided?|chosen|picked|agreed|made up)",
            r"(?:if|when|once|until|before) (?:i|we)(?:'ve| have)? (?:decided|chosen|chose|picked"
            r"|agreed|made up)",
        ),
    ),
}

_CHINESE_I = "(?:我们|咱们|我)"

CHINESE: Final[dict[Signal, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    "correction": (
        (
            rf"(?<!对)(?:不对){{1,3}}{CHINESE_END}",
            rf"{CLAUSE}(?:那|这)?(?:个|样)?(?:是)?(?:不正确|不准确|错的){CHINESE_END}",
            r"你[^,。!?]{0,6}错[^,。!?]{0,3}了",
            rf"{CLAUSE}(?:不,?|对不起,?|抱歉,?|哦,?)?(?:我|是我|又|你们)?(?:刚才|刚刚)?"
            r"(?:说|弄|搞|记|理解|听|写)错了",
            r"(?<!是)不是(?:这样|这个意思|那个意思)",
            r"我的意思(?:是|不是)",
            r"我(?:指|说|要|问)的(?:是|不是)",
            rf"(?:{CLAUSE}|[我你叫这那])不是[^,。!?吗]{{1,12}},(?:而)?是",
            r"应该是[^,。!?]{1,12},(?:而)?不是",
            rf"(?:{CLAUSE}|我|请|[要需])(?:纠正|更正|订正)(?:一下|你|:)",
            r"你[^,。!?]{0,4}(?:误解|误会|弄混|搞混|记混|理解有误)",
            r"(?:你|这|那|上面|刚才)[^,。!?]{0,8}(?:有误|不正确|不准确|不是真的)",
            rf"(?:{CLAUSE}|请)(?:重新来|重来|重做|重试|改用)",
            rf"(?:{CLAUSE}|请|你)(?:别|不要)再",
            rf"{CLAUSE}(?:其实|实际上),?(?:不是|应该|我(?:住|叫|是|在|姓))",
            rf"{CLAUSE}(?:错|错了|不,不是|不是的){CHINESE_END}",
            rf"{CLAUSE}不是,(?:我是说|我说的|我指的|是)",
            r"我(?:没有?|从没|从来没有?|可没)说过?",
        ),
        (
            r"(?<!不)对不对",
            r"是不是(?:这样|这个意思|那个意思)?",
            r"不是(?:这样|这个意思|那个意思)吗",
            r"(?:没有?什么|没有?|哪里|哪儿|有什么|如果|要是|万一|有没有|是否)[^,。!?]{0,6}(?:不对"
            r"|错了|有误|不正确|不准确)",
            r"不对(?:称|等|应|外|劲|付|头|口)",
        ),
    ),
    "reinforcement": (
        (
            *CHINESE_CONFIRMATIONS,
            r"正合我意",
            r"说得(?:很|太|非常|都)?好(?!像)",
            r"继续保持|(?:请|就)?保持(?:这样|下去)",
            r"(?:做|干|写|答|回答|总结|解释)得(?:很|真|太|非常|特别)?(?:好|棒|不错|漂亮|清楚)",
            rf"{CLAUSE}(?:这|这个|这样)?(?:真是|真|太|很|非常|简直)?(?:太)?(?:好|棒|完美|不错|赞)"
            rf"(?:极)?了{CHINESE_END}",
            rf"{CLAUSE}(?:这|这个|这样|真)?(?:很|非常|太|真)?(?:完美|很好|非常好|真棒"
            rf"|很不错){CHINESE_END}",
            r"(?:这个|你的|这)(?:回答|答案|建议|方案|解释|总结)(?:很|非常|真|太)(?:好|棒|不错"
            r"|完美|清楚|到位)",
            r"(?:很|非常|太)有帮助|帮(?:了)?(?:我)?(?:大|很大的)忙",
            r"我(?:很|非常|就|太)?喜欢(?:你)?(?:这样|这种|这个)(?:的)?(?:回答|答案|风格|方式|写法"
            r"|格式)",
            r"说到点子上",
        ),
        (
            r"不(?:是)?(?:完全|太|很|够|怎么)(?:正确|对|好|完美)",
            r"不完美",
            r"(?:是不是|不就是?|难道)(?:就是)?(?:这样|这个意思)",
            r"(?:完全正确|说得对|就是这样|没错|很好|太好了)(?:吗|么|\?)",
        ),
    ),
    "preference": (
        (
            rf"{_CHINESE_I}(?:很|最|更|比较|非常|特别|也|还是|真的|一直|都|不|不太|超级|超|从来"
            rf"|其实|就){{0,3}}"
            r"(?:喜欢|偏好|喜爱|热爱|偏爱|讨厌|厌恶|反感|受不了|宁愿|宁可|倾向于)",
            rf"{_CHINESE_I}(?:很|最|也|不|从来不|一直|特别|非常){{0,2}}爱(?=[吃喝看听玩用])",
            rf"{_CHINESE_I}(?:从来|一直|都|也){{0,2}}不(?:吃|喝|用|看)",
            r"我(?:比较|更|已经|一直)?(?:习惯(?!了)|愿意用)",
            r"我(?:平时|一般|通常|从来|每天|现在)?都?只(?:喝|吃|用|看|穿|坐|买|听)",
            r"(?:回答|回复|说|写)得?(?:再|更)?(?:短|长|简单|详细|简洁|正式|口语化)(?:一?点|些)",
            r"我(?:的)?(?:最爱|偏好|最喜欢的)",
            r"我对[^,。!?]{1,10}过敏",
            r"(?:我)?(?:更|还是)?希望你",
            rf"{CLAUSE}(?:请)?(?:以后|从现在(?:起|开始)|今后|下次)[,]?(?:请|你|都|回答|不要|别|用"
            rf"|叫)",
            rf"{CLAUSE}请(?:总是|始终|永远|不要|别|一直|叫我|称呼我)",
            r"(?:回答|回复)(?:我)?(?:时|的时候)?(?:请|要|尽量|都){0,2}(?:用|简短|简洁|简单|详细"
            r"|正式)",
            r"(?:用|以)(?:中文|英文|英语|汉语|简体|繁体|德语|日语)(?:来)?(?:回答|回复|写|跟我)",
        ),
        (
            r"我(?:很|非常|就|太)?喜欢(?:你)?(?:这样|这种|这个)(?:的)?(?:回答|答案|风格|方式|写法"
            r"|格式)",
            r"我(?:不)?喜不喜欢",
        ),
    ),
    "identity": (
        (
            r"我(?:的)?(?:全)?名(?:字)?(?:是|叫)|我(?:姓|叫(?!他|她|它|你|了|个|不|车|外))",
            r"(?:叫|称呼)我(?!去|来|不|做|干|吃|回)[^,。!? ]{1,8}(?=[,。!. ]|就|吧|$)",
            rf"{CLAUSE}(?:你好,?)?我(?:现在|目前|以前)?(?:是|当)(?!说|想|不是|指|否|要|在|觉得"
            rf"|认为|什么|怎么|谁|为|因|第"
            r"|用|来|刚|对的|错的|真|很|看|听)[^,。!?]{2}",
            r"我(?:今年|现在)?(?:[0-9]{1,3}|[一二三四五六七八九十]{1,4})岁",
            r"我(?:们)?(?:现在|目前|一直|以前|就|还|也|家){0,2}(?:住在|住|居住|定居|来自|出生"
            r"|生于|毕业于|结婚了|离婚了|退休|单身|已婚|未婚|怀孕|从事|任职)",
            r"我(?:们)?(?:现在|目前|一直|以前|是)?在[^,。!?]{1,12}(?:工作|上班|上学|读书|念书"
            r"|长大|出生|生活|任职|教书|读大学)",
            r"我(?:们)?(?:最近|刚|刚刚|已经|上周|上个月)?搬(?:到|去|家|来)",
            rf"我(?:的)?(?:{CHINESE_RELATIVE}|生日|职业|年龄|国籍|家乡|老家|母语|公司|工作|邮箱)"
            r"(?:是|叫|在|今年|有|住|做)",
            rf"我(?:们)?(?:家)?(?:还)?(?:有|养了?)(?:[一二两三四五六几]"
            rf"|[0-9]{{1,2}})[个只条位名][^,。!?]{{0,4}}(?:{CHINESE_RELATIVE}|兄弟|姐妹)",
            rf"我的?(?:{CHINESE_RELATIVE})(?:今年)?(?:[0-9]{{1,2}}"
            rf"|[一二三四五六七八九十]{{1,3}})岁",
            r"我会说|我的母语|我家(?:就)?(?:在|住)",
        ),
        (r"我叫[你他她它]",),
    ),
    "goal": (
        (
            rf"{CLAUSE}(?:今年|明年|目前|现在|下个月|接下来)的?(?:目标|计划|愿望)(?:是|:|就是)",
            r"我(?:们)?的?(?:最大的?|长期|短期|主要|下一个)?(?:目标|计划|梦想|愿望)(?:是|:|就是)",
            rf"{_CHINESE_I}(?:正在|最近|一直|已经|现在|正|也|今年|明年|下个月|还){{0,2}}"
            r"(?:计划(?!书|表)|打算|准备(?!好)|争取|立志|决心|努力|备考|希望能|梦想)",
            rf"{_CHINESE_I}(?:正在|最近|一直|现在|正|也|今年|明年|还){{0,2}}(?:想要|很?想)"
            r"(?!问|知道|请|确认|说|一下|起|到|不|法|了解|让你|听|你|看看|必)",
            rf"{_CHINESE_I}(?:今年|明年|一定|下个月)?要(?=学|去|考|减|开始|成为|完成|攒|存|戒|搬"
            rf"|换)",
            r"我(?:们)?(?:正)?在(?:学(?!校)|备考|准备|攒钱|存钱|减肥)",
        ),
        (rf"{_CHINESE_I}(?:没有?|不)(?:计划|打算|准备|想)",),
    ),
    "decision": (
        (
            rf"(?:{_CHINESE_I}|团队|公司|最终|最后|已经|终于|{CLAUSE})(?:最终|最后|已经|终于"
            rf"|刚){{0,2}}"
            r"(?:决定(?!权|性|因|于|论|书|者|吗)|选定|敲定|拍板|说定|定下来)",
            r"我们(?:最终|最后)?(?:选择|采用|改用|统一用)了?",
            rf"{CLAUSE}(?:那)?(?:我们|我)?就(?:用|选|定|按|这么定|这样定|这么办)",
            r"决定了|说定了|定下来了",
            rf"(?:{_CHINESE_I}(?:最后|最终|终于)|(?:最后|最终|终于){_CHINESE_I}?)(?:还是)?"
            r"(?:选|定|用|买)了",
        ),
        (
            r"(?:没有?|无法|不能|怎么|尚未|还没有?|难以|帮我|由[^,。!?]{0,6}|你|取|是否|来)"
            r"(?:做)?决定了?",
            r"(?:等|如果|要是)[^,。!?]{0,4}决定了?",
        ),
    ),
}
