"""Runs combine, forecast and compare over and over, in two workers, and says what changed meanwhile.

  integration/testing/soak.py bazel-bin/tools/meridian examples/a examples/b --seconds=3600

Every command must succeed, print and write the same bytes as in the first round and leave no other
files; the memory of the last rounds must be that of the first ones. Left out are when a report was
made and how long that took, and report.html, which holds both compressed. The last line is
"soak: N rounds, 0 differences", and the exit code 1 else.
"""

import argparse
import hashlib
import os
import re
import subprocess
import sys
import tempfile
import threading
import time

# What says when, or how long, not what.
VOLATILE = re.compile(rb'"(?:created|seconds|cost)":\s*[^,}]*')


def digest(folder):
    """The digest of every file below the folder, by its path."""
    digests = {}
    for path, _, names in os.walk(folder):
        for name in names:
            file = os.path.join(path, name)
            with open(file, 'rb') as f:
                content = f.read().replace(os.path.dirname(folder).encode(), b'')
            if name == 'report.html':
                content = b'made each time'
            if name == 'report.json':
                content = VOLATILE.sub(b'', content)
            digests[os.path.relpath(file, folder)] = hashlib.sha256(content).hexdigest()
    return digests


def command(arguments, temporary):
    """The exit code, what was printed, and the most memory that was used, in KiB."""
    with tempfile.TemporaryFile() as printed:
        process = subprocess.Popen(arguments, stdout=printed, stderr=subprocess.STDOUT,
                                   env=dict(os.environ, TMPDIR=temporary))
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        printed.seek(0)
        return process.returncode, VOLATILE.sub(b'', printed.read()), usage.ru_maxrss


def one_round(program, runs, folder):
    """What one round answers, and how much memory each of its commands used."""
    temporary = os.path.join(folder, 'tmp')
    os.makedirs(temporary, exist_ok=True)
    answers, memory = {}, {}
    made = [os.path.join(folder, f'made{i}') for i in range(len(runs))]
    lines = {}
    for run, output in zip(runs, made):
        subprocess.run(['rm', '-rf', output], check=True)
        combine = [program, 'combine', f'--run_dir={run}', f'--output_dir={output}', '--quiet']
        lines[f'combine {run}'] = combine
        lines[f'combine {run} again'] = combine  # Replaces what it made.
        lines[f'forecast {run}'] = [program, 'forecast', f'--run_dir={run}', '--bandwidth=2x', '--json']
    for run, output in zip(runs[1:], made[1:]):
        lines[f'compare {run}'] = [program, 'compare', made[0], output, '--json']
    for name, arguments in lines.items():
        code, printed, used = command(arguments, temporary)
        if code != 0:
            raise RuntimeError(f'exit code {code}: {" ".join(arguments)}')
        answers[name] = (code, hashlib.sha256(printed.replace(folder.encode(), b'')).hexdigest())
        memory[name] = used
    for output in made:
        answers.update({os.path.basename(output) + '/' + file: value
                        for file, value in digest(output).items()})
    answers['left in the temporary folder'] = sorted(os.listdir(temporary))
    return answers, memory


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('program')
    parser.add_argument('runs', nargs='+')
    parser.add_argument('--seconds', type=float, default=3600)
    flags = parser.parse_args()
    end = time.monotonic() + flags.seconds
    differences, rounds = [], [[], []]
    expected = {}

    def work(index, folder):
        while time.monotonic() < end or len(rounds[index]) < 3:
            try:
                answers, memory = one_round(flags.program, flags.runs, folder)
            except (OSError, RuntimeError) as error:
                differences.append(str(error))
                print(f'round {len(rounds[index])} of worker {index}: {error}', flush=True)
                return
            first = expected.setdefault('answers', answers)
            for name in sorted(set(first) | set(answers)):
                if first.get(name) != answers.get(name):
                    differences.append(name)
                    print(f'round {len(rounds[index])} of worker {index} differs: {name}', flush=True)
            rounds[index].append(memory)

    with tempfile.TemporaryDirectory() as folder:
        workers = [threading.Thread(target=work, args=(i, os.path.join(folder, str(i)))) for i in (0, 1)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    for name in rounds[0][0] if all(rounds) else []:
        used = [memory[name] / 1024 for worker in rounds for memory in worker]
        early = max(memory[name] / 1024 for worker in rounds for memory in worker[:3])
        late = max(memory[name] / 1024 for worker in rounds for memory in worker[-3:])
        print(f'{name}: {min(used):.0f} to {max(used):.0f} MiB; first {early:.0f}, last {late:.0f}')
        if late > 1.1 * early + 10:
            differences.append(f'memory of {name}')
    print(f'soak: {sum(map(len, rounds))} rounds, {len(differences)} differences')
    return 1 if differences else 0


if __name__ == '__main__':
    sys.exit(main())
