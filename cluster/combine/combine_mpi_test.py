"""combine_mpi on made-up and real runs: what combine writes, byte for byte, or nothing."""

import os
import pathlib
import resource
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

RANKS = 4
NODES = 16
MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", str(RANKS)]
COMBINE = [os.path.abspath("tools/combine")]
COMBINE_MPI = MPIRUN + [os.path.abspath("cluster/combine/combine_mpi")]


def children_cpu_seconds():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def files_below(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(pathlib.Path(folder).rglob("*"))
        if path.is_file()
    }


def is_rank(pid, rank):
    """True for the process of that rank of an MPI job."""
    try:
        environment = pathlib.Path("/proc", pid, "environ").read_bytes()
        return b"OMPI_COMM_WORLD_RANK=%d\0" % rank in environment
    except OSError:
        return False


class CombineMpiTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR")))
        cls.run_dir = cls.folder / "run"
        subprocess.run(
            [
                "trace_alignment/testing/make_synthetic_run",
                f"--output={cls.run_dir}",
                f"--nodes={NODES}",
                "--devices_per_node=4",
                "--steps=200",
                "--collectives=all-reduce,collective-permute,all-gather/4",
                "--compute_kernels=40",
            ],
            check=True,
            stdout=subprocess.DEVNULL,
        )

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def setUp(self):
        self.output = self.folder / "out"
        shutil.rmtree(self.output, ignore_errors=True)

    def call(self, command, *flags):
        """Runs in a folder of its own: the result, the files that were written, wall and CPU seconds."""
        start, cpu = time.monotonic(), children_cpu_seconds()
        result = subprocess.run(
            command
            + [f"--output_dir={self.output}", f"--report_json={self.output}/report.json", "--json"]
            + list(flags),
            capture_output=True,
            text=True,
        )
        times = time.monotonic() - start, children_cpu_seconds() - cpu
        files = files_below(self.output) if self.output.exists() else {}
        shutil.rmtree(self.output, ignore_errors=True)
        return result, files, times

    def expect_the_same(self, *flags):
        alone, alone_files, alone_times = self.call(COMBINE, *flags)
        self.assertEqual(alone.returncode, 0, alone.stderr)
        ranks, ranks_files, ranks_times = self.call(COMBINE_MPI, *flags)
        self.assertEqual(ranks.returncode, 0, ranks.stderr)
        self.assertEqual(ranks.stdout, alone.stdout)
        self.assertEqual(sorted(ranks_files), sorted(alone_files))
        for name, contents in alone_files.items():
            self.assertTrue(ranks_files[name] == contents, name)
        return alone_times, ranks_times

    def test_files_and_report_are_those_of_combine(self):
        for flags in ([], ["--method=collectives"], ["--method=none"]):
            self.expect_the_same(f"--run_dir={self.run_dir}", *flags)
        self.expect_the_same(f"--traces={self.run_dir}/*.xplane.pb", "--reference_node=5")

    def test_kineto_traces_and_more_ranks_than_traces(self):
        traces = ",".join(str(path) for path in sorted(pathlib.Path("examples/torch_pipeline4").glob("kineto_*"))[:3])
        self.expect_the_same(f"--traces={traces}", "--method=none")
        self.expect_the_same("--run_dir=examples/torch_pipeline4")

    def test_what_is_there_is_replaced(self):
        older = self.output / "plugins/profile/run"
        older.mkdir(parents=True)
        (older / "node3.xplane.pb").write_text("old")
        (older / "another").write_text("kept")
        ranks, files, _ = self.call(COMBINE_MPI, f"--run_dir={self.run_dir}")
        self.assertEqual(ranks.returncode, 0, ranks.stderr)
        self.assertEqual(files.pop("plugins/profile/run/another"), b"kept")
        _, alone_files, _ = self.call(COMBINE, f"--run_dir={self.run_dir}")
        self.assertTrue(files == alone_files)

    def test_a_damaged_trace_ends_all_with_its_name_and_nothing_written(self):
        damaged = self.folder / "damaged"
        shutil.copytree(self.run_dir, damaged)
        trace = damaged / "node6.xplane.pb"
        trace.write_bytes(trace.read_bytes()[:-1000])
        result, files, _ = self.call(COMBINE_MPI, f"--run_dir={damaged}")
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertRegex(result.stderr, r"combine_mpi: rank \d \(\S+\): /\S*/node6.xplane.pb")
        self.assertEqual(result.stderr.count("node6.xplane.pb"), 1)
        self.assertEqual(result.stdout, "")
        self.assertEqual(files, {})

    def test_wrong_flags_are_told_once(self):
        result, files, _ = self.call(COMBINE_MPI, "--no_such_flag")
        self.assertEqual(result.returncode, 2)
        self.assertEqual(result.stderr.count("no_such_flag"), 1, result.stderr)
        self.assertEqual(files, {})

    def test_a_lost_rank_ends_all_and_nothing_is_left(self):
        for lost in (0, 2):
            job = subprocess.Popen(
                COMBINE_MPI + [f"--run_dir={self.run_dir}", f"--output_dir={self.output}"],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
            )
            while job.poll() is None and not list(self.output.glob(".combine.*/.*")):
                time.sleep(0.001)
            killed = []
            for children in pathlib.Path(f"/proc/{job.pid}/task").glob("*/children"):
                for pid in children.read_text().split():
                    if is_rank(pid, lost):
                        os.kill(int(pid), signal.SIGKILL)
                        killed.append(pid)
            self.assertTrue(killed, f"rank {lost} was not found among the processes of mpirun")
            messages = job.communicate(timeout=60)[1]
            self.assertNotEqual(job.returncode, 0)
            self.assertRegex(messages, rf"process rank {lost} .*on node \S+ exited on\s+signal 9")
            self.assertEqual([str(path) for path in self.output.rglob("*")], [])

    def test_times(self):
        best = None
        for _ in range(3):
            alone, ranks = self.expect_the_same(f"--run_dir={self.run_dir}", "--method=collectives")
            if best is None:
                best = list(alone + ranks)
            best = [min(a, b) for a, b in zip(best, alone + ranks)]
        print(
            f"{NODES} nodes, {RANKS} ranks on {os.cpu_count()} cores: combine {best[0]:.2f} s wall, "
            f"{best[1]:.2f} s CPU; combine_mpi {best[2]:.2f} s wall, {best[3]:.2f} s CPU; "
            f"ratio {best[0] / best[2]:.2f} wall, {best[1] / best[3]:.2f} CPU"
        )


if __name__ == "__main__":
    unittest.main()
