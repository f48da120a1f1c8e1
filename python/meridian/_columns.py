# SPDX-License-Identifier: Apache-2.0
"""Traces and graphs as NumPy arrays.

The program writes a file for each column. The files are mapped into memory, not read, and removed
at once; the mappings live as long as the arrays.
"""
from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Tuple

from ._result import (Fields, Result, TemporaryFolder, import_numpy, import_pandas, run,
                      run_with_graph)

if TYPE_CHECKING:
    import numpy as np
else:
    np = import_numpy()

def _load(mode: Any, **flags: Any) -> Tuple[Dict[str, np.ndarray], Dict[str, Any]]:
    with tempfile.TemporaryDirectory(prefix="meridian_") as folder:
        run("trace_columns", output_dir=folder, **flags)
        columns = {path.stem: np.asarray(np.load(path, mmap_mode=mode, allow_pickle=False))
                   for path in Path(folder).glob("*.npy")}
        return columns, json.loads(Path(folder, "table.json").read_text("utf-8"))


class Trace:
    """The events of one profile, a column for each property, read-only.

    start_ps and duration_ps are picoseconds, starts from base_ns (Unix time). name, category and
    track are positions in names, categories and tracks. correlation joins a launch with the device
    work that it launched; NO_CORRELATION where there is none.
    """

    start_ps: np.ndarray
    duration_ps: np.ndarray
    track: np.ndarray
    name: np.ndarray
    category: np.ndarray
    correlation: np.ndarray

    def __init__(self, path: Path) -> None:
        columns, table = _load("r", trace=path)
        self.__dict__.update(columns)
        self.base_ns = int(table["base_ns"])
        self.names: List[str] = table["names"]
        self.categories: List[str] = table["categories"]
        # Threads and streams, each with kind, clock, process, process_name, thread, name and device_id.
        self.tracks = [Fields(track) for track in table["tracks"]]

    def __len__(self) -> int:
        return len(self.start_ps)

    def to_pandas(self) -> Any:
        """Returns a row for each event; names and categories as categories of pandas."""
        pandas = import_pandas()
        # Names that are not UTF-8 may look alike; pandas wants each category once.
        names, codes = np.unique(self.names, return_inverse=True)
        return pandas.DataFrame({
            "start_ps": self.start_ps, "duration_ps": self.duration_ps, "track": self.track,
            "name": pandas.Categorical.from_codes(codes[self.name].astype(np.int32), names),
            "category": pandas.Categorical.from_codes(self.category.astype(np.int16),
                                                      self.categories),
            "correlation": self.correlation})

    def __repr__(self) -> str:
        return f"<meridian.Trace: {len(self)} events on {len(self.tracks)} tracks>"


class Graph:
    """What waited for what: instants, which are starts and ends of events, and edges between them.

    An edge says that instant edge_to could not happen before edge_from, and for how much time
    (edge_weight_ps) it stands; path_edge has the positions of the critical path's edges, in order.
    Columns may be written to: they are this object's own. event_name,
    event_lane and event_category, edge_type and edge_bound_by are positions in names, lanes,
    categories, edge_types and bound_by; NO_EVENT and NO_STEP stand for none. Times are
    picoseconds from base_ns.
    """

    event_name: np.ndarray
    event_lane: np.ndarray
    event_start_ps: np.ndarray
    event_duration_ps: np.ndarray
    event_category: np.ndarray
    event_step: np.ndarray
    instant_time_ps: np.ndarray
    instant_event: np.ndarray
    instant_is_start: np.ndarray
    edge_from: np.ndarray
    edge_to: np.ndarray
    edge_weight_ps: np.ndarray
    edge_event: np.ndarray
    edge_type: np.ndarray
    edge_bound_by: np.ndarray
    path_edge: np.ndarray

    def __init__(self, file: Path, keep_alive: Optional[TemporaryFolder] = None) -> None:
        columns, table = _load("c", graph=file)
        self.__dict__.update(columns)
        self.instant_is_start = self.instant_is_start.view(np.bool_)
        self._file = file
        self._keep_alive = keep_alive
        self.base_ns = int(table["base_ns"])
        self.window_start_ps = int(table["window_start_ps"])
        self.window_end_ps = int(table["window_end_ps"])
        self.names: List[str] = table["names"]
        self.categories: List[str] = table["categories"]
        self.edge_types: List[str] = table["edge_types"]
        self.bound_by: List[str] = table["bound_by"]
        self.lanes = [Fields(lane) for lane in table["lanes"]]

    def what_if(self, *edits: str, **flags: Any) -> Result:
        """Runs the schedule again with edits such as 'scale name=~"AllReduce" 0.5'.

        The schedule is the one that critical_path measured: what was written to the columns here
        does not count. docs/what_if.md describes edits.
        """
        return run_with_graph(run, restore=self._file, what_if="\n".join(edits), **flags)

    def to_networkx(self) -> Any:
        """Returns a DiGraph of the instants that have edges; weight is edge_weight_ps."""
        try:
            import networkx
        except ImportError:
            raise ImportError("to_networkx() needs networkx: pip install networkx") from None
        graph = networkx.DiGraph()
        events, times = self.instant_event.tolist(), self.instant_time_ps.tolist()
        # In the order in which edges first name them.
        named = np.stack([self.edge_from, self.edge_to], axis=1).ravel().tolist()
        graph.add_nodes_from((instant, {"event": events[instant], "time_ps": times[instant]})
                             for instant in dict.fromkeys(named))
        rows = zip(self.edge_from.tolist(), self.edge_to.tolist(), self.edge_weight_ps.tolist(),
                   self.edge_type.tolist())
        graph.add_edges_from((start, end, {"weight": weight, "edge": edge,
                                           "type": self.edge_types[kind]})
                             for edge, (start, end, weight, kind) in enumerate(rows))
        return graph

    def __repr__(self) -> str:
        return (f"<meridian.Graph: {len(self.event_name)} events, "
                f"{len(self.instant_time_ps)} instants, {len(self.edge_from)} edges>")
