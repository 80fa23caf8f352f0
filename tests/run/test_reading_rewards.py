"""Finding a reward in what a command printed, without running any."""

import pytest

from thresher.errors import Busy, InvalidInput, NoReward
from thresher.run.command.program_end import last_lines_at_program_end, last_words_at_program_end, program_end_in_words
from thresher.run.command.reward import CommandFailed, codes_text, read_reward
from thresher.text.masking import masked_printable


def read(reward: str, out: str, code: int = 0, err: str = "") -> float:
    return read_reward(reward, code, out.encode(), err.encode())


def nothing(reward: str, out: str) -> NoReward:
    with pytest.raises(NoReward) as caught:
        read(reward, out)
    assert str(caught.value).endswith("; print the reward on the last line, or say with --reward where it is")
    return caught.value


def test_json_that_cannot_be_read_says_why_and_text_that_is_no_json_says_so() -> None:
    deep = "[" * 100_000
    assert "printed JSON that cannot be read (it is nested too deeply)" in str(nothing("json:score", deep))
    many = '{"score": 1' + "0" * 5000 + "}"
    assert "printed JSON that cannot be read (a whole number in it has" in str(nothing("json:score", many))
    error = nothing("json:score", "loading\nready")
    assert (str(error).partition(";")[0], error.kind) == ("printed no JSON: 'ready'", "printed no JSON:")


@pytest.mark.parametrize(
    ("printed", "path", "reward"),
    [
        ('{"score": 0.5}', "score", 0.5),
        ('loading\n{"score": 1}\n\n', "score", 1.0),
        ('{\n "a": {"b": true}\n}', "a.b", 1.0),
        ('{"a.b": 2, "a": {"b": 3}}', "a.b", 2.0),
    ],
)
def test_a_key_is_found_in_all_of_the_output_or_in_its_last_line(printed: str, path: str, reward: float) -> None:
    assert read(f"json:{path}", printed) == reward


@pytest.mark.parametrize(
    ("printed", "words"),
    [
        ('{"a": 1}', "printed JSON without 'score': {'a': 1}"),
        ("[1]", "printed JSON without 'score': [1]"),
        ('{"score": "high"}', "printed no number for 'score', but str 'high'"),
        ('{"score": null}', "printed no number for 'score', but NoneType None"),
        ('{"score": 1' + "0" * 400 + "}", "printed no number for 'score', but int"),
        ("", "printed nothing on standard output, where the reward is read"),
        (" \n ", "printed nothing on standard output, where the reward is read"),
    ],
)
def test_what_is_there_instead_is_named(printed: str, words: str) -> None:
    assert words in str(nothing("json:score", printed))


def test_a_failure_carries_the_last_lines_of_its_errors_or_else_of_its_output() -> None:
    for err, expected in (("", "out"), ("err", "err")):
        with pytest.raises(NoReward) as caught:
            read("last-float", "out", err=err)
        assert caught.value.output == expected
        with pytest.raises(CommandFailed) as failed:
            read_reward("last-float", 3, b"out", err.encode())
        assert (failed.value.output, failed.value.kind) == (expected, "exited with 3")
        assert str(failed.value) == ("exited with 3: 'err'" if err else "exited with 3")
    assert read_reward("last-float", 0, b"1", b"err") == 1.0


def test_only_the_last_lines_that_are_not_blank_are_kept() -> None:
    text = "\n".join(f"line {number}\n" for number in range(20))
    assert last_lines_at_program_end(text.encode()).splitlines() == [f"line {number}" for number in range(10, 20)]
    assert last_lines_at_program_end(("a\n" + "\n" * 50).encode()) == "a"
    assert last_lines_at_program_end(("a\n" + "\n" * 51).encode()) == "", "the last fifty lines are looked at"
    assert last_words_at_program_end(b"") == ""
    assert last_words_at_program_end(b"one\n two \n\n") == ": 'two'"
    assert len(last_words_at_program_end(b"x" * 400)) < 210


def test_other_peoples_text_is_shown_without_colours_secrets_and_control_characters() -> None:
    assert masked_printable("\x1b[1mbold\x1b[0m\tpassword=hunter2 \x07\nend  ") == "bold password=*** \\x07\nend"


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (0, "exited with 0"),
        (126, "exited with 126: a program was not found or cannot be run"),
        (127, "exited with 127: a program was not found or cannot be run"),
        (128, "exited with 128"),
        (129, "exited with 129, perhaps ended by SIGHUP"),
        (-11, "was ended by SIGSEGV"),
        (-99, "was ended by signal 99"),
    ],
)
def test_the_end_of_a_program_is_told_in_words(code: int, words: str) -> None:
    assert program_end_in_words(code) == words


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (2, "exited with 2, which is neither --pass 0 nor --fail 1: 'no such test'; add --fail 2 if that means failed"),
        (-9, "was ended by SIGKILL: 'no such test'"),
        (126, "exited with 126: a program was not found or cannot be run: 'no such test'"),
    ],
)
def test_an_exit_code_that_means_nothing_is_explained(code: int, words: str) -> None:
    with pytest.raises(CommandFailed) as caught:
        read("exit-code", "", code, "no such test")
    assert (str(caught.value), caught.value.kind) == (words, program_end_in_words(code))


def test_exit_codes_mean_what_the_user_says() -> None:
    passing, failing = frozenset({0, 3}), frozenset({126, 5})
    rewards = [read_reward("exit-code", code, b"", b"", passing=passing, failing=failing) for code in (0, 3, 126, 5)]
    assert rewards == [1.0, 1.0, 0.0, 0.0]
    assert (codes_text({1}), codes_text({1, 2}), codes_text({1, 3, 4, 5, 9})) == ("1", "1-2", "1,3-5,9")


@pytest.mark.parametrize("reward", ["first-float", "last-float:x", "jsn:score", ""])
def test_an_unknown_way_to_find_a_reward_finds_none(reward: str) -> None:
    with pytest.raises(InvalidInput, match="is not a known way to find a reward"):
        read(reward, '{"score": 0.5}\n0.5')


@pytest.mark.parametrize("reward", ["last-float", "exit-code", "seconds", "json:score"])
def test_exit_status_75_says_that_the_run_did_not_begin(reward: str) -> None:
    with pytest.raises(Busy):
        read_reward(reward, 75, b"0.5", b"", times={"seconds": 1.0})


def test_exit_status_75_is_a_reward_if_that_is_asked_for() -> None:
    assert read_reward("exit-code", 75, b"", b"", failing=frozenset({75})) == 0.0
