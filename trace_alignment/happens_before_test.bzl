"""A test that no collective of a run ends before it began somewhere."""

load("@rules_cc//cc:defs.bzl", "cc_test")

def happens_before_test(name, traces, **kwargs):
    """Checks happens-before of every collective across the profiles of one run.

    The test fails when a collective violates it, which means that the clocks of the nodes disagree,
    and when there is none to check. It prints what validate_collectives prints.

    Args:
      name: of the test.
      traces: labels of the run's profiles, one file per node: *.xplane.pb, plain or gzip.
      **kwargs: what every test has, such as size or tags.
    """
    cc_test(
        name = name,
        args = ["$(rootpaths %s)" % trace for trace in traces],
        data = traces,
        size = kwargs.pop("size", "small"),
        tags = kwargs.pop("tags", []) + ["happens_before"],
        deps = [Label("//trace_alignment:happens_before_main")],
        **kwargs
    )
