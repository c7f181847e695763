"""One form for patterns: they are written once, in lower case, half width and simplified Chinese.

Not a converter: only characters of everyday talk with one simplified form. What people wrote is
stored as they wrote it; this form is for comparing.
"""

from typing import Final
from unicodedata import category

from app.text.normalise import normalise

PAIRS: Final = (
    "個个們们來来這这為为麼么對对說说時时會会沒没過过還还種种開开關关國国後后裡里裏里樣样點点樂乐買买賣卖"
    "讀读寫写聽听講讲話话請请問问題题錯错誤误認认識识記记憶忆謝谢愛爱歡欢討讨厭厌惡恶習习慣惯總总從从現现"
    "經经決决選选擇择訂订畫画計计劃划標标準准備备續续給给讓让應应該该當当實实際际確确難难錢钱親亲媽妈爺爷"
    "孫孙兒儿婦妇妳你歲岁員员師师醫医護护電电腦脑機机網网頁页軟软體体資资訊讯號号碼码郵邮檔档傳传"
    "載载圖图檢检測测試试驗验車车輛辆飛飞鐵铁遊游戲戏場场館馆飯饭麵面魚鱼雞鸡鴨鸭豬猪貓猫鳥鸟藥药癢痒"
    "輕轻鬆松緊紧張张興兴專专業业職职務务辦办產产術术藝艺語语詞词書书報报紙纸課课節节歷历戰战農农陽阳陰阴"
    "雲云風风無无與与於于進进遠远運运動动連连達达遲迟邊边東东長长門门間间陳陈劉刘許许趙赵楊杨吳吴鄭郑馮冯"
    "鄧邓蕭萧葉叶蘇苏盧卢蔣蒋賈贾韓韩羅罗負负責责費费質质貨货賬账贏赢輸输贊赞讚赞錄录鍵键鎖锁鐘钟鑰钥銀银"
    "銷销針针鏡镜響响頭头顯显預预領领顧顾顏颜願愿類类複复雜杂離离雖虽靜静齊齐齡龄龍龙喬乔嗎吗嘗尝嚴严團团"
    "園园圍围圓圆壞坏塊块壓压夠够夢梦奪夺獎奖寶宝寧宁將将導导屆届層层屬属島岛帶带幫帮幹干幾几庫库廣广廳厅"
    "廠厂彈弹彎弯強强懷怀態态惱恼憂忧懶懒戀恋戶户拋抛擔担據据擊击擁拥擋挡擠挤擴扩攝摄敗败數数斷断舊旧曉晓"
    "暫暂曬晒條条極极構构榮荣樓楼權权橋桥櫃柜歸归殘残殺杀氣气淚泪淺浅滿满漢汉溝沟溫温潔洁潤润濕湿灣湾災灾"
    "爐炉爛烂牆墙獨独獲获環环畢毕異异療疗發发盜盗盤盘監监盡尽眾众礎础禮礼稱称穩稳窮穷競竞筆笔築筑簡简簽签"
    "籃篮糧粮約约級级純纯線线組组細细終终結结統统絕绝綠绿維维綱纲緒绪緩缓練练縣县縮缩織织繪绘繼继罰罚罵骂"
    "聯联聖圣聲声聰聪腳脚臉脸臨临舉举艙舱範范薦荐薩萨藍蓝處处虧亏蝦虾裝装補补製制褲裤見见規规視视覺觉覽览"
    "觀观觸触訓训託托詢询詳详誇夸誌志誰谁調调談谈論论諾诺謀谋謂谓證证譯译議议變变豐丰贈赠趕赶跡迹躍跃軍军"
    "較较輪轮轉转辭辞遺遗鄰邻釋释鋪铺錦锦鍋锅鎮镇闆板階阶隊队隨随隱隐隻只雙双靈灵頓顿頗颇頻频顆颗飄飘"
    "餅饼餓饿養养駛驶騎骑騙骗驚惊髒脏鬧闹鬥斗鮮鲜麗丽黨党齒齿亞亚並并亂乱價价優优傷伤傾倾僅仅儘尽償偿兩两"
    "冊册凍冻劇剧勁劲勝胜勞劳勢势勸劝區区協协單单卻却參参啟启嘆叹嚇吓夾夹奮奋妝妆牠它祇只瞭了麽么囉啰恆恒慮虑尋寻碩硕聞闻嬰婴壽寿麥麦奧奥濟济滅灭廢废徵征罷罢蘋苹"
)
"""Each traditional character with its simplified form after it."""

_SIMPLIFIED: Final = str.maketrans(PAIRS[::2], PAIRS[1::2])


def simplify(text: str) -> str:
    """`text` in simplified characters; as long as before, and unchanged the second time."""
    return text if text.isascii() else text.translate(_SIMPLIFIED)


def fold_lines(text: str) -> str:
    """Fold width, case, quotes and script, line by line; characters of no width hide nothing.

    Lines stay apart, because a sentence may begin or end with its line.
    """
    if not text.isascii():
        text = "".join(sign for sign in text if category(sign) != "Cf")
        text = simplify(text.replace("’", "'").replace("‘", "'"))
    return "\n".join(normalise(line) for line in text.splitlines())
