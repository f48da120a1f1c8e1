# SPDX-License-Identifier: Apache-2.0
"""Runs the script of docs/python.md exactly as it stands there."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(os.path.abspath(__file__)).parents[2]


class DocsTest(unittest.TestCase):

    def test_script(self):
        page = (ROOT / "docs" / "python.md").read_text("utf-8")
        script = re.search(r"```python\n(.*?)```", page, re.S).group(1)
        self.assertLessEqual(len(script.splitlines()), 20)
        environment = {"MERIDIAN_PROGRAM": str(ROOT / "tools" / "meridian"), **os.environ,
                       "PYTHONPATH": str(ROOT / "python")}
        with tempfile.TemporaryDirectory() as folder:
            os.symlink(ROOT / "examples", os.path.join(folder, "examples"))
            done = subprocess.run([sys.executable, "-c", script], cwd=folder, env=environment,
                                  stdout=subprocess.PIPE)
            self.assertEqual(done.returncode, 0)
            self.assertIn(b"4 ranks", done.stdout)
            with open(os.path.join(folder, "skew.png"), "rb") as picture:
                self.assertEqual(picture.read(4), b"\x89PNG")


if __name__ == "__main__":
    unittest.main()
