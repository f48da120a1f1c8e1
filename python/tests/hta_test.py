# SPDX-License-Identifier: Apache-2.0
"""The lines of HTA's notebook with one import changed, and HTA's own numbers."""
import collections
import contextlib
import gzip
import importlib.util
import io
import json
import os
import pathlib
import sys
import tempfile
import unittest
import warnings
import zipfile
from unittest import mock

ROOT = pathlib.Path(os.path.abspath(__file__)).parents[2]
sys.path.insert(0, str(ROOT / "python"))

for needed in ("numpy", "pandas", "networkx"):
    if importlib.util.find_spec(needed) is None:
        print(f"skipped: {needed} is not installed")
        sys.exit(0)

import meridian
from meridian.hta import CPEdgeType, CPGraph, TraceAnalysis, restore_cpgraph

# Bazel puts the program there; from a checkout the variable must name it.
os.environ.setdefault("MERIDIAN_PROGRAM", str(ROOT / "tools" / "meridian"))
SHARED = pathlib.Path(os.path.realpath(__file__)).parents[3] / "shared"
ZERO_WEIGHT = "CRITICAL_PATH_ADD_ZERO_WEIGHT_LAUNCH_EDGE"


def host(name, start, end, category="cpu_op", **args):
    return {"ph": "X", "cat": category, "name": name, "pid": 1, "tid": 1, "ts": start,
            "dur": end - start, "args": args}


# An operator of 100 us launches a kernel after 10 us, which runs from 50 to 190 us.
EVENTS = [
    host("step 0", 0, 105, "user_annotation"),
    host("aten::mul", 0, 100, **{"External id": 1}),
    host("cudaLaunchKernel", 10, 30, "cuda_runtime", correlation=5),
    {**host("void mm<int>(float*)", 50, 190, "kernel", correlation=5, stream=7, device=0),
     "pid": 0, "tid": 7},
]


def quiet(function):
    with contextlib.redirect_stdout(io.StringIO()):
        return function()


class HtaTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.write(3, "rank3.json")

    def write(self, rank, name):
        trace = {"distributedInfo": {"rank": rank}, "traceEvents": EVENTS}
        (self.folder / name).write_text(json.dumps(trace))

    # By hand: 10 us of aten::mul, 40 us until the kernel starts, 140 us of the kernel.
    def test_the_lines_of_the_notebook(self):
        trace_dir = str(self.folder) + "/"
        analyzer = TraceAnalysis(trace_dir=trace_dir)
        cp_graph, success = analyzer.critical_path_analysis(
            rank = 3, annotation="step", instance_id=0)
        self.assertTrue(success)
        summary = quiet(cp_graph.summary)
        self.assertEqual((summary.name, summary.index.name), ("duration", "bound_by"))
        for name, us in (("cpu_bound", 10), ("gpu_kernel_launch_overhead", 40),
                         ("gpu_compute_bound", 140)):
            self.assertAlmostEqual(summary[name], us / 190 * 100)
        frame = cp_graph.get_critical_path_breakdown()
        self.assertEqual(list(frame), ["event_idx", "duration", "type", "s_name", "cat", "pid",
                                       "tid", "stream", "index", "bound_by"])
        self.assertEqual(frame.duration.tolist(), [10, 40, 140])
        self.assertEqual(frame.type.tolist(), [
            "critical_path_operator", "critical_path_kernel_launch_delay", "critical_path_operator"])
        self.assertEqual(frame.s_name[0], "aten::mul")
        self.assertTrue(frame.s_name.isna()[1])
        self.assertEqual(frame.loc[2, ["event_idx", "s_name", "cat", "pid", "tid", "stream"]].tolist(),
                         [3, "mm", "kernel", 0, 7, 7])
        self.assertEqual(frame.stream[0], -1)
        zip_file = cp_graph.save(out_dir=str(self.folder / "new" / "my_saved_cp_graph"))
        self.assertEqual(zip_file, str(self.folder / "new" / "my_saved_cp_graph.zip"))
        rest_graph = restore_cpgraph(zip_filename=zip_file, t_full=analyzer.t, rank=3)
        self.assertEqual(rest_graph.critical_path_edges_set, cp_graph.critical_path_edges_set)
        self.assertEqual(list(rest_graph.nodes), list(cp_graph.nodes))
        self.assertTrue(quiet(rest_graph.summary).equals(summary))
        rest_graph.critical_path()
        self.assertTrue(quiet(rest_graph.summary).equals(summary))

    def test_overlays_have_the_names_of_files_and_arrows(self):
        analyzer = TraceAnalysis({0: "rank3.json"}, trace_dir=str(self.folder))
        graph, _ = analyzer.critical_path_analysis(0, "", None)
        path = analyzer.overlay_critical_path_analysis(0, graph, str(self.folder / "new"))
        self.assertEqual(path, str(self.folder / "new" / "overlaid_critical_path_rank3.json"))
        self.assertEqual(self.arrows(path), {"critical_path_kernel_launch_delay": 1})
        path = analyzer.overlay_critical_path_analysis(
            0, graph, str(self.folder / "new"), only_show_critical_events=False,
            show_all_edges=True)
        self.assertEqual(self.arrows(path), collections.Counter(
            edge["object"].type.value for edge in graph.edges.values()))

    def arrows(self, path):
        events = json.loads(pathlib.Path(path).read_text())["traceEvents"]
        starts = [event for event in events if event["ph"] == "s"]
        self.assertEqual({(event["name"], event["cat"]) for event in starts},
                         {("critical_path", "critical_path")})
        return collections.Counter(event["args"]["type"] for event in starts)

    def test_what_is_changed_counts_and_is_saved(self):
        analyzer = TraceAnalysis(trace_dir=str(self.folder))
        graph, _ = analyzer.critical_path_analysis(3, "", None)
        start, end = graph.get_nodes_for_event(3)
        graph.edges[start.idx, end.idx]["weight"] = 5
        restored = restore_cpgraph(graph.save(str(self.folder / "edited")), None, 3)
        self.assertEqual(restored.critical_path_nodes, graph.critical_path_nodes)
        self.assertTrue(restored.critical_path())
        # The operator alone is longer now: 10, 20 and 70 us.
        self.assertEqual(restored.get_critical_path_breakdown().duration.tolist(), [10, 20, 70])
        with self.assertWarnsRegex(UserWarning, "as measured"):
            analyzer.overlay_critical_path_analysis(3, restored, str(self.folder / "out"))

    def test_what_is_no_saved_graph_is_refused_by_name(self):
        analyzer = TraceAnalysis(trace_dir=str(self.folder))
        graph, _ = analyzer.critical_path_analysis(3, "", None)
        whole = pathlib.Path(graph.save(str(self.folder / "whole"))).read_bytes()
        other = io.BytesIO()
        with zipfile.ZipFile(other, "w") as archive:
            archive.writestr("notes.txt", "nothing")
        path = self.folder / "other.zip"
        for content in (b"no zip", b"", whole[:-30], whole[:60] + b"\0" * 20 + whole[80:],
                        other.getvalue()):
            path.write_bytes(content)
            with self.assertRaisesRegex(ValueError, "other.zip: expected a .zip file that "
                                                    "CPGraph.save has written"):
                restore_cpgraph(str(path), None, 3)
        with self.assertRaisesRegex(FileNotFoundError, "none.zip"):
            restore_cpgraph(str(self.folder / "none.zip"), None, 3)

    def test_nodes_and_edges_tell_their_events(self):
        graph, _ = TraceAnalysis(trace_dir=str(self.folder)).critical_path_analysis(3, "", None)
        self.assertIsInstance(graph, CPGraph)
        start, end = graph.get_nodes_for_event(3)
        self.assertEqual((start.ts, end.ts, start.is_start, end.is_start), (50, 190, True, False))
        self.assertEqual(graph.get_nodes_for_event(99), (None, None))
        edge = graph.edges[start.idx, end.idx]["object"]
        self.assertEqual((edge.type, edge.weight), (CPEdgeType.OPERATOR_KERNEL, 140))
        self.assertEqual(graph.get_events_for_edge(edge), (3, 3))
        self.assertEqual(graph.get_event_attribution_for_edge(edge), 3)
        self.assertEqual(graph.get_edges_attributed_to_event(3), [edge])

    def test_what_is_wrong_is_said(self):
        analyzer = TraceAnalysis(trace_dir=str(self.folder))
        for rank, annotation, said in ((0, "step", "no trace is of rank 0; there are: 3"),
                                       (3, "nothing", "nothing")):
            with self.assertRaisesRegex(meridian.UsageError, said):
                analyzer.critical_path_analysis(rank, annotation, 0)
        with self.assertRaisesRegex(ValueError, "no patterns: 'load.\\*'"):
            analyzer.critical_path_analysis(3, "", None, data_load_events=["load.*"])
        with self.assertRaisesRegex(ValueError, "without the last"):
            TraceAnalysis(trace_dir=str(self.folder), include_last_profiler_step=True)
        self.write(3, "again.json")
        with self.assertWarnsRegex(UserWarning, "both of rank 3"):
            TraceAnalysis(trace_dir=str(self.folder))

    def test_a_rank_is_found_wherever_it_stands(self):
        for before in ((1 << 20) - len('{"a": "", "rank": 1'), 0):
            text = f'{{"a": "{"x" * before}", "rank": 12, "traceEvents": []}}'
            (self.folder / "rank3.json").write_text(text)
            self.assertEqual(list(TraceAnalysis(trace_dir=str(self.folder)).t.trace_files), [12])
        (self.folder / "rank3.json").write_text('{"traceEvents": []}')
        self.assertEqual(list(TraceAnalysis(trace_dir=str(self.folder)).t.trace_files), [0])

    @unittest.skipUnless(SHARED.is_dir(), "../shared not found")
    def test_the_numbers_of_hta(self):
        cases = json.loads((SHARED / "golden" / "hta_golden.json").read_text())["cases"]
        for name, golden in cases.items():
            case = golden["case"]
            if case["zero_launch"] and not name.startswith("simple_add_fwd"):
                continue  # //critical_path/hta:hta_test compares them all.
            with self.subTest(name), mock.patch.dict(
                    os.environ, {ZERO_WEIGHT: str(case["zero_launch"])}), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                files = [SHARED / case["files"]] if "files" in case else None
                analyzer = TraceAnalysis(files, trace_dir=SHARED / case["dir"])
                rank = min(analyzer.t.trace_files)
                graph, _ = analyzer.critical_path_analysis(
                    rank, case["annotation"], case["instance"], data_load_events=case["dl"])
                self.check(graph, golden, SHARED / "golden/hta_golden_full" / f"{name}.full.json.gz")

    def check(self, graph, golden, full_path):
        self.assertEqual(len(graph.nodes), golden["graph_nodes"])
        self.assertEqual(len(graph.critical_path_nodes), golden["critical_path_nodes"])
        self.assertEqual(len(graph.critical_path_events_set), golden["critical_path_events"])
        summary = {kind or "(empty)": share for kind, share in quiet(graph.summary).items()}
        self.assertEqual(set(summary), set(golden["summary_percent"]))
        for kind, share in summary.items():
            self.assertAlmostEqual(share, golden["summary_percent"][kind], places=9)
        found = graph.critical_path_nodes
        graph.critical_path()
        self.assertEqual(graph.critical_path_nodes, found)
        if not full_path.exists():
            return
        full = json.loads(gzip.decompress(full_path.read_bytes()))
        self.assertEqual(found, full["critical_path_nodes"])
        self.assertEqual([[node.idx, node.ev_idx, node.ts, node.is_start] for node in graph.node_list],
                         [node[:4] for node in full["nodes"]])
        self.assertEqual(
            sorted([*uv, edge["object"].type.value, edge["weight"], edge["event"]]
                   for uv, edge in graph.edges.items()),
            sorted([begin, end, kind, max(0, weight), event]
                   for begin, end, kind, _, weight, event in full["edges"]))


if __name__ == "__main__":
    unittest.main()
