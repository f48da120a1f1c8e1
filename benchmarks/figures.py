#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the figures of docs/figures.txt and writes them there.

  benchmarks/figures.py             all, half an hour
  benchmarks/figures.py engine ...  those whose target's name contains a word; the others stay

Benchmarks print tables; tests record properties and print lines with a colon. A benchmark that
misses what it is to reach is written down all the same, and the script exits with 1.
"""
import os
import re
import subprocess
import sys
import xml.etree.ElementTree

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PAGE = os.path.join(ROOT, "docs", "figures.txt")

# What is measured, the target, and its flags.
BENCHMARKS = [
    ("Profiles read and rewritten, against libprotobuf", "//benchmarks:xplane_codec_benchmark", []),
    ("Programs of a profile indexed", "//benchmarks:hlo_index_benchmark",
     ["--trace=" + os.path.join(ROOT, "examples/jax_tp_cuda4/rank0.xplane.pb.gz")]),
    ("16 nodes combined; a Kineto trace aligned", "//benchmarks:combine_benchmark", []),
    ("Happens-before and clocks of 1,024 ranks",
     "//trace_alignment/collectives/testing:collectives_benchmark", []),
    ("Critical path of a million events", "//benchmarks:critical_path_benchmark", []),
    ("Files for viewers", "//xla_profiler/trace_export:trace_export_benchmark", []),
    ("Chakra traces generated", "//benchmarks:chakra_generate_benchmark", []),
    ("Chakra traces of PyTorch runs", "//benchmarks:chakra_link_benchmark", []),
    ("The engine, against AstraSim", "//benchmarks:engine_benchmark",
     ["--only=ALL_REDUCE ring"]),
    ("astra_simulate as ranks grow", "//benchmarks:simulate_scale_benchmark", ["--max_ranks=4096"]),
    ("An iteration predicted", "//benchmarks:predict_benchmark", []),
    ("Comm edges timed from Python", "//benchmarks:timing_benchmark", []),
    ("A forecast and a curve", "//benchmarks:forecast_benchmark", []),
]
TESTS = [
    ("Clocks found by collectives alone", "//trace_alignment:trace_alignment_test"),
    ("Clocks found by probes", "//cluster/probe:clock_probe_test"),
]

HEAD = """Written by benchmarks/figures.py, not by hand: what benchmarks and tests print on {machine}, other work
beside it. CPU times are the least of several rounds; ratios are taken in one run. What they mean:
performance.md, accuracy.md.
"""


def machine():
    text = subprocess.run(["lscpu"], capture_output=True, text=True).stdout
    model = re.search(r"Model name:\s*(.+)", text)
    return f"{os.cpu_count()} cores of {model.group(1) if model else 'an unknown processor'}"


def run_benchmark(target, flags):
    """Returns what it printed, and whether it reached what it is to reach."""
    done = subprocess.run(["./bazelw", "run", "-c", "opt", target, "--"] + flags, cwd=ROOT,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return done.stdout.strip(), done.returncode == 0


def run_test(target):
    """Returns the properties that the test records and its lines of figures."""
    done = subprocess.run(["./bazelw", "test", "--nocache_test_results", target], cwd=ROOT,
                          capture_output=True)
    folder = os.path.join(ROOT, "bazel-testlogs", target[2:].replace(":", "/"))
    # What is recorded of several nodes stands in one line, node by node.
    values = {}
    for element in xml.etree.ElementTree.parse(os.path.join(folder, "test.xml")).iter("property"):
        name = re.sub(r"_node\d+", "", element.get("name"))
        values.setdefault(name, []).append(element.get("value"))
    lines = [f"{name} {', '.join(of_nodes)}" for name, of_nodes in values.items()]
    with open(os.path.join(folder, "test.log"), encoding="utf-8", errors="replace") as log:
        lines += [line.strip() for line in log if re.match(r"[a-z][a-z0-9 ,]*: .*\d", line)]
    return "\n".join(lines), done.returncode == 0


def read_page():
    """Returns the blocks that the page has, by target."""
    if not os.path.exists(PAGE):
        return {}
    with open(PAGE, encoding="utf-8") as page:
        return dict(re.findall(r"^## [^\n]*\n(//\S+)\n\n(.*?)\n(?=\n## |\Z)", page.read(), re.S | re.M))


def main(words):
    blocks, all_reached = read_page(), True
    for title, target, flags in BENCHMARKS + [(t, n, None) for t, n in TESTS]:
        if words and not any(word in target for word in words):
            continue
        print(f"{title} ...", file=sys.stderr)
        text, reached = run_test(target) if flags is None else run_benchmark(target, flags)
        if not reached:
            print(f"{target}: failed, or missed what it is to reach", file=sys.stderr)
        all_reached &= reached
        blocks[target] = text.replace(ROOT + "/", "")
    with open(PAGE, "w", encoding="utf-8") as page:
        page.write(HEAD.format(machine=machine()))
        for title, target in [b[:2] for b in BENCHMARKS] + TESTS:
            if blocks.get(target):
                page.write(f"\n## {title}\n{target}\n\n{blocks[target]}\n")
    return 0 if all_reached else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
