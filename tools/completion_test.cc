#include "tools/completion.h"

#include <cstdint>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/command_line/flag.h"

namespace meridian {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(CompletionTest, KnowsTheCommandsAndTheirFlags) {
  Flag<int64_t> size("size", 1, "How large.");
  Flag<bool> check("check", false, "Checks.");
  const Command program = {
      "program",
      "Has commands.",
      {},
      {},
      nullptr,
      {{"measure", "Measures.", {}, {&size, &check}},
       {"model", "Models.", {}, {}, nullptr, {{"fit", "Fits.", {}, {&size}}}}}};
  const std::string bash = BashCompletion(program);
  EXPECT_THAT(bash, HasSubstr("\"\") choices=\"measure model help --help --version\" ;;\n"));
  EXPECT_THAT(bash, HasSubstr("\"measure\") choices=\"--size= --check --json --help\" ;;\n"));
  EXPECT_THAT(bash, HasSubstr("\"model\") choices=\"fit help --help\" ;;\n"));
  EXPECT_THAT(bash, HasSubstr("\"model fit\") choices=\"--size= --json --help\" ;;\n"));
  EXPECT_THAT(ZshCompletion(program), StartsWith("#compdef program\n"));
}

}  // namespace
}  // namespace meridian
