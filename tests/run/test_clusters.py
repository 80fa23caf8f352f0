"""What only clusters do, tested on the real engines."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from engines import TIMEOUT, Clock, Counted, Slow, calls, causes, dask_cluster, evaluator, make, until

import thresher
from thresher.run.engines import open_engine
from thresher.run.engines.resources import pulls_queued_for_resources

# -- Dask -----------------------------------------------------------------------------------------------------------


def test_it_warns_how_often_a_scheduler_would_rerun_a_task_that_died(
    dask_client: Any, caplog: pytest.LogCaptureFixture
) -> None:
    thresher.run(make(budget=4), evaluator("dask"), executor=dask_client)
    assert "runs a task whose worker died up to 4 times" in caplog.text


def test_outcomes_that_the_scheduler_did_not_send_are_fetched(
    dask_client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So it is after a connection was lost and made anew."""
    monkeypatch.setattr(type(dask_client), "subscribe_topic", lambda *_: None)
    monkeypatch.setattr(type(dask_client), "unsubscribe_topic", lambda *_: None)
    study = make("a", "b", budget=20)
    assert thresher.run(study, evaluator("dask"), executor=dask_client).told == 20
    assert causes(study) == []


@pytest.mark.alone
def test_workers_that_are_told_to_leave_blame_nobody_and_no_pull_is_made_twice(tmp_path: Path) -> None:
    """Dask hands what ran in a retired worker to another: the mark on the scheduler refuses it."""
    with dask_cluster(threads=1) as client:
        study = make("a", "b", budget=24, max_failures=1)
        leaver = threading.Thread(target=_retire_one, args=(client, tmp_path))
        leaver.start()
        verdict = thresher.run(study, Slow(tmp_path), executor=client)
        leaver.join()
    made = [pull for pull, _ in calls(tmp_path)]
    assert len(made) == len(set(made))
    assert verdict.retired == []
    assert [row.failures for row in verdict.rows] == [0, 0]
    assert verdict.told + len(causes(study)) == 24


def _retire_one(client: Any, folder: Path) -> None:
    until(lambda: len(calls(folder)) >= 4, "the first pulls")
    client.retire_workers([next(iter(client.scheduler_info()["workers"]))])


@pytest.mark.hangs
def test_a_hung_thread_is_left_alone_and_the_run_and_the_next_go_on(
    dask_client: Any, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    def go_on(progress: thresher.Progress) -> None:
        clock.ahead += TIMEOUT if progress.told == 5 else 0.0  # all but the hung one

    for _ in range(2):  # each leaves a thread of the four
        hung = make("a", "first-hangs", budget=6, max_failures=None)
        thresher.run(hung, evaluator("dask"), executor=dask_client, timeout=TIMEOUT, on_progress=go_on)
        assert (hung.verdict().told, causes(hung)) == (5, ["failed"])
    words = "a pull that timed out keeps its worker until it returns or the worker is restarted; the run goes on"
    assert caplog.text.count(words) == 2
    assert caplog.text.count("1 pull still running on the cluster: restart the workers that hang") == 2
    study = make("a", "b", budget=100)
    assert thresher.run(study, evaluator("dask"), executor=dask_client).told == 100
    assert causes(study) == []


def test_when_a_call_that_hung_returns_its_reward_is_kept_and_no_more_run_at_once_than_before(
    dask_client: Any, tmp_path: Path
) -> None:
    study = make("a", "first-hangs", budget=200, bounds=(0, 10))
    evaluate = HangsUntilDropped(tmp_path)

    def go_on(progress: thresher.Progress) -> None:
        if causes(study):
            (tmp_path / "go").touch()

    verdict = thresher.run(study, evaluate, executor=dask_client, workers=2, timeout=2.0, on_progress=go_on)
    assert (verdict.told, set(causes(study))) == (200, {"failed"})
    assert max(event.reward or 0 for event in study.events() if event.kind == "told") == 2


class HangsUntilDropped:
    """The first pull of an arm hangs until there is a file; then each pull returns how many run at once."""

    def __init__(self, folder: Path) -> None:
        (folder / "running").mkdir()
        self._go, self._counted = folder / "go", Counted(folder / "running")

    def __call__(self, pull: thresher.Pull) -> float:
        if pull.arm == "first-hangs" and pull.number == 1:
            until(self._go.exists, "the file")
            return 0.5
        time.sleep(0.02)
        return self._counted(pull) if self._go.exists() else 0.5


def test_the_number_of_pending_pulls_follows_the_size_of_the_cluster() -> None:
    with dask_cluster(threads=1) as client:
        engine = open_engine(evaluator("dask"), workers=None, executor=client)
        assert (engine.workers, engine.room) == (2, pulls_queued_for_resources(2)) == (2, 3)
        client.cluster.scale(3)
        until(lambda: engine.workers == 3, "the third worker")
        client.cluster.scale(1)
        until(lambda: engine.workers == 1, "one worker")
        engine.close(wait=True)
        capped = open_engine(evaluator("dask"), workers=5, executor=client.cluster)
        assert capped.workers == 1
        capped.close(wait=True)
        assert client.status == "running"  # it is the user's, and is left as it was


SCHEDULER = """
import sys, time
from distributed import LocalCluster
if __name__ == "__main__":
    cluster = LocalCluster(n_workers=1, threads_per_worker=2, dashboard_address="127.0.0.1:0")
    print(cluster.scheduler_address, flush=True)
    time.sleep(3600)
"""


@pytest.fixture
def scheduler(tmp_path: Path) -> Iterator[tuple[str, "subprocess.Popen[str]"]]:
    """The address of a cluster in another process, which may be killed."""
    script = tmp_path / "scheduler.py"
    script.write_text(SCHEDULER)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen(
        [sys.executable, str(script)], stdout=subprocess.PIPE, text=True, start_new_session=True, env=environment
    )
    assert process.stdout
    yield process.stdout.readline().strip(), process
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def test_a_lost_scheduler_ends_the_run_cleanly_and_the_study_can_be_resumed(
    scheduler: tuple[str, "subprocess.Popen[str]"], tmp_path: Path
) -> None:
    address, process = scheduler
    study = make("a", "b", budget=100_000)
    killer = threading.Thread(target=_kill_after_some, args=(process, study))
    killer.start()
    with pytest.raises(thresher.CannotGoOn, match=r"connection to the Dask scheduler was lost.*run again"):
        thresher.run(study, evaluator("dask"), executor=address.replace("tcp://", "dask://"))
    killer.join()
    verdict = study.verdict()
    assert verdict.pending == 0
    assert verdict.told > 0
    assert "failed" not in causes(study)
    assert thresher.run(study, evaluator("threads"), seconds=1.0).told > verdict.told


def _kill_after_some(process: "subprocess.Popen[str]", study: thresher.Study) -> None:
    until(lambda: study.verdict().told >= 20, "some rewards")
    os.killpg(process.pid, signal.SIGKILL)


def test_an_asynchronous_client_is_refused() -> None:
    import asyncio

    from distributed import Client, LocalCluster

    async def refused() -> str:
        settings: dict[str, Any] = {"n_workers": 1, "processes": False, "dashboard_address": "127.0.0.1:0"}
        async with LocalCluster(asynchronous=True, **settings) as cluster, Client(cluster, asynchronous=True) as client:
            with pytest.raises(thresher.InvalidInput) as caught:
                thresher.run(make(), evaluator("dask"), executor=client)
            return str(caught.value)

    assert "is an asynchronous client" in asyncio.run(refused())


# -- both -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["dask", "ray", "processes"])
def test_an_evaluator_that_cannot_be_sent_is_refused_in_words(engine: str, where: dict[str, Any]) -> None:
    lock = threading.Lock()
    study = make("a", "b", budget=60)
    if engine == "processes":  # forked workers inherit them
        assert thresher.run(study, lambda pull: 0.5 if lock else 0, **where).told == 60
        return
    with pytest.raises(thresher.CannotGoOn, match=r"cannot (be sent|take the evaluator)"):
        thresher.run(study, lambda pull: 0.5 if lock else 0, **where)
    assert len(study.events()) == 1


@pytest.mark.parametrize("engine", ["dask", "ray"])
def test_what_a_script_defines_can_be_sent(engine: str, where: dict[str, Any]) -> None:
    assert thresher.run(make(budget=10), lambda pull: 0.5, **where).told == 10


@pytest.mark.hangs
@pytest.mark.parametrize("engine", ["dask", "ray"])
def test_pulls_that_never_began_cost_nothing_when_a_run_ends_early(
    engine: str, where: dict[str, Any], tmp_path: Path
) -> None:
    study = make("hangs", budget=60, max_failures=None)
    room = 4 if engine == "dask" else 2  # all hang, so nothing else can begin

    def stop_once_begun(progress: thresher.Progress) -> None:
        if len(calls(tmp_path)) == room:
            raise RuntimeError("stop here")

    with pytest.raises(RuntimeError, match="stop here"):
        thresher.run(study, evaluator(engine, tmp_path), in_flight=20, on_progress=stop_once_begun, **where)
    begun = {pull for pull, _ in calls(tmp_path)}
    dropped = {event.pull: event.cause for event in study.events() if event.kind == "dropped"}
    assert study.verdict().pending == 0
    assert {pull for pull, cause in dropped.items() if cause == "lost"} == begun
    assert {pull for pull, cause in dropped.items() if cause == "cancelled"} == dropped.keys() - begun
    assert len(dropped) == 20


@pytest.mark.parametrize(
    ("executor", "words"),
    [
        (
            "dask://127.0.0.1:9",
            r"executor 'tcp://127.0.0.1:9': no Dask scheduler answers.*start one with: dask scheduler",
        ),
        ("dask:tcp://127.0.0.1:9", "no Dask scheduler answers"),
        ("dask:nonsense://x", "'nonsense://x': is not the address.*HOST:PORT"),
        ("dask://nowhere", "is not the address.*HOST:PORT"),
    ],
)
def test_an_address_without_an_answer_is_named(executor: str, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from thresher.run.engines import dask

    monkeypatch.setattr(dask, "PATIENCE", 0.3)
    study = make()
    with pytest.raises(thresher.ThresherError, match=words):
        thresher.run(study, evaluator("dask"), executor=executor)
    assert len(study.events()) == 1


def test_a_run_leaves_nothing_on_a_scheduler_even_if_it_was_refused(dask_client: Any) -> None:
    def left(dask_scheduler: Any) -> list[str]:
        tables = (dask_scheduler.plugins, dask_scheduler.worker_plugins, dask_scheduler.handlers)
        return [name for table in tables for name in table if str(name).startswith("thresher")]

    lock = threading.Lock()
    with pytest.raises(thresher.CannotGoOn):
        thresher.run(make(), lambda pull: lock.locked(), executor=dask_client)
    thresher.run(make(), evaluator("dask"), executor=dask_client)
    assert dask_client.run_on_scheduler(left) == []


def test_a_missing_library_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("thresher.run.engines.ray", "ray"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(thresher.InvalidInput, match=r"needs the package ray.*pip install 'thresher\[ray\]'"):
        thresher.run(make(), evaluator("ray"), executor="ray")
