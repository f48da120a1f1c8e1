"""Commands: a library each, for the program that holds them all, and a program of their own."""

load("@rules_cc//cc:defs.bzl", "cc_binary", "cc_library")
load("//tools:large_sources.bzl", "large_sources")

def _camel_case(name):
    return "".join([word.capitalize() for word in name.split("_")])

def command(name, deps, data = [], from_large_sources = False, visibility = None):
    """The command NAME of NAME.cc: the library :NAME_command and the program :NAME.

    Args:
      name: the command's name.
      deps: what its source needs.
      data: the files that it reads when it runs.
      from_large_sources: whether the program is compiled quickly, apart from the libraries.
      visibility: who may use the program.
    """
    cc_library(
        name = name + "_command",
        srcs = [name + ".cc"],
        data = data,
        # Nobody wants a shared library of it.
        linkstatic = True,
        deps = deps,
    )
    libraries = [
        ":command",
        ":%s_command" % name,
    ]
    large = []
    if from_large_sources:
        large = [":%s_sources" % name]
        large_sources(
            name = name + "_sources",
            deps = libraries,
        )
    cc_binary(
        name = name,
        srcs = ["single_command.cc"] + large,
        local_defines = ["MERIDIAN_COMMAND=%sCommand" % _camel_case(name)],
        visibility = visibility,
        deps = large or libraries,
    )
