# SPDX-License-Identifier: Apache-2.0
"""NetworkTiming with the real program."""
import os
import pathlib
import signal
import sys
import tempfile
import threading
import unittest
from unittest import mock

ROOT = pathlib.Path(os.path.abspath(__file__)).parents[2]
sys.path.insert(0, str(ROOT / "python"))

import meridian

# Bazel puts the program there; from a checkout the variable must name it.
os.environ.setdefault("MERIDIAN_PROGRAM", str(ROOT / "tools" / "meridian"))

FULL4 = "topology: [ FullyConnected ]\nnpus_count: [ 4 ]\nbandwidth: [ 50 ]\nlatency: [ 500 ]\n"
# 1 MiB at 50 GB/s of 2^30 bytes and 500 ns: 20031.25 ns, cut to whole nanoseconds.
SEND = {"op_kind": "P2P", "size_bytes": 1 << 20, "src_rank": 0, "dst_rank": 1}
SEND_S = 20031e-9


class NetworkTimingTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.network = self.folder / "full.yml"
        self.network.write_text(FULL4)
        self.timing = meridian.NetworkTiming(network=self.network)
        self.addCleanup(self.timing.close)

    def process(self):
        return self.timing._server._process

    def test_one_program_times_edges_alone(self):
        self.assertEqual((self.timing.engine, self.timing.notes), ("embedded, congestion-aware", []))
        process = self.process()
        self.assertEqual(self.timing.estimate_edge(SEND), SEND_S)
        self.assertEqual(self.timing.estimate_edge({**SEND, "size_bytes": 0, "edge_id": "x"}), 0)
        reduced = {"op_kind": "AR", "size_bytes": 1 << 20, "participants": range(4)}
        self.assertGreater(self.timing.estimate_edge(reduced), 0)
        self.assertIs(self.process(), process)

    def test_a_batch_shares_the_network(self):
        sends = [SEND, {**SEND, "edge_id": "second"}]
        report = self.timing.estimate_batch(sends)
        # The second waits until the link is free: 19531 ns.
        self.assertEqual([edge.seconds for edge in report.edges], [SEND_S, 39562e-9])
        self.assertEqual([edge.isolated_seconds for edge in report.edges], [SEND_S] * 2)
        self.assertEqual([edge.id for edge in report.edges], ["0", "second"])
        self.assertEqual([edge.participants for edge in report.edges], [[0, 1]] * 2)
        self.assertEqual(report.iteration_ns, 39562)
        for twice in ([{**SEND, "edge_id": "a"}] * 2, [SEND, {**SEND, "edge_id": 0}]):
            with self.assertRaisesRegex(meridian.UsageError, "have one edge_id"):
                self.timing.estimate_batch(twice)
        report.edges.clear()
        self.assertEqual(len(self.timing.estimate_batch(iter(sends)).edges), 2)

    def test_what_was_asked_before_is_remembered(self):
        self.timing.estimate_edge(SEND)
        with mock.patch.object(self.timing._server, "_exchange", side_effect=AssertionError):
            self.assertEqual(self.timing.estimate_edge({**SEND, "edge_id": "again"}), SEND_S)

    def test_a_program_that_dies_is_started_again(self):
        dead = self.process()
        dead.kill()
        dead.wait()
        self.assertEqual(self.timing.estimate_edge(SEND), SEND_S)
        self.assertIsNot(self.process(), dead)
        self.process().kill()  # It may still look alive when it is asked.
        self.assertGreater(self.timing.estimate_edge({**SEND, "size_bytes": 1 << 21}), SEND_S)

    def test_a_program_that_dies_of_the_same_question_twice_is_an_error(self):
        program = self.folder / "program"
        program.write_text('#!/bin/sh\necho \'{"engine":"e","warnings":[]}\'\nread line\nkill -9 $$\n')
        program.chmod(0o755)
        with mock.patch.dict(os.environ, {"MERIDIAN_PROGRAM": str(program)}):
            timing = meridian.NetworkTiming()
            with self.assertRaisesRegex(meridian.Error, "ended by SIGKILL") as caught:
                timing.estimate_edge(SEND)
        self.assertEqual(caught.exception.exit_code, -signal.SIGKILL)

    def test_errors_are_in_the_words_of_the_program(self):
        for edge, said in (({**SEND, "dst_rank": 9}, "device 9 takes part, but .* has 4 NPUs"),
                           ({**SEND, "op_kind": "XX"}, "op_kind is XX, not one of AR, AG"),
                           ({}, "op_kind is missing"),
                           ({**SEND, "topolgy_key": "pod"}, "no member 'topolgy_key'; known are .*"
                            "topology_key")):
            with self.assertRaisesRegex(meridian.UsageError, said):
                self.timing.estimate_edge(edge)
            with self.assertRaisesRegex(meridian.UsageError, said):
                self.timing.estimate_batch([SEND, edge])
        with self.assertRaisesRegex(meridian.UsageError, "at least one edge"):
            self.timing.estimate_batch([])
        self.assertEqual(self.timing.estimate_edge(SEND), SEND_S)

    def test_a_configuration_is_checked_at_once(self):
        config = self.folder / "timing.yml"
        config.write_text("topologies: {default: full.yml}\nnetwork_backend: {model: astra}\n")
        with meridian.NetworkTiming(config) as timing:
            self.assertEqual(timing.estimate_edge(SEND), SEND_S)
            self.assertRegex(timing.notes[0], "the embedded engine")
        config.write_text("topologies: {default: nowhere.yml}\n")
        with self.assertRaisesRegex(meridian.UsageError, "nowhere.yml: No such file"):
            meridian.NetworkTiming(config)
        with self.assertRaisesRegex(meridian.UsageError, "no network is given"):
            meridian.NetworkTiming()

    def test_threads_and_forks_get_their_own_answers(self):
        sizes = list(range(1 << 20, (1 << 20) + 40))
        expected = [self.timing.estimate_edge({**SEND, "size_bytes": size}) for size in sizes]
        self.timing._ask.cache_clear()
        found = {}

        def ask(size):
            found[size] = self.timing.estimate_edge({**SEND, "size_bytes": size})
        threads = [threading.Thread(target=ask, args=(size,)) for size in sizes]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual([found[size] for size in sizes], expected)
        self.timing._ask.cache_clear()
        process = self.process()
        fork = os.fork()
        if fork == 0:
            os._exit(any(self.timing.estimate_edge({**SEND, "size_bytes": size}) != seconds
                         for size, seconds in zip(sizes, expected)))
        for size, seconds in zip(sizes, expected):
            self.assertEqual(self.timing.estimate_edge({**SEND, "size_bytes": size}), seconds)
        self.assertEqual(os.waitpid(fork, 0)[1], 0)
        self.assertEqual(self.timing.estimate_edge(SEND), SEND_S)
        self.assertIs(self.process(), process)

    def test_the_program_ends_with_the_object(self):
        process = self.process()
        self.timing.estimate_edge(SEND)
        self.timing.close()
        self.assertEqual(process.returncode, 0)
        for edge in (SEND, {**SEND, "size_bytes": 7}):  # The first one was asked before.
            with self.assertRaisesRegex(RuntimeError, "NetworkTiming is closed"):
                self.timing.estimate_edge(edge)
            with self.assertRaisesRegex(RuntimeError, "NetworkTiming is closed"):
                self.timing.estimate_batch([edge])
        self.assertIsNone(self.process())
        self.timing = meridian.NetworkTiming(network=self.network)
        self.addCleanup(self.timing.close)
        process = self.process()
        other = meridian.NetworkTiming(network=self.network)
        ended = other._server._process
        del other
        self.assertEqual(ended.returncode, 0)
        self.assertIsNone(process.poll())


if __name__ == "__main__":
    unittest.main()
