"""Commands: a library each, for the program that holds them all, and a program of their own."""

load("@rules_cc//cc:defs.bzl", "cc_binary", "cc_library")

def _camel_case(name):
    return "".join([word.capitalize() for word in name.split("_")])

def program(name, srcs, deps, **kwargs):
    """A program that needs no shared library but the C and C++ runtimes and zlib.

    Libraries that come from the system are about sixty, and to load them takes four times as long
    as a small simulation.

    Args:
      name: as for cc_binary.
      srcs: as for cc_binary.
      deps: as for cc_binary.
      **kwargs: as for cc_binary.
    """
    cc_binary(
        name = name,
        srcs = srcs,
        # What is between the two is linked in.
        linkopts = select({
            "//tools:darwin_arm64": [],
            "//tools:darwin_x86_64": [],
            "//conditions:default": ["-Wl,-Bstatic"],
        }),
        deps = deps + ["//tools:end_of_static_libraries"],
        **kwargs
    )

def command(name, deps, data = [], visibility = None):
    """The command NAME of NAME.cc: the library :NAME_command and the program :NAME.

    Args:
      name: the command's name.
      deps: what its source needs.
      data: the files that it reads when it runs.
      visibility: who may use the program.
    """
    cc_library(
        name = name + "_command",
        srcs = [name + ".cc"],
        data = data,
        deps = deps,
    )
    program(
        name = name,
        srcs = ["single_command.cc"],
        local_defines = ["MERIDIAN_COMMAND=%sCommand" % _camel_case(name)],
        visibility = visibility,
        deps = [
            ":command",
            ":%s_command" % name,
        ],
    )
