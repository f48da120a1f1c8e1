# SPDX-License-Identifier: Apache-2.0
"""Critical path analysis by the names of Holistic Trace Analysis (HTA), with HTA 0.6.1's numbers.

  from meridian.hta import TraceAnalysis   # in place of hta.trace_analysis

critical_path --hta_compatible does the work. Needs pandas and networkx. Times are microseconds.
"""
from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import warnings
import zipfile
import zlib
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence, Set, Tuple, Union

import networkx
import numpy as np
import pandas

from ._columns import Graph
from ._program import USAGE, UsageError
from ._result import NO_EVENT, TemporaryFolder, run, run_with_graph

_PS_PER_US = 10**6
_RANK = re.compile(rb'"rank":\s*(\d+)')
# What a saved graph consists of: the program's file, and the graph as it was edited.
_SAVED_GRAPH, _SAVED_EDGES = "graph", "edges.json"


class CPEdgeType(Enum):
    OPERATOR_KERNEL = "critical_path_operator"
    DEPENDENCY = "critical_path_dependency"
    KERNEL_LAUNCH_DELAY = "critical_path_kernel_launch_delay"
    KERNEL_KERNEL_DELAY = "critical_path_kernel_kernel_delay"
    SYNC_DEPENDENCY = "critical_path_sync_dependency"


@dataclass
class CPNode:
    """Start or end of an event, which is the ev_idx-th of its trace."""
    idx: int
    ev_idx: int
    ts: float
    is_start: bool


@dataclass(frozen=True)
class CPEdge:
    """What node `end` waited for, and for how long."""
    begin: int
    end: int
    type: CPEdgeType
    weight: float = 0


class CPGraph(networkx.DiGraph):
    """What waited for what. Edges have `weight` and `object`, a CPEdge.

    critical_path() finds the path again after weights or edges were changed.
    """

    node_list: List[CPNode]
    critical_path_nodes: List[int]
    critical_path_events_set: Set[int]
    critical_path_edges_set: Set[CPEdge]
    # The graph as the program saved it, in a folder that lives as long, and its path.
    _folder: TemporaryFolder
    _file: Path
    _measured_path: List[int]
    # By event and whether it is its start.
    _node_of: Dict[Tuple[int, bool], CPNode]
    # HTA's columns of the events, a DataFrame.
    _events: Any

    @classmethod
    def _of(cls, folder: TemporaryFolder, file: Path, saved: Optional[Dict[str, Any]]) -> CPGraph:
        """Returns the graph of the program's file, edited as `saved` says."""
        columns = Graph(file)
        graph = cls()
        graph._folder, graph._file = folder, file
        graph._events = _events_of(columns)
        position = columns.event_position.tolist()
        graph.node_list = [
            CPNode(idx, position[event], time / _PS_PER_US, start)
            for idx, (event, time, start) in enumerate(zip(
                columns.instant_event.tolist(), columns.instant_time_ps.tolist(),
                columns.instant_is_start.tolist()))]
        graph._node_of = {(node.ev_idx, node.is_start): node for node in graph.node_list}
        edges = [[start, end, f"critical_path_{columns.edge_types[kind]}", weight / _PS_PER_US,
                  None if event == NO_EVENT else position[event], columns.bound_by[bound]]
                 for start, end, kind, weight, event, bound in zip(*(
                     getattr(columns, f"edge_{name}").tolist()
                     for name in ("from", "to", "type", "weight_ps", "event", "bound_by")))]
        path = [edges[edge] for edge in columns.path_edge.tolist()]
        graph._measured_path = [edge[0] for edge in path[:1]] + [edge[1] for edge in path]
        graph.critical_path_nodes = saved["path"] if saved else graph._measured_path
        # The order decides between equally long paths.
        for number, row in enumerate(saved["edges"] if saved else edges):
            begin, end, kind, weight, event, bound_by = row
            graph.add_edge(begin, end, weight=weight, event=event, bound_by=bound_by, number=number,
                           object=CPEdge(begin, end, CPEdgeType(kind), weight))
        graph._mark_path()
        return graph

    def critical_path(self) -> bool:
        """Finds the longest path of the graph as it is now."""
        self.critical_path_nodes = networkx.dag_longest_path(self, weight="weight")
        self._mark_path()
        return True

    def _mark_path(self) -> None:
        path = self.critical_path_nodes
        self.critical_path_events_set = {self.node_list[node].ev_idx for node in path}
        self.critical_path_edges_set = {self.edges[edge]["object"] for edge in zip(path, path[1:])}

    def get_nodes_for_event(self, ev_id: int) -> Tuple[Optional[CPNode], Optional[CPNode]]:
        """Returns the start and the end of the event."""
        return self._node_of.get((ev_id, True)), self._node_of.get((ev_id, False))

    def get_events_for_edge(self, edge: CPEdge) -> Tuple[int, int]:
        return self.node_list[edge.begin].ev_idx, self.node_list[edge.end].ev_idx

    def get_event_attribution_for_edge(self, edge: CPEdge) -> Optional[int]:
        """Returns the event that the edge's time is booked on; None where it has none."""
        event: Optional[int] = self.edges[edge.begin, edge.end]["event"]
        return event

    def get_edges_attributed_to_event(self, ev_idx: int) -> List[CPEdge]:
        return [edge["object"] for edge in self.edges.values() if edge["event"] == ev_idx]

    def get_critical_path_breakdown(self) -> Any:
        """Returns a DataFrame with a row for each edge of the path, in order."""
        path = self.critical_path_nodes
        edges = [self.edges[edge] for edge in zip(path, path[1:])]
        frame = pandas.DataFrame({
            "event_idx": pandas.array([edge["event"] for edge in edges], dtype="float64"),
            "duration": [edge["weight"] for edge in edges],
            "type": [edge["object"].type.value for edge in edges]})
        frame = frame.merge(self._events, how="left", left_on="event_idx", right_on="index")
        frame["bound_by"] = [edge["bound_by"] for edge in edges]
        return frame

    def summary(self) -> Any:
        """Returns a Series: how much of the path, in percent, is spent on what."""
        frame = self.get_critical_path_breakdown()
        print("Critical path, percent of its duration spent on:")
        return frame.groupby("bound_by").duration.sum() / frame.duration.sum() * 100

    def save(self, out_dir: str) -> str:
        """Writes OUT_DIR.zip for restore_cpgraph, and returns its path."""
        edges = [[edge["object"].begin, edge["object"].end, edge["object"].type.value,
                  edge["weight"], edge["event"], edge["bound_by"]]
                 for edge in sorted(self.edges.values(), key=lambda edge: edge["number"])]
        path = Path(f"{out_dir}.zip")
        path.parent.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.write(self._file, _SAVED_GRAPH)
            archive.writestr(_SAVED_EDGES,
                             json.dumps({"path": self.critical_path_nodes, "edges": edges}))
        return str(path)


def restore_cpgraph(zip_filename: str, t_full: Any, rank: int) -> CPGraph:
    """Returns the graph that CPGraph.save wrote. The trace and the rank are not needed."""
    with TemporaryFolder() as folder:
        file = folder.path / _SAVED_GRAPH
        try:
            with zipfile.ZipFile(zip_filename) as archive:
                with archive.open(_SAVED_GRAPH) as saved, open(file, "wb") as copy:
                    shutil.copyfileobj(saved, copy)
                edges = json.loads(archive.read(_SAVED_EDGES))
        except (zipfile.BadZipFile, zlib.error, EOFError, KeyError, ValueError) as error:
            raise ValueError(f"{zip_filename}: expected a .zip file that CPGraph.save has written; "
                             f"{error}") from error
        return CPGraph._of(folder, file, edges)


class Trace:
    """Which file is the trace of which rank."""

    def __init__(self, trace_files: Union[None, Sequence[str], Dict[int, str]],
                 trace_dir: str) -> None:
        folder = Path(trace_dir).expanduser()
        if isinstance(trace_files, dict):
            self.trace_files = {rank: str(folder / path) for rank, path in trace_files.items()}
            return
        paths = (sorted(path for path in folder.iterdir() if path.name.endswith((".gz", ".json")))
                 if trace_files is None else [folder / path for path in trace_files])
        self.trace_files = {}
        for path in paths:
            rank = _rank_of(path)
            if rank in self.trace_files:
                warnings.warn(f"{self.trace_files[rank]} and {path} are both of rank {rank}; the "
                              "latter counts")
            self.trace_files[rank] = str(path)


class TraceAnalysis:
    """HTA's critical paths of Kineto traces: a folder's, or of the files given by rank."""

    def __init__(self, trace_files: Union[None, Sequence[str], Dict[int, str]] = None,
                 trace_dir: str = ".", include_last_profiler_step: bool = False) -> None:
        if include_last_profiler_step:
            raise ValueError("HTA's numbers are without the last of several profiler steps here; "
                             "meridian.critical_path() has all steps")
        self.t = Trace(trace_files, trace_dir)

    def critical_path_analysis(
            self, rank: int, annotation: str,
            instance_id: Union[None, int, Tuple[int, int]] = None,
            data_load_events: Optional[List[str]] = None) -> Tuple[CPGraph, bool]:
        """Returns the graph of the part of the trace within an annotation, and True.

        instance_id is which occurrence of the annotation, from 0, or the first and the last; the
        annotation "" is the whole trace. What HTA answers with None or False is a UsageError here.
        """
        first, last = instance_id if isinstance(instance_id, tuple) else [instance_id or 0] * 2
        for part in data_load_events or []:
            if set(part) & set("\\^$*+?{}[]|()"):
                raise ValueError(f"data_load_events are parts of names here, no patterns: {part!r}")
        result = run_with_graph(
            run, trace=self._trace_of(rank), hta_compatible=True,
            annotation=annotation or None, instance=f"{first}..{last}" if annotation else None,
            data_load_events=data_load_events,
            zero_weight_launch_edges=(
                os.environ.get("CRITICAL_PATH_ADD_ZERO_WEIGHT_LAUNCH_EDGE") == "1"))
        for note in result.notes:
            warnings.warn(note)
        assert result._folder is not None and result._saved_graph is not None
        return CPGraph._of(result._folder, result._saved_graph, None), True

    def overlay_critical_path_analysis(
            self, rank: int, critical_path_graph: CPGraph, output_dir: str,
            only_show_critical_events: bool = True, show_all_edges: bool = False) -> str:
        """Writes OUTPUT_DIR/overlaid_critical_path_<trace>, and returns its path."""
        trace = self._trace_of(rank)
        folder = Path(output_dir).expanduser()
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"overlaid_critical_path_{Path(trace).name}"
        if critical_path_graph.critical_path_nodes != critical_path_graph._measured_path:
            warnings.warn("the overlay shows the path as measured, not that of the edited graph")
        run("critical_path", restore=critical_path_graph._file, trace=trace, overlay=path,
            only_critical=only_show_critical_events,
            all_edges=show_all_edges and not only_show_critical_events)
        return str(path)

    def _trace_of(self, rank: int) -> str:
        if rank not in self.t.trace_files:
            raise UsageError("critical_path", USAGE, f"no trace is of rank {rank}; there are: "
                             f"{', '.join(map(str, sorted(self.t.trace_files)))}")
        return self.t.trace_files[rank]


def _rank_of(path: Path) -> int:
    """Returns the rank that a trace says, else 0, as HTA does."""
    with (gzip.open(path) if path.suffix == ".gz" else open(path, "rb")) as file:
        before = b""
        while True:
            piece = file.read(1 << 20)
            found = _RANK.search(before + piece)
            # Digits at the very end may go on in the next piece.
            if found and (not piece or found.end() < len(before + piece)):
                return int(found.group(1))
            if not piece:
                return 0
            before = (before + piece)[-64:]


def _events_of(columns: Graph) -> Any:
    """Returns a DataFrame of the events, with HTA's columns."""
    lanes = [(_number(lane.process), _number(lane.thread), lane.kind) for lane in columns.lanes]
    names = np.array([_short(name) for name in columns.names], dtype=object)
    pid, tid, kind = (np.array(column, dtype=object)[columns.event_lane]
                      for column in (zip(*lanes) if lanes else ([], [], [])))
    return pandas.DataFrame({
        "s_name": names[columns.event_name],
        "cat": np.array(columns.categories, dtype=object)[columns.event_category],
        "pid": pid, "tid": tid, "stream": np.where(kind == "host", -1, tid),
        "index": columns.event_position.astype(np.int64)})


def _number(text: str) -> Union[int, str]:
    return int(text) if re.fullmatch(r"-?\d+", text) else text


def _short(name: str) -> str:
    """Returns the name of a function without its arguments and what it returns."""
    if name.startswith(("Memcpy", "Memset", "dma")) or not set(name) & set("<("):
        return name
    kept: List[str] = []
    for character in name.replace("->", ""):
        opening = {">": "<", ")": "("}.get(character)
        if opening is None:
            kept.append(character)
        elif opening in kept:
            del kept[len(kept) - 1 - kept[::-1].index(opening):]
        else:
            kept.clear()
    return "".join(kept).rpartition(" ")[2]
