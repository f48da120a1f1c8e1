#include "xla_profiler/base/command_line/command_line.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/reflection.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"

ABSL_FLAG(std::string, trace, "", "The profile to read.");
ABSL_FLAG(
    std::string, method, "auto",
    "How clocks are aligned: offsets if they are given, else probes, else raw clocks when they "
    "show no violation, else collectives.");
ABSL_FLAG(int64_t, rank, 3, "Which rank.");
ABSL_FLAG(bool, json, false, "Print JSON.");
ABSL_FLAG(bool, notes, true, "Print notes.");
ABSL_FLAG(std::string, of_a_library, "", "Not for the command.");

namespace meridian {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class CommandLineTest : public ::testing::Test {
 protected:
  absl::StatusOr<ParsedCommandLine> Parse(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "align");
    return ParseCommandLine(spec_, arguments);
  }

  const CommandSpec spec_ = {"align",
                             "Aligns a profile.",
                             {"align --trace=a.pb", "align --trace=a.pb --json"},
                             {"trace", "method", "rank", "json", "notes"}};
  absl::FlagSaver saver_;
};

TEST_F(CommandLineTest, LeavesDefaultsWhenNothingIsGiven) {
  ASSERT_OK_AND_ASSIGN(const ParsedCommandLine parsed, Parse({}));
  EXPECT_FALSE(parsed.help);
  EXPECT_THAT(parsed.arguments, IsEmpty());
  EXPECT_EQ(absl::GetFlag(FLAGS_rank), 3);
}

TEST_F(CommandLineTest, SetsFlagsInEverySpelling) {
  ASSERT_OK(Parse({"--trace=a=b", "--rank", "-5", "-method", "none", "--json"}));
  EXPECT_EQ(absl::GetFlag(FLAGS_trace), "a=b");
  EXPECT_EQ(absl::GetFlag(FLAGS_rank), -5);
  EXPECT_EQ(absl::GetFlag(FLAGS_method), "none");
  EXPECT_TRUE(absl::GetFlag(FLAGS_json));
}

TEST_F(CommandLineTest, ClearsSwitches) {
  absl::SetFlag(&FLAGS_json, true);
  ASSERT_OK(Parse({"--json=false", "--nonotes"}));
  EXPECT_FALSE(absl::GetFlag(FLAGS_json));
  EXPECT_FALSE(absl::GetFlag(FLAGS_notes));
}

TEST_F(CommandLineTest, TakesAFlagForItselfThoughItBeginsWithNo) {
  absl::SetFlag(&FLAGS_notes, false);
  ASSERT_OK(Parse({"--notes"}));
  EXPECT_TRUE(absl::GetFlag(FLAGS_notes));
}

TEST_F(CommandLineTest, DoesNotGiveTheNextArgumentToASwitch) {
  ASSERT_OK_AND_ASSIGN(const ParsedCommandLine parsed, Parse({"--json", "false"}));
  EXPECT_TRUE(absl::GetFlag(FLAGS_json));
  EXPECT_THAT(parsed.arguments, ElementsAre("false"));
}

TEST_F(CommandLineTest, CanSetAnEmptyValue) {
  ASSERT_OK(Parse({"--method="}));
  EXPECT_EQ(absl::GetFlag(FLAGS_method), "");
}

TEST_F(CommandLineTest, ReturnsWhatIsNoFlag) {
  ASSERT_OK_AND_ASSIGN(const ParsedCommandLine parsed,
                       Parse({"fit", "--rank=1", "-", "--", "--json", "--"}));
  EXPECT_THAT(parsed.arguments, ElementsAre("fit", "-", "--json", "--"));
  EXPECT_FALSE(absl::GetFlag(FLAGS_json));
}

TEST_F(CommandLineTest, NoticesTheWishForHelp) {
  for (const char* help : {"--help", "-help", "-h"}) {
    ASSERT_OK_AND_ASSIGN(const ParsedCommandLine parsed, Parse({help, "--whatever"}));
    EXPECT_TRUE(parsed.help) << help;
  }
}

TEST_F(CommandLineTest, ProposesTheNearestFlag) {
  EXPECT_THAT(Parse({"--trase=a.pb"}), StatusIs(absl::StatusCode::kInvalidArgument,
                                                "unknown flag --trase; did you mean --trace?"));
  EXPECT_THAT(Parse({"--metod"}), StatusIs(absl::StatusCode::kInvalidArgument,
                                           "unknown flag --metod; did you mean --method?"));
}

TEST_F(CommandLineTest, ProposesNothingFarFetched) {
  // One letter could become anything; metXXXXhod is four letters from method, metXXXhod three.
  EXPECT_THAT(Parse({"--x"}), StatusIs(absl::StatusCode::kInvalidArgument,
                                       "unknown flag --x; --help lists all flags"));
  EXPECT_THAT(Parse({"--metXXXXhod"}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "unknown flag --metXXXXhod; --help lists all flags"));
  EXPECT_THAT(Parse({"--metXXXhod"}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("did you mean --method?")));
}

TEST_F(CommandLineTest, RefusesFlagsOfLibraries) {
  EXPECT_THAT(Parse({"--of_a_library=x"}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "unknown flag --of_a_library; --help lists all flags"));
  EXPECT_EQ(absl::GetFlag(FLAGS_of_a_library), "");
}

TEST_F(CommandLineTest, NegatesOnlySwitches) {
  EXPECT_THAT(Parse({"--notrace"}), StatusIs(absl::StatusCode::kInvalidArgument,
                                             "unknown flag --notrace; did you mean --trace?"));
  EXPECT_THAT(Parse({"--nojson=true"}), StatusIs(absl::StatusCode::kInvalidArgument,
                                                 "unknown flag --nojson; did you mean --json?"));
}

TEST_F(CommandLineTest, RefusesAFlagGivenTwice) {
  EXPECT_THAT(Parse({"--rank=1", "--rank=1"}),
              StatusIs(absl::StatusCode::kInvalidArgument, "--rank is given twice"));
  EXPECT_THAT(Parse({"--json", "--nojson"}),
              StatusIs(absl::StatusCode::kInvalidArgument, "--json is given twice"));
}

TEST_F(CommandLineTest, RefusesAFlagWithoutItsValue) {
  EXPECT_THAT(Parse({"--trace"}),
              StatusIs(absl::StatusCode::kInvalidArgument, "--trace needs a value"));
  EXPECT_THAT(Parse({"--trace", "--json"}),
              StatusIs(absl::StatusCode::kInvalidArgument, "--trace needs a value"));
}

TEST_F(CommandLineTest, RefusesAValueThatDoesNotParse) {
  EXPECT_THAT(Parse({"--rank=two"}), StatusIs(absl::StatusCode::kInvalidArgument,
                                              AllOf(HasSubstr("--rank: "), HasSubstr("'two'"))));
  EXPECT_THAT(Parse({"--json=maybe"}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("--json: "), HasSubstr("'maybe'"))));
}

TEST_F(CommandLineTest, ShowsTheHelpPage) {
  EXPECT_EQ(HelpText(spec_),
            R"(Aligns a profile.

Usage: align [flags]

Flags:
  --trace   The profile to read.
  --method  How clocks are aligned: offsets if they are given, else probes, else raw clocks when
            they show no violation, else collectives. (default: "auto")
  --rank    Which rank. (default: 3)
  --json    Print JSON. (default: false)
  --notes   Print notes. (default: true)
  --help    Show this page.

Examples:
  align --trace=a.pb
  align --trace=a.pb --json
)");
}

TEST_F(CommandLineTest, ShowsDefaultsThoughFlagsAreSet) {
  absl::SetFlag(&FLAGS_rank, 9);
  EXPECT_THAT(HelpText(spec_), HasSubstr("Which rank. (default: 3)\n"));
}

}  // namespace
}  // namespace meridian
