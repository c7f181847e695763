"""Injected blocks are taken out whole; sentences about uploads go, talk about files stays."""

import re
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app.language.text.uploads import EVENTS, LOOKALIKES, PATHS, scrub_upload_mentions, strip_blocks

TAGS = ("uploaded_files", "memory", "system-reminder")

# Pieces from which tags and near-tags arise.
SIGNS = ["<", ">", "/", "`", "</", "/>", "\n", " ", "memory", "mem", "ory", "说", "x"]
WHOLE = ["<memory>", "</memory>", "<MEMORY a='b'>", "<uploaded_files>", "</uploaded_files>"]
PIECES = st.lists(st.sampled_from(SIGNS + WHOLE), max_size=25).map("".join)

EVENTS_SAID = [
    "User uploaded report.pdf to /mnt/user-data/uploads/report.pdf.",
    "The user uploaded a file named budget.xlsx.",
    "User has uploaded three documents for review.",
    "The user just uploaded a screenshot.",
    "The user is uploading several images.",
    "A CSV file was uploaded by the user.",
    "Two documents have been uploaded.",
    "The uploaded file contains the figures of Q3.",
    "The user attached a contract for the assistant to read.",
    "The report is stored at /mnt/user-data/uploads/q3.docx.",
    "User shared <uploaded_files> with the agent.",
    "Data came in through a file upload.",
    "用户上传了 报告.pdf 到 /mnt/user-data/uploads/。",
    "用户上传了一份简历。",
    "用户刚刚上传了文件。",
    "用戶上傳了報告.docx。",
    "用户上传过三张截图。",
    "上传的文件包含第三季度的数据。",
    "该文档已上传。",
    "用户附上了一份合同。",
    "内容见附件。",
    "文件保存在/mnt/user-data/uploads/数据.csv。",
]

KEPT = [
    "The user exports reports as PDF.",
    "User works with CSV files.",
    "The user prefers PDF over Word documents.",
    "The user prefers uploading documents as PDF.",
    "The user uploads a video to YouTube every week.",
    "The user uploaded his thesis to arXiv as PDF document.",
    "The user is building a service for uploading files.",
    "The user's app stores uploaded images in S3.",
    "The team designs a file upload feature.",
    "The user keeps his files tidy.",
    "The user is attached to his old photo albums.",
    "The invoice was sent by mail.",
    "He reads documents on the train.",
    "用户经常处理CSV文件。",
    "用户把报告导出为PDF。",
    "用户喜欢用PDF格式的文件。",
    "用户在开发文件上传功能。",
    "用户每周上传视频到B站。",
    "用户希望上传图片时自动压缩。",
    "用户把照片上传到了百度网盘。",
    "公司的系统会检查上传的文件。",
    "用户上班看文件，下班看书。",
    "用户在一家文件上传软件公司工作。",
]


SAID_BESIDES = [
    ("I uploaded my CV and I work at SAP.", "I work at SAP."),
    ("I uploaded my CV and work at SAP.", "I work at SAP."),
    ("The user uploaded a CV and works at SAP.", "The user works at SAP."),
    ("I work at SAP and uploaded my CV.", "I work at SAP."),
    ("I live in Bonn, I uploaded my CV and I work at SAP.", "I live in Bonn and I work at SAP."),
    ("Based on the uploaded CV, the user works at SAP.", "the user works at SAP."),
    ("Ana works at SAP, as her uploaded CV shows.", "Ana works at SAP."),
    ("I uploaded my CV because I want to change jobs.", "I want to change jobs."),
    ("The user is 31; see /mnt/user-data/uploads/cv.pdf", "The user is 31"),
    ("我上传了简历，我在SAP工作。", "我在SAP工作。"),
    ("我上传了简历，在SAP工作。", "在SAP工作。"),
    ("我住在波恩，上传了简历，喜欢喝茶。", "我住在波恩，喜欢喝茶。"),
    ("根据上传的简历，用户在SAP工作五年。", "用户在SAP工作五年。"),
    ("用户住在波恩并且上传了简历。", "用户住在波恩。"),
    # What hangs on the mention goes with it.
    ("The user uploaded a CV and cover letter.", ""),
    ("The user uploaded photos from Bonn, Berlin and Rome.", ""),
    ("The user uploaded and attached report.pdf.", ""),
    ("Last week, the user uploaded a report, which contains the figures of Q3.", ""),
    ("昨天，用户上传了简历。", ""),
    ("用户上传了一份报告，包含第三季度的数据。", ""),
    ("用户上传了文件，文件名为a.pdf。", ""),
]


def _sentence_of(facts: list[str], mentions: list[str], joints: list[str]):
    """Parts of one sentence: what joins each to the one before, its text, whether it goes."""
    part = st.sampled_from([(one, False) for one in facts] + [(one, True) for one in mentions])
    return st.lists(
        st.tuples(st.sampled_from(joints), part).map(lambda found: (found[0], *found[1])),
        min_size=1,
        max_size=6,
    )


ENGLISH_PARTS = _sentence_of(
    [
        "I work at SAP", "the user lives in Bonn", "she has two cats", "my sister is a nurse",
        "we moved on 3 May", "I'm allergic to nuts", "he pays $1,200 rent",
    ],
    ["I uploaded my CV", "the user attached a contract", "she has uploaded three photos"],
    [" and ", ", and ", ", ", "; ", " but ", ", so "],
)  # fmt: skip
CHINESE_PARTS = _sentence_of(
    ["我在SAP工作", "用户住在波恩", "她养了两只猫", "我们五月三日搬家", "养了一条狗"],
    ["我上传了简历", "用户附上了一份合同", "上传过三张截图"],
    ["，", "；", "，并且", "而且"],
)


class TestBlocks:
    def test_a_block_is_taken_out_and_told(self) -> None:
        stripped = strip_blocks("<uploaded_files>a.pdf</uploaded_files>\nSummarise it", TAGS)

        assert stripped.text == "Summarise it"
        assert stripped.blocks == ("a.pdf",)
        assert stripped.found

    @pytest.mark.parametrize(
        ("text", "left", "blocks"),
        [
            ("请看<uploaded_files>报告.pdf</uploaded_files>谢谢", "请看\n谢谢", ("报告.pdf",)),
            ("<UPLOADED_FILES>a</Uploaded_Files> hi", "hi", ("a",)),
            ('<uploaded_files count="1" new>a</uploaded_files >hi', "hi", ("a",)),
            ("<uploaded_files\n  n='1'\n>a</uploaded_files>hi", "hi", ("a",)),
            ("hi <uploaded_files>a.pdf and the rest", "hi", ("a.pdf and the rest",)),
            ("hi <uploaded_files n=", "hi", ()),
            ("<memory>a<memory>b</memory>c</memory>d", "d", ("a<memory>b</memory>c",)),
            ("<memory>a<uploaded_files>b</memory>c", "c", ("a<uploaded_files>b",)),
            ("a</memory>b", "a\nb", ()),
            ("a<memory/>b", "a\nb", ()),
            ("<memory>a<memory/>b</memory>c", "c", ("a<memory/>b",)),
            ("<memory>a</memory>x<memory>b</memory>y", "x\ny", ("a", "b")),
            ("<system-reminder>be nice</system-reminder>早上好", "早上好", ("be nice",)),
        ],
    )
    def test_every_shape_is_known(self, text: str, left: str, blocks: tuple[str, ...]) -> None:
        stripped = strip_blocks(text, TAGS)

        assert (stripped.text, stripped.blocks) == (left, blocks)
        assert stripped.found

    @pytest.mark.parametrize(
        "text",
        [
            "a < b and b > c",
            "<memories>are another tag</memories>",
            "<memory_limit>3</memory_limit>",
            "<b>bold</b>",
            "how do I parse the `<memory>` tag?",
            "内存 < 8G",
        ],
    )
    def test_other_brackets_stay(self, text: str) -> None:
        stripped = strip_blocks(text, TAGS)

        assert (stripped.text, stripped.blocks, stripped.found) == (text, (), False)

    def test_without_tags_nothing_is_taken(self) -> None:
        assert strip_blocks("<memory>a</memory>", ()).text == "<memory>a</memory>"

    def test_a_name_is_no_expression(self) -> None:
        assert strip_blocks("<axb>1</axb>", ["a.b"]).text == "<axb>1</axb>"

    def test_halves_of_a_tag_do_not_become_one(self) -> None:
        assert strip_blocks("<mem<memory>x</memory>ory>y</memory>", TAGS).text == "<mem\nory>y"

    @given(PIECES)
    @example("<memory<memory></memory>")
    @example("<memory <memory></memory>>x")
    @example("`<memory></memory><memory>x")
    def test_stripping_again_changes_nothing(self, text: str) -> None:
        once = strip_blocks(text, TAGS)

        assert strip_blocks(once.text, TAGS).text == once.text
        assert strip_blocks(once.text, TAGS).blocks == ()

    @given(st.text())
    def test_no_text_is_too_strange(self, text: str) -> None:
        if "<" not in text:
            assert strip_blocks(text, TAGS).text == text.strip()


class TestMentions:
    @pytest.mark.parametrize("sentence", EVENTS_SAID)
    def test_an_event_goes_and_the_rest_stays(self, sentence: str) -> None:
        assert scrub_upload_mentions(sentence) == ""
        assert scrub_upload_mentions(f"She lives in Bonn. {sentence}") == "She lives in Bonn."
        assert scrub_upload_mentions(f"{sentence}\n用户住在波恩。") == "用户住在波恩。"

    @pytest.mark.parametrize("sentence", KEPT)
    def test_work_with_files_stays(self, sentence: str) -> None:
        assert scrub_upload_mentions(sentence) == sentence

    def test_without_a_mention_the_text_is_as_it_was(self) -> None:
        text = "  Two  spaces.\n\nAnd a line.  "

        assert scrub_upload_mentions(text) == text

    def test_a_dot_in_a_name_ends_no_sentence(self) -> None:
        text = "User uploaded plan.v2.pdf to /mnt/user-data/uploads/plan.v2.pdf. She likes tea."

        assert scrub_upload_mentions(text) == "She likes tea."

    def test_a_place_of_the_session_goes_whatever_is_said_with_it(self) -> None:
        text = "The user always uploads to /mnt/user-data/uploads/x."

        assert scrub_upload_mentions(text) == ""

    @pytest.mark.parametrize(("text", "left"), SAID_BESIDES)
    def test_rest_of_the_sentence_stays(self, text: str, left: str) -> None:
        assert scrub_upload_mentions(text) == left
        assert scrub_upload_mentions(f"Hello. {text}") == f"Hello. {left}".strip()

    @given(ENGLISH_PARTS | CHINESE_PARTS)
    def test_what_is_no_mention_survives_letter_for_letter(
        self, parts: list[tuple[str, str, bool]]
    ) -> None:
        text = "".join(
            (joint if number else "") + part for number, (joint, part, _) in enumerate(parts)
        )
        left = scrub_upload_mentions(f"{text}.")

        facts = [part for _, part, mention in parts if not mention]
        rest = left
        for fact in facts:
            before, found, rest = rest.partition(fact)
            assert found, (fact, left)
            assert before.strip(" ,，;；") in {"", "and", "but", "so", "并且", "而且"}
        assert rest == ("." if facts else "")

    @given(
        st.lists(st.sampled_from([*EVENTS_SAID, *KEPT, " ", "\n", "。", "...", "a.b"])).map("".join)
    )
    def test_scrubbing_again_changes_nothing(self, text: str) -> None:
        once = scrub_upload_mentions(text)

        assert scrub_upload_mentions(once) == once

    @given(st.text())
    def test_no_text_is_too_strange(self, text: str) -> None:
        assert len(scrub_upload_mentions(text)) <= len(text)


def steps(function: Callable[..., object], *args: object) -> int:
    """How many lines of Python run; what the expressions do inside is bounded by the test below."""
    count = 0

    def trace(_frame: FrameType, event: str, _arg: Any) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        function(*args)
    finally:
        sys.settrace(before)
    return count


class TestLinear:
    @pytest.mark.parametrize(
        "piece",
        ["<memory>", "</memory>", "<memory ", "<memory 'a", "<", "`<memory>", "<memory/>", "a. "],
    )
    def test_twice_the_text_is_at_most_twice_the_steps(self, piece: str) -> None:
        once = steps(strip_blocks, piece * 500, TAGS) + steps(scrub_upload_mentions, piece * 500)
        twice = steps(strip_blocks, piece * 1000, TAGS) + steps(scrub_upload_mentions, piece * 1000)

        assert twice <= 2 * once + 50

    def test_no_pattern_repeats_without_a_bound(self) -> None:
        for pattern in (*PATHS, *EVENTS, *LOOKALIKES):
            assert not re.search(r"(?<!\\)[*+]|\{\d*,\}", pattern), pattern

    @pytest.mark.slow
    @pytest.mark.parametrize(
        "piece", ["<memory ", "<memory 'a", "<", "</memory", "...", "a.b", "上传"]
    )
    def test_a_long_text_is_read_to_its_end(self, piece: str) -> None:
        """Quadratic work on 400,000 characters would take minutes."""
        text = piece * (400_000 // len(piece))

        strip_blocks(text, TAGS)
        scrub_upload_mentions(text)
