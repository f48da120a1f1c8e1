# SPDX-License-Identifier: Apache-2.0
"""Makes system calls go wrong while the commands write their outputs.

For each command of mutate_inputs.py that writes files, one system call on them fails (no space, I/O
error, read-only), is interrupted or writes half of the bytes, or the process is told to end or killed
right then. Every output must be the old file or the new one, bit by bit; but for a kill and a rename
that fails, all of a command's outputs are old or all are new; but for a kill there are no temporary files; what can be made good (a short or interrupted call) is made good; what cannot is exit
code 3 and a line that says why.

  inject_faults.py --count=100000    all calls of all commands
"""
import argparse
import errno
import os
import pathlib
import random
import shutil
import signal
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import mutate_inputs

ROOT = mutate_inputs.ROOT
KINDS = {"no space": errno.ENOSPC, "I/O error": errno.EIO, "read-only": errno.EROFS, "short": "short",
         "interrupted": "interrupted", "term": "term", "kill": "kill"}
# Writes more files than are synced one by one; there is nothing to read, so that any input does.
MANY_FILES = mutate_inputs.Pair("chakra_generate", "80 ranks", "{made}/ring4.yml",
                                "--pattern=all-reduce --ranks=80 --output={out}/many/run")
# The stages of the chain have outputs of their own.
IN_STAGES = "whole chain"


def contents(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


class FaultyCommand:
    """A command that is run again and again with one call going wrong."""

    def __init__(self, pair, options, made, folder):
        self.trial = mutate_inputs.Trial(pair, folder, made, options.examples)
        self.command = [str(options.program), pair.command, *self.trial.arguments]
        self.options = options
        self.count = folder / "count"
        self.old = {str(path.relative_to(self.trial.out)): b"old" for path in self.trial.files}

    def run(self, kind="", call=0):
        """Returns exit code and standard error; the outputs are in the trial's folder."""
        self.trial.set_up(self.trial.data)
        environment = {"LD_PRELOAD": str(self.options.injector), "FAULT_FOLDER": str(self.trial.out),
                       "FAULT_KIND": str(kind), "FAULT_CALL": str(call), "FAULT_COUNT": str(self.count)}
        os.environ.update(environment)
        try:
            code, _, _, text = mutate_inputs.run_limited(self.command, self.trial, self.options)
        finally:
            for name in environment:
                del os.environ[name]
        return code, text

    def calls(self):
        """Runs it without a fault, to see what there is to write and by how many calls."""
        code, text = self.run()
        if code not in (0, 1):
            raise RuntimeError(f"{' '.join(self.command)}: {text}")
        self.exit_code = code
        self.new = contents(self.trial.out)
        # Of a file that is not always the same, its size and its end tell whether it is whole.
        self.changing = set()
        # Reports say to the second when they were made.
        time.sleep(1.1)
        for _ in range(4):
            self.run()
            self.changing |= {name for name, data in contents(self.trial.out).items() if data != self.new.get(name)}
        return int(self.count.read_text().split()[0])

    def is_new(self, path, data):
        new = self.new.get(path)
        if data is None or new is None:
            return False
        is_whole = abs(len(data) - len(new)) <= len(new) / 50 and data[-20:] == new[-20:]
        return data == new or (path in self.changing and is_whole)

    def problem(self, name, call):
        """Returns what is wrong after the call has gone wrong, or None."""
        code, text = self.run(KINDS[name], call)
        found = contents(self.trial.out)
        temporary = [path for path in found if os.path.basename(path).startswith(".") or path.endswith("stages/lock")]
        if name != "kill" and (temporary or any(self.trial.tmp.iterdir())):
            return f"left {temporary or os.listdir(self.trial.tmp)}"
        for path, data in found.items():
            if path not in temporary and not self.is_new(path, data) and data != self.old.get(path):
                return f"{path} is neither the old file nor the new one"
        missing = [path for path in self.old if path not in found]
        if missing:
            return f"{missing} are gone"
        is_new = {self.is_new(path, found.get(path)) for path in self.new}
        is_rename = code == 3 and self.count.read_text().split()[1] == "rename"
        if len(is_new) > 1 and name != "kill" and not is_rename and self.trial.pair.input != IN_STAGES:
            return "some outputs are new, others are not"
        if name in ("term", "kill"):
            return None if code == -(signal.SIGKILL if name == "kill" else signal.SIGTERM) else f"exit {code}"
        # Some calls need not succeed: that of a file that is only tried and removed, say.
        is_done = code == self.exit_code and is_new == {True}
        is_refused = code == 3 and text.strip() and name not in ("short", "interrupted")
        return None if is_done or is_refused else f"exit {code}: {text}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "tools" / "meridian")
    parser.add_argument("--injector", type=pathlib.Path, default=ROOT / "integration/testing/libfault_injector.so")
    parser.add_argument("--examples", type=pathlib.Path, default=ROOT / "examples")
    parser.add_argument("--count", type=int, default=100, help="faults of each command, drawn at random")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="a part of 'command input'")
    parser.set_defaults(timeout_s=20, memory_mib=4096)
    options = parser.parse_args()
    for name in ("program", "injector", "examples"):
        setattr(options, name, pathlib.Path(os.path.abspath(getattr(options, name))))
    tried = failures = 0
    seen = set()
    with tempfile.TemporaryDirectory() as folder:
        made = pathlib.Path(folder) / "made"
        mutate_inputs.prepare(options.program, made, options.examples)
        for pair in [*mutate_inputs.PAIRS, MANY_FILES]:
            # One of those that write the same outputs is enough.
            flags = (pair.command, tuple(word.split("=")[0] for word in pair.arguments.split() if "{out}" in word))
            if not flags[1] or flags in seen or "{shared}" in pair.source:
                continue
            if options.only not in f"{pair.command} {pair.input}":
                continue
            seen.add(flags)
            work = pathlib.Path(folder) / "trial"
            shutil.rmtree(work, ignore_errors=True)
            command = FaultyCommand(pair, options, made, work)
            faults = [(name, call) for call in range(1, command.calls() + 1) for name in KINDS]
            rng = random.Random(f"{options.seed} {pair.command} {pair.input}")
            chosen = rng.sample(faults, min(options.count, len(faults)))
            failed = 0
            for name, call in sorted(chosen, key=lambda fault: fault[1]):
                problem = command.problem(name, call)
                if problem is not None:
                    failed += 1
                    print(f"{pair.command}, {pair.input}: {name} at call {call}: {problem}", flush=True)
            print(f"{pair.command:22}{pair.input:16}{len(chosen):6} of {len(faults):6} faults{failed:6} failures",
                  flush=True)
            tried += len(chosen)
            failures += failed
    print(f"{tried} faults, {failures} failures")
    return 1 if failures or not tried else 0


if __name__ == "__main__":
    sys.exit(main())
