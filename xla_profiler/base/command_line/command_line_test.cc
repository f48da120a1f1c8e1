#include "xla_profiler/base/command_line/command_line.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Flag<std::string> FLAGS_trace("trace", "", "The profile to read.");
Flag<std::string> FLAGS_method(
    "method", "auto",
    "How clocks are aligned: offsets if they are given, else probes, else raw clocks when they "
    "show no violation, else collectives.");
Flag<int64_t> FLAGS_rank("rank", 3, "Which rank.");
Flag<bool> FLAGS_json("json", false, "Print JSON.");
Flag<bool> FLAGS_notes("notes", true, "Print notes.");

class CommandLineTest : public ::testing::Test {
 protected:
  absl::StatusOr<ParsedCommandLine> Parse(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "align");
    return ParseCommandLine(command_, arguments);
  }

  ~CommandLineTest() override {
    std::string error;
    for (AnyFlag* flag : command_.flags) EXPECT_TRUE(flag->Set(flag->DefaultText(), &error));
  }

  const Command command_ = {"align",
                            "Aligns a profile.",
                            {"align --trace=a.pb", "align --trace=a.pb --json"},
                            {&FLAGS_trace, &FLAGS_method, &FLAGS_rank, &FLAGS_json, &FLAGS_notes}};
};

TEST_F(CommandLineTest, LeavesDefaultsWhenNothingIsGiven) {
  ASSERT_OK_AND_ASSIGN(const ParsedCommandLine parsed, Parse({}));
  EXPECT_FALSE(parsed.help);
  EXPECT_THAT(parsed.arguments, IsEmpty());
  EXPECT_EQ(FLAGS_rank.value(), 3);
}

TEST_F(CommandLineTest, SetsFlagsInEverySpelling) {
  ASSERT_OK(Parse({"--trace=a=b", "--rank", "-5", "-method", "none", "--json"}));
  EXPECT_EQ(FLAGS_trace.value(), "a=b");
  EXPECT_EQ(FLAGS_rank.value(), -5);
  EXPECT_EQ(FLAGS_method.value(), "none");
  EXPECT_TRUE(FLAGS_json.value());
}

TEST_F(CommandLineTest, ClearsSwitches) {
  (void)FLAGS_json.Set("true", nullptr);
  ASSERT_OK(Parse({"--json=false", "--nonotes"}));
  EXPECT_FALSE(FLAGS_json.value());
  EXPECT_FALSE(FLAGS_notes.value());
}

TEST_F(CommandLineTest, TakesAFlagForItselfThoughItBeginsWithNo) {
  (void)FLAGS_notes.Set("false", nullptr);
  ASSERT_OK(Parse({"--notes"}));
  EXPECT_TRUE(FLAGS_notes.value());
}

TEST_F(CommandLineTest, DoesNotGiveTheNextArgumentToASwitch) {
  ASSERT_OK_AND_ASSIGN(const ParsedCommandLine parsed, Parse({"--json", "false"}));
  EXPECT_TRUE(FLAGS_json.value());
  EXPECT_THAT(parsed.arguments, ElementsAre("false"));
}

TEST_F(CommandLineTest, CanSetAnEmptyValue) {
  ASSERT_OK(Parse({"--method="}));
  EXPECT_EQ(FLAGS_method.value(), "");
}

TEST_F(CommandLineTest, ReturnsWhatIsNoFlag) {
  ASSERT_OK_AND_ASSIGN(const ParsedCommandLine parsed,
                       Parse({"fit", "--rank=1", "-", "--", "--json", "--"}));
  EXPECT_THAT(parsed.arguments, ElementsAre("fit", "-", "--json", "--"));
  EXPECT_FALSE(FLAGS_json.value());
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
  EXPECT_THAT(Parse({"--x"}),
              StatusIs(absl::StatusCode::kInvalidArgument, "unknown flag --x; --help lists all"));
  EXPECT_THAT(Parse({"--metXXXXhod"}), StatusIs(absl::StatusCode::kInvalidArgument,
                                                "unknown flag --metXXXXhod; --help lists all"));
  EXPECT_THAT(Parse({"--metXXXhod"}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("did you mean --method?")));
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
  EXPECT_EQ(HelpText(command_),
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

TEST_F(CommandLineTest, AFlagIsGivenWhenItDiffersFromItsDefault) {
  ASSERT_OK(Parse({"--method=auto", "--trace=", "--json"}));
  EXPECT_FALSE(FLAGS_method.given());
  EXPECT_FALSE(FLAGS_trace.given());
  EXPECT_TRUE(FLAGS_json.given());
}

TEST_F(CommandLineTest, NoticesTheWishForTheVersion) {
  ASSERT_OK_AND_ASSIGN(const ParsedCommandLine parsed, Parse({"--version"}));
  EXPECT_TRUE(parsed.version);
}

TEST_F(CommandLineTest, ListsAndFindsCommandsOfCommands) {
  const Command program = {"meridian", "Has commands.", {}, {}, nullptr, {command_}};
  EXPECT_EQ(HelpText(program),
            R"(Has commands.

Usage: meridian COMMAND [flags]

Commands:
  align      Aligns a profile.
  help       Show this page, or that of a command.
  --version  Show the version.
)");
  ASSERT_OK_AND_ASSIGN(const Command* found, FindCommand(program.commands, "align"));
  EXPECT_THAT(HelpText(*found, "meridian "), AllOf(HasSubstr("Usage: meridian align [flags]\n"),
                                                   HasSubstr("\n  meridian align --trace=a.pb\n")));
  EXPECT_THAT(FindCommand(program.commands, "aling"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "'aling' is none of its commands; did you mean align?"));
  EXPECT_THAT(FindCommand(program.commands, "x"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "'x' is none of its commands; --help lists all"));
}

TEST_F(CommandLineTest, ShowsDefaultsThoughFlagsAreSet) {
  (void)FLAGS_rank.Set("9", nullptr);
  EXPECT_THAT(HelpText(command_), HasSubstr("Which rank. (default: 3)\n"));
}

}  // namespace
}  // namespace meridian
