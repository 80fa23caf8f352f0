"""The pages: plain files with a few places to fill in. All values are escaped: names are text."""

from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter
from fastapi import Path as PathParam
from fastapi.responses import FileResponse, HTMLResponse, Response
from pydantic import AfterValidator

from ..core import wording
from ..core.stored import from_json
from ..errors import DamagedStudy, InvalidInput
from ..log.store import Store
from ..log.tail import section
from .assets import PLOTLY, PLOTLY_VERSION, STATIC, filled
from .gate import segment
from .house import House
from .refusals import Refusal

KINDS = {".css": "text/css", ".js": "text/javascript", ".json": "application/json", ".svg": "image/svg+xml"}
SHELF = {file.name: file for file in STATIC.iterdir() if file.suffix in KINDS}
KEEP = {"Cache-Control": "private, max-age=86400"}
SCRIPT = f"/static/plotly.js?v={PLOTLY_VERSION}"  # a new version has a new address, so this file never changes
FOREVER = {"Cache-Control": "private, max-age=31536000, immutable"}
Name = Annotated[str, PathParam(), AfterValidator(segment)]


def _page(name: str, **values: Any) -> HTMLResponse:
    return HTMLResponse(filled(name, **values))


def _asked(store: Store, name: str) -> str | None:
    """The question of a study, from its first event; None: there is none, or it is invalid."""
    try:
        found = section(store, name, 0, 1)
        spec = from_json(found[0].spec) if found and found[0].spec else None
    except (InvalidInput, DamagedStudy):
        return None
    return wording.question_of(spec) if spec else None


def router(house: House, *, write: bool) -> APIRouter:
    pages = APIRouter(include_in_schema=False)
    mode = "agents may write" if write else "read-only"

    @pages.get("/")
    def studies() -> Response:
        return _page("studies", mode=mode)

    @pages.get("/study/{study}")
    def study(study: Name) -> Response:
        asked = None if house.known(study) else _asked(house.reader, study)
        if asked is None:  # it was read before, or something is wrong with it
            head = house.live(study).head()
            asked, answer, origin = head["question"], head["answer"], head["origin"] or ""
        else:
            answer, origin = "Reading the log; the answer follows.", ""
        words = {"question": asked, "answer": answer, "origin": origin, "mode": mode, "plotly": SCRIPT}
        return _page("study", study=study, address=quote(study, safe=""), **words)

    @pages.get("/study/{study}/arm/{arm}")
    def arm(study: Name, arm: Name) -> Response:
        house.live(study).read(lambda ledger: ledger.spec.arm(arm))  # an unknown arm is an error
        addresses = {"address": quote(study, safe=""), "arm_address": quote(arm, safe="")}
        return _page("arm", study=study, arm=arm, mode=mode, plotly=SCRIPT, **addresses)

    @pages.get("/docs")
    def docs() -> Response:
        return _page("docs", mode=mode)

    @pages.get("/static/plotly.js")
    def plotly_js() -> Response:
        return FileResponse(PLOTLY, media_type="text/javascript", headers=FOREVER)

    @pages.get("/static/{file}")
    def static(file: Name) -> Response:
        if file not in SHELF:
            raise Refusal(404, "file", file, "is not here", "reload the page")
        return FileResponse(SHELF[file], media_type=KINDS[SHELF[file].suffix], headers={"Cache-Control": "no-cache"})

    @pages.get("/favicon.ico")
    def icon() -> Response:
        return FileResponse(SHELF["icon.svg"], media_type=KINDS[".svg"], headers=KEEP)

    return pages
