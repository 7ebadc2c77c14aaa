"""An agent's client of `binloom mcp`: that of the official SDK, beside a real process."""

import asyncio
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from mcp import Client, StdioServerParameters
from mcp_types import CallToolResult, Tool

from tests.support.patience import PATIENCE_SECONDS
from tests.support.places import PROJECT

PROGRAM = "from binloom.cli import main; main()"


class Agent:
    """A client in a thread of its own, so that tests need not be asynchronous."""

    def __init__(self, client: Client, loop: asyncio.AbstractEventLoop) -> None:
        self._client, self._loop = client, loop

    @property
    def instructions(self) -> str:
        return self._client.instructions or ""

    def tools(self) -> list[Tool]:
        return self._now(self._client.list_tools()).tools

    def call(self, tool: str, **arguments: Any) -> CallToolResult:
        return self._now(self._client.call_tool(tool, arguments))

    def ask(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Return the object that a tool answers with."""
        result = self.call(tool, **arguments)
        assert not result.is_error and result.structured_content is not None, result.content
        return result.structured_content

    def refusal(self, tool: str, **arguments: Any) -> str:
        """Return the sentence with which a tool refuses a question."""
        result = self.call(tool, **arguments)
        assert result.is_error and result.structured_content is None
        (content,) = result.content
        return content.text  # type: ignore[union-attr]

    def _now(self, question: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(question, self._loop).result(PATIENCE_SECONDS)


@contextmanager
def agent(*options: object, env: Mapping[str, str]) -> Iterator[Agent]:
    """Give a client of a server with some options."""
    started: list[Agent | BaseException] = []
    is_ready = threading.Event()
    stop = asyncio.Event()
    server = StdioServerParameters(
        command=sys.executable,
        args=["-c", PROGRAM, "mcp", *map(str, options)],
        env={"PYTHONPATH": str(PROJECT), **env},
        cwd=PROJECT,
    )

    async def main() -> None:
        try:
            async with Client(server) as client:
                started.append(Agent(client, asyncio.get_running_loop()))
                is_ready.set()
                await stop.wait()
        except BaseException as error:
            started.append(error)
            is_ready.set()
            raise

    thread = threading.Thread(target=asyncio.run, args=(main(),))
    thread.start()
    assert is_ready.wait(PATIENCE_SECONDS)
    (found,) = started[:1]
    assert isinstance(found, Agent), found
    try:
        yield found
    finally:
        found._loop.call_soon_threadsafe(stop.set)
        thread.join(PATIENCE_SECONDS)
