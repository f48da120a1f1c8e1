"""What cluster/testbed/run does without root: its help, wrong flags, and that it says what it lacks."""

import os
import subprocess
import unittest

RUN = "cluster/testbed/run"


def run(*flags, command=(RUN,)):
    return subprocess.run([*command, *flags], capture_output=True, text=True, check=False)


class TestbedTest(unittest.TestCase):
    def test_help_names_every_flag_and_has_an_example(self):
        result = run("--help")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        for words in ["--nodes", "--mbit", "--bin", "--output", "sudo cluster/testbed/run"]:
            self.assertIn(words, result.stdout)

    def test_wrong_flags_are_named(self):
        expected = {
            "--nodes=1": "expected a whole number from 4 to 32",
            "--nodes=5": "expected an even number",
            "--nodes=34": "expected a whole number from 4 to 32",
            "--mbit=0": "expected a whole number from 50 to 1000",
            "--mbit=200m": "expected a whole number from 50 to 1000",
            "--mbit=0x80": "expected a whole number from 50 to 1000",
            "--mbit=99999999999999999999": "expected a whole number from 50 to 1000",
            "--mbit": "lacks =VALUE",
            "--output=": "lacks =VALUE",
            "--rate=200": "not a flag",
            "200": "not a flag",
        }
        for flag, words in expected.items():
            with self.subTest(flag):
                result = run(flag)
                self.assertEqual((result.returncode, result.stdout), (2, ""))
                self.assertIn(f"testbed: {flag}", result.stderr)
                self.assertIn(words, result.stderr)

    def test_says_that_it_needs_root(self):
        # In a user namespace of its own without a map of users, root is nobody.
        nobody = ["unshare", "--user"] if os.geteuid() == 0 else []
        if subprocess.run([*nobody, "true"], check=False).returncode != 0:
            self.skipTest("runs as root, which cannot be given up here")
        result = run(command=[*nobody, RUN])
        self.assertEqual((result.returncode, result.stdout), (3, ""))
        self.assertEqual(result.stderr, "testbed: needs root to make network namespaces; try sudo\n")


if __name__ == "__main__":
    unittest.main()
