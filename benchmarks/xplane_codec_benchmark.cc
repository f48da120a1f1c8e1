// The streaming XSpace codec against libprotobuf on the same bytes.
//
//   ./bazelw run //benchmarks:xplane_codec_benchmark -- [--trace=FILE]
//
// Exits with 1 when a ratio of docs/performance.md is missed.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>

#include "benchmarks/ratio_benchmark.h"
#include "google/protobuf/arena.h"
#include "third_party/xplane/xplane.pb.h"
#include "tools/command.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/byte_sink.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/files/input_file.h"
#include "xla_profiler/testing/moving_editor.h"
#include "xla_profiler/testing/synthetic_space.h"
#include "xla_profiler/xplane/xplane_rewriter.h"
#include "xla_profiler/xplane/xplane_visitor.h"

namespace meridian {
namespace {

Flag<std::string> FLAGS_trace(
    "trace", "", "A profile to measure on; repeated until it has 64 MB. Default: a synthetic one.");
Flag<int> FLAGS_rounds("rounds", 5, "How often each side runs.");

constexpr int64_t kMovePs = 1000000007;
constexpr uint64_t kMinBytes = uint64_t{64} << 20;

// Discards what it is given: the floor serializes into memory that is already there.
class NullSink : public ByteSink {
 public:
  absl::Status Append(absl::string_view data) override {
    size_ += data.size();
    peak_memory_ = std::max(peak_memory_, AnonymousBytes());
    return absl::OkStatus();
  }
  uint64_t bytes_appended() const { return size_; }
  // Of the process, at the moments when something was appended.
  int64_t peak_memory() const { return peak_memory_; }

 private:
  uint64_t size_ = 0;
  int64_t peak_memory_ = 0;
};

// Decodes every event and stat and adds something of each up, so that nothing is optimised away.
uint64_t VisitAll(const XSpaceSource& source) {
  uint64_t sum = 0;
  const absl::StatusOr<XSpaceLayout> layout = ReadXSpaceLayout(source);
  MERIDIAN_CHECK(layout.ok());
  for (absl::string_view bytes : layout->planes) {
    const absl::StatusOr<XPlaneVisitor> plane = XPlaneVisitor::Create(source, bytes);
    MERIDIAN_CHECK(plane.ok());
    MERIDIAN_CHECK(plane
                       ->ForEachLine([&](const XLineVisitor& line) {
                         return line.ForEachEvent([&](const XEventVisitor& event) {
                           sum += event.Name().size() + event.OffsetPs() + event.DurationPs();
                           for (const XStatVisitor& stat : event.Stats()) {
                             sum += stat.Id() + stat.StrOrRefValue().size() +
                                    stat.IntOrUintValue().value_or(0);
                           }
                         });
                       })
                       .ok());
  }
  return sum;
}

// Returns the process's peak memory while it writes.
int64_t Rewrite(const XSpaceSource& source, int64_t move_ps, uint64_t buffer_bytes) {
  MovingEditor editor({move_ps});
  NullSink sink;
  RewriteOptions options;
  options.buffer_bytes = buffer_bytes;
  MERIDIAN_CHECK(RewriteXSpace(source, editor, sink, options).ok());
  MERIDIAN_CHECK(move_ps != 0 || sink.bytes_appended() == source.bytes.size());
  return sink.peak_memory();
}

void LibprotobufParse(absl::string_view bytes, std::string* serialized) {
  google::protobuf::Arena arena;
  auto* space = ::tensorflow::profiler::XSpace::default_instance().New(&arena);
  MERIDIAN_CHECK(space->ParseFromArray(bytes.data(), static_cast<int>(bytes.size())));
  if (serialized != nullptr) MERIDIAN_CHECK(space->SerializeToString(serialized));
}

absl::StatusOr<std::string> LoadBytes() {
  if (FLAGS_trace.value().empty()) {
    SyntheticSpaceOptions options;
    options.min_bytes = kMinBytes;
    return SyntheticXSpace(options);
  }
  ASSIGN_OR_RETURN(const InputFile file,
                   InputFile::Open(FileSystem::Posix(), UserPath(FLAGS_trace.value())));
  // Concatenated spaces are one space with more planes.
  std::string bytes;
  do {
    bytes.append(file.bytes().data(), file.bytes().size());
  } while (bytes.size() < kMinBytes && !file.bytes().empty());
  return bytes;
}

absl::StatusOr<int> Measure() {
  ASSIGN_OR_RETURN(const std::string bytes, LoadBytes());
  const XSpaceSource source{bytes, {}};

  // Before libprotobuf has filled the heap.
  const int64_t before = AnonymousBytes();
  volatile uint64_t sum = VisitAll(source);
  const int64_t memory = Rewrite(source, kMovePs, RewriteOptions().buffer_bytes) - before;
  std::printf("%.1f MB; a rewrite holds %.1f MB of memory at its peak\n",
              static_cast<double>(bytes.size()) / 1e6, static_cast<double>(memory) / 1e6);

  std::string serialized;
  const auto parse = [&] { LibprotobufParse(bytes, nullptr); };
  const auto parse_and_serialize = [&] { LibprotobufParse(bytes, &serialized); };
  const uint64_t buffer_bytes = RewriteOptions().buffer_bytes;
  const char kBoth[] = "libprotobuf parse + serialize";
  const bool reached =
      RunRatioCases({{"full visit", "libprotobuf parse", [&] { sum = VisitAll(source); }, parse,
                      1.0 / 3, bytes.size()},
                     {"identity rewrite", kBoth, [&] { Rewrite(source, 0, buffer_bytes); },
                      parse_and_serialize, 0.3, bytes.size()},
                     {"identity in two passes", kBoth, [&] { Rewrite(source, 0, 0); },
                      parse_and_serialize, std::nullopt, bytes.size()},
                     {"moving every event", kBoth, [&] { Rewrite(source, kMovePs, buffer_bytes); },
                      parse_and_serialize, 0.4, bytes.size()}},
                    FLAGS_rounds.value());
  return reached ? kExitDone : kExitCheckFailed;
}

}  // namespace
}  // namespace meridian

int main(int argc, char** argv) {
  return meridian::RunCommand(
      {"xplane_codec_benchmark",
       "Measures the streaming XSpace codec against libprotobuf on the same bytes.",
       {"xplane_codec_benchmark --trace=node0.xplane.pb"},
       {&meridian::FLAGS_trace, &meridian::FLAGS_rounds},
       meridian::Measure},
      argc, argv);
}
