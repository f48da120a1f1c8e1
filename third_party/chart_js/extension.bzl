"""bzlmod entry point of repository.bzl."""

load(":repository.bzl", "chart_js_repository")

def _chart_js_impl(_module_ctx):
    chart_js_repository(name = "chart_js")

chart_js = module_extension(implementation = _chart_js_impl)
