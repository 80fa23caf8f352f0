"""Replies in JSON."""

import json
from typing import Any

from fastapi.responses import JSONResponse


class Json(JSONResponse):
    """JSON in ASCII: parameters may hold half characters, which JSON can carry and UTF-8 cannot."""

    def render(self, content: Any) -> bytes:
        """The body."""
        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode()
