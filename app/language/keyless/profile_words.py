"""What names a tool, a language or a wish in a memory: tables of words, English and Chinese."""

import re
from typing import Final

from app.language.text.lazy_pattern import lazy_pattern

PROGRAMMING_LANGUAGES: Final = (
    "Python", "JavaScript", "TypeScript", "Java", "Kotlin", "Scala", "Go", "Golang", "Rust", "C",
    "C++", "C#", "Ruby", "PHP", "Swift", "Objective-C", "Haskell", "OCaml", "Elixir", "Erlang",
    "Clojure", "Julia", "R", "MATLAB", "Perl", "Lua", "Dart", "Fortran", "COBOL", "SQL", "Bash",
    "Zig", "Solidity", "F#",
)  # fmt: skip

TOOLS: Final = (
    "Vim", "Neovim", "Emacs", "VS Code", "VSCode", "IntelliJ", "PyCharm", "Xcode", "Eclipse",
    "Android Studio", "Jupyter", "Git", "GitHub", "GitLab", "Jira", "Confluence", "Notion",
    "Obsidian", "Slack", "Figma", "Docker", "Kubernetes", "Terraform", "Ansible", "Jenkins",
    "Grafana", "Prometheus", "Postman", "Excel", "Photoshop", "Blender", "Tableau", "Power BI",
    "Linux", "tmux", "Cursor", "Copilot", "飞书", "钉钉", "企业微信", "语雀",
)  # fmt: skip

STACK: Final = (
    *PROGRAMMING_LANGUAGES, *TOOLS,
    "PostgreSQL", "Postgres", "MySQL", "SQLite", "MongoDB", "Redis", "Kafka", "RabbitMQ",
    "Elasticsearch", "ClickHouse", "React", "Vue", "Angular", "Svelte", "Next.js", "Node.js",
    "Django", "Flask", "FastAPI", "Spring", "Spring Boot", "Rails", "Laravel", "TensorFlow",
    "PyTorch", "AWS", "Azure", "GCP", "GraphQL", "gRPC", "Nginx", "Milvus", "pgvector",
)  # fmt: skip

# A single letter, and what is a word besides, is a language only where it is listed as one.
AMBIGUOUS: Final = frozenset({"C", "R", "Go", "Java", "Swift", "Dart", "Julia", "Ruby", "Rust"})
CODES: Final = lazy_pattern(
    r"\b(?:cod(?:e|es|ing)|program\w*|writes?|writing|knows?|uses?|using|learn\w*|good at|"
    r"fluent in|experienced|develop\w*|script\w*|language|expert)\b"
    r"|写|用|编程|开发|精通|熟悉|擅长|学"
)

DENIED: Final = lazy_pattern(
    r"\b(?:not|never|no longer|dislikes?|hates?|avoids?|stopped|quit|doesn't|don't|isn't|can't|"
    r"cannot|without|instead of)\b|不|没|讨厌|放弃|停止"
)

USES: Final = lazy_pattern(
    r"\b(?:uses?|using|works? with|writes? in|every day|daily|favou?rite)\b|用|使用|常"
)

ANSWERS: Final = lazy_pattern(
    r"\b(?:answers?|repl(?:y|ies)|respon\w+|explain\w*|explanations?|communicat\w+|assistant)\b"
    r"|回答|回复|解释|答复|说明|沟通|助手",
    re.IGNORECASE,
)
STYLES: Final = (
    ("concise", lazy_pattern(
        r"\b(?:concise\w*|brief\w*|short(?:er)?|terse|to the point)\b|简洁|简短|简明|精简|简练",
        re.IGNORECASE,
    )),
    ("detailed", lazy_pattern(
        r"\b(?:detail\w*|thorough\w*|in depth|in-depth|step by step|long(?:er)?)\b|详细|详尽|细致",
        re.IGNORECASE,
    )),
    ("technical", lazy_pattern(
        r"\b(?:technical\w*|precise terms)\b|技术性|技术细节|专业", re.IGNORECASE
    )),
)  # fmt: skip
FORMATS: Final = (
    ("markdown", lazy_pattern(r"markdown", re.IGNORECASE)),
    (
        "plain",
        lazy_pattern(r"\bplain(?: text)?\b|no (?:markdown|formatting)|纯文本", re.IGNORECASE),
    ),
    (
        "code",
        lazy_pattern(r"\b(?:as|in|only|just) code\b|code only|只给代码|代码形式", re.IGNORECASE),
    ),
)

LANGUAGES: Final = {
    "chinese": "zh-CN", "mandarin": "zh-CN", "simplified chinese": "zh-CN",
    "traditional chinese": "zh-TW", "cantonese": "yue", "english": "en", "german": "de",
    "french": "fr", "spanish": "es", "portuguese": "pt", "italian": "it", "dutch": "nl",
    "polish": "pl", "russian": "ru", "ukrainian": "uk", "turkish": "tr", "arabic": "ar",
    "hebrew": "he", "hindi": "hi", "japanese": "ja", "korean": "ko", "vietnamese": "vi",
    "thai": "th", "indonesian": "id", "greek": "el", "swedish": "sv", "danish": "da",
    "norwegian": "no", "finnish": "fi", "czech": "cs", "hungarian": "hu", "romanian": "ro",
    "中文": "zh-CN", "汉语": "zh-CN", "普通话": "zh-CN", "简体中文": "zh-CN", "繁体中文": "zh-TW",
    "粤语": "yue", "英文": "en", "英语": "en", "德语": "de", "法语": "fr", "西班牙语": "es",
    "葡萄牙语": "pt", "意大利语": "it", "俄语": "ru", "阿拉伯语": "ar", "日语": "ja", "日文": "ja",
    "韩语": "ko", "韩文": "ko", "越南语": "vi", "泰语": "th",
}  # fmt: skip

IN_LANGUAGE: Final = lazy_pattern(
    rf"(?:\bin |用|以|说|讲)(?P<name>{'|'.join(sorted(LANGUAGES, key=len, reverse=True))})"
)

EXPERTISE: Final = lazy_pattern(
    r"\b(?:expert (?:in|on|at)|experienced (?:in|with)|speciali[sz]es in|proficient (?:in|with)|"
    r"skilled (?:in|at)|good at|knows a lot about) (?P<area>[^.,;]{2,80})"
    r"|(?:擅长|精通|专长是|熟悉|善于)(?P<gebiet>[^，。；,.]{1,40})"
)
EXPERTISE_SPLIT: Final = lazy_pattern(r",| and |和|与|、|及")

WORK: Final = lazy_pattern(
    r"\b(?:work\w*|job|team|project|company|colleague|manager|client|office|customer|startup|"
    r"career|product|service|software|develop\w*|engineer\w*)\b"
    r"|工作|团队|项目|公司|同事|客户|老板|经理|职业|产品|开发|创业|工程",
    re.IGNORECASE,
)
PHASE: Final = lazy_pattern(
    r"\b(?:phase|milestone|stage|sprint|alpha|beta|release|launch|prototype|mvp)\b"
    r"|阶段|里程碑|迭代|冲刺|上线|发布|原型|测试期",
    re.IGNORECASE,
)
STUDY: Final = lazy_pattern(
    r"\b(?:stud(?:ied|ies)|degree|graduated|university|college|phd|master|bachelor|trained as|"
    r"grew up|born)\b|毕业|大学|学位|博士|硕士|本科|专业是|出生|长大",
    re.IGNORECASE,
)
