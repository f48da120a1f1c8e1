// ServeEdges: requests and their answers.
#include <sstream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "astra_bridge/prediction/prediction_run.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/base/testing/temporary_directory.h"

namespace meridian {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;

class EdgeServiceTest : public ::testing::Test {
 protected:
  EdgeServiceTest() {
    network_.config.topologies[""].network =
        directory_.Write("full.yml",
                         "topology: [ FullyConnected ]\nnpus_count: [ 4 ]\nbandwidth: [ 50 ]\n"
                         "latency: [ 500 ]\n");
  }

  // Returns the answers, without the one that comes before any request.
  std::vector<std::string> Ask(const std::string& requests) {
    std::istringstream input(requests);
    std::vector<std::string> answers;
    EXPECT_OK(
        ServeEdges(FileSystem::Posix(), network_, input, [&answers](const std::string& answer) {
          // One line each, whatever is asked.
          EXPECT_EQ(answer.find('\n'), answer.size() - 1) << answer;
          answers.push_back(answer);
          return absl::OkStatus();
        }));
    EXPECT_THAT(answers.at(0), AllOf(HasSubstr(R"("engine":"embedded, congestion-aware")"),
                                     HasSubstr(R"("edges":[])")));
    answers.erase(answers.begin());
    return answers;
  }

  const TemporaryDirectory directory_;
  PredictionNetwork network_;
};

std::string Send(const std::string& id) {
  return absl::StrCat(R"({"edge_id":")", id,
                      R"(","op_kind":"P2P","size_bytes":1048576,"src_rank":0,"dst_rank":1})", "\n");
}

// 1 MiB takes 20031 ns alone; the second of two on one link waits 19531 ns for the first.
TEST_F(EdgeServiceTest, OneEdgeIsAloneAndSeveralAreTogether) {
  const std::vector<std::string> answers =
      Ask(absl::StrCat(Send("a"), "\n\n\n", Send("a"), Send("b"), "\n", Send("c")));
  ASSERT_THAT(answers, SizeIs(3));
  EXPECT_THAT(answers[0], AllOf(HasSubstr(R"("mode":"isolated")"), HasSubstr("2.0031e-05"),
                                HasSubstr(R"("participants":[0,1])")));
  EXPECT_THAT(answers[1], AllOf(HasSubstr(R"("mode":"snapshot")"),
                                HasSubstr(R"("iteration_ns":39562)"), HasSubstr("inflation")));
  // The last request needs no empty line.
  EXPECT_THAT(answers[2], HasSubstr(R"("id":"c")"));
}

TEST_F(EdgeServiceTest, BadRequestsAreAnsweredAndTheNextIsRead) {
  const std::vector<std::string> bad = {
      "no JSON",
      "{",
      "[]",
      "{}",
      R"({"edge_id":"a","op_kind":"AR","size_bytes":-1})",
      R"({"edge_id":"a","op_kind":"AR","size_bytes":1,"participants":[0,9]})",
      std::string("\0\xff\r", 3),
      Send("x") + R"({"edge_id":)"};
  std::string requests;
  for (const std::string& request : bad)
    absl::StrAppend(&requests, request, "\n\n", Send("a"), "\n");
  const std::vector<std::string> answers = Ask(requests);
  ASSERT_THAT(answers, SizeIs(2 * bad.size()));
  for (size_t i = 0; i < bad.size(); ++i) {
    EXPECT_THAT(answers[2 * i], AllOf(StartsWith(R"({"error":")"), EndsWith(",\"exit_code\":2}\n")))
        << bad[i];
    EXPECT_THAT(answers[2 * i + 1], HasSubstr("2.0031e-05")) << bad[i];
  }
  EXPECT_THAT(answers[10], HasSubstr("device 9 takes part"));
  EXPECT_THAT(answers[14], HasSubstr("request:2: "));
}

TEST_F(EdgeServiceTest, ARequestThatIsTooLongIsForgotten) {
  const std::vector<std::string> answers =
      Ask(absl::StrCat(std::string(65 << 20, ' '), "\n\n", Send("a")));
  ASSERT_THAT(answers, SizeIs(2));
  EXPECT_THAT(answers[0], HasSubstr("more than 64 MiB"));
  EXPECT_THAT(answers[1], HasSubstr("2.0031e-05"));
}

TEST_F(EdgeServiceTest, NobodyIsAnsweredWithoutANetwork) {
  network_.config.topologies.clear();
  std::istringstream input(Send("a"));
  EXPECT_EQ(ServeEdges(FileSystem::Posix(), network_, input,
                       [](const std::string&) { return absl::InternalError("answered"); })
                .code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace meridian
