"""Headers that g++ reads once for all sources.

Half of the time of compiling a source goes into Abseil's, GoogleTest's and the standard library's
headers. A precompiled header has them read already. g++ takes it only if it was made with the same
flags (it looks through a folder of several), and reads the plain header otherwise; clang is given
an empty one.
"""

load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")

def _precompiled_header_impl(ctx):
    header = ctx.actions.declare_file(ctx.label.name + ".h")
    headers = [header]
    defines = depset(transitive = [dep[CcInfo].compilation_context.defines for dep in ctx.attr.deps])
    toolchain = find_cpp_toolchain(ctx)
    if "clang" in toolchain.compiler_executable:
        ctx.actions.write(header, "")
    else:
        ctx.actions.expand_template(template = ctx.file.header, output = header, substitutions = {})
        features = cc_common.configure_features(ctx = ctx, cc_toolchain = toolchain)
        levels = ctx.attr.optimization_levels
        for level in levels:
            variables = cc_common.create_compile_variables(
                feature_configuration = features,
                cc_toolchain = toolchain,
                user_compile_flags = ctx.fragments.cpp.copts + ctx.fragments.cpp.cxxopts + ([level] if level else []),
                preprocessor_defines = defines,
                use_pic = True,
            )
            variant = "/" + (level or "default") if len(levels) > 1 else ""
            compiled = ctx.actions.declare_file(ctx.label.name + ".h.gch" + variant)
            arguments = ctx.actions.args()
            arguments.add_all(cc_common.get_memory_inefficient_command_line(
                feature_configuration = features,
                action_name = "c++-compile",
                variables = variables,
            ))
            arguments.add_all(["-x", "c++-header", header, "-o", compiled])
            ctx.actions.run(
                mnemonic = "PrecompileHeader",
                executable = toolchain.compiler_executable,
                arguments = [arguments],
                inputs = depset([header], transitive = [toolchain.all_files]),
                outputs = [compiled],
                use_default_shell_env = True,
            )
            headers.append(compiled)
    return [CcInfo(compilation_context = cc_common.create_compilation_context(
        defines = defines,
        headers = depset(headers),
        quote_includes = depset([header.root.path + "/" + ctx.label.workspace_root]),
    ))]

precompiled_header = rule(
    implementation = _precompiled_header_impl,
    attrs = {
        "deps": attr.label_list(doc = "The libraries whose headers it includes.", providers = [CcInfo]),
        "header": attr.label(allow_single_file = [".h"], mandatory = True),
        "optimization_levels": attr.string_list(
            doc = "What --per_file_copt adds for sources that include it; \"\" for nothing.",
            default = [""],
        ),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)
