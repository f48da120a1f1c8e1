#include "xla_profiler/base/files/tar_writer.h"

#include <cstdint>
#include <numeric>
#include <string>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/files/byte_sink.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

// Offsets and forms are those of POSIX's pax, "ustar Interchange Format".
TEST(TarWriterTest, WritesMembersInWholeBlocks) {
  std::string out;
  StringSink sink(&out);
  ASSERT_OK(AppendTarMember("a.json", "{}", sink));
  ASSERT_OK(AppendTarMember("whole.json", std::string(512, 'x'), sink));
  ASSERT_OK(AppendTarMember("empty.json", "", sink));
  ASSERT_OK(FinishTar(sink));
  // Three headers, a filled block, a whole one, and the end.
  ASSERT_EQ(out.size(), 7 * 512);
  EXPECT_STREQ(out.c_str(), "a.json");
  EXPECT_STREQ(out.c_str() + 124, "00000000002");
  EXPECT_EQ(out[156], '0');
  EXPECT_STREQ(out.c_str() + 257, "ustar");
  EXPECT_EQ(out.substr(263, 2), "00");
  EXPECT_EQ(out.substr(512, 3), std::string("{}\0", 3));
  EXPECT_STREQ(out.c_str() + 2 * 512, "whole.json");
  EXPECT_STREQ(out.c_str() + 2 * 512 + 124, "00000001000");
  EXPECT_STREQ(out.c_str() + 4 * 512, "empty.json");
  EXPECT_EQ(out.substr(5 * 512), std::string(1024, '\0'));
  // Six digits, a zero byte and a space, which stand for eight spaces in the sum.
  std::string header = out.substr(0, 512);
  const int64_t stated = std::stoll(header.substr(148, 6), nullptr, 8);
  EXPECT_EQ(header.substr(154, 2), std::string("\0 ", 2));
  header.replace(148, 8, "        ");
  EXPECT_EQ(std::accumulate(header.begin(), header.end(), int64_t{0}), stated);
}

TEST(TarWriterTest, RefusesWhatDoesNotFit) {
  std::string out;
  StringSink sink(&out);
  EXPECT_OK(AppendTarMember(std::string(100, 'n'), "", sink));
  EXPECT_THAT(AppendTarMember(std::string(101, 'n'), "", sink),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_EQ(out.size(), 512u);
}

}  // namespace
}  // namespace meridian
