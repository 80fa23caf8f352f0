"""Commands on durable studies. Each is a process, so they share only the store."""

import json
import subprocess
import time
from pathlib import Path

import pytest
from inside import refused
from place import Place, a_place  # noqa: F401 - the fixture
from program import ENVIRONMENT, PATIENCE, THRESHER, Result, complaint, until

import thresher as library


def test_a_shell_script_can_be_an_agent(place: Place) -> None:
    script = """
    while pull=$("$@" ask s); do
      id=$(echo "$pull" | cut -f1); arm=$(echo "$pull" | cut -f2)
      "$@" tell s "$id" "$(test "$arm" = a && echo 1 || echo 0)" || exit 9
    done
    """
    place.good("drop", "s", *map(str, [pull.id for pull in place.study().ask_many(36)]))
    environment = {**ENVIRONMENT, "THRESHER_STORAGE": place.url}
    done = subprocess.run(["sh", "-c", script, "agent", *THRESHER], env=environment, timeout=PATIENCE)
    assert done.returncode == 0
    verdict = place.json("verdict", "s")
    assert (verdict["above"], verdict["below"], verdict["told"], verdict["done"]) == (["a"], ["b"], 4, True)


def test_the_caller_may_choose_the_arm_and_the_log_says_so(place: Place) -> None:
    assert place.json("ask", "s", "--arm", "b")["arm"] == "b"
    assert "chosen by the caller" in place.good("log", "s").splitlines()[1]
    assert place("verify", "s").status == 0
    place.good("retire", "s", "b")
    assert place("ask", "s", "--arm", "b") == Result(1, "", "")
    message = complaint(place("ask", "s", "--arm", "c"))
    assert "arm 'c': is not an arm of this study; its arms are 'a', 'b'" in message


def test_ask_prints_pulls_and_says_by_its_status_when_the_study_is_done(place: Place) -> None:
    asked = place.json("ask", "s")
    assert asked == {"format": 1, "pull": 1, "arm": "a", "number": 1, "seed": asked["seed"], "params": {"depth": 1}}
    lines = place.good("ask", "s", "-n", "39").splitlines()
    assert [line.split("\t")[0] for line in lines] == [str(number) for number in range(2, 41)]
    assert place("ask", "s") == Result(1, "", "")


def test_tell_twice_is_recorded_once_and_another_reward_is_refused(place: Place) -> None:
    place.good("ask", "s")
    assert place.json("tell", "s", "1", "0.5") == {"format": 1, "pull": 1, "reward": 0.5, "late": False}
    assert place("tell", "s", "1", "0.5") == Result(0, "", "")
    assert "0.75: it was told 0.5 before" in complaint(place("tell", "s", "1", "0.75"))
    assert "has issued pulls 1 to 1" in complaint(place("tell", "s", "2", "0.75"))


def test_tell_keeps_a_note_and_a_cost_for_people(place: Place) -> None:
    place.good("ask", "s")
    assert "at least 0" in complaint(place("tell", "s", "1", "0.5", "--cost", "-1"))
    place.good("tell", "s", "1", "0.5", "--cost", "0.25", "--note", "cut off")
    assert place.json("verdict", "s")["cost"] == 0.25
    assert "0.25" in place.good("export", "s", "csv")
    assert "cut off" in place.good("log", "s")


def test_a_reward_outside_the_bounds_is_an_error_and_retires_its_arm(place: Place) -> None:
    place.good("ask", "s")
    assert "(0, 1): they are wrong, so arm 'a' is retired and not certified" in complaint(place("tell", "s", "1", "-3"))
    verdict = place.json("verdict", "s")
    assert (verdict["outside"], verdict["retired"], verdict["pending"]) == (["a"], ["a"], 0)
    assert "pull 1 returned -3.0, outside the bounds (0, 1)" in verdict["rows"][0]["reason"]


def test_a_pull_that_is_not_renewed_is_lost_and_told_late(place: Place) -> None:
    place.good("ask", "s", "-n", "2", "--lease", "200ms")
    place.good("renew", "s", "2", "--lease", "1h")
    until(lambda: place.json("status", "s")["pending_pulls"][0]["expired"], "the end of a lease")
    assert "pull 1 of a, for" in place.good("status", "s")
    assert "whose heartbeat stopped: the next ask drops it" in place.good("status", "s")
    assert place.json("status", "s")["events"] == 3, "showing it writes nothing"
    place.good("ask", "s")
    assert [pull["pull"] for pull in place.json("status", "s")["pending_pulls"]] == [2, 3]
    result = place("tell", "s", "1", "1")
    assert (result.status, result.out) == (0, "")
    assert "late" in result.err
    assert place.json("verdict", "s")["told"] == 1


@pytest.mark.parametrize("cause", ["lost", "cancelled", "broken-pool", "outage"])
def test_a_pull_dropped_by_hand_is_recorded_as_failed_or_lost(place: Place, cause: str) -> None:
    place.good("ask", "s", "-n", "2")
    place.good("drop", "s", "1", "--cause", cause)
    place.good("drop", "s", "2", "--cause", "failed")
    assert [event.cause for event in place.study().events() if event.kind == "dropped"] == ["lost", "failed"]


def test_drop_offers_two_causes(place: Place) -> None:
    assert "--cause [failed|lost]" in place.good("drop", "--help")
    assert "--cause 'tired': must be failed or lost; any other known cause is recorded as lost" in complaint(
        place("drop", "s", "1", "--cause", "tired")
    )


def test_drop_drops_pulls_by_id_or_by_age(place: Place) -> None:
    place.good("ask", "s", "-n", "4")
    place.good("drop", "s", "2", "--cause", "failed", "--reason", "out of memory")
    assert place("drop", "s", "--older-than", "1h") == Result(0, "", "thresher: study 's': dropped 0 pulls\n")
    time.sleep(0.01)
    assert place.json("drop", "s", "--older-than", "0.001s")["dropped"] == [1, 3, 4]
    assert place.json("verdict", "s")["rows"][1]["reason"] == "out of memory"
    complaint(place("drop", "s"))
    complaint(place("drop", "s", "1", "--older-than", "1h"))


def test_status_says_who_works_on_what(place: Place) -> None:
    place.good("ask", "s", "-n", "2")
    place.good("tell", "s", "1", "1")
    found = place.json("status", "s")
    assert (found["issued"], found["told"], found["pending"], found["budget"]) == (2, 1, 1, 40)
    assert [(pull["pull"], pull["arm"]) for pull in found["pending_pulls"]] == [(2, "b")]
    assert [(agent["asked"], agent["told"]) for agent in found["agents"]] in ([(2, 0), (0, 1)], [(0, 1), (2, 0)])
    text = place.good("status", "s")
    assert "pending    pull 2 of b" in text
    assert "pending    1" in text


def test_studies_lists_all(place: Place) -> None:
    assert place("create", "other", "--threshold=0.5", "--arm=x", "--budget=9").status == 0
    assert [row["study"] for row in place.json("studies")["studies"]] == ["other", "s"]
    name, state, pulls, created, question, command = place.good("studies").splitlines()[1].split("\t")
    assert (name, state, pulls) == ("s", "open", "0 of 40 pulls, 0 pending")
    assert (created, question, command) == (place.study().created, "Which of 2 arms reach 0.5?", "")
    assert "already" in complaint(place("create", "s", "--threshold=0.5", "--arm=x", "--budget=9"))


def test_a_misspelled_study_gets_a_suggestion(place: Place) -> None:
    place.good("create", "prompts", "--threshold=0.5", "--arm=x", "--budget=9")
    assert complaint(place("status", "prompst")).endswith("did you mean 'prompts'?")
    assert "there are 'prompts', 's'" in complaint(place("status", "xyz"))


def test_studies_and_status_show_the_command(place: Place) -> None:
    place.good("run", "--study=r", "--threshold=0.5", "--arm=0.2", "--arm=0.8", "--budget=4", "--", "echo", "{arm}")
    found = place.json("studies")["studies"][0]
    assert (found["question"], found["command"]) == ("Which of 2 arms reach 0.5?", "echo '{arm}'")
    assert place.good("studies").splitlines()[0].endswith("\techo '{arm}'")
    assert "command    echo '{arm}'" in place.good("status", "r")


def test_log_shows_events_and_follows_what_comes(place: Place) -> None:
    place.good("ask", "s")
    argv = [*THRESHER, "log", "s", "--follow", "--format", "json", "--storage", place.url]
    follower = subprocess.Popen(argv, stdout=subprocess.PIPE, env=ENVIRONMENT, text=True)
    assert follower.stdout
    try:
        kinds = [json.loads(follower.stdout.readline())["kind"] for _ in range(2)]
        place.good("tell", "s", "1", "1")
        kinds.append(json.loads(follower.stdout.readline())["kind"])
        place.good("delete", "s", "--yes")
        assert follower.wait(PATIENCE) == 3, "a study that is gone is not waited for"
    finally:
        follower.kill()
        follower.communicate()
    assert kinds == ["created", "asked", "told"]


def test_log_for_people_has_one_line_per_event(place: Place) -> None:
    place.good("ask", "s")
    place.good("drop", "s", "1", "--reason", "two\nlines")
    lines = place.good("log", "s", "--after", "1").splitlines()
    assert [line.split()[2] for line in lines] == ["asked", "dropped"]
    assert "pull 1 of a" in lines[0]
    assert "lost  two lines" in lines[1]


def test_extend_gives_more_and_never_less(place: Place) -> None:
    place.good("extend", "s", "--budget", "50")
    place.good("extend", "s", "--budget", "50")
    assert place.json("status", "s")["budget"] == 50
    for less in ("45", "1", "-1"):
        assert "must be larger than the current 50" in complaint(place("extend", "s", "--budget", less))
    complaint(place("extend", "s", "--budget", str(10**30)))


WRITES = {  # commands, each after the ones before it: what it says
    "create n --threshold=0.5 --arm=a --arm=b --budget=9": "created in STORE, with 2 arms",
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


def test_a_command_that_writes_says_what_it_did_in_one_line(place: Place) -> None:
    for command, words in WRITES.items():
        if command == "drop n 1 2":
            place.good("ask", "n", "-n", "2")
        if command.startswith("import"):
            (place.folder / "log.json").write_text(place.good("export", "n", "json"))
        _, name = command.split(" --study ") if " --study " in command else command.split()[:2]
        said = f"thresher: study {name!r}: {words}\n".replace("STORE", f"{place.folder}/studies.db")
        assert place(*command.split()) == Result(0, "", said)
    kinds = [(event.kind, event.reason) for event in place.study("n").events() if event.arm == 0 and not event.pull]
    assert kinds == [("retired", "slow"), ("restored", None)]
    for command in ("retire", "restore"):
        assert "arm 'c': is not an arm of this study; its arms are 'a', 'b'" in complaint(place(command, "n", "c"))


def test_status_says_in_words_whether_a_study_is_done(place: Place) -> None:
    assert "\nstate      not done\n" in place.good("status", "s")
    for arm in "ab":
        place.good("retire", "s", arm)
    assert "\nstate      done\n" in place.good("status", "s")


def test_a_study_without_bounds_says_why_it_certifies_nothing(place: Place) -> None:
    place.good("create", "n", "--threshold=5", "--arm=a", "--bounds", "none", "--budget=9")
    assert "was created without bounds (--bounds none), which certificates need" in place.good("verdict", "n")


def test_delete_asks_first(place: Place) -> None:
    result = place("delete", "s", stdin="n\n")
    assert (result.status, result.out) == (130, "")
    assert "Delete study 's' with 0 pulls and 0 rewards?" in result.err
    assert place.study().verdict()
    line = complaint(place("delete", "s"))
    assert line.endswith("study 's': is deleted only if you agree, and there is no terminal to ask on; add --yes")
    place.good("delete", "s", stdin="y\n")
    assert "it is empty" in complaint(place("status", "s"))


def test_a_store_that_does_not_exist_is_not_called_empty(tmp_path: Path) -> None:
    line = refused("verdict", "s", storage=tmp_path)
    assert line.startswith(f"study 's': there is no file {tmp_path}/thresher.db; go to the folder where the study was")


@pytest.mark.parametrize("name", ["../../etc/passwd", "'; DROP TABLE events; --", '"', "a b", "ü", "-x", "%s"])
def test_strange_names_are_harmless(place: Place, name: str) -> None:
    place.good("create", "--threshold=0.5", "--arm=x", "--budget=9", "--", name)
    assert json.loads(place.good("ask", "--format=json", "--", name))["arm"] == "x"
    assert {row["study"] for row in place.json("studies")["studies"]} == {"s", name}
    assert sorted(file.name for file in place.folder.iterdir()) == ["studies.db", "studies.db-lock"]


@pytest.mark.parametrize("name", ["", " ", "a\nb", "\x1b[31m", "x" * 1001])
def test_names_that_cannot_be_shown_are_refused(place: Place, name: str) -> None:
    assert "study" in complaint(place("create", "--threshold=0.5", "--arm=x", "--budget=9", "--", name))


def test_a_name_of_a_megabyte_is_refused(place: Place) -> None:
    with pytest.raises(library.InvalidInput, match="must not be longer than"):
        library.create_study("x" * 10**6, arms=["a"], threshold=0.5, budget=9, storage=place.url)
    with pytest.raises(library.InvalidInput, match="printable"):
        library.open_study("a\0b", storage=place.url)


def test_log_starts_after_any_event(place: Place) -> None:
    place.good("ask", "s", "-n", "3")
    for after, seqs in ((0, [1, 2, 3, 4]), (2, [3, 4]), (4, []), (99, [])):
        lines = place.good("log", "s", f"--after={after}", "--format=json").splitlines()
        assert [json.loads(line)["seq"] for line in lines] == seqs
