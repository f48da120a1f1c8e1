#include "xla_profiler/base/tables/text_table.h"

#include "gtest/gtest.h"

namespace meridian {
namespace {

TEST(CsvFieldTest, QuotesWhatSpreadsheetsTrip) {
  EXPECT_EQ(CsvField(""), "\"\"");
  EXPECT_EQ(CsvField("gemm<float, 4>"), "\"gemm<float, 4>\"");
  EXPECT_EQ(CsvField("say \"hi\""), "\"say \"\"hi\"\"\"");
  EXPECT_EQ(CsvField("two\nlines"), "\"two?lines\"");
}

}  // namespace
}  // namespace meridian
