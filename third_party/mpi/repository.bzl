"""Open MPI of the system's package (libopenmpi-dev), found through pkg-config.

Without the package the repository is there, so that everything else can be loaded; only what depends on
@mpi//:mpi does not build. Must stay loadable by every Bazel from 4.2 (Debian 12) up.
"""

_BUILD = """load("@rules_cc//cc:defs.bzl", "cc_library")

cc_library(
    name = "mpi",
    hdrs = glob(["include/**/*.h"]),
    includes = ["include"],
    linkopts = {linkopts},
    visibility = ["//visibility:public"],
)
"""

_MISSING = """genrule(
    name = "missing",
    outs = ["mpi.h"],
    cmd = "echo 'ERROR: Open MPI is missing: install the packages openmpi-bin and libopenmpi-dev' >&2; exit 1",
)

cc_library(
    name = "mpi",
    hdrs = ["mpi.h"],
    visibility = ["//visibility:public"],
)
"""

def _pkg_config(rctx, flag):
    tool = rctx.which("pkg-config") or rctx.which("pkgconf")
    result = rctx.execute([tool, flag, "ompi-c"]) if tool else None
    if not result or result.return_code != 0:
        return None
    return [word for word in result.stdout.strip().split(" ") if word]

def _mpi_repository_impl(rctx):
    includes = _pkg_config(rctx, "--cflags-only-I")
    libraries = _pkg_config(rctx, "--libs")
    headers = [flag[2:] for flag in includes or [] if rctx.path(flag[2:] + "/mpi.h").exists]
    if not headers or not libraries:
        rctx.file("BUILD.bazel", _MISSING)
        return
    rctx.symlink(headers[0], "include")
    rctx.file("BUILD.bazel", _BUILD.format(linkopts = repr(libraries)))

mpi_repository = repository_rule(
    implementation = _mpi_repository_impl,
    configure = True,
    environ = ["SYSTEM_PKGS_STAMP", "PKG_CONFIG_PATH"],
    local = True,
)
