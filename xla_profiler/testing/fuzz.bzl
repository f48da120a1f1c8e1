"""Fuzz targets: see fuzz.h for the function that each defines."""

load("@rules_cc//cc:defs.bzl", "cc_test")

def fuzz_target(name, deps, tags = [], **kwargs):
    """Makes a fuzz target of NAME.cc and of the inputs in the folder corpus/NAME.

    In a plain build it is a test that tries these inputs, among them all that crashed once; with
    --config=fuzz it is libFuzzer's, which begins with them: for 20 seconds as a test, and for as
    long as is asked for under `./bazelw run --config=fuzz TARGET -- -max_total_time=300`.

    Args:
      name: of the target, "..._fuzzer"
      deps: what the source needs beside fuzz.h
      tags: beside "fuzz" and "parser"
      **kwargs: of the test
    """
    corpus = native.glob(["corpus/%s/*" % name])
    if not corpus:
        fail("corpus/%s has no inputs" % name)
    inputs = ["$(rootpath %s)" % input for input in corpus]
    cc_test(
        name = name,
        size = "small",
        srcs = [name + ".cc"],
        args = select({
            "//xla_profiler/testing:fuzzing": [
                "-max_total_time=20",
                "-rss_limit_mb=2048",
                "-timeout=25",
                "-seed_inputs=" + ",".join(inputs),
            ],
            "//conditions:default": inputs,
        }),
        data = corpus,
        linkopts = select({
            "//xla_profiler/testing:fuzzing": ["-fsanitize=fuzzer"],
            "//conditions:default": [],
        }),
        tags = ["fuzz", "parser"] + tags,
        deps = deps + ["//xla_profiler/testing:fuzz"] + select({
            "//xla_profiler/testing:fuzzing": [],
            "//conditions:default": ["//xla_profiler/testing:fuzz_replay"],
        }),
        **kwargs
    )
