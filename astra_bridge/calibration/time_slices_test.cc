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
  CollectiveKind kind;
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
  EXPECT_THAT(SlicesOf({{CollectiveKind::kAllReduce, 1 << 10, 2260, 50},
                        {CollectiveKind::kAllReduce, 1 << 16, 2250, 200},
                        {CollectiveKind::kAllReduce, 1 << 20, 2255, 900},
                        {CollectiveKind::kAllReduce, 1 << 24, 9000, 8000}}),
              ElementsAre(Pair(2, 2250e3)));
}

// As measured: three of about the same size wait for slices, a permute of that size did not.
TEST(TimeSlicesTest, SomethingAsLargeThatTookFarLessShowsSlices) {
  std::vector<Made> made = {{CollectiveKind::kAllGather, 262144, 2258.6, 230.8},
                            {CollectiveKind::kReduceScatter, 524288, 2245.7, 222.1},
                            {CollectiveKind::kAllToAll, 262144, 2243.8, 150},
                            {CollectiveKind::kPointToPoint, 262144, 117, 237.7}};
  EXPECT_THAT(SlicesOf(made), ElementsAre(Pair(2, 2243.8e3)));
  made.pop_back();
  EXPECT_THAT(SlicesOf(made), IsEmpty());
}

// A network of more latency than thought; permutes, of one step, are simulated to take less.
TEST(TimeSlicesTest, SmallCollectivesTakeAboutTheSame) {
  EXPECT_THAT(SlicesOf({{CollectiveKind::kAllReduce, 1024, 600, 60},
                        {CollectiveKind::kAllReduce, 2048, 602, 61},
                        {CollectiveKind::kAllReduce, 4096, 605, 62},
                        {CollectiveKind::kAllGather, 4096, 304, 31},
                        {CollectiveKind::kPointToPoint, 4096, 100, 10},
                        {CollectiveKind::kAllReduce, 1 << 24, 9000, 8000}}),
              IsEmpty());
}

// As measured: 1 KiB takes twice as simulated, and by chance what 16 and 256 KiB take.
TEST(TimeSlicesTest, TimesMayBeAlikeByChance) {
  EXPECT_THAT(SlicesOf({{CollectiveKind::kAllReduce, 1024, 117.6, 57},
                        {CollectiveKind::kAllReduce, 16384, 118.6, 67.4},
                        {CollectiveKind::kAllToAll, 262144, 118, 98.2},
                        {CollectiveKind::kAllGather, 65536, 105, 125.4}}),
              IsEmpty());
}

// What a collective costs on a slow network, whatever it moves, is no slice.
TEST(TimeSlicesTest, ASlowNetworkIsNotShared) {
  EXPECT_THAT(SlicesOf({{CollectiveKind::kAllReduce, 1024, 41.0, 3.0},
                        {CollectiveKind::kAllGather, 1024, 41.2, 1.5},
                        {CollectiveKind::kPointToPoint, 1024, 40.5, 0.5}}),
              IsEmpty());
  // A slower one, of milliseconds.
  EXPECT_THAT(SlicesOf({{CollectiveKind::kAllReduce, 1024, 4100, 300},
                        {CollectiveKind::kAllGather, 1024, 4120, 150},
                        {CollectiveKind::kPointToPoint, 1024, 4050, 50}}),
              IsEmpty());
}

// A network that costs nothing says nothing about what to expect.
TEST(TimeSlicesTest, NothingIsComparableToNothing) {
  EXPECT_THAT(SlicesOf({{CollectiveKind::kAllReduce, 1024, 2250, 0},
                        {CollectiveKind::kAllReduce, 2048, 2251, 0},
                        {CollectiveKind::kAllReduce, 4096, 2252, 0}}),
              IsEmpty());
}

// Unlike as they are, and though a permute was quicker: a slice is no fraction of a millisecond.
TEST(TimeSlicesTest, SlicesAreNotShort) {
  const std::vector<Made> made = {{CollectiveKind::kAllReduce, 1 << 10, 226, 5},
                                  {CollectiveKind::kAllReduce, 1 << 16, 225, 20},
                                  {CollectiveKind::kAllReduce, 1 << 20, 227, 90},
                                  {CollectiveKind::kPointToPoint, 1 << 20, 20, 90}};
  EXPECT_THAT(SlicesOf(made), IsEmpty());
  std::vector<Made> longer = made;
  for (Made& one : longer) {
    one.measured_us *= 10;
    one.simulated_us *= 10;
  }
  EXPECT_THAT(SlicesOf(longer), ElementsAre(Pair(2, 2250e3)));
}

// Times that are alike come in any order, among others that are not.
TEST(TimeSlicesTest, ManySizesAreLookedAtOnce) {
  std::vector<Made> made;
  for (int64_t i = 0; i < 100'000; ++i) {
    made.push_back(
        {CollectiveKind::kAllReduce, i, 3000 + static_cast<double>(i % 1000) / 1000, 1000});
  }
  EXPECT_THAT(SlicesOf(made), IsEmpty());
  made.push_back({CollectiveKind::kAllGather, 1, 3000.5, 100});
  EXPECT_THAT(SlicesOf(made), ElementsAre(Pair(2, 3000e3)));
}

// Groups of a run that do the same are one witness.
TEST(TimeSlicesTest, GroupsAreNoUnlikeCollectives) {
  EXPECT_THAT(SlicesOf({{CollectiveKind::kAllReduce, 1024, 2250, 50},
                        {CollectiveKind::kAllReduce, 1024, 2251, 50},
                        {CollectiveKind::kAllReduce, 1024, 2252, 50},
                        {CollectiveKind::kAllReduce, 2048, 2253, 500}}),
              IsEmpty());
}

}  // namespace
}  // namespace meridian
