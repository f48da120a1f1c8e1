# SPDX-License-Identifier: Apache-2.0
"""How long communication takes, asked of one program that keeps running (astra_predict --serve)."""
from __future__ import annotations

import functools
import json
import os
import subprocess
import tempfile
import threading
import weakref
from typing import IO, Any, Dict, Iterable, List, Mapping, Union

from ._program import USAGE, Error, SystemFailure, UsageError, error_of_end, start_program
from ._result import Fields, flag_arguments

_COMMAND = "astra_predict"
# Answers that are remembered.
_REMEMBERED = 1 << 16

Edge = Mapping[str, Any]


class NetworkTiming:
    """Times comm edges: {"op_kind": "AR", "size_bytes": 1 << 20, "participants": range(4)}.

    `config` is the path of a configuration; flags are those of astra_predict that say how the network
    is, such as network, system, calibration, congestion and cache. A program that dies is started
    again. Threads are answered in turn. What the program says of a wrong edge is a UsageError.
    """

    def __init__(self, config: Union[None, str, "os.PathLike[str]"] = None, **flags: Any) -> None:
        self._server = _Server([_COMMAND, "--serve", *flag_arguments(config=config, **flags)])
        greeting = self._server.ask("")
        # Who times, e.g. "embedded, congestion-aware", and what differs from what was asked.
        self.engine: str = greeting["engine"]
        self.notes: List[str] = greeting["warnings"]
        self._ask = functools.lru_cache(_REMEMBERED)(self._server.ask)

    def estimate_edge(self, edge: Edge) -> float:
        """Returns the seconds of the edge alone on its network."""
        seconds: float = self._answer(_line({**edge, "edge_id": 0}))["edges"][0]["seconds"]
        return seconds

    def estimate_batch(self, edges: Iterable[Edge]) -> Fields:
        """Times edges that all begin at once: what astra_predict --mode=snapshot --json prints.

        edges[i].seconds and isolated_seconds (alone), iteration_ns until the last is done, inflation.
        The edge_id of an edge without one is its position.
        """
        lines = [_line({"edge_id": position, **edge}) for position, edge in enumerate(edges)]
        if not lines:
            raise UsageError(_COMMAND, USAGE, "a batch has at least one edge")
        # A copy: what is remembered must not change.
        report: Fields = json.loads(json.dumps(self._answer("".join(lines))), object_hook=Fields)
        if len(report.edges) < len(lines):
            raise UsageError(_COMMAND, USAGE, "two edges of the batch have one edge_id")
        return report

    def close(self) -> None:
        """Ends the program. What is asked afterwards is a RuntimeError."""
        with self._server.lock:
            self._server.is_closed = True
            self._server.stop()

    def _answer(self, request: str) -> Dict[str, Any]:
        self._server.check_open()  # What is remembered would be answered.
        return self._ask(request)

    def __enter__(self) -> NetworkTiming:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


class _Server:
    """The program, started when it is asked something."""

    def __init__(self, arguments: List[str]) -> None:
        self.lock = threading.Lock()
        self.is_closed = False
        self._arguments = arguments
        self._process: Any = None
        self._owner = 0

    def ask(self, request: str) -> Dict[str, Any]:
        """Returns the answer to the lines of a list of edges; to none, the program's first words."""
        with self.lock:
            self.check_open()
            line = self._exchange(request)
            if not line.endswith(b"\n"):
                failure = self.stop()
                if isinstance(failure, (UsageError, SystemFailure)):
                    raise failure
                line = self._exchange(request)  # It died: another one may do better.
            if not line.endswith(b"\n"):
                raise self.stop()
        answer: Dict[str, Any] = json.loads(line)
        if "error" in answer:
            kind = UsageError if answer["exit_code"] == USAGE else SystemFailure
            raise kind(_COMMAND, answer["exit_code"], answer["error"])
        return answer

    def check_open(self) -> None:
        if self.is_closed:
            raise RuntimeError("NetworkTiming is closed")

    def _exchange(self, request: str) -> bytes:
        """Returns the line that answers; without its end when the program has died."""
        try:
            # A fork must not take the answers of this process.
            if self._process is None or self._owner != os.getpid():
                self._start()
                line: bytes = self._process.stdout.readline()
                if not request or not line.endswith(b"\n"):
                    return line
            try:
                self._process.stdin.write(request.encode() + b"\n")
                self._process.stdin.flush()
            except BrokenPipeError:
                return b""
            line = self._process.stdout.readline()
            return line
        except BaseException:  # An answer that nobody waits for any more may be on its way.
            self.stop()
            raise

    def _start(self) -> None:
        # A file: what the program says on standard error never waits for a reader.
        said = tempfile.TemporaryFile()
        self._owner = os.getpid()
        self._process = start_program(self._arguments, stdin=subprocess.PIPE, stderr=said)
        self._end = weakref.finalize(self, _close, self._process, said, self._owner)

    def stop(self) -> Error:
        """Ends the program, if it runs, and returns how it ended as an error."""
        if self._process is None:
            return Error(_COMMAND, 0, "the program does not run")
        said = self._end() or b""
        code, self._process = self._process.returncode, None
        return error_of_end(_COMMAND, code, said)


def _close(process: Any, said: IO[bytes], owner: int) -> bytes:
    """Closes the program's input, upon which it ends, and returns what it said on standard error.

    A program that is busy is killed; that of the process which this is a fork of goes on.
    """
    for pipe in (process.stdin, process.stdout):
        try:
            pipe.close()
        except OSError:  # What it was asked last never reached it.
            pass
    with said:
        if os.getpid() != owner:
            return b""
        try:
            process.wait(1)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        said.seek(0)
        return said.read()


def _line(edge: Edge) -> str:
    return json.dumps(edge, default=_plain) + "\n"


def _plain(value: Any) -> Any:
    """Returns NumPy's numbers and arrays, and ranges, as JSON knows them."""
    return value.tolist() if hasattr(value, "tolist") else list(value)
