"""The HTTP interface: the functions of the library, with the same rules.

Handlers that read run on their own threads. Writes go through `ServedStudies.write`. A study is thread-safe.
"""

import json
from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Body, Depends, Header, Path, Query, Response
from fastapi.responses import JSONResponse, StreamingResponse
from pydantic import AfterValidator
from starlette.concurrency import run_in_threadpool

from ..core import checks
from ..core.checks import checked_finite
from ..core.pulls import pull_id_in, pull_row_json
from ..core.revisions import revision_depends
from ..core.state import State
from ..create import create_from_spec
from ..depends import VERSION
from ..errors import shown
from ..log.reader import read_log_section
from ..study import Exchanged, Study, Telling, exchange_in_study, peek_study
from ..text.escapes import unescape_slashes
from . import models
from .event_stream import event_stream_pieces
from .json_shapes import event_json_shape
from .live_study import live_study_arm_json
from .refusals import Refusal, refusal_of_unknown_parameters
from .served_studies import ServedStudies

MOST_EVENTS = 10_000  # in one reply
MOST_CASES = 1000
LONGEST_NAME = 100  # characters of an agent's name
Name = Annotated[
    str,
    Path(description="The study's name; slashes in it as %2F.", min_length=1),
    AfterValidator(unescape_slashes),
]
Arm = Annotated[str, Path(description="The arm's name.", min_length=1), AfterValidator(unescape_slashes)]


class ApiJson(JSONResponse):
    """A reply in ASCII, because parameters may have lone surrogates, which JSON can carry and UTF-8 cannot."""

    def render(self, content: Any) -> bytes:
        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode()


def _problems(*codes: int) -> dict[int | str, dict[str, Any]]:
    """Error replies in the description. Only one names the model, because FastAPI makes a validator for each."""
    common = (400, 401, 403, 404, 408, 413, 415, 421, 429, 500, 503)
    schema = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Problem"}}}}
    return {422: {"model": models.Problem}, **dict.fromkeys((*common, *codes), schema)}


def api_agent_name(
    thresher_agent: Annotated[
        str | None, Header(description="The agent's name: the log has it as http:NAME.", max_length=4 * LONGEST_NAME)
    ] = None,
) -> str | None:
    """The agent's name for the log. None means the server's own."""
    if thresher_agent is None:
        return None
    try:
        name = thresher_agent.encode("latin-1").decode()
    except UnicodeError:
        raise Refusal(422, "Thresher-Agent", None, "must be UTF-8", "send another name") from None
    if not 1 <= len(name) <= LONGEST_NAME or not name.isprintable():
        rule = f"must be printable, with 1 to {LONGEST_NAME} characters"
        raise Refusal(422, "Thresher-Agent", name, rule, "send another name")
    return f"http:{name}"


Agent = Annotated[str | None, Depends(api_agent_name)]


def api_router(served: ServedStudies) -> APIRouter:
    api = APIRouter(prefix="/api", responses=_problems(), dependencies=[Depends(refusal_of_unknown_parameters)])
    _add_readers(api, served)
    _add_writers(api, served)
    return api


def _add_readers(api: APIRouter, served: ServedStudies) -> None:
    @api.get("/studies", response_model=models.Studies)
    def studies() -> Any:
        """The names of all studies."""
        return ApiJson({"format": 1, "studies": served.reader.studies()})

    @api.get("/studies/{study}", response_model=models.Summary)
    def study(study: Name) -> Any:
        """The question, the answer so far, what it took and what is left."""
        return ApiJson(served.live_study(study).head())

    @api.get("/studies/{study}/verdict")
    def verdict(study: Name) -> Any:
        """The verdict, as the library and the command line write it."""
        return ApiJson(served.live_study(study).verdict().to_dict())

    @api.get("/studies/{study}/events", response_model=models.Events)
    def events(
        study: Name,
        after: Annotated[int, Query(ge=0, le=10**15)] = 0,
        limit: Annotated[int, Query(ge=1, le=MOST_EVENTS)] = 1000,
    ) -> Any:
        """The log after an event, oldest first."""
        live = served.live_study(study)
        page = read_log_section(served.reader, study, after, limit)
        last = page[-1].seq if page else after
        events = live.read(lambda ledger: [event_json_shape(event, ledger) for event in page])
        return ApiJson({"format": 1, "events": events, "next": last})

    @api.get("/studies/{study}/arms")
    def arms(study: Name) -> Any:
        """All arms as columns, the history and the last events: what a live page starts with."""
        table = served.live_study(study).table()
        length = {"Content-Length": str(len(table))}
        return StreamingResponse(event_stream_pieces(table), media_type="application/json", headers=length)

    @api.get("/studies/{study}/arms/{arm}")
    def arm(study: Name, arm: Arm) -> Any:
        """One arm: its row, its last rewards, and how its evidence grew."""
        return ApiJson(live_study_arm_json(served.live_study(study), arm))

    @api.get("/studies/{study}/cases", response_model=models.CasesOut)
    def cases(study: Name, limit: Annotated[int, Query(ge=1, le=MOST_CASES)] = 100) -> Any:
        """The hardest cases: by how many arms failed them, or by their mean where rewards are graded."""
        return Response(served.live_study(study).cases(limit), media_type="application/json")

    @api.get(
        "/studies/{study}/stream",
        response_class=StreamingResponse,
        responses={200: {"content": {"text/event-stream": {}}, "description": "Server-sent events."}},
    )
    async def stream(
        study: Name,
        after: Annotated[int, Query(ge=0, le=10**15)] = 0,
        last_event_id: Annotated[str | None, Header()] = None,
    ) -> Any:
        """What changes from now on, as server-sent events; ``after`` is the number that the table had."""
        messages = await served.stream(study, _event_id(last_event_id, after))
        return StreamingResponse(messages, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})


def _event_id(last_event_id: str | None, after: int) -> int:
    """The last event that the client of an interrupted stream knows."""
    if not last_event_id:
        return after
    if not (last_event_id.isascii() and last_event_id.isdecimal() and len(last_event_id) <= 15):
        remedy = "send the id of the last message, or none"
        raise Refusal(400, "Last-Event-ID", last_event_id, "must be the number of an event", remedy)
    return int(last_event_id)


def _add_writers(api: APIRouter, served: ServedStudies) -> None:
    @api.post("/studies", response_model=models.Summary, status_code=201, responses=_problems(409))
    async def create(new: models.NewStudy) -> Any:
        """Create a study."""
        await served.write(
            lambda: create_from_spec(new.name, new.spec(), storage=served.store, if_exists=new.if_exists)
        )
        return ApiJson(await run_in_threadpool(lambda: served.live_study(new.name).head()), 201)

    @api.post("/studies/{study}/ask", response_model=models.Asked)
    async def ask(
        study: Name,
        agent: Agent,
        body: Annotated[models.Ask | None, Body()] = None,
        idempotency_key: Annotated[str | None, Header(min_length=1, max_length=200)] = None,
    ) -> Any:
        """Hand out pulls, of an arm if one is named. Repeating an Idempotency-Key returns the same pulls.

        The guarantee then says that these evaluations may have been repeated.
        """
        request = body or models.Ask()

        def act() -> Any:
            opened = served.writable_study(study)
            return _asked(_exchange(opened, (), request, idempotency_key))

        return ApiJson(await served.write(act, agent))

    @api.post("/studies/{study}/exchange", response_model=models.ExchangedOut, responses=_problems(409))
    async def exchange(
        study: Name,
        body: models.Exchange,
        agent: Agent,
        idempotency_key: Annotated[str | None, Header(min_length=1, max_length=200)] = None,
    ) -> Any:
        """Tell rewards and hand out pulls, in one write: all of it, or nothing if anything is refused.

        The same Idempotency-Key again returns the same pulls, and records the same rewards once.

        Rewards outside the bounds are an error, too: then all rewards are recorded, the arms of those are retired, and
        no pulls are handed out.
        """

        def act() -> Any:
            rewards = [_telling(told) for told in body.rewards]
            exchanged = _exchange(served.writable_study(study), rewards, body, idempotency_key)
            exchanged.raise_outside()
            return {**_asked(exchanged), "late": exchanged.late}

        return ApiJson(await served.write(act, agent))

    @api.post("/studies/{study}/tell", response_model=models.Told, responses=_problems(409))
    async def tell(study: Name, told: models.Tell, agent: Agent) -> Any:
        """Tell a pull's reward, or where pulls are pairs, the arm's and the baseline's.

        Telling the same reward again is accepted; a different one is an error.

        A reward outside the bounds is an error, too, and it retires the pull's arm: nothing is certified about it.
        """

        def act() -> bool:
            exchanged = exchange_in_study(served.writable_study(study), [_telling(told)], 0)
            exchanged.raise_outside()
            return bool(exchanged.late)

        late = await served.write(act, agent)
        rewards = told.reward if isinstance(told.reward, list) else [told.reward]
        numbers = [checked_finite(checks.as_float(reward) or 0.0) for reward in rewards]  # JSON has no infinity
        return ApiJson({"pull": told.pull, "reward": numbers if len(numbers) > 1 else numbers[0], "late": late})

    @api.post("/studies/{study}/renew", response_model=models.Pulls)
    async def renew(study: Name, body: models.Renew, agent: Agent) -> Any:
        """Renew the leases of pulls that are still being worked on."""
        await served.write(lambda: served.writable_study(study).renew(body.pulls, float(body.lease)), agent)
        return ApiJson({"pulls": body.pulls})

    @api.post("/studies/{study}/drop", response_model=models.Pulls, responses=_problems(409))
    async def drop(study: Name, body: models.Drop, agent: Agent) -> Any:
        """Drop pulls. A reward that still arrives is late: it counts in the statistics, not in the certificate."""

        def act() -> None:
            opened = served.writable_study(study)
            # drop none unless all are pulls of this study
            peek_study(opened, lambda ledger: [ledger.state_of(pull_id_in(ledger, pull)) for pull in body.pulls])
            for pull in body.pulls:
                opened.drop(pull, cause=body.cause, reason=body.reason)

        await served.write(act, agent)
        return ApiJson({"pulls": body.pulls})

    @api.post("/studies/{study}/extend", response_model=models.Summary)
    async def extend(study: Name, body: models.Extend, agent: Agent) -> Any:
        """Give the study a larger budget: the new total."""
        await served.write(lambda: served.writable_study(study).extend(budget=body.budget), agent)
        return ApiJson(await run_in_threadpool(lambda: served.live_study(study).head()))


def _telling(told: models.Tell) -> Telling:
    return Telling(told.pull, told.reward, told.repeatable, told.note, told.cost)


def _exchange(study: Study, rewards: Sequence[Telling], asked: models.Ask, key: str | None) -> Exchanged:
    def check(ledger: State) -> None:
        check_version(ledger, asked.version)

    lease = float(asked.lease)
    return exchange_in_study(study, rewards, asked.n, arm=asked.arm, lease=lease, key=key, check=check)


def _asked(exchanged: Exchanged) -> dict[str, Any]:
    return {"pulls": list(map(pull_row_json, exchanged.pulls)), "done": exchanged.done, "wait": exchanged.wait}


def check_version(ledger: State, version: str | None) -> None:
    """Refuse an agent whose code is not that of the study's present revision."""
    needed = revision_depends(ledger.spec).files.get(VERSION)
    if version == needed:
        return
    rule = "the study has none" if needed is None else f"the study's results are those of version {shown(needed)}"
    remedy = "leave it out" if needed is None else 'ask with its code, or create the study with "if_exists": "revise"'
    raise Refusal(409, "version", version, rule, remedy)
