"""Who a sentence about somebody else names, told by closed lists: silence where a word may be none.

A name alone is a first name of the list or a Chinese surname with its signs; with a title any
word with a capital is one.
"""

from typing import Final

from app.language.keyless.chinese_words import JOBS, PLACES, RELATIONS, SURNAMES, either
from app.language.keyless.patterns import exact
from app.language.text.lazy_pattern import lazy_pattern

TITLES: Final = (
    "教授|老师|博士|医生|大夫|律师|经理|总监|主任|院长|校长|局长|教练|师傅|先生|女士|同学"
)

_FIRST_NAMES: Final = """
    Aaron Abby Abdul Abigail Ada Adam Adrian Agnes Ahmed Aisha Alan Albert Alejandro Alena
    Alessandro Alex Alexander Alexandra Alexei Alfred Ali Alice Alicia Alina Alison Allison Amanda
    Amelia Amina Amir Amit Amy Ana Anastasia Anders Andre Andrea Andreas Andrew Andy Angela Angelica
    Anika Anil Anita Anja Ann Anna Anne Annika Anthony Antoine Anton Antonia Antonio Anya Arjun
    Arthur Arturo Astrid Audrey Ayesha Barbara Beatrice Becky Ben Benedikt Benjamin Bernard Bernd
    Beth Bettina Bianca Bjorn Bob Bogdan Boris Brad Brandon Brenda Brian Brigitte Bruno Camila
    Camille Carl Carla Carlos Carmen Carol Carolina Caroline Catherine Cathy Cecilia Celine Charles
    Charlie Charlotte Chiara Chloe Chris Christa Christian Christina Christine Christopher Cindy
    Claire Clara Claudia Clemens Colin Connor Constanze Craig Cristina Cynthia Daisuke Dan Daniel
    Daniela Danielle Dave David Deborah Debra Deepak Denis Dennis Derek Diana Diego Dieter Dimitri
    Dirk Dmitri Dominik Donald Donna Dorothy Doug Douglas Dylan Ed Eddie Edgar Eduardo Edward Eileen
    Elaine Elena Eleni Elias Elif Elina Elisa Elisabeth Elizabeth Ella Ellen Elliot Elsa Emilia
    Emily Emma Emre Enrico Eric Erica Erik Erika Ernesto Ernst Esther Ethan Eugene Eva Evan Evelyn
    Fatima Federico Felicia Felipe Felix Fernanda Fernando Fiona Francesca Francesco Francis
    Francisco Frank Franz Fred Frederik Friedrich Fritz Gabriel Gabriela Gareth Gary Gavin Geoff
    George Gerald Gerd Gerhard Gianni Gina Giovanni Gisela Giulia Gordon Grace Graham Greg Greta
    Guido Guillermo Gustav Hannah Hanna Hannes Hans Harald Harold Harry Hassan Heather Heidi
    Heinrich Heinz Helen Helena Helga Helmut Henning Henrik Henry Hiroshi Holger Hugo Ian Ibrahim
    Igor Ines Ingrid Irina Isaac Isabel Isabella Ivan Jack Jackie Jacob Jake Jakob James Jamie Jan
    Jana Jane Janet Janine Jason Javier Jean Jeff Jeffrey Jennifer Jenny Jens Jeremy Jerome Jesse
    Jessica Jill Jim Jimmy Joan Joanna Joao Jochen Joe Joel Johan Johanna Johannes John Johnny
    Jolene Jon Jonas Jonathan Jorge Jose Josef Joseph Josh Joshua Juan Judith Judy Julia Julian
    Juliane Julie Julien Jurgen Justin Kai Karen Karim Karin Karl Karsten Kate Katharina Katherine
    Kathleen Kathrin Kathy Katie Katja Katrin Kayla Keith Kelly Ken Kenji Kenneth Kerstin Kevin
    Khalid Kim Kirsten Klaus Konrad Kristen Kristin Kumar Kurt Kyle Larry Lars Laura Lauren Laurent
    Lea Leah Leila Lena Leo Leon Leonard Leonie Lewis Liam Lillian Lily Linda Lisa Liz Lorenzo Louis
    Louise Lucas Lucia Lucy Ludwig Luigi Luis Luisa Lukas Luke Lydia Lynn Maja Malik Manfred Manuel
    Manuela Marc Marcel Marcello Marco Marcos Marcus Margaret Margarita Maria Mariana Marie Marina
    Mario Marion Marjorie Mark Markus Marlene Marta Martha Martin Martina Mary Maryam Mateo Mathias
    Mathilde Matt Matteo Matthew Matthias Maureen Maurice Max Maximilian Megan Mehmet Mei Melanie
    Melissa Mia Michael Michaela Michel Michelle Miguel Mikael Mike Mila Milena Mira Miriam Mohamed
    Mohammed Moritz Murat Nadia Nadine Nancy Naomi Natalia Natalie Natasha Nate Nathan Neha Neil
    Nicholas Nick Nicole Niklas Nikolai Nina Noah Nora Norbert Norman Oleg Oliver Olivia Oscar Oskar
    Otto Pablo Pamela Paolo Patricia Patrick Paul Paula Pauline Pedro Penelope Peter Petra Phil
    Philip Philipp Pierre Priya Rachel Rafael Rainer Raj Rajesh Ralf Ralph Ramon Raphael Rashid
    Rebecca Renate Renee Ricardo Richard Rita Robert Roberto Robin Roger Roland Rolf Roman Ron
    Ronald Rosa Rosie Roy Rudolf Russell Ryan Sabine Sabrina Sally Salma Sam Samantha Samir Samuel
    Sandra Sandy Sanjay Sara Sarah Scott Sean Sebastian Serena Sergei Sergio Seth Shannon Sharon
    Shirley Silke Silvia Simon Simone Sofia Sonja Sophia Sophie Stefan Stefanie Steffen Stella
    Stephan Stephanie Stephen Steve Steven Stuart Sue Susan Susanne Svetlana Sven Sylvia Takeshi
    Tamara Tanja Tanya Tara Tatjana Ted Teresa Terry Theo Theresa Thomas Thorsten Tiffany Tim Timo
    Timothy Tina Tobias Todd Tom Tomas Tomasz Tony Torsten Tracy Udo Ulrich Ulrike Ursula Uwe
    Valentina Valerie Vanessa Vera Veronica Viktor Vincent Vladimir Walter Wanda Wendy Werner
    Wilhelm Will William Wolfgang Yasmin Yuki Yuri Yusuf Yvonne Zach Zoe Zofia
"""
"""Of several languages; none that is as often a place, a month or a program."""

_FAMILY_NAMES: Final = """
    Zhang Li Wang Liu Chen Yang Zhao Huang Zhou Wu Xu Sun Hu Zhu Gao Lin Guo Ma Luo Liang Zheng Xie
    Han Tang Feng Deng Cao Peng Zeng Xiao Tian Dong Pan Yuan Cai Jiang Yu Du Ye Cheng Wei Su Lu Ding
    Yao Shen Zhong Cui Liao Shi Jin Jia Xia Fu Fang Zou Xiong Bai Meng Qin Qiu Hou Yin Xue Yan Duan
    Lei Tao Qian Hao Kong Mao
"""
_WORD: Final = r"[A-ZÀ-Þ][a-zà-ÿA-ZÀ-Þ'’-]*[a-zà-ÿ]"
_NOT_BEHIND: Final = r"(?!(?:And|Or|But|The|Who|Is|Was|Of|In|At|On|From|With)\b)"

ENGLISH_NAME: Final = (
    rf"(?:(?:Professor|Prof\.|Dr\.|Dr|Mr\.|Mr|Mrs\.|Mrs|Ms\.|Ms) {_WORD}(?: {_WORD})?|"
    rf"{either(_FIRST_NAMES)}(?![\w-]|['’](?!s\b))(?: {_NOT_BEHIND}{_WORD}){{0,2}}|"
    rf"{either(_FAMILY_NAMES)} {_NOT_BEHIND}{_WORD}(?![\w-]))"
)

_NO_NAMES: Final = """
    何时 何人 何处 何必 何况 何种 方便 方法 方案 方面 方向 方才 方式 方丈 任何 任务 任意 任教 任职
    任凭 高兴 高中 高铁 高管 高手 高考 高三 高一 高二 高校 高层 高级 高峰 高温 高达 马上 马路 马匹
    石头 石油 黄金 黄牛 黄昏 黄色 白天 白色 白领 白人 白班 白衣 金额 金融 金色 金牌 金鱼 金毛 江西
    江苏 江南 江边 温度 安全 安静 安装 安心 安家 安排 安保 安检 安卓 安定 万一 万科 万人 万能 万岁
    万分 许多 许久 许可 连续 连忙 连锁 连同 连日 连夜 连长 连带 包括 包子 包装 包裹 包工 程序 程度
    容易 易趣 习惯 毛病 毛衣 严重 严格 严肃 王国 王者 王子 李子 孔雀 雷达 华为 华人 华裔 华侨 江湖
    路人 路上 路边 路过 周末 周一 周二 周三 周四 周五 周六 周日 周天 周边 周围 周年 周岁 夏天 夏季
    夏令 夏日 左右 左边 左手 章节 项目 尤其 陆续 陆地 陆军 段落 管家 管理 管道 谢谢 莫名 莫非 莫斯
    顾客 顾问 云南 云端 云服 祝你 祝她 祝他 祝大 祝福 祝愿 祝贺 魏晋 孙子 孙女 孙辈 熊猫 关键 关于
    关系 关心 乐队 乐团 乐观 乐意 武汉 武术 武器 武警 林业 林区 林子 童年 童星 童话 童装 颜色 宋朝
    庞大 纪念 纪录 纪律 舒服 舒适 屈服 董事 杜绝 蓝色 蓝领 梅雨 梅花 盛世 盛大 盛夏 刁难 钟头 钟点
    钟表 骆驼 田地 田野 田间 胡同 胡子 胡说 凌晨 凌云 柯基 卓越 卓有 乔迁 曾经 曾祖 辛苦 辛勤 景区
    景点 景色 龙虾 叶子 柴犬 柴油 阳台 阳光 阳历 岳父 岳母 齐全 麦当 麦子 陈述 卫生 卫星 卫视 陶瓷
    柏林 范围 范本 罗马 毕业 毕竟 郁闷 洪水 吉他 吉林 吉日 仇人 祖父 祖母 祖籍 祖先 祖国 祖辈 宁愿
    宁可 宁波 宁夏 章鱼 苗木 苗头 汤圆 水管 邹城 倪虹 汪汪 时间 冉冉 尚未 尚且 温馨 温暖 庄园 庄稼
    晏子 阎王 廖廖 蒲公 石家 石化 邢台 裴多 翁婿 侯选 刘海 邰门 季节 杨树 杨梅 柳树 柳州 苏州 苏联
    潘家 葛根 彭湃 郎中 鲁迅 韦驮 马来 马德 马尼 马拉 马甲 马桶 方块 俞伯 袁大 唐朝 唐人 唐代 薛定
    贺卡 贺州 殷切 郝思 傅里 孟买 孟加 黄河 黄山 穆斯 萧条 尹始 姚明 邵阳 毛巾 毛利 臧否 戴着 戴上
    宋代 项链 朱红 秦朝 秦岭 秦皇 尤为 许昌 吕梁 张家 张开 张力 张贴 张罗 孔子 孔夫 曹操 严厉 严禁
    华夏 华东 华南 华北 华中 华丽 金华 金钱 金币 姜汤 姜丝 戚戚 喻为 柏油 云彩 赵州 钱包 钱财 孙悟
    李白 周到 周全 周期 吴江 郑州 郑重 冯唐 沈阳 韩国 韩语 韩流 杨柳 成都 徐州 徐徐 高速 夏威 蔡甸
    樊篱 霍乱 虞美 柯南 卢森 卢旺 莫大 丁克 丁香 丁点 邓州 单位 单身 郭外 盛产 钟情 邱少 骆马 顾虑
    司马懿 关注 关闭 阮郎 江门 江山 童工 贾宝 叶酸 温泉 严冬 左撇 管培 方言 许愿 宋体 雷电 郎酒 柴胡
    卫衣 鲁菜 白酒 江水 黄油 黄瓜 石榴 毛豆
"""
_SIGNS: Final = r"[\u4e00-\u9fff]"
_CHINESE_NAME: Final = exact(
    rf"""
    (?!{either(_NO_NAMES)})(?:{SURNAMES}){_SIGNS}{{0,2}}(?:{TITLES})|[小老](?!家伙|师|板|公|婆)(?:{SURNAMES})|
    (?!{either(_NO_NAMES)}|(?:{PLACES})|(?:{RELATIONS}|{either(JOBS)})$)
    (?:{SURNAMES})(?!{_SIGNS}?[员者们店厂部组院校省市县区镇村街路]$)
    [^\W\da-zA-Z在是的有了着过个里我你您他她它这那都也还就和与跟或给被把让从到对向谁啥某每各说很太]{{1,2}}
    """
)
_ENGLISH_NAME: Final = exact(ENGLISH_NAME)
_LATIN: Final = lazy_pattern(r"[A-Za-zÀ-ÿ]")


def is_name(folded: str) -> bool:
    """Tell a name of a person by its look, Chinese in simplified signs; many are not told."""
    pattern = _ENGLISH_NAME if _LATIN.match(folded) else _CHINESE_NAME
    return pattern.fullmatch(folded) is not None
