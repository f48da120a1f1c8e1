// Writes a trace in Perfetto's own format: a quarter of the JSON's size and no limit that a
// browser's JSON parser sets.
//
//   clock snapshot, descriptors of processes and lines
//   plane:  first packet of a sequence | begin (with the texts used first) | end | begin | ...
//
// Each plane is a sequence, so that texts are numbered as the plane numbers its metadata. Packets
// are in order of time on each track, not in the file: Perfetto sorts.
//
// What is lost against the profile: picoseconds (times are rounded down to nanoseconds, starts and
// ends alike, so that what nested or touched still does), bytes stats, aggregated events, texts
// beyond kMaxValueCharacters. Slices nested deeper than 512 are written, but Perfetto drops them.
#ifndef XLA_PROFILER_TRACE_EXPORT_PERFETTO_SINK_H_
#define XLA_PROFILER_TRACE_EXPORT_PERFETTO_SINK_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "xla_profiler/base/files/byte_sink.h"
#include "xla_profiler/trace_export/perfetto_wire.h"
#include "xla_profiler/trace_export/space_walk.h"
#include "xla_profiler/trace_export/trace_sink.h"

namespace meridian {

class PerfettoSink : public TraceSink {
 public:
  // `out` must outlive this object. `start_ns` is the Unix time that times count from; when it is
  // not known, timestamps count from the session's start.
  PerfettoSink(std::optional<int64_t> start_ns, ByteSink* out);

  // Timestamps are unsigned.
  static TimeRange Range(std::optional<int64_t> start_ns);

  absl::Status AddProcess(const TraceProcess& process) override;
  absl::Status AddTrack(const TraceTrack& track) override;
  absl::Status BeginPlane(const XPlaneVisitor& plane) override;
  absl::Status BeginSlice(const TraceTrack& track, const TraceSlice& slice) override;
  absl::Status EndSlice(const TraceTrack& track, int64_t end_ps) override;
  absl::Status AddCounterValue(const TraceTrack& track, int64_t time_ps,
                               const XStatVisitor& value) override;

  // Writes what is still held back. `out` is left open.
  absl::Status Finish() { return Flush(); }

 private:
  // Texts of the sequence that packets so far have interned; ids begin with 1.
  struct Interned {
    // By position of the event's metadata, of the stat's metadata, by category.
    std::vector<bool> names;
    std::vector<bool> arg_names;
    std::vector<bool> categories;
    // By where the text lies: a reference always leads to the same bytes.
    absl::flat_hash_map<const char*, uint64_t> values;
  };

  uint64_t Timestamp(int64_t time_ps) const;
  // Each adds the text to the packet's interned data if the sequence does not have it, and returns
  // its id.
  uint64_t InternName(const TraceSlice& slice);
  uint64_t InternCategory(EventCategory category);
  uint64_t InternArgName(const XStatVisitor& stat);
  uint64_t InternLongNameArg();
  uint64_t InternValue(absl::string_view value);
  // Adds to interned_ under the id.
  void Intern(uint32_t field, uint64_t iid, absl::string_view text, size_t max_characters);

  void AddArg(const XStatVisitor& stat);
  void AddText(uint64_t name_iid, absl::string_view interned_value);
  absl::Status WriteEvent(uint64_t timestamp, uint64_t flags);
  absl::Status WriteDescriptor();
  absl::Status WritePacket();
  void AppendPacket();
  absl::Status Flush();

  ByteSink* out_;
  const int64_t start_ns_;
  // Packets not yet written, as parts of one Trace.
  WireMessage buffer_;
  uint64_t sequence_ = 0;
  const XPlaneVisitor* plane_ = nullptr;
  Interned interned_texts_;

  // Messages under construction, kept for their memory.
  WireMessage packet_;
  WireMessage event_;
  WireMessage descriptor_;
  WireMessage part_;
  WireMessage interned_;
  std::string text_buffer_;
};

}  // namespace meridian

#endif  // XLA_PROFILER_TRACE_EXPORT_PERFETTO_SINK_H_
