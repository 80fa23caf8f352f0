"""JSON as a reply. Not in shapes.py: figures and reports use that, and need no server, which takes long to import."""

import json
from typing import Any

from fastapi.responses import JSONResponse


class Json(JSONResponse):
    """A reply in ASCII: parameters may hold half characters, which JSON can carry and UTF-8 cannot."""

    def render(self, content: Any) -> bytes:
        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode()
