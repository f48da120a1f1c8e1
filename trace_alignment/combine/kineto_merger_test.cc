#include "trace_alignment/combine/kineto_merger.h"

#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "re2/re2.h"
#include "trace_alignment/clocks/clock_map.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

constexpr int64_t kRunBaseNs = 1'700'000'000'000'000'000;

constexpr char kTrace[] = R"({"schemaVersion": 1, "traceEvents": [
  {"ph":"M","pid":70,"tid":0,"name":"process_name","args":{"name":"python"}},
  {"ph":"M","pid":70,"tid":0,"name":"process_sort_index","args":{"sort_index":70}},
  {"ph":"M","pid":0,"tid":0,"name":"process_name","args":{"name":"python"}},
  {"ph":"M","pid":0,"tid":0,"name":"process_labels","args":{"labels":"GPU 0"}},
  {"ph":"M","pid":0,"tid":0,"name":"process_sort_index","args":{"sort_index":5000000}},
  {"ph":"M","pid":1,"tid":0,"name":"process_name","args":{"name":"python"}},
  {"ph":"X","pid":-1,"tid":0,"ts":1,"dur":1,"name":"buffer","cat":"overhead"},
  {"ph":"X","pid":0,"tid":7,"ts":2,"dur":3,"name":"nccl","cat":"kernel"},
  {"ph":"X","pid":70,"tid":7,"ts":1,"dur":1,"name":"op"},
  {"ph":"X","pid":"Spans","tid":"a","ts":1,"dur":1,"name":"span"},
  {"ph":"s","pid":70,"tid":7,"ts":1,"id":5,"name":"ac2g"}]})";

// Rank 3's clock is a microsecond ahead, and its base a microsecond later.
class KinetoMergerTest : public ::testing::Test {
 protected:
  KinetoMergerTest() : same_(RunClock(kRunBaseNs)), ahead_(same_) {
    ahead_.host_to_reference = *ClockMap::Create({{0, -1'000'000}});
  }

  // Rank 3's base is later than rank 0's by that.
  std::string Merge(absl::Span<const KinetoArrow> arrows, int64_t later_ns = 1000) {
    const std::vector<KinetoMergeInput> inputs = {{kTrace, kRunBaseNs, &same_, 0, "host-a"},
                                                  {kTrace, kRunBaseNs + later_ns, &ahead_, 3, ""}};
    std::string out;
    StringSink sink(&out);
    absl::StatusOr<std::vector<AlignmentStats>> stats = MergeKineto(
        inputs,
        [&](VisitArrow visit) -> absl::Status {
          for (const KinetoArrow& arrow : arrows) RETURN_IF_ERROR(visit(arrow));
          return absl::OkStatus();
        },
        EarliestBase(inputs), nullptr, sink);
    EXPECT_OK(stats.status());
    if (stats.ok()) stats_ = *std::move(stats);
    return out;
  }

  NodeClock same_, ahead_;
  std::vector<AlignmentStats> stats_;
};

TEST_F(KinetoMergerTest, RanksAreTheirOwn) {
  const std::string out = Merge({});
  ASSERT_THAT(stats_, SizeIs(2));
  EXPECT_EQ(stats_[1].events(), 5);
  EXPECT_EQ(stats_[1].max_correction_ns(), -1000);
  EXPECT_THAT(out,
              AllOf(HasSubstr(absl::StrCat("\"baseTimeNanoseconds\": ", kRunBaseNs)),
                    HasSubstr(R"({"ph":"X","pid":1,"tid":7,"ts":1.000,"dur":1.000,"name":"op"})"),
                    HasSubstr(R"({"ph":"X","pid":6,"tid":7,"ts":1.000,"dur":1.000,"name":"op"})"),
                    HasSubstr(R"("id":4294967301)"), HasSubstr(R"("id":17179869189)")));
}

// Perfetto reads process_sort_index as 32 bits, knows no process_labels, and shows whatever process
// is named.
TEST_F(KinetoMergerTest, ProcessesAreNamedAndOrderedByRank) {
  const std::string out = Merge({});
  std::vector<std::string> names;
  for (const absl::string_view line : absl::StrSplit(out, '\n')) {
    int64_t pid = 0;
    std::string name, index;
    const std::string text(line);
    if (RE2::PartialMatch(text, R"x("pid": (\d+), .*"process_name", "args": {"name": "([^"]*)"})x",
                          &pid, &name)) {
      names.push_back(absl::StrCat(name, " is ", pid));
    }
    if (RE2::PartialMatch(text, R"x("sort_index": (\d+)})x", &index)) {
      EXPECT_EQ(index, absl::StrCat(names.size() - 1));
    }
  }
  EXPECT_THAT(names, ElementsAre("rank 0 host-a python (70) is 1", "rank 0 host-a GPU 0 is 2",
                                 "rank 0 host-a overhead is 4", "rank 0 host-a Spans is 5",
                                 "rank 3 python (70) is 6", "rank 3 GPU 0 is 7",
                                 "rank 3 overhead is 9", "rank 3 Spans is 10"));
}

// Both ends at the time that the last came, the start first, behind all slices. The second arrow
// would lead behind the end of its kernel.
TEST_F(KinetoMergerTest, ArrowsStartBeforeTheyEndBehindTheSlices) {
  const KinetoArrow::End first = {0, 0, 7}, second = {1, 0, 7};
  const std::string out = Merge({{second, first, 2'000'400, 5'000'000, "all-reduce"},
                                 {second, first, 5'000'100, 5'000'400, "all-reduce"}});
  const size_t start = out.find(
      R"({"ph": "s", "id": 1, "pid": 7, "tid": 7, "ts": 2, "cat": "collective", "name": "all-reduce"})");
  const size_t end = out.find(
      R"({"ph": "f", "id": 1, "pid": 2, "tid": 7, "ts": 2, "cat": "collective", "name": "all-reduce", "bp": "e"})");
  ASSERT_NE(start, out.npos);
  ASSERT_NE(end, out.npos);
  EXPECT_LT(start, end);
  EXPECT_GT(start, out.rfind(R"("ph":"X")"));
  EXPECT_THAT(out, Not(HasSubstr(R"("id": 2,)")));
}

// A clock that is ahead takes the first event to before its own base.
TEST_F(KinetoMergerTest, NoTimeIsNegative) {
  EXPECT_THAT(
      Merge({}, /*later_ns=*/0),
      AllOf(HasSubstr(absl::StrCat("\"baseTimeNanoseconds\": ", kRunBaseNs - 1000)),
            HasSubstr(R"("ts":1.000)"), HasSubstr(R"("ts":2.000)"), Not(HasSubstr(R"("ts":-)"))));
}

// Older versions of PyTorch write microseconds since 1970, which doubles do not tell to the nanosecond.
TEST_F(KinetoMergerTest, TimesThatCountFrom1970AreMadeSmall) {
  EXPECT_EQ(EarliestBase({{{kTrace, 0, &same_, 0, "", kRunBaseNs}}}), kRunBaseNs - 1'000'000'000);
  EXPECT_EQ(EarliestBase({{{kTrace, 0, &same_, 0, "", std::nullopt}}}), 0);
  EXPECT_EQ(EarliestBase({{{kTrace, kRunBaseNs - 5, &same_, 0, "", kRunBaseNs}}}), kRunBaseNs - 5);
  // Perfetto drops what lies before the base.
  EXPECT_EQ(EarliestBase({{{kTrace, kRunBaseNs, &same_, 0, "", kRunBaseNs - 5}}}), kRunBaseNs - 5);
}

// Perfetto knows a manifest by how it begins.
TEST_F(KinetoMergerTest, AManifestNamesTheFiles) {
  const std::string manifest =
      PerfettoManifest({{"rank0.json", "rank 0 host-a"}, {"rank3.json", "rank 3"}});
  std::string packed = manifest;
  absl::StrReplaceAll({{" ", ""}, {"\n", ""}}, &packed);
  EXPECT_EQ(packed, R"({"perfetto_manifest":{"version":1,"files":[)"
                    R"({"path":"rank0.json","machine":{"name":"rank0host-a"}},)"
                    R"({"path":"rank3.json","machine":{"name":"rank3"}}]}})");
  EXPECT_THAT(manifest, HasSubstr("\"rank 0 host-a\""));
}

TEST_F(KinetoMergerTest, DamageIsAnError) {
  std::string out;
  StringSink sink(&out);
  EXPECT_FALSE(MergeKineto({{{"{\"traceEvents\": [{", kRunBaseNs, &same_, 0, ""}}}, NoArrows,
                           kRunBaseNs, nullptr, sink)
                   .ok());
}

}  // namespace
}  // namespace meridian
