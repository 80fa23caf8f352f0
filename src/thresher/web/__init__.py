"""The live page, the HTTP service and the report. Needs the extra ``web``, and is imported only when it is used.

Where to look:

- `server` starts the server. `request_checks` checks every request, and knows tokens and sessions. `refusals` are the
  replies to requests that are refused.
- `api` answers programs, with the `models` of requests and replies. `pages` answers browsers, with the files in
  `assets`.
- `served_studies` keeps the server's studies and queues their writes. Each has a `live_study`, which adds the data of
  pages to a `log_follower`, and an `event_stream`, which sends changes to viewers. `json_shapes` are a study's parts as
  JSON.
- `report` writes a report, with `charts`.
"""
