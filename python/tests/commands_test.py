# SPDX-License-Identifier: Apache-2.0
"""The functions of the package with the real program and real profiles."""
import importlib.util
import json
import mmap
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest

ROOT = pathlib.Path(os.path.abspath(__file__)).parents[2]
sys.path.insert(0, str(ROOT / "python"))

if importlib.util.find_spec("numpy") is None:  # A Python that Bazel brings has nothing else.
    print("skipped: numpy is not installed")
    sys.exit(0)

import numpy as np

import meridian

# Bazel puts the program there; from a checkout the variable must name it.
os.environ.setdefault("MERIDIAN_PROGRAM", str(ROOT / "tools" / "meridian"))
EXAMPLES = ROOT / "examples"
SKEWED = EXAMPLES / "jax_tp_cuda4_skewed"


def needs(module):
    return unittest.skipUnless(importlib.util.find_spec(module), f"{module} is not installed")


def command(*arguments):
    return subprocess.run([os.environ["MERIDIAN_PROGRAM"], *map(str, arguments)],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout.decode()


def root_of(array):
    """Returns what owns the memory of an array."""
    while getattr(array, "base", None) is not None:
        array = array.base
    return array.obj if isinstance(array, memoryview) else array


class CommandsTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def test_traces_are_combined_on_one_clock_or_with_clocks_as_they_are(self):
        for apply_alignment in (True, False):
            output = self.folder / f"{apply_alignment}.xplane.pb"
            result = meridian.combine_traces(SKEWED, output, apply_alignment=apply_alignment)
            self.assertTrue(output.is_file())
            self.assertGreater(result.happens_before.violations_before, 0)
            self.assertEqual(result.happens_before.violations_after == 0, apply_alignment)
            moved = [node.max_correction_ns for node in result.nodes]
            self.assertEqual(any(moved), apply_alignment)
        self.assertFalse(meridian.validate(self.folder / "False.xplane.pb").passed)
        with self.assertRaisesRegex(meridian.UsageError, "leave out method='collectives'"):
            meridian.combine_traces(SKEWED, output, apply_alignment=False, method="collectives")
        for nothing in (None, ""):
            with self.assertRaisesRegex(meridian.UsageError, "output='combined.xplane.pb'"):
                meridian.combine_traces(SKEWED, nothing)

    def test_align_says_what_the_command_says(self):
        result = meridian.align(SKEWED)
        self.assertEqual(result.text,
                         command("combine", f"--run_dir={SKEWED}", "--json"))
        self.assertEqual([node.offset_ns for node in result.nodes],
                         [node["offset_ns"] for node in result.json["nodes"]])
        self.assertEqual([node.offset_at_ns for node in result.nodes],
                         [node["offset_at_ns"] for node in result.json["nodes"]])
        self.assertGreater(result.happens_before.violations_before, 0)

    def test_two_threads_align_two_runs_at_once(self):
        runs = [SKEWED, EXAMPLES / "jax_cuda2"]
        results = {}
        threads = [threading.Thread(target=lambda run: results.update({run: meridian.align(run)}),
                                    args=(run,)) for run in runs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for run in runs:
            self.assertEqual(results[run].text, meridian.align(run).text)

    def test_combine_keeps_a_temporary_folder_as_long_as_its_result(self):
        result = meridian.combine(SKEWED, stages="path,report")
        folder = result.output_dir
        self.assertIn("critical path", result.findings[0].headline)
        page = result._repr_html_()
        self.assertTrue(page.startswith('<iframe sandbox="allow-scripts allow-downloads"'))
        self.assertTrue('srcdoc="&lt;!DOCTYPE' in page and "<script" not in page)
        # A fork has a copy of the result; its end must not take the folder along.
        if os.fork() == 0:
            del result
            os._exit(0)
        os.wait()
        self.assertTrue(folder.exists())
        waits = result.table("step_waits")
        self.assertEqual(waits["waited_ms"].tolist(),
                         [row["waited_ms"] for row in result.json["step_waits"]])
        self.assertTrue(meridian.validate(result).passed)
        del result
        self.assertFalse(folder.exists())

    def test_combine_with_an_output_of_its_own(self):
        output = self.folder / "größe.xplane.pb"
        result = meridian.combine(SKEWED, output=output, report=self.folder / "page.html")
        self.assertIsNone(result.output_dir)
        self.assertEqual([row.path for row in result.outputs],
                         [str(output), str(self.folder / "page.html")])
        self.assertIn("<iframe", result._repr_html_())

    def test_a_check_that_fails_is_no_exception(self):
        result = meridian.validate(sorted(SKEWED.iterdir()))
        self.assertFalse(result.passed)
        self.assertEqual(result.text,
                         command("validate_collectives", f"--run_dir={SKEWED}", "--json"))
        gaps = result.table("details")["gap_ns"]
        self.assertEqual(gaps.dtype, np.float64)
        self.assertEqual(len(gaps), result.violations)

    def test_errors_are_the_programs_own(self):
        with self.assertRaises(meridian.UsageError) as caught:
            meridian.combine(SKEWED, nonsense=3)
        self.assertIn("unknown flag --nonsense", caught.exception.message)
        with self.assertRaisesRegex(meridian.UsageError, "größe.pb"):
            meridian.validate(self.folder / "größe.pb")
        for call in (meridian.validate, meridian.combine, meridian.open_trace):
            with self.assertRaisesRegex(meridian.UsageError, "NUL character"):
                call(str(self.folder) + "/a\0b.pb")
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_from_profiles_to_a_simulation(self):
        sweep = EXAMPLES / "sweep_cpu4"
        calibration = meridian.calibrate(sweep, self.folder / "machine")
        self.assertEqual(calibration.text, (self.folder / "machine/calibration.json").read_text())
        meridian.export_chakra(EXAMPLES / "jax_cpu4", self.folder / "job")
        result = meridian.simulate(self.folder / "job", self.folder / "machine")
        self.assertEqual(result.text, command("astra_simulate", f"--workload={self.folder}/job",
                                              f"--calibration={self.folder}/machine", "--json"))

    def test_compare(self):
        run = meridian.combine(EXAMPLES / "jax_tp_cuda4")
        result = meridian.compare(run, SKEWED, max_regression="5%")
        self.assertEqual((result.verdict, result.passed), ("SAME", True))
        self.assertEqual(result.json, json.loads(command("compare", EXAMPLES / "jax_tp_cuda4", SKEWED,
                                                         "--json")) | {"before": result.before})
        self.assertEqual(len(result.table("parts").name), len(result.parts))
        self.assertIn("<iframe", result._repr_html_())

    def test_forecast(self):
        run = meridian.combine(SKEWED)
        result = meridian.forecast(run, bandwidth=["1x", "2x"])
        steps = result.table("forecasts")["step_ns"]
        self.assertGreater(steps[0], steps[1])

    def test_python_dash_m_is_the_program(self):
        done = subprocess.run([sys.executable, "-m", "meridian", "combine", "--nonsense"],
                              env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
                              stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"combine: unknown flag --nonsense", done.stderr)


class TraceTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def test_columns_are_mapped_files_of_the_command(self):
        path = EXAMPLES / "jax_cuda2" / "rank0.xplane.pb"
        trace = meridian.open_trace(path)
        command("trace_columns", f"--trace={path}", f"--output_dir={self.folder}")
        self.assertGreater(len(trace), 0)
        for name in ("start_ps", "duration_ps", "track", "name", "category", "correlation"):
            column, expected = getattr(trace, name), np.load(self.folder / f"{name}.npy")
            np.testing.assert_array_equal(column, expected)
            self.assertEqual(column.dtype, expected.dtype)
            self.assertIsInstance(root_of(column), mmap.mmap)
            self.assertTrue(np.shares_memory(column, column[1:]))
            with self.assertRaises(ValueError):
                column[0] = 0
        self.assertLess(trace.track.max(), len(trace.tracks))
        self.assertLess(trace.category.max(), len(trace.categories))
        self.assertIn("device", {track.kind for track in trace.tracks})

    def test_kineto(self):
        trace = meridian.open_trace(EXAMPLES / "torch_pipeline4" / "kineto_0.json.gz")
        self.assertLess(trace.name.max(), len(trace.names))
        self.assertEqual(trace.notes, [])
        odd = self.folder / "odd.json"
        odd.write_text('{"schemaVersion": 1, "traceEvents": [{"ph": "X", "name": "x", "ts": NaN}]}')
        trace = meridian.open_trace(odd)
        self.assertIn("events were left out: 1", trace.notes[0])
        if importlib.util.find_spec("pandas"):
            with self.assertRaisesRegex(meridian.TableError, "no events"):
                trace.to_pandas()

    def test_the_newest_run_of_a_log_folder(self):
        source = EXAMPLES / "jax_cuda2"
        for time, rank in (("2026_01_02_03_04_05", 0), ("2026_01_02_03_04_06", 1)):
            run = self.folder / "plugins" / "profile" / time
            run.mkdir(parents=True)
            shutil.copy(source / f"rank{rank}.xplane.pb", run / "host.xplane.pb")
        trace = meridian.open_trace(str(self.folder))
        np.testing.assert_array_equal(trace.start_ps,
                                      meridian.open_trace(source / "rank1.xplane.pb").start_ps)
        result = meridian.align(self.folder)
        self.assertEqual(result.nodes[0].trace, str(run / "host.xplane.pb"))
        self.assertIn("the newest is taken", result.notes[-1])

    def test_several_profiles_are_one_trace_on_one_clock_with_ranks(self):
        for folder in (SKEWED, EXAMPLES / "torch_pipeline4"):
            trace = meridian.open_trace(folder)
            alone = [len(meridian.open_trace(path)) for path in sorted(folder.iterdir())
                     if path.name.startswith(("rank", "kineto"))]
            self.assertEqual(np.bincount(trace.rank).tolist(), alone)
            self.assertIn("certified_uncertainty_ns", trace.notes[-1])
        run = meridian.combine(SKEWED)
        trace = meridian.open_trace(run)
        self.assertEqual(len(trace), sum(node.events for node in run.nodes))
        # Ranks end an all-reduce together; by their own clocks they do so up to 79 ms apart.
        is_reduce = np.array(["AllReduce" in name for name in trace.names])[trace.name]
        ends = trace.start_ps + trace.duration_ps
        last = [ends[is_reduce & (trace.rank == rank)].max() for rank in range(4)]
        self.assertLess(np.ptp(last), 1e9)
        with self.assertRaisesRegex(meridian.UsageError, "wrote no combined profile"):
            meridian.open_trace(meridian.validate(run))

    def test_a_rank_that_another_profile_could_change_is_not_stated(self):
        ranks = [set(meridian.open_trace(path).rank)
                 for path in sorted((EXAMPLES / "jax_cpu4").glob("*.xplane.pb*"))]
        self.assertEqual(ranks, [{0}] + 3 * [{meridian.NO_RANK}])  # Their ids are 0, 2048, ...
        self.assertEqual(set(meridian.open_trace(EXAMPLES / "jax_cpu4").rank), {0, 1, 2, 3})

    @needs("pandas")
    def test_pandas(self):
        trace = meridian.open_trace(EXAMPLES / "jax_cuda2" / "rank0.xplane.pb")
        frame = trace.to_pandas()
        self.assertEqual(frame["duration_ps"].tolist(), trace.duration_ps.tolist())
        self.assertEqual(frame["name"].tolist(), [trace.names[name] for name in trace.name])
        self.assertEqual(set(frame["rank"]), {0})
        waits = meridian.align(SKEWED).to_pandas("step_waits")
        self.assertEqual(waits["rank"].dtype, np.int64)
        self.assertEqual(sorted(set(waits["rank"])), [0, 1, 2, 3])


class GraphTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.saved = pathlib.Path(folder.name) / "graph"
        cls.result = meridian.critical_path(EXAMPLES / "jax_tp_cuda4", save=cls.saved)

    def test_the_path_is_the_commands(self):
        graph = self.result.graph
        self.assertEqual(graph.instant_is_start.dtype, bool)
        path = graph.path_edge
        self.assertEqual(graph.edge_weight_ps[path].sum(), round(self.result.length_us * 1e6))
        self.assertEqual(len(path) + 1, self.result.critical_nodes)
        self.assertEqual(graph.edge_to[path[:-1]].tolist(), graph.edge_from[path[1:]].tolist())
        edges = {}
        for edge in path[graph.edge_event[path] != meridian.NO_EVENT].tolist():
            key = (graph.names[graph.event_name[graph.edge_event[edge]]],
                   graph.edge_types[graph.edge_type[edge]])
            edges[key] = edges.get(key, 0) + int(graph.edge_weight_ps[edge])
        reported = {}
        for event in self.result.events:
            if event.get("event") is not None:
                key = (event.name, event.edge_type)
                reported[key] = reported.get(key, 0) + round(event.us * 1e6)
        # The report has the first of its events.
        self.assertGreaterEqual(self.result.events_total, len(self.result.events))
        for key, ps in reported.items():
            self.assertLessEqual(ps, edges[key])

    @needs("pandas")
    def test_the_whole_path_with_times_is_a_table(self):
        graph = self.result.graph
        path = graph.to_pandas()
        self.assertEqual(list(path), ["rank", "start_ps", "end_ps", "weight_ps", "kind", "name",
                                      "type", "step"])
        self.assertEqual(path.start_ps[1:].tolist(), path.end_ps[:-1].tolist())
        self.assertEqual(set(path["rank"]), {0, 1, 2, 3})
        self.assertNotIn("", set(path.name))
        kinds = path.groupby("kind").weight_ps.sum()
        for kind, us in self.result.breakdown.items():
            self.assertEqual(kinds.get(kind, 0), round(us * 1e6), kind)
        self.assertEqual(len(graph.to_pandas("edges")), len(graph.edge_from))
        events = graph.to_pandas("events")
        self.assertEqual(events.name.tolist(), [graph.names[name] for name in graph.event_name])
        self.assertEqual(set(events.kind), {"host", "device"})
        with self.assertRaisesRegex(meridian.TableError, "tables: path, edges, events"):
            graph.to_pandas("nodes")

    def test_kinds_of_a_run_without_gpus_are_those_of_its_breakdown(self):
        result = meridian.critical_path(EXAMPLES / "jax_cpu4")
        self.assertLessEqual(set(result.graph.table().kind), {"", "before_step", *result.breakdown})

    @needs("networkx")
    def test_networkx_finds_a_path_as_long_and_edits_count(self):
        import networkx
        graph = meridian.Graph(self.saved)
        self.assertIsInstance(root_of(graph.edge_weight_ps), mmap.mmap)
        length_ps = int(graph.edge_weight_ps[graph.path_edge].sum())
        self.assertEqual(networkx.dag_longest_path_length(graph.to_networkx()), length_ps)
        graph.edge_weight_ps[graph.path_edge] //= 2
        self.assertLess(networkx.dag_longest_path_length(graph.to_networkx()), length_ps)
        self.assertEqual(meridian.Graph(self.saved).edge_weight_ps[graph.path_edge].sum(), length_ps)

    def test_what_if_runs_the_schedule_again(self):
        edits = ['scale name=~"all-reduce" 0.5', "set category=launch 0us"]
        result = self.result.graph.what_if(*edits)
        self.assertEqual([edit.text for edit in result.what_if.edits], edits)
        self.assertLess(result.what_if.length_us_after, result.what_if.length_us_before)
        self.assertEqual(result.graph.edge_weight_ps[result.graph.path_edge].sum(),
                         round(result.what_if.length_us_after * 1e6))


if __name__ == "__main__":
    unittest.main()
