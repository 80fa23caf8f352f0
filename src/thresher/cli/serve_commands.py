"""The commands of the web extra: the live page with the HTTP API, and a report in one file."""

import importlib
import os
from pathlib import Path
from types import ModuleType
from typing import Any

import click
from click.core import ParameterSource

from ..errors import CannotGoOn, InvalidInput, missing_package
from ..log.store import MemoryStore
from ..run.signals import until_stop_signal
from ..text.files import Kind, check_file_to_write, replacing_file
from .options import (
    Whole,
    name_argument,
    option,
    revision_option,
    scores_option,
    storage_option,
    store_of_option,
    study_of_option,
)
from .output import output_log_records_on_cli, print_lines, put_output, say, say_done, standard_output


def served_module(module: str) -> ModuleType:
    """A module of the web extra. The error says how to install it."""
    try:
        return importlib.import_module(f"..web.{module}", __package__)
    except ModuleNotFoundError as error:
        raise CannotGoOn("extra", "web", *missing_package(error, "web")) from None


@click.command()
@storage_option
@option("--host ADDRESS", "The address to listen on.", default="127.0.0.1")
@option("--port N", "The port; 0 means any free one.", type=Whole(0, 65535), default=8765)
@option("--write", "Let agents create studies, ask and tell. Without this, the server is read-only.")
@option("--token TEXT", "The token for reading.  [default: a new one at every start]", envvar="THRESHER_TOKEN")
@option(
    "--write-token TEXT",
    "The token for writing and reading, with --write.  [default: a new one at every start]",
    envvar="THRESHER_WRITE_TOKEN",
)
@scores_option
@option("--allow-host NAME", "A host name that users reach it by.", to="allowed", multiple=True)
@option("--tls-cert FILE", "Serve HTTPS with this certificate (PEM).")
@option("--tls-key FILE", "The certificate's key (PEM), if it is not in the same file.")
@click.pass_context
def serve(context: click.Context, /, storage: str | None, scores: tuple[object, ...], **options: Any) -> None:
    """Serve a live page of the studies in a store, and an HTTP API for agents in any language.

    The first line of output is the address, with the token for reading. With --write, the second line has the token
    for writing. Ctrl-C stops the server; studies and their agents are not affected.

    Examples:
      thresher serve
      thresher serve --storage sqlite:///prompts.db --write --port 9000
      THRESHER_WRITE_TOKEN=a-long-secret thresher serve --write
      thresher serve --host 0.0.0.0 --allow-host box.example --tls-cert box.pem
    """
    if not options["write"] and context.get_parameter_source("write_token") is ParameterSource.COMMANDLINE:
        raise InvalidInput("write token", rule="has no effect on a read-only server", remedy="add --write")
    server, store = served_module("server"), store_of_option(storage)
    store.studies()  # fail now if the store cannot be read, not at the first request
    reader = None if isinstance(store, MemoryStore) else store_of_option(storage)
    with output_log_records_on_cli(say, "thresher", "asyncio"):
        server.run_server(store, server.Options(**options), put_output, reader=reader)


@click.command()
@name_argument
@option(
    "--out FILE",
    "Where to write it; - is standard output.",
    type=click.Path(dir_okay=False, path_type=Path),
    required=True,
)
@revision_option
@option("--force", "Overwrite any FILE. Without this, only an earlier report is overwritten.")
@storage_option
def report(name: str, out: Path, revision: int | None, force: bool, storage: str | None) -> int:
    """Write a report of study NAME: its verdict, figures, guarantee and specification, in one file that works offline.

    FILE is replaced as a whole or not at all.

    Examples:
      thresher report prompts --out report.html
      thresher report prompts --out -
      thresher report prompts --out before.html --revision 2
    """
    reports = served_module("report")
    texts: list[str] = []  # for standard output
    kind = Kind("a report that thresher wrote", lambda head: reports.MARK in head)

    def work() -> None:
        if str(out) == "-":
            standard_output()  # raises if it is closed
            texts.append(reports.report(study_of_option(name, storage, revision=revision)))
            return
        _check_is_no_store(out, storage)
        # before the store is opened: closing its file would release SQLite's locks
        check_file_to_write(out, kind, force=force)
        text: str = reports.report(study_of_option(name, storage, revision=revision))
        with replacing_file(out, kind, force=force) as partial:
            partial.write_text(text, encoding="utf-8")

    status = until_stop_signal(work)
    if status:
        say("stopped; nothing was written")
    elif str(out) == "-":
        print_lines(text.rstrip("\n") for text in texts)
    else:
        say_done(name, f"report written to {out}")
    return status


def _check_is_no_store(out: Path, storage: str | None) -> None:
    """Raise if the report would replace the store that it reads, or one of SQLite's files beside it."""
    store = getattr(store_of_option(storage), "path", None)
    for file in [Path(f"{store}{end}") for end in ("", "-wal", "-shm", "-journal", "-lock")] if store else []:
        if os.path.realpath(out) == str(file) or (out.exists() and file.exists() and out.samefile(file)):
            rule = f"belongs to the store that the report reads, {store}"
            raise InvalidInput("file", str(out), rule, "name another file; --force does not overwrite a store")
