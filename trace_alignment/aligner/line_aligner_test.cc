#include "trace_alignment/aligner/line_aligner.h"

#include <algorithm>
#include <random>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;

// Of a whole line.
template <typename Fn>
int64_t Whole(Fn keep, const std::vector<Timespan>& before, std::vector<MappedEvent>* mapped) {
  std::vector<PlacedEvent> open;
  return keep(before, absl::MakeSpan(*mapped), &open);
}

std::vector<Timespan> Spans(std::initializer_list<std::pair<int64_t, int64_t>> ends) {
  std::vector<Timespan> spans;
  for (const auto& [begin, end] : ends) spans.push_back(Timespan::FromEndPoints(begin, end));
  return spans;
}

TEST(LineAlignerTest, AMonotoneMapIsLeftAlone) {
  const std::vector<Timespan> before = Spans({{0, 100}, {0, 40}, {10, 40}, {50, 100}});
  std::vector<MappedEvent> mapped = {{5, 205}, {5, 85}, {25, 85}, {105, 205}};
  const std::vector<MappedEvent> wanted = mapped;
  EXPECT_EQ(Whole(KeepOrderAndNesting, before, &mapped), 0);
  EXPECT_EQ(mapped, wanted);
}

TEST(LineAlignerTest, AChildStaysInItsParent) {
  // Parent [0,100] with children [20,60] and [60,100]; the map sent the last end too far.
  const std::vector<Timespan> before = Spans({{0, 100}, {20, 60}, {60, 100}});
  std::vector<MappedEvent> mapped = {{0, 100}, {20, 60}, {60, 103}};
  EXPECT_EQ(Whole(KeepOrderAndNesting, before, &mapped), 1);
  EXPECT_THAT(mapped[2].end_ps, 100);
}

TEST(LineAlignerTest, StartsNeverDecreaseAndEqualStartsStayEqual) {
  const std::vector<Timespan> before = Spans({{0, 10}, {20, 30}, {20, 25}});
  std::vector<MappedEvent> mapped = {{7, 10}, {5, 30}, {6, 25}};
  EXPECT_EQ(Whole(KeepOrderAndNesting, before, &mapped), 2);
  EXPECT_EQ(mapped[1].start_ps, 7);
  EXPECT_EQ(mapped[2].start_ps, 7);
}

TEST(LineAlignerTest, FileOrderDoesNotMatterAndStaysAsItIs) {
  const std::vector<Timespan> before = Spans({{60, 100}, {0, 100}});
  std::vector<MappedEvent> mapped = {{60, 120}, {0, 100}};
  EXPECT_EQ(Whole(KeepOrderAndNesting, before, &mapped), 1);
  EXPECT_EQ(mapped[0], (MappedEvent{60, 100}));
  EXPECT_EQ(mapped[1], (MappedEvent{0, 100}));
}

TEST(LineAlignerTest, StrictRuleMovesByOneNanosecond) {
  const std::vector<Timespan> before = Spans({{0, 10}, {0, 5}, {4, 8}});
  std::vector<MappedEvent> mapped = {{0, 10000}, {0, 5000}, {400, 8000}};
  EXPECT_EQ(Whole(MakeStrictlyIncreasing, before, &mapped), 2);
  EXPECT_EQ(mapped[1], (MappedEvent{1000, 6000}));
  EXPECT_EQ(mapped[2], (MappedEvent{2000, 9600}));
}

TEST(LineAlignerTest, AnyDamageIsMendedOnRandomNests) {
  std::mt19937 random(11);
  for (int round = 0; round < 500; ++round) {
    std::vector<Timespan> before;
    std::vector<MappedEvent> mapped;
    // Properly nested spans: each lies in one before it or after all of them.
    for (int i = 0; i < 12; ++i) {
      Timespan span(1000 * (i / 4), 900);
      for (int depth = random() % 3; depth > 0; --depth) {
        span = Timespan(span.begin_ps() + random() % 20, span.duration_ps() / 2);
      }
      before.push_back(span);
      mapped.push_back({span.begin_ps() + static_cast<int64_t>(random() % 50),
                        span.end_ps() + static_cast<int64_t>(random() % 50)});
    }
    Whole(KeepOrderAndNesting, before, &mapped);
    for (size_t i = 0; i < before.size(); ++i) {
      ASSERT_LE(mapped[i].start_ps, mapped[i].end_ps);
      for (size_t j = 0; j < before.size(); ++j) {
        if (before[i].begin_ps() == before[j].begin_ps()) {
          ASSERT_EQ(mapped[i].start_ps, mapped[j].start_ps);
        } else if (before[i].begin_ps() < before[j].begin_ps()) {
          ASSERT_LE(mapped[i].start_ps, mapped[j].start_ps);
        }
      }
    }
  }
}

TEST(LineAlignerTest, PartsBecomeWhatTheWholeDoes) {
  std::mt19937 random(12);
  for (const auto keep : {KeepOrderAndNesting, MakeStrictlyIncreasing}) {
    for (int round = 0; round < 300; ++round) {
      // One event lasts all the time, as a host's loop does; others nest, overlap and start together.
      std::vector<Timespan> before = {Timespan(0, 20000)};
      for (int i = 0; i < 23; ++i) before.push_back(Timespan(random() % 40 * 100, random() % 900));
      std::sort(before.begin(), before.end());
      std::vector<MappedEvent> mapped;
      for (const Timespan& span : before) {
        const int64_t start_ps = span.begin_ps() + static_cast<int64_t>(random() % 1500);
        mapped.push_back({start_ps, start_ps + static_cast<int64_t>(random() % 900)});
      }
      std::vector<MappedEvent> in_parts = mapped;
      const int64_t changed = Whole(keep, before, &mapped);
      int64_t changed_in_parts = 0;
      std::vector<PlacedEvent> open;
      const size_t size = 1 + random() % 12;
      for (size_t first = 0; first < before.size(); first += size) {
        changed_in_parts += keep(absl::MakeSpan(before).subspan(first, size),
                                 absl::MakeSpan(in_parts).subspan(first, size), &open);
      }
      ASSERT_EQ(in_parts, mapped);
      ASSERT_EQ(changed_in_parts, changed);
    }
  }
}

}  // namespace
}  // namespace meridian
