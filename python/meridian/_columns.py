# SPDX-License-Identifier: Apache-2.0
"""Traces and graphs as NumPy arrays.

The program writes a file for each column. The files are mapped into memory, not read, and removed
at once; the mappings live as long as the arrays.
"""
from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, List, NamedTuple, Optional, Tuple

from ._result import (NO_EVENT, Fields, Result, TemporaryFolder, import_numpy, import_pandas,
                      run, run_with_graph)

if TYPE_CHECKING:
    import numpy as np
else:
    np = import_numpy()

_EDGE_COLUMNS = ("edge_from", "edge_to", "edge_weight_ps", "edge_event", "edge_type",
                 "edge_bound_by")


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


class LongestPath(NamedTuple):
    length_ps: int
    # Positions of the edges, in the order of the path.
    edges: np.ndarray


class Graph:
    """What waited for what: instants, which are starts and ends of events, and edges between them.

    An edge says that instant edge_to could not happen before edge_from, and for how much time
    (edge_weight_ps) it stands. Columns may be written to: they are this object's own. event_name,
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

    def __init__(self, file: Path, keep_alive: Optional[TemporaryFolder] = None) -> None:
        columns, table = _load("c", graph=file)
        self.__dict__.update(columns)
        self.instant_is_start = self.instant_is_start.view(np.bool_)
        self._file = file
        self._keep_alive = keep_alive
        self.base_ns = int(table["base_ns"])
        self.window_start_ps = int(table["window_start_ps"])
        self.window_end_ps = int(table["window_end_ps"])
        # Where the path must end; None: wherever the longest path ends.
        self.end_instant: Optional[int] = table.get("end_instant")
        self.names: List[str] = table["names"]
        self.categories: List[str] = table["categories"]
        self.edge_types: List[str] = table["edge_types"]
        self.bound_by: List[str] = table["bound_by"]
        self.lanes = [Fields(lane) for lane in table["lanes"]]

    def add_edge(self, start: int, end: int, weight_ps: int = 0, *, type: str = "dependency",
                 bound_by: Optional[str] = None, event: int = NO_EVENT) -> None:
        """Has instant `end` wait for instant `start`, as the last edge."""
        count = len(self.instant_time_ps)
        if not (0 <= start < count and 0 <= end < count):
            raise ValueError(f"instants are 0 to {count - 1}, not {start} and {end}")
        bound = 0 if bound_by is None else self.bound_by.index(bound_by)
        row = (start, end, weight_ps, event, self.edge_types.index(type), bound)
        for name, value in zip(_EDGE_COLUMNS, row):
            column = getattr(self, name)
            setattr(self, name, np.append(column, np.array([value], dtype=column.dtype)))

    def remove_edges(self, edges: Any) -> None:
        """Removes the edges at these positions, or where a mask is True."""
        for name in _EDGE_COLUMNS:
            setattr(self, name, np.delete(getattr(self, name), edges))

    def longest_path(self) -> LongestPath:
        """Returns the path that critical_path finds, of the graph as it is now.

        Of equally long paths the one that networkx.dag_longest_path chooses: instants are sorted
        topologically, generation by generation, in the order in which edges name them; the first
        edge and the first end of the greatest sums count. Weights must not be negative.
        """
        if not len(self.edge_from):
            raise ValueError("no two events depend on each other: there is no path")
        if self.edge_weight_ps.min() < 0:
            raise ValueError(f"edge {int(self.edge_weight_ps.argmin())} has a negative weight")
        instants = self._named_instants()
        leaving = np.argsort(self.edge_from, kind="stable").tolist()
        count = len(self.instant_time_ps)
        begins = [0, *np.cumsum(np.bincount(self.edge_from, minlength=count)).tolist()]
        missing = np.bincount(self.edge_to, minlength=count).tolist()
        heads, weights = self.edge_to.tolist(), self.edge_weight_ps.tolist()
        length = [0] * count
        last_edge = [-1] * count
        order = [instant for instant in instants if missing[instant] == 0]
        for instant in order:  # It grows meanwhile.
            for edge in leaving[begins[instant]:begins[instant + 1]]:
                head = heads[edge]
                total = length[instant] + weights[edge]
                best = last_edge[head]
                if best < 0 or total > length[head] or (total == length[head] and edge < best):
                    length[head], last_edge[head] = total, edge
                missing[head] -= 1
                if missing[head] == 0:
                    order.append(head)
        if len(order) < len(instants):
            stuck = next(instant for instant in instants if missing[instant] > 0)
            raise ValueError(f"events wait for each other in a circle, at or before "
                             f"{self._describe(stuck)}")
        end = max(order, key=length.__getitem__)
        if last_edge[end] < 0:  # No edge stands for time, so that any path will do.
            end = heads[0]
        if self.end_instant is not None:
            end = self.end_instant
        edges: List[int] = []
        at = end
        while last_edge[at] >= 0:
            edges.append(last_edge[at])
            at = int(self.edge_from[edges[-1]])
        if not edges:
            raise ValueError("nothing leads to the window's end: there is no path")
        return LongestPath(length[end], np.array(edges[::-1], dtype=np.uint32))

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
        graph.add_nodes_from((instant, {"event": events[instant], "time_ps": times[instant]})
                             for instant in self._named_instants())
        rows = zip(self.edge_from.tolist(), self.edge_to.tolist(), self.edge_weight_ps.tolist(),
                   self.edge_type.tolist())
        graph.add_edges_from((start, end, {"weight": weight, "edge": edge,
                                           "type": self.edge_types[kind]})
                             for edge, (start, end, weight, kind) in enumerate(rows))
        return graph

    def _named_instants(self) -> List[int]:
        """Returns the instants that have edges, in the order in which edges first name them."""
        named = np.stack([self.edge_from, self.edge_to], axis=1).ravel()
        instants, first = np.unique(named, return_index=True)
        ordered: List[int] = instants[np.argsort(first)].tolist()
        return ordered

    def _describe(self, instant: int) -> str:
        event = int(self.instant_event[instant])
        if event == NO_EVENT:
            return "the window's bound"
        end = "start" if self.instant_is_start[instant] else "end"
        return f"the {end} of {self.names[self.event_name[event]]!r} (event {event})"

    def __repr__(self) -> str:
        return (f"<meridian.Graph: {len(self.event_name)} events, "
                f"{len(self.instant_time_ps)} instants, {len(self.edge_from)} edges>")
