"""``thresher run``: a study whose evaluator is any program."""

import re
import shlex
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import click
from click.core import ParameterSource

from ..core import checks
from ..core.named_items import SHAPES, Params, items_from_list
from ..core.parameters import DEFAULTS
from ..core.state import State
from ..core.verdict import Verdict
from ..errors import CannotGoOn, InvalidInput, StoreFailed, shown
from ..run.command.persistent import PersistentEvaluator
from ..run.command.process import CASE, PULL_FIELDS, Command
from ..run.command.reward import MEASURED
from ..run.engines import CHOICES, check_engine_name, check_engine_workers, open_engine
from ..run.loop import Limits, Progress, run_loop_on
from ..run.signals import until_stop_signal
from ..study import Study, peek_study
from ..text.machine import available_cores
from ..text.phrasing import only_this_many, plural
from ..text.quantities import PERCENT
from . import FINISHED, NOT_MET
from .code_files import CodeFiles
from .error_wording import suggesting_exit_code_in_errors, wording_engine_options_in_errors, written_in_error
from .import_export import import_of_baseline_results
from .live_table import watching_live_table
from .options import (
    FORMATS,
    Duration,
    Whole,
    address_in_storage_option,
    format_option,
    is_kept_by_storage_option,
    option,
    storage_option,
    store_of_option,
)
from .output import print_verdict, say
from .question_options import (
    ARMS_OF_COMMANDS,
    arm_options,
    arms_in_question_options,
    failure_in_question_options,
    question_cases,
    specification_of_question_options,
)
from .resumable_study import (
    ResumableStudy,
    identity_of_run,
    program_of_command,
    resumable_evaluator,
    resumable_pulls,
)
from .run_checks import (
    RunCheckCautions,
    check_run_command,
    check_run_exits,
    check_run_open_files,
    check_run_program,
    check_run_reader,
    check_run_resources,
    check_run_start,
    check_run_words,
    checked_run_placeholders,
)

# With --stay, COMMAND is started once per worker and answers pulls, line by line.

STAY = "--stay"
ANSWERS = 'COMMAND answers {"pull": …, "reward": …} instead'


def run_command_evaluator(
    command: Sequence[str], options: Mapping[str, Any], *, engine: str, elsewhere: bool
) -> PersistentEvaluator | None:
    """The evaluator of ``--stay``, or None without it. Raises if other options do not go with it."""
    if not options["stay"]:
        if options["per_process"] is not None:
            rule = f"has no effect without {STAY}"
            raise InvalidInput("--per-process", options["per_process"], rule, f"add {STAY}")
        return None
    context = click.get_current_context()
    for spelling, name in (("--reward", "reward"), ("--pass", "passing"), ("--fail", "failing")):
        if context.get_parameter_source(name) != ParameterSource.DEFAULT:
            raise InvalidInput(spelling, options[name], f"has no effect with {STAY}", f"leave it out: {ANSWERS}")
    asked = options["per_process"]
    per_process = 1 if asked is None else checks.checked_whole("--per-process", asked, least=1)
    if per_process > 1 and (engine in ("processes", "dask") or engine.startswith("ray")):
        rule = f"a worker of --engine {engine} has one pull at a time"
        raise InvalidInput("--per-process", per_process, rule, "use --engine threads, or more --workers instead")
    check_run_program(command, elsewhere=elsewhere)
    return PersistentEvaluator(tuple(command), options["timeout"], per_process)


def run_command_arms(
    evaluate: PersistentEvaluator, options: Mapping[str, Any], *, engine: str
) -> tuple[dict[str, Params], str | None]:
    """The arms of the options, or those that the evaluator's greeting names, and the version that it names."""
    if options["file"] or options["names"]:
        return arms_in_question_options(options["file"], options["names"]), None
    try:
        named, version = evaluate.arms_named()
        arms = items_from_list(named, "COMMAND's greeting", ARMS_OF_COMMANDS)
        if not arms:
            raise InvalidInput("arms", rule="COMMAND's greeting names none", remedy=SHAPES)
        return arms, version
    finally:
        if engine != "threads":  # pulls are made elsewhere
            evaluate.stop()


def refuse_run_command_placeholders(argv: Sequence[str], arms: Mapping[str, Params]) -> None:
    """Raise if COMMAND has a placeholder: with --stay, it is started before there is a pull."""
    known = {*PULL_FIELDS, CASE, *(key for params in arms.values() for key in params)}
    for name in sorted(checked_run_placeholders(*argv)):
        if name in known or name.startswith(f"{CASE}."):
            rule = f"has no value with {STAY}: COMMAND is started once, for all pulls"
            remedy = "leave it out: COMMAND reads it from each pull's line"
            raise InvalidInput("placeholder", f"{{{name}}}", rule, remedy)


def run_command_pulls_at_once(evaluate: object, workers: int | None, engine: str) -> int | None:
    """The workers of an engine. With ``--per-process``, each process has several pulls, and so counts as several."""
    if isinstance(evaluate, PersistentEvaluator) and evaluate.per_process > 1 and engine == "threads":
        return (workers or available_cores()) * evaluate.per_process
    return workers


class Requirement(NamedTuple):
    """A value of ``--require``."""

    side: str  # reached or missed
    least: str  # all, any, or a number


class RunCommandRequirement(click.ParamType[Requirement]):
    """How ``--require`` is read.

    >>> RunCommandRequirement().convert("reached=3", None, None)
    Requirement(side='reached', least='3')
    """

    name = "requirement"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Requirement:
        """The requirement in the text."""
        parts = re.fullmatch(r"(reached|missed)=(all|any|[1-9][0-9]{0,17})", str(value).strip())
        if parts is None:
            rule = "must be reached or missed, =, and all, any or a number of arms; write reached=all, for example"
            self.fail(f"{shown(value, 60)} {rule}", param, ctx)
        return Requirement(parts[1], parts[2])


HELP = """Find out which arms reach a bar by running COMMAND many times, several at once.

Each run replaces {arm} in COMMAND with an arm. COMMAND prints the reward: the last number on its last line, or
pass or fail, or True or False, as its last word. The same command line resumes the study after Ctrl-C or a crash.

Examples:
  Which prompts pass 90 % of my cases, give or take 2 points? ask.py runs one
  case and prints 1 or 0.
    thresher run --at-least 90% --tolerance 2% --arms prompts.txt \\
      --cases cases.jsonl -- python ask.py {arm} {case}

  Which tests are flaky? Exit 0 is a pass, exit 1 a failure; the bar is 99 %.
    thresher run --at-least 0.99 --arms tests.txt --reward exit-code -- \\
      pytest -q {arm}

  Which commands stay within 50 ms? thresher measures them.
    thresher run --at-most 50ms --reward seconds --arms commands.txt -- \\
      sh -c {arm}

  Which prompts beat the current one by 2 %, on the same cases?
    thresher run --baseline current --margin 2% --arms prompts.txt \\
      --cases cases.jsonl -- ./ask.sh {arm} {case}
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

With --cases, each run evaluates one case of an eval set, and the answers are about exactly these cases: {case} is its
name, or its number from 0, {case.KEY} a parameter in the cases file, and THRESHER_CASE is in the environment. No arm
sees a case twice, so a study without --budget ends after arms × cases pulls at the latest, and usually long before.

The study is stored in thresher.db, under the name of the program: ask for ask.py. The same command line resumes it
after Ctrl-C, a crash or a reboot; a larger --budget extends it. Other machines join with the same postgresql:// URL.

A result holds as long as nothing changes on which it depends: the files that COMMAND names, those of --depends, and
the arm's and the case's parameters. Run again after any change, such as one more arm, an edited prompt or another bar:
the study gets its next revision, which keeps what holds, evaluates the rest, and says so first. If ask.py itself
changes, nothing holds, unless you say --same-code. Name modules that ask.py imports with --depends, and files that
COMMAND writes with --ignore. --fresh takes nothing over.

More examples:
  Which of 300 prompts pass, if 5 % of those listed may be wrong?
    thresher run --at-least 0.9 --arms prompts.txt --cases 500 \\
      --guarantee rate -- ./evaluate.sh {arm} {case}

  Find one prompt that passes.
    thresher run --at-least 0.9 --arms prompts.txt --cases 500 --find 1 -- \\
      ./evaluate.sh {arm} {case}

  Is the median within 20 ms?
    thresher run --at-most 20ms --share 50% --reward seconds \\
      --arms commands.txt -- sh -c {arm}

  Which servers answer 95 % of requests within 200 ms? request.sh prints
  milliseconds.
    thresher run --at-most 200 --share 95% --arms servers.txt -- \\
      ./request.sh {arm}

  Is something slower than before? Each pull runs an arm and CURRENT, one
  after the other, and compares the two times.
    thresher run --baseline CURRENT --ratio 1.05 --reward seconds \\
      --arms builds.txt -- ./bench.sh {arm}

  Compare with a baseline whose results you already have.
    thresher run --baseline current --baseline-results current.csv \\
      --arms prompts.txt --cases cases.jsonl -- ./ask.sh {arm} {case}

  Which settings gain? evaluate.py prints {"gain": …}, which may be negative.
    thresher run --at-least 0 --bounds -1:1 --arms settings.csv --budget 800 \\
      --reward json:gain -- python evaluate.py --depth {depth} --seed {seed}

  Start the program once per worker: it names its arms and answers pulls line
  by line. docs/reference/protocol.md describes the lines; in Python,
  thresher.evaluator(function) does the rest.
    thresher run --stay --at-least 0.9 --workers 4 -- python evaluate.py
    thresher run --stay --per-process 8 --at-least 0.9 --arms prompts.txt -- \\
      node evaluate.mjs

  Run on a cluster, with the program in a folder that all workers share; on
  Ray, with one GPU for each pull.
    thresher run --at-least 0.9 --arms prompts.txt \\
      --engine dask:tcp://head:8786 -- /shared/evaluate.sh {arm}
    thresher run --at-least 0.9 --arms models.txt --engine ray:head:6379 \\
      --resource GPU=1 -- /shared/train.sh {arm}

For tests of pytest, its plugin makes hundreds of runs in the time of one: pip install 'thresher[pytest]', then
pytest --thresher 0.99. Without it, any status other than 0 and 1, such as pytest's 4 for a test that does not
exist, is a failed pull and never a reward.

Exit status: 0 finished, 1 a --require option was not met, 2 wrong use, 3 could not continue, 130 Ctrl-C, 143 SIGTERM,
129 SIGHUP: the terminal was closed. Ctrl-C and SIGTERM wait for pending pulls; SIGHUP, or a second signal, drops them.
"""
GROUPS = {  # of the options, in the order of the help
    "Common options": "--at-least --at-most --tolerance --arms --arm --cases --baseline --budget --workers --reward"
    " --fresh",
    "The question": "--share --margin --ratio --lower-is-better --baseline-results --bounds --clip --confidence"
    " --guarantee --find --policy --seed",
    "Rewards and failures": "--pass --fail --timeout --tries --failure --max-failures --give-up",
    "Where COMMAND runs": "--engine --stay --per-process --resource",
    "The study": "--storage --study --depends --same-code --ignore",
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
    "Exit with 1 unless all, any or N arms are certified to reach the bar, or to miss it: reached=all, missed=any …",
    type=RunCommandRequirement(),
    multiple=True,
)
@storage_option
@option("--study NAME", "The study's name.  [default: that of the program, such as ask for ask.py]", to="name")
@option("--fresh", "Start over: a revision that takes no results over.")
@option("--same-code", "Keep all results although COMMAND or its code has changed: it measures the same thing.")
@option(
    "--depends PATH",
    "A file or folder on which results depend, such as a module; it may have {arm} or {case}. Repeat it for more.",
    to="depends",
    multiple=True,
)
@option(
    "--ignore PATH",
    "A file that COMMAND names and writes, such as a log or a cache; repeat it for more.",
    to="ignored",
    multiple=True,
)
@format_option(*FORMATS, text="How to print the verdict.")
@option("--quiet", "Show no progress.")
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="-- COMMAND [ARGUMENT]...")
def run(command: tuple[str, ...], **options: Any) -> int:
    """Check everything, run the study and print its verdict."""
    check_run_start(command, needs_arms=not (options["stay"] or options["file"] or options["names"]))
    options["resources"] = check_run_resources(options["resources"])
    with wording_engine_options_in_errors(options):
        engine = check_engine_name(options["engine"])
        check_engine_workers(options["workers"])
    files = CodeFiles(command, options["ignored"], options["depends"])
    elsewhere = ":" in engine  # on a cluster: whether the program exists there cannot be checked from here
    persistent = run_command_evaluator(command, options, engine=engine, elsewhere=elsewhere)
    if persistent:
        arms, files.version = run_command_arms(persistent, options, engine=engine)
    else:
        arms = arms_in_question_options(options["file"], options["names"])
    identity = identity_of_run(command, options["cases"]) if command else ""
    options["cases"] = question_cases(options["cases"])
    if elsewhere and command and "/" in command[0] and not command[0].startswith("/"):
        say(f"{command[0]} is resolved in the folders of the cluster's workers; give an absolute path")
    evaluate: Command | PersistentEvaluator
    if persistent:
        refuse_run_command_placeholders(command, arms)
        evaluate = persistent
    else:
        reward = check_run_reader(options["reward"])
        argv = check_run_command(command, arms, options["cases"], elsewhere=elsewhere)
        codes = check_run_exits(reward, options["passing"], options["failing"])
        evaluate = Command(argv, reward, options["timeout"], *codes)
    if options["fresh"] and options["same_code"]:
        raise click.UsageError("--same-code keeps all results, and --fresh takes none over; leave one of them out")
    failure, here = failure_in_question_options(options["failure"]), not elsewhere and files.are_here
    spec = specification_of_question_options(
        arms, options, evaluator=resumable_evaluator(evaluate, failure=failure, here=here)
    )
    evaluate = persistent.for_study(spec, files.version) if persistent else evaluate.for_study(spec)
    files.fill_in(spec)
    refuse_run_command_requirements(options["require"], arms=spec.contenders)
    resumable = ResumableStudy(
        options["name"],
        store_of_option(options["storage"]),
        spec,
        files,
        program=program_of_command(command),
        identity=identity,
        fresh=options["fresh"],
        same_code=options["same_code"],
        is_measured=options["reward"] in MEASURED,
        results=import_of_baseline_results(options, spec),
    )
    cautions = [] if persistent else list(check_run_words(command, arms, cases=spec.cases is not None))
    job = RunCommandJob(resumable, evaluate, options, cautions)
    try:
        with wording_engine_options_in_errors(options), suggesting_exit_code_in_errors(options):
            status = until_stop_signal(job.run)
    except CannotGoOn:
        if job.study and (options["style"] != "table" or peek_study(job.study, lambda ledger: ledger.told)):
            ran = resumable_pulls(job.study) > resumable.pulls
            print_verdict(job.study.verdict(), options["style"], ran=ran)  # an empty table would not help
            say_run_kept(job.study)
        raise
    finally:
        evaluate.stop()
    if job.study is None:  # stopped while the engine started
        say("stopped before the first pull")
        return status
    with suggesting_exit_code_in_errors(options):
        return conclude_run_command(job.study, status, options, pulls=resumable.pulls, seconds=job.seconds)


class RunCommandJob:
    """One run. The engine starts before the study is created, so a failed start leaves no empty study behind."""

    def __init__(
        self,
        resumable: ResumableStudy,
        evaluate: Command | PersistentEvaluator,
        options: Mapping[str, Any],
        cautions: Sequence[str],
    ) -> None:
        self._resumable, self._evaluate, self._options, self._cautions = resumable, evaluate, options, cautions
        self.study: Study | None = None
        self.seconds = 0.0  # that the pulls took

    def run(self) -> None:
        """Start the engine, open the study, and make pulls until the end."""
        options, is_measured = self._options, self._resumable.is_measured
        limits = Limits(seconds=options["seconds"], give_up=options["give_up"], check=self._resumable.files.check)
        workers = options["workers"] or (1 if is_measured else None)
        workers = run_command_pulls_at_once(self._evaluate, workers, options["engine"])
        check_run_open_files(workers or 0)
        engine = open_engine(
            self._evaluate, workers=workers, executor=options["engine"], resources=options["resources"]
        )
        try:
            study = self.study = self._resumable.begin()
        except BaseException:
            engine.close(wait=False)
            raise
        for caution in self._cautions:  # a run that cannot begin needs no warning
            say(f"warning: {caution}")
        if options["seconds"] is None and (hint := peek_study(study, endless_run_command)):
            say(hint)
        with watching_live_table(study, quiet=options["quiet"]) as show:
            is_here = ":" not in options["engine"]
            cautions = RunCheckCautions(study, measured=is_measured and is_here, workers=engine.workers)

            def on_progress(progress: Progress) -> None:
                show(progress)
                cautions(progress)

            began = time.monotonic()
            try:
                run_loop_on(engine, study, limits, on_progress)
            finally:
                self.seconds = time.monotonic() - began
            cautions.at_the_end()


def endless_run_command(ledger: State) -> str | None:
    """What a run that may never end should hear, once; None: it will end."""
    spec = ledger.spec
    if not ledger.certifies or ledger.done or ledger.budget is not None or spec.cases is not None or spec.tolerance:
        return None
    is_share = spec.share is not None or spec.unit == PERCENT or spec.bounds == DEFAULTS["bounds"]
    low, high = spec.span
    example = "2%" if is_share and spec.limits == (0.0, 1.0) else written_in_error((high - low) / 50)
    return (
        "an arm exactly on the bar would never be settled, and there is no --budget: with a tolerance, such as"
        f" --tolerance {example}, either answer is right that near the bar"
    )


# The end of a run: what it required, the verdict, what to do next, and the exit status.


def refuse_run_command_requirements(requirements: Sequence[Requirement], *, arms: int) -> None:
    """Raise if a requirement names more arms than there are."""
    for side, least in requirements:
        if least.isdigit() and int(least) > arms:
            raise InvalidInput("--require", f"{side}={least}", only_this_many(arms, "arm"), "require fewer, or all")


def are_run_command_requirements_met(verdict: Verdict, requirements: Sequence[Requirement]) -> bool:
    """Whether the requirements hold; says on standard error which do not. Nothing is required of the baseline."""
    are_met, arms = True, len(verdict.rows) - (verdict.baseline is not None)
    for side, least in requirements:
        option, count = f"--require {side}={least}", len(verdict.reached if side == "reached" else verdict.missed)
        if count < ({"all": arms, "any": 1}.get(least) or int(least)):
            are_met = False
            verb = "reach" if side == "reached" else "miss"
            if verdict.confidence is not None:
                answer = f"{'is' if count == 1 else 'are'} certified to {verb} the bar"
            else:
                answer = f"{verb}{'es' if count == 1 else ''} the bar"
            say(f"{option}: {count:,} of {plural(arms, 'arm')} {answer}")
        elif verdict.told == verdict.earlier + verdict.imported:
            say(f"{option}: met by {'earlier runs' if verdict.earlier else 'imported results'}; nothing new was run")
    return are_met


def conclude_run_command(study: Study, status: int, options: Mapping[str, Any], *, pulls: int, seconds: float) -> int:
    """Print the verdict, say what to do next, and return the exit status.

    Earlier runs had made ``pulls`` pulls; this one took so many ``seconds``.
    """
    try:
        verdict, ran = study.verdict(), resumable_pulls(study) > pulls
        if ran and not verdict.earlier and not verdict.imported:
            verdict = replace(verdict, seconds=seconds)
    except StoreFailed as error:
        if status == FINISHED:
            raise
        say(f"stopped; the verdict so far cannot be read: {error}")
        return status
    print_verdict(verdict, options["style"], ran=ran)
    if status != FINISHED and verdict.done and not verdict.pending:
        say("stopped, when the study had just finished: this is its verdict")
        say_run_kept(study)
        return status
    if status != FINISHED:
        say(f"stopped; {_so_far(study)}")
        return status
    if not verdict.told:
        reason = next((row.reason for row in verdict.rows if row.reason), None) or _last_reason(study)
        raise CannotGoOn("run", rule=f"no pull gave a reward, the last: {reason}", remedy="fix the command")
    if options["seconds"] is not None and not verdict.done:
        say(f"stopped, because the time of --for is over; {_so_far(study)}")
    elif verdict.cases or verdict.earlier < verdict.told:  # otherwise the first line said where the study is
        say_run_kept(study, cases=bool(verdict.cases))
    return FINISHED if are_run_command_requirements_met(verdict, options["require"]) else NOT_MET


def say_run_kept(study: Study, *, cases: bool = False) -> None:
    """Say where a stored study is, its name, and which command shows more."""
    if is_kept_by_storage_option(study):
        name = shlex.quote(study.name)
        command = f"cases {name} lists the hardest cases" if cases else f"verdict {name} prints this again"
        say(f"kept as study {shown(study.name)} in {address_in_storage_option(study.store)}; thresher {command}")


def _last_reason(study: Study) -> str:
    """Why the last pull was dropped. No row has this reason if the pull was lost: that is no failure of its arm."""
    dropped = [event for event in study.events() if event.kind == "dropped"]
    return (dropped[-1].reason or "no reason was given") if dropped else "no pull was made"


def _so_far(study: Study) -> str:
    """A sentence about a verdict that comes before the end of its study."""
    if is_kept_by_storage_option(study):
        return f"this is the verdict so far of study {shown(study.name)}, and the same command resumes it"
    return "this is the verdict so far, and nothing was stored: a new run starts over"
