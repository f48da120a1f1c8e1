# SPDX-License-Identifier: Apache-2.0
"""Runs the blocks of docs/python.md in order, as a notebook does, and compares what they print."""
import contextlib
import importlib.util
import io
import os
import pathlib
import re
import sys
import tempfile
import unittest

ROOT = pathlib.Path(os.path.abspath(__file__)).parents[2]
PAGE = ROOT / "docs" / "python.md"

for needed in ("numpy", "pandas", "networkx"):
    if importlib.util.find_spec(needed) is None:
        print(f"skipped: {needed} is not installed")
        sys.exit(0)


class DocsTest(unittest.TestCase):

    def setUp(self):
        os.environ.setdefault("MERIDIAN_PROGRAM", str(ROOT / "tools" / "meridian"))
        sys.path.insert(0, str(ROOT / "python"))
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)
        os.symlink(ROOT / "examples", "examples")

    def test_the_page(self):
        blocks = re.findall(r"^```python\n(.*?)^```\n(?:```text\n(.*?)^```\n)?",
                            PAGE.read_text("utf-8"), re.S | re.M)
        self.assertGreater(len(blocks), 3)
        names = {}
        for script, expected in blocks:
            with self.subTest(script):
                if "matplotlib" in script and importlib.util.find_spec("matplotlib") is None:
                    self.skipTest("matplotlib is not installed: no picture is drawn")
                printed = io.StringIO()
                with contextlib.redirect_stdout(printed):
                    exec(script, names)
                self.assertEqual(printed.getvalue(), expected)
                for picture in re.findall(r'savefig\("(.*?)"', script):
                    self.check_picture(picture)

    def check_picture(self, name):
        """What was drawn is what the page shows, but for fonts."""
        import matplotlib.image
        self.assertIn(f"(images/{name})", PAGE.read_text("utf-8"))
        drawn, shown = (matplotlib.image.imread(path) for path in (name, PAGE.parent / "images" / name))
        self.assertEqual(drawn.shape, shown.shape)
        self.assertLess(abs(drawn - shown).mean(), 0.02)
        self.assertGreater(drawn.std(), 0.05)


if __name__ == "__main__":
    unittest.main()
