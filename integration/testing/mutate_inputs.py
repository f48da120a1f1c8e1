# SPDX-License-Identifier: Apache-2.0
"""Damages real inputs at random and runs the commands on them.

Whatever an input holds, a command ends by itself with an exit code from 0 to 3, within its time and
memory, says in one line why it refuses the input, and leaves its outputs either all new or all as they
were, without temporary files. PAIRS lists which command is tried on which input:

  mutate_inputs.py --count=10000                 all pairs
  mutate_inputs.py --only=combine                pairs whose command or input has this in its name
  mutate_inputs.py --only='combine offsets' --seed=7 --count=1 --first=123    one mutation again

An input that a command fails on is saved with the command line that shows it.
"""
import argparse
import collections
import contextlib
import gzip
import json
import os
import pathlib
import pickle
import random
import re
import resource
import select
import shutil
import signal
import sqlite3
import struct
import subprocess
import sys
import tempfile
import zlib

ROOT = pathlib.Path(os.path.abspath(__file__)).parents[2]
# More real traces, where they lie beside the checkout (which Bazel's files are links to).
SHARED = pathlib.Path(os.path.realpath(__file__)).parents[3] / "shared"
START_NS = 1794701451406144825  # When examples/jax_cuda2 was recorded.

# Command, the name of the input, the input that is damaged, the arguments. In these, {input} is the
# damaged file, {made} the folder of prepare(), {out} a folder for outputs and {examples} that of the
# examples. {input}/ is the folder of a run of which one file is damaged, and {input_prefix} the prefix of
# its files. Outputs with a suffix are files, which are there before.
Pair = collections.namedtuple("Pair", "command input source arguments")
CUDA2 = "{examples}/jax_cuda2/rank1.xplane.pb"
TP = "{examples}/jax_tp_cuda4_skewed/rank2.xplane.pb.gz"
KINETO = "{examples}/torch_pipeline4/kineto_1.json.gz"
TORCH_ET = "{examples}/torch_pipeline4/et_1.json.gz"
ET = "{made}/et/run.1.et"
PAIRS = [
    Pair("xspace_inspect", "xspace", CUDA2, "--trace={input} --json"),
    Pair("xspace_inspect", "xspace.gz", TP, "--trace={input}"),
    Pair("xprof_trace_align", "xspace", CUDA2,
         "--trace={input} --offsets={made}/offsets.jsonl --node_id=1 --output={out}/aligned.pb"),
    Pair("xprof_trace_align", "offsets", "{made}/offsets.jsonl",
         "--trace={examples}/jax_cuda2/rank1.xplane.pb --offsets={input} --node_id=1 --output={out}/aligned.pb"),
    Pair("xprof_trace_align", "snapshots", "{made}/snapshots.jsonl",
         "--trace={examples}/jax_cuda2/rank1.xplane.pb --snapshot_pairs={input} --output={out}/aligned.pb"),
    Pair("combine", "xspace", CUDA2,
         "--run_dir={input}/ --output={out}/c.xplane.pb --trace_json={out}/c.json --perfetto={out}/c.perfetto"
         " --report={out}/r.html"),
    Pair("combine", "xspace.gz", TP, "--run_dir={input}/ --output={out}/c.xplane.pb --validate"),
    Pair("compare", "report", "{made}/report/report.json", "{examples}/jax_cuda2 {input} --output_dir={out}/page"),
    Pair("combine", "kineto", KINETO, "--run_dir={input}/ --output={out}/c.json --perfetto={out}/c.perfetto"),
    Pair("combine", "offsets", "{made}/offsets.jsonl",
         "--traces={examples}/jax_cuda2 --offsets={input} --output={out}/c.xplane.pb"),
    Pair("combine", "snapshots", "{made}/snapshots.jsonl",
         "--traces={examples}/jax_cuda2 --snapshots={made}/snapshots.jsonl,{input} --output={out}/c.xplane.pb"),
    Pair("combine", "probe windows", "{made}/probe_windows_node0.jsonl",
         "--traces={examples}/jax_cuda2 --probes={input} --method=probes --output={out}/c.xplane.pb"),
    Pair("combine", "two-way probes", "{made}/probes_node0.jsonl",
         "--traces={examples}/jax_cuda2 --probes={input} --method=probes --output={out}/c.xplane.pb"),
    Pair("combine", "inspector log", "{made}/logs/rank1.log", "--run_dir={input}/ --output={out}/c.json"),
    Pair("combine", "table", "{made}/table/run.csv", "--traces={input} --output={out}/c.json"),
    Pair("critical_path", "table", "{made}/table/run.csv", "--traces={input} --save={out}/g.mcp"),
    Pair("combine", "nsys sqlite", "{made}/nsys/rank1.sqlite", "--run_dir={input}/ --output={out}/c.json"),
    Pair("validate_collectives", "rocpd", "{made}/rocpd/rank1.db", "--run_dir={input}/ --csv={out}/v.csv"),
    Pair("combine", "pftrace", "{made}/pftrace/rank1.pftrace", "--run_dir={input}/ --output={out}/c.json"),
    Pair("critical_path", "pftrace", "{made}/pftrace/rank1.pftrace", "--run_dir={input}/ --save={out}/g.mcp"),
    Pair("combine", "whole chain", CUDA2, "--run_dir={input}/ --output_dir={out}/all"),
    Pair("validate_collectives", "xspace", CUDA2, "--run_dir={input}/ --csv={out}/v.csv"),
    Pair("validate_collectives", "kineto", KINETO, "--run_dir={input}/ --csv={out}/v.csv"),
    Pair("validate_collectives", "collective kernels", "{made}/kernels.csv",
         "--traces={examples}/torch_pipeline4 --collective_kernels={input}"),
    Pair("validate_collectives", "flight recorder", "{made}/dumps/fr_1.json", "--run_dir={input}/ --csv={out}/v.csv"),
    Pair("validate_collectives", "pickle", "{made}/pickles/nccl_trace_rank_1", "--run_dir={input}/ --json"),
    Pair("combine", "flight recorder", "{made}/dumps/fr_1.json", "--run_dir={input}/ --output={out}/c.json"),
    Pair("chakra_export", "xspace", CUDA2, "--run_dir={input}/ --output={out}/et/run"),
    Pair("chakra_export", "xspace.gz", TP, "--run_dir={input}/ --allow_violations --output={out}/et/run"),
    Pair("chakra_link", "pytorch et", TORCH_ET, "--run_dir={input}/ --output={out}/et/run"),
    Pair("chakra_link", "kineto", KINETO, "--run_dir={input}/ --output={out}/et/run"),
    Pair("chakra_inspect", "et", ET, "--et={input} --stats --check"),
    Pair("chakra_inspect", "et to json", ET, "--et={input} --to_json --output={out}/et.json"),
    Pair("chakra_inspect", "comm groups", "{made}/gen/t.comm_groups.json",
         "--et={made}/gen/t --comm_groups={input} --check"),
    Pair("critical_path", "kineto", KINETO,
         "--trace={input} --save={out}/g.mcp --overlay={out}/o.json"),
    Pair("critical_path", "pytorch et", TORCH_ET,
         "--trace={examples}/torch_pipeline4/kineto_1.json.gz --host_traces={input}"),
    Pair("critical_path", "xspace", CUDA2, "--run_dir={input}/ --save={out}/g.mcp"),
    Pair("critical_path", "saved graph", "{made}/graph.mcp",
         "--restore={input} --overlay={out}/o.json"),
    Pair("forecast", "xspace", CUDA2,
         "--run_dir={input}/ --calibration={made}/machine --bandwidth=2x --ranks=4 --csv={out}/f.csv"),
    Pair("forecast", "links", "{made}/links.yml",
         "--run_dir={examples}/jax_cuda2 --calibration={made}/machine --network={input}"),
    Pair("trace_columns", "kineto", KINETO, "--trace={input} --output_dir={out}/columns"),
    Pair("trace_columns", "xspace", CUDA2, "--trace={input} --output_dir={out}/columns"),
    Pair("astra_calibrate", "xspace", CUDA2, "--run_dir={input}/ --calibration={out}/machine"),
    Pair("astra_validate", "xspace", CUDA2,
         "--run_dir={input}/ --network={made}/ring2.yml"),
    Pair("astra_validate", "calibration", "{made}/machine/calibration.json",
         "--run_dir={examples}/sweep_cpu4 --calibration={input}/"),
    Pair("astra_simulate", "et", "{made}/gen/t.1.et",
         "--workload={input_prefix} --network={made}/ring4.yml --trace_json={out}/t.json"),
    Pair("astra_simulate", "network", "{made}/ring4.yml",
         "--workload={made}/gen/t --network={input} --node_times --json"),
    Pair("astra_simulate", "system", "{made}/system.json",
         "--workload={made}/gen/t --network={made}/ring4.yml --system={input}"),
    Pair("astra_simulate", "corrections", "{made}/machine/corrections.json",
         "--workload={made}/gen/t --network={made}/ring4.yml --corrections={input}"),
    Pair("astra_simulate", "comm groups", "{made}/gen/t.comm_groups.json",
         "--workload={made}/gen/t --network={made}/ring4.yml --comm_groups={input}"),
    Pair("astra_predict", "et", "{made}/gen/t.1.et",
         "--et={input_prefix} --network={made}/ring4.yml"),
    Pair("astra_predict", "edges", "{made}/edges.jsonl",
         "--edges={input} --network={made}/ring4.yml --mode=snapshot --json"),
    Pair("astra_predict", "config", "{made}/timing.yml", "--edges={made}/edges.jsonl --config={input}"),
    Pair("workload_model", "et", ET, "fit --et={input_prefix} --size=1 --output={out}/m.json"),
    Pair("workload_model", "xspace.gz", "{examples}/jax_tp_cuda4/rank2.xplane.pb.gz",
         "scale --traces={input}/ --ranks=8 --output={out}/w/run"),
    Pair("workload_model", "mpip trace", "{made}/mpip/a_8-8-1-17-0.txt",
         "fit --traces={input}/ --output={out}/m.json"),
    Pair("workload_model", "model", "{made}/model.json", "generate --model={input} --nodes=2 --size=1"
         " --output={out}/w/run"),
    Pair("xspace_inspect", "scan xspace", "{shared}/traces/scan_cuda4/rank1.xplane.pb.gz", "--trace={input}"),
    Pair("combine", "scan xspace", "{shared}/traces/scan_cuda4/rank1.xplane.pb.gz",
         "--run_dir={input}/ --output={out}/c.xplane.pb"),
    Pair("combine", "fsdp kineto", "{shared}/traces/fsdp_nccl4/kineto_1.json.gz",
         "--run_dir={input}/ --output={out}/c.json"),
    Pair("combine", "graph kineto", "{shared}/traces/graph_nccl4/kineto_1.json.gz",
         "--run_dir={input}/ --output={out}/c.json"),
    Pair("critical_path", "fsdp kineto", "{shared}/traces/fsdp_nccl4/kineto_1.json.gz",
         "--trace={input} --overlay={out}/o.json"),
    Pair("chakra_link", "fsdp et", "{shared}/traces/fsdp_nccl4/et_1.json.gz",
         "--run_dir={input}/ --output={out}/et/run"),
    Pair("astra_calibrate", "sweep", "{shared}/traces/sweep_cuda2/rank1.xplane.pb.gz",
         "--traces={input}/ --calibration={out}/machine"),
]

TEXT_VALUES = [b"-1", b"0", b"1e308", b"1e-320", b"NaN", b"null", b"true", b"{}", b"[]", b'""', b"2147483648",
               b"4294967296", b"-9223372036854775808", b"9223372036854775807", b"18446744073709551616",
               b"=1+1", b"../../x", b"\xff\xfe", b"\x00", b"[[[[[[[[[[[[[[[[", b"{" * 300, b"9" * 400, b"A" * 70000]
BYTE_VALUES = [b"\x00", b"\x7f", b"\x80", b"\xff", b"\xff" * 9 + b"\x01", b"\xff\xff\xff\xff\x0f", b"\x08", b"\x12",
               b"\x1f\x8b", b"\x00" * 64]
NUMBER = re.compile(rb"-?\d+(\.\d+)?([eE][-+]?\d+)?")


def mutate(data, rng):
    """Returns the bytes with one to eight random changes."""
    data = bytearray(data)
    is_text = not any(byte < 9 for byte in data[:2000])
    for _ in range(rng.choice([1, 1, 1, 2, 4, 8])):
        if not data:
            return bytes(data)
        at = rng.randrange(len(data))
        length = min(len(data) - at, rng.choice([1, 1, 2, 4, 16, 256, 4096]))
        kind = rng.randrange(9 if is_text else 7)
        if kind == 0:
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            data[at] = rng.randrange(256)
        elif kind == 2:
            del data[at:at + length]
        elif kind == 3:  # Said twice, here or elsewhere.
            to = rng.choice([at, rng.randrange(len(data))])
            data[to:to] = data[at:at + length]
        elif kind == 4:
            value = rng.choice(TEXT_VALUES if is_text else BYTE_VALUES)
            data[at:at + rng.choice([0, len(value)])] = value
        elif kind == 5:
            data[at:at + length] = rng.randbytes(length)
        elif kind == 6:
            if rng.random() < 0.3:
                del data[at:]
            else:
                other = rng.randrange(len(data))
                data[at:at + length] = data[other:other + length]
        elif kind == 7:  # The next number is another one.
            found = NUMBER.search(data, at)
            if found:
                data[found.start():found.end()] = rng.choice(TEXT_VALUES)
        else:  # A line moves, or goes.
            start = data.rfind(b"\n", 0, at) + 1
            end = data.find(b"\n", at) + 1 or len(data)
            line = data[start:end]
            del data[start:end]
            if rng.random() < 0.5:
                to = data.rfind(b"\n", 0, rng.randrange(len(data) + 1)) + 1
                data[to:to] = line
    return bytes(data)


def damaged(data, rng, inflated):
    """Most files that are compressed or have a checksum are damaged inside, where bytes mean something.

    `inflated` is what a gzip file holds, or None.
    """
    if rng.random() < 0.8:
        if inflated is not None:
            return gzip.compress(mutate(inflated, rng), 0)  # Stored: compressing would take longer than the command.
        if data[:8] == b"MCPGRAPH":
            body = mutate(data[16:], rng)
            return data[:12] + zlib.crc32(body).to_bytes(4, "little") + body
    return mutate(data, rng)


def prepare(program, made, examples):
    """Makes the inputs that are no examples."""
    def run(*arguments):
        subprocess.run([program, *arguments], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    for folder in ("logs", "dumps", "pickles", "mpip", "table", "nsys", "rocpd", "pftrace"):
        (made / folder).mkdir(parents=True)
    run("chakra_export", f"--traces={examples}/jax_cuda2", f"--output={made}/et/run")
    run("combine", f"--run_dir={examples}/jax_cuda2", f"--output_dir={made}/report", "--stages=path,report")
    run("chakra_generate", "--pattern=transformer", "--tp=2", "--dp=2", "--layers=2", f"--output={made}/gen/t")
    run("critical_path", f"--trace={examples}/torch_pipeline4/kineto_0.json.gz", f"--save={made}/graph.mcp")
    run("astra_calibrate", f"--traces={examples}/sweep_cpu4", f"--calibration={made}/machine")
    shutil.copy(made / "machine" / "system.json", made)
    for ranks in (2, 4):
        (made / f"ring{ranks}.yml").write_text(
            f"topology: [ Ring ]\nnpus_count: [ {ranks} ]\nbandwidth: [ 50 ]\nlatency: [ 500 ]\n")
    (made / "links.yml").write_text(
        "topology: [ Links ]\nnpus_count: [ 2 ]\nlinks:\n"
        "  - { between: [ 0, leaf ], bandwidth: 1x, latency: 0.5x }\n"
        "  - { between: [ 1, leaf ], bandwidth: 12.5, latency: 500 }\n")
    (made / "kernels.csv").write_text("# pattern,kind\nmy_(one|two)shot_\\w{1,9},all-reduce\n^void mine::put,unknown\n")
    (made / "edges.jsonl").write_text("".join(
        f'{{"edge_id":"e{i}","op_kind":"{kind}","size_bytes":{4096 << i},"participants":[0,1,2,3]}}\n'
        for i, kind in enumerate(["AR", "AG", "RS", "A2A"])) +
        '{"edge_id":"p","op_kind":"P2P","size_bytes":1048576,"src_rank":0,"dst_rank":1}\n')
    (made / "timing.yml").write_text(
        "network_backend:\n  model: embedded\n"
        "  astra: {congestion: unaware, mode: snapshot}\n"
        f"topologies:\n  default: {made}/ring4.yml\n")
    second = 1000000000
    (made / "offsets.jsonl").write_text("".join(
        f'{{"round_id":{i},"window_id":{i},"window_start_ns":{START_NS + i * second},"window_end_ns":'
        f'{START_NS + (i + 1) * second},"node_id":{node},"offset_ns":{node * (1500.25 + i)},"drift_ppm":0.5,'
        f'"residual":2.5,"reachable":true,"converged":true}}\n' for i in range(-2, 3) for node in (0, 1)))
    (made / "snapshots.jsonl").write_text(
        f'{{"meta":true,"start_walltime_ns":{START_NS},"start_gpu_ns":{START_NS},"absolute":true}}\n' + "".join(
        f'{{"sys_ns":{START_NS + i * second},"tracer_ns":{START_NS + i * second + 250 + i}}}\n' for i in range(-2, 4)))
    (made / "probe_windows_node0.jsonl").write_text("".join(
        f'{{"window_start_ns":{START_NS + i * second},"window_end_ns":{START_NS + (i + 1) * second},"round_id":{i},'
        f'"node_id":0,"edges":[{{"dst":1,"alpha":0.0000001,"beta":-1234{i},"pairs":40,"lost":2}}]}}\n'
        for i in range(5)))
    (made / "probes_node0.jsonl").write_text("".join(
        f'{{"src":0,"dst":1,"t1":{t},"t2":{t + 13500},"t3":{t + 14000},"t4":{t + 27000}}}\n'
        for t in range(START_NS - second, START_NS + 2 * second, second // 20)))
    for rank in (0, 1):
        (made / "logs" / f"rank{rank}.log").write_text("".join(
            f'{{"header": {{"id": "0x7f8c496ae9f661", "rank": {rank}, "n_ranks": 2, "nnodes": 2}}, "metadata": '
            f'{{"inspector_output_format_version": "v4.0", "dump_timestamp_us": {us + 99}, "hostname": "host{rank}", '
            f'"pid": {1000 + rank}}}, "coll_perf": {{"coll": "AllReduce", "coll_sn": {number}, "coll_msg_size_bytes": '
            f'1048576, "coll_exec_time_us": 61, "coll_timing_source": "kernel_gpu", "event_trace_ts": '
            f'{{"coll_start_ts": {us}, "kernel_events": [{{"channel_id": 0, "kernel_start_ts": {us + 23 + rank}, '
            f'"kernel_stop_ts": {us + 84}, "kernel_record_ts": {us + 83}}}]}}}}}}\n'
            for number, us in enumerate(range(START_NS // 1000, START_NS // 1000 + 40000, 1000))))
        dump = {"version": "2.10", "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1]"}},
                "pg_status": {"0": {"last_enqueued_collective": 19}}, "entries": [
            {"record_id": n, "pg_id": 0, "process_group": ("0", "default_pg"), "collective_seq_id": n + 1,
             "p2p_seq_id": 0, "is_p2p": False, "profiling_name": "nccl:all_reduce", "input_sizes": [[64, 64]],
             "input_dtypes": ["Float"], "output_sizes": [[64, 64]], "output_dtypes": ["Float"], "duration_ms": 1.5,
             "time_created_ns": START_NS + n * 10000000, "state": "completed",
             "time_discovered_completed_ns": START_NS + n * 10000000 + 9000000 + rank} for n in range(20)]}
        (made / "dumps" / f"fr_{rank}.json").write_text(json.dumps(dump))
        (made / "pickles" / f"nccl_trace_rank_{rank}").write_bytes(pickle.dumps(dump, 2))
    (made / "table" / "run.csv").write_text("rank,stream,name,kind,group,peer,step,start_ns,end_ns\n" + "".join(
        f"{rank},{stream},{kind},{kind},{group},{peer},{step},{START_NS + step * 10 ** 6 + start * 1000},"
        f"{START_NS + step * 10 ** 6 + end * 1000}\n"
        for step in range(20) for rank in (0, 1) for stream, kind, group, peer, start, end in (
            ("gpu", "compute", "", "", 0, 400 + 100 * rank), ("net", ("send", "recv")[rank], "", 1 - rank, 500, 600),
            ("net", "all-reduce", "0 1", "", 600, 700))))
    for rank in (0, 1):
        make_databases(made, rank)
        (made / "pftrace" / f"rank{rank}.pftrace").write_bytes(make_pftrace(rank, 20))
    for nodes in (4, 8, 16):
        for size in (16, 17, 18):
            times = " ".join(str(20 + 1e-4 * 2 ** size / nodes) for _ in range(30))
            (made / "mpip" / f"a_{nodes}-{nodes}-1-{size}-0.txt").write_text(
                f"0 1 1 TRACE 1672854814708423.0\n1 2 1 TRACE {times}\n")
    run("workload_model", "fit", f"--traces={examples}/jax_cuda2", "--size=1", f"--output={made}/model.json")


def message(*fields):
    """Encodes numbers and values as a protobuf message: whole numbers that are not negative, texts, messages."""
    def varint(value):
        return bytes([value]) if value < 128 else bytes([value % 128 + 128]) + varint(value // 128)
    out = b""
    for number, value in fields:
        if isinstance(value, int):
            out += varint(number << 3) + varint(value)
        else:
            value = value.encode() if isinstance(value, str) else value
            out += varint(number << 3 | 2) + varint(len(value)) + value
    return out


def make_pftrace(rank, steps):
    """Returns what PyTorch would write in Perfetto's format of a rank whose steps have one all-reduce each."""
    names = ["record_param_comms", "cudaLaunchKernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL()"]
    names += [f"ProfilerStep#{step}" for step in range(steps)]
    call = {"Collective name": "allreduce", "dtype": "Float", "In msg nelems": 1024, "Out msg nelems": 1024,
            "Group size": 2, "Rank": rank, "Process Group Name": "0", "Process Group Ranks": "[0, 1]"}

    def annotations(args):
        return [(4, message((10, key), (6 if isinstance(value, str) else 4, value))) for key, value in args.items()]

    def texts(field, table):
        return [(field, message((1, i + 1), (2, name))) for i, name in enumerate(table)]

    packets = [[(8, START_NS), (10, 1), (6, message(*((1, message((1, c), (2, START_NS))) for c in (6, 1))))],
               [(60, message((1, 1), (3, message((1, 9), (6, "python")))))],
               [(60, message((1, 2), (5, 1), (4, message((1, 9), (2, 9), (5, "thread 9")))))],
               [(10, 1), (13, 1), (12, message(
                   *texts(2, names), *texts(1, ["cpu_op", "user_annotation", "cuda_runtime"]),
                   *texts(24, ["Kernel", "Memcpy"])))]]
    for group in range(3):  # Steps, calls, launches.
        rows = [(START_NS + 10 ** 6 * step + 10 ** 4 * group, step) for step in range(steps)]
        for start, step in rows:
            args = {"External id": step + 1} if group == 0 else call if group == 1 else {
                "cbid": 211, "correlation": step + 1}
            name, category = ((4 + step, 2), (1, 1), (2, 3))[group]
            packets.append([(8, start), (10, 1), (13, 2), (11, message(
                (9, 1), (11, 2), (10, name), (3, category), *annotations(args)))])
        packets += [[(8, start + 900000 - 300000 * group), (10, 1), (11, message((9, 2), (11, 2)))]
                    for start, step in rows]
    for step in range(steps):
        args = {"device id": 0, "stream id": 7, "correlation": step + 1, **call}
        packets.append([(8, START_NS + 10 ** 6 * step + 300000 + rank), (10, 1), (13, 2), (53, message(
            (1, step + 1), (2, 100000), (11, 0), (13, 100), (14, 1), (5, 1), (20, 3),
            *((6, message((1, key), (2, str(value)))) for key, value in args.items())))])
    return message(*((1, message(*packet)) for packet in packets))


def make_databases(made, rank):
    """Writes what nsys and rocprofv3 would of a rank with 20 steps, each with one all-reduce."""
    thread, comm = 1 << 56 | 1000 << 24 | 1000, b"\1" * 8
    kernel = "ncclDevKernel_AllReduce_Sum_f32_RING_LL()"
    with contextlib.closing(sqlite3.connect(made / "nsys" / f"rank{rank}.sqlite")) as nsys, nsys:
        nsys.executescript(f"""
            CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
            CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER);
            CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER,
                correlationId INTEGER, globalPid INTEGER, demangledName INTEGER);
            CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, globalTid INTEGER,
                correlationId INTEGER, nameId INTEGER);
            CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, text TEXT, globalTid INTEGER,
                domainId INTEGER, binaryData TEXT);
            CREATE TABLE NVTX_PAYLOAD_SCHEMA_ENTRIES (domainId INTEGER, schemaId INTEGER, name TEXT, offset INTEGER);
            INSERT INTO StringIds VALUES (1, '{kernel}'), (2, 'cudaLaunchKernel_v7000');
            INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES ({START_NS});
            INSERT INTO NVTX_PAYLOAD_SCHEMA_ENTRIES VALUES (1, 7, 'NCCL communicator ID', NULL),
                (1, 7, 'Message size [bytes]', 8);""")
        payload = struct.pack("<QQQQ8sQ", 1, 7, 16, 32, comm, 1 << 20)
        for step in range(20):
            at = 1000000 * (step + 1)
            nsys.execute("INSERT INTO NVTX_EVENTS VALUES (?, ?, 59, ?, ?, NULL, NULL)",
                         (at, at + 900000, f"step {step}", thread))
            nsys.execute("INSERT INTO NVTX_EVENTS VALUES (?, ?, 59, 'ncclAllReduce', ?, 1, ?)",
                         (at + 1000, at + 9000, thread, payload))
            nsys.execute("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?, ?, ?, ?, 2)",
                         (at + 2000, at + 3000, thread, step + 1))
            nsys.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, 0, 7, ?, ?, 1)",
                         (at + 20000 + rank, at + 90000, step + 1, thread - 1000))
    with contextlib.closing(sqlite3.connect(made / "rocpd" / f"rank{rank}.db")) as rocpd, rocpd:
        rocpd.executescript(f"""
            CREATE TABLE rocpd_metadata_u (id INTEGER PRIMARY KEY, tag TEXT, value TEXT);
            CREATE TABLE rocpd_string_u (id INTEGER PRIMARY KEY, string TEXT);
            CREATE TABLE rocpd_info_process_u (id INTEGER PRIMARY KEY, pid INTEGER, environment JSONB);
            CREATE TABLE rocpd_info_kernel_symbol_u (id INTEGER PRIMARY KEY, display_name TEXT);
            CREATE TABLE rocpd_event_u (id INTEGER PRIMARY KEY, category_id INTEGER, stack_id INTEGER, extdata JSONB);
            CREATE TABLE rocpd_kernel_dispatch_u (id INTEGER PRIMARY KEY, agent_id INTEGER, kernel_id INTEGER,
                stream_id INTEGER, start BIGINT, end BIGINT, event_id INTEGER);
            CREATE TABLE rocpd_region_u (id INTEGER PRIMARY KEY, tid INTEGER, start BIGINT, end BIGINT,
                name_id INTEGER, event_id INTEGER);
            INSERT INTO rocpd_metadata_u (tag, value) VALUES ('schema_version', '3');
            INSERT INTO rocpd_string_u VALUES (1, 'MARKER_CORE_RANGE_API'), (2, 'hipLaunchKernel'),
                (3, '{{AllReduce: NCCL communicator ID: 7, Message size [bytes]: 1048576}}');
            INSERT INTO rocpd_info_process_u VALUES (9, 9, '{{"RANK": "{rank}", "WORLD_SIZE": "2"}}');
            INSERT INTO rocpd_info_kernel_symbol_u VALUES (1, '{kernel}');""")
        for step in range(20):
            at, first = 1000000 * (step + 1), 3 * step + 1
            rocpd.executemany("INSERT INTO rocpd_event_u VALUES (?, ?, ?, '{}')",
                              [(first, 1, first), (first + 1, None, first + 1), (first + 2, None, first + 1)])
            rocpd.execute("INSERT INTO rocpd_region_u (tid, start, end, name_id, event_id) VALUES (9, ?, ?, 3, ?), "
                          "(9, ?, ?, 2, ?)", (at, at + 9000, first, at + 1000, at + 2000, first + 1))
            rocpd.execute("INSERT INTO rocpd_kernel_dispatch_u (kernel_id, stream_id, start, end, event_id) VALUES "
                          "(1, 1, ?, ?, ?)", (at + 20000 + rank, at + 90000, first + 2))


class Trial:
    """A damaged input and the command line that reads it."""

    def __init__(self, pair, folder, made, examples):
        self.pair = pair
        self.folder = folder
        self.out = folder / "out"
        self.tmp = folder / "tmp"
        self.source = pathlib.Path(pair.source.format(made=made, examples=examples, shared=SHARED))
        # The files beside it belong to the same run, as the prefix or the folder names them.
        self.input = folder / "in" / self.source.name
        wants_folder, wants_prefix = "{input}/" in pair.arguments, "{input_prefix}" in pair.arguments
        self.input.parent.mkdir(parents=True)
        if wants_folder or wants_prefix:
            prefix = self.source.name.split(".")[0]
            for other in self.source.parent.iterdir():
                if other.is_file() and (wants_folder or other.name.split(".")[0] == prefix):
                    shutil.copy(other, self.input.parent)
        text = pair.arguments.replace("{input}/", str(self.input.parent))
        self.arguments = [argument.format(input=self.input, input_prefix=self.input.parent / self.input.name.split(".")[0],
                                          made=made, examples=examples, out=self.out) for argument in text.split()]
        self.outputs = [pathlib.Path(argument.split("=", 1)[1]) for argument in self.arguments
                        if f"={self.out}/" in argument]
        self.files = [path for path in self.outputs if path.suffix]
        self.data = self.source.read_bytes()
        self.inflated = gzip.decompress(self.data) if self.data[:2] == b"\x1f\x8b" else None
        self.beside = {path.name: path.read_bytes() for path in self.input.parent.iterdir()}

    def set_up(self, data):
        for folder in (self.out, self.tmp, self.input.parent):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
        for path in self.files:
            path.write_bytes(b"old")
        for name, contents in self.beside.items():
            (self.input.parent / name).write_bytes(contents)
        self.input.write_bytes(data)

    def leftovers(self, code):
        """Returns what is wrong with the files that the command left."""
        if any(self.tmp.iterdir()):
            return f"left {next(self.tmp.iterdir()).name} in TMPDIR"
        found = [path for path in self.out.rglob("*") if path.is_file()]
        temporary = [path for path in found if path.name.startswith(".") or path.name.endswith(".tmp")]
        if temporary:
            return f"left {temporary[0].name}"
        if code < 2:
            kept = [path.name for path in self.files if path.read_bytes() == b"old"]
            return f"did not write {kept}" if kept and code == 0 else None
        new = [path.name for path in found if path not in self.files or path.read_bytes() != b"old"]
        return f"wrote {new} though it failed" if new else None


def run_limited(command, trial, options):
    """Returns exit code (negative for a signal), CPU seconds, MiB and the text on standard error.

    The memory is that of the command or of this process, whichever had more.
    """
    limits = {resource.RLIMIT_AS: (options.memory_mib << 20,) * 2, resource.RLIMIT_CORE: (0, 0),
              resource.RLIMIT_CPU: (options.timeout_s, options.timeout_s + 1)}
    environment = dict(os.environ, TMPDIR=str(trial.tmp), HOME=str(trial.folder), XDG_CACHE_HOME=str(trial.folder))
    with open(trial.folder / "stderr", "w+b") as error:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=error,
                                   env=environment, cwd=trial.folder)
        for name, value in limits.items():
            resource.prlimit(process.pid, name, value)
        # One that neither works nor ends is found out by the clock.
        ended = os.pidfd_open(process.pid)
        if not select.select([ended], [], [], 20 * options.timeout_s)[0]:
            signal.pidfd_send_signal(ended, signal.SIGKILL)
        os.close(ended)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        error.seek(0)
        text = error.read(1 << 20).decode(errors="replace")
    return process.returncode, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, text


def complaint(code, text, trial):
    """Returns what is wrong about how the command ended, or None."""
    if code < 0:
        hung = code in (-signal.SIGXCPU, -signal.SIGKILL)
        return "took too long" if hung else f"ended by signal {-code}"
    if code > 3:
        return f"exit code {code}"
    if code >= 2 and not text.strip():
        return "refused it without a word"
    if max(map(len, text.splitlines()), default=0) > 2000:
        return "a message of more than 2,000 characters"
    if code == 3 and "out of memory" in text:
        return "out of memory"
    return trial.leftovers(code)


def try_pair(pair, options, made, work):
    """Returns the pair's row of the table, and how often the command failed."""
    folder = work / "trial"
    shutil.rmtree(folder, ignore_errors=True)
    trial = Trial(pair, folder, made, options.examples)
    command = [str(options.program), pair.command, *trial.arguments]
    trial.set_up(trial.data)
    code, _, _, text = run_limited(command, trial, options)
    if code not in (0, 1):
        print(f"{pair.command}, {pair.input}: does not even take the input as it is: {text}")
        return None, 1
    exits = collections.Counter()
    worst_cpu = worst_memory = failures = 0
    for number in range(options.first, options.first + options.count):
        # Each mutation has a seed of its own, so that it can be made again without the others.
        rng = random.Random(f"{options.seed} {pair.command} {pair.input} {number}")
        data = damaged(trial.data, rng, trial.inflated)
        trial.set_up(data)
        code, cpu, memory, text = run_limited(command, trial, options)
        exits[code] += 1
        worst_cpu, worst_memory = max(worst_cpu, cpu), max(worst_memory, memory)
        problem = complaint(code, text, trial)
        if problem is None:
            continue
        failures += 1
        options.save.mkdir(parents=True, exist_ok=True)
        saved = options.save / f"{pair.command}-{pair.input.replace(' ', '_')}-{options.seed}-{number}-{trial.input.name}"
        saved.write_bytes(data)
        print(f"{pair.command}, {pair.input}, --seed={options.seed} --first={number}: {problem}; saved {saved}\n"
              f"  {' '.join(command)}\n  {text.strip()[:300]}", flush=True)
    accepted = exits[0] + exits[1]
    return [pair.command, pair.input, options.count, exits[2], exits[3], accepted, f"{worst_cpu:.2f}",
            f"{worst_memory:.0f}"], failures


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "tools" / "meridian")
    parser.add_argument("--examples", type=pathlib.Path, default=ROOT / "examples")
    parser.add_argument("--count", type=int, default=10000, help="mutations of each input for each command")
    parser.add_argument("--first", type=int, default=0, help="the number of the first mutation")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="a part of 'command input'")
    parser.add_argument("--timeout_s", type=int, default=20, help="CPU seconds")
    parser.add_argument("--memory_mib", type=int, default=4096, help="of address space")
    here = os.environ.get("TEST_UNDECLARED_OUTPUTS_DIR") or os.environ.get("BUILD_WORKING_DIRECTORY") or "."
    parser.add_argument("--save", type=pathlib.Path, default=pathlib.Path(here) / "mutations",
                        help="where inputs go that a command failed on")
    options = parser.parse_args()
    for name in ("program", "examples", "save"):
        setattr(options, name, pathlib.Path(os.path.abspath(getattr(options, name))))
    rows = [["command", "input", "tried", "refused", "exit 3", "accepted", "CPU s", "MiB"]]
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        made = work / "made"
        prepare(options.program, made, options.examples)
        for pair in PAIRS:
            if options.only not in f"{pair.command} {pair.input}":
                continue
            if "{shared}" in pair.source and not SHARED.is_dir():
                print(f"skipped: {pair.command}, {pair.input}: ../shared not found")
                continue
            row, failed = try_pair(pair, options, made, work)
            failures += failed
            if row:
                rows.append(row)
    widths = [max(len(str(row[column])) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        print("  ".join(str(cell).ljust(width) for cell, width in zip(row, widths)).rstrip())
    print(f"{sum(row[2] for row in rows[1:])} inputs tried, {failures} failures")
    return 1 if failures or len(rows) == 1 else 0


if __name__ == "__main__":
    sys.exit(main())
