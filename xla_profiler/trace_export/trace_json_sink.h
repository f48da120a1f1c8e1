// Writes a trace as Chrome's JSON. A slice is a complete event ("X"), so its times are exact to the
// picosecond; what overlaps on a line gets a thread of its own, since viewers drop such events.
#ifndef XLA_PROFILER_TRACE_EXPORT_TRACE_JSON_SINK_H_
#define XLA_PROFILER_TRACE_EXPORT_TRACE_JSON_SINK_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "xla_profiler/base/files/byte_sink.h"
#include "xla_profiler/trace_export/trace_sink.h"
#include "xla_profiler/trace_json/trace_json_writer.h"

namespace meridian {

class TraceJsonSink : public TraceSink {
 public:
  // `out` must outlive this object. `start_ns` is the Unix time that times count from, if known.
  TraceJsonSink(std::optional<int64_t> start_ns, ByteSink* out) : writer_(out, start_ns) {}

  absl::Status AddProcess(const TraceProcess& process) override;
  absl::Status AddTrack(const TraceTrack& track) override;
  absl::Status BeginPlane(const XPlaneVisitor&) override { return absl::OkStatus(); }
  absl::Status BeginSlice(const TraceTrack& track, const TraceSlice& slice) override;
  absl::Status EndSlice(const TraceTrack&, int64_t) override { return absl::OkStatus(); }
  absl::Status AddCounterValue(const TraceTrack& track, int64_t time_ps,
                               const XStatVisitor& value) override;

  // Ends the document. `out` is left open.
  absl::Status Finish() { return writer_.Finish(); }

 private:
  void AddArg(const XStatVisitor& stat);

  TraceJsonWriter writer_;
  TraceJsonArgs args_;
  std::string name_buffer_;
  std::string value_buffer_;
};

}  // namespace meridian

#endif  // XLA_PROFILER_TRACE_EXPORT_TRACE_JSON_SINK_H_
