"""Passwords are nobody's to see, in whatever form."""

import pytest

from thresher.store.masking import masked, masked_words

WORD = "hunter2"


@pytest.mark.parametrize(
    "text",
    [
        f"postgresql://me:{WORD}@host/db",
        f"POSTGRESQL://me:{WORD}@host/db",
        f"postgresql://:{WORD}@host/db",
        f"postgresql:/me:{WORD}@host/db",
        f"postgresql://me:a@b/c:{WORD}@host/db",
        f"postgresql://me:my {WORD}@host/db",
        f"postgresql://me:{WORD}@host:notaport/db",
        f"postgresql://me:{WORD}@[::1/db",
        f"postgresql://me:{WORD}",
        f"postgresql://me:{WORD}/db",
        f"postgresql://host/db?user=me&password={WORD}",
        f"postgresql://host/db?PASSWORD={WORD}&user=me",
        f"postgresql://host/db?pass%77ord={WORD}",
        f"postgresql://host/db?sslpassword={WORD}",
        f"mysql+driver://me:{WORD}@host/db",
        f"host=h password={WORD} user=me",
        f"host=h password = '{WORD} \\' {WORD}' user=me",
        f'invalid dsn: "password={WORD}"',
        f"PGPASSWORD={WORD} psql",
        f"connection to postgresql://me:{WORD}@host failed",
        "x" * 20_000 + f"postgresql://me:{WORD}@host",
    ],
)
def test_passwords_are_masked(text: str) -> None:
    assert WORD not in masked(text)


@pytest.mark.parametrize(
    "text",
    ["postgresql://me@host:5432/db?sslmode=require", "postgresql:///db?host=/run", "sqlite:///a:b.db", "a=b c", ""],
)
def test_what_holds_no_password_stays_as_it_is(text: str) -> None:
    assert masked(text) == text


def test_a_word_behind_an_option_of_that_name_is_masked() -> None:
    assert masked_words(["x", "--password", WORD, "-n", "2"]) == ["x", "--password", "***", "-n", "2"]


@pytest.mark.parametrize("text", ["x", "x:", "://", "postgresql://", "postgresql://me:", "p='", "a= ", "%"])
def test_a_megabyte_is_masked_as_well(text: str) -> None:
    assert len(masked(text * (10**6 // len(text)))) <= 100_000
