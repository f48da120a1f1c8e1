"""A program from few large sources instead of hundreds of small ones.

Most of the time of compiling a small source goes into templates that its neighbours instantiate as
well. A source that includes all those of a package is compiled in a third of the time, so that the
first report of somebody who builds from source comes in minutes.
"""

load("@rules_cc//cc/common:cc_common.bzl", "cc_common")
load("@rules_cc//cc/common:cc_info.bzl", "CcInfo")

_SourcesInfo = provider(
    doc = "What the libraries of this project below a target are made of.",
    fields = {
        "files": "depset of their sources and headers, dependencies first",
        "outside": "depset of the CcInfo of everything else that they depend on",
    },
)

def _collect_sources_impl(target, ctx):
    if ctx.rule.kind != "cc_library" or target.label.workspace_name:
        return [_SourcesInfo(files = depset(), outside = depset([target[CcInfo]] if CcInfo in target else []))]
    deps = [dep[_SourcesInfo] for dep in ctx.rule.attr.deps]
    own = [file for attr in [ctx.rule.attr.hdrs, ctx.rule.attr.srcs] for label in attr for file in label.files.to_list()]
    return [_SourcesInfo(
        files = depset(own, transitive = [dep.files for dep in deps], order = "postorder"),
        outside = depset(transitive = [dep.outside for dep in deps]),
    )]

_collect_sources = aspect(implementation = _collect_sources_impl, attr_aspects = ["deps"])

def _large_sources_impl(ctx):
    files = depset(transitive = [dep[_SourcesInfo].files for dep in ctx.attr.deps], order = "postorder")
    packages = {}
    for file in files.to_list():
        if file.extension == "cc":
            packages.setdefault(file.owner.package, []).append(file)
    large = []
    for package, sources in packages.items():
        source = ctx.actions.declare_file("%s/%s.cc" % (ctx.label.name, package.replace("/", "_")))

        # The compiler takes what is included for headers, where unnamed namespaces would be suspect.
        lines = ["#pragma GCC diagnostic ignored \"-Wsubobject-linkage\""]
        lines += ["#include \"%s\"" % file.short_path for file in sources]
        ctx.actions.write(source, "\n".join(lines) + "\n")
        large.append(source)
    outside = depset(transitive = [dep[_SourcesInfo].outside for dep in ctx.attr.deps]).to_list()
    included = CcInfo(compilation_context = cc_common.create_compilation_context(headers = files))
    runfiles = ctx.runfiles()
    for dep in ctx.attr.deps:
        runfiles = runfiles.merge(dep[DefaultInfo].default_runfiles)
    return [
        DefaultInfo(files = depset(large), runfiles = runfiles),
        cc_common.merge_cc_infos(cc_infos = [included] + outside),
    ]

large_sources = rule(
    doc = "For `srcs` and `deps` of a program: all libraries of this project that it needs, a source for each package.",
    implementation = _large_sources_impl,
    attrs = {"deps": attr.label_list(aspects = [_collect_sources], providers = [CcInfo])},
)
