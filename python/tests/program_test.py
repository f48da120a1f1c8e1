# SPDX-License-Identifier: Apache-2.0
"""How the package treats a child process: with small scripts in place of the program."""
import importlib.util
import io
import os
import pathlib
import signal
import sys
import tempfile
import threading
import time
import unittest
from unittest import mock

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

if importlib.util.find_spec("numpy") is None:  # A Python that Bazel brings has nothing else.
    print("skipped: numpy is not installed")
    sys.exit(0)

import meridian
from meridian import _program


class ProgramTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        # A test that was started in the background ignores interrupts, and so would its children.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        self.addCleanup(signal.signal, signal.SIGINT, before)

    def program(self, script):
        """Has a script run in place of the program; $HERE is a folder for it."""
        path = self.folder / "program"
        path.write_text("#!/bin/sh\n" + script, encoding="utf-8")
        path.chmod(0o755)
        environment = {"MERIDIAN_PROGRAM": str(path), "HERE": str(self.folder)}
        patch = mock.patch.dict(os.environ, environment)
        patch.start()
        self.addCleanup(patch.stop)

    def interrupt_when(self, name):
        """Interrupts this process, as Ctrl-C does, once the program has written a file."""
        def wait_and_kill():
            while not (self.folder / name).exists():
                time.sleep(0.01)
            os.kill(os.getpid(), signal.SIGINT)
        threading.Thread(target=wait_and_kill).start()

    def test_keywords_become_flags(self):
        self.program('printf "{\\"n\\": \\"%s\\"}" "$*"')
        result = meridian.run("combine", "fit", run_dir=pathlib.Path("a b"), validate=True,
                              force=False, sweep=["x", pathlib.Path("y"), 3], ranks=range(2),
                              offsets=None, max_drift_ppm=1.5)
        self.assertEqual(result.n, "combine fit --json --run_dir=a b --validate=true --force=false "
                                   "--sweep=x,y,3 --ranks=0,1 --max_drift_ppm=1.5")

    def test_interrupt_reaches_the_child_and_waits_until_it_has_cleaned_up(self):
        self.program('trap "sleep 0.3; rm $HERE/unfinished; exit 130" INT\n'
                     'touch $HERE/unfinished\nwhile :; do sleep 0.05; done')
        self.interrupt_when("unfinished")
        with mock.patch.object(tempfile, "tempdir", str(self.folder)):
            with self.assertRaises(KeyboardInterrupt):
                meridian.combine(["a"])
        self.assertEqual([path.name for path in self.folder.iterdir()], ["program"])

    def test_a_child_that_does_not_end_is_killed(self):
        self.program('trap "" INT\necho $$ > $HERE/pid.new; mv $HERE/pid.new $HERE/pid\n'
                     'exec sleep 600')
        self.interrupt_when("pid")
        with mock.patch.object(_program, "_GRACE_S", 0.2), self.assertRaises(KeyboardInterrupt):
            meridian.run("combine")
        with self.assertRaises(ProcessLookupError):
            os.kill(int((self.folder / "pid").read_text()), 0)

    def test_much_output_on_both_pipes(self):
        self.program('printf "combine: reading\\ncombine: note: " >&2\n'
                     'head -c 300000 /dev/zero | tr "\\0" x >&2; echo >&2; printf "{\\"n\\": \\""\n'
                     'head -c 300000 /dev/zero | tr "\\0" y; printf "\\"}"')
        result = meridian.run("combine")
        self.assertEqual(result.n, "y" * 300000)
        self.assertEqual(result.notes, ["note: " + "x" * 300000])

    def test_two_threads_have_children_at_once(self):
        # Each ends only when the other has begun.
        self.program('touch $HERE/$2; while [ ! -e $HERE/$3 ]; do sleep 0.01; done; echo "{}"')
        threads = [threading.Thread(target=meridian.run, args=("combine", *names))
                   for names in (("a", "b"), ("b", "a"))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
        self.assertFalse(any(thread.is_alive() for thread in threads))

    def test_exit_codes(self):
        self.program('echo "combine: größe von 漢字" >&2\n[ $2 = 1 ] && echo "{}"\nexit $2')
        self.assertFalse(meridian.run("combine", "1").passed)
        kinds = {2: meridian.UsageError, 3: meridian.SystemFailure, 4: meridian.Error}
        for code, kind in kinds.items():
            with self.assertRaises(kind) as caught:
                meridian.run("combine", str(code))
            self.assertEqual((caught.exception.command, caught.exception.exit_code,
                              caught.exception.message), ("combine", code, "größe von 漢字"))

    def test_a_check_that_fails_without_an_answer_is_an_error(self):
        self.program('echo "libx.so not found" >&2; exit 1')
        with self.assertRaisesRegex(meridian.Error, "combine: libx.so not found"):
            meridian.run("combine")

    def test_a_child_ended_by_a_signal(self):
        self.program("kill -SEGV $$")
        with self.assertRaisesRegex(meridian.Error, "ended by SIGSEGV") as caught:
            meridian.run("combine")
        self.assertEqual(caught.exception.exit_code, -signal.SIGSEGV)

    def test_a_terminal_shows_progress_and_errors_still_have_their_message(self):
        self.program('[ -t 2 ] && printf "reading 47%%\\r\\033[K" >&2\n'
                     'echo "combine: no" >&2; exit 2')
        ours, terminal = os.openpty()
        self.addCleanup(os.close, ours)
        with open(terminal, "w") as stderr, mock.patch.object(sys, "stderr", stderr):
            with self.assertRaises(meridian.UsageError) as caught:
                meridian.run("combine")
        self.assertEqual(caught.exception.message, "no")
        self.assertEqual(os.read(ours, 1000), b"reading 47%\r\x1b[Kcombine: no\r\n")

    def test_a_notebook_shows_the_progress_in_one_line_and_nothing_when_quiet(self):
        self.program('[ -t 2 ] || exit 4\n'
                     'printf "combine: note: odd\\n\\r\\033[Kcombine: stage 1, 3s\\r" >&2\n'
                     'sleep 0.3; printf "\\rreading 47%%\\033[K" >&2; sleep 0.3\n'
                     'printf "\\r\\033[K" >&2; echo "{}"')
        shown = []
        line = mock.Mock(update=lambda data, raw: shown.append(data["text/plain"]))

        def display(data, raw, display_id):
            shown.append(data["text/plain"])
            return line
        ipython = mock.Mock(get_ipython=lambda: mock.Mock(spec=["kernel"]))
        modules = {"IPython": ipython, "IPython.display": mock.Mock(display=display)}
        with mock.patch.dict(sys.modules, modules), mock.patch.object(sys, "stderr", io.StringIO()):
            self.assertEqual(meridian.run("combine").notes, ["note: odd"])
            self.assertEqual(list(dict.fromkeys(shown)),
                             ["combine: stage 1, 3s", "reading 47%", ""])
            shown.clear()
            with self.assertRaises(meridian.Error):  # There is no terminal then.
                meridian.run("combine", quiet=True)
            self.assertEqual(shown, [])
            self.assertEqual(sys.stderr.getvalue(), "")
            ipython.get_ipython = lambda: mock.Mock(spec=[])  # IPython, but in no notebook.
            with self.assertRaises(meridian.Error):
                meridian.run("combine")

    def test_relative_paths_count_from_the_folder_of_this_process(self):
        self.program('printf "{\\"n\\": \\"${BUILD_WORKING_DIRECTORY-unset}\\"}"')
        with mock.patch.dict(os.environ, {"BUILD_WORKING_DIRECTORY": "/"}):
            self.assertEqual(meridian.run("combine").n, "unset")

    def test_fields_are_attributes_and_whole_numbers_are_exact(self):
        self.program("""echo '{"a_ns": -9223372036854775808, "host": "9007199254740993",
                              "b": [{"x_ps": 9007199254740993, "name": "7"}, {"x_ps": 1}],
                              "c": [{"y": 0, "f": true}, {"y": 0.5, "f": false}, {"f": true}]}'""")
        result = meridian.run("combine")
        self.assertEqual((result.a_ns, result.host), (-2**63, "9007199254740993"))
        self.assertEqual((result.b[0].x_ps, result.b[0].name), (9007199254740993, "7"))
        self.assertEqual(result.table("b")["x_ps"].tolist(), [9007199254740993, 1])
        self.assertEqual(result.table("b")["name"].tolist(), ["7", None])
        self.assertEqual(result.table("c")["y"].tolist()[:2], [0, 0.5])
        self.assertEqual(result.table("c")["f"].dtype, bool)
        for error, find in ((AttributeError, lambda: result.z), (KeyError, lambda: result.fields["z"]),
                            (KeyError, lambda: result.table("c")["z"])):
            with self.assertRaisesRegex(error, "no field 'z'; there are: (a_ns, host, b, c|y, f)"):
                find()

    def test_a_table_is_never_silently_empty_or_cut(self):
        self.program("""echo '{"a": [{"x": 1}], "a_total": 3, "b": [], "c": {"d": [{"y": 2}, {}]},
                              "n": ["text"], "e": {"f": 1}, "g": {"t": [1, 2], "u": [3, 4]}}'""")
        result = meridian.run("combine")
        found = {"b": "no rows in", "n": "no list in", "e": "no list in", "c.z": "no table",
                 "a.x": "no table", "z": "no table"}
        for name, said in found.items():
            with self.assertRaises(meridian.TableError) as caught:
                result.table(name)
            self.assertEqual(str(caught.exception),
                             f"combine has {said} '{name}'; tables: a (1), c.d (2), g (2)")
        with self.assertWarnsRegex(UserWarning, "a has 1 of 3 rows"):
            result.table("a")
        self.assertEqual(result.table("c.d").y.tolist(), [2, None])
        self.assertEqual(result.table("g").u.tolist(), [3, 4])

    def test_a_program_that_is_not_there(self):
        with mock.patch.dict(os.environ, {"MERIDIAN_PROGRAM": "/nowhere/meridian"}):
            with self.assertRaisesRegex(meridian.SystemFailure, "/nowhere/meridian cannot be run"):
                meridian.run("combine")

    def test_the_console_script_on_the_path_is_not_the_program(self):
        script = self.folder / "meridian"
        script.write_text("#!/usr/bin/python3\n")
        script.chmod(0o755)
        with mock.patch.dict(os.environ, {"PATH": str(self.folder)}):
            os.environ.pop("MERIDIAN_PROGRAM", None)
            with self.assertRaisesRegex(meridian.SystemFailure, "set MERIDIAN_PROGRAM"):
                _program.find_program()


if __name__ == "__main__":
    unittest.main()
