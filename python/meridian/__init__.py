# SPDX-License-Identifier: Apache-2.0
"""Profiles of distributed JAX and PyTorch jobs on one clock, critical path, Chakra, simulation.

Every function runs a command of the program `meridian` as a child process; its keywords are the
command's flags (`python -m meridian COMMAND --help` lists them), and its Result holds what the
command prints. docs/python.md tells more.
"""
from __future__ import annotations

import functools
import glob
import os
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, List, Sequence, Union

from ._program import Error, SystemFailure, UsageError
from ._result import (NO_CORRELATION, NO_EVENT, NO_RANK, NO_STEP, Fields, Result, TableError,
                      TemporaryFolder, run, run_with_graph)
from ._timing import NetworkTiming

if TYPE_CHECKING:
    from ._columns import Trace

__all__ = [
    "Error", "Fields", "NO_CORRELATION", "NO_EVENT", "NO_RANK", "NO_STEP", "NetworkTiming",
    "Result", "SystemFailure", "TableError", "UsageError", "__version__", "align", "calibrate",
    "combine", "combine_traces", "compare", "critical_path", "export_chakra", "forecast",
    "open_trace", "run", "simulate", "validate",
]

try:
    __version__ = metadata.version("meridian")
except metadata.PackageNotFoundError:  # From a checkout.
    __version__ = "unknown"

AnyPath = Union[str, "os.PathLike[str]"]
# The folder of a run (or the one that a profiler was given), a file or glob, or a list of them.
Paths = Union[None, AnyPath, Sequence[AnyPath]]
# Also what combine returned: its combined profile.
Profiles = Union[Paths, Result]


def __getattr__(name: str) -> Any:
    # These need NumPy, without which the rest works.
    if name not in ("Graph", "Trace"):
        raise AttributeError(f"module 'meridian' has no attribute {name!r}")
    from . import _columns
    return getattr(_columns, name)


_CHOSEN_OUTPUTS = ("output", "trace_json", "perfetto", "report")


def combine(run_dir: Profiles = None, output_dir: Union[None, AnyPath] = None,
            sweep: Paths = None, **flags: Any) -> Result:
    """Puts the profiles of a run on one clock and makes everything of them, as combine does.

    Without output_dir, and without an output of its own such as output="combined.xplane.pb", all
    goes to a temporary folder that lives as long as the result. Without anything, the bundled
    example is combined into ./meridian_out.
    """
    if run_dir is None and output_dir is None and sweep is None and not flags:
        result = run("combine")
        result.output_dir = Path("meridian_out").absolute()
        result.report_html = result.output_dir / "report.html"
        return result
    return _with_page(functools.partial(_run_on, run_dir, "combine"), output_dir, sweep=sweep, **flags)


def _with_page(run_command: Callable[..., Result], output_dir: Union[None, AnyPath],
               **flags: Any) -> Result:
    """Runs a command that fills output_dir, or a temporary folder, with a report."""
    with TemporaryFolder() as folder:
        if output_dir is None and not any(flags.get(name) for name in _CHOSEN_OUTPUTS):
            output_dir = folder.path
        result = run_command(output_dir=output_dir, **flags)
    result._folder = folder
    page = flags.get("report")
    if output_dir is not None:
        result.output_dir = Path(output_dir).absolute()
        page = page or result.output_dir / "report.html"
    result.report_html = Path(page).absolute() if page is not None and Path(page).is_file() else None
    return result


def compare(before: Union[AnyPath, Result], after: Union[AnyPath, Result],
            output_dir: Union[None, AnyPath] = None, **flags: Any) -> Result:
    """Says what is different between two runs: folders, or results of combine (compare).

    `passed` is False when a step takes longer than max_regression="5%" allows, and not by chance.
    """
    sides = [side.output_dir if isinstance(side, Result) else side for side in (before, after)]
    return _with_page(functools.partial(run, "compare", before=sides[0], after=sides[1]),
                      output_dir, **flags)


def align(profiles: Profiles = None, output: Union[None, AnyPath] = None, **flags: Any) -> Result:
    """Puts the profiles of a run on one clock, in one file if `output` names it (combine)."""
    return _run_on(profiles, "combine", output=output, **flags)


def combine_traces(traces: Profiles, output: AnyPath, apply_alignment: bool = True,
                   **flags: Any) -> Result:
    """Puts the profiles of a run into one file (combine), on one clock or with clocks as they are."""
    if not output:
        raise UsageError("combine", 2, "combine_traces writes one file; expected e.g. "
                         "output='combined.xplane.pb', or align(profiles) for the clocks alone")
    if not apply_alignment and flags.setdefault("method", "none") != "none":
        raise UsageError("combine", 2, "apply_alignment=False leaves clocks as they are; leave out "
                         f"method={flags['method']!r}")
    return align(traces, output, **flags)


def validate(profiles: Profiles = None, **flags: Any) -> Result:
    """Checks happens-before of every collective (validate_collectives).

    `passed` is False when one ends before it began elsewhere; table("details") has the gaps.
    """
    return _run_on(profiles, "validate_collectives", **flags)


def export_chakra(profiles: Profiles = None, output: Union[None, AnyPath] = None,
                  **flags: Any) -> Result:
    """Writes Chakra execution traces OUTPUT.<rank>.et (chakra_export)."""
    return _run_on(profiles, "chakra_export", output=output, **flags)


def critical_path(profiles: Profiles = None, **flags: Any) -> Result:
    """Finds what a step had to wait for (critical_path); the result has the whole `graph`."""
    return run_with_graph(functools.partial(_run_on, profiles), **flags)


def forecast(profiles: Profiles = None, calibration: Union[None, AnyPath] = None,
             **flags: Any) -> Result:
    """Says what a step would take on another network or on more ranks (forecast).

    For example bandwidth="2x", network="tree.yml", ranks=16; of a list of values,
    table("forecasts") has a row for each. Several runs are given by run_dir=["run4", "run8"].
    """
    return _run_on(profiles, "forecast", calibration=calibration, **flags)


def calibrate(profiles: Profiles = None, calibration: Union[None, AnyPath] = None,
              **flags: Any) -> Result:
    """Fits a network, into the folder `calibration`, to collectives of runs (astra_calibrate)."""
    return _run_on(profiles, "astra_calibrate", calibration=calibration, **flags)


def simulate(workload: AnyPath, calibration: Paths = None, **flags: Any) -> Result:
    """Simulates Chakra traces WORKLOAD.<rank>.et on a network (astra_simulate)."""
    return run("astra_simulate", workload=workload, calibration=calibration, **flags)


def open_trace(profiles: Profiles, quiet: Union[None, bool] = None, **flags: Any) -> Trace:
    """Opens a profile, or the one in the folder that a profiler was given.

    Several profiles, of a folder, glob or list, are put on one clock first: combine, which takes the
    flags. What combine returned is opened as it is.
    """
    from ._columns import Trace
    if isinstance(profiles, Result):
        profiles = _combined_of(profiles)
    given = [profiles] if isinstance(profiles, (str, os.PathLike)) else profiles or []
    found = [profile for path in given for profile in _profiles_of(_newest_run(Path(path)))]
    if len(found) == 1 and not flags:
        return Trace(found[0], quiet=quiet)
    is_xspace = any(path.name.endswith((".pb", ".pb.gz")) for path in found)
    with TemporaryFolder() as folder:
        output = folder.path / ("combined.xplane.pb" if is_xspace else "combined.json")
        combined = align(profiles, output, quiet=quiet, **flags)
        trace = Trace(output, quiet=quiet)
    trace.notes += combined.notes
    return trace


def _combined_of(result: Result) -> str:
    """Returns the path of the combined profile that combine wrote."""
    for output in result.fields.get("outputs", []):
        if output.kind == "combined":
            return str(output.path)
    raise UsageError(result._command, 2, "wrote no combined profile; give what combine returned")


def _run_on(profiles: Profiles, command: str, **flags: Any) -> Result:
    """Runs a command on a folder (--run_dir) or on files (--traces)."""
    if profiles is None:
        return run(command, **flags)
    if isinstance(profiles, Result):
        profiles = _combined_of(profiles)
    if not isinstance(profiles, (str, os.PathLike)) or not profiles or not Path(profiles).is_dir():
        return run(command, traces=profiles, **flags)
    chosen = _newest_run(Path(profiles))
    result = run(command, run_dir=chosen, **flags)
    if chosen != Path(profiles):
        result._lines.append(f"of the runs in {profiles} the newest is taken, {chosen}")
    return result


def _profiles_in(folder: Path) -> List[Path]:
    """Returns XSpaces; only where there are none JSON, which viewers write beside them."""
    files = sorted(path for path in folder.iterdir() if path.is_file())
    return ([path for path in files if path.name.endswith((".xplane.pb", ".xplane.pb.gz"))] or
            [path for path in files if path.name.endswith((".json", ".json.gz"))])


def _profiles_of(path: Path) -> List[Path]:
    """Returns the profiles of a folder, or of the runs below it, or what a file or glob names."""
    if path.is_dir():
        return _profiles_in(path) or [
            profile for folder in _runs_below(path) for profile in _profiles_in(folder)]
    return [Path(name) for name in glob.glob(str(path))] or [path]


def _runs_below(folder: Path) -> List[Path]:
    """Returns the runs that profilers wrote below a folder, which are named by time."""
    return sorted(path for path in folder.glob("plugins/profile/*")
                  if path.is_dir() and _profiles_in(path))


def _newest_run(folder: Path) -> Path:
    """Returns the newest of several runs if it has all hosts, else what was given.

    Each host may have written a folder of its own; the program joins these, or says what is wrong.
    """
    if not folder.is_dir() or _profiles_in(folder):
        return folder
    runs = _runs_below(folder)
    hosts = [{profile.name for profile in _profiles_in(path)} for path in runs]
    return runs[-1] if len(runs) > 1 and set().union(*hosts) <= hosts[-1] else folder
