#include "astra_bridge/calibration/time_slices.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

struct Made {
  CommKind kind;
  int64_t bytes;
  double measured_us;
  double simulated_us;
};

std::map<int32_t, double> SlicesOf(const std::vector<Made>& made) {
  std::vector<TransferCell> cells;
  std::vector<double> simulated_ns;
  for (const Made& one : made) {
    TransferCell cell;
    cell.kind = one.kind;
    cell.bytes = one.bytes;
    cell.ranks = 2;
    cell.median_ns = 1000 * one.measured_us;
    cells.push_back(cell);
    simulated_ns.push_back(1000 * one.simulated_us);
  }
  return FindTimeSlicesNs(cells, simulated_ns);
}

TEST(TimeSlicesTest, UnlikeCollectivesThatTakeTheSameAreSliced) {
  EXPECT_THAT(SlicesOf({{CommKind::kAllReduce, 1 << 10, 2260, 50},
                        {CommKind::kAllReduce, 1 << 16, 2250, 200},
                        {CommKind::kAllReduce, 1 << 20, 2255, 900},
                        {CommKind::kAllReduce, 1 << 24, 9000, 8000}}),
              ElementsAre(Pair(2, 2250e3)));
}

// As measured: three of about the same size wait for slices, a permute of that size did not.
TEST(TimeSlicesTest, SomethingAsLargeThatTookFarLessShowsSlices) {
  std::vector<Made> made = {{CommKind::kAllGather, 262144, 2258.6, 230.8},
                            {CommKind::kReduceScatter, 524288, 2245.7, 222.1},
                            {CommKind::kAllToAll, 262144, 2243.8, 150},
                            {CommKind::kPointToPoint, 262144, 117, 237.7}};
  EXPECT_THAT(SlicesOf(made), ElementsAre(Pair(2, 2243.8e3)));
  made.pop_back();
  EXPECT_THAT(SlicesOf(made), IsEmpty());
}

// A network of more latency than thought; permutes, of one step, are simulated to take less.
TEST(TimeSlicesTest, SmallCollectivesTakeAboutTheSame) {
  EXPECT_THAT(SlicesOf({{CommKind::kAllReduce, 1024, 600, 60},
                        {CommKind::kAllReduce, 2048, 602, 61},
                        {CommKind::kAllReduce, 4096, 605, 62},
                        {CommKind::kAllGather, 4096, 304, 31},
                        {CommKind::kPointToPoint, 4096, 100, 10},
                        {CommKind::kAllReduce, 1 << 24, 9000, 8000}}),
              IsEmpty());
}

// As measured: 1 KiB takes twice as simulated, and by chance what 16 and 256 KiB take.
TEST(TimeSlicesTest, TimesMayBeAlikeByChance) {
  EXPECT_THAT(SlicesOf({{CommKind::kAllReduce, 1024, 117.6, 57},
                        {CommKind::kAllReduce, 16384, 118.6, 67.4},
                        {CommKind::kAllToAll, 262144, 118, 98.2},
                        {CommKind::kAllGather, 65536, 105, 125.4}}),
              IsEmpty());
}

// Groups of a run that do the same are one witness.
TEST(TimeSlicesTest, GroupsAreNoUnlikeCollectives) {
  EXPECT_THAT(SlicesOf({{CommKind::kAllReduce, 1024, 2250, 50},
                        {CommKind::kAllReduce, 1024, 2251, 50},
                        {CommKind::kAllReduce, 1024, 2252, 50},
                        {CommKind::kAllReduce, 2048, 2253, 500}}),
              IsEmpty());
}

}  // namespace
}  // namespace meridian
