# SPDX-License-Identifier: Apache-2.0
"""Runs a command with flags and holds what it said."""
from __future__ import annotations

import html
import json
import os
import shutil
import tempfile
import warnings
import weakref
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, List, Optional

from ._program import DONE, run_program

if TYPE_CHECKING:
    import numpy as np

    from ._columns import Graph

# What stands for none in columns of traces and graphs.
NO_EVENT = 2**32 - 1
NO_CORRELATION = 2**64 - 1
NO_STEP = -(2**63)
NO_RANK = -1


class TableError(KeyError):
    """There is no such table, or it has no rows; the message lists those that have."""

    def __str__(self) -> str:
        return str(self.args[0])


class Fields(Dict[str, Any]):
    """A JSON object whose fields are attributes, too."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"no field {name!r}; there are: {', '.join(self)}") from None

    def __missing__(self, name: str) -> Any:
        raise KeyError(f"no field {name!r}; there are: {', '.join(self)}")

    def __dir__(self) -> Iterable[str]:
        return [*super().__dir__(), *self]


def _remove_own(path: str, process: int) -> None:
    """Removes a folder of this process; a fork of it only has a copy of what refers to it."""
    if os.getpid() == process:
        shutil.rmtree(path, ignore_errors=True)


class TemporaryFolder:
    """A folder that is removed on an error, else when nothing refers to this object any more."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="meridian_"))
        self._remove = weakref.finalize(self, _remove_own, str(self.path), os.getpid())

    def __enter__(self) -> TemporaryFolder:
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        if kind is not None:
            self._remove()


class Result:
    """What a command printed with --json. Its fields are attributes: result.nodes[0].offset_ns."""

    def __init__(self, command: str, text: str, passed: bool = True,
                 notes: Iterable[str] = ()) -> None:
        # The JSON as printed.
        self.text = text
        # False when the check that was asked for does not hold (exit code 1).
        self.passed = passed
        # The folder that combine filled; report_html is None when there is no report in it.
        self.output_dir: Optional[Path] = None
        self.report_html: Optional[Path] = None
        self._command = command
        self._lines = list(notes)
        # The graph that critical_path saved.
        self._saved_graph: Optional[Path] = None
        # Keeps temporary files alive.
        self._folder: Optional[TemporaryFolder] = None

    @cached_property
    def json(self) -> Dict[str, Any]:
        """The object as printed."""
        try:
            parsed: Dict[str, Any] = json.loads(self.text, object_hook=Fields)
        except ValueError:
            raise ValueError(f"{self._command} printed no JSON: {self.text[:80]!r}") from None
        return parsed

    @cached_property
    def fields(self) -> Fields:
        return Fields(self.json)

    @property
    def notes(self) -> List[str]:
        """Choices, fallbacks and warnings: the report's, then what came on standard error."""
        return [*self.json.get("notes", []), *self._lines]

    @cached_property
    def report(self) -> Result:
        """What report.html shows, as combine writes it to report.json."""
        if self.output_dir is None or not (self.output_dir / "report.json").is_file():
            raise ValueError("only the whole chain of combine has a report")
        return Result("report", (self.output_dir / "report.json").read_text("utf-8"))

    @property
    def findings(self) -> List[Fields]:
        """What combine found, one sentence each (`headline`), with `detail` and `verdict`."""
        report = self if "findings" in self.fields else self.report
        findings: List[Fields] = report.fields["findings"]
        return findings

    @cached_property
    def graph(self) -> Graph:
        """What waited for what, as critical_path sees it; of a what-if the edited schedule."""
        if self._saved_graph is None:
            raise ValueError("only critical_path has a graph")
        from ._columns import Graph  # Needs NumPy.
        return Graph(self._saved_graph, self._folder)

    def table(self, name: str) -> Fields:
        """Returns the columns of a list of objects, e.g. "step_waits"; dots lead into objects.

        What is missing in a row is NaN in columns with fractions, else None. A table without rows
        is a TableError, and one that the command cut short a warning.
        """
        value: Any = self.fields
        for part in name.split("."):
            owner, value = value, value.get(part) if isinstance(value, dict) else None
        if not _rows(value):
            found = "no table" if value is None else "no rows in" if value == [] else "no list in"
            raise TableError(f"{self._command} has {found} {name!r}; tables: {self._tables()}")
        if owner.get(f"{part}_total", 0) > _rows(value):
            hint = "; graph.table() has the whole path" if self._saved_graph else ""
            warnings.warn(f"{name} has {_rows(value)} of {owner[f'{part}_total']} rows{hint}")
        if isinstance(value, dict):  # Columns already, such as "timeline.events" of the report.
            return Fields((key, _column(item)) for key, item in value.items()
                          if isinstance(item, list))
        keys = dict.fromkeys(key for row in value for key in row)
        return Fields((key, _column([row.get(key) for row in value])) for key in keys)

    def _tables(self) -> str:
        """Lists the tables that have rows, with how many."""
        def walk(value: Any, name: str) -> List[str]:
            own = [f"{name} ({_rows(value)})"] if _rows(value) else []
            inner = value.items() if isinstance(value, dict) else ()
            return sum((walk(item, f"{name}.{key}".lstrip(".")) for key, item in inner), own)
        text = ", ".join(walk(self.fields, "")) or "none"
        has_report = self.output_dir is not None and (self.output_dir / "report.json").is_file()
        return text + (f"; .report has: {self.report._tables()}" if has_report else "")

    def to_pandas(self, table: str) -> Any:
        """Returns the table as a DataFrame."""
        return import_pandas().DataFrame(self.table(table))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.fields, name)

    def __dir__(self) -> Iterable[str]:
        return [*super().__dir__(), *self.fields]

    def __repr__(self) -> str:
        state = "" if self.passed else ", check failed"
        return f"<meridian {self._command}{state}: {', '.join(self.json)}>"

    def _repr_html_(self) -> Optional[str]:
        if self.report_html is None:
            return None
        page = html.escape(self.report_html.read_text("utf-8"))
        # Its scripts run apart from the notebook.
        return ('<iframe sandbox="allow-scripts allow-downloads" width="100%" height="800" '
                f'style="border: 0" srcdoc="{page}"></iframe>')


def _rows(value: Any) -> int:
    """Returns how many rows a list of objects, or an object of columns, has; 0 for anything else."""
    if not isinstance(value, dict):
        is_table = isinstance(value, list) and all(isinstance(row, dict) for row in value)
        return len(value) if is_table else 0
    columns = [item for item in value.values() if isinstance(item, list)]
    is_table = len(columns) > 1 and len(set(map(len, columns))) == 1 and not _rows(columns[0])
    return len(columns[0]) if is_table else 0


def _column(values: List[Any]) -> np.ndarray:
    np = import_numpy()
    kinds = {type(value) for value in values}
    if float in kinds and kinds <= {int, float, type(None)}:
        return np.array(values, dtype=np.float64)
    if kinds == {bool} or (kinds == {int} and -2**63 <= min(values) <= max(values) < 2**63):
        return np.array(values)
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


def import_numpy() -> Any:
    """NumPy is for columns only: combine and the other commands do without."""
    try:
        import numpy
    except ImportError:
        raise ImportError("columns of traces and tables need numpy: pip install numpy") from None
    return numpy


def import_pandas() -> Any:
    try:
        import pandas
    except ImportError:
        raise ImportError("to_pandas() needs pandas: pip install pandas") from None
    return pandas


def run(command: str, *arguments: str, **flags: Any) -> Result:
    """Runs any command, e.g. run("xspace_inspect", trace=path), run("workload_model", "fit", ...).

    Flags are those of the command: True and False for switches, lists joined by commas, None left
    out. `passed` of the result is False when a check failed (exit code 1); UsageError and
    SystemFailure carry the program's own message.
    """
    given = [command, *arguments, "--json", *flag_arguments(**flags)]
    code, text, notes = run_program(given)
    return Result(command, text, code == DONE, notes)


def flag_arguments(**flags: Any) -> List[str]:
    """Returns the flags as a command line has them."""
    return [f"--{name}={_text(value)}" for name, value in flags.items() if value is not None]


def run_with_graph(run_command: Callable[..., Result], **flags: Any) -> Result:
    """Runs critical_path by the function given; the result keeps the graph that it saves."""
    wanted = flags.pop("save", None)
    with TemporaryFolder() as folder:
        # The result keeps a graph of its own, whatever becomes of the one that was wanted.
        saved = folder.path / ("graph.gz" if str(wanted).endswith(".gz") else "graph")
        result = run_command("critical_path", save=saved, **flags)
        if wanted:
            shutil.copyfile(saved, wanted)
    result._saved_graph = saved
    result._folder = folder
    return result


def _text(value: Any) -> str:
    if hasattr(value, "dtype"):  # NumPy's.
        value = value.tolist()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (str, bytes, os.PathLike)):
        return os.fsdecode(value)
    if isinstance(value, Iterable):
        items = [_text(item) for item in value]
        if any("," in item for item in items):
            raise ValueError(f"commas separate the items of a list; none may have one: {items}")
        return ",".join(items)
    return str(value)
