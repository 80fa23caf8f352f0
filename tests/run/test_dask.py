"""What only Dask does: clusters that change during a run, and unusual clients."""

import logging
import subprocess
import sys
import threading
import traceback
from pathlib import Path
from typing import Any

import pytest
from engines import Counted, Slow, calls, causes, dask_cluster, evaluator, make, until

import thresher


@pytest.mark.alone
def test_a_cluster_restarted_during_a_run_reruns_no_pull_that_had_begun(tmp_path: Path) -> None:
    with dask_cluster(threads=1) as client:
        study = make("a", "b", budget=20, max_failures=None)
        restarter = threading.Thread(target=_restart, args=(client, tmp_path))
        restarter.start()
        thresher.run(study, Slow(tmp_path), executor=client)
        restarter.join()
    made = [pull for pull, _ in calls(tmp_path)]
    assert len(made) == len(set(made))
    assert not {event.pull for event in study.events() if event.cause == "cancelled"} & set(made)


def _restart(client: Any, folder: Path) -> None:
    until(lambda: len(calls(folder)) >= 4, "the first pulls")
    client.restart()


def test_a_cluster_that_starts_workers_when_there_is_work_gets_some(tmp_path: Path) -> None:
    from distributed import Client, LocalCluster

    settings: dict[str, Any] = {"silence_logs": logging.CRITICAL, "dashboard_address": "127.0.0.1:0"}
    with LocalCluster(n_workers=0, threads_per_worker=1, **settings) as cluster, Client(cluster) as client:
        cluster.adapt(minimum=0, maximum=1, interval="100ms")
        study = make(budget=6)
        assert thresher.run(study, evaluator("dask"), executor=client).told == 6
        assert causes(study) == []


def test_no_more_pulls_run_at_once_than_workers_were_asked_for(dask_client: Any, tmp_path: Path) -> None:
    study = make("a", budget=12, bounds=(0, 10))
    thresher.run(study, Counted(tmp_path), executor=dask_client, workers=1, in_flight=4)
    assert max(event.reward or 0 for event in study.events()) == 1


def test_an_evaluator_that_is_wrong_ends_the_run_with_its_traceback(dask_client: Any) -> None:
    study = make(*"abcdefgh", budget=1000, max_failures=1)
    with pytest.raises(thresher.CannotGoOn, match=r"3 arms failed with the same error.*KeyError: 'depth'") as caught:
        thresher.run(study, _wrong_key, executor=dask_client)
    assert study.verdict().retired == []
    assert 'return {"width": 1}["depth"]' in "".join(traceback.format_exception(caught.value))


def _wrong_key(pull: thresher.Pull) -> object:
    return {"width": 1}["depth"]


def test_an_executor_of_a_dask_client_is_refused(dask_client: Any) -> None:
    """It may have retries, which nobody can see."""
    executor = dask_client.get_executor(workers=["nowhere"], retries=3)
    with pytest.raises(thresher.InvalidInput, match=r"an executor of a Dask client.*; pass the client, and resources="):
        thresher.run(make(), evaluator("dask"), executor=executor)


def test_a_client_that_is_closed_is_refused(dask_client: Any) -> None:
    from distributed import Client

    client = Client(dask_client.scheduler.address, set_as_default=False)
    client.close()
    with pytest.raises(thresher.CannotGoOn, match=r"is a client that is closed.*connect again"):
        thresher.run(make(), evaluator("dask"), executor=client)


def test_a_script_that_starts_a_cluster_without_a_guard_is_told_how(tmp_path: Path) -> None:
    """Its workers import it again, and must not start clusters of their own."""
    script = tmp_path / "script.py"
    script.write_text(
        "import thresher\n"
        "study = thresher.create_study('s', arms=['a', 'b'], at_least=0.4, budget=10, confidence=None)\n"
        "thresher.run(study, float, executor='dask', workers=1)\n"
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    words = 'a script that starts workers does so under: if __name__ == "__main__":'
    assert done.stderr.rstrip().endswith(words)
