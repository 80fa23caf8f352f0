"""`thresher verify` and `thresher doctor`: the log's head, what is wrong, and where."""

import json

import apsw
from logs import append
from program import complaint
from workdir import Workdir, a_workdir  # noqa: F401 - the fixture


def test_verify_is_status_1_and_names_the_event_when_something_is_wrong(workdir: Workdir) -> None:
    workdir.good("ask", "s", "-n", "3")
    assert "4 events, every decision re-derived; state " in workdir.good("verify", "s")
    store = workdir.study().store
    append(store, "t", [event._replace(arm=1) if event.seq == 4 else event for event in store.read("s")])
    store.close()
    result = workdir("verify", "t")
    assert result.status == 1
    assert result.out.startswith("event 4: asked for arm 'b', where the rule says 'a'; the 3 before it are right")
    assert json.loads(workdir("verify", "t", "--format=json").out)["wrong"] == 4
    complaint(workdir("verify", "nobody"))


def test_verify_says_that_lsa_repeats_on_the_same_machine_only(workdir: Workdir) -> None:
    workdir.good("create", "logs", "--at-least=0.5", "--arm=x", "--arm=y", "--budget=9", "--policy=lsa")
    assert "on the same machine only" in workdir.good("verify", "logs")
    assert "machine only" not in workdir.good("verify", "s")


def test_the_head_of_the_log_is_shown_wherever_two_people_may_compare(workdir: Workdir) -> None:
    workdir.good("tell", "s", workdir.good("ask", "s").split()[0], "1")
    report = workdir.json("verify", "s")
    head = report["head"]
    assert (report["events"], len(head)) == (3, 32)
    line = f"Head of the log: event 3, {head}"
    assert workdir.good("verify", "s").splitlines()[1] == line
    assert head not in workdir.good("verdict", "s")
    assert (workdir.json("verdict", "s")["head"], workdir.json("verdict", "s")["events"]) == (head, 3)
    assert f"head       event 3, {head}" in workdir.good("status", "s")
    assert (workdir.json("status", "s")["head"], workdir.json("status", "s")["events"]) == (head, 3)
    assert [json.loads(line)["digest"] for line in workdir.good("log", "s", "--format=json").splitlines()][-1] == head
    workdir.good("ask", "s")
    assert workdir.json("verify", "s")["head"] != head


def test_verify_names_the_end_that_is_missing(workdir: Workdir) -> None:
    workdir.good("ask", "s", "-n", "5")
    connection = apsw.Connection(str(workdir.folder / "studies.db"))
    connection.execute("DELETE FROM events WHERE seq > 4")
    connection.close()
    result = workdir("verify", "s")
    assert result.status == 1
    assert result.out == ("event 5: is missing, as is all up to event 6, the log's head; the 4 before it are right\n")
    assert "! study 's'  is damaged, event 5: is missing" in workdir("doctor").out
    assert "is damaged, event 5" in complaint(workdir("ask", "s"), 3)


def test_doctor_tells_versions_and_durability_and_what_is_wrong(workdir: Workdir) -> None:
    text = workdir.good("doctor")
    for words in ("thresher", "apsw", "durability   full", "check        sound", "mode 600", "studies      1"):
        assert words in text
    (workdir.folder / "studies.db").chmod(0o644)
    result = workdir("doctor", "--format=json")
    assert result.status == 1
    assert "chmod 600" in json.loads(result.out)["found"]["! mode"]
    (workdir.folder / "studies.db").write_bytes(b"")
    result = workdir("doctor")
    assert result.status == 1
    assert "! store" in result.out


def test_doctor_makes_no_store(workdir: Workdir) -> None:
    result = workdir("doctor", "--storage", f"sqlite:///{workdir.folder}/typo.db")
    assert (result.status, "typo.db is not there" in result.out) == (1, True)
    assert not list(workdir.folder.glob("typo*"))
