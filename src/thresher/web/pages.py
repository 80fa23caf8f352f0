"""The pages: plain files with a few places to fill in. All values are escaped: names are text."""

import html
import string
from functools import cache
from pathlib import Path
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
from .gate import segment
from .house import House
from .library import VERSION, plotly_script
from .names import breakable
from .refusals import Refusal

STATIC = Path(__file__).parent / "static"
KINDS = {".css": "text/css", ".js": "text/javascript", ".json": "application/json", ".svg": "image/svg+xml"}
SHELF = {file.name: file for file in STATIC.iterdir() if file.suffix in KINDS}
KEEP = {"Cache-Control": "private, max-age=86400"}
PLOTLY = f"/static/plotly.js?v={VERSION}"  # a new version has a new address, so this file never changes
FOREVER = {"Cache-Control": "private, max-age=31536000, immutable"}
Name = Annotated[str, PathParam(), AfterValidator(segment)]


@cache
def _template(name: str) -> string.Template:
    head = (STATIC / "head.html").read_text()
    return string.Template((STATIC / f"{name}.html").read_text().replace("$head\n", head))


def _page(name: str, **values: Any) -> HTMLResponse:
    filled = {key: html.escape(str(value)) for key, value in values.items()}
    filled |= {f"{key}_name": breakable(values[key]) for key in ("study", "arm") if key in values}
    return HTMLResponse(_template(name).substitute(filled))


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
        words = {"question": asked, "answer": answer, "origin": origin, "mode": mode, "plotly": PLOTLY}
        return _page("study", study=study, address=quote(study, safe=""), **words)

    @pages.get("/study/{study}/arm/{arm}")
    def arm(study: Name, arm: Name) -> Response:
        house.live(study).read(lambda ledger: ledger.spec.arm(arm))  # an unknown arm is an error
        addresses = {"address": quote(study, safe=""), "arm_address": quote(arm, safe="")}
        return _page("arm", study=study, arm=arm, mode=mode, plotly=PLOTLY, **addresses)

    @pages.get("/docs")
    def docs() -> Response:
        return _page("docs", mode=mode)

    @pages.get("/static/plotly.js")
    def plotly_js() -> Response:
        return FileResponse(plotly_script(), media_type="text/javascript", headers=FOREVER)

    @pages.get("/static/{file}")
    def static(file: Name) -> Response:
        if file not in SHELF:
            raise Refusal(404, "file", file, "is not here", "reload the page")
        return FileResponse(SHELF[file], media_type=KINDS[SHELF[file].suffix], headers={"Cache-Control": "no-cache"})

    @pages.get("/favicon.ico")
    def icon() -> Response:
        return FileResponse(SHELF["icon.svg"], media_type=KINDS[".svg"], headers=KEEP)

    return pages
