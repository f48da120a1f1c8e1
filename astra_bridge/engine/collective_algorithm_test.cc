#include "astra_bridge/engine/collective_algorithm.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

using Kind = CollectiveAlgorithm::Kind;

// Writes down what is asked for since the last look.
class RecordingHost : public AlgorithmHost {
 public:
  void Prepare(int64_t reduce_bytes) override {
    log_.push_back(reduce_bytes == 0 ? "prepare" : absl::StrCat("reduce ", reduce_bytes));
  }
  void Send(int32_t to_position, uint32_t sequence, int64_t bytes) override {
    log_.push_back(absl::StrCat("send ", sequence, " to ", to_position, " of ", bytes));
  }
  void Expect(uint32_t sequence) override { log_.push_back(absl::StrCat("expect ", sequence)); }
  void Finish() override { log_.push_back("finish"); }

  std::vector<std::string> Take() { return std::move(log_); }

 private:
  std::vector<std::string> log_;
};

CollectivePhase Phase(Kind kind, CollectiveKind op, int32_t size) {
  CollectivePhase phase;
  phase.algorithm.kind = kind;
  phase.op = op;
  phase.size = size;
  return phase;
}

TEST(ExchangeStateTest, RingReduceScatterReducesEveryThingItReceives) {
  CollectivePhase phase = Phase(Kind::kRing, CollectiveKind::kReduceScatter, 3);
  phase.messages = 2;
  phase.message_bytes = 100;
  phase.reduced_run = 2;
  RecordingHost host;
  ExchangeState state(phase);
  state.Start(phase, host);
  EXPECT_THAT(host.Take(), ElementsAre("prepare"));
  EXPECT_FALSE(state.Expects(0));
  state.OnPrepared(phase, /*position=*/2, host);
  EXPECT_THAT(host.Take(), ElementsAre("send 0 to 0 of 100", "expect 0"));
  EXPECT_TRUE(state.Expects(0));
  EXPECT_FALSE(state.Expects(1));
  state.OnReceived(phase, host);
  EXPECT_THAT(host.Take(), ElementsAre("reduce 100"));
  state.OnPrepared(phase, 2, host);
  EXPECT_THAT(host.Take(), ElementsAre("send 1 to 0 of 100", "expect 1"));
  state.OnReceived(phase, host);
  EXPECT_THAT(host.Take(), ElementsAre("reduce 100"));
  state.OnPrepared(phase, 2, host);
  EXPECT_THAT(host.Take(), ElementsAre("finish"));
}

TEST(ExchangeStateTest, RingAllReduceReducesInTheFirstHalfOnly) {
  CollectivePhase phase = Phase(Kind::kRing, CollectiveKind::kAllReduce, 3);
  phase.messages = 4;
  phase.message_bytes = 100;
  phase.reduced_run = 2;
  phase.direction = -1;
  RecordingHost host;
  ExchangeState state(phase);
  state.Start(phase, host);
  std::vector<std::string> preparations = host.Take();
  for (int i = 0; i < 4; ++i) {
    state.OnPrepared(phase, /*position=*/0, host);
    EXPECT_THAT(host.Take(),
                ElementsAre(absl::StrCat("send ", i, " to 2 of 100"), absl::StrCat("expect ", i)));
    state.OnReceived(phase, host);
    preparations.push_back(host.Take()[0]);
  }
  EXPECT_THAT(preparations,
              ElementsAre("prepare", "reduce 100", "reduce 100", "prepare", "prepare"));
  state.OnPrepared(phase, 0, host);
  EXPECT_THAT(host.Take(), ElementsAre("finish"));
}

TEST(ExchangeStateTest, DirectGoesAroundAndWaitsForTheFirstHalf) {
  CollectivePhase phase = Phase(Kind::kDirect, CollectiveKind::kAllReduce, 3);
  phase.messages = 4;
  phase.message_bytes = 100;
  phase.parallel = 2;
  phase.reduced_run = 2;
  RecordingHost host;
  ExchangeState state(phase);
  state.Start(phase, host);
  EXPECT_THAT(host.Take(), ElementsAre("prepare", "prepare"));
  state.OnPrepared(phase, /*position=*/1, host);
  EXPECT_THAT(host.Take(), ElementsAre("send 0 to 2 of 100", "expect 0"));
  state.OnPrepared(phase, 1, host);
  EXPECT_THAT(host.Take(), ElementsAre("send 1 to 0 of 100", "expect 1"));
  state.OnReceived(phase, host);
  EXPECT_THAT(host.Take(), ElementsAre("reduce 100"));
  // Prepared, but the other message of the first half is not there.
  state.OnPrepared(phase, 1, host);
  EXPECT_THAT(host.Take(), IsEmpty());
  state.OnReceived(phase, host);
  EXPECT_THAT(host.Take(), ElementsAre("reduce 100"));
  state.OnPrepared(phase, 1, host);
  EXPECT_THAT(host.Take(),
              ElementsAre("send 2 to 2 of 100", "expect 2", "send 3 to 0 of 100", "expect 3"));
  state.OnReceived(phase, host);
  state.OnReceived(phase, host);
  EXPECT_THAT(host.Take(), ElementsAre("prepare", "prepare"));
  state.OnPrepared(phase, 1, host);
  EXPECT_THAT(host.Take(), IsEmpty());
  state.OnPrepared(phase, 1, host);
  EXPECT_THAT(host.Take(), ElementsAre("finish"));
}

// Runs a machine that always receives what it waits for, and returns what it did.
std::vector<std::string> RunAlone(const CollectivePhase& phase, int32_t position) {
  RecordingHost host;
  ExchangeState state(phase);
  state.Start(phase, host);
  std::vector<std::string> all;
  for (int i = 0; i < phase.messages; ++i) {
    state.OnPrepared(phase, position, host);
    state.OnReceived(phase, host);
    for (const std::string& line : host.Take()) {
      if (line[0] != 'e') all.push_back(line);
    }
  }
  return all;
}

TEST(ExchangeStateTest, HalvingDoublingHalvesAndDoubles) {
  CollectivePhase phase = Phase(Kind::kHalvingDoubling, CollectiveKind::kAllReduce, 8);
  phase.messages = 6;
  phase.message_bytes = 500;
  phase.reduced_run = 2;
  // Rank 5 = 101b: its partners are 4, 7, 1, and back. 125 is odd, so one byte gets lost.
  EXPECT_THAT(
      RunAlone(phase, 5),
      ElementsAre("prepare", "send 0 to 4 of 500", "reduce 250", "send 1 to 7 of 250", "reduce 125",
                  "send 2 to 1 of 125", "prepare", "send 3 to 1 of 124", "prepare",
                  "send 4 to 7 of 248", "prepare", "send 5 to 4 of 496", "prepare"));
}

TEST(ExchangeStateTest, HalvingDoublingGathersFromTheFarthest) {
  CollectivePhase phase = Phase(Kind::kHalvingDoubling, CollectiveKind::kAllGather, 8);
  phase.messages = 3;
  phase.message_bytes = 100;
  phase.reduced_run = 2;
  EXPECT_THAT(RunAlone(phase, 0),
              ElementsAre("prepare", "send 0 to 4 of 100", "prepare", "send 1 to 2 of 200",
                          "prepare", "send 2 to 1 of 400", "prepare"));
}

TEST(TreeStateTest, LeafSendsUpAndWaits) {
  CollectivePhase phase = Phase(Kind::kDoubleBinaryTree, CollectiveKind::kAllReduce, 4);
  phase.data_bytes = 100;
  RecordingHost host;
  TreeState state(phase, /*position=*/2, /*root_is_highest=*/true);
  state.Start(host);
  EXPECT_THAT(host.Take(), ElementsAre("prepare"));
  state.OnPrepared(phase, host);
  EXPECT_THAT(host.Take(), ElementsAre("send 1 to 1 of 100", "expect 2"));
  EXPECT_TRUE(state.Expects(TreeState::kFromParent));
  state.OnReceived(phase, host);
  EXPECT_THAT(host.Take(), ElementsAre("prepare"));
  state.OnPrepared(phase, host);
  EXPECT_THAT(host.Take(), ElementsAre("finish"));
}

TEST(TreeStateTest, InnerNodeReducesBothChildrenBeforeItSendsUp) {
  CollectivePhase phase = Phase(Kind::kDoubleBinaryTree, CollectiveKind::kAllReduce, 4);
  phase.data_bytes = 100;
  RecordingHost host;
  TreeState state(phase, 1, true);
  state.Start(host);
  EXPECT_THAT(host.Take(), ElementsAre("expect 0", "expect 1"));
  state.OnReceived(phase, host);
  state.OnReceived(phase, host);
  EXPECT_THAT(host.Take(), ElementsAre("reduce 100", "reduce 100"));
  state.OnPrepared(phase, host);
  EXPECT_THAT(host.Take(), IsEmpty());
  state.OnPrepared(phase, host);
  EXPECT_THAT(host.Take(), ElementsAre("send 0 to 3 of 100", "expect 2"));
  state.OnReceived(phase, host);
  EXPECT_THAT(host.Take(), ElementsAre("reduce 100"));
  state.OnPrepared(phase, host);
  EXPECT_THAT(host.Take(), ElementsAre("send 2 to 0 of 100", "send 2 to 2 of 100", "finish"));
}

TEST(TreeStateTest, RootAnswersItsOnlyChild) {
  CollectivePhase phase = Phase(Kind::kDoubleBinaryTree, CollectiveKind::kAllReduce, 4);
  phase.data_bytes = 100;
  RecordingHost host;
  TreeState state(phase, 0, /*root_is_highest=*/false);
  state.Start(host);
  EXPECT_THAT(host.Take(), ElementsAre("expect 1"));
  state.OnReceived(phase, host);
  EXPECT_THAT(host.Take(), ElementsAre("reduce 100"));
  state.OnPrepared(phase, host);
  EXPECT_THAT(host.Take(), ElementsAre("send 2 to 2 of 100", "finish"));
}

}  // namespace
}  // namespace meridian
