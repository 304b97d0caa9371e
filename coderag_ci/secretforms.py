"""What secrets look like: the formats that issuers document, and values given to telling names.

Every expression reads a text in time that is linear in its length: repetitions are bounded, or of
one set of characters before another.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

_BEFORE = r"(?<![A-Za-z0-9_])"
_AFTER = r"(?![A-Za-z0-9_])"
_LEAST_ENTROPY = 2.7  # bits a character, of a value that a telling name has


class Secret(NamedTuple):
    """A value, where it stands in a text, and its kind; ``whole``: what it is a line of."""

    start: int
    end: int
    kind: str
    whole: str = ""


class _Form(NamedTuple):
    """A format: a text that has none of ``hints`` (in lower case) has none of it."""

    kind: str
    hints: tuple[str, ...]
    pattern: re.Pattern[str]


def _form(kind: str, hints: str, pattern: str) -> _Form:
    return _Form(kind, tuple(hints.split()), re.compile(f"{_BEFORE}(?:{pattern}){_AFTER}"))


# Kind, what a text with one holds, and the format. A group named ``value`` is what is secret.
_FORMS = (
    _form("github-token", "ghp_ gho_ ghu_ ghs_ ghr_", r"gh[pousr]_[A-Za-z0-9]{36,251}"),
    _form("github-token", "github_pat_", r"github_pat_\w{60,255}"),
    _form("gitlab-token", "gl", r"gl(?:pat|dt|rt|rtr|cbt|ptt|ft|soat|agent|oas|imt|ffct)-[\w=-]{20,300}(?:\.\w{2}\.\w{7,9})?"),
    _form("gitlab-token", "gr1348941", r"GR1348941[\w-]{20,50}"),
    _form("aws-access-key", "akia asia abia acca", r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}"),
    _form("google-api-key", "aiza", r"AIza[\w-]{35}"),
    _form("google-oauth-token", "ya29. gocspx-", r"ya29\.[\w-]{20,500}|GOCSPX-[\w-]{28}"),
    _form("slack-token", "xox xapp-", r"(?:xox[abcdeoprs]|xapp|xoxe\.xox[bp])-[A-Za-z0-9-]{10,250}"),
    _form("webhook-url", "hooks.slack.com", r"hooks\.slack\.com/(?:services|workflows|triggers)/(?P<value>[\w/+-]{20,120})"),
    _form("webhook-url", "/api/webhooks/", r"discord(?:app)?\.com/api/webhooks/(?P<value>\d{15,20}/[\w-]{60,90})"),
    _form("webhook-url", "webhook.office.com", r"webhook\.office\.com/webhookb2/(?P<value>[\w@/-]{60,250})"),
    _form("stripe-key", "_live_ _test_ whsec_", r"[srp]k_(?:live|test)_[A-Za-z0-9]{16,250}|whsec_[A-Za-z0-9+/]{32,100}=*"),
    _form("sendgrid-key", "sg.", r"SG\.[\w-]{22}\.[\w-]{43}"),
    _form("twilio-key", "sk", r"SK[0-9a-f]{32}"),
    _form("mailgun-key", "key-", r"key-[0-9a-f]{32}|[0-9a-f]{32}-[0-9a-f]{8}-[0-9a-f]{8}"),
    _form("mailchimp-key", "-us", r"[0-9a-f]{32}-us\d{1,2}"),
    _form("npm-token", "npm_", r"npm_[A-Za-z0-9]{36}"),
    _form("pypi-token", "pypi-", r"pypi-Ag[\w-]{50,300}"),
    _form("rubygems-key", "rubygems_", r"rubygems_[0-9a-f]{48}"),
    _form("crates-token", "cio", r"cio[A-Za-z0-9]{32}"),
    _form("nuget-key", "oy2", r"oy2[a-z0-9]{43}"),
    _form("docker-token", "dckr_", r"dckr_[po]at_[\w-]{27,60}"),
    _form("digitalocean-token", "_v1_", r"do[opr]_v1_[0-9a-f]{64}"),
    _form("heroku-key", "hrku-", r"HRKU-[\w-]{36,80}"),
    _form("shopify-token", "shp", r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}"),
    _form("square-token", "sq0 eaaa", r"sq0[a-z]{3}-[\w-]{22,50}|EAAA[\w-]{60}"),
    _form("telegram-token", ":aa", r"\d{8,10}:AA[\w-]{33}"),
    _form("discord-token", ".", r"[MNO][\w-]{23,27}\.[\w-]{6}\.[\w-]{27,40}"),
    _form("openai-key", "t3blbkfj", r"sk-[\w-]{20,100}T3BlbkFJ[\w-]{20,100}"),
    _form("openai-key", "sk-proj- sk-svcacct- sk-admin-", r"sk-(?:proj|svcacct|admin)-[\w-]{40,250}"),
    _form("anthropic-key", "sk-ant-", r"sk-ant-[a-z0-9]{3,10}-[\w-]{40,150}"),
    _form("huggingface-token", "hf_ api_org_", r"(?:hf|api_org)_[A-Za-z0-9]{34,40}"),
    _form("azure-key", "key=", r"(?:Account|SharedAccess)Key=(?P<value>[A-Za-z0-9+/]{42,88}={0,2})"),
    _form("azure-key", "sig=", r"sig=(?P<value>[A-Za-z0-9%+/]{43,90}(?:%3D|=)?)"),
    _form("azure-key", "q~", r"[A-Za-z0-9_~.-]{3}\dQ~[A-Za-z0-9_~.-]{31,34}"),
    _form("vault-token", "hvs. hvb. hvr.", r"hv[sbr]\.[\w-]{24,300}"),
    _form("terraform-token", ".atlasv1.", r"[A-Za-z0-9]{14}\.atlasv1\.[\w-]{60,80}"),
    _form("databricks-token", "dapi dose", r"(?:dapi|dose)[0-9a-f]{32}(?:-\d)?"),
    _form("atlassian-token", "atatt3 atctt3 atbb", r"AT(?:ATT3|CTT3|BB)[\w=-]{24,300}"),
    _form("linear-key", "lin_", r"lin_(?:api|oauth)_[A-Za-z0-9]{40,64}"),
    _form("notion-token", "ntn_ secret_", r"(?:ntn|secret)_[A-Za-z0-9]{43,50}"),
    _form("newrelic-key", "nrak- nrii- nrjs- nral", r"NR(?:AK|II|JS|AL)-[A-Za-z0-9-]{19,36}"),
    _form("grafana-token", "glsa_ glc_", r"glsa_[A-Za-z0-9]{32}_[0-9a-fA-F]{8}|glc_[A-Za-z0-9+/]{32,400}=*"),
    _form("postman-key", "pmak-", r"PMAK-[0-9a-f]{24}-[0-9a-f]{34}"),
    _form("pulumi-token", "pul-", r"pul-[0-9a-f]{40}"),
    _form("planetscale-token", "pscale_", r"pscale_[a-z]{2,6}_[\w.=-]{32,64}"),
    _form("doppler-token", "dp.", r"dp\.(?:pt|st|ct|sa|scim|audit)\.[\w.-]{40,80}"),
    _form("sentry-token", "sntrys_ sntryu_", r"sntrys_[\w+/=]{40,400}|sntryu_[0-9a-f]{64}"),
    _form("fly-token", "fm2_ fo1_", r"fm2_[A-Za-z0-9+/=]{60,1000}|fo1_[\w-]{43}"),
    _form("figma-token", "figd_", r"figd_[\w-]{38,44}"),
    _form("airtable-token", "pat", r"pat[A-Za-z0-9]{14}\.[0-9a-f]{64}"),
    _form("supabase-key", "sbp_ sb_secret_", r"sbp_[0-9a-f]{40}|sb_secret_[\w-]{20,60}"),
    _form("dynatrace-token", "dt0", r"dt0[a-z]\d\d\.[A-Z0-9]{24}\.[A-Z0-9]{64}"),
    _form("artifactory-key", "akcp", r"AKCp[A-Za-z0-9]{69,80}"),
    _form("clojars-token", "clojars_", r"CLOJARS_[0-9a-f]{60}"),
    _form("easypost-key", "ezak ezt", r"EZ[AT]K[A-Za-z0-9]{54}"),
    _form("age-key", "age-secret-key-1", r"AGE-SECRET-KEY-1[0-9A-Z]{58}"),
    _form("jwt", "eyj", r"eyJ[\w-]{8,2000}\.(?:eyJ)?[\w-]{8,8000}\.[\w-]{8,1000}(?:\.[\w-]{8,4000}){0,2}"),
    _form("authorization", "bearer basic", r"(?:[Bb]earer|[Bb]asic) +(?P<value>(?=[\w+/=.~-]{0,80}\d)[\w+/=.~-]{16,2000})"),
)  # fmt: skip

_URL = re.compile(
    r"://(?P<user>[^\s/:@\"'<>`]{0,200})(?::(?P<password>[^\s/@\"'<>`]{1,300}))?@(?=[\w\[])"
)

_KEY = re.compile(r"-----BEGIN (?P<what>[A-Z0-9 ]{0,30})PRIVATE KEY(?: BLOCK)?-----")
_KEY_END = re.compile(r"-----END [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----")
_MOST_KEY = 20_000  # characters
_KEY_LINE = r"[ +-]?[ \t\"'#*/]{0,40}[A-Za-z0-9+/=\\]{16,}[\"',; \t\\+)]{0,8}"
_UNENDED = re.compile(
    rf"(?:\n(?:[^\n]{{0,80}}: [^\n]{{0,80}}|[ +-]?[ \t]{{0,80}})(?=\n|$))*(?:\n{_KEY_LINE})*"
)
_UNBEGUN = re.compile(
    rf"(?:^{_KEY_LINE}\n){{1,100}}(?=[ +-]?[ \t\"'#*/]{{0,40}}-----END [A-Z0-9 ]{{0,30}}PRIV)",
    re.MULTILINE,
)
_KEY_PART = re.compile(r"(?:^[ +-]?[ \t\"'#*]{0,40})?([A-Za-z0-9+/=\\][^\n]{0,4000})", re.MULTILINE)

# A name that tells, what may stand between it and its value, and the value.
_STRONG = (
    r"passw(?:or)?d|passphrase|pwd|secret|token|credential|"
    r"(?:api|access|auth|account|private|client|consumer|service|encryption|encrypt|decrypt|crypt|"
    r"signing|sign|master|root|hmac|aes|shared|storage|license|app|application|deploy|session|cookie|jwt|"
    r"webhook|admin|subscription)[_.-]?(?:key|pass|pat|auth|salt)|"
    r"(?:db|redis|mysql|postgres|pg|smtp|ftp|ssh|user|mail|ldap)[_.-]?pass|_auth|authkey"
)
_HINTS = ("passw", "pwd", "secret", "token", "credential", "key", "pass", "auth", "salt", "pat")
_GLUE = (
    r"[\w-]{0,30}\\?[\"'\])}]{0,3}[?!]?"
    r"(?:[ \t]{0,20}:[ \t]{0,4}(?:&'\w{1,10} )?[\w.:<>\[\]| ?&*]{1,40}?[ \t]{0,4}(?==))?"
    r"(?:\[\d{0,4}\])?[ \t]{0,20}(?:===?|!==?|:=|=>|\?\?=|\|\|=|=|:|,|\(|>|[ \t]value[ \t]?=|[ \t])[ \t]{0,20}"
    r"(?:(?:[a-z]{1,9}|String::from|[\w.]{1,30}\.(?:encode|getBytes|to_string))?\()?"
)
_NAME = re.compile(_STRONG)
_TO_LOWER = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}
_NAMED = re.compile(
    rf"(?P<name>{_STRONG})(?P<glue>{_GLUE})"
    r"(?:@?[bBfFrRuULl$]{0,2}\\?(?P<quote>[\"'`])(?P<quoted>[^\s\"'`\\]{6,512})\\?(?P=quote)"
    r"|(?P<bare>[^\s\"'`\\<>(){}\[\],;]{8,512})(?=[\s\"'`,;)\]}}>\\]|$))",
    re.IGNORECASE,
)
_ENV = re.compile(
    r"^[ +-]?[ \t]*(?:export[ \t]+|ENV[ \t]+)?(?P<name>[A-Za-z_][A-Za-z0-9_.]{0,80})[ \t]*=[ \t]*"
    r"(?P<quote>[\"']?)(?P<value>[^\s\"']{4,2000})(?P=quote)[ \t]*(?:#.*)?\r?$",
    re.MULTILINE,
)
_SECRET_NAME = re.compile(rf"{_STRONG}|key$|_pass$|^pass$|_pw$|dsn$|salt", re.IGNORECASE)

_PLACEHOLDER = re.compile(
    r"[$%#]?\{|^\[|\$\(|<|\*{3}|x{4}|\.{3}|…|‹|%\(|(?-i:%s)|^\$|^@|^&|^process\.env|^os\.environ|^env[.(]|^vars?\.|"
    r"example|placeholder|change.?me|your[-_]|dummy|redacted|replace|insert|fake|sample|todo|"
    r"^(?:true|false|null|none|nil|undefined|string|bytes|optional|required)$|0000000|1234567890$",
    re.IGNORECASE,
)
_DEFAULTS = frozenset(  # passwords of nothing, as examples have them
    [
        "password",
        "passwd",
        "pass",
        "pwd",
        "secret",
        "token",
        "postgres",
        "root",
        "admin",
        "user",
        "guest",
        "test",
        "mysql",
        "redis",
        "foo",
        "bar",
        "username",
        "hunter2",
        "pw",
        "p",
        "x-access-token",
        "x-oauth-basic",
        "oauth2",
        "git",
    ]
)
_NOT_VALUES = re.compile(  # of a bare word or a quoted one: code, a path, an address, a date
    r"[a-z][\w+.-]*://|[A-Za-z]:\\|\d{4}-\d\d-\d\d|"
    r"v?\d+(?:\.\d+)+|[\w.-]+\.(?:\w{1,4})$(?<!\d)|sha\d{1,3}[-:]|[\w.]+\(|[\w.-]+@[\w-]+\.\w+$",
)
_WORDS = re.compile(r"[_$.:/@#-]*(?:[A-Za-z]+\d{0,3}(?:[_$.:/@#-]+|$)|\d{1,4}(?:[_$.:/@#-]+|$))+")
_SPLIT = re.compile(r"[A-Z]{2,}(?![a-z])|[A-Z]?[a-z]+|[A-Z]")


def find(text: str, env: bool = False) -> Iterator[Secret]:
    """Yield the secrets in a text, in no order; they may overlap. ``env``: of settings."""
    lower = text.lower()
    yield from _keys(text)
    for form in _FORMS:
        if any(hint in lower for hint in form.hints):
            for match in form.pattern.finditer(text):
                group = "value" if "value" in match.re.groupindex else 0
                yield Secret(*match.span(group), form.kind)
    if "://" in text and "@" in text:
        yield from _in_urls(text)
    if any(hint in lower for hint in _HINTS):
        yield from _named(text)
    if env:
        yield from _settings(text)


def _keys(text: str) -> Iterator[Secret]:
    """Yield the lines of private keys, one by one, so that a diff keeps its lines."""
    if "PRIVATE KEY" not in text:
        return
    for begin in _KEY.finditer(text):
        end = _KEY_END.search(text, begin.end(), begin.end() + _MOST_KEY)
        last = end.start() if end else _end_of_body(text, begin.end())
        yield from _parts(text, begin.end(), last)
    for match in _UNBEGUN.finditer(text):
        yield from _parts(text, *match.span())


def _end_of_body(text: str, start: int) -> int:
    """Return where the lines end that look like those of a key, as of one that is cut."""
    match = _UNENDED.match(text, start)
    return match.end() if match else start


def _parts(text: str, start: int, end: int) -> Iterator[Secret]:
    whole = ""
    for part in _KEY_PART.finditer(text, start, end):
        whole = whole or part[1]
        yield Secret(*part.span(1), "private-key", whole)


def _in_urls(text: str) -> Iterator[Secret]:
    for match in _URL.finditer(text):
        password = match["password"]
        if password is None:
            if len(match["user"]) >= 16 and is_random(match["user"]):
                yield Secret(*match.span("user"), "url-password")
        elif password.lower() not in _DEFAULTS and not _PLACEHOLDER.search(password):
            yield Secret(*match.span("password"), "url-password")


def _named(text: str) -> Iterator[Secret]:
    start = 0
    for name in _NAME.finditer(text.translate(_TO_LOWER)):  # of the same length, unlike lower()
        match = _NAMED.match(text, name.start()) if name.start() >= start else None
        if match is None:
            continue
        group = "quoted" if match["quoted"] is not None else "bare"
        value = match[group]
        if group == "bare":
            given = match["glue"].rstrip(" \t")[-1:] not in (",", "(")
            good = given and _is_bare_secret(value)
        else:
            good = is_secret(value)
        if good:
            yield Secret(*match.span(group), _kind(match["name"]))
            start = match.end(group)


def _kind(name: str) -> str:
    """Return password, secret, token or key, as the name says."""
    lower = name.lower()
    if "pass" in lower or "pwd" in lower:
        return "password"
    return next((word for word in ("secret", "token", "credential") if word in lower), "key")


def _settings(text: str) -> Iterator[Secret]:
    for match in _ENV.finditer(text):
        value = match["value"]
        if _PLACEHOLDER.search(value):
            continue
        named = _SECRET_NAME.search(match["name"])
        if named or (len(value) >= 20 and is_random(value) and not _NOT_VALUES.match(value)):
            yield Secret(*match.span("value"), "env-value")


def is_secret(value: str) -> bool:
    """Whether a value that a telling name has is no placeholder, path, or words."""
    if _PLACEHOLDER.search(value) or _NOT_VALUES.match(value) or _is_path(value):
        return False
    return is_random(value)


def _is_path(value: str) -> bool:
    """Whether a value is like ``/a/b``, ``./a`` or ``a/b/c``, in words."""
    if value[:1] not in "/~." and value.count("/") < 2:
        return False
    return not any(len(part) >= 8 and _is_mixed(part) for part in value.split("/"))


def _is_mixed(text: str) -> bool:
    return (
        any(map(str.isupper, text)) and any(map(str.islower, text)) and any(map(str.isdigit, text))
    )


def _is_bare_secret(value: str) -> bool:
    """Whether what no quotes hold is a value rather than code."""
    if len(value) < 10 or not is_secret(value):
        return False
    digits = sum(c.isdigit() for c in value)
    return digits >= 2 and re.fullmatch(r"[\w+/=.~!@#$%^&*?:-]+", value) is not None


def is_random(value: str) -> bool:
    """Whether a value looks made by chance: not words, not a number, not one letter again."""
    if value.isdigit() or entropy(value) < _LEAST_ENTROPY:
        return False
    letters = [c for c in value if c.isalpha()]
    if len(value) >= 16 and len(letters) == len(value):
        parts = _SPLIT.findall(value)
        return len(value) / max(1, len(parts)) < 2.6 or (len(parts) == 1 and _unspeakable(value))
    if _WORDS.fullmatch(value):
        parts = _SPLIT.findall(value)
        return len(value) >= 20 and len(letters) / max(1, len(parts)) < 2.6
    return len(letters) < len(value) and bool(letters)


def _unspeakable(value: str) -> bool:
    """Whether one long word has too few vowels, or too many letters in a row without one."""
    lower = value.lower()
    runs = re.split("[aeiouy]", lower)
    return sum(c in "aeiouy" for c in lower) / len(value) < 0.25 or max(map(len, runs)) > 5


def entropy(text: str) -> float:
    """Return Shannon's entropy in bits a character."""
    counts = Counter(text)
    return -sum(n / len(text) * math.log2(n / len(text)) for n in counts.values())
