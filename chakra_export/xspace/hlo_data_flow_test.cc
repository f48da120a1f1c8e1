#include "chakra_export/xspace/hlo_data_flow.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/testing/hlo_module_builder.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

class HloDataFlowTest : public ::testing::Test {
 protected:
  HloDataFlowTest() : array_(ArrayShape(xla::F32, {4})), builder_("m") {}

  std::vector<std::string> DataOf(absl::string_view name) { return Names(SourcesOf(name).data); }
  std::vector<std::string> ControlOf(absl::string_view name) {
    return Names(SourcesOf(name).control);
  }

  xla::ShapeProto array_;
  HloModuleBuilder builder_;

 private:
  HloSources SourcesOf(absl::string_view name) {
    const std::string bytes = builder_.Serialize();
    const auto module = HloModule::Decode(bytes, bytes.data());
    EXPECT_THAT(module, IsOk());
    const HloCollectives collectives(**module);
    HloDataFlow flow(**module, collectives);
    const HloSources sources = flow.SourcesOf(*(*module)->FindInstruction(name));
    names_.clear();
    for (const auto* list : {&sources.data, &sources.control}) {
      for (const HloInstruction* source : *list) names_[source] = std::string(source->name());
    }
    return sources;
  }
  std::vector<std::string> Names(const std::vector<const HloInstruction*>& instructions) {
    std::vector<std::string> names;
    for (const HloInstruction* instruction : instructions) names.push_back(names_[instruction]);
    return names;
  }

  std::map<const HloInstruction*, std::string> names_;
};

TEST_F(HloDataFlowTest, TuplesAreFollowedElementByElement) {
  auto* x = builder_.Add("x", "parameter", array_);
  auto* a = builder_.Add("a", "fusion", array_, {x});
  auto* b = builder_.Add("b", "fusion", array_, {x});
  auto* both = builder_.Add("both", "tuple", TupleShape({array_, array_}), {a, b});
  auto* second = builder_.Add("second", "get-tuple-element", array_, {both});
  second->set_tuple_index(1);
  auto* cast = builder_.Add("cast", "bitcast", array_, {second});
  builder_.Add("user", "fusion", array_, {cast});
  EXPECT_THAT(DataOf("user"), ElementsAre("b"));
  EXPECT_THAT(DataOf("a"), ElementsAre());
}

TEST_F(HloDataFlowTest, ADoneLeadsToWhatCommunicates) {
  auto* x = builder_.Add("x", "fusion", array_);
  auto* start = builder_.Add("all-reduce-start", "all-reduce-start", array_, {x});
  auto* done = builder_.Add("all-reduce-done", "all-reduce-done", array_, {start});
  builder_.Add("user", "fusion", array_, {done});
  EXPECT_THAT(DataOf("user"), ElementsAre("all-reduce-start"));
  EXPECT_THAT(DataOf("all-reduce-start"), ElementsAre("x"));
}

TEST_F(HloDataFlowTest, WrappedCollectivesReadWhatTheirCallerIsGiven) {
  auto* x = builder_.Add("x", "fusion", array_);
  auto* start = builder_.Add("async-start", "async-start", array_, {x});
  auto* done = builder_.Add("async-done", "async-done", array_, {start});
  builder_.Add("user", "fusion", array_, {done});
  auto* wrapped = builder_.AddComputation("wrapped");
  start->add_called_computation_ids(wrapped->id());
  auto* p = builder_.Add("p", "parameter", array_);
  builder_.Add("reduce-scatter", "reduce-scatter", array_, {p});
  EXPECT_THAT(DataOf("user"), ElementsAre("reduce-scatter"));
  EXPECT_THAT(DataOf("reduce-scatter"), ElementsAre("x"));
}

TEST_F(HloDataFlowTest, ALoopReadsItsOperandAndWhatItMadeBefore) {
  const xla::ShapeProto state = TupleShape({array_, array_});
  auto* x = builder_.Add("x", "fusion", array_);
  auto* y = builder_.Add("y", "fusion", array_);
  auto* initial = builder_.Add("initial", "tuple", state, {x, y});
  auto* loop = builder_.Add("loop", "while", state, {initial});
  auto* first = builder_.Add("first", "get-tuple-element", array_, {loop});
  builder_.Add("user", "fusion", array_, {first});
  auto* body = builder_.AddComputation("body");
  loop->add_called_computation_ids(body->id());
  auto* p = builder_.Add("p", "parameter", state);
  auto* mine = builder_.Add("mine", "get-tuple-element", array_, {p});
  auto* step = builder_.Add("step", "fusion", array_, {mine});
  auto* other = builder_.Add("other", "get-tuple-element", array_, {p});
  other->set_tuple_index(1);
  builder_.Add("next", "tuple", state, {step, other});
  EXPECT_THAT(DataOf("user"), UnorderedElementsAre("step", "x"));
  // Not y, which the loop passes on in the other element.
  EXPECT_THAT(DataOf("step"), ElementsAre("x"));
}

TEST_F(HloDataFlowTest, ControlPredecessorsAreKeptApart) {
  auto* x = builder_.Add("x", "fusion", array_);
  auto* user = builder_.Add("user", "fusion", array_);
  user->add_control_predecessor_ids(x->id());
  EXPECT_THAT(ControlOf("user"), ElementsAre("x"));
  EXPECT_THAT(DataOf("user"), ElementsAre());
}

}  // namespace
}  // namespace meridian
