"""What secrets look like, as data: the formats of their issuers, and labels that announce one.

Formats come from `detect-secrets` where it has them. Its own scan yields values without places
and anchors some formats in ways that do not end (a run of "eyJeyJ…" costs the square of its
length), so its expressions are used and those few are written here, each with a fixed start.
"""

import re
from collections.abc import Iterable
from functools import cache
from importlib import import_module
from typing import Final

from app.language.text.lazy_pattern import PatternIndex, lazy_pattern

_KEY = r"[A-Za-z0-9_-]"
_START = rf"(?<!{_KEY})"
_PRIVATE_KEY = (
    r"(?:-{5}BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-{5}|PuTTY-User-Key-File-[0-9])"
    r"(?:(?!-{5}BEGIN)[\s\S])*?"
    r"(?:-{5}END [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-{5}|(?=-{5}BEGIN)|\Z)"
)

# Of the packages of `detect_secrets.plugins`, by the detector's name here.
_PLUGINS: Final = {
    "aws_key": ("aws", "AWSKeyDetector"),
    "azure_storage_key": ("azure_storage_key", "AzureStorageKeyDetector"),
    "discord_token": ("discord", "DiscordBotTokenDetector"),
    "github_token": ("github_token", "GitHubTokenDetector"),
    "gitlab_token": ("gitlab_token", "GitLabTokenDetector"),
    "mailchimp_key": ("mailchimp", "MailchimpDetector"),
    "pypi_token": ("pypi_token", "PypiTokenDetector"),
    "sendgrid_key": ("sendgrid", "SendGridDetector"),
    "slack_token": ("slack", "SlackDetector"),
    "square_secret": ("square_oauth", "SquareOAuthDetector"),
    "stripe_key": ("stripe", "StripeDetector"),
    "telegram_token": ("telegram_token", "TelegramBotTokenDetector"),
    "twilio_key": ("twilio", "TwilioKeyDetector"),
}

_OWN: Final[tuple[tuple[str, str], ...]] = (
    ("kemem_key", rf"{_START}kem_[0-9a-f]{{16}}_[0-9a-f]{{48}}"),
    ("anthropic_key", rf"{_START}sk-ant-{_KEY}{{16,}}"),
    ("openai_key", rf"{_START}sk-(?!ant-)(?:proj-|svcacct-|admin-|or-v1-)?{_KEY}{{20,}}"),
    ("github_token", rf"{_START}github_pat_[A-Za-z0-9_]{{22,}}"),
    ("google_key", rf"{_START}AIza{_KEY}{{35}}"),
    ("google_key", rf"{_START}(?:ya29\.|GOCSPX-){_KEY}{{20,}}"),
    ("huggingface_token", rf"{_START}hf_[A-Za-z0-9]{{30,}}"),
    ("npm_token", rf"{_START}npm_[A-Za-z0-9]{{36}}"),
    ("slack_token", rf"{_START}(?:xapp|xoxe)-{_KEY}{{20,}}"),
    ("stripe_key", rf"{_START}(?:(?:sk|rk)_(?:live|test)_|whsec_)[0-9A-Za-z]{{16,}}"),
    ("alibaba_key", rf"{_START}LTAI[0-9A-Za-z]{{12,}}"),
    ("tencent_key", rf"{_START}AKID[0-9A-Za-z]{{28,}}"),
    ("private_key", _PRIVATE_KEY),
)


def _compiled(package: str, name: str) -> Iterable[re.Pattern[str]]:
    plugin = getattr(import_module(f"detect_secrets.plugins.{package}"), name)
    patterns: Iterable[re.Pattern[str]] = plugin().denylist
    return patterns


@cache
def formats() -> tuple[tuple[str, re.Pattern[str]], ...]:
    """Detector and expression; a match may end before the secret does."""
    # The first of each AWS pair is the format; the second wants quotes, and labels cover it.
    return (
        *((name, lazy_pattern(pattern)) for name, pattern in _OWN),
        *(
            (name, pattern)
            for name, plugin in _PLUGINS.items()
            for pattern in list(_compiled(*plugin))[: 1 if name == "aws_key" else None]
        ),
    )


@cache
def format_index() -> PatternIndex:
    """Which of the formats a text may have."""
    # Flags that an expression was compiled with are not in its text.
    return PatternIndex(
        [
            f"(?i:{pattern.pattern})" if pattern.flags & re.IGNORECASE else pattern.pattern
            for _, pattern in formats()
        ]
    )


STANDS_ALONE: Final = frozenset({"aws_key", "twilio_key", "mailchimp_key", "discord_token"})
"""Formats so plain that a longer word may hold one by chance."""

BASIC_AUTH: Final = lazy_pattern(r"://[^\s/@:]{1,256}:(?P<value>[^\s/@]{3,256})@")
"""The password of a URL; the plugin of that name gives up at an exclamation mark."""

JWT: Final = lazy_pattern(rf"(?<![A-Za-z0-9_=-])eyJ{_KEY}{{4,}}\.{_KEY}{{4,}}(?:\.{_KEY}*)?")


def is_jwt(token: str) -> bool:
    """Tell whether the parts decode to JSON, so that a file named eyJ… is none."""
    from detect_secrets.plugins.jwt import JwtTokenDetector

    return bool(JwtTokenDetector.is_formally_valid(token))


_QUOTE = r"[\"'`“”‘’「『]"
_ASSIGN = rf"{_QUOTE}?\s{{0,3}}(?::=|=>|=|:)\s{{0,3}}{_QUOTE}?"
_VALUE = r"(?P<value>[!-~]{4,512})"
_LOGIN_WORD = (
    r"(?:pass ?word|passwd|pass ?phrase|pass ?code|pwd"
    r"|passwort|kennwort|wachtwoord|contrase(?:ñ|n\u0303|n)a|mot de passe|senha)"
)
_IS = r"(?i:is|was|to|ist|war|lautet|es|est|é)"
_KEY_WORD = (
    r"(?:(?:api|access|secret|private|encryption|signing|account|auth|license)[ _-]?key"
    r"|(?:access|auth|refresh|api|bearer|bot|session|personal access)[ _-]?token"
    r"|client[ _-]?secret|secret|token)"
)
# A label may end a name (DB_PASSWORD, "userPassword") but not begin a longer word.
_BEFORE_WORD = r"(?:(?<![A-Za-z])|(?<=[a-z])(?=[A-Z]))"
_FOR = r"(?:\s(?:for|to|of|on)\s[^\n.:;=,]{1,40}?)?"
_CHINESE = (
    r"(?:密码|密碼|口令|密钥|密鑰|秘钥|秘鑰|令牌|授权码|パスワード|暗証番号|비밀번호|[Пп]ароль)"
)
_SET = r"(?:就是|设为|设成|设置为|設為|改为|改成|改為|变成|换成|是|为|為|は|が|는|은)"

PASSWORD_ASSIGNED: Final = lazy_pattern(
    rf"{_BEFORE_WORD}(?i:{_LOGIN_WORD})(?![A-Za-z]){_FOR}(?:\s{_IS})?{_ASSIGN}{_VALUE}"
)
PASSWORD_SAID: Final = lazy_pattern(
    rf"(?<![A-Za-z])(?i:{_LOGIN_WORD}){_FOR}\s{_IS}\s{{1,3}}{_QUOTE}?{_VALUE}"
)
PASSWORD_BARE: Final = lazy_pattern(rf"(?<![A-Za-z])(?i:{_LOGIN_WORD})\s{{1,3}}{_QUOTE}?{_VALUE}")
"""The label with nothing between; it says so little that the value must look like nothing else."""
KEY_ASSIGNED: Final = lazy_pattern(rf"{_BEFORE_WORD}(?i:{_KEY_WORD})(?![A-Za-z]){_ASSIGN}{_VALUE}")
KEY_SAID: Final = lazy_pattern(
    rf"(?<![A-Za-z])(?i:{_KEY_WORD}){_FOR}\s(?i:is|was)\s{{1,3}}{_QUOTE}?{_VALUE}"
)
CHINESE_BARE: Final = lazy_pattern(rf"{_CHINESE}\s{{0,3}}{_QUOTE}?{_VALUE}")
CHINESE_ASSIGNED: Final = lazy_pattern(rf"{_CHINESE}\s{{0,3}}{_SET}?{_ASSIGN}{_VALUE}")
CHINESE_SAID: Final = lazy_pattern(
    rf"{_CHINESE}(?![学學本箱锁鎖器管])[^\n。,:;=]{{0,4}}?{_SET}了?\s{{0,3}}{_QUOTE}?{_VALUE}"
)
PIN: Final = lazy_pattern(
    rf"(?<![A-Za-z])(?:(?i:pin)(?i: code| number)?{_FOR}(?:\s(?i:is)\s|{_ASSIGN})"
    rf"|PIN码(?:是|为|:)\s?)(?P<value>[0-9]{{4}})(?![0-9])"
)
BEARER: Final = lazy_pattern(
    r"(?<![A-Za-z])(?i:bearer|basic)\s{1,3}(?P<value>[A-Za-z0-9._~+/=-]{16,4096})"
)

NO_PASSWORD: Final = lazy_pattern(
    r"[0-9]+[a-z]+|(?:md|sha|aes|rsa|rc|bcrypt|argon|scrypt|pbkdf|oauth|ipv|utf|base)-?[0-9]+[a-z]*",
    re.IGNORECASE,
)
"""Words with digits in them that follow "password" in a sentence: 1Password, 12chars, SHA256."""

PLACEHOLDER: Final = lazy_pattern(
    "none|null|nil|true|false|undefined|required|optional|empty|unset|unknown|changed|reset|expired"
    "|missing|invalid|incorrect|wrong|correct|secret|hidden|redacted|masked|string|number|text|your"
    "|password|passwd|token|example|placeholder|changeme|input|field|label|column|type|todo|forgot"
    "|forgotten|lost|length|minimum|maximum|must|should|needs|stored|saved|protected|encrypted|hashed"
)
"""Words that stand where a secret would and are none."""

PLACEHOLDER_SHAPE: Final = lazy_pattern(
    r"[<{\[(].*|\$[{(A-Z_].*|%.*%|[*•.x_-]+|.*\[REDACTED.*|(?i:your|my|the)[_-].*|(?i:os\.|env\.|process\.).*"
)
"""Templates, variables, masks, and what `redact` leaves behind."""

CODE: Final = lazy_pattern(
    # A call or a look-up: db.Column(db.String(80), hash_password(given), request["password"].
    r"[A-Za-z_]\w*(?:(?:\.[A-Za-z_]\w*)+|_[a-z]+)[(\[][\"'A-Za-z_*)].*"
    r"|[A-Za-z_]\w*(?:[(\[][\"'].*[\"'].*|\(\))"
    # A variable or an attribute that is named after what it holds.
    r"|(?:[a-z]+[._])*(?:password|passwd|pwd|password_hash|api_key|token|secret)"
)
"""What a program puts, behind an equals sign, where a secret would stand."""

DIGEST: Final = lazy_pattern(r"sha(?:256|384|512)-[A-Za-z0-9+/=]+")
"""Checksum of a published file, as web pages name it (Subresource Integrity)."""
