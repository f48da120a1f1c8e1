// Exports of a profile for viewers: an XSpace of one node, or a combined file, of any size.
#ifndef XLA_PROFILER_TRACE_EXPORT_TRACE_EXPORT_H_
#define XLA_PROFILER_TRACE_EXPORT_TRACE_EXPORT_H_

#include "absl/status/statusor.h"
#include "xla_profiler/base/files/byte_sink.h"
#include "xla_profiler/trace_export/export_options.h"
#include "xla_profiler/xplane/xspace_reader.h"

namespace meridian {

// Writes Chrome's trace JSON, for chrome://tracing, Perfetto and whatever reads JSON. Times count
// from the session's start and are exact; the document tells the start as `baseTimeNanoseconds`
// when it is known. The caller compresses if that is wanted (GzipSink).
//
// Here and below: errors name the profile and the position, and leave `out` with half a trace.
absl::StatusOr<ExportStats> ExportTraceJson(const XSpaceReader& reader,
                                            const ExportOptions& options, ByteSink& out);

// Writes Perfetto's own format, for ui.perfetto.dev and trace_processor; perfetto_sink.h tells what
// is lost. Timestamps are Unix nanoseconds when the session's start is known.
absl::StatusOr<ExportStats> ExportPerfetto(const XSpaceReader& reader, const ExportOptions& options,
                                           ByteSink& out);

}  // namespace meridian

#endif  // XLA_PROFILER_TRACE_EXPORT_TRACE_EXPORT_H_
