"""How many secrets are redacted, and how many ordinary lines are: on a corpus made from a seed.

    python benchmarks/redaction.py [--seed N] [--show] [--compare]

Secrets in the formats that their issuers document, set into lines of eight languages, among lines
of ordinary code, hashes, lock files, UUIDs and test fixtures. The first half of the kinds (*seen*)
was looked at while the detector was tuned, the second half (*unseen*) was not; some of these have
no format of their own in the detector. ``--compare`` runs detect-secrets on the same lines, where
it is installed.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import importlib.util
import json
import random
import string
import sys
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from coderag_ci import secretforms
from coderag_ci.redact import redact

LOWER, UPPER, DIGITS = string.ascii_lowercase, string.ascii_uppercase, string.digits
ALNUM = LOWER + UPPER + DIGITS
HEX = "0123456789abcdef"
URLSAFE = ALNUM + "-_"
BASE64 = ALNUM + "+/"
BASE32 = UPPER + "234567"
Make = Callable[[random.Random], str]


def of(alphabet: str, least: int, most: int = 0) -> Make:
    """Return a maker of random texts of some length, which have a digit where the set has."""

    def make(r: random.Random) -> str:
        while True:
            text = "".join(r.choices(alphabet, k=r.randint(least, most or least)))
            if not set(DIGITS) & set(alphabet) or any(c.isdigit() for c in text):
                return text

    return make


def after(prefix: str, *rest: Make | str) -> Make:
    """Return a maker of texts that begin with a prefix."""
    return lambda r: prefix + "".join(part if isinstance(part, str) else part(r) for part in rest)


def jwt(r: random.Random) -> str:
    """Return a JSON web token that nothing signed."""

    def part(value: dict[str, object]) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    head = part({"alg": "HS256", "typ": "JWT"})
    return f"{head}.{part({'sub': of(DIGITS, 8)(r), 'name': 'Ada'})}.{of(URLSAFE, 43)(r)}"


def password(r: random.Random) -> str:
    """Return a password as a generator of passwords makes it."""
    return of(ALNUM + "!#%^*-_=+", 12, 24)(r)


# Kind: (maker, names that a program gives to it). No name: it is known by its form alone.
SEEN: dict[str, tuple[Make, list[str]]] = {
    "github": (after("ghp_", of(ALNUM, 36)), []),
    "github fine-grained": (after("github_pat_", of(ALNUM, 22), "_", of(ALNUM, 59)), []),
    "gitlab": (after("glpat-", of(URLSAFE, 20)), []),
    "aws id": (after("AKIA", of(BASE32, 16)), []),
    "aws secret": (of(BASE64, 40), ["aws_secret_access_key", "awsSecretAccessKey"]),
    "google": (after("AIza", of(URLSAFE, 35)), []),
    "slack": (after("xoxb-", of(DIGITS, 12), "-", of(DIGITS, 13), "-", of(ALNUM, 24)), []),
    "stripe": (after("sk_live_", of(ALNUM, 24)), []),
    "npm": (after("npm_", of(ALNUM, 36)), []),
    "jwt": (jwt, []),
    "password": (password, ["password", "db_password", "smtpPassword", "PASSWORD"]),
    "api key": (of(ALNUM, 32), ["api_key", "apiKey", "API_KEY", "xApiKey"]),
    "hex secret": (of(HEX, 64), ["client_secret", "clientSecret", "SECRET_KEY"]),
    "openai": (after("sk-proj-", of(URLSAFE, 74), "T3BlbkFJ", of(URLSAFE, 74)), []),
    "sendgrid": (after("SG.", of(URLSAFE, 22), ".", of(URLSAFE, 43)), []),
    "url": (password, ["://"]),
}
UNSEEN: dict[str, tuple[Make, list[str]]] = {
    "anthropic": (after("sk-ant-api03-", of(URLSAFE, 93), "AA"), []),
    "hugging face": (after("hf_", of(LOWER + UPPER, 34)), []),
    "pypi": (after("pypi-AgEIcHlwaS5vcmc", of(URLSAFE, 150)), []),
    "digitalocean": (after("dop_v1_", of(HEX, 64)), []),
    "shopify": (after("shpat_", of(HEX, 32)), []),
    "telegram": (after("", of("123456789", 10), ":AA", of(URLSAFE, 33)), []),
    "discord": (after("M", of(ALNUM, 23), ".", of(URLSAFE, 6), ".", of(URLSAFE, 38)), []),
    "azure storage": (
        after("DefaultEndpointsProtocol=https;AccountName=shop;AccountKey=", of(BASE64, 86), "=="),
        [],
    ),
    "vault": (after("hvs.", of(ALNUM, 90)), []),
    "databricks": (after("dapi", of(HEX, 32)), []),
    "grafana": (after("glsa_", of(ALNUM, 32), "_", of(HEX, 8)), []),
    "linear": (after("lin_api_", of(ALNUM, 40)), []),
    "docker": (after("dckr_pat_", of(URLSAFE, 27)), []),
    "slack hook": (
        after(
            "https://hooks.slack.com/services/T",
            of(ALNUM, 8),
            "/B",
            of(ALNUM, 10),
            "/",
            of(ALNUM, 24),
        ),
        [],
    ),
    # without a format of their own: known by what they are given to
    "datadog": (of(HEX, 32), ["DD_API_KEY", "datadog_api_key", "datadogApiKey"]),
    "heroku": (
        lambda r: str(uuid.UUID(int=r.getrandbits(128), version=4)),
        ["HEROKU_API_KEY", "herokuAuthToken"],
    ),
    "algolia": (of(HEX, 32), ["algolia_admin_key", "ALGOLIA_ADMIN_KEY", "algoliaAdminKey"]),
    "twilio auth": (of(HEX, 32), ["TWILIO_AUTH_TOKEN", "twilioAuthToken"]),
    "okta": (after("00", of(URLSAFE, 40)), ["OKTA_API_TOKEN", "oktaToken"]),
    "circleci": (of(HEX, 40), ["CIRCLE_TOKEN", "circleci_token"]),
}

# Eight languages, and files of settings. {n}: name, {v}: value; for each a name is made to fit.
LINES = {
    "python": [
        '{n} = "{v}"',
        '    "{n}": "{v}",',
        "client = Client({n}='{v}')",
        'os.environ["{n}"] = "{v}"',
        '    {n}: str = "{v}"',
        'if request.headers["{n}"] == "{v}":',
    ],
    "javascript": [
        "const {n} = '{v}';",
        '  {n}: "{v}",',
        "process.env.{n} = '{v}';",
        'this.{n} = "{v}";',
    ],
    "typescript": [
        "  private readonly {n}: string = '{v}';",
        "export const {n} = `{v}`;",
        'let {n}: string = "{v}"',
    ],
    "go": ['{n} := "{v}"', 'const {n} = "{v}"', '\t{n}: "{v}",', 'os.Setenv("{n}", "{v}")'],
    "java": [
        'private static final String {n} = "{v}";',
        'props.setProperty("{n}", "{v}");',
        'config.put("{n}", "{v}");',
    ],
    "ruby": ["  {n}: '{v}',", ":{n} => '{v}',", "ENV['{n}'] = '{v}'", '{n} = "{v}"'],
    "php": ["${n} = '{v}';", "'{n}' => '{v}',", "define('{n}', '{v}');", 'const {n} = "{v}";'],
    "rust": [
        'let {n} = "{v}";',
        'const {n}: &str = "{v}";',
        '{n}: "{v}".to_string(),',
        '{n}: String::from("{v}"),',
    ],
    "settings": [
        "{n}={v}",
        "export {n}={v}",
        "{n}: {v}",
        '{n}: "{v}"',
        '  "{n}": "{v}",',
        '{n} = "{v}"',
        "ENV {n}={v}",
    ],
}
PLAIN_NAMES = ["value", "creds", "x", "config", "TOKEN", "auth"]


def secret_line(r: random.Random, make: Make, names: list[str]) -> tuple[str, str]:
    """Return a line with a secret, and the secret."""
    value = make(r)
    template = r.choice(LINES[r.choice(list(LINES))])
    if names == ["://"]:
        scheme = r.choice(["postgres", "mysql", "redis", "amqp", "https", "mongodb+srv"])
        value = value.replace("#", "x").replace("%", "y")
        line = f"{scheme}://{r.choice(['app', 'svc', ''])}:{value}@db.internal:5432/shop"
        return template.replace("{n}", "url").replace("{v}", line), value
    name = r.choice(names or PLAIN_NAMES)
    return template.replace("{n}", name).replace("{v}", value), value.rpartition("AccountKey=")[
        2
    ].rpartition("services/")[2]


# ---- ordinary lines


def ordinary(r: random.Random, number: int) -> Iterator[str]:
    """Yield lines without secrets: real code of the standard library, and what looks random."""
    yield from code(r, number // 2)
    hexes, b64 = of(HEX, 40), of(BASE64, 86)
    made: list[Callable[[], str]] = [
        lambda: f'    "integrity": "sha512-{b64(r)}==",',
        lambda: f"    --hash=sha256:{of(HEX, 64)(r)} \\",
        lambda: f'checksum = "{of(HEX, 64)(r)}"',
        lambda: f"golang.org/x/crypto v0.{r.randint(1, 40)}.0 h1:{of(BASE64, 43)(r)}=",
        lambda: (
            f'  resolved "https://registry.yarnpkg.com/a/-/a-1.{r.randint(0, 9)}.0.tgz#{hexes(r)}"'
        ),
        lambda: f"commit {hexes(r)}",
        lambda: f"      uses: actions/checkout@{hexes(r)} # v4.{r.randint(0, 9)}",
        lambda: f'    id = "{uuid.UUID(int=r.getrandbits(128), version=4)}"',
        lambda: f"user_id: {uuid.UUID(int=r.getrandbits(128), version=4)}",
        lambda: f'assert digest == "{hashlib.sha256(hexes(r).encode()).hexdigest()}"',
        lambda: f'ETag: "{of(HEX, 32)(r)}"',
        lambda: f"image: app@sha256:{of(HEX, 64)(r)}",
        lambda: f"cache-key: deps-v{r.randint(1, 9)}-{of(HEX, 16)(r)}",
        lambda: r.choice(FIXTURES).replace("#", str(r.randint(1, 99))),
        lambda: r.choice(FIXTURES).replace("#", str(r.randint(1, 99))),
    ]
    for _ in range(number - number // 2):
        yield r.choice(made)()


FIXTURES = """\
password = "password"
token = "test-token-#"
api_key = "your-api-key-here"
secret = os.environ["SECRET_#"]
const token = await getToken(user.id);
password: String,
PASSWORD_RESET_TIMEOUT = 60 * 60 * #
def test_token_#_expires(client):
    self.token = token
if (token === null || token.type !== TokenType.Identifier) {
    tokenizer = Tokenizer.from_file("tokenizer-#.json")
client = Client(token=settings.API_TOKEN)
secretKeyRef: {name: shop-secrets-#, key: password}
postgres://user:password@localhost:54#/test
https://example.com/users/#?page=2
user = User.objects.create_user("ada", password="testpass")
access_token_url = "https://provider.example/oauth/token/#"
const API_KEY = process.env.API_KEY_#;
token_type = "access_token_#"
    token: ${{ secrets.GITHUB_TOKEN }}
password_field = form.find_element("password_#")
headers = {"Authorization": f"Bearer {token}"}
auth: AuthService = inject(AuthService)
SESSION_COOKIE_NAME = "shop_session_#"
key = f"cart:{user_id}:v#"
primary_key = "order_item_id_#"
secret_name = "projects/shop/secrets/db-#/versions/latest"
"tokens_per_minute": 90#,
const passwordStrength = calculateStrength(value, #);
label = "Forgot your password? Step #"
private_key_path = "/etc/ssl/private/server-#.pem"
input.token.should == "identifier#"
""".rstrip().split("\n")


def code(r: random.Random, number: int) -> Iterator[str]:
    """Yield lines of Python's own library, from where a seed says."""
    folder = Path(json.__file__).resolve().parent.parent
    files = sorted(
        p
        for name in ("http", "email", "urllib", "asyncio", "xml", "logging", ".")
        for p in (folder / name).glob("*.py")
    )
    lines = [
        line
        for path in files
        for line in path.read_text("utf-8", "replace").split("\n")
        if line.strip()
    ]
    start = r.randrange(max(1, len(lines) - number))
    yield from lines[start : start + number]


# ---- what is measured


def missed(line: str, value: str) -> bool:
    """Whether a half of a secret, or more, is still there once a line is redacted."""
    left = redact([line])[0]
    half = len(value) // 2
    return value[:half] in left or value[half:] in left


def touched(line: str) -> bool:
    """Whether anything of a line is redacted."""
    return redact([line])[0] != line


def measure(seed: int, per_kind: int, lines: int, show: bool) -> None:
    """Print recall by kind and the share of ordinary lines that are touched."""
    r = random.Random(seed)  # noqa: S311
    for label, kinds in (("seen", SEEN), ("unseen", UNSEEN)):
        total = lost = 0
        for kind, (make, names) in kinds.items():
            some = [secret_line(r, make, names) for _ in range(per_kind)]
            left = [line for line, value in some if missed(line, value)]
            total += len(some)
            lost += len(left)
            if left:
                print(f"  {kind}: {len(left)} of {len(some)} missed")
            if show:
                print("".join(f"    {line}\n" for line in left[:8]), end="")
        print(f"{label}: {len(kinds)} kinds, {total} secrets, recall {1 - lost / total:.2%}")
    plain = list(ordinary(r, lines))
    wrong = [line for line in plain if touched(line)]
    print(f"ordinary: {len(plain)} lines, {len(wrong)} touched ({len(wrong) / len(plain):.2%})")
    if show:
        print("".join(f"    {line}\n" for line in wrong[:40]), end="")
    text = "\n".join(plain)[:40_000]
    start = time.perf_counter()
    list(secretforms.find(text))
    print(f"time: {(time.perf_counter() - start) * 1000:.1f} ms for {len(text):,} characters")


def compare(seed: int, per_kind: int, lines: int) -> None:
    """Print the same for detect-secrets with its default plugins, filters included."""
    from detect_secrets import SecretsCollection
    from detect_secrets.settings import default_settings

    r = random.Random(seed)  # noqa: S311
    kinds = [*SEEN.values(), *UNSEEN.values()]
    some = [secret_line(r, make, names)[0] for make, names in kinds for _ in range(per_kind)]
    plain = list(ordinary(r, lines))
    for label, texts in (("secrets found in", some), ("ordinary", plain)):
        with tempfile.TemporaryDirectory() as folder, default_settings():
            path = Path(folder, "lines.py")
            path.write_text("\n".join(texts) + "\n")
            found = SecretsCollection()
            start = time.perf_counter()
            found.scan_file(str(path))
            hit = Counter(secret.line_number for _, secret in found)
            seconds = time.perf_counter() - start
        print(
            f"detect-secrets, {label}: {len(hit)} of {len(texts)} lines "
            f"({len(hit) / len(texts):.2%}), {seconds:.1f} s"
        )


def main() -> None:
    """Read the arguments and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--per-kind", type=int, default=40)
    parser.add_argument("--lines", type=int, default=6000)
    parser.add_argument("--show", action="store_true", help="print what was missed")
    parser.add_argument("--compare", action="store_true", help="detect-secrets on the same lines")
    given = parser.parse_args()
    measure(given.seed, given.per_kind, given.lines, given.show)
    if given.compare:
        if importlib.util.find_spec("detect_secrets") is None:
            sys.exit("pip install detect-secrets")
        compare(given.seed, given.per_kind, given.lines)


if __name__ == "__main__":
    main()
