// What is shown beside a profile, and what of it: rows before the profile's, arrows to its kernels.
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "third_party/perfetto/perfetto_trace.pb.h"
#include "xla_profiler/base/files/byte_sink.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/testing/xplane_builder.h"
#include "xla_profiler/trace_export/trace_export.h"
#include "xla_profiler/xplane/combined_profile.h"
#include "xla_profiler/xplane/xspace_reader.h"

namespace meridian {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

constexpr int64_t kSessionStartNs = 1794701451406144825;

XEventBuilder AddSpan(absl::string_view name, int64_t offset_ps, int64_t duration_ps,
                      XPlaneBuilder& plane, XLineBuilder& line) {
  XEventBuilder event = line.AddEvent(*plane.GetOrCreateEventMetadata(name));
  event.SetOffsetPs(offset_ps);
  event.SetDurationPs(duration_ps);
  return event;
}

void AddInt(absl::string_view name, int64_t value, XPlaneBuilder& plane, XEventBuilder& event) {
  event.AddStatValue(*plane.GetOrCreateStatMetadata(name), value);
}

// The devices of nodes 2 and 3 with a kernel each, caused by call 7 of either; Kineto says that one
// is a kernel.
XSpaceProto TwoNodes() {
  XSpaceProto space;
  for (int64_t node = 2; node <= 3; ++node) {
    XPlaneBuilder gpu(space.add_planes());
    gpu.SetName(absl::StrCat("/device:GPU:", node - 2));
    gpu.AddStatValue(*gpu.GetOrCreateStatMetadata(kNodeIdStatName), node);
    gpu.AddStatValue(*gpu.GetOrCreateStatMetadata(kOriginalPlaneNameStatName), "/device:GPU:0");
    XLineBuilder line = gpu.GetOrCreateLine(1);
    line.SetName("stream 7");
    XEventBuilder kernel = AddSpan("nccl", 1000 * node, 5000, gpu, line);
    AddInt("correlation_id", 7, gpu, kernel);
    if (node == 3) continue;
    const XStatMetadataProto* category = gpu.GetOrCreateStatMetadata(StatType::kKinetoCategory);
    kernel.AddStatValue(*category, *gpu.GetOrCreateStatMetadata("gpu_memcpy"));
  }
  return space;
}

// A collective of three ranks, the last of which has no kernel; and a counter of a unit.
XSpaceProto FoundOut() {
  XSpaceProto space;
  XPlaneBuilder plane(space.add_planes());
  plane.SetName("Collectives");
  const absl::string_view phases[] = {kArrowStartStat, kArrowStepStat, kArrowEndStat};
  for (int64_t rank = 0; rank < 3; ++rank) {
    XLineBuilder line = plane.GetOrCreateLine(rank);
    line.SetName(absl::StrCat("rank ", rank));
    XEventBuilder event = AddSpan("all-reduce", 2000 + 1000 * rank, 5000, plane, line);
    AddInt(phases[rank], 1, plane, event);
    AddInt(kArrowNodeStat, rank + 2, plane, event);
    AddInt("correlation_id", 7, plane, event);
  }
  XPlaneBuilder clocks(space.add_planes());
  clocks.SetName("Clock offsets");
  XLineBuilder counters = clocks.GetOrCreateLine(1);
  counters.SetName("_counters_");
  XEventBuilder reading = AddSpan("node 2", 0, 0, clocks, counters);
  AddInt("ns", -5, clocks, reading);
  return space;
}

using ExportTo = absl::StatusOr<ExportStats> (*)(const XSpaceReader&, const ExportOptions&,
                                                 ByteSink&);

std::string ExportBoth(ExportTo export_to) {
  const std::string bytes = TwoNodes().SerializeAsString(), more = FoundOut().SerializeAsString();
  const absl::StatusOr<XSpaceReader> reader = XSpaceReader::FromBytes(bytes, "test.pb");
  const absl::StatusOr<XSpaceReader> additions = XSpaceReader::FromBytes(more, "more");
  EXPECT_TRUE(reader.ok() && additions.ok());
  ExportOptions options;
  options.profile_start_ns = kSessionStartNs;
  options.additions = &*additions;
  options.ranks = {{{2, "/device:GPU:0"}, 0}, {{3, "/device:GPU:0"}, 1}};
  options.clock_readings = {{kSessionStartNs + 5, {{0, kSessionStartNs + 5}, {3, 1005}}}};
  std::string text;
  StringSink sink(&text);
  EXPECT_OK(export_to(*reader, options, sink).status());
  return text;
}

TEST(AdditionsTest, ComeFirstInJsonWithArrowsThroughTheRanksAndFromTheLaunch) {
  const std::string text = ExportBoth(ExportTraceJson);
  std::vector<std::string> processes, arrows;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::vector<std::string> parts = absl::StrSplit(line, '"');
    if (absl::StrContains(line, "process_name")) processes.push_back(parts[parts.size() - 2]);
    for (const absl::string_view phase : {"s", "t", "f"}) {
      if (!absl::StrContains(line, absl::StrCat("{\"ph\":\"", phase, "\""))) continue;
      arrows.push_back(std::string(line.substr(line.find("\"ts\""))));
    }
  }
  EXPECT_THAT(processes,
              ElementsAre("Clock offsets", "Collectives", "Node 2: /device:GPU:0 (rank 0)",
                          "Node 3: /device:GPU:0 (rank 1)"));
  // Arrows of the additions are those of place 0; nodes 2 and 3 have places 1 and 2.
  constexpr char kCollective[] = R"("name":"collective","cat":"collective","id":1)";
  const std::string at2 = R"("name":"launch","cat":"launch","id":4294967303,"bp":"e"},)";
  const std::string at3 = R"("name":"launch","cat":"launch","id":8589934599,"bp":"e"})";
  EXPECT_THAT(arrows, ElementsAre(absl::StrCat(R"("ts":0.002,)", kCollective, "},"),
                                  absl::StrCat(R"("ts":0.002,)", at2),
                                  absl::StrCat(R"("ts":0.003,)", kCollective, "},"),
                                  absl::StrCat(R"("ts":0.003,)", at3, ","),
                                  absl::StrCat(R"("ts":0.004,)", kCollective, R"(,"bp":"e"},)"),
                                  absl::StrCat(R"("ts":0.002,)", at2),
                                  absl::StrCat(R"("ts":0.003,)", at3)));
  EXPECT_THAT(text, AllOf(HasSubstr(R"("cat":"gpu_memcpy")"),
                          HasSubstr(R"("name":"all-reduce","cat":"collective")"),
                          HasSubstr(R"("args":{"ns":-5})"), Not(HasSubstr("arrow_")),
                          Not(HasSubstr("kineto_category")),
                          HasSubstr(R"("args":{"node_id":2,"correlation_id":7})")));
}

TEST(AdditionsTest, ComeFirstInPerfettoWithArrowsToTheKernels) {
  perfetto::protos::Trace trace;
  ASSERT_TRUE(trace.ParseFromString(ExportBoth(ExportPerfetto)));
  std::map<uint64_t, std::string> names;
  std::map<int32_t, std::string> processes;
  std::set<std::string> categories;
  std::map<uint64_t, std::vector<std::string>> flows;
  std::vector<std::string> clocks;
  for (const auto& packet : trace.packet()) {
    const auto& descriptor = packet.track_descriptor();
    if (packet.has_track_descriptor()) {
      EXPECT_TRUE(names.insert({descriptor.uuid(), ""}).second);
      names[descriptor.uuid()] = descriptor.thread().thread_name();
    }
    if (descriptor.has_process()) {
      processes[descriptor.sibling_order_rank()] = descriptor.process().process_name();
    }
    if (descriptor.has_counter()) {
      EXPECT_EQ(descriptor.counter().unit(), perfetto::protos::CounterDescriptor::UNIT_TIME_NS);
    }
    for (const auto& category : packet.interned_data().event_categories()) {
      categories.insert(category.name());
    }
    for (const uint64_t flow : packet.track_event().flow_ids()) {
      flows[flow].push_back(names[packet.track_event().track_uuid()]);
    }
    for (const auto& clock : packet.clock_snapshot().clocks()) {
      clocks.push_back(absl::StrCat(clock.clock_id()));
    }
  }
  std::vector<std::string> in_order;
  for (const auto& [position, name] : processes) in_order.push_back(name);
  EXPECT_THAT(in_order,
              ElementsAre("Clock offsets", "Collectives", "Node 2: /device:GPU:0 (rank 0)",
                          "Node 3: /device:GPU:0 (rank 1)"));
  ASSERT_THAT(flows, SizeIs(3));
  EXPECT_THAT(flows[1], ElementsAre("rank 0", "rank 1", "rank 2"));
  EXPECT_THAT(flows[(uint64_t{1} << 32) + 7], ElementsAre("rank 0", "stream 7"));
  EXPECT_THAT(flows[(uint64_t{2} << 32) + 7], ElementsAre("rank 1", "stream 7"));
  EXPECT_EQ(categories.count("gpu_memcpy"), 1u);
  EXPECT_THAT(clocks, ElementsAre("1", "6", "6", "128", "131"));
}

}  // namespace
}  // namespace meridian
