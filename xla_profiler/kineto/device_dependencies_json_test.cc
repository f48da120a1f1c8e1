#include "xla_profiler/kineto/device_dependencies_json.h"

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/files/input_file.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/kineto/event_table_json.h"
#include "xla_profiler/testing/dependency_text.h"
#include "xla_profiler/testing/shared_data.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

// Two streams on each of two devices; the record is on (1, 7), the wait on (1, 8).
constexpr char kTwoDevices[] = R"json([
  {"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":9,"tid":9,"ts":1,"dur":1,"args":{"correlation":1}},
  {"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":9,"tid":9,"ts":3,"dur":1,"args":{"correlation":2}},
  {"ph":"X","cat":"cuda_runtime","name":"cudaEventRecord","pid":9,"tid":9,"ts":5,"dur":1,"args":{"correlation":3}},
  {"ph":"X","cat":"cuda_runtime","name":"cudaStreamWaitEvent","pid":9,"tid":9,"ts":7,"dur":1,"args":{"correlation":4}},
  {"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":9,"tid":9,"ts":9,"dur":1,"args":{"correlation":5}},
  {"ph":"X","cat":"cuda_runtime","name":"cudaEventSynchronize","pid":9,"tid":9,"ts":11,"dur":50,"args":{"correlation":6}},
  {"ph":"X","cat":"cuda_runtime","name":"cudaStreamSynchronize","pid":9,"tid":9,"ts":70,"dur":1,"args":{"correlation":7}},
  {"ph":"X","cat":"cuda_runtime","name":"cudaDeviceSynchronize","pid":9,"tid":9,"ts":80,"dur":1,"args":{"correlation":8}},
  {"ph":"X","cat":"kernel","name":"a0","pid":0,"tid":7,"ts":20,"dur":9,"args":{"device":0,"stream":7,"correlation":1}},
  {"ph":"X","cat":"kernel","name":"a1","pid":1,"tid":7,"ts":20,"dur":20,"args":{"device":1,"stream":7,"correlation":2}},
  {"ph":"X","cat":"kernel","name":"b1","pid":1,"tid":8,"ts":40,"dur":5,"args":{"device":1,"stream":8,"correlation":5}},
  {"ph":"X","cat":"cuda_sync","name":"Stream Wait Event","pid":1,"tid":8,"ts":7,"dur":1,"args":{
    "device":1,"stream":8,"correlation":4,"wait_on_stream":7,"wait_on_cuda_event_record_corr_id":3,"wait_on_cuda_event_id":2}},
  {"ph":"X","cat":"cuda_sync","name":"Event Sync","pid":1,"tid":-1,"ts":12,"dur":1,"args":{
    "device":1,"stream":-1,"correlation":6,"wait_on_stream":7,"wait_on_cuda_event_record_corr_id":3,"wait_on_cuda_event_id":2}},
  {"ph":"X","cat":"cuda_sync","name":"Stream Sync","pid":1,"tid":1000008,"ts":70,"dur":1,"args":{
    "device":1,"stream":8,"correlation":7}},
  {"ph":"X","cat":"cuda_sync","name":"Context Sync","pid":1,"tid":-1,"ts":80,"dur":1,"args":{
    "device":1,"stream":4294967295,"correlation":8}},
  {"ph":"X","cat":"cuda_sync","name":"Something New","pid":1,"tid":-1,"ts":80,"dur":1,"args":{
    "device":1,"stream":8,"correlation":8}}
])json";

TEST(DeviceDependenciesJsonTest, ReadsWhatKinetoTellsAboutSynchronisation) {
  ASSERT_OK_AND_ASSIGN(const TraceJsonTable loaded, LoadTraceJson(kTwoDevices, "test.json"));
  const EventTable& table = loaded.table;
  const DeviceDependencies found = FindTraceJsonDependencies(kTwoDevices, table);
  EXPECT_THAT(EdgeTexts(table, found, DeviceDependencyKind::kEventWait),
              ElementsAre("event wait: a1 -> b1"));
  EXPECT_THAT(EdgeTexts(table, found, DeviceDependencyKind::kEventSync),
              ElementsAre("event sync: a1 -> cudaEventSynchronize"));
  EXPECT_THAT(EdgeTexts(table, found, DeviceDependencyKind::kStreamSync),
              ElementsAre("stream sync: b1 -> cudaStreamSynchronize"));
  EXPECT_THAT(EdgeTexts(table, found, DeviceDependencyKind::kDeviceSync),
              ElementsAre("device sync: a1 -> cudaDeviceSynchronize",
                          "device sync: b1 -> cudaDeviceSynchronize"));
  EXPECT_THAT(EdgeTexts(table, found, DeviceDependencyKind::kStreamOrder), IsEmpty());
}

TEST(DeviceDependenciesJsonTest, CallsThatKinetoDoesNotDescribeTellLittle) {
  constexpr char kText[] = R"json([
    {"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":9,"tid":9,"ts":1,"dur":1,"args":{"correlation":1}},
    {"ph":"X","cat":"kernel","name":"a","pid":0,"tid":7,"ts":3,"dur":1,"args":{"correlation":1}},
    {"ph":"X","cat":"cuda_runtime","name":"cudaStreamWaitEvent","pid":9,"tid":9,"ts":5,"dur":1,"args":{"correlation":2}},
    {"ph":"X","cat":"cuda_runtime","name":"cudaEventQuery","pid":9,"tid":9,"ts":7,"dur":1,"args":{"correlation":3}},
    {"ph":"X","cat":"cuda_runtime","name":"cudaStreamSynchronize","pid":9,"tid":9,"ts":9,"dur":1,"args":{"correlation":4}},
    {"ph":"X","cat":"hip_runtime","name":"hipStreamSynchronize","pid":9,"tid":9,"ts":11,"dur":1,"args":{"stream":"0x7f00"}},
    {"ph":"X","cat":"hip_runtime","name":"hipStreamSynchronize","pid":9,"tid":9,"ts":13,"dur":1,"args":{"stream":"7"}},
    {"ph":"X","cat":"cuda_runtime","name":"cudaDeviceSynchronize","pid":9,"tid":9,"ts":15,"dur":1},
    {"ph":"X","cat":"cuda_sync","name":"Event Sync","pid":0,"tid":-1,"ts":17,"dur":1,"args":{
      "device":0,"stream":-1,"correlation":99,"wait_on_stream":7,"wait_on_cuda_event_record_corr_id":1}},
    {"ph":"X","cat":"cuda_sync","name":"Event Sync","pid":0,"tid":-1,"ts":7,"dur":1,"args":{
      "device":0,"stream":-1,"correlation":3,"wait_on_stream":-1,"wait_on_cuda_event_record_corr_id":-1}}
  ])json";
  ASSERT_OK_AND_ASSIGN(const TraceJsonTable loaded, LoadTraceJson(kText, "test.json"));
  const DeviceDependencies found = FindTraceJsonDependencies(kText, loaded.table);
  EXPECT_THAT(EdgeTexts(loaded.table, found, DeviceDependencyKind::kStreamSync),
              ElementsAre("stream sync: a -> hipStreamSynchronize"));
  EXPECT_THAT(EdgeTexts(loaded.table, found, DeviceDependencyKind::kDeviceSync),
              ElementsAre("device sync: a -> cudaDeviceSynchronize"));
}

struct RealTrace {
  InputFile file;
  TraceJsonTable loaded;
  DeviceDependencies found;
};

absl::StatusOr<RealTrace> ReadRealTrace(const std::string& path) {
  ASSIGN_OR_RETURN(InputFile file, InputFile::Open(FileSystem::Posix(), path));
  ASSIGN_OR_RETURN(TraceJsonTable loaded, LoadTraceJson(file.bytes(), file.path()));
  DeviceDependencies found = FindTraceJsonDependencies(file.bytes(), loaded.table);
  return RealTrace{std::move(file), std::move(loaded), std::move(found)};
}

// "from -> to" of the edges of that kind, rows by correlation id.
std::vector<std::string> Correlations(const RealTrace& trace, DeviceDependencyKind kind) {
  std::vector<std::string> texts;
  for (const DeviceDependency& edge : trace.found.edges) {
    if (edge.kind != kind) continue;
    texts.push_back(absl::StrCat(*trace.loaded.table.correlation(edge.from), " -> ",
                                 *trace.loaded.table.correlation(edge.to)));
  }
  return texts;
}

// Holistic Trace Analysis finds the same synchronisation edges in this sample of its tests.
TEST(DeviceDependenciesJsonTest, EventSyncsOfARealTrace) {
  const std::optional<std::string> shared = SharedDataDirectory();
  if (!shared.has_value()) GTEST_SKIP() << kSharedDataMissing;
  ASSERT_OK_AND_ASSIGN(
      const RealTrace trace,
      ReadRealTrace(*shared +
                    "/samples/kineto/critical_path/cuda_event_sync/event_sync_trace.json.gz"));
  EXPECT_THAT(Correlations(trace, DeviceDependencyKind::kEventSync),
              ElementsAre("1526 -> 1536", "1526 -> 1537"));
  EXPECT_THAT(Correlations(trace, DeviceDependencyKind::kStreamSync), ElementsAre("1511 -> 1512"));
  EXPECT_THAT(Correlations(trace, DeviceDependencyKind::kDeviceSync), ElementsAre("1526 -> 1549"));
  // The copy, from the device to pageable memory, is over 9 us before cudaMemcpyAsync returns.
  EXPECT_THAT(Correlations(trace, DeviceDependencyKind::kBlockingCopy),
              ElementsAre("1511 -> 1511"));
  EXPECT_THAT(EdgeCounts(trace.found),
              ElementsAre("launch: 5", "stream order: 4", "event sync: 2", "stream sync: 1",
                          "device sync: 1", "blocking copy: 1"));
}

// As above, with waits between streams 7 and 20.
TEST(DeviceDependenciesJsonTest, EventWaitsOfARealTrace) {
  const std::optional<std::string> shared = SharedDataDirectory();
  if (!shared.has_value()) GTEST_SKIP() << kSharedDataMissing;
  ASSERT_OK_AND_ASSIGN(
      const RealTrace trace,
      ReadRealTrace(*shared + "/samples/kineto/critical_path/alexnet/"
                              "benchmark_result_2869224_1695835535_trace.json.gz"));
  EXPECT_THAT(Correlations(trace, DeviceDependencyKind::kEventWait),
              ElementsAre("5144 -> 5181", "5178 -> 5188", "5190 -> 5213", "5560 -> 5597",
                          "5594 -> 5604", "5606 -> 5629"));
  EXPECT_THAT(
      Correlations(trace, DeviceDependencyKind::kDeviceSync),
      ElementsAre("218 -> 225", "5190 -> 5503", "5498 -> 5503", "5606 -> 5894", "5889 -> 5894"));
  // Calls 5511 and 5909 find nothing new. 98 pieces of work on two streams. The other 14 of 20
  // waits are for streams without work, and 14 calls of cudaStreamWaitEvent are not described.
  EXPECT_THAT(EdgeCounts(trace.found),
              ElementsAre("launch: 98", "stream order: 96", "event wait: 6", "stream sync: 16",
                          "device sync: 5"));
}

// This trace tells the events' ids, but nothing of their records.
TEST(DeviceDependenciesJsonTest, WaitsWithoutRecordsAreCounted) {
  const std::optional<std::string> shared = SharedDataDirectory();
  if (!shared.has_value()) GTEST_SKIP() << kSharedDataMissing;
  ASSERT_OK_AND_ASSIGN(const RealTrace trace,
                       ReadRealTrace(*shared + "/samples/kineto/critical_path/simple_add/"
                                               "benchmark_result_493459_1694039959_trace.json.gz"));
  EXPECT_THAT(EdgeCounts(trace.found),
              ElementsAre("launch: 98", "stream order: 96", "event wait: 1", "stream sync: 16",
                          "device sync: 5"));
}

// Kineto wrote no cuda_sync events, and the profile begins with work in flight.
TEST(DeviceDependenciesJsonTest, DependenciesOfARealTraceWithoutCudaSync) {
  const std::optional<std::string> shared = SharedDataDirectory();
  if (!shared.has_value()) GTEST_SKIP() << kSharedDataMissing;
  ASSERT_OK_AND_ASSIGN(const RealTrace trace,
                       ReadRealTrace(*shared + "/traces/torch_nccl4/kineto_0.json.gz"));
  EXPECT_EQ(trace.found.num_work, 337);
  EXPECT_THAT(EdgeCounts(trace.found),
              ElementsAre("launch: 238", "stream order: 335", "event wait: 2", "event sync: 4",
                          "device sync: 2", "inferred wait: 3"));
}

TEST(DeviceDependenciesJsonTest, EdgesOfAllRealTracesAreInOrderAndRunForward) {
  const std::optional<std::string> shared = SharedDataDirectory();
  if (!shared.has_value()) GTEST_SKIP() << kSharedDataMissing;
  int traces = 0;
  for (const char* folder : {"/samples/kineto", "/traces/torch_nccl4"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(*shared + folder)) {
      const std::string path = entry.path().string();
      if (!absl::EndsWith(path, ".json.gz")) continue;
      if (absl::StrContains(path, "/et_") || absl::EndsWith(path, "_et.json.gz")) continue;
      SCOPED_TRACE(path);
      ASSERT_OK_AND_ASSIGN(const RealTrace trace, ReadRealTrace(path));
      EXPECT_FALSE(trace.found.edges.empty());
      EXPECT_EQ(FindBadEdge(trace.loaded.table, trace.found), "");
      ++traces;
    }
  }
  EXPECT_GE(traces, 18);
}

}  // namespace
}  // namespace meridian
