"""Chart.js of the system's package, as a repository of one file."""

_PATH = "/usr/share/javascript/chart.js/chart.min.js"

def _chart_js_repository_impl(repository_ctx):
    path = repository_ctx.path(_PATH)
    if not path.exists:
        fail("%s is missing: install the package libjs-chart.js" % _PATH)
    repository_ctx.symlink(path, "chart.min.js")
    repository_ctx.file("BUILD.bazel", 'exports_files(["chart.min.js"])\n')

chart_js_repository = repository_rule(
    implementation = _chart_js_repository_impl,
    local = True,
)
