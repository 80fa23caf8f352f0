"""No command prints a secret, and none gets into the store."""

import logging
import os
from pathlib import Path

import pytest
from program import complaint, run, thresher
from workdir import Workdir, a_workdir  # noqa: F401 - the fixture

import thresher as library
from thresher.text.logs import log

WORD = "hunter2"
SECRETS = ["--api-key", WORD, f"--token={WORD}", f"API_KEY={WORD}", f"Authorization: Bearer {WORD}"]
SECRETS += [f"postgresql://me:{WORD}@host/db", "--password", WORD]
ARMS = ["--arm=a", "--arm=b", "--arm=c"]


def test_recorded_commands_hold_no_secret(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    done = run(*ARMS, "--study=s", f"--storage={url}", "--budget=6", "--", "sh", "-c", "echo 1", *SECRETS)
    assert done.status == 0
    for command in ("status s", "log s", "log s --format=json", "export s json", "verdict s"):
        shown = thresher(*command.split(), f"--storage={url}")
        assert shown.status == 0
        assert WORD not in shown.out + shown.err
    assert "--api-key '***' '--token=***'" in thresher("status", "s", f"--storage={url}").out
    for file in tmp_path.iterdir():
        assert WORD.encode() not in file.read_bytes()


def test_the_same_command_with_another_secret_resumes_the_study(tmp_path: Path) -> None:
    args = [*ARMS, "--budget=6", f"--storage=sqlite:///{tmp_path}/s.db", "--", "sh", "-c", "echo 1"]
    run(*args, "--api-key", "one")
    assert "nothing is run" in run(*args, "--api-key", "two").err
    assert "nothing is run" not in run(*args, "--api-key", "two", "variant").err


def test_status_masks_a_command_that_was_recorded_as_it_is(workdir: Workdir) -> None:
    study = workdir.study()
    study.store.note("s", "host:1", f"eval.sh --api-key {WORD} postgresql://me:a@{WORD}@host/db")
    for form in ("text", "json"):
        out = workdir.good("status", "s", "--format", form)
        assert WORD not in out
        assert "--api-key ***" in out


@pytest.mark.parametrize("words", [f"password={WORD}", f"postgresql://me:p@{WORD}@host/db", f"Bearer {WORD}"])
def test_what_a_program_prints_is_masked_in_warnings_errors_and_reasons(words: str) -> None:
    script = f"test $THRESHER_PULL -le 6 && echo 1 && exit; echo '{words}' >&2; exit 7"
    done = run(*ARMS, "--budget=40", "--give-up=100ms", "--format=json", "--", "sh", "-c", script)
    assert done.status == 3
    assert "the last 8 evaluations all failed" in done.err
    assert WORD not in done.out + done.err
    assert "***" in done.err


def test_a_private_key_that_a_program_prints_is_masked() -> None:
    key = f"-----BEGIN PRIVATE KEY-----\n{WORD}\n{WORD}\n-----END PRIVATE KEY-----"
    done = run(*ARMS, "--budget=40", "--", "sh", "-c", f"echo '{key}' >&2; exit 7")
    assert done.status == 3
    assert WORD not in done.out + done.err


def test_reasons_by_hand_are_masked_before_they_get_into_the_log(workdir: Workdir) -> None:
    workdir.good("ask", "s", "-n", "2")
    workdir.good("drop", "s", "1", "--cause", "failed", "--reason", f"no answer with token={WORD}")
    study = workdir.study()
    study.retire("b", reason=f'{{"api_key": "{WORD}"}}')
    assert [event.reason for event in study.events() if event.reason] == [
        "no answer with token=***",
        '{"api_key": "***"}',
    ]


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://me:p@{WORD}@host.invalid/db",
        f"postgresql://me:{WORD}@{WORD}@host.invalid/db",
        f"postgresql://me:12/{WORD}@host.invalid/db",
        f"postgresql://me:p?{WORD}@host.invalid/db",
        f"postgresql://me:p#{WORD}@host.invalid/db",
        f"mysql://me:p@{WORD}@host/db",
        f"sqlite://me:{WORD}@host/db",
    ],
)
@pytest.mark.parametrize("form", ["text", "json"])
def test_doctor_shows_no_part_of_a_password(url: str, form: str) -> None:
    done = thresher("doctor", "--storage", url, "--format", form)
    assert done.status == 1
    assert WORD not in done.out + done.err
    assert "! store" in done.out


def test_a_password_with_an_at_sign_is_explained() -> None:
    error = complaint(thresher("studies", "--storage", f"postgresql://me:p@{WORD}@host/db"))
    assert "postgresql://me:***@host/db" in error
    assert "in a password, write %40 for @" in error


def test_an_error_masks_what_was_given() -> None:
    assert WORD not in complaint(thresher("status", f"token={WORD}"))
    assert WORD not in complaint(thresher("run", f"--api-key={WORD}"))
    long = f"mysql://me:{WORD}{'x' * 2000}@host"
    assert WORD not in complaint(thresher("create", long, "--at-least=0.5", "--arm=a"))


def test_a_traceback_that_is_shown_is_masked(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import thresher.cli.options as storage\n"
        f"def broken(*a, **k): raise ArithmeticError('password={WORD}')\n"
        "storage.open_store = broken\n"
    )
    path = f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    done = thresher("studies", env={"PYTHONPATH": path, "THRESHER_TRACEBACK": "1"})
    assert done.status == 3
    assert "Traceback" in done.err
    assert "ArithmeticError: password=***" in done.err
    assert WORD not in done.err


def test_log_records_are_masked(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="thresher"):
        log.warning("connected with %s", f"password={WORD}")
        try:
            raise ValueError(f"token={WORD}")
        except ValueError:
            log.exception("failed")
    assert "password=***" in caplog.text
    assert "ValueError: token=***" in caplog.text
    assert WORD not in caplog.text


def test_what_an_evaluator_raises_is_masked(caplog: pytest.LogCaptureFixture) -> None:
    def evaluate(pull: library.Pull) -> float:
        if pull.arm == "a":
            return 1.0
        raise RuntimeError(f"GET https://host/?api_key={WORD} failed\nAuthorization: Bearer {WORD}")

    study = library.create_study("s", arms=["a", "b"], at_least=0.5, budget=10)
    library.run(study, evaluate, workers=1)
    assert WORD not in str(study.events())
    assert WORD not in caplog.text
    assert "api_key=***" in str(study.verdict().rows)


def test_the_text_that_identifies_an_evaluator_is_masked() -> None:
    spec = library.Spec(arms=["a"], at_least=0.5, budget=4, evaluator=f"v1 --token {WORD}")
    assert spec.evaluator == "v1 --token ***"
