# SPDX-License-Identifier: Apache-2.0
"""How many comm edges a second Python gets times of, from meridian.NetworkTiming.

  ./bazelw run //benchmarks:timing_benchmark

Exits with 1 when a network does not reach what it is to reach, as it may beside other work.
"""
import os
import pathlib
import sys
import tempfile
import time

ROOT = pathlib.Path(os.path.abspath(__file__)).parents[1]
sys.path.insert(0, str(ROOT / "python"))

import meridian

# Bazel puts the program there; from a checkout the variable must name it.
os.environ.setdefault("MERIDIAN_PROGRAM", str(ROOT / "tools" / "meridian"))

REACH_COMPUTED, REACH_CACHED = 2000, 20000
EDGES, ROUNDS = 2000, 3


def edges_per_second(timing, ranks, first_bytes):
    """Returns the rate at which edges of so many bytes, and each one more, are timed."""
    edges = [{"op_kind": "AR", "size_bytes": first_bytes + i, "participants": list(range(ranks))}
             for i in range(EDGES)]
    begin = time.perf_counter()
    for edge in edges:
        timing.estimate_edge(edge)
    return EDGES / (time.perf_counter() - begin)


def main():
    passed = True
    print(f"reach: {REACH_COMPUTED:,} computed, {REACH_CACHED:,} cached edges a second\n")
    print("all-reduce on          computed/s  cached/s\n---------------------  ----------  --------")
    for shape, ranks in (("Ring", 8), ("Ring", 64), ("FullyConnected", 8), ("FullyConnected", 64)):
        with tempfile.NamedTemporaryFile("w", suffix=".yml") as network:
            network.write(f"topology: [ {shape} ]\nnpus_count: [ {ranks} ]\nbandwidth: [ 50 ]\n"
                          "latency: [ 500 ]\n")
            network.flush()
            with meridian.NetworkTiming(network=network.name) as timing:
                sizes = [(1 + r) << 20 for r in range(ROUNDS)]
                computed = max(edges_per_second(timing, ranks, size) for size in sizes)
                cached = max(edges_per_second(timing, ranks, size) for size in sizes)
        print(f"{f'{shape} of {ranks}':21}  {computed:10,.0f}  {cached:8,.0f}")
        passed &= computed >= REACH_COMPUTED and cached >= REACH_CACHED
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
