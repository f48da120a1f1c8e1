# SPDX-License-Identifier: Apache-2.0
"""What is in a wheel."""
import base64
import hashlib
import os
import pathlib
import sys
import tempfile
import unittest
import zipfile

PACKAGE = pathlib.Path(os.path.abspath(__file__)).parents[1]
sys.path.insert(0, str(PACKAGE))

import make_wheel


class WheelTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "program").write_bytes(b"\x7fELF and so on")
        (self.folder / "LICENSE").write_text("Apache")
        # Files are packed under the paths that they are given by.
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.folder)

    def write(self, folder):
        (self.folder / folder).mkdir()
        path = self.folder / folder / "meridian-1.2.3-py3-none-linux_x86_64.whl"
        make_wheel.write_wheel(path, self.folder / "program", [pathlib.Path("LICENSE")])
        return path

    def test_content(self):
        path = self.write("wheel")
        with zipfile.ZipFile(path) as wheel:
            modes = {entry.filename: entry.external_attr >> 16 for entry in wheel.infolist()}
            text = {name: wheel.read(name).decode("utf-8", "replace") for name in modes}
            info = "meridian-1.2.3.dist-info/"
            self.assertEqual(set(modes), {
                "meridian/__init__.py", "meridian/__main__.py", "meridian/_columns.py",
                "meridian/_program.py", "meridian/_result.py", "meridian/_timing.py",
                "meridian/hta.py", "meridian/py.typed",
                "meridian/bin/meridian", info + "METADATA", info + "WHEEL",
                "meridian/share/meridian/LICENSE", info + "entry_points.txt", info + "RECORD"})
            self.assertEqual({name for name, mode in modes.items() if mode & 0o111},
                             {"meridian/bin/meridian"})
            # Nothing is needed but Python.
            self.assertNotIn("Requires-Dist: numpy\n", text[info + "METADATA"])
            self.assertIn("Tag: py3-none-linux_x86_64\n", text[info + "WHEEL"])
            self.assertEqual(list(modes)[-1], info + "RECORD")
            rows = [line.split(",") for line in text[info + "RECORD"].splitlines()]
            self.assertEqual({row[0] for row in rows}, set(modes))
            for name, digest, size in rows[:-1]:
                content = wheel.read(name)
                expected = base64.urlsafe_b64encode(hashlib.sha256(content).digest())
                self.assertEqual(digest, "sha256=" + expected.decode().rstrip("="))
                self.assertEqual(int(size), len(content))

    def test_equal_inputs_make_equal_bytes(self):
        first = self.write("first").read_bytes()
        os.utime(self.folder / "program", (0, 0))
        self.assertEqual(self.write("second").read_bytes(), first)


if __name__ == "__main__":
    unittest.main()
