#include "xla_profiler/trace_json/trace_json_writer.h"

#include "absl/numeric/int128.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/json/exact_decimal.h"
#include "xla_profiler/base/picoseconds.h"

namespace meridian {
namespace {

constexpr size_t kBufferBytes = size_t{64} << 10;

void AppendNsAsMicros(int64_t ns, std::string* out) {
  AppendPicosAsMicros(absl::int128(ns) * kPsPerNs, out);
}

}  // namespace

std::string* TraceJsonArgs::AddKey(absl::string_view key) {
  if (!members_.empty()) members_.push_back(',');
  AppendJsonString(key, &members_);
  members_.push_back(':');
  return &members_;
}

TraceJsonWriter::TraceJsonWriter(ByteSink* sink, std::optional<int64_t> base_time_ns)
    : sink_(sink) {
  buffer_ = R"({"displayTimeUnit":"ns","metadata":{"highres-ticks":true},)";
  if (base_time_ns.has_value()) {
    absl::StrAppend(&buffer_, "\"baseTimeNanoseconds\":", *base_time_ns, ",");
  }
  buffer_.append("\"traceEvents\":[");
}

absl::Status TraceJsonWriter::WriteNamed(absl::string_view what, int64_t pid, int64_t tid,
                                         absl::string_view name,
                                         std::optional<int64_t> sort_index) {
  TraceJsonArgs args;
  args.AddString("name", name);
  RETURN_IF_ERROR(WriteMetadata(pid, tid, absl::StrCat(what, "_name"), args));
  if (!sort_index.has_value()) return absl::OkStatus();
  args.Clear();
  args.AddInt64("sort_index", *sort_index);
  return WriteMetadata(pid, tid, absl::StrCat(what, "_sort_index"), args);
}

absl::Status TraceJsonWriter::WriteComplete(const TraceJsonFields& fields, int64_t dur_ps) {
  BeginEvent('X', fields);
  buffer_.append(",\"dur\":");
  const int64_t end_ps = SaturateToInt64(absl::int128(fields.ts_ps) + dur_ps);
  AppendNsAsMicros(FloorToNs(end_ps) - FloorToNs(fields.ts_ps), &buffer_);
  return EndEvent(fields.args);
}

absl::Status TraceJsonWriter::WriteFlow(const TraceJsonFields& fields, FlowPhase phase,
                                        uint64_t id) {
  BeginEvent(phase == FlowPhase::kStart ? 's' : phase == FlowPhase::kStep ? 't' : 'f', fields);
  absl::StrAppend(&buffer_, ",\"id\":", id);
  // Else an arrow ends at the next event that starts, not at the enclosing one.
  if (phase == FlowPhase::kEnd) buffer_.append(",\"bp\":\"e\"");
  return EndEvent(fields.args);
}

absl::Status TraceJsonWriter::WriteCounter(const TraceJsonFields& fields) {
  BeginEvent('C', fields);
  return EndEvent(fields.args);
}

absl::Status TraceJsonWriter::Finish() {
  buffer_.append("\n]}\n");
  return Flush();
}

absl::Status TraceJsonWriter::WriteMetadata(int64_t pid, int64_t tid, absl::string_view name,
                                            const TraceJsonArgs& args) {
  absl::StrAppend(&buffer_, has_events_ ? ",\n" : "\n", "{\"ph\":\"M\",\"pid\":", pid,
                  ",\"tid\":", tid, ",\"name\":\"", name, "\"");
  has_events_ = true;
  return EndEvent(&args);
}

// Not by JsonWriter, with which an event takes more than twice as long: here no key needs escapes,
// and fields that always stand together are one append.
void TraceJsonWriter::BeginEvent(char ph, const TraceJsonFields& fields) {
  absl::StrAppend(&buffer_, has_events_ ? ",\n" : "\n", "{\"ph\":\"", absl::string_view(&ph, 1),
                  "\",\"pid\":", fields.pid, ",\"tid\":", fields.tid, ",\"ts\":");
  has_events_ = true;
  AppendNsAsMicros(FloorToNs(fields.ts_ps), &buffer_);
  buffer_.append(",\"name\":");
  AppendJsonString(fields.name, &buffer_);
  if (fields.category.empty()) return;
  buffer_.append(",\"cat\":");
  AppendJsonString(fields.category, &buffer_);
}

absl::Status TraceJsonWriter::EndEvent(const TraceJsonArgs* args) {
  if (args != nullptr) absl::StrAppend(&buffer_, ",\"args\":{", args->members(), "}");
  buffer_.push_back('}');
  return buffer_.size() < kBufferBytes ? absl::OkStatus() : Flush();
}

absl::Status TraceJsonWriter::Flush() {
  const absl::Status status = sink_->Append(buffer_);
  buffer_.clear();
  return status;
}

}  // namespace meridian
