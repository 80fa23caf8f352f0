"""The overhead of `run` over each engine's own submit loop, and what is gained by not waiting for batches."""

import concurrent.futures as futures
import contextlib
import functools
import logging
import math
import random
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from typing import Any

import thresher
from thresher import lab

from .report import Figure, fastest

IN_FLIGHT = 16
SECONDS = 0.005  # of one evaluation
PULLS = {"threads": 6000, "processes": 6000, "dask": 1500, "ray": 3000}
SHAPE = 1.0  # σ of the lognormal service times


def evaluate(pull: object) -> float:
    """Wait, as for a reply over the network."""
    time.sleep(SECONDS)
    return 0.3


# -- the engines' own loops ---------------------------------------------------------------------------------------


def with_run(pulls: int, **where: Any) -> float:
    """Seconds per pull after the first fifth, when all workers have started."""
    arms = [f"arm {k}" for k in range(100)]
    study = thresher.create_study("bench", arms=arms, at_least=0.5, budget=pulls, confidence=None)
    thresher.run(study, evaluate, in_flight=IN_FLIGHT, **where)
    told = [event.time or 0.0 for event in study.events() if event.kind == "told"]
    return (told[-1] - told[pulls // 5]) / (0.8 * pulls)


def with_executor(pulls: int, pool: Executor) -> float:
    """The straightforward loop: submit, wait for the first, submit again."""
    times: list[float] = []
    waiting = {pool.submit(evaluate, None) for _ in range(IN_FLIGHT)}
    left = pulls - IN_FLIGHT
    while waiting:
        done, waiting = futures.wait(waiting, return_when=futures.FIRST_COMPLETED)
        times += [time.time()] * len([future.result() for future in done])
        more = min(left, len(done))
        waiting |= {pool.submit(evaluate, None) for _ in range(more)}
        left -= more
    return (times[-1] - times[pulls // 5]) / (0.8 * pulls)


def with_dask(pulls: int, client: Any, *, with_results: bool = False) -> float:
    """The loop of Dask's documentation; ``with_results`` fetches several at once where it can."""
    from distributed import as_completed

    times: list[float] = []
    left = pulls - IN_FLIGHT
    first = [client.submit(evaluate, k, pure=False) for k in range(IN_FLIGHT)]
    done = as_completed(first, with_results=with_results)
    for future in done:
        if not with_results:
            future.result()
        times.append(time.time())
        if left:
            done.add(client.submit(evaluate, None, pure=False))
            left -= 1
    return (times[-1] - times[pulls // 5]) / (0.8 * pulls)


def with_ray(pulls: int, begin: Callable[[int], Any]) -> float:
    """``begin`` starts the k-th call, as a task or on an actor."""
    import ray

    times: list[float] = []
    waiting = {begin(k): k for k in range(IN_FLIGHT)}
    left = pulls - IN_FLIGHT
    while waiting:
        done, _ = ray.wait(list(waiting))
        for ref in done:
            ray.get(ref)
            times.append(time.time())
            slot = waiting.pop(ref)
            if left:
                waiting[begin(slot)] = slot
                left -= 1
    return (times[-1] - times[pulls // 5]) / (0.8 * pulls)


@contextlib.contextmanager
def dask_cluster() -> Iterator[Any]:
    from distributed import Client, LocalCluster

    settings: dict[str, Any] = {"dashboard_address": "127.0.0.1:0", "silence_logs": logging.CRITICAL}
    with LocalCluster(n_workers=2, threads_per_worker=IN_FLIGHT // 2, **settings) as cluster, Client(cluster) as client:
        yield client


@contextlib.contextmanager
def ray_cluster() -> Iterator[Any]:
    import ray

    ray.init(num_cpus=2 * IN_FLIGHT, include_dashboard=False, log_to_driver=False, logging_level=logging.CRITICAL)
    try:
        yield ray
    finally:
        ray.shutdown()


def ratio(name: str, ours: Callable[[], float], theirs: Callable[[], float], *, turns: int = 5) -> Iterator[Figure]:
    run, loop = fastest(ours, theirs, turns=turns)
    yield Figure(f"{name}, {IN_FLIGHT} pending, {1000 * SECONDS:g} ms: run", 1 / run, "pulls/s")
    yield Figure(f"{name}: run / the engine's own submit loop, time per pull", run / loop, "times", 1.15, at_most=True)


def overheads() -> Iterator[Figure]:
    pulls = PULLS["threads"]
    with ThreadPoolExecutor(IN_FLIGHT) as pool:
        ours = functools.partial(with_run, pulls, executor="threads", workers=IN_FLIGHT)
        yield from ratio("threads", ours, functools.partial(with_executor, pulls, pool))
    pulls = PULLS["processes"]
    with ProcessPoolExecutor(IN_FLIGHT) as pool:
        ours = functools.partial(with_run, pulls, executor="processes", workers=IN_FLIGHT)
        yield from ratio("processes", ours, functools.partial(with_executor, pulls, pool))
    pulls = PULLS["dask"]
    with dask_cluster() as client:
        ours = functools.partial(with_run, pulls, executor=client)
        yield from ratio("dask", ours, functools.partial(with_dask, pulls, client, with_results=True))
        run, loop = fastest(ours, functools.partial(with_dask, pulls, client))
        yield Figure("dask: run / the loop of Dask's documentation, for comparison", run / loop, "times")
    pulls = PULLS["ray"]
    with ray_cluster() as ray:
        task = ray.remote(max_retries=0)(evaluate)
        ours = functools.partial(with_run, pulls, executor="ray", workers=IN_FLIGHT)
        theirs = functools.partial(with_ray, pulls, lambda k: task.remote(None))
        yield from ratio("ray", ours, theirs, turns=2)  # each turn starts sixteen processes
        actors = [ray.remote(Plain).remote() for _ in range(IN_FLIGHT)]
        run, loop = fastest(ours, lambda: with_ray(pulls, lambda k: actors[k].evaluate.remote(None)), turns=2)
        yield Figure("ray: run / a loop over plain actors, for comparison", run / loop, "times")


class Plain:
    def evaluate(self, pull: object) -> float:
        return evaluate(pull)


# -- asynchronous against batches -----------------------------------------------------------------------------------


def simulated(workers: int) -> tuple[float, float]:
    """How much longer batches take for the same pulls, and the share of a worker's time that they leave idle."""
    budget = 40 * max(workers, 64)
    shared: dict[str, Any] = {"family": "bernoulli", "at_least": 0.9, "means": (0.7, 0.99), "policy": "anytime-evt"}

    def clock(kind: str) -> float:
        asked = lab.Setup(
            arms=100, budget=budget, checkpoints=(budget,), delay=f"{kind}:{workers}:lognormal:{SHAPE}", **shared
        )
        return float(lab.simulate(asked, repetitions=20, per_arm=False).measures.clock[:, -1].mean())

    batches, at_once = clock("batch"), clock("workers")
    return batches / at_once, 1 - budget / workers / batches


def service(pull: thresher.Pull) -> float:
    draw = random.Random(pull.seed)
    time.sleep(0.02 * math.exp(SHAPE * draw.gauss(0.0, 1.0) - SHAPE * SHAPE / 2))
    return float(draw.random() < 0.6)


def study_of(budget: int) -> thresher.Study:
    arms = [f"arm {k}" for k in range(20)]
    return thresher.create_study("bench", arms=arms, at_least=0.5, budget=budget, confidence=None)


def real(workers: int = 8, budget: int = 800) -> float:
    """The same with real threads that sleep."""
    began = time.monotonic()
    thresher.run(study_of(budget), service, workers=workers)
    at_once = time.monotonic() - began
    study = study_of(budget)
    began = time.monotonic()
    with ThreadPoolExecutor(workers) as pool:
        while pulls := study.ask_many(workers):
            rewards: Iterable[float] = pool.map(service, pulls)
            for pull, reward in zip(pulls, rewards, strict=True):
                study.tell(pull, reward)
    return (time.monotonic() - began) / at_once


def gains() -> Iterator[Figure]:
    for workers in (8, 16, 32, 64, 128, 256, 512):
        gain, idle = simulated(workers)
        yield Figure(f"{workers} workers, lognormal times, simulated: batches / asynchronous", gain, "times")
        yield Figure(f"{workers} workers: the share of time that batches leave them idle", 100 * idle, "%")
    yield Figure("8 workers, lognormal times, real threads: batches / asynchronous", real(), "times")


def figures() -> Iterator[Figure]:
    yield from overheads()
    yield from gains()
