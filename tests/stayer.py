"""A persistent evaluator for the tests, a program that needs nothing but Python: the arm's name says what it does.

As a module, it is what tests need to use it. It is started hundreds of times, and imports what few arms need late.
"""

import json
import os
import sys
import time
from typing import Any

ARGV = (sys.executable, "-I", "-S", __file__)


def evaluator(*words: str, **given: Any) -> Any:
    """This program as an evaluator, called with these words."""
    from thresher.run.command.persistent import PersistentEvaluator

    return PersistentEvaluator((*ARGV, *words), **given)


def say(**answer: Any) -> None:
    print(json.dumps(answer), flush=True)


def file(folder: str, name: object) -> Any:
    from pathlib import Path

    return Path(folder, str(name))


def adversary(pull: int, seed: int, folder: str) -> None:
    """The outcome decides what becomes of it: bad ones are said in as many ways as there are."""
    import random

    chance = random.Random(seed)
    reward = float(chance.random() < 0.5)
    how = chance.choice(["die", "garbage", "busy", "error", "twice", "late", "again"])
    if reward or (how == "busy" and file(folder, f"tried-{pull}").exists()):
        say(pull=pull, reward=reward)
    elif how == "die":
        os.kill(os.getpid(), 9)
    elif how == "garbage":
        print(f"no: {reward}", flush=True)
    elif how == "busy":
        file(folder, f"tried-{pull}").touch()
        say(pull=pull, busy=0)
    elif how == "error":
        say(pull=pull, error=f"bad luck {seed % 3}")
    elif how == "twice":
        say(pull=pull, reward=0)
        say(pull=pull, reward=1)
    elif how == "late":
        time.sleep(9)  # far more than the timeout: this process is killed by then
        say(pull=pull, reward=1)
    else:
        say(pull=pull, error="bad luck")
        say(pull=pull, reward=1)


def main() -> None:
    words, held, together, busy = sys.argv[1:], list[tuple[int, float]](), list[str](), set[int]()
    if "greet" in words:
        say(protocol=1, arms=["a", {"name": "b", "depth": 2}])
    if "noisy" in words:
        print("loading password=hunter2", file=sys.stderr, flush=True)
    if "future" in words:
        say(protocol=2)
    if "crash" in words:
        sys.exit("ModuleNotFoundError: No module named 'torch'")
    for line in sys.stdin:
        data = json.loads(line)
        pull, arm, seed = data["pull"], data["arm"], data["seed"]
        reward = seed / 2**32
        if "three" in words and arm != "a" and len(together) < 3:  # nothing happens until there are three
            together.append(arm)
            if len(together) < 3:
                continue
            arm = "garbage" if "garbage" in together else "dies"
        if arm == "dies":
            if "shared" in words and not file(words[-1], "died").exists():  # the first time not alone
                file(words[-1], "died").touch()
                sys.stdin.readline()
            os.kill(os.getpid(), 9)
        elif arm == "exits":
            sys.exit("out of memory")
        elif arm == "hangs" or (arm == "hangs sometimes" and seed % 3 == 0):
            time.sleep(3600)
        elif arm == "waits":  # for the file "go"
            file(words[-1], pull).touch()
            while not file(words[-1], "go").exists():
                time.sleep(0.01)
            say(pull=pull, reward=reward)
        elif arm == "floods":  # with an answer that nobody waits for
            while True:
                os.write(1, b'{"pull": 1, "reward": 0}\n' * 1000)
        elif arm == "garbage":
            print("loading the model …", flush=True)
        elif arm == "wrong":
            say(pull=pull, reward="high")
        elif arm == "error":
            say(pull=pull, error="no such model")
        elif arm == "busy" and pull not in busy:
            busy.add(pull)
            say(pull=pull, busy=0.001)
        elif arm == "twice":
            say(pull=pull, reward=reward)
            say(pull=pull, reward=1 - reward)
        elif arm == "leaves":  # after it has answered
            say(pull=pull, reward=reward)
            sys.exit()
        elif arm.startswith("adversary"):
            adversary(pull, seed, words[0])
        elif arm == "held":  # until there are four: then the last comes first
            held.append((pull, reward))
            if "noted" in words:
                file(words[-1], pull).touch()
            if len(held) == 4:
                while held:
                    pull, reward = held.pop()
                    say(pull=pull, reward=reward)
        else:
            say(pull=pull, reward=reward, note=str(os.getpid()), cost=0.25)
    if "slowly" in words:  # clean up after the end of the input
        time.sleep(0.1)
        file(words[-1], os.getpid()).touch()


if __name__ == "__main__":
    main()
