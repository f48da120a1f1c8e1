"""What is handed out: archives and packages with the program inside."""

_MACHINES = {
    "aarch64": "aarch64",
    "k8": "x86_64",
}

def _machine(ctx):
    machine = _MACHINES.get(ctx.var["TARGET_CPU"])
    if not machine:
        fail("packages are made for Linux on x86_64 and aarch64, not for " + ctx.var["TARGET_CPU"])
    return machine

def _dist_impl(ctx):
    machine = _machine(ctx)
    debian = {"aarch64": "arm64", "x86_64": "amd64"}[machine]
    tar = ctx.actions.declare_file("meridian-{}-linux-{}.tar.gz".format(ctx.attr.version, machine))
    deb = ctx.actions.declare_file("meridian_{}_{}.deb".format(ctx.attr.version, debian))
    ctx.actions.run(
        mnemonic = "Package",
        executable = "python3",
        arguments = [
            ctx.file.script.path,
            "--version=" + ctx.attr.version,
            "--program=" + ctx.file.program.path,
            "--machine=" + machine,
            "--tar=" + tar.path,
            "--deb=" + deb.path,
        ],
        inputs = ctx.files.files + ctx.files.srcs + [ctx.file.program, ctx.file.script],
        outputs = [tar, deb],
        use_default_shell_env = True,
    )
    return DefaultInfo(files = depset([tar, deb]))

def _wheel_impl(ctx):
    wheel = ctx.actions.declare_file("meridian-{}-py3-none-linux_{}.whl".format(
        ctx.attr.version,
        _machine(ctx),
    ))
    ctx.actions.run(
        mnemonic = "Wheel",
        executable = "python3",
        arguments = [
            ctx.file.script.path,
            "--program=" + ctx.file.program.path,
            "--output=" + wheel.path,
        ] + [file.path for file in ctx.files.files],
        inputs = ctx.files.files + ctx.files.srcs + [ctx.file.program, ctx.file.script],
        outputs = [wheel],
        use_default_shell_env = True,
    )
    return DefaultInfo(files = depset([wheel]))

_ATTRIBUTES = {
    "files": attr.label_list(allow_files = True, doc = "What else goes in."),
    "program": attr.label(allow_single_file = True, mandatory = True),
    # Not a program of Bazel's: its data would be built for the build machine, too.
    "script": attr.label(allow_single_file = [".py"], mandatory = True, doc = "What packs it."),
    "srcs": attr.label_list(allow_files = True, doc = "What the script reads by itself."),
    "version": attr.string(mandatory = True),
}

dist = rule(implementation = _dist_impl, attrs = _ATTRIBUTES)

wheel = rule(implementation = _wheel_impl, attrs = _ATTRIBUTES)
