"""bzlmod entry point of repository.bzl."""

load(":repository.bzl", "mpi_repository")

def _mpi_impl(_module_ctx):
    mpi_repository(name = "mpi")

mpi = module_extension(implementation = _mpi_impl)
