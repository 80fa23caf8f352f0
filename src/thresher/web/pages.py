"""The pages: templates with a few values. All values are escaped, because names are text."""

from typing import Any
from urllib.parse import quote

from fastapi import APIRouter
from fastapi.responses import FileResponse, HTMLResponse, Response

from ..core import sentences
from ..core.spec import Spec, spec_from_json
from ..errors import DamagedStudy, InvalidInput
from ..log.reader import read_log_section
from ..log.store import Store
from .api import Arm, Name
from .assets import PLOTLY, PLOTLY_VERSION, STATIC, fill_asset_template
from .json_shapes import intervals_json
from .refusals import Refusal
from .served_studies import ServedStudies

MEDIA_TYPES = {".css": "text/css", ".js": "text/javascript", ".json": "application/json", ".svg": "image/svg+xml"}
FILES = {file.name: file for file in STATIC.iterdir() if file.suffix in MEDIA_TYPES}
ONE_DAY = {"Cache-Control": "private, max-age=86400"}
SCRIPT = f"/static/plotly.js?v={PLOTLY_VERSION}"  # a new version has a new address, so this file never changes
FOREVER = {"Cache-Control": "private, max-age=31536000, immutable"}


def _spec(store: Store, name: str) -> Spec | None:
    """The specification of a study, from its first event. None if there is none, or it is invalid."""
    try:
        events = read_log_section(store, name, 0, 1)
        return spec_from_json(events[0].spec) if events and events[0].spec else None
    except (InvalidInput, DamagedStudy):
        return None


def pages_router(served: ServedStudies, *, write: bool) -> APIRouter:
    pages = APIRouter(include_in_schema=False)

    def page(name: str, **values: Any) -> HTMLResponse:
        mode = "agents may write" if write else "read-only"
        return HTMLResponse(fill_asset_template(name, mode=mode, plotly=SCRIPT, **values))

    @pages.get("/")
    def studies() -> Response:
        return page("studies")

    @pages.get("/study/{study}")
    def study(study: Name) -> Response:
        spec = None if served.known_study(study) else _spec(served.reader, study)
        texts = {"answer": "Reading the log; the answer follows.", "spent": "", "origin": ""}
        if spec is None:  # it was read before, or something is wrong with it
            live = served.live_study(study)
            spec, head = live.follower.ledger.spec, live.head()
            texts = {"answer": head["answer"], "spent": head["spent"], "origin": head["origin"] or ""}
        texts |= {"question": sentences.question_sentence_of(spec), "intervals": intervals_json(spec)}
        return page("study", study=study, address=quote(study, safe=""), **texts)

    @pages.get("/study/{study}/arm/{arm}")
    def arm(study: Name, arm: Arm) -> Response:
        served.live_study(study).read(lambda ledger: ledger.spec.arm(arm))  # an unknown arm is an error
        return page("arm", study=study, arm=arm, address=quote(study, safe=""), arm_address=quote(arm, safe=""))

    @pages.get("/docs")
    def docs() -> Response:
        return page("docs")

    @pages.get("/static/plotly.js")
    def plotly_js() -> Response:
        return FileResponse(PLOTLY, media_type="text/javascript", headers=FOREVER)

    @pages.get("/static/{file}")
    def static(file: Name) -> Response:
        if file not in FILES:
            raise Refusal(404, "file", file, "is not here", "reload the page")
        return FileResponse(
            FILES[file], media_type=MEDIA_TYPES[FILES[file].suffix], headers={"Cache-Control": "no-cache"}
        )

    @pages.get("/favicon.ico")
    def icon() -> Response:
        return FileResponse(FILES["icon.svg"], media_type=MEDIA_TYPES[".svg"], headers=ONE_DAY)

    return pages
