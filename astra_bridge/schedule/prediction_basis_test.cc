#include "astra_bridge/schedule/prediction_basis.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "astra_bridge/cache/timing_cache.h"
#include "astra_bridge/testing/fixed_timing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/base/testing/temporary_directory.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(PredictionBasisTest, SaysWhoTimedAndHow) {
  TimingSetup setup;
  setup.timing = std::make_unique<FixedTiming>(FixedTimes());
  setup.warnings = {"careful"};
  PredictionReport report;
  AddTimingBasis(setup, TimingMode::kSnapshot, &report);
  EXPECT_EQ(report.engine(), "fixed");
  EXPECT_EQ(report.engine_version(), "1");
  EXPECT_EQ(report.mode(), "snapshot");
  EXPECT_THAT(report.warnings(), ElementsAre("careful"));
  AddTimingBasis(setup, TimingMode::kIsolated, &report);
  EXPECT_EQ(report.mode(), "isolated");
}

TEST(PredictionBasisTest, SaysWhatTheCacheSaved) {
  PredictionReport report;
  AddCacheUse(TimingSetup(), &report);
  EXPECT_EQ(report.cache_misses(), 0);
  EXPECT_EQ(CacheUseText(report), "not used");

  const TemporaryDirectory directory;
  const std::string path = directory.Write("timing.sqlite", "no database, but long enough");
  ASSERT_OK_AND_ASSIGN(std::unique_ptr<TimingCache> cache,
                       TimingCache::Open(path, CacheMode::kReadWrite));
  cache->Find("a", 1);
  cache->Store("a", {1.0});
  cache->Find("a", 1);
  cache->Find("b", 1);
  TimingSetup setup;
  setup.cache = std::move(cache);
  AddCacheUse(setup, &report);
  EXPECT_EQ(report.cache_hits(), 1);
  EXPECT_EQ(report.cache_misses(), 2);
  EXPECT_THAT(report.warnings(), ElementsAre(HasSubstr("begun anew")));
  EXPECT_EQ(CacheUseText(report), "1 hits, 2 misses");
}

TEST(PredictionBasisTest, AllFallbacksAreCountedAndTheFirstListed) {
  PredictionReport report;
  EXPECT_EQ(FallbacksText(report), "0");
  for (int i = 0; i < 1001; ++i) AddFallback(absl::StrCat("edge ", i), "it\ncrashed", &report);
  EXPECT_EQ(report.fallbacks(), 1001);
  ASSERT_EQ(report.fallback_details_size(), 100);
  EXPECT_EQ(report.fallback_details(99).edge_id(), "edge 99");
  EXPECT_EQ(report.fallback_details(99).reason(), "it\ncrashed");
  EXPECT_EQ(FallbacksText(report), "1,001, the first: it?crashed");
}

TEST(PredictionBasisTest, TimesAreShownInMicroseconds) {
  EXPECT_EQ(MicrosText(20.03125e-6), "20.031");
  EXPECT_EQ(MicrosText(0), "0.000");
}

}  // namespace
}  // namespace meridian
