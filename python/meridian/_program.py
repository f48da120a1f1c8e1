# SPDX-License-Identifier: Apache-2.0
"""Finds the program `meridian`, runs it as a child process and says how it ended."""
from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, Callable, List, Optional, Sequence, Tuple

# How long a child that was told to end may take to remove its temporary files, in seconds.
_GRACE_S = 10.0

# Exit codes of every command; docs/commands.md describes them.
DONE, CHECK_FAILED, USAGE, ENVIRONMENT = range(4)

# What moves a terminal's cursor and wipes lines.
_ESCAPES = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


class Error(Exception):
    """A command did not do what it was asked.

    `exit_code` is the program's, or minus the number of the signal that ended it.
    """

    def __init__(self, command: str, exit_code: int, message: str) -> None:
        super().__init__(command, exit_code, message)
        self.command = command
        self.exit_code = exit_code
        self.message = message

    def __str__(self) -> str:
        return f"{self.command}: {self.message}"


class UsageError(Error, ValueError):
    """Flags or input files are wrong."""


class SystemFailure(Error):
    """The machine is to blame: I/O, a full disk, not enough memory, a missing program."""


def find_program() -> str:
    """Returns $MERIDIAN_PROGRAM, else the program of this package, else the one on PATH."""
    chosen = os.environ.get("MERIDIAN_PROGRAM")
    if chosen:
        return chosen
    bundled = Path(__file__).parent / "bin" / "meridian"
    if bundled.is_file():
        return str(bundled)
    for folder in os.get_exec_path():
        found = shutil.which("meridian", path=folder)
        if found is not None and not _is_python_script(found):
            return found
    raise SystemFailure("meridian", ENVIRONMENT, "the program is neither in this package nor on "
                        "PATH; set MERIDIAN_PROGRAM to where it is")


def _is_python_script(path: str) -> bool:
    """Tells this package's own console script, which would start itself for ever, from programs."""
    with open(path, "rb") as file:
        start = file.read(256)
    return start.startswith(b"#!") and b"python" in start


def run_program(arguments: Sequence[str]) -> Tuple[int, str, List[str]]:
    """Runs a command and returns its exit code (done or check failed), its output and its notes.

    Notes are its notes and warnings on standard error. All that it writes there appears, with its
    progress, when this process has a terminal; a notebook shows the progress alone, in one line. Any
    other end of the command is an Error.
    """
    command = arguments[0]
    terminal = _terminal()
    show = None if terminal is not None or "--quiet=true" in arguments else _notebook_line()
    # The program shows progress only on a terminal, so that it gets one when somebody looks.
    reader, writer = os.pipe() if terminal is None and show is None else os.openpty()
    try:
        child = start_program(arguments, stdin=subprocess.DEVNULL, stderr=writer)
    except BaseException:
        os.close(reader)
        raise
    finally:
        os.close(writer)
    written = bytearray()
    listener = threading.Thread(target=_copy, args=(reader, written, terminal, show),
                                daemon=True)
    try:
        assert child.stdout is not None
        listener.start()
        with child.stdout:
            output = child.stdout.read()
        code = child.wait()
        listener.join()
    except BaseException:
        _stop(child)
        raise
    finally:
        if show is not None:
            show("")
    if code == DONE or (code == CHECK_FAILED and output):
        notes = [line for line in _lines(command, written)
                 if line.startswith(("note: ", "warning: "))]
        return code, output.decode("utf-8", "replace"), notes
    raise error_of_end(command, code, written)


def start_program(arguments: Sequence[str], **streams: Any) -> "subprocess.Popen[bytes]":
    """Starts a command whose standard output is a pipe."""
    command = arguments[0]
    if any("\0" in argument for argument in arguments):
        raise UsageError(command, USAGE, "an argument holds a NUL character, which no path can")
    program = find_program()
    # The program takes relative paths from the folder that Bazel names in this variable.
    environment = {name: value for name, value in os.environ.items()
                   if name != "BUILD_WORKING_DIRECTORY"}
    try:
        return subprocess.Popen([program, *arguments], stdout=subprocess.PIPE, env=environment,
                                **streams)
    except OSError as error:
        raise SystemFailure(command, ENVIRONMENT,
                            f"{program} cannot be run: {error.strerror}") from None


def error_of_end(command: str, code: int, written: bytes) -> Error:
    """Returns the error of a command that ended so, in its last words on standard error."""
    if code < 0:
        return Error(command, code, _signal_message(-code))
    lines = _lines(command, written)
    kind = {USAGE: UsageError, ENVIRONMENT: SystemFailure}.get(code, Error)
    return kind(command, code, lines[-1] if lines else f"ended with exit code {code}")


def _terminal() -> Optional[int]:
    """Returns the descriptor of standard error when that is a terminal."""
    try:
        return sys.stderr.fileno() if sys.stderr.isatty() else None
    except (AttributeError, OSError, ValueError):  # None, closed, or not a file (notebooks)
        return None


def _notebook_line() -> Optional[Callable[[str], None]]:
    """Returns what shows a text in the cell, in place of the text before; None if in no notebook."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if not hasattr(shell, "kernel"):
        return None
    from IPython.display import display
    line: List[Any] = []

    def show(text: str) -> None:
        if line:
            line[0].update({"text/plain": text}, raw=True)
        elif text:
            line.append(display({"text/plain": text}, raw=True, display_id=True))
    return show


def _progress(written: bytearray) -> str:
    """Returns the line that a terminal would show now; "" when it was wiped."""
    line = bytes(written[-400:]).rpartition(b"\n")[2]
    if line.endswith(b"\r\x1b[K"):
        return ""
    return _ESCAPES.sub("", line.decode("utf-8", "replace")).strip("\r").rpartition("\r")[2]


def _copy(reader: int, written: bytearray, terminal: Optional[int],
          show: Optional[Callable[[str], None]]) -> None:
    """Reads until nobody writes any more, so that the child never waits for a full pipe."""
    while True:
        try:
            piece = os.read(reader, 1 << 16)
        except OSError:  # How a pseudo-terminal says that it was closed.
            piece = b""
        if not piece:
            break
        written += piece
        if show is not None:
            show(_progress(written))
        if terminal is not None:
            try:
                os.write(terminal, piece.replace(b"\r\n", b"\n"))
            except OSError:  # The terminal is gone; the child must not wait for that.
                terminal = None
    os.close(reader)


def _stop(child: "subprocess.Popen[bytes]") -> None:
    """Has the child clean up and end; kills it when it does not, or on a second interrupt."""
    try:
        child.send_signal(signal.SIGINT)
        child.wait(_GRACE_S)
    except BaseException:
        child.kill()
        child.wait()


def _lines(command: str, written: bytes) -> List[str]:
    """Returns the lines without the command's name, and without progress bars, which \\r wipes."""
    text = written.decode("utf-8", "replace")
    lines = (line.rstrip("\r").rsplit("\r", 1)[-1] for line in text.split("\n"))
    lines = (_ESCAPES.sub("", line).strip() for line in lines)
    # "workload_model fit: ..." names the command's command, too.
    prefix = re.compile(re.escape(command) + r"( \w+)*: ")
    return [prefix.sub("", line, count=1) if prefix.match(line) else line for line in lines if line]


def _signal_message(number: int) -> str:
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = f"signal {number}"
    hint = " (out of memory?)" if number == signal.SIGKILL else ""
    return f"the program was ended by {name}{hint}"


def main() -> int:
    """Becomes the program, with this process's arguments."""
    try:
        program = find_program()
        os.execv(program, [program, *sys.argv[1:]])
    except SystemFailure as failure:
        print(failure, file=sys.stderr)
    except OSError as error:
        print(f"meridian: {program} cannot be run: {error.strerror}", file=sys.stderr)
    return ENVIRONMENT
