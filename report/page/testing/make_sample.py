#!/usr/bin/env python3
"""Writes reports to try the page with, as JSON of RunReport, into a folder: make_sample.py FOLDER

sample  4 ranks whose clocks were off, and of which one is late
big     64 ranks, 100,000 events
ranks256, ranks2048  so many ranks, 100,000 events; the link of one is slow
compared the sample against another run
hostile the sample with code in place of every text, formulas for the names of its nodes' hosts, and numbers that are missing, negative or huge
empty   nothing at all
"""
import json, pathlib, random, sys

OUT = pathlib.Path(sys.argv[1])
# Enums are given as numbers: their positions here.
VERDICTS = ["UNKNOWN", "SAME", "LONGER", "SHORTER", "NEW", "GONE"]
KINDS = ["computation", "transfer", "wait", "copy", "host", "gap"]
HOSTILE = "</script><img src=x onerror=\"document.title='OWNED'\">"
# What a spreadsheet would run when it stands in a cell.
FORMULAS = ["=1+1", "+1+1", "-1+1", "@SUM(1,1)"]
# Calls of the host that nest, and a kernel as C++ names it.
CALLS = ["aten::linear", "aten::addmm", "cudaLaunchKernel"]
LONG_NAME = ("void at::native::vectorized_elementwise_kernel<%d, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul> >"
             "(int, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul>)")


class Timeline:
    """Events by rank: computation, then a collective that starts when the last rank arrives."""

    def __init__(self, ranks, steps, collectives, kernels, seed):
        self.random = random.Random(seed)
        self.names = ["copy.3", "python step", "gap"] + ["all-reduce.%d" % (40 + i) for i in range(collectives)] + [
            LONG_NAME % i if i % 3 == 2 else "fusion.%d" % i for i in range(kernels)] + CALLS
        self.ranks, self.collectives, self.kernels = ranks, collectives, kernels
        self.rows, self.groups, self.path, self.steps = [], [], [], []
        clock = [0.0] * ranks
        for step in range(steps):
            begin = max(clock)
            clock = [begin] * ranks
            self.one_step(step, clock)
            self.steps.append({"step": step, "start_ms": begin / 1e3, "end_ms": max(clock) / 1e3})

    def add(self, rank, lane, name, kind, start, duration):
        self.rows.append((rank * 3 + lane, start, name, kind, duration))
        return len(self.rows) - 1

    def one_step(self, step, clock):
        slow = 3100.0 if step != 1 else 150.0
        for rank in range(self.ranks):
            host = 900 + self.random.random() * 300
            self.add(rank, 2, 1, 4, clock[rank], host)
            for depth in range(len(CALLS)):
                name = 3 + self.collectives + self.kernels + depth
                self.add(rank, 2, name, 4, clock[rank] + 20 * (depth + 1), host / 2 - 40 * depth)
                self.add(rank, 2, name, 4, clock[rank] + host / 2 + 30 * (depth + 1), host / 3 - 50 * depth)
            self.add(rank, 0, 2, 5, clock[rank], 60)
            copy = slow if rank == 2 else 120 + self.random.random() * 60
            self.add(rank, 0, 0, 3, clock[rank] + 60, copy)
            if rank == 2:
                self.path.append((rank * 3, clock[rank], clock[rank] + 60 + copy, 3))
            clock[rank] += 60 + copy
        for collective in range(self.collectives):
            for rank in range(self.ranks):
                for _ in range(self.kernels):
                    busy = 20 + self.random.random() * 160
                    self.add(rank, 0, 3 + self.collectives + self.random.randrange(self.kernels), 0, clock[rank], busy)
                    clock[rank] += busy + self.random.random() * 4
            last = max(clock)
            transfer = 300 + 500 * (collective % 3) + self.random.random() * 100
            members = []
            for rank in range(self.ranks):
                wait = None
                if last - clock[rank] > 0:
                    wait = self.add(rank, 1, 3 + collective, 2, clock[rank], last - clock[rank])
                else:
                    before = self.path[-1][2] if self.path else 0
                    self.path.append((rank * 3, before, last, 0))
                    self.path.append((rank * 3 + 1, last, last + transfer, 1))
                members.append((self.add(rank, 1, 3 + collective, 1, last, transfer), wait))
                clock[rank] = last + transfer
            self.groups.append((collective, members))

    def json(self):
        order = sorted(range(len(self.rows)), key=lambda at: self.rows[at][:2])
        place = {old: new for new, old in enumerate(order)}
        rows = [self.rows[at] for at in order]
        column = lambda at, digits: [round(row[at], digits) for row in rows]
        return {
            "lanes": [{"rank": lane // 3, "name": ("computation", "communication", "host")[lane % 3]}
                      for lane in range(3 * self.ranks)],
            "names": self.names, "kinds": KINDS,
            "events": {"lane": column(0, 0), "name": column(2, 0), "kind": column(3, 0), "start_us": column(1, 3), "duration_us": column(4, 3)},
            "path": {"lane": [p[0] for p in self.path], "start_us": [round(p[1], 2) for p in self.path],
                     "end_us": [round(p[2], 2) for p in self.path]},
            "collectives": [{"name": self.names[3 + c], "events": [place[m] for m, _ in members],
                             "waits": [place.get(w, -1) for _, w in members],
                             **({"bytes": 1 << 20, "bus_gb_per_s": 3.25} if c else {})} for c, members in self.groups]}


def host(rank, ranks):
    return "node-" + "abcdefghijklmnop"[rank * (2 if ranks <= 4 else 16) // ranks]


def clock_of(node, wall_ms, rng):
    if node == 0:
        return {}
    times = [wall_ms * i / 12 for i in range(13)]
    offset = [(-1) ** node * (750.8 * node) + node * 0.004 * t / wall_ms + rng.gauss(0, 0.0004) for t in times]
    return {"clock_at_ms": times, "clock_offset_ns": [round(1e6 * o) for o in offset]}


def report(ranks, steps, collectives, kernels):
    rng = random.Random(7)
    made = Timeline(ranks, steps, collectives, kernels, 11)
    lengths = [s["end_ms"] - s["start_ms"] for s in made.steps]
    wall, step_ms = sum(lengths), sum(lengths) / steps
    nodes = [{"node_id": r, "hostname": host(r, ranks), "trace": "rank%d.xplane.pb" % r, "ranks": [r],
              "method": "reference" if r == 0 else "offsets and collectives", "offset_ns": (-1) ** r * 750800000 * r,
              "uncertainty_ns": 0 if r == 0 else 3000, "uncertainty_max_ns": 0 if r == 0 else 4000, "drift_ppm": r * 3.1,
              "drift_uncertainty_ppm": 0.2 * r, "max_correction_ns": 12000 * r, "events": len(made.rows) // ranks,
              **clock_of(r, wall, rng)} for r in range(ranks)]
    if ranks == 4:
        for unknown in ("offset_ns", "uncertainty_ns", "clock_at_ms", "clock_offset_ns", "drift_ppm"):
            del nodes[3][unknown]
    waiting = [{"step": s, "rank": r, "start_ms": made.steps[s]["start_ms"], "end_ms": made.steps[s]["end_ms"], "waited_ms": (0.3 if r == 2 else 3.4) + rng.random() * .4,
                "transfer_ms": lengths[s] * .38, "worst_op": "all-reduce.40", "worst_ms": 0.1 if r == 2 else 2.9}
               for s in range(steps) for r in range(ranks)]
    # Roles are positions in KINDS.
    path_kinds = [("gpu_compute_bound", "computation", .45, 0), ("gpu_communication_bound", "communication", .38, 1),
                  ("cpu_bound", "host", .07, 4), ("gpu_kernel_launch_overhead", "launch overhead", .06, 5),
                  ("gpu_kernel_kernel_overhead", "gaps between kernels", .04, 5)]
    path = [{"step": s, "rank": r, "kind": kind, "ms": lengths[s] * share * part} for s in range(steps)
            for r, part in ((2, .8), (0, .2)) for kind, _, share, _ in path_kinds]
    cells = [{"kind": kind, "bytes": size, "group": group, "measured_ns": 1e3 * m, "simulated_ns": 1e3 * m * rng.uniform(.9, 1.12),
              "simulated_low_ns": 1e3 * m * .85, "simulated_high_ns": 1e3 * m * 1.2, "repeats": 32}
             for kind, factor in (("all-reduce", 1.0), ("all-gather", .6), ("reduce-scatter", .7)) for size in (2 ** k for k in range(10, 25, 2))
             for group in ("{0,1}", "{0,1,2,3}") for m in [factor * (22 + size / 3900 * (1 if len(group) < 6 else 1.5))]]
    return {
        "title": "jax_tp_cuda4_skewed" if ranks == 4 else "big_run", "version": "0.9", "command": "combine --run_dir=/runs/jax_tp_cuda4_skewed",
        "created": "2026-11-16 09:00 UTC",
        "run": {"framework": "JAX", "ranks": ranks, "hosts": sorted({host(r, ranks) for r in range(ranks)}), "recorded": "2026-10-02 11:20:33 UTC",
                "steps": steps, "step_ms": step_ms, "step_spread_ms": 0.8, "step_mean_ms": step_ms, "wall_ms": wall, "events": len(made.rows)},
        "findings": [
            {"topic": "straggler", "verdict": "bad", "headline": "Rank 2 (host %s) is late in 5 of 6 steps and costs 11 %% of the step." % host(2, ranks),
             "detail": "Its input copy takes 3 ms longer than that of the others.", "section": "blame",
             "rests_on": "Rests on all ranks of 288 of 288 collectives, clocks known within 4 µs.", "at_stake_ms": 2.9, "at_stake_if": "if it kept up with the others", "ranks": [2], "step": min(4, steps - 1),
             "start_ms": made.steps[min(4, steps - 1)]["start_ms"], "end_ms": made.steps[min(4, steps - 1)]["start_ms"] + 4},
            {"topic": "clocks", "verdict": "good", "headline": "The clocks agree within 4 µs, and every collective now ends after it began.",
             "detail": "144 of 288 collectives were out of order before.", "section": "clocks"},
            {"topic": "simulation", "verdict": "info", "headline": "The simulated step is 5 % off the measured one.", "section": "simulation", "detail": "Its network is too slow.", "at_stake_ms": 0.4, "at_stake_if": "on links twice as fast"},
            {"topic": "evidence", "verdict": "unknown", "headline": "The clock of one node is not known.",
             "detail": "Its trace holds no offsets and no collective with another node.", "section": "clocks"}],
        "combine": {
            "nodes": nodes, "happens_before": {"instances": 288, "checked": 288, "violations_before": 144, "checked_on": "written file"},
            "step_waits": waiting,
            "kinds": [{"kind": "all-reduce", "instances": 144, "operand_bytes": 1234567890, "wait_ms": 12.0, "transfer_ms": 80.0},
                      {"kind": "all-gather", "instances": 72, "operand_bytes": 34567890, "wait_ms": 4.0, "transfer_ms": 31.0},
                      {"kind": "reduce-scatter", "instances": 72, "operand_bytes": 34567890, "wait_ms": 6.5, "transfer_ms": 22.0}],
            "ranks": [{"rank": r, "node_id": r, "last": 240 if r == 2 else 16, "collectives": 288, "caused_wait_ms": 52.1 if r == 2 else 1.3,
                       "waited_ms": 2.0 if r == 2 else 20.4, "transfer_ms": 120.0} for r in range(ranks)],
            "transfers": [{"kind": kind, "bytes": size, "ranks": ranks, "count": 24, "transfer_ms": (25 + size / 3900) / 1e3, "wait_ms": .2,
                           "bus_gb_per_s": factor * size / (25e3 + size / 3.9)} for kind, factor in (("all-reduce", 1), ("all-gather", .8))
                          for size in (2 ** k for k in range(12, 25))],
            "groups": groups(ranks)},
        "steps": made.steps, "path": path,
        "path_kinds": [{"kind": kind, "label": label, "role": role} for kind, label, _, role in path_kinds],
        "blame": [{"step": s, "rank": 2, "hostname": host(2, ranks), "caused_ms": 2.9 + rng.random() * .2, "share": .11, "op": "copy.3",
                   "reason": "its input copy takes 3.1 ms, that of the others 0.1 ms"} for s in range(steps) if s != 1],
        "forecasts": [{"question": f"bandwidth {bandwidth}x, compute {compute}x", "ranks": ranks,
                       "bandwidth": bandwidth, "compute": compute, "latency": 1, "measured_step_ns": step_ms * 1e6,
                       "step_ns": step_ms * 1e6 * (0.6 / bandwidth + 0.4 * compute),
                       "low_ns": step_ms * 0.9e6 * (0.6 / bandwidth + 0.4 * compute),
                       "high_ns": step_ms * 1.1e6 * (0.6 / bandwidth + 0.4 * compute),
                       "rests_on": ["6 recorded steps"], "assumptions": ["ranks stay where they are"]}
                      for compute in (1, 0.5) for bandwidth in (0.5, 1, 2, 4)] + [
                      {"question": question, "ranks": count, "bandwidth": 1, "compute": 1, "latency": latency,
                       "measured_step_ns": step_ms * 1e6, "step_ns": 30.4e6, "low_ns": 28e6, "high_ns": 33e6}
                      for question, count, latency in (("8 ranks", 8, 1), ("latency 0.5x", ranks, 0.5))],
        "what_if": [{"what": "rank 2 as fast as the others", "step_ms": step_ms - 2.9, "saved_ms": 2.9, "change": 5, "rank": 2},
                    {"what": "communication twice as fast", "step_ms": step_ms * .8, "saved_ms": step_ms * .2},
                    {"what": "no gaps between kernels", "step_ms": step_ms * .95, "saved_ms": step_ms * .05}],
        "simulation": {"network": "ring of 4", "calibrated_from": "sweep_cuda4", "mean_error": .06, "step_error": .05, "cells": cells,
                       "steps": [{"step": s, "measured_ns": 1e6 * lengths[s], "simulated_ns": 1e6 * lengths[s] * 1.04, "simulated_low_ns": 1e6 * lengths[s] * .95,
                                  "simulated_high_ns": 1e6 * lengths[s] * 1.12} for s in range(steps)],
                       "parameters": [{"name": "bandwidth GB/s", "value": 3.9, "low": 3.7, "high": 4.1, "identifiable": True},
                                      {"name": "latency µs", "value": 22.0, "low": 20.5, "high": 23.9, "identifiable": True},
                                      {"name": "congestion factor", "value": 1.5}],
                       "notes": ["The sweep was recorded on an idle machine."]},
        "timeline": made.json(), "evidence": {"clock_uncertainty_ms": .004},
        "files": [{"kind": "perfetto", "path": "combined.pftrace", "bytes": 1234567, "note": "open at ui.perfetto.dev"},
                  {"kind": "analysis", "path": "analysis.json", "bytes": 83411}],
        "operations": operations(ranks, steps),
        "notes": ["Rank 3 has no clock offsets; its events are placed by the collectives alone."],
        "stages": [{"name": "align", "state": "done", "seconds": .4}, {"name": "merge", "state": "done"},
                   {"name": "simulate", "state": "failed", "seconds": 1.25, "note": "It ran out of time."}]}


KERNEL = ("void at::native::vectorized_elementwise_kernel<4, at::native::sqrt_kernel_cuda(at::TensorIteratorBase&)::{lambda()#2}::operator()() const::"
          "{lambda(float)#1}, at::detail::Array<char*, 2> >(int, at::detail::Array<char*, 2>)")


def groups(ranks):
    """Neighbours, and every second rank, in pairs and rings; those with rank 2 are four times slower."""
    rings = [[first, first + 1] for first in range(0, ranks, 2)] + [list(range(first, ranks, max(2, ranks // 8))) for first in range(max(2, ranks // 8))]
    return [{"ranks": ring, "kind": "all-reduce", "bytes": size, "count": 24, "transfer_ms": (4 if 2 in ring else 1) * size / 4e6,
             "bus_gb_per_s": (1.0 if 2 in ring else 4.0) - 0.01 * (ring[0] % 7), "relative_speed": 0.25 if 2 in ring else 1} for ring in rings for size in (2 ** 18, 2 ** 22)]


def operations(ranks, steps):
    names = [(KERNEL, "computation", "", 3.1), ("all-reduce.40", "transfer", "all-reduce", 2.2), ("copy.3", "copy", "", 0.9), ("jit(step)", "host", "", 0.5)]
    names += [("fusion.%d" % at, "computation", "", 0.4 / at) for at in range(1, 30)]
    return [{"name": name, "role": KINDS.index(role), "kind": kind, **({"bytes": 4194304} if kind else {}), "framework_op": "jit(step)/mul", "source": "/home/user/train.py:42",
             "count": 10 * ranks * steps, "total_ms": ms * ranks * steps, "step_ms": ms, "step_spread_ms": ms / 50, "path_ms": ms * steps,
             "most_rank": 2, "most_ms": ms * steps * 1.3, "mean_of_ranks_ms": ms * steps} for name, role, kind, ms in names]


def compared(sample):
    """The sample against a run whose communication took less: the parts add up to the step."""
    row = lambda name, before, after, noise, verdict, role="": {"name": name, "role": role, "change_ns": 1e6 * ((after or 0) - (before or 0)), "verdict": VERDICTS.index(verdict),
                                                                **{key: 1e6 * ms for key, ms in (("before_ns", before), ("after_ns", after), ("noise_ns", noise)) if ms is not None}}
    return {**sample, "comparison": {
        "before": "monday", "after": "tuesday", "verdict": VERDICTS.index("LONGER"), "headline": "A step takes 30.0 ms, 6.0 ms longer: communication.",
        "detail": "Steps of one run differ by 0.8 ms.", "step": row("step", 24.0, 30.0, 0.8, "LONGER"),
        "parts": [row("communication", 10.0, 17.0, 0.5, "LONGER", "transfer"), row("computation", 12.0, 11.0, 0.4, "SHORTER", "computation"), row("host", 2.0, 2.0, 0.3, "SAME", "host")],
        "operations": [row(KERNEL, 3.1, 4.03, 0.1, "LONGER", "computation"), row("fusion.new", None, 0.5, None, "NEW"), row("fusion.old", 0.4, None, None, "GONE"), row("copy.3", 0.9, 0.92, 0.1, "SAME")],
        "collectives": [row("all-reduce of 4 MiB", 2.2, 5.1, 0.2, "LONGER")], "ranks": [row("rank 2", 0.3, 2.9, 0.2, "LONGER"), row("rank 1", 0.3, 0.31, 0.2, "SAME")],
        "clocks": [row("node 1", 0.004, 0.004, None, "UNKNOWN")], "notes": ["The runs have other versions of JAX."],
        "before_steps_ns": [24e6, 23.5e6, 24.6e6, 23.9e6], "after_steps_ns": [30.1e6, 29.4e6, 30.8e6, 30e6, 29.7e6]}}


def many(ranks, steps, collectives, kernels):
    """A report of so many ranks, with what grows with them as small as in real ones."""
    made, rng = report(ranks, steps, collectives, kernels), random.Random(5)
    node = lambda r: {"node_id": r, "hostname": "node-%d" % (r // 8), "ranks": [r], "method": "collectives", "offset_ns": rng.randrange(-900, 900), "uncertainty_ns": 1000, "uncertainty_max_ns": 1200}
    made["combine"]["nodes"] = [node(r) for r in range(ranks)]
    return made


def hostile(value, rng):
    """The same shape with every text replaced and every number missing, negative, huge or 0."""
    if isinstance(value, dict):
        kept = {name: hostile(item, rng) for name, item in value.items()}
        return {name: item for name, item in kept.items() if item is not None}
    if isinstance(value, list):
        return [item if item is not None else 0 for item in (hostile(item, rng) for item in value)]
    if isinstance(value, str):
        return HOSTILE
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return rng.choice([None, -1, 0, 0, 3, 1, 2**31 - 1])
    return rng.choice([None, -1, -1e9, 0, 0, 1e18, 1e300, 3, 1])


def write(name, value):
    (OUT / (name + ".json")).write_text(json.dumps(value, separators=(",", ":")))


sample = report(4, 6, 12, 9)
write("sample", sample)
big = report(64, 12, 16, 7)
print("sample %d events, big %d events" % (len(sample["timeline"]["events"]["lane"]), len(big["timeline"]["events"]["lane"])))
write("big", big)
write("compared", compared(sample))
write("ranks256", many(256, 6, 8, 6))
write("ranks2048", many(2048, 2, 4, 3))
attack = hostile(compared(sample), random.Random(3))
for node, formula in zip(attack["combine"]["nodes"], FORMULAS):
    node["hostname"] = formula
write("hostile", attack)
write("empty", {})
