// The streaming XSpace codec against libprotobuf on the same bytes.
//
//   ./bazelw run //tools/benchmarks:xplane_codec_benchmark -- [--trace=FILE]
//
// Exits with 1 when a ratio of docs/performance.md is missed.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "absl/flags/flag.h"
#include "google/protobuf/arena.h"
#include "third_party/xplane/xplane.pb.h"
#include "tools/benchmarks/ratio_benchmark.h"
#include "tools/command.h"
#include "xla_profiler/testing/synthetic_space.h"
#include "xla_profiler/util/byte_sink.h"
#include "xla_profiler/util/check.h"
#include "xla_profiler/util/file_system.h"
#include "xla_profiler/util/input_file.h"
#include "xla_profiler/util/status_macros.h"
#include "xla_profiler/util/status_util.h"
#include "xla_profiler/xplane/xplane_rewriter.h"
#include "xla_profiler/xplane/xplane_visitor.h"

ABSL_FLAG(std::string, trace, "",
          "A profile to measure on; repeated until it has 64 MB. Default: a synthetic one.");
ABSL_FLAG(int, rounds, 5, "How often each side runs.");

namespace meridian {
namespace {

constexpr uint64_t kMinBytes = uint64_t{64} << 20;

// Discards what it is given: the floor serializes into memory that is already there.
class NullSink : public ByteSink {
 public:
  absl::Status Append(absl::string_view data) override {
    size_ += data.size();
    return absl::OkStatus();
  }
  uint64_t bytes_appended() const override { return size_; }

 private:
  uint64_t size_ = 0;
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

// Reads all times of every line and hands them back: what an alignment by 0 ns costs.
class IdentityEditor : public XSpaceEditor {
 public:
  explicit IdentityEditor(const XSpaceSource& source) : source_(source) {}

  absl::Status EditPlane(const XPlaneLayout&, PlaneEdit* edit) override {
    edit->edit_lines = true;
    return absl::OkStatus();
  }
  absl::Status EditLine(const XPlaneLayout&, const XLineHeader& line, RewritePass,
                        LineEdit* edit) override {
    return ReadEventTimes(source_, line, &edit->times);
  }

 private:
  const XSpaceSource& source_;
};

void Rewrite(const XSpaceSource& source) {
  IdentityEditor editor(source);
  NullSink sink;
  MERIDIAN_CHECK(RewriteXSpace(source, editor, sink).ok());
  MERIDIAN_CHECK(sink.bytes_appended() == source.bytes.size());
}

void LibprotobufParse(absl::string_view bytes, std::string* serialized) {
  google::protobuf::Arena arena;
  auto* space = ::tensorflow::profiler::XSpace::default_instance().New(&arena);
  MERIDIAN_CHECK(space->ParseFromArray(bytes.data(), static_cast<int>(bytes.size())));
  if (serialized != nullptr) MERIDIAN_CHECK(space->SerializeToString(serialized));
}

absl::StatusOr<std::string> LoadBytes() {
  if (absl::GetFlag(FLAGS_trace).empty()) {
    SyntheticSpaceOptions options;
    options.min_bytes = kMinBytes;
    return SyntheticXSpace(options);
  }
  ASSIGN_OR_RETURN(const InputFile file,
                   InputFile::Open(FileSystem::Posix(), UserPath(absl::GetFlag(FLAGS_trace))));
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
  Rewrite(source);
  const int64_t memory = AnonymousBytes() - before;
  std::printf("%.1f MB; visit and rewrite hold %.1f MB of memory\n",
              static_cast<double>(bytes.size()) / 1e6, static_cast<double>(memory) / 1e6);

  std::string serialized;
  const bool reached =
      RunRatioCases({{"full visit", "libprotobuf parse", [&] { sum = VisitAll(source); },
                      [&] { LibprotobufParse(bytes, nullptr); }, 1.0 / 3, bytes.size()},
                     {"identity rewrite", "libprotobuf parse + serialize", [&] { Rewrite(source); },
                      [&] { LibprotobufParse(bytes, &serialized); }, 0.3, bytes.size()}},
                    absl::GetFlag(FLAGS_rounds));
  return reached ? kExitDone : kExitCheckFailed;
}

}  // namespace
}  // namespace meridian

int main(int argc, char** argv) {
  return meridian::RunCommand(
      {"xplane_codec_benchmark",
       "Measures the streaming XSpace codec against libprotobuf on the same bytes.",
       {"xplane_codec_benchmark --trace=node0.xplane.pb"},
       {"trace", "rounds"}},
      argc, argv, meridian::Measure);
}
