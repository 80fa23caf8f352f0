"""Secrets that can be told by their form are hidden; everything else stays as it is."""

import pytest

from thresher.text.masking import masked, masked_words

WORD = "hunter2"  # stands for the secret, or for a part of it
PEM = f"-----BEGIN RSA PRIVATE KEY-----\nMIIE{WORD}\n{WORD}\n-----END RSA PRIVATE KEY-----"

SECRET = [  # a text, and what is shown of it
    (f"postgresql://me:{WORD}@host/db", "postgresql://me:***@host/db"),
    (f"redis://:{WORD}@host:6379/0", "redis://:***@host:6379/0"),
    (f"mysql+driver://me:a@b/c?:#{WORD}@host/db", "mysql+driver://me:***@host/db"),
    (f"https://me:{WORD}@host/x@v2", "https://me:***@host/x@v2"),
    (f"from mysql://a:{WORD}@one/db to mysql://b:{WORD}@two/db", "from mysql://a:***@one/db to mysql://b:***@two/db"),
    (f"mysql://a:{WORD}@one/db,mysql://b:{WORD}@two/db", "mysql://a:***@one/db,mysql://b:***@two/db"),
    (f"postgresql://host/db?user=me&password={WORD}", "postgresql://host/db?user=me&password=***"),
    (f"https://host/?a=1&api_key={WORD}&b=2", "https://host/?a=1&api_key=***&b=2"),
    (f"https://host/x?sig={WORD}&a=1", "https://host/x?sig=***&a=1"),
    (f"https://host/x?X-Amz-Signature={WORD}", "https://host/x?X-Amz-Signature=***"),
    (f"GET /?access_token={WORD} HTTP/1.1", "GET /?access_token=*** HTTP/1.1"),
    (f"host=h password={WORD} user=me", "host=h password=*** user=me"),
    (f"password = '{WORD} \\' {WORD}' user=me", "password = '***' user=me"),
    (f"(password={WORD}), so", "(password=***), so"),
    (f'invalid dsn: "password={WORD}"', 'invalid dsn: "password=***"'),
    (f"PGPASSWORD={WORD} psql", "PGPASSWORD=*** psql"),
    (f"export MY_DB_PASS='{WORD}'", "export MY_DB_PASS='***'"),
    (f"AWS_SECRET_ACCESS_KEY={WORD}", "AWS_SECRET_ACCESS_KEY=***"),
    (f"AccountKey={WORD};EndpointSuffix=y", "AccountKey=***;EndpointSuffix=y"),
    (f"clientSecret: {WORD}", "clientSecret: ***"),
    (f"connect(host='h', password='{WORD}')", "connect(host='h', password='***')"),
    (f"os.environ['API_KEY'] = '{WORD}'", "os.environ['API_KEY'] = '***'"),
    (f'{{"token":"{WORD} {WORD}", "n": 1}}', '{"token":"***", "n": 1}'),
    (f"{{'secret': b'{WORD} \\' {WORD}', 'n': 1}}", "{'secret': b'***', 'n': 1}"),
    (f'"{{\\"api_key\\": \\"{WORD} {WORD}\\"}}"', '"{\\"api_key\\": \\"***\\"}"'),
    (f"Authorization: Bearer {WORD}", "Authorization: Bearer ***"),
    (f"authorization: basic {WORD}", "authorization: basic ***"),
    (f"Authorization: {WORD}", "Authorization: ***"),
    (f"curl -H 'Authorization: Bearer {WORD}' https://host", "curl -H 'Authorization: Bearer ***' https://host"),
    (f'{{"Authorization": "Bearer {WORD}"}}', '{"Authorization": "***"}'),
    (f"X-Api-Key: {WORD}", "X-Api-Key: ***"),
    (f"Cookie: session={WORD}; theme={WORD}\r\nHost: x", "Cookie: ***\r\nHost: x"),
    (f"got bearer {WORD}, which is wrong", "got bearer ***, which is wrong"),
    (f"--password {WORD} x", "--password *** x"),
    (f"--password '{WORD} {WORD}'", "--password '***'"),
    (f"-password={WORD}", "-password=***"),
    (f"--api-key {WORD}", "--api-key ***"),
    (f"['e.sh', '--api-key', '{WORD}', '-v']", "['e.sh', '--api-key', '***', '-v']"),
    (f"AKIAIOSFODNN7EXAMPLE and sk-proj-abcdefgh{WORD}", "AKIA*** and sk-***"),
    (f"ghp_abcdefghijkl{WORD} github_pat_abcdefgh{WORD} xoxb-1234-5678-{WORD}", "ghp_*** github_pat_*** xoxb-***"),
    (f"AIzaSyA-1234567890_{WORD} hf_abcdefghijklmnopqrst", "AIza*** hf_***"),
    (f"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.{WORD}", "eyJ***"),
    (PEM, "-----BEGIN RSA PRIVATE KEY-----***-----END RSA PRIVATE KEY-----"),
    (PEM[:50], "-----BEGIN RSA PRIVATE KEY-----***"),
]

PLAIN = [
    "",
    "a=b c",
    "postgresql://me@host:5432/db?sslmode=require",
    "postgresql:///db?host=/run",
    "sqlite:///a:b.db",
    "http://localhost:8080/v1 failed for bob@example.com",
    "http://host:8080/path@v2",
    "https://host:8080/?user=me@example.com",
    "https://git@github.com/me/it.git",
    "docker://python:3.11",
    "passed=3 pass=3 fail=2 compass=north highpass=3",
    "PASS: test_login",
    "--pass 0,5-7 --fail 1",
    "tokens=512 --max-tokens 512 --tokenizer bpe",
    "eos_token=</s> time_per_token=0.02 --stop-token x",
    "keyboard=us monkey=1 primary_key=5 SORT_KEY=name key=value author=me secretary=bob",
    "--password-file /run/password --key-function len",
    "--no-password x --use-auth-token model-a --skip-token x",
    "--api-key {key} token=none",
    "sk-learn-gradient-boosting task-force-12345678",
    "a bearer token is required",
    "2026-11-17T02:41:12Z",
]


@pytest.mark.parametrize(("text", "shown"), SECRET)
def test_secrets_are_masked_and_what_is_around_them_stays(text: str, shown: str) -> None:
    assert masked(text) == shown
    assert masked(f"it said: {text}\nand went on").startswith(f"it said: {shown}")
    assert masked(shown) == shown


@pytest.mark.parametrize("text", PLAIN)
def test_what_holds_no_secret_stays_as_it_is(text: str) -> None:
    assert masked(text) == text
    assert masked_words([text]) == [text]


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["x", "--password", WORD, "-n", "2"], ["x", "--password", "***", "-n", "2"]),
        (["x", "--api-key", f"my; {WORD}"], ["x", "--api-key", "***"]),
        (["x", f"--token=my; {WORD}"], ["x", "--token=***"]),
        (["env", f"API_KEY={WORD}", "x"], ["env", "API_KEY=***", "x"]),
        (["curl", "-H", f"Authorization: Bearer {WORD}"], ["curl", "-H", "Authorization: Bearer ***"]),
        (["curl", f"-HX-Api-Key: {WORD}"], ["curl", "-HX-Api-Key: ***"]),
        (["sh", "-c", f"PGPASSWORD={WORD} psql"], ["sh", "-c", "PGPASSWORD=*** psql"]),
        (["x", "--pass", "0", "--max-tokens", "512", "{arm}"], ["x", "--pass", "0", "--max-tokens", "512", "{arm}"]),
        (["x", "--api-key", "{key}", "--token={key}"], ["x", "--api-key", "{key}", "--token={key}"]),
        (["x", "--no-password", "model-a", "--token", "-v"], ["x", "--no-password", "model-a", "--token", "-v"]),
    ],
)
def test_secrets_in_the_words_of_a_command_are_masked(words: list[str], shown: list[str]) -> None:
    assert masked_words(words) == shown
    assert masked_words(shown) == shown


@pytest.mark.parametrize(
    "script",
    [
        "TOKEN=x ./{}",
        "TOKEN=x;./{}",
        "TOKEN=x&&./{}",
        "TOKEN=x; MODEL={} ./eval",
        "TOKEN='x' ./{}",
        "(TOKEN=x)|./{}",
        "TOKEN=basic ./{}",
        'echo "TOKEN="; ./{} "x"',
        "f(token=x,model={})",
        "curl -H 'Cookie: x' -H 'X-Api-Key: x' https://me:x@host/{}",
        "curl -H Authorization:x https://host/{}?sig=x",
        "--api-key x --model {}",
        "--use-token {}",
    ],
)
def test_masking_never_makes_two_programs_one(script: str) -> None:
    """The masked command is part of a study's identity: rewards of two programs must not be mixed."""
    one, other = (masked_words(["sh", "-c", script.format(program)]) for program in ("first", "second"))
    assert one != other
    assert masked(one[2]) != masked(other[2])
