#include "xla_profiler/steps/step_events.h"

#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/testing/shared_data.h"
#include "xla_profiler/testing/synthetic_run.h"
#include "xla_profiler/testing/xplane_builder.h"
#include "xla_profiler/testing/xplane_utils.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;

std::string SourceName(StepSource source) {
  switch (source) {
    case StepSource::kAnnotation:
      return "annotation";
    case StepSource::kStepsLine:
      return "steps line";
    case StepSource::kDeviceModule:
      return "device module";
    case StepSource::kHostModule:
      return "host module";
  }
  return "";
}

// "source: number name start..end" of each step, in picoseconds.
std::vector<std::string> Texts(const std::vector<StepEvent>& steps) {
  std::vector<std::string> texts;
  for (const StepEvent& step : steps) {
    texts.push_back(absl::StrCat(SourceName(step.source), ": ", step.number, " ", step.name, " ",
                                 step.start_ps, "..", step.end_ps));
  }
  return texts;
}

// Builds a profile event by event.
class SpaceBuilder {
 public:
  // Adds an event to the line of that name in the plane of that name. Its time counts from the
  // session's start; lines have bases of their own.
  void AddEvent(absl::string_view plane_name, int64_t line_id, absl::string_view line_name,
                absl::string_view name, int64_t start_ps, int64_t duration_ps,
                std::vector<std::pair<absl::string_view, int64_t>> stats = {}) {
    XPlaneBuilder plane(FindOrAddMutablePlaneWithName(&space_, plane_name));
    XLineBuilder line = plane.GetOrCreateLine(line_id);
    line.SetName(line_name);
    line.SetTimestampNs(7);
    XEventBuilder event = line.AddEvent(*plane.GetOrCreateEventMetadata(name));
    event.SetOffsetPs(start_ps - 7000);
    event.SetDurationPs(duration_ps);
    for (const auto& [stat, value] : stats) {
      event.AddStatValue(*plane.GetOrCreateStatMetadata(stat), value);
    }
  }

  void AddHostEvent(int64_t thread, absl::string_view name, int64_t start_ps, int64_t duration_ps,
                    std::vector<std::pair<absl::string_view, int64_t>> stats) {
    AddEvent(kHostThreadsPlaneName, thread, "python3", name, start_ps, duration_ps,
             std::move(stats));
  }

  // The reader is valid until the next change.
  XSpaceReader Reader() {
    bytes_ = space_.SerializeAsString();
    absl::StatusOr<XSpaceReader> reader = XSpaceReader::FromBytes(bytes_, "test.pb");
    EXPECT_OK(reader);
    return *std::move(reader);
  }

 private:
  XSpaceProto space_;
  std::string bytes_;
};

TEST(StepEventsTest, AnnotationsAreStepsInOrderOfTheirStarts) {
  SpaceBuilder space;
  space.AddHostEvent(1, "train", 200, 90, {{"_r", 1}, {"step_num", 11}});
  space.AddHostEvent(1, "train", 100, 90, {{"_r", 1}, {"step_num", 10}});
  space.AddHostEvent(1, "load batch", 110, 20, {{"_r", 1}});
  ASSERT_OK_AND_ASSIGN(const std::vector<StepEvent> found, FindXSpaceSteps(space.Reader()));
  EXPECT_THAT(Texts(found),
              ElementsAre("annotation: 10 train 100..190", "annotation: 11 train 200..290"));
}

TEST(StepEventsTest, ThreadsThatShareAStepMakeOne) {
  SpaceBuilder space;
  space.AddHostEvent(1, "train", 100, 90, {{"step_num", 0}});
  space.AddHostEvent(2, "train", 150, 60, {{"step_num", 0}});
  space.AddHostEvent(3, "train", 205, 10, {{"step_num", 0}});
  // Another loop, and the first loop's next step, which thread 2 began early.
  space.AddHostEvent(2, "eval", 120, 5, {{"step_num", 0}});
  space.AddHostEvent(2, "train", 180, 50, {{"step_num", 1}});
  ASSERT_OK_AND_ASSIGN(const std::vector<StepEvent> found, FindXSpaceSteps(space.Reader()));
  EXPECT_THAT(Texts(found),
              ElementsAre("annotation: 0 train 100..215", "annotation: 0 eval 120..125",
                          "annotation: 1 train 180..230"));
}

TEST(StepEventsTest, ANumberThatComesAgainLaterIsAnotherStep) {
  SpaceBuilder space;
  space.AddHostEvent(1, "train", 100, 90, {{"step_num", 0}});
  space.AddHostEvent(1, "train", 190, 10, {{"step_num", 0}});
  ASSERT_OK_AND_ASSIGN(const std::vector<StepEvent> found, FindXSpaceSteps(space.Reader()));
  EXPECT_THAT(Texts(found),
              ElementsAre("annotation: 0 train 100..190", "annotation: 0 train 190..200"));
}

TEST(StepEventsTest, EventsThatCannotBeRowsAreNoSteps) {
  SpaceBuilder space;
  space.AddHostEvent(1, "negative", 100, -1, {{"step_num", 0}});
  space.AddHostEvent(1, "too long", 100, std::numeric_limits<int64_t>::max(), {{"step_num", 1}});
  space.AddHostEvent(1, "longest", 100, std::numeric_limits<int64_t>::max() - 100,
                     {{"step_num", 2}});
  ASSERT_OK_AND_ASSIGN(const std::vector<StepEvent> found, FindXSpaceSteps(space.Reader()));
  EXPECT_THAT(Texts(found), ElementsAre("annotation: 2 longest 100..9223372036854775807"));
}

TEST(StepEventsTest, StepsLinesOfSeveralDevicesAreJoined) {
  SpaceBuilder space;
  space.AddEvent("/device:TPU:0", 1, "Steps", "12", 100, 50);
  space.AddEvent("/device:TPU:0", 1, "Steps", "13", 150, 50);
  space.AddEvent("/device:TPU:0", 1, "Steps", "idle", 200, 50);
  space.AddEvent("/device:TPU:0", 2, "XLA Ops", "14", 200, 50);
  space.AddEvent("/device:TPU:1", 1, "Steps", "12", 101, 60);
  space.AddEvent("/host:CPU", 1, "Steps", "15", 300, 50);
  ASSERT_OK_AND_ASSIGN(const std::vector<StepEvent> found, FindXSpaceSteps(space.Reader()));
  EXPECT_THAT(Texts(found),
              ElementsAre("steps line: 12 12 100..161", "steps line: 13 13 150..200"));
}

TEST(StepEventsTest, TheFirstDeviceStandsForTheModuleRunsOfAll) {
  SpaceBuilder space;
  space.AddEvent("/device:GPU:0", 1, "XLA Modules", "jit_f", 50, 5);
  space.AddEvent("/device:TPU:0", 1, "XLA Modules", "jit_f(77)", 100, 50, {{"run_id", 6}});
  space.AddEvent("/device:TPU:0", 1, "XLA Modules", "jit_f(77)", 200, 50, {{"run_id", 7}});
  // The same execution as run 6 above.
  space.AddEvent("/device:TPU:1", 1, "XLA Modules", "jit_f(77)", 100, 50, {{"run_id", 4}});
  ASSERT_OK_AND_ASSIGN(const std::vector<StepEvent> found, FindXSpaceSteps(space.Reader()));
  EXPECT_THAT(Texts(found),
              ElementsAre("device module: 6 jit_f 100..150", "device module: 7 jit_f 200..250"));
}

TEST(StepEventsTest, AHostModuleRunIsTheExecuteCall) {
  SpaceBuilder space;
  space.AddHostEvent(1, "CommonPjRtLoadedExecutable::Execute (jit_f)", 100, 50, {{"run_id", 3}});
  space.AddHostEvent(1, "RendezvousAfterInitialization", 110, 90, {{"run_id", 3}});
  space.AddHostEvent(1, "ThunkExecutor::Execute (wait for completion)", 110, 90, {{"run_id", 3}});
  space.AddHostEvent(1, "PjRtStreamExecutorLoadedExecutable::Execute (jit_g)", 300, 9, {});
  ASSERT_OK_AND_ASSIGN(const std::vector<StepEvent> found, FindXSpaceSteps(space.Reader()));
  EXPECT_THAT(Texts(found), ElementsAre("host module: 3 jit_f 100..150"));
}

TEST(StepEventsTest, AHostModuleRunOnCpuSpansItsInstructions) {
  XSpaceProto space;
  XPlaneBuilder plane(FindOrAddMutablePlaneWithName(&space, kHostThreadsPlaneName));
  const auto add = [&](int64_t thread, int64_t start_ps, const char* module, int64_t run_id) {
    XEventBuilder event =
        plane.GetOrCreateLine(thread).AddEvent(*plane.GetOrCreateEventMetadata("dot"));
    event.SetTimespan(Timespan(start_ps, 10));
    event.AddStatValue(*plane.GetOrCreateStatMetadata(StatType::kHloModule), module);
    event.AddStatValue(*plane.GetOrCreateStatMetadata(StatType::kRunId), run_id);
  };
  add(1, 100, "jit_f", 3);
  add(1, 120, "jit_f", 3);
  add(2, 90, "jit_f", 3);
  add(1, 150, "jit_f", 4);
  add(1, 160, "jit_g", 3);
  const std::string bytes = space.SerializeAsString();
  ASSERT_OK_AND_ASSIGN(const XSpaceReader reader, XSpaceReader::FromBytes(bytes, "test.pb"));
  ASSERT_OK_AND_ASSIGN(const std::vector<StepEvent> found, FindXSpaceSteps(reader));
  EXPECT_THAT(Texts(found),
              ElementsAre("host module: 3 jit_f 90..130", "host module: 4 jit_f 150..160",
                          "host module: 3 jit_g 160..170"));
}

TEST(StepEventsTest, TakesTheFirstSourceThatHasSteps) {
  SpaceBuilder space;
  const auto source = [&] {
    absl::StatusOr<std::vector<StepEvent>> found = FindXSpaceSteps(space.Reader());
    EXPECT_OK(found);
    return found->empty() ? std::string("none") : SourceName(found->front().source);
  };
  space.AddHostEvent(1, "unmarked", 0, 1, {});
  EXPECT_EQ(source(), "none");
  space.AddHostEvent(1, "CommonPjRtLoadedExecutable::Execute (jit_f)", 100, 50, {{"run_id", 3}});
  EXPECT_EQ(source(), "host module");
  space.AddEvent("/device:TPU:0", 1, "XLA Modules", "jit_f(77)", 100, 50, {{"run_id", 6}});
  EXPECT_EQ(source(), "device module");
  space.AddEvent("/device:TPU:0", 2, "Steps", "12", 100, 50);
  EXPECT_EQ(source(), "steps line");
  space.AddHostEvent(1, "train", 100, 90, {{"step_num", 0}});
  EXPECT_EQ(source(), "annotation");
}

TEST(StepEventsTest, ModuleRunsOfASyntheticRun) {
  SyntheticRunOptions options;
  options.steps = 2;
  const std::string bytes = SyntheticRun(options)[0].SerializeAsString();
  ASSERT_OK_AND_ASSIGN(const XSpaceReader reader, XSpaceReader::FromBytes(bytes, "rank0.pb"));
  ASSERT_OK_AND_ASSIGN(const std::vector<StepEvent> found, FindXSpaceSteps(reader));
  // Rank 0's session begins 2 * 1.5 ms (the sessions' spread) + 20 ms before the first step, whose
  // Execute call lasts the 20 us before it; the second step is 1 ms later.
  EXPECT_THAT(Texts(found), ElementsAre("host module: 1000 jit_step 22980000000..23000000000",
                                        "host module: 1001 jit_step 23980000000..24000000000"));
}

struct RealSteps {
  const char* path;
  size_t count;
  // As Texts writes it.
  const char* first;
  const char* last;
};

// Read from the files with a few lines of Python.
TEST(StepEventsTest, StepsOfRealXSpaces) {
  const std::optional<std::string> shared = SharedDataDirectory();
  if (!shared.has_value()) GTEST_SKIP() << kSharedDataMissing;
  constexpr RealSteps kFiles[] = {
      {"/traces/jax_cuda2/rank0.xplane.pb", 8, "annotation: 0 train 21185756000..62011287000",
       "annotation: 7 train 296036883000..333276433000"},
      {"/traces/jax_tp_cuda4/rank0.xplane.pb", 6, "annotation: 0 train 23316810000..51756287000",
       "annotation: 5 train 168442353000..195697720000"},
      {"/traces/jax_cpu4/rank0.xplane.pb", 8, "annotation: 0 train 243749050000..321111280000",
       "annotation: 7 train 829125561000..905846645000"},
      // The profiler of that time wrote derived Steps lines, for two of the eight GPUs.
      {"/samples/xplane/tf_gpu_multi_worker_demo.xplane.pb", 2,
       "steps line: 0 0 1921299828000..1941165319000",
       "steps line: 0 0 2568855601000..2590165953000"},
      {"/samples/xplane/tpu_inference_2.xplane.pb", 105,
       "device module: 1 jit_convert_element_type 5353251593250..5353252554578",
       "device module: 105 jit_f 97159472462000..97916094777250"},
  };
  for (const RealSteps& expected : kFiles) {
    SCOPED_TRACE(expected.path);
    ASSERT_OK_AND_ASSIGN(const XSpaceReader reader,
                         XSpaceReader::Open(FileSystem::Posix(), *shared + expected.path));
    ASSERT_OK_AND_ASSIGN(const std::vector<StepEvent> found, FindXSpaceSteps(reader));
    ASSERT_EQ(found.size(), expected.count);
    EXPECT_EQ(Texts(found).front(), expected.first);
    EXPECT_EQ(Texts(found).back(), expected.last);
  }
}

// The sweeps mark no steps; each of their 2,400 executions has a run_id of its own.
TEST(StepEventsTest, ModuleRunsOfRealSweeps) {
  const std::optional<std::string> shared = SharedDataDirectory();
  if (!shared.has_value()) GTEST_SKIP() << kSharedDataMissing;
  for (const char* path :
       {"/traces/sweep_cuda2/rank0.xplane.pb.gz", "/traces/sweep_cpu4/rank0.xplane.pb.gz"}) {
    SCOPED_TRACE(path);
    ASSERT_OK_AND_ASSIGN(const XSpaceReader reader,
                         XSpaceReader::Open(FileSystem::Posix(), *shared + path));
    ASSERT_OK_AND_ASSIGN(const std::vector<StepEvent> found, FindXSpaceSteps(reader));
    ASSERT_EQ(found.size(), 2400);
    int64_t previous_end_ps = 0;
    for (const StepEvent& step : found) {
      ASSERT_EQ(step.source, StepSource::kHostModule);
      ASSERT_EQ(step.name, "jit__lambda");
      ASSERT_GE(step.start_ps, previous_end_ps);
      previous_end_ps = step.end_ps;
    }
  }
}

}  // namespace
}  // namespace meridian
