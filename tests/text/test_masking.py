"""Secrets are nobody's to see, in whatever form; everything else stays as it is."""

import shlex

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from secret_texts import COMMANDS, NAMES, PLAIN, SECRET, WORD

from thresher.text.masking import masked, masked_words


@pytest.mark.parametrize("text", SECRET)
def test_secrets_are_masked(text: str) -> None:
    assert WORD not in masked(text)
    assert WORD not in masked(f"it said: {text}\nand went on")


@pytest.mark.parametrize("name", NAMES)
def test_values_behind_names_that_mean_a_secret_are_masked(name: str) -> None:
    for text in (f"{name}={WORD}", f"x {name}='my {WORD}' y", f"{name}=correcthorse{WORD}"):
        assert WORD not in masked(text)
        assert WORD not in str(masked_words(["x", text]))
    if name.startswith("-"):
        assert WORD not in masked(f"x {name} {WORD} y")
        assert WORD not in str(masked_words(["x", name, WORD]))


@pytest.mark.parametrize("text", COMMANDS)
def test_secrets_in_the_words_of_commands_of_programs_are_masked(text: str) -> None:
    assert WORD not in str(masked_words(shlex.split(text)))


def test_what_is_around_a_secret_in_a_block_or_command_stays() -> None:
    assert (
        masked(f"db:\n  password: |\n    {WORD}\n    {WORD}\n  user: me") == "db:\n  password: |\n    ***\n  user: me"
    )
    assert masked(f'<add key="password" value="{WORD}"/>') == '<add key="password" value="***"/>'
    assert masked(f"<password type='x'>{WORD}</password>") == "<password type='x'>***</password>"
    assert masked(f"sh -c 'curl -su me:{WORD}' | wc") == "sh -c 'curl -su me:***' | wc"
    assert masked(f"openssl rsa -passin pass:{WORD} -in x") == "openssl rsa -passin pass:*** -in x"
    assert masked(f"ALTER USER me PASSWORD '{WORD}' x") == "ALTER USER me PASSWORD '***' x"
    assert masked(f"git clone https://{WORD}@host/x") == "git clone https://***@host/x"


def test_an_access_key_of_aws_is_masked() -> None:
    assert masked("AKIAIOSFODNN7EXAMPLE and more") == "AKIA*** and more"


@pytest.mark.parametrize("text", PLAIN)
def test_what_holds_no_secret_stays_as_it_is(text: str) -> None:
    assert masked(text) == text
    assert masked_words([text]) == [text]


def test_what_is_around_a_secret_stays() -> None:
    assert masked(f'{{"user": "me", "password": "{WORD}", "n": 1}}') == '{"user": "me", "password": "***", "n": 1}'
    assert masked(f"https://h/?a=1&token={WORD}&b=2") == "https://h/?a=1&token=***&b=2"
    assert masked(f"postgresql://me:{WORD}@host/db") == "postgresql://me:***@host/db"
    assert masked(f"(password={WORD}), so") == "(password=***), so"


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["x", "--password", WORD, "-n", "2"], ["x", "--password", "***", "-n", "2"]),
        (["x", "--api-key", f"my {WORD}"], ["x", "--api-key", "***"]),
        (["env", f"API_KEY=my {WORD}", "x"], ["env", "API_KEY=***", "x"]),
        (["x", f"--token={WORD}"], ["x", "--token=***"]),
        (["mysql", f"-p{WORD}:{WORD}", "db"], ["mysql", "-p***", "db"]),
        (["env", "A=1", "/usr/bin/mysql", "-psecret"], ["env", "A=1", "/usr/bin/mysql", "-p***"]),
        (["curl", "-u", f"me:{WORD}"], ["curl", "-u", "me:***"]),
        (["curl", "-H", f"Authorization: Bearer {WORD}"], ["curl", "-H", "Authorization: Bearer ***"]),
        (["sh", "-c", f"PGPASSWORD={WORD} psql"], ["sh", "-c", "PGPASSWORD=*** psql"]),
        (["x", "--pass", "0", "--max-tokens", "512", "{arm}"], ["x", "--pass", "0", "--max-tokens", "512", "{arm}"]),
        (["x", "-p8080", "-print0", "-pedantic", "-p{arm}"], ["x", "-p8080", "-print0", "-pedantic", "-p{arm}"]),
    ],
)
def test_secrets_in_the_words_of_a_command_are_masked(words: list[str], found: list[str]) -> None:
    assert masked_words(words) == found
    assert masked_words(found) == found


def test_words_that_are_perhaps_no_passwords_keep_commands_apart() -> None:
    one, two = (masked_words(["eval.sh", f"-p{WORD}{end}"]) for end in "12")
    assert WORD not in f"{one}{two}"
    assert one != two
    assert masked_words(one) == one


@pytest.mark.parametrize("option", ["--session-id", "--pass", "--pw", "SOME_KEY=", "--session-id="])
@pytest.mark.parametrize("values", [("5", "6"), ("54321", "54322"), ("left", "right")])
def test_values_that_are_perhaps_no_secrets_keep_commands_apart(option: str, values: tuple[str, str]) -> None:
    one, two = (masked_words(["x", *([option + value] if "=" in option else [option, value])]) for value in values)
    assert one != two
    assert masked_words(one) == one
    assert masked(shlex.join(one)) == shlex.join(one)
    script, other = (masked(f"x {option}{'' if '=' in option else ' '}{value} y") for value in values)
    assert script != other


PIECES = st.sampled_from(
    [
        *SECRET,
        *PLAIN,
        *"'\"`\\=:;&,@/{}[]()<>-* \n\t",
        "://",
        "password",
        "token",
        "***",
        "Bearer ",
        "mysql ",
        "-p",
        "x",
    ]
)


@settings(max_examples=500, deadline=None)
@given(st.lists(PIECES | st.text(max_size=5), max_size=12).map("".join))
@example("password=password='***")
@example("\ud800password=\ud800")
def test_masking_again_changes_nothing(text: str) -> None:
    once = masked(text)
    assert masked(once) == once
    words = masked_words(text.split(" "))
    assert masked_words(words) == words


@pytest.mark.parametrize("option", ["--no-password", "--use-auth-token", "--skip-auth", "-HX-Auth-Token: 123456"])
def test_a_switch_takes_no_value_so_the_next_word_keeps_commands_apart(option: str) -> None:
    assert masked_words(["e.sh", option, "model-a"])[2] == "model-a"


def test_a_list_of_words_without_secrets_stays_as_it_is() -> None:
    for text in ("['a', 'b', 'c']", "('x', '--max-tokens', '512')", '["--arm", "it\'s", "-p"]'):
        assert masked(text) == text
