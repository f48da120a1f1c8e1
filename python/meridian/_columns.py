# SPDX-License-Identifier: Apache-2.0
"""Traces and graphs as NumPy arrays.

The program writes a file for each column. The files are mapped into memory, not read, and removed
at once; the mappings live as long as the arrays.
"""
from __future__ import annotations

import json
import tempfile
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Tuple

from ._result import (NO_EVENT, NO_RANK, NO_STEP, Fields, Result, TableError, TemporaryFolder,
                      import_numpy, import_pandas, run, run_with_graph)

if TYPE_CHECKING:
    import numpy as np
else:
    np = import_numpy()


def _load(mode: Any, **flags: Any) -> Tuple[Dict[str, np.ndarray], Dict[str, Any]]:
    with tempfile.TemporaryDirectory(prefix="meridian_") as folder:
        notes = run("trace_columns", output_dir=folder, **flags).notes
        columns = {path.stem: np.asarray(np.load(path, mmap_mode=mode, allow_pickle=False))
                   for path in Path(folder).glob("*.npy")}
        table = json.loads(Path(folder, "table.json").read_text("utf-8"))
        return columns, {**table, "notes": notes}


class Trace:
    """The events of a profile, or of several combined, a column for each property, read-only.

    start_ps and duration_ps are picoseconds, starts from base_ns (Unix time). name, category and
    track are positions in names, categories and tracks. correlation joins a launch with the device
    work that it launched, of the same rank; NO_CORRELATION where there is none. rank is whose work
    it is; NO_RANK where the file does not say.
    """

    start_ps: np.ndarray
    duration_ps: np.ndarray
    track: np.ndarray
    name: np.ndarray
    category: np.ndarray
    correlation: np.ndarray

    def __init__(self, path: Path, **flags: Any) -> None:
        columns, table = _load("r", trace=path, **flags)
        self.__dict__.update(columns)
        self.base_ns = int(table["base_ns"])
        self.names: List[str] = table["names"]
        self.categories: List[str] = table["categories"]
        # Threads and streams, each with kind, clock, process, process_name, thread and name; device_id
        # and rank where they are known.
        self.tracks = [Fields(track) for track in table["tracks"]]
        # What is doubtful, also of how several profiles were put on one clock.
        self.notes: List[str] = table["notes"]

    @cached_property
    def rank(self) -> np.ndarray:
        ranks = [track.get("rank", NO_RANK) for track in self.tracks]
        return np.array(ranks, dtype=np.int64)[self.track]

    def __len__(self) -> int:
        return len(self.start_ps)

    def to_pandas(self) -> Any:
        """Returns a row for each event; names and categories as categories of pandas."""
        pandas = import_pandas()
        if not len(self):
            raise TableError("the trace has no events")
        # Names that are not UTF-8 may look alike; pandas wants each category once.
        names, codes = np.unique(self.names, return_inverse=True)
        return pandas.DataFrame({
            "start_ps": self.start_ps, "duration_ps": self.duration_ps, "rank": self.rank,
            "track": self.track,
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
    Columns may be written to: they are this object's own. event_name, event_lane, event_category,
    edge_type and edge_bound_by are positions in names, lanes, categories, edge_types and bound_by;
    NO_EVENT and NO_STEP stand for none; event_position is an event's place in its file. Times are
    picoseconds from base_ns.
    """

    event_name: np.ndarray
    event_lane: np.ndarray
    event_start_ps: np.ndarray
    event_duration_ps: np.ndarray
    event_category: np.ndarray
    event_position: np.ndarray
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

    def table(self, name: str = "path") -> Fields:
        """Returns "path", "edges" or "events" as columns, with names in place of positions.

        "path" has the edges of the critical path, in order. kind is what the time was spent on, as in
        the result's breakdown, which also tells the time before the first step apart. Where no event
        stands for an edge, name and rank are those of the next.
        """
        if name not in ("path", "edges", "events"):
            raise TableError(f"a graph has no table {name!r}; tables: path, edges, events")
        if name == "events":
            return self._events(np.arange(len(self.event_name)))
        edge = self.path_edge if name == "path" else np.arange(len(self.edge_from))
        own, start, end = self.edge_event[edge], self.edge_from[edge], self.edge_to[edge]
        shown = np.where(own != NO_EVENT, own, self.instant_event[end])
        for row in np.flatnonzero(shown[:-1] == NO_EVENT)[::-1] if name == "path" else ():
            shown[row] = shown[row + 1]
        at_end = shown == NO_EVENT
        shown = np.where(at_end, self.instant_event[start], shown)
        events = self._events(shown)
        prefix = _texts(["", "before ", "after "], np.where(own != NO_EVENT, 0, 1 + at_end))
        return Fields(rank=events.rank, start_ps=self.instant_time_ps[start],
                      end_ps=self.instant_time_ps[end], weight_ps=self.edge_weight_ps[edge],
                      kind=_texts(self.bound_by, self.edge_bound_by[edge]),
                      name=np.where(shown != NO_EVENT, prefix + events.name, ""),
                      type=_texts(self.edge_types, self.edge_type[edge]), step=events.step)

    def to_pandas(self, table: str = "path") -> Any:
        """Returns table(...) as a DataFrame."""
        return import_pandas().DataFrame(self.table(table))

    def _events(self, event: np.ndarray) -> Fields:
        """Returns rows of the events; NO_EVENT has no rank, no name and no step."""
        def of(column: np.ndarray, none: Any) -> np.ndarray:
            return np.append(column, none)[np.minimum(event, len(column))]
        lanes = [*self.lanes, Fields(rank=NO_RANK, kind="", process="", thread="")]
        lane = of(self.event_lane, len(self.lanes))
        step = of(self.event_step, NO_STEP)
        rows = Fields((key, _texts([lane[key] for lane in lanes], lane)) for key in lanes[-1])
        rows.update(rank=rows.rank.astype(np.int64), start_ps=of(self.event_start_ps, 0),
                    duration_ps=of(self.event_duration_ps, 0),
                    name=_texts([*self.names, ""], of(self.event_name, len(self.names))),
                    category=_texts(self.categories, of(self.event_category, 0)),
                    step=np.where(step == NO_STEP, np.nan, step.astype(np.float64)))
        return rows

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


def _texts(values: List[Any], positions: np.ndarray) -> np.ndarray:
    return np.array(values, dtype=object)[positions]
