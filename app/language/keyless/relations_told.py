"""What a turn says plainly of somebody who is named and is not the user: 张三在字节跳动工作.

Only where the turn says nothing else than that and what "I" begins: a story, a task, a word
problem or hearsay has other sentences, or words that give it away. Each statement is a sentence as
it was said, and gives triples (`relations`); what gives none is not kept. Nor is an allergy: taken
for the user's, it would do harm.
"""

from collections.abc import Iterator
from typing import Final

from app.language.keyless.chinese_words import simplified
from app.language.keyless.patterns import compiled, exact
from app.language.keyless.relations_chinese import is_plain_chinese
from app.language.keyless.relations_english import english_relations
from app.language.keyless.relations_named import named_relations
from app.language.keyless.sentences import sentences
from app.language.keyless.statements import IMPLIED, Statement
from app.language.text.normal_forms import has_cjk

LONGEST: Final = 200
"""Characters of a turn; a longer one is a text about somebody."""

_LOOSE_CHINESE: Final = exact(
    r"""
    [？?：:“”"「」『』《》【】（）()<>{}\[\]=*#|/\\~～…]|\n\s*\n|
    [你您吗呢吧么嘛谁哪怎]|什么|为何|是否|能否|可否|
    不|没|未|别|勿|无(?!锡)|(?<![南北])非(?!洲)|否|假|如|若|万一|除非|只要|只有|要不|要是|或|倘|即使|就算|哪怕|
    比如|例|譬|假装|扮演|故事|小说|电影|电视|剧|角色|主角|人设|游戏|(?<!谷)歌|书里|书中|动漫|漫画|梦|
    翻译|造句|句|[写改编画]|润色|总结|作文|题|计算(?!机|科)|帮|请|麻烦|语法|拼音|意思|
    (?<!会)说(?!流利|一口|[\u4e00-\u9fff]{1,3}[语话文])|讲(?![\u4e00-\u9fff]{1,3}[语话文])|
    觉得|认为|以为|看到|看见|听|(?<!顾)问|告诉|希望|相信|怀疑|怀念|报道|新闻|网上|(?<!数)据|传闻|传说|都说|称|谎|骗|
    应该|应当|必须|可以|可能|能够|将|(?<![协学工])会(?!说|讲|员)|(?<!联)想|打算|准备|计划|要|应聘|面试|试图|差点|几乎|好像|
    似乎|仿佛|貌似|估计|八成|多半|大概|也许|玩笑|哈|笑|才怪|曾|以前|从前|之前|原来|当年|当时|那时|小时候|
    去年|前年|去世|年前|月前|天前|(?:19|20)[0-9]{2}年|过敏|前(?:夫|妻|男友|女友|同事)|离|辞|分手|被|让|给|
    经常|有时|偶尔|每
    """
)
_LOOSE_ENGLISH: Final = compiled(
    r"""
    [?:"“”„«»`<>{}\[\]()=*#|/\\…]|\.\.|\n\s*\n|[‘]|(?<!\w)'|'(?!\w)|\b(?:
    you|your|yours|please|translat\w*|sentences?|examples?|e\.g|eg|stor(?:y|ies)|novels?|fiction\w*|
    movies?|films?|books?|characters?|games?|shows?|episodes?|series|poems?|lyrics|songs?|plays?|roles?|
    actors?|personas?|dream\w*|writ(?:e|es|ing|ten)|wrote|rewrite|edit|fix|correct\w*|summar\w+|
    proofread|imagine|suppos\w+|pretend\w*|assum\w+|let|lets|say|says|said|saying|tell|tells|told|
    hear|hears|heard|reads?|apparently|allegedly|reportedly|rumou?rs?|jok\w+|kidding|lol|haha\w*|
    not|no|never|wrong|false|lie|lies|lied|fake|test|tests|if|unless|whether|would|could|should|might|
    will(?!\s+[a-z]+s\b)|grammar|words?|phrases?|according|articles?|news|reports?|quiz|puzzle|
    riddle|prove|given|hypothetic\w*|wonder\w*|maybe|perhaps|probably|possibly|think\w*|thought|guess\w*|
    believ\w*|hop(?:e|es|ing)|wish\w*|seems?|doubt\w*|sure|used\s+to|former\w*|ex|was\s+working|
    almost|nearly|allerg\w+|wants?|plans?|applied|interview\w*
    )\b|n['’]t\b
    """
)
_OF_ME_CHINESE: Final = exact(r"(?:我|咱|俺)(?!们?(?:在看|在读|在听|在玩|看了|读了))")
_OF_ME_ENGLISH: Final = exact(r"(?:I|I['’]m|My|We|We['’]re|Our)\b")


def told_of_others(text: str) -> Iterator[Statement]:
    """The sentences of a turn about named others, in order; none where anything is doubtful."""
    said = text.strip()
    if not said or len(said) > LONGEST:
        return
    chinese = has_cjk(said)
    loose = _LOOSE_CHINESE if chinese else _LOOSE_ENGLISH
    if loose.search(simplified(said) if chinese else said):
        return
    found = [each.text for each in sentences(said, chinese=chinese)]
    plain = [_is_plain(each, chinese=chinese) for each in found]
    own = _OF_ME_CHINESE if chinese else _OF_ME_ENGLISH
    if not all(told or own.match(each) for each, told in zip(found, plain, strict=True)):
        return
    for each, told in zip(found, plain, strict=True):
        if told:
            yield Statement(each if chinese else f"{each}.", "fact", IMPLIED)


def _is_plain(sentence: str, *, chinese: bool) -> bool:
    if chinese:
        return is_plain_chinese(sentence)
    return any(named_relations(sentence)) and any(english_relations(sentence))
