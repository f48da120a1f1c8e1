#include "xla_profiler/base/files/byte_sink.h"

#include <string>

#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

TEST(StringSinkTest, AppendsBehindWhatIsThereAndCountsOnlyItsOwnBytes) {
  std::string out = "head ";
  StringSink sink(&out);
  EXPECT_OK(sink.Append("one "));
  EXPECT_OK(sink.Append("two"));
  EXPECT_EQ(out, "head one two");
  EXPECT_EQ(sink.bytes_appended(), 7);
}

}  // namespace
}  // namespace meridian
