"""The live page, the HTTP service and the report. Needs the extra ``web``, and is imported only when it is used.

Where to look:

- `connections` accepts connections, `request_checks` checks every request, and `access` knows tokens and sessions.
  `app` is the application that they protect, and `refusals` is what a client gets instead of an answer.
- `api` answers programs, with the `models` of requests and replies. `pages` answers browsers.
- `served_studies` keeps the server's studies. For each there is a `watched` study, which adds to `follow` what pages
  show, and a `feed`, which sends changes to viewers. `shapes` and `arm` say what a study looks like as JSON.
- `standalone` writes a report, with `charts`. `assets` are the files that pages and reports are made of.
- `serving` starts the server.
"""

from ..text.logs import log as log  # it masks secrets in everything that the server logs
