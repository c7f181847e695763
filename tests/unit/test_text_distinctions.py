"""Near-identical sentences that state different things are told apart; paraphrases are not.

The first pairs served to write the rules and word lists. The later ones were written when those
were done: the first run on them kept 0.60 of the English and 0.67 of the Chinese paraphrases and
caught 0.93 and 0.87 of the contradictions, which is what to expect of sentences never seen.
"""

import time
from functools import cache

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app.language.text import distinction_words as words
from app.language.text.distinctions import Wording, differs
from app.language.text.quantities import chinese_number, take_quantities
from tests.support.tiers import first_fast

ENGLISH_PARAPHRASES = [
    ("The user likes coffee", "User enjoys coffee"),
    ("Lives in Berlin", "The user resides in Berlin"),
    ("Anna works at Google as an engineer", "Anna is an engineer at Google"),
    ("He is allergic to peanuts", "He has a peanut allergy"),
    ("She has two kids", "She has 2 children"),
    ("The meeting is at 3pm", "The meeting is at 15:00"),
    ("The meeting is at 3 PM on Monday", "On Monday the meeting is at 3pm"),
    ("Prefers dark mode in the editor", "Likes the editor in dark mode"),
    ("Doesn't eat meat", "Does not eat meat"),
    ("He doesn't like fish", "He dislikes fish"),
    ("She never drinks alcohol", "She does not drink alcohol"),
    ("Has a dog named Bruno", "Owns a dog called Bruno"),
    ("My favorite color is blue", "My favourite colour is blue"),
    ("The user wants to learn Spanish", "The user would like to learn Spanish"),
    ("Birthday is May 3, 1990", "Born on 3 May 1990"),
    ("I moved to London in 2019", "In 2019 I moved to London"),
    ("The project uses Python 3.11", "Python 3.11 is used in the project"),
    ("He can't swim", "He is unable to swim"),
    ("She is married to Tom", "Tom is her husband and she is married"),
    ("The shop is closed on Sundays", "On Sunday the shop is not open"),
    ("Runs 5 km every morning", "Every morning he runs five kilometers"),
    ("Budget is $1,500 per month", "The monthly budget is 1500 dollars"),
    ("The user speaks French fluently", "Speaks fluent French"),
    ("Is reading a book about history", "Currently reading a history book"),
    ("Works from home on Fridays", "On Fridays works from home"),
    ("Wants short answers", "Prefers brief answers"),
    ("His sister lives in Paris", "His sister is living in Paris"),
    ("She bought a new car last week", "Last week she purchased a new car"),
    ("Studies medicine at Oxford", "Is a medical student at Oxford"),
    ("The user's name is Anna", "The user is called Anna"),
    ("Plays the guitar in a band", "He plays guitar in a band"),
    ("Hates loud music", "Can't stand loud music"),
    ("The user drives a red Toyota", "User has a red Toyota and drives it"),
    ("Is afraid of spiders", "Has a fear of spiders"),
    ("Goes to the gym three times a week", "Visits the gym 3 times per week"),
    ("He was born in Vienna", "Vienna is his birthplace"),
    ("Cannot eat gluten", "Is not able to eat gluten"),
    ("The team meets every Tuesday", "The team has a meeting every Tuesday"),
    ("She is a nurse at the city hospital", "Works as a nurse in the city hospital"),
    ("Prefers emails over phone calls", "Would rather get emails than phone calls"),
    ("Flight leaves at 9:30 am", "The flight departs at 9:30am"),
    ("He collects old stamps", "Collecting old stamps is his hobby"),
    ("My wife is called Laura", "My wife's name is Laura"),
    ("Has lived in Rome for ten years", "Has been living in Rome for 10 years"),
    ("Doesn't own a TV", "Has no TV"),
    ("Uses a MacBook for work", "For work he uses a MacBook"),
    ("Wakes up at 6 every day", "Gets up at 6 each day"),
]
ENGLISH_CONTRADICTIONS = [
    ("Lives in Berlin", "Lives in Munich"),
    ("lives in berlin", "lives in munich"),
    ("The meeting is at 3pm", "The meeting is at 4pm"),
    ("Allergic to peanuts", "Not allergic to peanuts"),
    ("Likes coffee", "Does not like coffee"),
    ("Likes coffee", "Likes tea"),
    ("Likes coffee", "Hates coffee"),
    ("The user works at Google", "The user works at Microsoft"),
    ("The user works at Google", "The user no longer works at Google"),
    ("Has two children", "Has three children"),
    ("Has 2 cats", "Has 3 cats"),
    ("Uses Python 3.11", "Uses Python 3.12"),
    ("His favorite color is blue", "His favorite color is green"),
    ("Smokes a pack a day", "Stopped smoking a pack a day"),
    ("Born in 1990", "Born in 1991"),
    ("The deadline is May 3", "The deadline is June 3"),
    ("The deadline is Monday", "The deadline is Tuesday"),
    ("She is married", "She is single"),
    ("She is married", "She is divorced"),
    ("Alice likes tea", "Bob likes tea"),
    ("Prefers window seats", "Prefers aisle seats"),
    ("The door is open", "The door is closed"),
    ("Weighs 70 kg", "Weighs 75 kg"),
    ("Runs 5 km every day", "Runs 5 miles every day"),
    ("Can swim", "Cannot swim"),
    ("Drinks coffee with sugar", "Drinks coffee without sugar"),
    ("Always takes the bus", "Never takes the bus"),
    ("Speaks German at home", "Speaks French at home"),
    ("Works in the morning", "Works in the evening"),
    ("The budget is 1,500 euros", "The budget is 15,000 euros"),
    ("She loves her job", "She quit her job"),
    ("Supports the left party", "Supports the right party"),
    ("His son is called Max", "His son is called Leo"),
    ("Wants the newsletter", "Doesn't want the newsletter"),
    ("The user drives a red Toyota", "The user drives a blue Toyota"),
    ("Is afraid of spiders", "Is afraid of snakes"),
    ("Goes to the gym three times a week", "Goes to the gym five times a week"),
    ("He was born in Vienna", "He was born in Graz"),
    ("Can eat gluten", "Can't eat gluten"),
    ("The team meets every Tuesday", "The team meets every Thursday"),
    ("She is a nurse", "She is a teacher"),
    ("Prefers emails over phone calls", "Prefers phone calls over emails"),
    ("Flight leaves at 9:30 am", "Flight leaves at 9:30 pm"),
    ("He still collects stamps", "He gave up collecting stamps"),
    ("My wife is called Laura", "My wife is called Julia"),
    ("Owns a TV", "Doesn't own a TV"),
    ("Uses a MacBook for work", "Uses a ThinkPad for work"),
    ("The light is on", "The light is off"),
    ("The password policy applies to admins", "The password policy applies to guests"),
]
CHINESE_PARAPHRASES = [
    ("用户喜欢喝咖啡", "用户爱喝咖啡"),
    ("用户住在北京", "用户居住在北京"),
    ("他在谷歌工作，是工程师", "他是谷歌的工程师"),
    ("他对花生过敏", "他吃花生会过敏"),
    ("她有两个孩子", "她有2个孩子"),
    ("会议在下午3点", "会议在15:00"),
    ("会议是下午三点", "会议是下午3点"),
    ("他不吃肉", "他从不吃肉"),
    ("他不喜欢吃鱼", "他讨厌吃鱼"),
    ("她养了一只狗叫布鲁诺", "她有一只叫布鲁诺的狗"),
    ("我最喜欢的颜色是蓝色", "我最喜爱的颜色是蓝色"),
    ("用户想学西班牙语", "用户希望学习西班牙语"),
    ("生日是1990年5月3日", "他出生于1990年5月3日"),
    ("我2019年搬到了伦敦", "2019年我搬到伦敦"),
    ("项目使用Python 3.11", "这个项目用的是Python 3.11"),
    ("他不会游泳", "他不懂游泳"),
    ("商店周日不开门", "商店星期天不开门"),
    ("每天早上跑5公里", "每天早上跑五公里"),
    ("预算是每月1500元", "每个月预算一千五百元"),
    ("用户会说流利的法语", "用户法语说得很流利"),
    ("她正在读一本历史书", "她在看一本历史书"),
    ("周五在家办公", "每周五居家办公"),
    ("希望回答简短", "喜欢简短的回答"),
    ("他姐姐住在巴黎", "他的姐姐住在巴黎"),
    ("她上周买了一辆新车", "上周她购买了一辆新车"),
    ("用户名叫张三", "用户的名字是张三"),
    ("他特别喜欢音乐", "他非常喜欢音乐"),
    ("我们一起去过四川", "我们曾一起去四川"),
    ("她没有结婚", "她未婚"),
    ("他在学校当老师", "他是学校的老师"),
    ("他的电脑是黑色的", "他用的电脑是黑色"),
    ("他开一辆红色的丰田", "他的车是红色的丰田"),
    ("她害怕蜘蛛", "她怕蜘蛛"),
    ("每周去健身房三次", "一周去3次健身房"),
    ("他出生在维也纳", "他在维也纳出生"),
    ("不能吃麸质", "无法吃麸质"),
    ("团队每周二开会", "团队星期二开会"),
    ("她是市医院的护士", "她在市医院做护士"),
    ("航班上午9:30起飞", "飞机上午九点半起飞"),
    ("他收集旧邮票", "他有收集旧邮票的爱好"),
    ("我妻子叫小红", "我太太叫小红"),
    ("在罗马住了十年", "在罗马居住了10年"),
    ("家里没有电视", "家里没电视"),
    ("工作时用苹果电脑", "他用苹果电脑工作"),
    ("每天六点起床", "每天早上六点起床"),
    ("预算不超过五百元", "预算最多500元"),
]
CHINESE_CONTRADICTIONS = [
    ("用户住在柏林", "用户住在慕尼黑"),
    ("喜欢喝咖啡", "不喜欢喝咖啡"),
    ("喜欢喝咖啡", "喜欢喝茶"),
    ("喜欢喝咖啡", "讨厌喝咖啡"),
    ("会议在下午3点", "会议在下午4点"),
    ("会议在三点", "会议在四点"),
    ("对花生过敏", "对花生不过敏"),
    ("他在谷歌工作", "他在微软工作"),
    ("他在谷歌工作", "他不再在谷歌工作"),
    ("有两个孩子", "有三个孩子"),
    ("使用Python 3.11", "使用Python 3.12"),
    ("最喜欢的颜色是蓝色", "最喜欢的颜色是绿色"),
    ("他每天抽烟", "他戒烟了，每天不抽烟"),
    ("出生于1990年", "出生于1991年"),
    ("截止日期是5月3日", "截止日期是6月3日"),
    ("截止日期是周一", "截止日期是周二"),
    ("她已婚", "她未婚"),
    ("她结婚了", "她离婚了"),
    ("小李喜欢喝茶", "小王喜欢喝茶"),
    ("喜欢靠窗的座位", "喜欢靠过道的座位"),
    ("门是开着的", "门是关着的"),
    ("体重七十公斤", "体重七十五公斤"),
    ("每天跑5公里", "每天跑5英里"),
    ("会游泳", "不会游泳"),
    ("喝咖啡加糖", "喝咖啡不加糖"),
    ("总是坐公交", "从不坐公交"),
    ("在家说德语", "在家说法语"),
    ("早上工作", "晚上工作"),
    ("预算是一千五百元", "预算是一万五千元"),
    ("儿子叫小明", "儿子叫小刚"),
    ("想收到通知", "别再发通知"),
    ("他有车", "他没有车"),
    ("他在上海长大", "他在广州长大"),
    ("手机是苹果的", "手机是华为的"),
    ("他开一辆红色的丰田", "他开一辆蓝色的丰田"),
    ("她害怕蜘蛛", "她害怕蛇"),
    ("每周去健身房三次", "每周去健身房五次"),
    ("他出生在维也纳", "他出生在格拉茨"),
    ("能吃麸质", "不能吃麸质"),
    ("团队每周二开会", "团队每周四开会"),
    ("她是护士", "她是老师"),
    ("航班上午9:30起飞", "航班晚上9:30起飞"),
    ("他还在收集邮票", "他放弃收集邮票了"),
    ("我妻子叫小红", "我妻子叫小兰"),
    ("家里有电视", "家里没有电视"),
    ("工作时用苹果电脑", "工作时用联想电脑"),
    ("灯是开着的", "灯是关着的"),
    ("更喜欢邮件而不是电话", "更喜欢电话而不是邮件"),
    ("项目在北京", "项目在深圳"),
]
LATER_ENGLISH_PARAPHRASES = [
    ("Keeps a vegetable garden behind the house", "There is a vegetable garden behind his house"),
    ("She takes the 7:15 train to work", "She commutes on the 7:15 train"),
    ("The invoice was paid on March 12", "On 12 March the invoice was paid"),
    ("Never works on weekends", "Doesn't work at the weekend"),
    ("The server runs Ubuntu 22.04", "Ubuntu 22.04 runs on the server"),
    ("He is the father of three girls", "He has three daughters"),
    ("Asks for code examples in Rust", "Wants code examples written in Rust"),
    ("Has been vegan since 2015", "Became vegan in 2015"),
    ("Her brother is studying law in Boston", "Her brother studies law in Boston"),
    ("Don't call me before 9 am", "Please never call before 9am"),
    ("The user's favorite author is Tolstoy", "Tolstoy is the user's favourite author"),
    ("Plans to visit Japan next spring", "Is planning a trip to Japan next spring"),
    ("Suffers from migraines", "Gets migraines"),
    ("The API has a limit of 100 requests per minute", "The API allows 100 requests a minute"),
    ("Likes hiking in the Alps", "Enjoys hikes in the Alps"),
]
LATER_ENGLISH_CONTRADICTIONS = [
    ("Keeps a vegetable garden", "Keeps a flower garden"),
    ("She takes the 7:15 train to work", "She takes the 7:45 train to work"),
    ("The invoice was paid on March 12", "The invoice was not paid on March 12"),
    ("Works on weekends", "Never works on weekends"),
    ("The server runs Ubuntu 22.04", "The server runs Ubuntu 24.04"),
    ("He has three daughters", "He has three sons"),
    ("Wants code examples in Rust", "Wants code examples in Go"),
    ("Has been vegan since 2015", "Has not been vegan since 2015"),
    ("Her brother studies law", "Her brother studies physics"),
    ("Call me before 9 am", "Call me after 9 am"),
    ("The user's favorite author is Tolstoy", "The user's favorite author is Chekhov"),
    ("Plans to visit Japan next spring", "Plans to visit Japan next autumn"),
    ("The limit is 100 requests per minute", "The limit is 100 requests per hour"),
    ("Sleeps well", "Sleeps badly"),
    ("Transferred money from Anna to Ben", "Transferred money from Ben to Anna"),
]
LATER_CHINESE_PARAPHRASES = [
    ("屋后有个菜园", "他家屋后有一个菜园"),
    ("她坐7:15的火车上班", "她每天坐7:15的火车去上班"),
    ("发票在3月12日付清了", "3月12日已付清发票"),
    ("周末从不工作", "周末不上班"),
    ("服务器运行Ubuntu 22.04", "服务器的系统是Ubuntu 22.04"),
    ("他有三个女儿", "他是三个女儿的父亲"),
    ("希望用Rust写代码示例", "想要Rust的代码示例"),
    ("2015年起吃素", "从2015年开始吃素"),
    ("她弟弟在波士顿学法律", "她的弟弟在波士顿学习法律"),
    ("上午九点前不要给我打电话", "九点前别打电话给我"),
    ("最喜欢的作家是托尔斯泰", "托尔斯泰是他最喜欢的作家"),
    ("计划明年春天去日本", "打算明年春天去日本"),
    ("他经常偏头痛", "他常常偏头痛"),
    ("接口每分钟限100次请求", "接口限制为每分钟100次请求"),
    ("喜欢在山里徒步", "爱在山里徒步"),
]
LATER_CHINESE_CONTRADICTIONS = [
    ("屋后有个菜园", "屋后有个花园"),
    ("她坐7:15的火车上班", "她坐7:45的火车上班"),
    ("发票已经付清", "发票还没付清"),
    ("周末工作", "周末从不工作"),
    ("服务器运行Ubuntu 22.04", "服务器运行Ubuntu 24.04"),
    ("他有三个女儿", "他有三个儿子"),
    ("希望用Rust写示例", "希望用Go写示例"),
    ("2015年起吃素", "2016年起吃素"),
    ("她弟弟学法律", "她弟弟学物理"),
    ("九点前打电话", "九点后打电话"),
    ("最喜欢的作家是托尔斯泰", "最喜欢的作家是契诃夫"),
    ("计划明年春天去日本", "计划明年秋天去日本"),
    ("每分钟限100次请求", "每小时限100次请求"),
    ("他睡得很好", "他睡得很差"),
    ("安娜给本转了钱", "本给安娜转了钱"),
]


def missed(pairs, *, differing):
    """Return the pairs that are not judged as they should be."""
    return [(a, b, differs(a, b)) for a, b in pairs if (differs(a, b) is not None) is not differing]


@pytest.mark.parametrize(
    ("pairs", "differing", "least"),
    [
        (ENGLISH_PARAPHRASES, False, 0.93),
        (ENGLISH_CONTRADICTIONS, True, 1.0),
        (CHINESE_PARAPHRASES, False, 0.97),
        (CHINESE_CONTRADICTIONS, True, 1.0),
        (LATER_ENGLISH_PARAPHRASES, False, 0.73),
        (LATER_ENGLISH_CONTRADICTIONS, True, 0.93),
        (LATER_CHINESE_PARAPHRASES, False, 0.73),
        (LATER_CHINESE_CONTRADICTIONS, True, 0.93),
    ],
)
def test_most_pairs_are_judged_rightly(pairs, differing, least):
    wrong = missed(pairs, differing=differing)
    assert 1 - len(wrong) / len(pairs) >= least, wrong


@pytest.mark.parametrize(
    ("pairs", "differing"),
    [
        (ENGLISH_PARAPHRASES + LATER_ENGLISH_PARAPHRASES, False),
        (ENGLISH_CONTRADICTIONS + LATER_ENGLISH_CONTRADICTIONS, True),
        (CHINESE_PARAPHRASES + LATER_CHINESE_PARAPHRASES, False),
        (CHINESE_CONTRADICTIONS + LATER_CHINESE_CONTRADICTIONS, True),
    ],
    ids=["english kept", "english caught", "chinese kept", "chinese caught"],
)
def test_of_all_pairs_eighty_five_in_a_hundred_are_judged_rightly(pairs, differing):
    assert len(pairs) >= 60
    assert 1 - len(missed(pairs, differing=differing)) / len(pairs) >= 0.85


@pytest.mark.parametrize(
    ("a", "b", "reason"),
    [
        ("Has 2 cats", "Has 3 cats", "number"),
        ("有两只猫", "有３只猫", "number"),
        ("Runs 5 km", "Runs 5 miles", "number"),
        ("Uses Python 3.1", "Uses Python 3.10", "number"),
        ("The meeting is on Monday", "The meeting is on Friday", "number"),
        ("Lives in Berlin", "Lives in Berlin since 2019", "number"),
        ("Eats meat", "Doesn’t eat meat", "negation"),
        ("吃肉", "不吃肉", "negation"),
        ("Likes tea, not coffee", "Likes coffee, not tea", "negation"),
        ("The shop is open", "The shop is closed", "antonym"),
        ("Prefers tea over coffee", "Prefers coffee over tea", "antonym"),
        ("门是开着的", "门是关着的", "antonym"),
        ("Works at Google", "Works at Microsoft", "name"),
        ("Works at Google", "Works at Google in Zurich", "name"),
        ("lives in berlin", "lives in munich", "term"),
        ("住在柏林", "住在慕尼黑", "term"),
        ("takes 5 mg of aspirin", "takes 5 g of aspirin", "number"),
        ("temperature is 20°C", "temperature is -20°C", "number"),
        ("birthday is 3 May", "birthday is 5 March", "number"),
        ("生日是5月3日", "生日是3月5日", "number"),
        ("birthday is 3 May", "birthday is May 3rd", None),
        ("birthday is 3 May", "birthday is 05-03", None),
        ("Ana sent money to Ben", "Ben sent money to Ana", "order"),
        ("Ana sent money to Ben", "To Ben Ana sent money", None),
        ("Sent money from Ana to Ben", "Sent money to Ben from Ana", None),
        ("Ana and Ben live here", "Ben and Ana live here", None),
        ("Ana is married to Ben", "Ben is married to Ana", None),
        ("Tolstoy is the favourite of Ana", "The favourite of Ana is Tolstoy", None),
        ("安娜给本转了钱", "本给安娜转了钱", "order"),
        ("明年我去日本", "我明年去日本", None),
        ("苹果和香蕉都好吃", "香蕉和苹果都好吃", None),
        ("used to smoke cigarettes", "smokes cigarettes", "negation"),
        ("used to smoke cigarettes", "no longer smokes cigarettes", None),
        ("Formerly works at Acme", "Works at Acme", "negation"),
        ("She is used to noise", "She is used to the noise", None),
        ("他以前抽烟", "他抽烟", "negation"),
        ("他曾经抽烟", "他抽烟", "negation"),
        ("他过去抽烟", "他抽烟", "negation"),
        ("他去过日本", "他曾经去过日本", None),
        ("八点以前到", "八点前到", None),
        ("She drinks green tea at home.", "She drinks white tea.", "term"),
        ("Likes tea", "likes  TEA.", None),
        ("The shop is not open", "The shop is closed", None),
        ("He doesn't hate fish", "He likes fish", None),
        ("这道菜不错", "这道菜很不错", None),
        ("我们一起去", "我们去", None),
        ("Has a dog", "Has one dog", None),
        # Who denies one thing denies nothing that the other says of another.
        ("Does not eat meat", "Is vegetarian", None),
        ("用户不吃肉", "用户吃素", None),
        ("请不要在回答里用表格", "回答时请别用表格", None),
        ("用户从不抽烟", "用户一天抽烟", "negation"),
        ("给我写邮件一律用您", "给我写邮件不要用您", "negation"),
        ("I've sold my cello", "I play my cello", "negation"),
        ("The thesis is handed in", "The thesis is yet to be handed in", "negation"),
        # A numeral inside a word, and a count that looks like a weekday or an hour.
        ("近视五百度", "近视500度", None),
        ("每周一次瑜伽课", "一周有一次瑜伽课", None),
        ("每周一上瑜伽课", "每周二上瑜伽课", "number"),
        ("放一点陈皮", "放陈皮", None),
        ("下午一点开会", "下午两点开会", "number"),
        ("The office is on the third floor", "The office is on the ninth floor", "number"),
        # What stands in a name's place, in another order.
        ("我在深圳交社保", "我的社保交在东莞", "term"),
        ("微信名叫“北岸”", "现在的微信名是“晚风”", "term"),
        # Two people change parts.
        ("Ana asked Ben for help with the tax", "Ben helped Ana with the tax", "order"),
        # What one is about only describes something in the other.
        ("I'm allergic to cats.", "I'm allergic to cat food.", "term"),
        ("I like coffee.", "I like the coffee machine at work.", "term"),
        ("I like coffee.", "I like strong coffee.", None),
        # One topic, and few words in common.
        ("用户用机械键盘写代码", "用户写代码时要开着白噪音", "term"),
        ("Has a garden with lilies behind the house", "Lilies and roses grow in a park", "term"),
        ("", "", None),
    ],
)
def test_the_reason_names_what_differs(a, b, reason):
    assert differs(a, b) == reason
    assert differs(b, a) == reason


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("at 3pm", {("15:00", "time")}),
        ("at 3:30 p.m.", {("15:30", "time")}),
        ("12 am", {("0:00", "time")}),
        ("下午三点半", {("15:30", "time")}),
        ("晚上8点15分", {("20:15", "time")}),
        ("中午12点", {("12:00", "time")}),
        ("on may 3rd, 1990", {("5", ""), ("3", ""), ("1990", ""), ("3.5", "date")}),
        ("1990年5月3日", {("5", ""), ("3", ""), ("1990", ""), ("3.5", "date")}),
        ("-20°c", {("-20", "c")}),
        ("5-20", {("5", ""), ("20", "")}),
        ("零下二十", {("-20", "")}),
        ("5 mg", {("5", "mg")}),
        ("they may come in march", set()),
        ("周三和星期天", {("3", "weekday"), ("7", "weekday")}),
        ("$1,500", {("1500", "usd")}),
        ("1.5k dollars", {("1500", "usd")}),
        ("twenty-five kilometers", {("25", "km")}),
        ("two hundred thousand", {("200000", "")}),
        ("一千五百元", {("1500", "cny")}),
        ("一万五", {("15000", "")}),
        ("两万零三百", {("20300", "")}),
        ("二〇二四年", {("2024", "")}),
        ("3万", {("30000", "")}),
        ("十二", {("12", "")}),
        ("一百零五", {("105", "")}),
        ("python 3.10.1", {("3.10.1", "")}),
        ("007", {("7", "")}),
        ("四川的三明治十分好吃", set()),
        ("一只狗", set()),
    ],
)
def test_quantities_have_one_form(text, expected):
    assert take_quantities(text)[0] == expected


@given(st.integers(0, 10**8 - 1))
def test_a_chinese_numeral_reads_as_its_number(number):
    assert chinese_number(numeral(number)) == number


def numeral(number):
    """Write a number as Chinese does, zeros and all."""
    digits = "零一二三四五六七八九"
    if number >= 10**4:
        high, low = divmod(number, 10**4)
        gap = "零" if 0 < low < 1000 else ""
        return numeral(high) + "万" + gap + (numeral(low) if low else "")
    written = ""
    for scale, sign in ((1000, "千"), (100, "百"), (10, "十"), (1, "")):
        digit = number // scale % 10
        if digit:
            written += digits[digit] + sign
        elif written and not written.endswith("零") and number % scale:
            written += "零"
    return written or "零"


words_of_both = st.lists(
    st.sampled_from(
        [
            "Anna",
            "likes",
            "not",
            "tea",
            "3",
            "pm",
            "Berlin",
            "喜欢",
            "不",
            "茶",
            "三",
            "点",
            "don't",
            ".",
        ]
    ),
    max_size=8,
).map(" ".join)


@given(words_of_both | st.text(), words_of_both | st.text())
@example("3", "3 3")
def test_the_order_does_not_matter_and_nothing_differs_from_itself(a, b):
    assert differs(a, b) == differs(b, a)
    assert differs(a, a) is None
    assert differs(a, f"  {a.upper().lower()} ") is None or a.upper().lower() != a.lower()


def test_no_word_is_in_two_groups_of_synonyms():
    for groups in (words.SYNONYMS, words.CHINESE_SYNONYMS):
        every = [word for group in groups for word in group.split("|")]
        assert sorted(every) == sorted(set(every))


def taken(a, b):
    start = time.process_time()
    differs(a, b)
    return time.process_time() - start


@pytest.mark.parametrize("pair", [ENGLISH_PARAPHRASES[2], CHINESE_PARAPHRASES[2]], ids=["en", "zh"])
def test_a_pair_takes_less_than_two_milliseconds(pair):
    assert min(taken(*pair) for _ in range(20)) < 0.002


@first_fast(
    "unit",
    [
        "a",
        "A ",
        "not ",
        "n't",
        "不",
        "不喜欢",
        "no hate ",
        "3",
        "3,000",
        "3:",
        "三",
        "十",
        "twenty ",
        "一起",
        "。",
        "Anna. ",
    ],
)
def test_long_texts_take_no_quadratic_time(unit):
    short, long = (
        (unit * (size // len(unit)), f"{unit * (size // len(unit))}x") for size in (2000, 20_000)
    )
    # Ten times the text: linear work takes 10 times as long, quadratic work 100 times. The best
    # of three, and a limit between the two, keep the noise of a busy machine out.
    at_least = max(min(taken(*short) for _ in range(3)), 0.01)
    assert min(taken(*long) for _ in range(3)) < 40 * at_least


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("My room is 4A.", "My room is 4B."),
        ("I have a Samsung S21 phone.", "I have a Samsung A21 phone."),
        ("My phone is a Pixel 6a.", "My phone is a Pixel 6."),
        ("I fly BA123.", "I fly BA456."),
        ("我住在4A栋", "我住在4B栋"),
    ],
)
def test_what_letters_and_digits_name_together_differs_by_each(a: str, b: str) -> None:
    assert differs(a, b) == "number"


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("I run 5km.", "I run 5 km."),
        ("I earn 85k.", "I earn $85,000."),
        ("I live on the 3rd floor.", "I live on the third floor."),
        ("I get up at 7am.", "I get up at 7:00."),
    ],
)
def test_a_number_with_its_unit_is_an_amount(a: str, b: str) -> None:
    assert differs(a, b) is None


def test_a_text_is_read_once_where_it_is_compared_with_many() -> None:
    texts = ["She lives in Berlin.", "She lives in Munich.", "She has lived in Oslo for a year."]
    worded: list[str] = []

    def read(text: str) -> Wording:
        worded.append(text)
        return Wording(text)

    once = cache(read)
    for first in texts:
        for other in texts:
            assert differs(first, other, read=once) == differs(first, other)

    assert sorted(worded) == sorted(texts)


MOVED_NUMBERS = [
    ("I have 2 dogs and 3 cats", "I have 3 dogs and 2 cats"),
    ("I have 2 dogs and 3 cats", "I have 2 cats and 3 dogs"),
    ("She has two dogs and three cats", "She has three dogs and two cats"),
    ("I owe 50 euros to Tom and 20 euros to Ben", "I owe 20 euros to Tom and 50 euros to Ben"),
    ("I take 1 pill in the morning and 2 at night", "I take 2 pills in the morning and 1 at night"),
    ("My appointment is on 2026-03-04", "My appointment is on 2026-04-03"),
    ("I leave at 10:15 and land at 12:40", "I leave at 12:40 and land at 10:15"),
    ("She lives in flat 12-12-1", "She lives in flat 12-1-12"),
    ("I bought shelf BX-1-62-0", "I bought shelf BX-1-62-1"),
    ("我有2只狗和3只猫", "我有3只狗和2只猫"),
    ("我有两只狗和三只猫", "我有三只狗和两只猫"),
    ("我儿子5岁，女儿9岁", "我儿子9岁，女儿5岁"),
    ("我买了A-1-62-0号书架", "我买了A-1-62-1号书架"),
]


@pytest.mark.parametrize(("one", "other"), MOVED_NUMBERS)
def test_the_same_numbers_of_other_things_are_told_apart(one: str, other: str) -> None:
    assert differs(one, other) == differs(other, one) == "number"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("I have 2 dogs and 3 cats", "I have 3 cats and 2 dogs"),
        ("I owe 50 euros to Tom and 20 to Ben", "I owe 20 to Ben and 50 euros to Tom"),
        ("The meeting is at 15:00", "The meeting is at 3:00 PM"),
        ("The trip costs 1,500 dollars", "The trip costs $1500"),
        ("She met him on 4 March 2026", "She met him on 2026-03-04"),
        ("I have two dogs", "I have 2 dogs"),
    ],
)
def test_numbers_told_in_another_order_or_form_are_the_same(one: str, other: str) -> None:
    assert differs(one, other) is differs(other, one) is None


ROLES_CHANGED = [
    ("I prefer tea to coffee", "I prefer coffee to tea"),
    ("I prefer tea to coffee", "The user prefers coffee to tea."),
    ("I prefer tea to coffee", "Prefers coffee to tea"),
    ("I sold my car to buy a boat", "I sold my boat to buy a car"),
    (
        "I work from home on Monday and at the office on Friday",
        "I work from home on Friday and at the office on Monday",
    ),
    (
        "I work from home on Monday and at the office on Friday",
        "I work at the office on Monday and from home on Friday",
    ),
    ("I drink tea before breakfast", "I drink breakfast before tea"),
    ("I replaced butter with oil", "I replaced oil with butter"),
    ("I swapped my bike with Tom", "I swapped Tom with my bike"),
    ("I confuse Ana with Maria", "I confuse Maria with Ana"),
    ("I put the milk in the tea", "I put the tea in the milk"),
    ("我用油代替黄油", "我用黄油代替油"),
    (
        "I have a red car, a blue bike and a green hat",
        "I have a green car, a blue bike and a red hat",
    ),
    (
        "My sister is a nurse and my brother is a cook",
        "My sister is a cook and my brother is a nurse",
    ),
    ("I meet Tom on Mondays and Ana on Fridays", "I meet Ana on Mondays and Tom on Fridays"),
    ("I eat rice at noon and soup at night", "I eat soup at noon and rice at night"),
    ("我周一在家办公，周五去公司", "我周五在家办公，周一去公司"),
    ("我早上喝茶，晚上喝咖啡", "我早上喝咖啡，晚上喝茶"),
    ("比起咖啡我更喜欢茶", "比起茶我更喜欢咖啡"),
    ("我卖了车买船", "我卖了船买车"),
    ("我姐姐是护士，我弟弟是厨师", "我姐姐是厨师，我弟弟是护士"),
]


@pytest.mark.parametrize(("one", "other"), ROLES_CHANGED)
def test_the_same_words_in_other_roles_are_told_apart(one: str, other: str) -> None:
    assert differs(one, other) is not None
    assert differs(one, other) == differs(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("I like tea and coffee", "I like coffee and tea"),
        ("I use dark mode in the editor", "I use the editor in dark mode"),
        ("I drink coffee with milk", "I drink milk with coffee"),
        ("I like tea, coffee and milk", "I like milk, coffee and tea"),
        ("I have a cat, a dog and a fish", "I have a fish, a dog and a cat"),
        ("On Monday I swim", "I swim on Monday"),
        ("On Mondays I work from home", "I work from home on Mondays"),
        ("I run every morning in the park with Tom", "I run with Tom in the park every morning"),
        ("I go to Berlin with Tom by train", "I go by train with Tom to Berlin"),
        ("With Tom in the park I run", "I run in the park with Tom"),
        ("I play on Monday with Tom on the bus", "I play on the bus with Tom on Monday"),
        ("I like tea but I hate coffee", "I hate coffee but I like tea"),
        (
            "I work from home on Monday and at the office on Friday",
            "I work at the office on Friday and from home on Monday",
        ),
        ("Tom is my cousin", "My cousin is Tom"),
        ("我喜欢茶和咖啡", "我喜欢咖啡和茶"),
        ("我喜欢茶、咖啡和牛奶", "我喜欢咖啡、茶和牛奶"),
        ("我周一在家办公，周五去公司", "我周五去公司，周一在家办公"),
        ("我早上喝茶，晚上喝咖啡", "我晚上喝咖啡，早上喝茶"),
        ("我在公司每天喝茶", "我每天在公司喝茶"),
    ],
)
def test_parts_that_keep_their_roles_may_stand_elsewhere(one: str, other: str) -> None:
    assert differs(one, other) is differs(other, one) is None


def test_one_number_that_counts_the_other_thing_is_a_difference():
    daughters, sons = "I have two daughters and a son.", "I have two sons and a daughter."
    assert differs(daughters, sons) == differs(sons, daughters) == "number"
    assert differs("I swim at 7 on Monday.", "On Monday at 7 I swim.") is None
    assert differs(daughters, "I have a son and two daughters.") is None


OF_ANOTHER = [
    ("My wife is allergic to nuts.", "I'm allergic to nuts."),
    ("The user is allergic to nuts.", "The user's son is allergic to nuts."),
    ("I live in Munich.", "My mother lives in Munich."),
    ("My son plays chess.", "I play chess."),
    ("He is a doctor.", "She is a doctor."),
    ("用户喜欢喝茶", "用户的妻子喜欢喝茶"),
    ("我对花生过敏", "我儿子对花生过敏"),
    ("我会弹钢琴", "我女儿会弹钢琴"),
    ("My neighbour sued me.", "I sued my neighbour."),
    ("I pay my ex alimony.", "My ex pays me alimony."),
    ("I told Anna about the baby.", "Anna told me about the baby."),
    ("The user sued the neighbour.", "The neighbour sued the user."),
]
OF_THE_SAME = [
    ("The user likes tea.", "I like tea."),
    ("My wife and I live in Rome.", "I live in Rome."),
    ("我现在住在慕尼黑", "我住在慕尼黑"),
    ("我妻子是医生", "我的妻子是医生"),
    ("My wife is a doctor.", "My wife works as a doctor."),
]


@pytest.mark.parametrize(("a", "b"), OF_ANOTHER)
def test_what_is_told_of_another_is_told_apart(a, b):
    assert differs(a, b) == differs(b, a) == "order"


@pytest.mark.parametrize(("a", "b"), OF_THE_SAME)
def test_what_is_told_of_the_same_is_not(a, b):
    assert differs(a, b) is None
    assert differs(b, a) is None
