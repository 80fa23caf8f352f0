"""The live page and the HTTP service. Needs the extra ``web``; nothing here is imported before it is asked for."""
