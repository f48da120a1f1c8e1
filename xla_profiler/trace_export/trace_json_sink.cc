// Writes a trace as Chrome's JSON. A slice is a complete event ("X"); what overlaps on a line gets a
// thread of its own, since viewers drop such events.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/byte_sink.h"
#include "xla_profiler/base/tables/text_table.h"
#include "xla_profiler/trace_export/trace_sink.h"
#include "xla_profiler/trace_json/trace_json_writer.h"

namespace meridian {
namespace {

// What counters of no unit count in.
constexpr absl::string_view kCounterArg = "value";
// Readers that keep numbers as doubles, as browsers do, keep integers up to here.
constexpr int64_t kMaxExactInteger = int64_t{1} << 53;

class TraceJsonSink : public TraceSink {
 public:
  TraceJsonSink(std::optional<int64_t> start_ns, ByteSink* out) : writer_(out, start_ns) {}

  // Perfetto drops what is before 0.
  TimeRange range() const override {
    TimeRange range;
    range.min_ps = 0;
    return range;
  }

  absl::Status AddProcess(const TraceProcess& process) override {
    return writer_.WriteProcess(process.id, FirstCharacters(process.name, kMaxNameCharacters),
                                process.position);
  }

  absl::Status AddTrack(const TraceTrack& track) override {
    // Counters need no announcement.
    if (track.kind == TraceTrack::Kind::kCounter) return absl::OkStatus();
    return writer_.WriteThread(track.process_id, track.id,
                               FirstCharacters(track.name, kMaxNameCharacters), track.position);
  }

  absl::Status BeginPlane(const XPlaneVisitor&) override { return absl::OkStatus(); }

  absl::Status BeginSlice(const TraceTrack& track, const TraceSlice& slice) override {
    args_.Clear();
    if (!slice.long_name().empty()) {
      args_.AddString(kLongNameArg, FirstCharacters(slice.long_name(), kMaxValueCharacters));
    }
    for (const XStatVisitor* stat : slice.args) AddArg(*stat);
    std::string cut;
    TraceJsonFields fields;
    fields.pid = track.process_id;
    fields.tid = track.id;
    fields.name = Cut(slice.name(), kMaxNameCharacters, &cut);
    fields.category = slice.category;
    fields.ts_ps = slice.start_ps;
    fields.args = args_.members().empty() ? nullptr : &args_;
    RETURN_IF_ERROR(writer_.WriteComplete(fields, slice.duration_ps));
    // Right behind the slice, which encloses them.
    fields.args = nullptr;
    for (const TraceFlow& flow : slice.flows) {
      fields.name = flow.name;
      fields.category = flow.name;
      RETURN_IF_ERROR(writer_.WriteFlow(fields, flow.phase, flow.id));
    }
    return absl::OkStatus();
  }

  absl::Status EndSlice(const TraceTrack&, int64_t) override { return absl::OkStatus(); }

  absl::Status AddCounterValue(const TraceTrack& track, int64_t time_ps,
                               const XStatVisitor& value) override {
    args_.Clear();
    const absl::string_view key = track.unit.empty() ? kCounterArg : track.unit;
    switch (value.value_case()) {
      case XStatVisitor::ValueCase::kDouble:
        args_.AddDouble(key, value.DoubleValue());
        break;
      case XStatVisitor::ValueCase::kUint64:
        args_.AddUint64(key, value.UintValue());
        break;
      default:
        args_.AddInt64(key, value.IntValue());
    }
    const std::string name = FirstCharacters(track.name, kMaxNameCharacters);
    TraceJsonFields fields;
    fields.pid = track.process_id;
    fields.name = name;
    fields.ts_ps = time_ps;
    fields.args = &args_;
    return writer_.WriteCounter(fields);
  }

  absl::Status Finish() override { return writer_.Finish(); }

 private:
  // Returns the text, or its first characters, which `cut` then holds: most texts are not copied.
  static absl::string_view Cut(absl::string_view text, size_t characters, std::string* cut) {
    if (text.size() <= characters) return text;
    return *cut = FirstCharacters(text, characters);
  }

  void AddArg(const XStatVisitor& stat) {
    std::string cut_key, cut_value;
    const absl::string_view key = Cut(stat.Name(), kMaxValueCharacters, &cut_key);
    switch (stat.value_case()) {
      case XStatVisitor::ValueCase::kInt64: {
        const int64_t value = stat.IntValue();
        if (value < -kMaxExactInteger || value > kMaxExactInteger) {
          return args_.AddString(key, absl::StrCat(value));
        }
        return args_.AddInt64(key, value);
      }
      case XStatVisitor::ValueCase::kUint64: {
        const uint64_t value = stat.UintValue();
        if (value > uint64_t{kMaxExactInteger}) return args_.AddString(key, absl::StrCat(value));
        return args_.AddUint64(key, value);
      }
      case XStatVisitor::ValueCase::kDouble:
        return args_.AddDouble(key, stat.DoubleValue());
      default:
        return args_.AddString(key, Cut(stat.StrOrRefValue(), kMaxValueCharacters, &cut_value));
    }
  }

  TraceJsonWriter writer_;
  // Kept between events for its memory.
  TraceJsonArgs args_;
};

}  // namespace

std::unique_ptr<TraceSink> NewTraceJsonSink(std::optional<int64_t> start_ns, ByteSink* out) {
  return std::make_unique<TraceJsonSink>(start_ns, out);
}

}  // namespace meridian
