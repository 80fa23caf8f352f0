"""The live page and the HTTP service. Needs the extra ``web``; nothing here is imported before it is needed."""

from ..text.logs import log as log  # it masks secrets in everything that the server logs
