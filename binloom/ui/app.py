"""The pages by their addresses, asked a few at a time, and what a page shows when there is no answer."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from queue import LifoQueue
from typing import Any, Final

from anyio import CapacityLimiter, to_thread
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, Response
from starlette.routing import Route

from binloom.ui import coverage, row, schema, table, timeline, transaction, transactions, undo
from binloom.ui.opened_log import OpenedLog
from binloom.ui.view import Download, View, show
from binloom.ui.words import Words
from ingest.errors import BinloomError, UsageError

VIEWS: Final[dict[str, View]] = {
    "/": timeline.VIEW,
    "/transactions": transactions.VIEW,
    "/transaction": transaction.VIEW,
    "/later": transaction.LATER,
    "/row": row.VIEW,
    "/table": table.VIEW,
    "/table/file": table.FILE,
    "/undo": undo.VIEW,
    "/undo/script": undo.SCRIPT,
    "/undo/left-out": undo.LEFT_OUT,
    "/schema": schema.VIEW,
    "/coverage": coverage.VIEW,
}


@dataclass(frozen=True)
class Failure:
    """Why there is no page."""

    status: int
    title: str
    sentence: str
    hint: str = ""


def application(opened: OpenedLog, failure_of: Callable[[Exception], str]) -> Starlette:
    """Return the pages of a log, which whoever asks may see.

    Parameters
    ----------
    failure_of
        Returns the sentence for an unexpected error, of which it keeps the traceback.
    """
    # A connection of DuckDB answers one question at a time, and the memory of a small machine few.
    logs = (opened, *opened.beside)
    limiter = CapacityLimiter(len(logs))
    # The one that was used last is taken first: another one is opened only while it is busy.
    free = LifoQueue[OpenedLog]()
    for one in reversed(logs):
        free.put(one)

    def page(path: str, view: View) -> Callable[[Request], Any]:
        async def answered(request: Request) -> Response:
            words = Words(request.query_params.multi_items())
            # The end of the process does not wait for a long question.
            return await to_thread.run_sync(
                _answer, path, view, words, free, failure_of, limiter=limiter, abandon_on_cancel=True
            )

        return answered

    def missing(request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 404
        return _failed(
            Failure(status, "No such page", "There is no page at this address.", "Use one of the links above.")
        )

    routes = [Route(path, page(path, view), methods=["GET"]) for path, view in VIEWS.items()]
    return Starlette(routes=routes, exception_handlers={HTTPException: missing})


def _answer(
    path: str, view: View, words: Words, free: LifoQueue[OpenedLog], failure_of: Callable[[Exception], str]
) -> Response:
    opened = free.get()
    try:
        words.assert_known(view.words)
        log = opened.log()
        found = view.answer(log, words, opened)
    except BinloomError as error:
        status, title = (400, "No answer") if isinstance(error, UsageError) else (500, "The log cannot be read")
        # The words of the address are in a form again, with those that the hint asks for.
        asked = (error.hint or "").replace(".", " ").replace(":", " ").replace(",", " ").split()
        fields = [word for word in view.words if (words.has(word) and word != "page") or f"--{word}" in asked]
        return _failed(Failure(status, title, error.message, error.hint or ""), path=path, words=words, fields=fields)
    except Exception as error:
        return _failed(Failure(500, "Something went wrong", failure_of(error)))
    finally:
        free.put(opened)
    if isinstance(found, Download):
        return _sent(found)
    return HTMLResponse(found)


def _failed(failure: Failure, fields: Sequence[str] = (), **form: object) -> Response:
    return HTMLResponse(show("failure.html", failure=failure, fields=fields, selecting={}, **form), failure.status)


def _sent(download: Download) -> Response:
    """Return a file as an answer; it is deleted when it was sent."""
    gone = BackgroundTask(Path.unlink, download.path, missing_ok=True)
    return FileResponse(
        download.path,
        media_type=download.media_type,
        filename=download.name,
        content_disposition_type="attachment",
        background=gone,
    )
