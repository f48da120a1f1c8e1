// A profile of 2.5 GiB with one plane beyond 2 GiB, which libprotobuf refuses: read, rewritten and
// read again. Needs 5 GiB of disk, so it runs only when asked for:
//
//   ./bazelw test //xla_profiler/xplane:large_file_test
#include <cstdint>
#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "xla_profiler/base/files/atomic_file_writer.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/base/testing/temporary_directory.h"
#include "xla_profiler/testing/moving_editor.h"
#include "xla_profiler/testing/synthetic_space.h"
#include "xla_profiler/xplane/xplane_rewriter.h"
#include "xla_profiler/xplane/xspace_reader.h"

namespace meridian {
namespace {

constexpr uint64_t kBytes = uint64_t{5} << 29;
constexpr int64_t kMovePs = 1000000007;

struct Totals {
  uint64_t events = 0;
  uint64_t offsets_ps = 0;
};

absl::StatusOr<Totals> Visit(const XSpaceReader& reader) {
  Totals totals;
  absl::Status status = reader.ForEachPlane([&](const XPlaneVisitor& plane) {
    return plane.ForEachLine([&](const XLineVisitor& line) {
      return line.ForEachEvent([&](const XEventVisitor& event) {
        ++totals.events;
        totals.offsets_ps += event.OffsetPs();
      });
    });
  });
  if (!status.ok()) return status;
  return totals;
}

TEST(LargeFileTest, APlaneBeyondTwoGibibytesIsReadAndRewritten) {
  const TemporaryDirectory directory;
  FileSystem& files = FileSystem::Posix();
  SyntheticSpaceOptions options;
  options.min_bytes = kBytes;
  ASSERT_OK_AND_ASSIGN(auto writer,
                       AtomicFileWriter::Create(files, directory.PathOf("large.xplane.pb")));
  ASSERT_OK(WriteSyntheticXSpace(options, *writer));
  ASSERT_OK(writer->Commit());

  ASSERT_OK_AND_ASSIGN(const XSpaceReader reader,
                       XSpaceReader::Open(files, directory.PathOf("large.xplane.pb")));
  EXPECT_GT(reader.layout().planes[0].size(), uint64_t{1} << 31);
  ASSERT_OK_AND_ASSIGN(const Totals before, Visit(reader));

  MovingEditor editor({/*offset_ps=*/kMovePs});
  ASSERT_OK_AND_ASSIGN(auto moved, AtomicFileWriter::Create(files, directory.PathOf("moved.pb")));
  ASSERT_OK(RewriteXSpace(reader.source(), editor, *moved));
  ASSERT_OK(moved->Commit());

  ASSERT_OK_AND_ASSIGN(const XSpaceReader again,
                       XSpaceReader::Open(files, directory.PathOf("moved.pb")));
  ASSERT_OK_AND_ASSIGN(const Totals after, Visit(again));
  EXPECT_EQ(after.events, before.events);
  EXPECT_EQ(after.offsets_ps, before.offsets_ps + before.events * uint64_t{kMovePs});
}

}  // namespace
}  // namespace meridian
