"""The live page and the HTTP service. Needs the extra ``web``; nothing here is imported before it is asked for."""

from ..text.logs import log as log  # which takes the secrets out of whatever the server logs
