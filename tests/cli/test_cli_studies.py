"""Commands on durable studies. Each is a process, so they share only the store."""

import json
import re
import subprocess
import time
from pathlib import Path

import pytest
from inside import refused
from program import ENVIRONMENT, PATIENCE, THRESHER, Result, complaint, until
from workdir import Workdir, a_workdir  # noqa: F401 - the fixture


def test_a_shell_script_can_be_an_agent(workdir: Workdir) -> None:
    script = """
    while pull=$("$@" ask s); do
      id=$(echo "$pull" | cut -f1); arm=$(echo "$pull" | cut -f2)
      "$@" tell s "$id" "$(test "$arm" = a && echo 1 || echo 0)" || exit 9
    done
    """
    workdir.good("drop", "s", "--cause", "lost", *map(str, [pull.id for pull in workdir.study().ask_many(36)]))
    environment = {**ENVIRONMENT, "THRESHER_STORAGE": workdir.url}
    done = subprocess.run(["sh", "-c", script, "agent", *THRESHER], env=environment, timeout=PATIENCE)
    assert done.returncode == 0
    verdict = workdir.json("verdict", "s")
    assert [row["reached"] for row in verdict["rows"]] == [True, False]
    assert (verdict["told"], verdict["done"]) == (4, True)


def test_the_caller_may_choose_the_arm_and_the_log_says_so(workdir: Workdir) -> None:
    assert workdir.json("ask", "s", "--arm", "b")["arm"] == "b"
    assert "chosen by the caller" in workdir.good("log", "s").splitlines()[1]
    assert workdir("verify", "s").status == 0
    workdir.good("retire", "s", "b")
    assert workdir("ask", "s", "--arm", "b") == Result(1, "", "")
    message = complaint(workdir("ask", "s", "--arm", "c"))
    assert "arm 'c': is not an arm of this study; its arms are 'a', 'b'" in message


def test_ask_prints_pulls_and_says_by_its_status_when_the_study_is_done(workdir: Workdir) -> None:
    asked = workdir.json("ask", "s")
    ticket, seed = asked["pull"], asked["seed"]
    assert re.fullmatch("1-[0-9a-f]{8}", ticket)
    fields = {"id": 1, "arm": "a", "number": 1, "seed": seed, "params": {"depth": 1}}
    assert asked == {"format": 1, "pull": ticket, **fields}
    lines = workdir.good("ask", "s", "-n", "39").splitlines()
    tickets = [line.split("\t")[0] for line in lines]
    assert [ticket.split("-")[0] for ticket in tickets] == [str(number) for number in range(2, 41)]
    assert len({ticket.split("-")[1] for ticket in tickets}) > 30
    assert workdir("ask", "s") == Result(1, "", "")


def test_tell_twice_is_recorded_once_and_another_reward_is_refused(workdir: Workdir) -> None:
    workdir.good("ask", "s")
    assert workdir.json("tell", "s", "1", "0.5") == {"format": 1, "pull": 1, "reward": 0.5, "late": False}
    assert workdir("tell", "s", "1", "0.5") == Result(0, "", "")
    assert "0.75: it was told 0.5 before" in complaint(workdir("tell", "s", "1", "0.75"))
    assert "has issued pulls 1 to 1" in complaint(workdir("tell", "s", "2", "0.75"))


def test_tell_keeps_a_note_and_a_cost_for_people(workdir: Workdir) -> None:
    workdir.good("ask", "s")
    assert "at least 0" in complaint(workdir("tell", "s", "1", "0.5", "--cost", "-1"))
    workdir.good("tell", "s", "1", "0.5", "--cost", "0.25", "--note", "cut off")
    assert workdir.json("verdict", "s")["cost"] == 0.25
    assert "0.25" in workdir.good("export", "s", "csv")
    assert "cut off" in workdir.good("log", "s")


def test_a_reward_outside_the_bounds_is_an_error_and_retires_its_arm(workdir: Workdir) -> None:
    workdir.good("ask", "s")
    line = complaint(workdir("tell", "s", "1", "-3"))
    assert "(0, 1): the bounds are wrong, so arm 'a' is retired and not certified; start over: create the study" in line
    assert "with the --bounds that rewards can really take, or with --clip to count such rewards as the bound" in line
    assert "--fresh" not in line
    assert "percentage" not in line
    verdict = workdir.json("verdict", "s")
    assert (verdict["outside"], verdict["retired"], verdict["pending"]) == (["a"], ["a"], 0)
    assert "pull 1 returned -3.0, outside the bounds (0, 1)" in verdict["rows"][0]["reason"]


def test_braces_in_a_name_are_not_read_as_an_option(workdir: Workdir) -> None:
    workdir.good("create", "braces", "--at-least=0.5", "--arm={bounds}", "--budget=9")
    workdir.good("ask", "braces")
    line = complaint(workdir("tell", "braces", "1", "-3"))
    assert "so arm '{bounds}' is retired" in line
    assert "create the study with the --bounds that" in line


def test_an_arm_with_a_reward_outside_the_bounds_is_restored_with_a_warning(workdir: Workdir) -> None:
    workdir.good("ask", "s")
    workdir("tell", "s", "1", "-3")
    done, warning = workdir("restore", "s", "a").err.splitlines()
    assert done.endswith("arm 'a' is restored")
    assert (
        "warning: arm 'a' returned a reward outside the bounds, so it can never be certified in this study" in warning
    )


def test_a_reward_that_looks_like_a_percentage_is_to_be_divided_by_100(workdir: Workdir) -> None:
    workdir.good("ask", "s")
    line = complaint(workdir("tell", "s", "1", "85"))
    assert "; start over: if it is a percentage, divide by 100; else create the study with the --bounds" in line


def test_a_pull_that_is_not_renewed_is_lost_and_told_late(workdir: Workdir) -> None:
    workdir.good("ask", "s", "-n", "2", "--lease", "200ms")
    workdir.good("renew", "s", "2", "--lease", "1h")
    until(lambda: workdir.json("status", "s")["pending_pulls"][0]["expired"], "the end of a lease")
    assert "pull 1 of a, for" in workdir.good("status", "s")
    assert "whose heartbeat stopped: the next ask drops it" in workdir.good("status", "s")
    assert workdir.json("status", "s")["events"] == 3, "showing it writes nothing"
    workdir.good("ask", "s")
    assert [pull["pull"] for pull in workdir.json("status", "s")["pending_pulls"]] == [2, 3]
    result = workdir("tell", "s", "1", "1")
    assert (result.status, result.out) == (0, "")
    assert "late" in result.err
    assert workdir.json("verdict", "s")["told"] == 1


def test_a_pull_dropped_by_hand_is_recorded_as_failed_or_lost(workdir: Workdir) -> None:
    workdir.good("ask", "s", "-n", "2")
    workdir.good("drop", "s", "1", "--cause", "lost")
    workdir.good("drop", "s", "2", "--cause", "failed")
    assert [event.cause for event in workdir.study().events() if event.kind == "dropped"] == ["lost", "failed"]


def test_drop_offers_two_causes(workdir: Workdir) -> None:
    assert "--cause [failed|lost]" in workdir.good("drop", "--help")
    assert "--cause 'tired': must be failed or lost" in complaint(workdir("drop", "s", "1", "--cause", "tired"))


def test_drop_drops_pulls_by_id_or_by_age(workdir: Workdir) -> None:
    workdir.good("ask", "s", "-n", "4")
    workdir.good("drop", "s", "2", "--cause", "failed", "--reason", "out of memory")
    assert workdir("drop", "s", "--older-than", "1h") == Result(0, "", "thresher: study 's': dropped 0 pulls\n")
    time.sleep(0.01)
    assert workdir.json("drop", "s", "--older-than", "0.001s", "--cause", "lost")["dropped"] == [1, 3, 4]
    assert workdir.json("verdict", "s")["rows"][1]["reason"] == "out of memory"
    complaint(workdir("drop", "s"))
    complaint(workdir("drop", "s", "1", "--older-than", "1h"))


def test_status_says_who_works_on_what(workdir: Workdir) -> None:
    workdir.good("ask", "s", "-n", "2")
    workdir.good("tell", "s", "1", "1")
    status = workdir.json("status", "s")
    assert (status["issued"], status["told"], status["pending"], status["budget"]) == (2, 1, 1, 40)
    assert [(pull["pull"], pull["arm"]) for pull in status["pending_pulls"]] == [(2, "b")]
    assert [(agent["asked"], agent["told"]) for agent in status["agents"]] in ([(2, 0), (0, 1)], [(0, 1), (2, 0)])
    text = workdir.good("status", "s")
    assert "pending    pull 2 of b" in text
    assert "pending    1" in text


def test_studies_lists_all(workdir: Workdir) -> None:
    assert workdir("create", "other", "--at-least=0.5", "--arm=x", "--budget=9").status == 0
    assert [row["study"] for row in workdir.json("studies")["studies"]] == ["other", "s"]
    name, state, pulls, created, question, command, answer, revision = (
        workdir.good("studies").splitlines()[1].split("\t")
    )
    assert (name, state, pulls) == ("s", "open", "0 of at most 40 pulls, 0 pending")
    assert (created, question, command) == (workdir.study().created, "Which of 2 arms reach 0.5?", "")
    assert (answer, revision) == (workdir.study().verdict().answer, "revision 1")
    assert "already" in complaint(workdir("create", "s", "--at-least=0.5", "--arm=x", "--budget=9"))


def test_a_misspelled_study_gets_a_suggestion(workdir: Workdir) -> None:
    workdir.good("create", "prompts", "--at-least=0.5", "--arm=x", "--budget=9")
    assert complaint(workdir("status", "prompst")).endswith("did you mean 'prompts'?")
    assert "there are 'prompts', 's'" in complaint(workdir("status", "xyz"))
    workdir.good("delete", "prompts", "--yes")
    assert "there is 's'; --storage" in complaint(workdir("status", "xyz"))


def test_studies_and_status_show_the_command(workdir: Workdir) -> None:
    workdir.good("run", "--study=r", "--at-least=0.5", "--arm=0.2", "--arm=0.8", "--budget=4", "--", "echo", "{arm}")
    row = workdir.json("studies")["studies"][0]
    assert (row["question"], row["command"]) == ("Which of 2 arms reach 0.5?", "echo '{arm}'")
    assert "\techo '{arm}'\t" in workdir.good("studies").splitlines()[0]
    assert "command    echo '{arm}'" in workdir.good("status", "r")


def test_log_shows_events_and_follows_what_comes(workdir: Workdir) -> None:
    workdir.good("ask", "s")
    argv = [*THRESHER, "log", "s", "--follow", "--format", "json", "--storage", workdir.url]
    follower = subprocess.Popen(argv, stdout=subprocess.PIPE, env=ENVIRONMENT, text=True)
    assert follower.stdout
    try:
        kinds = [json.loads(follower.stdout.readline())["kind"] for _ in range(2)]
        workdir.good("tell", "s", "1", "1")
        kinds.append(json.loads(follower.stdout.readline())["kind"])
        workdir.good("delete", "s", "--yes")
        assert follower.wait(PATIENCE) == 3, "a study that is gone is not waited for"
    finally:
        follower.kill()
        follower.communicate()
    assert kinds == ["created", "asked", "told"]


def test_log_for_people_has_one_line_per_event(workdir: Workdir) -> None:
    workdir.good("ask", "s")
    workdir.good("drop", "s", "1", "--reason", "two\nlines")
    lines = workdir.good("log", "s", "--after", "1").splitlines()
    assert [line.split()[2] for line in lines] == ["asked", "dropped"]
    assert "pull 1 of a" in lines[0]
    assert "failed  two lines" in lines[1]


def test_extend_gives_more_and_never_less(workdir: Workdir) -> None:
    workdir.good("extend", "s", "--budget", "50")
    workdir.good("extend", "s", "--budget", "50")
    assert workdir.json("status", "s")["budget"] == 50
    for less in ("45", "1", "-1"):
        assert "must be larger than the current 50" in complaint(workdir("extend", "s", "--budget", less))
    complaint(workdir("extend", "s", "--budget", str(10**30)))


WRITES = {  # commands, each after the ones before it: what it says
    "create n --at-least=0.5 --arm=a --arm=b --budget=9": "created in STORE, with 2 arms",
    "extend n --budget 12": "extended from 9 to 12 pulls",
    "extend n --budget 0012": "its budget is already 12",
    "retire n a --reason slow": "arm 'a' is retired",
    "retire n a": "arm 'a' was already retired",
    "restore n a": "arm 'a' is restored",
    "restore n b": "arm 'b' was not retired",
    "drop n 1 2": "dropped 2 pulls",
    "drop n --older-than 1h": "dropped 0 pulls",
    "import log.json --study m": "imported into STORE, with 8 events",
    "delete m --yes": "deleted",
}


def test_a_command_that_writes_says_what_it_did_in_one_line(workdir: Workdir) -> None:
    for command, words in WRITES.items():
        if command == "drop n 1 2":
            workdir.good("ask", "n", "-n", "2")
        if command.startswith("import"):
            (workdir.folder / "log.json").write_text(workdir.good("export", "n", "json"))
        _, name = command.split(" --study ") if " --study " in command else command.split()[:2]
        said = f"thresher: study {name!r}: {words}\n".replace("STORE", f"{workdir.folder}/studies.db")
        assert workdir(*command.split()) == Result(0, "", said)
    kinds = [(event.kind, event.reason) for event in workdir.study("n").events() if event.arm == 0 and not event.pull]
    assert kinds == [("retired", "slow"), ("restored", None)]
    for command in ("retire", "restore"):
        assert "arm 'c': is not an arm of this study; its arms are 'a', 'b'" in complaint(workdir(command, "n", "c"))


def test_status_says_in_words_whether_a_study_is_done(workdir: Workdir) -> None:
    assert "\nstate      not done\n" in workdir.good("status", "s")
    for arm in "ab":
        workdir.good("retire", "s", arm)
    assert "\nstate      done\n" in workdir.good("status", "s")


def test_a_study_without_bounds_says_why_it_certifies_nothing(workdir: Workdir) -> None:
    workdir.good("create", "n", "--at-least=5", "--arm=a", "--bounds", "none", "--budget=9")
    assert "was created without bounds, which certificates need" in workdir.good("verdict", "n")


def test_delete_asks_first(workdir: Workdir) -> None:
    result = workdir("delete", "s", stdin="n\n")
    assert (result.status, result.out) == (130, "")
    assert "Delete study 's' with 0 pulls and 0 rewards?" in result.err
    workdir.study().ask_many(3)
    workdir.study().tell(1, 1)
    result = workdir("delete", "s", stdin="n\n")
    assert "Delete study 's' with 3 pulls, 2 of them pending, and 1 reward?" in result.err
    line = complaint(workdir("delete", "s"))
    assert line.endswith("study 's': is deleted only if you agree, and there is no terminal to ask on; add --yes")
    workdir.good("delete", "s", stdin="y\n")
    assert "it is empty" in complaint(workdir("status", "s"))


def test_a_store_that_does_not_exist_is_not_called_empty(tmp_path: Path) -> None:
    line = refused("verdict", "s", storage=tmp_path)
    assert line.startswith(f"study 's': there is no file {tmp_path}/thresher.db; go to the folder where it was made")
    (tmp_path / "x.csv").write_text("arm,reward\na,1\n")
    line = refused("import", str(tmp_path / "x.csv"), "--study=s", storage=tmp_path)
    assert line.startswith(
        f"study 's': there is no file {tmp_path}/thresher.db; create it first: thresher create s …, or name"
    )


@pytest.mark.parametrize("name", ["../../etc/passwd", "'; DROP TABLE events; --", '"', "a b", "ü", "-x", "%s"])
def test_strange_names_are_harmless(workdir: Workdir, name: str) -> None:
    workdir.good("create", "--at-least=0.5", "--arm=x", "--budget=9", "--", name)
    assert json.loads(workdir.good("ask", "--format=json", "--", name))["arm"] == "x"
    assert {row["study"] for row in workdir.json("studies")["studies"]} == {"s", name}
    assert sorted(file.name for file in workdir.folder.iterdir()) == ["studies.db", "studies.db-lock"]


@pytest.mark.parametrize("name", ["", " ", "a\nb", "\x1b[31m", "x" * 1001])
def test_names_that_cannot_be_shown_are_refused(workdir: Workdir, name: str) -> None:
    assert "study" in complaint(workdir("create", "--at-least=0.5", "--arm=x", "--budget=9", "--", name))


def test_log_starts_after_any_event(workdir: Workdir) -> None:
    workdir.good("ask", "s", "-n", "3")
    for after, seqs in ((0, [1, 2, 3, 4]), (2, [3, 4]), (4, []), (99, [])):
        lines = map(json.loads, workdir.good("log", "s", f"--after={after}", "--format=json").splitlines())
        assert [line["seq"] for line in lines] == seqs
