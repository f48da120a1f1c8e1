#include "report/quantities.h"

#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/json/json_value.h"
#include "xla_profiler/base/tables/text_table.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

// The cases that the page's texts are checked with, too (report/page/testing/browser_test.py): pairs
// of a value and its text.
class QuantitiesTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(file_, FileSystem::Posix().Map("report/page/testing/quantity_cases.json"));
  }

  std::vector<JsonValue> Cases(absl::string_view name) const {
    absl::string_view text = file_->bytes();
    text.remove_suffix(1);  // The line's end.
    std::vector<JsonValue> cases = JsonValue(text).Find(name).Elements();
    EXPECT_GT(cases.size(), 5u) << name;
    return cases;
  }

  std::unique_ptr<MappedRegion> file_;
};

TEST_F(QuantitiesTest, DurationsTakeTheUnitThatFitsAfterRounding) {
  for (const JsonValue& one : Cases("durations_ns")) {
    EXPECT_EQ(DurationText(*one.Elements()[0].AsDouble()), *one.Elements()[1].AsString());
  }
}

TEST_F(QuantitiesTest, PercentsHaveTwoDigits) {
  for (const JsonValue& one : Cases("percents")) {
    EXPECT_EQ(PercentText(*one.Elements()[0].AsDouble()), *one.Elements()[1].AsString());
  }
}

TEST_F(QuantitiesTest, RunsOfNumbersAreJoined) {
  for (const JsonValue& one : Cases("ranges")) {
    EXPECT_EQ(RangesText(*one.Elements()[0].AsInt64Array()), *one.Elements()[1].AsString());
  }
  EXPECT_EQ(RangesText({std::numeric_limits<int64_t>::max()}), "9223372036854775807");
}

}  // namespace
}  // namespace meridian
