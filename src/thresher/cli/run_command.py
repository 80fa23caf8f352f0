"""``thresher run``: a study whose evaluator is any program."""

from collections.abc import Mapping, Sequence
from typing import Any

import click
from click.core import ParameterSource

from ..core import checks
from ..core.named_items import SHAPES, listed
from ..core.spec import Params
from ..errors import CannotGoOn, InvalidInput
from ..run.command.persistent import PersistentEvaluator
from ..run.command.process import CASE, PULL_FIELDS, Command
from ..run.command.reward import MEASURED
from ..run.engines import CHOICES, check_name, check_workers, open_engine
from ..run.loop import Limits, Progress, run_on
from ..run.signals import until_stopped
from ..study import Study, peek
from ..text.machine import available_cores
from . import say
from .code_files import CodeFiles
from .error_wording import of_engine, of_exits
from .import_export import baseline_results
from .live_table import watching
from .options import FORMATS, Duration, Whole, format_option, option, storage_option, store_at
from .output import print_verdict
from .question_options import ARMS_OF_COMMANDS, arm_options, arms_given, cases_given, question, reward_of_failure
from .resumable_study import Kept, evaluator_of, pulls_made
from .run_checks import (
    Cautions,
    check_command,
    check_exits,
    check_program,
    check_reader,
    check_resources,
    check_start,
    command_cautions,
    placeholders,
    room_for,
)
from .run_end import Required, check_requirements, conclude, say_kept

# ``thresher run --stay``: a program that is started once per worker and answers pulls, line by line.

STAY = "--stay"
ANSWERS = 'COMMAND answers {"pull": …, "reward": …} instead'


def staying(
    command: Sequence[str], given: dict[str, Any], *, engine: str, elsewhere: bool
) -> PersistentEvaluator | None:
    """The evaluator of ``--stay``, or None without it. Options that do not go together are refused."""
    if not given["stay"]:
        if given["per_process"] is not None:
            raise InvalidInput("--per-process", given["per_process"], f"has no effect without {STAY}", f"add {STAY}")
        return None
    _check_options(given)
    per_process = 1 if given["per_process"] is None else checks.whole("--per-process", given["per_process"], least=1)
    if per_process > 1 and (engine in ("processes", "dask") or engine.startswith("ray")):
        rule = f"a worker of --engine {engine} has one pull at a time"
        raise InvalidInput("--per-process", per_process, rule, "use --engine threads, or more --workers instead")
    check_program(command, elsewhere=elsewhere)
    return PersistentEvaluator(tuple(command), given["timeout"], per_process)


def _check_options(given: dict[str, Any]) -> None:
    context = click.get_current_context()
    for spelling, name in (("--reward", "reward"), ("--pass", "passing"), ("--fail", "failing")):
        if context.get_parameter_source(name) != ParameterSource.DEFAULT:
            raise InvalidInput(spelling, given[name], f"has no effect with {STAY}", f"leave it out: {ANSWERS}")


def arms_of(evaluate: PersistentEvaluator, given: dict[str, Any], *, engine: str) -> dict[str, Params]:
    """The arms of the options, or those that the evaluator names itself."""
    if given["file"] or given["names"]:
        return arms_given(given["file"], given["names"])
    try:
        arms = listed(evaluate.arms_named(), "COMMAND's greeting", ARMS_OF_COMMANDS)
        if not arms:
            raise InvalidInput("arms", rule="COMMAND's greeting names none", remedy=SHAPES)
        return arms
    finally:
        if engine != "threads":  # pulls are made elsewhere
            evaluate.stop()


def check_placeholders(argv: Sequence[str], arms: Mapping[str, Params]) -> None:
    """Raise if COMMAND has a placeholder: it is started before there is a pull."""
    known = {*PULL_FIELDS, CASE, *(key for params in arms.values() for key in params)}
    for name in sorted(placeholders(*argv)):
        if name in known or name.startswith(f"{CASE}."):
            rule = f"has no value with {STAY}: COMMAND is started once, for all pulls"
            remedy = "leave it out: COMMAND reads it from each pull's line"
            raise InvalidInput("placeholder", f"{{{name}}}", rule, remedy)


def workers_of(evaluate: object, workers: int | None, engine: str) -> int | None:
    """How many pulls an engine makes at once: with ``--per-process``, several in each process of its workers."""
    if isinstance(evaluate, PersistentEvaluator) and evaluate.per_process > 1 and engine == "threads":
        return (workers or available_cores()) * evaluate.per_process
    return workers


HELP = """Find out which arms reach a bar by running COMMAND many times, several at once.

Each run replaces {arm} in COMMAND with an arm. COMMAND prints the reward: the last number on its last line, or
pass or fail, or True or False, as its last word. The same command line resumes the study after Ctrl-C or a crash.

Examples:
  Which prompts pass 90 % of my cases? ask.py runs one case and prints 1 or 0; thresher cases lists the hardest.
    thresher run --at-least 0.9 --arms prompts.txt --cases questions.jsonl -- python ask.py {arm} {case}
\b
  Which tests are flaky? Exit 0 is a pass, exit 1 a failed test; the bar is a pass rate of 99 %.
    thresher run --at-least 0.99 --arms tests.txt --budget 5000 --reward exit-code -- pytest -q {arm}
\b
  Which commands stay within 50 ms? thresher measures them.
    thresher run --at-most 50ms --reward seconds --arms commands.txt -- sh -c {arm}
\b
  Which prompts beat the current one by 2 %, on the same cases?
    thresher run --baseline current --margin 2% --arms prompts.txt --cases questions.jsonl -- ./ask.sh {arm} {case}
"""
MORE = """The bar is --at-least B or --at-most B, for the mean of an arm's rewards; with --share S, for that share of
its pulls; with --baseline NAME, what that arm reaches. Numbers may have units: 90%, and 200ms or 1.5s for
measured times.

With --reward seconds or cpu-seconds, the reward is the time that COMMAND takes from its start to its exit. Unless you
give --bounds, the question is then about 95 % of the pulls (with --baseline, half of the pairs), or another --share. A
COMMAND that fails is a failure and no time; one that is stopped by a --timeout beyond the limit has missed it.
A COMMAND that exits with 75 has not begun, and is run again later.

Other placeholders: {seed}, {number}, {pull}, and {KEY} for each parameter in the arms file; {{ and }} are braces.
The environment has the same values as THRESHER_ARM, THRESHER_SEED, THRESHER_NUMBER and THRESHER_PULL.

With --cases, each run evaluates one case of an eval set, and the labels are about exactly these cases: {case} is its
name, or its number from 0, {case.KEY} a parameter in the cases file, and THRESHER_CASE is in the environment. No arm
sees a case twice, so a study without --budget ends after arms × cases pulls at the latest, and usually long before.

The study is stored in thresher.db, under a name made from the question and COMMAND. The same command line resumes it
after Ctrl-C, a crash or a reboot; a larger --budget extends it; --fresh starts over. Other machines join with the
same postgresql:// URL. The files that COMMAND names are part of what was measured: if one has changed, such as ask.py
above, the same command line starts over and keeps the old study under another name. --same-code says that the change
makes no difference; --ignore names a file that COMMAND itself writes. After other changes, such as in a module that
ask.py imports, use --fresh.

More examples:
  Which of 300 prompts pass, if 5 % of those listed may be wrong? And: find one that passes.
    thresher run --at-least 0.9 --arms prompts.txt --cases 500 --guarantee rate -- ./evaluate.sh {arm} {case}
    thresher run --at-least 0.9 --arms prompts.txt --cases 500 --find 1 -- ./evaluate.sh {arm} {case}
\b
  For tests of pytest, its plugin makes hundreds of runs in the time of one: pip install 'thresher[pytest]', then
  pytest --thresher 0.99. Without it, any status other than 0 and 1, such as pytest's 4 for a test that does not
  exist, is a failed pull and never a reward.
\b
  Is the median within 20 ms? Which servers answer 95 % of requests within 200 ms? request.sh prints milliseconds.
    thresher run --at-most 20ms --share 50% --reward seconds --arms commands.txt -- sh -c {arm}
    thresher run --at-most 200 --share 95% --arms servers.txt -- ./request.sh {arm}
\b
  The comparison with a baseline, with the results of it that you already have.
    thresher run --baseline current --arms prompts.txt --cases questions.jsonl --baseline-results current.csv -- \\
      ./ask.sh {arm} {case}
\b
  Is something slower than before? Each pull runs an arm and CURRENT, one after the other, and compares the two times.
    thresher run --baseline CURRENT --ratio 1.05 --reward seconds --arms builds.txt -- ./bench.sh {arm}
\b
  An evaluator that is started once per worker, names its arms and answers pulls line by line.
  docs/reference/protocol.md describes the lines; in Python, thresher.evaluator(function) does the rest.
    thresher run --stay --at-least 0.9 --workers 4 -- python evaluate.py
    thresher run --stay --per-process 8 --at-least 0.9 --arms prompts.txt -- node evaluate.mjs
\b
  Which settings gain? evaluate.py prints {"gain": …}, which may be negative.
    thresher run --at-least 0 --bounds -1:1 --arms settings.csv --budget 800 --reward json:gain -- \\
      python evaluate.py --depth {depth} --seed {seed}
\b
  The same on a cluster, with the program in a folder that all workers share; on Ray, with one GPU for each pull:
    thresher run --at-least 0.9 --arms prompts.txt --engine dask:tcp://head:8786 -- /shared/evaluate.sh {arm}
    thresher run --at-least 0.9 --arms models.txt --engine ray:head:6379 --resource GPU=1 -- /shared/train.sh {arm}

Exit status: 0 finished, 1 a --require option was not met, 2 wrong use, 3 could not continue, 130 Ctrl-C, 143 SIGTERM,
129 SIGHUP: the terminal was closed. Ctrl-C and SIGTERM wait for pending pulls; SIGHUP, or a second signal, drops them.
"""
GROUPS = {  # of the options, in the order of the help
    "Common options": "--at-least --at-most --arms --arm --cases --baseline --budget --workers --reward --fresh",
    "The question": "--share --margin --ratio --lower-is-better --baseline-results --bounds --clip --tolerance"
    " --confidence --guarantee --find --policy --seed",
    "Rewards and failures": "--pass --fail --timeout --tries --failure --max-failures --give-up",
    "Where COMMAND runs": "--engine --stay --per-process --resource",
    "The study": "--storage --study --same-code --ignore",
    "The end": "--for --require --format --quiet --help",
}


EXITS = "With exit-code: the exit codes that mean"


class RunCommand(click.Command):
    """Options after COMMAND belong to it, even without ``--``. The help shows the options in groups."""

    allow_interspersed_args = False

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write each group of options under its heading."""
        records = {max(option.opts, key=len): option.get_help_record(ctx) for option in self.get_params(ctx)}
        for heading, names in GROUPS.items():
            with formatter.section(heading):
                formatter.write_dl([record for name in names.split() if (record := records[name]) is not None])


@click.command(cls=RunCommand, help=HELP, epilog=MORE)
@arm_options
@option("--engine WHERE", f"{CHOICES}: where COMMAND runs.", default="threads")
@option("--workers W", "Pulls that run at once.  [default: one per core; for measured times, one]", type=Whole())
@option("--stay", "Start COMMAND once per worker: it reads pulls and answers them, a line of JSON each.")
@option("--per-process N", "With --stay: pulls that are pending in each process.  [default: 1]", type=Whole())
@option(
    "--resource NAME=N",
    "A pull's needs on Dask or Ray, such as GPU=1; repeat it for more.",
    to="resources",
    multiple=True,
)
@option("--timeout DURATION", "Time limit for one run of COMMAND.", type=Duration(), default="1h")
@option("--for DURATION", "Start no pull after this time: 90s, 10m, 2h …", to="seconds", type=Duration())
@option("--give-up DURATION", "Stop when everything has failed for this long.", type=Duration(), default="10m")
@option(
    "--reward HOW",
    "How to read the reward: last-float, exit-code or json:KEY; or seconds or cpu-seconds, to measure COMMAND.",
    default="last-float",
)
@option("--pass CODES", f"{EXITS} reward 1, such as 0,5-7.  [default: 0]", to="passing")
@option("--fail CODES", f"{EXITS} reward 0; others are failures.  [default: 1]", to="failing")
@option(
    "--require WHAT=HOW",
    "Exit with 1 unless all, any or N arms are certified to reach the bar, or not to: reached=all, missed=any …",
    type=Required(),
    multiple=True,
)
@storage_option
@option("--study NAME", "The study's name.  [default: made from the question and the command]", to="name")
@option("--fresh", "Start over; the old study stays in the store under another name.")
@option("--same-code", "Resume although COMMAND, or a file that it names, has changed: it measures the same thing.")
@option(
    "--ignore PATH",
    "A file that COMMAND names and writes, such as a log or a cache; repeat it for more.",
    to="ignored",
    multiple=True,
)
@format_option(*FORMATS, text="How to print the verdict.")
@option("--quiet", "Show no progress.")
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="-- COMMAND [ARGUMENT]...")
def run(command: tuple[str, ...], **given: Any) -> int:
    """Run the study and print its verdict."""
    check_start(command, needs_arms=not (given["stay"] or given["file"] or given["names"]))
    given["resources"] = check_resources(given["resources"])
    with of_engine(given):
        engine = check_name(given["engine"])
        check_workers(given["workers"])
    files = CodeFiles(command, given["ignored"])
    elsewhere = ":" in engine  # on a cluster: whether the program exists there cannot be checked from here
    stays = staying(command, given, engine=engine, elsewhere=elsewhere)
    arms = arms_of(stays, given, engine=engine) if stays else arms_given(given["file"], given["names"])
    given["cases"] = cases_given(given["cases"])
    if elsewhere and command and "/" in command[0] and not command[0].startswith("/"):
        say(f"{command[0]} is resolved in the folders of the cluster's workers; give an absolute path")
    if stays:
        check_placeholders(command, arms)
    evaluate = stays or _command(command, arms, given, elsewhere=elsewhere)
    failure = reward_of_failure(given["failure"])
    here = not elsewhere and files.are_here
    evaluator = evaluator_of(evaluate, failure=failure, here=here)
    asked = question(arms, given, evaluator=evaluator)
    evaluate = evaluate.asked(asked)
    files.fill_in(asked)
    required = given["require"]
    check_requirements(required, arms=asked.contenders)
    found, store = baseline_results(given, asked), store_at(given["storage"])
    measured, how = given["reward"] in MEASURED, {name: given[name] for name in ("fresh", "same_code")}
    kept = Kept(given["name"], store, asked, files, is_measured=measured, results=found, **how)
    cautions = [] if stays else list(command_cautions(command, arms, cases=asked.cases is not None))
    job = Job(kept, evaluate, given, cautions)
    try:
        with of_engine(given), of_exits(given):
            status = until_stopped(job.carry_out)
    except CannotGoOn:
        if job.study and (given["style"] != "table" or peek(job.study, lambda ledger: ledger.told)):
            ran = pulls_made(job.study) > kept.pulls
            print_verdict(job.study.verdict(), given["style"], ran=ran)  # an empty table would not help
            say_kept(job.study)
        raise
    finally:
        evaluate.stop()
    if job.study is None:  # stopped while the engine started
        say("stopped before the first pull")
        return status
    with of_exits(given):
        return conclude(job.study, status, given, required, pulls=kept.pulls)


def _command(command: tuple[str, ...], arms: dict[str, Params], given: dict[str, Any], *, elsewhere: bool) -> Command:
    """A program that is started for every pull."""
    reward = check_reader(given["reward"])
    argv = check_command(command, arms, given["cases"], elsewhere=elsewhere)
    return Command(argv, reward, given["timeout"], *check_exits(reward, given["passing"], given["failing"]))


class Job:
    """One run. The engine starts before the study is created: a failed start leaves no empty study behind."""

    def __init__(
        self, kept: Kept, evaluate: Command | PersistentEvaluator, given: dict[str, Any], cautions: list[str]
    ) -> None:
        self._kept, self._evaluate, self._given, self._cautions = kept, evaluate, given, cautions
        self.study: Study | None = None

    def carry_out(self) -> None:
        """Start the engine, open the study, and run."""
        given = self._given
        limits = Limits(
            seconds=given["seconds"],
            give_up=given["give_up"],
            check=self._kept.files.check,
        )
        is_measured = self._kept.is_measured
        workers = given["workers"] or (1 if is_measured else None)
        workers = workers_of(self._evaluate, workers, given["engine"])
        room_for(workers or 0)
        engine = open_engine(self._evaluate, workers=workers, executor=given["engine"], resources=given["resources"])
        try:
            study = self.study = self._kept.begin()
        except BaseException:
            engine.close(wait=False)
            raise
        for caution in self._cautions:  # only now: what cannot begin needs no warning
            say(f"warning: {caution}")
        with watching(study, quiet=given["quiet"]) as show:
            measured = is_measured and ":" not in given["engine"]  # on this machine
            cautions = Cautions(study, measured=measured, workers=engine.workers)

            def on_progress(progress: Progress) -> None:
                show(progress)
                cautions(progress)

            run_on(engine, study, limits, on_progress)
            cautions.at_the_end()
