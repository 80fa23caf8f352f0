"""`thresher verify` and `thresher doctor`: the log's head, what is wrong, and where."""

import json

import apsw
from logs import append
from place import Place, a_place  # noqa: F401 - the fixture
from program import complaint


def test_verify_is_status_1_and_names_the_event_when_something_is_wrong(place: Place) -> None:
    place.good("ask", "s", "-n", "3")
    assert "4 events, every decision re-derived; state " in place.good("verify", "s")
    store = place.study().store
    append(store, "t", [event._replace(arm=1) if event.seq == 4 else event for event in store.read("s")])
    store.close()
    result = place("verify", "t")
    assert result.status == 1
    assert result.out.startswith("event 4: asked for arm 'b', where the rule says 'a'; the 3 before it are right")
    assert json.loads(place("verify", "t", "--format=json").out)["wrong"] == 4
    complaint(place("verify", "nobody"))


def test_verify_says_that_lsa_repeats_on_the_same_machine_only(place: Place) -> None:
    place.good("create", "logs", "--threshold=0.5", "--arm=x", "--arm=y", "--budget=9", "--policy=lsa")
    assert "on the same machine only" in place.good("verify", "logs")
    assert "machine only" not in place.good("verify", "s")


def test_the_head_of_the_log_is_shown_wherever_two_people_may_compare(place: Place) -> None:
    place.good("tell", "s", place.good("ask", "s").split()[0], "1")
    found = place.json("verify", "s")
    head = found["head"]
    assert (found["events"], len(head)) == (3, 32)
    line = f"Head of the log: event 3, {head}"
    assert place.good("verify", "s").splitlines()[1] == line
    assert line in place.good("verdict", "s")
    assert (place.json("verdict", "s")["head"], place.json("verdict", "s")["events"]) == (head, 3)
    assert f"head       event 3, {head}" in place.good("status", "s")
    assert (place.json("status", "s")["head"], place.json("status", "s")["events"]) == (head, 3)
    assert [json.loads(line)["digest"] for line in place.good("log", "s", "--format=json").splitlines()][-1] == head
    place.good("ask", "s")
    assert place.json("verify", "s")["head"] != head


def test_verify_names_the_end_that_is_missing(place: Place) -> None:
    place.good("ask", "s", "-n", "5")
    connection = apsw.Connection(str(place.folder / "studies.db"))
    connection.execute("DELETE FROM events WHERE seq > 4")
    connection.close()
    result = place("verify", "s")
    assert result.status == 1
    assert result.out == ("event 5: is missing, as is all up to event 6, the log's head; the 4 before it are right\n")
    assert "! study 's'  is damaged, event 5: is missing" in place("doctor").out
    assert "is damaged, event 5" in complaint(place("ask", "s"), 3)


def test_doctor_tells_versions_and_durability_and_what_is_wrong(place: Place) -> None:
    text = place.good("doctor")
    for words in ("thresher", "apsw", "durability   full", "check        sound", "mode 600", "studies      1"):
        assert words in text
    (place.folder / "studies.db").chmod(0o644)
    result = place("doctor", "--format=json")
    assert result.status == 1
    assert "chmod 600" in json.loads(result.out)["found"]["! mode"]
    (place.folder / "studies.db").write_bytes(b"")
    result = place("doctor")
    assert result.status == 1
    assert "! store" in result.out


def test_doctor_makes_no_store(place: Place) -> None:
    result = place("doctor", "--storage", f"sqlite:///{place.folder}/typo.db")
    assert (result.status, "typo.db is not there" in result.out) == (1, True)
    assert not list(place.folder.glob("typo*"))
