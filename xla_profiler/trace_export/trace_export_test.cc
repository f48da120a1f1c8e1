#include "xla_profiler/trace_export/trace_export.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "simdjson.h"
#include "third_party/perfetto/perfetto_trace.pb.h"
#include "xla_profiler/base/files/byte_sink.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/testing/damage.h"
#include "xla_profiler/testing/shared_data.h"
#include "xla_profiler/testing/xplane_builder.h"
#include "xla_profiler/xplane/combined_profile.h"
#include "xla_profiler/xplane/xspace_reader.h"

namespace meridian {
namespace {

namespace pp = ::perfetto::protos;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr int64_t kStartNs = 1794701451406144825;

void AddSessionStart(XSpaceProto* space) {
  XPlaneBuilder plane(space->add_planes());
  plane.SetName(kTaskEnvPlaneName);
  plane.AddStatValue(*plane.GetOrCreateStatMetadata(StatType::kProfileStartTime),
                     static_cast<uint64_t>(kStartNs));
}

XEventBuilder AddEvent(absl::string_view name, int64_t offset_ps, int64_t duration_ps,
                       XPlaneBuilder& plane, XLineBuilder line) {
  XEventBuilder event = line.AddEvent(*plane.GetOrCreateEventMetadata(name));
  event.SetOffsetPs(offset_ps);
  event.SetDurationPs(duration_ps);
  return event;
}

XEventBuilder AddCorrelated(absl::string_view name, int64_t offset_ps, int64_t duration_ps,
                            uint64_t correlation, XPlaneBuilder& plane, XLineBuilder line) {
  XEventBuilder event = AddEvent(name, offset_ps, duration_ps, plane, line);
  event.AddStatValue(*plane.GetOrCreateStatMetadata(StatType::kCorrelationId), correlation);
  return event;
}

XLineBuilder AddLine(int64_t id, absl::string_view name, int64_t timestamp_ns,
                     XPlaneBuilder& plane) {
  XLineBuilder line = plane.GetOrCreateLine(id);
  line.SetName(name);
  line.SetTimestampNs(timestamp_ns);
  return line;
}

// A launch on the host and its two kernels, of which the second begins before the first has ended.
XSpaceProto LaunchAndKernels() {
  XSpaceProto space;
  {
    XPlaneBuilder gpu(space.add_planes());
    gpu.SetName("/device:GPU:0");
    XLineBuilder stream = AddLine(14, "Stream #14(Compute)", 1000, gpu);
    XEventBuilder kernel = AddCorrelated("fusion", 500, 2000000, 7, gpu, stream);
    // In this order, which decides the ids; that of arguments is the compiler's choice.
    const XStatMetadataProto* hlo_op = gpu.GetOrCreateStatMetadata(StatType::kHloOp);
    kernel.AddStatValue(*hlo_op, *gpu.GetOrCreateStatMetadata("add.1"));
    kernel.AddBytesValue(*gpu.GetOrCreateStatMetadata("blob"), "\xFF\xFE");
    AddCorrelated("nccl", 1000500, 3000001, 7, gpu, stream);
    AddEvent("fusion", 2000500, 1, gpu, stream).SetNumOccurrences(12);
  }
  {
    XPlaneBuilder host(space.add_planes());
    host.SetName(kHostThreadsPlaneName);
    XLineBuilder python = AddLine(-1, "python3", 0, host);
    XEventMetadataProto* launch = host.GetOrCreateEventMetadata("%fusion = f32[] fusion(...)");
    launch->set_display_name("fusion");
    XStatsBuilder<XEventMetadataProto>(launch, &host)
        .AddStatValue(*host.GetOrCreateStatMetadata("flops"), 2.5);
    XEventBuilder outer = AddEvent("$train.py:7 step \"x\"", 0, 900000, host, python);
    outer.AddStatValue(*host.GetOrCreateStatMetadata(StatType::kStepNum), int64_t{-3});
    XEventBuilder event = python.AddEvent(*launch);
    event.SetOffsetPs(400000);
    event.AddStatValue(*host.GetOrCreateStatMetadata(StatType::kCorrelationId), uint64_t{7});
    event.AddStatValue(*host.GetOrCreateStatMetadata(StatType::kProgramId),
                       uint64_t{18446744073709551615u});
  }
  AddSessionStart(&space);
  return space;
}

struct Exported {
  std::string text;
  ExportStats stats;
};

using Export = absl::StatusOr<ExportStats> (*)(const XSpaceReader&, const ExportOptions&,
                                               ByteSink&);

absl::StatusOr<Exported> RunExport(Export run, const XSpaceReader& reader,
                                   const ExportOptions& options = {}) {
  Exported exported;
  StringSink sink(&exported.text);
  absl::StatusOr<ExportStats> stats = run(reader, options, sink);
  if (!stats.ok()) return stats.status();
  exported.stats = *stats;
  return exported;
}

// Metadata in order of their ids, else in an order that changes from run to run.
std::string Serialize(const XSpaceProto& space) {
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream output(&stream);
  output.SetSerializationDeterministic(true);
  EXPECT_TRUE(space.SerializeToCodedStream(&output));
  output.Trim();
  return bytes;
}

absl::StatusOr<Exported> RunExport(Export run, const XSpaceProto& space,
                                   const ExportOptions& options = {}) {
  const std::string bytes = Serialize(space);
  absl::StatusOr<XSpaceReader> reader = XSpaceReader::FromBytes(bytes, "test.pb");
  if (!reader.ok()) return reader.status();
  return RunExport(run, *reader, options);
}

TEST(TraceExportTest, WritesAWholeJsonDocument) {
  ASSERT_OK_AND_ASSIGN(const Exported json, RunExport(ExportTraceJson, LaunchAndKernels()));
  EXPECT_EQ(
      json.text,
      R"json({"displayTimeUnit":"ns","metadata":{"highres-ticks":true},"baseTimeNanoseconds":1794701451406144825,"traceEvents":[
{"ph":"M","pid":1,"tid":0,"name":"process_name","args":{"name":"/host:CPU"}},
{"ph":"M","pid":1,"tid":0,"name":"process_sort_index","args":{"sort_index":0}},
{"ph":"M","pid":2,"tid":0,"name":"process_name","args":{"name":"/device:GPU:0"}},
{"ph":"M","pid":2,"tid":0,"name":"process_sort_index","args":{"sort_index":1}},
{"ph":"M","pid":2,"tid":4,"name":"thread_name","args":{"name":"Stream #14(Compute)"}},
{"ph":"M","pid":2,"tid":4,"name":"thread_sort_index","args":{"sort_index":0}},
{"ph":"M","pid":1,"tid":3,"name":"thread_name","args":{"name":"python3"}},
{"ph":"M","pid":1,"tid":3,"name":"thread_sort_index","args":{"sort_index":0}},
{"ph":"X","pid":2,"tid":4,"ts":1,"name":"fusion","cat":"kernel","dur":2,"args":{"correlation_id":7,"hlo_op":"add.1"}},
{"ph":"f","pid":2,"tid":4,"ts":1,"name":"launch","cat":"launch","id":7,"bp":"e"},
{"ph":"M","pid":2,"tid":5,"name":"thread_name","args":{"name":"Stream #14(Compute) (2)"}},
{"ph":"M","pid":2,"tid":5,"name":"thread_sort_index","args":{"sort_index":0}},
{"ph":"X","pid":2,"tid":5,"ts":2,"name":"nccl","cat":"kernel","dur":3,"args":{"correlation_id":7}},
{"ph":"f","pid":2,"tid":5,"ts":2,"name":"launch","cat":"launch","id":7,"bp":"e"},
{"ph":"X","pid":1,"tid":3,"ts":0,"name":"$train.py:7 step \"x\"","cat":"step","dur":0.9,"args":{"step_num":-3}},
{"ph":"X","pid":1,"tid":3,"ts":0.4,"name":"fusion","cat":"annotation","dur":0,"args":{"long_name":"%fusion = f32[] fusion(...)","flops":2.5,"correlation_id":7,"program_id":"18446744073709551615"}},
{"ph":"s","pid":1,"tid":3,"ts":0.4,"name":"launch","cat":"launch","id":7}
]}
)json");
  EXPECT_EQ(json.stats.slices, 4);
  EXPECT_EQ(json.stats.left_out, 1);
}

TEST(TraceExportTest, WritesAWholePerfettoTrace) {
  ASSERT_OK_AND_ASSIGN(const Exported perfetto, RunExport(ExportPerfetto, LaunchAndKernels()));
  pp::Trace trace;
  ASSERT_TRUE(trace.ParseFromString(perfetto.text));
  std::string text;
  ASSERT_TRUE(google::protobuf::TextFormat::PrintToString(trace, &text));
  // Times are those of the JSON, on kStartNs and rounded down: 0.4 us is ...145225, 1.0005 us
  // ...145825, 2.0005 us ...146825, the ends 3.0005 us and 5.000501 us ...147825 and ...149825.
  pp::Trace expected;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
      R"pb(
        packet {
          clock_snapshot {
            clocks { clock_id: 1 timestamp: 1794701451406144825 }
            clocks { clock_id: 6 timestamp: 1794701451406144825 }
          }
        }
        packet {
          track_descriptor {
            uuid: 0
            process_ordering: PROCESS_ORDERING_EXPLICIT
            thread_ordering: THREAD_ORDERING_EXPLICIT
          }
        }
        packet {
          track_descriptor {
            uuid: 1
            process { pid: 1 process_name: "/host:CPU" }
            sibling_order_rank: 0
          }
        }
        packet {
          track_descriptor {
            uuid: 2
            process { pid: 2 process_name: "/device:GPU:0" }
            sibling_order_rank: 1
          }
        }
        packet {
          track_descriptor {
            uuid: 4
            thread { pid: 2 tid: 4 thread_name: "Stream #14(Compute)" }
            parent_uuid: 2
            sibling_order_rank: 0
          }
        }
        packet {
          track_descriptor {
            uuid: 3
            thread { pid: 1 tid: 3 thread_name: "python3" }
            parent_uuid: 1
            sibling_order_rank: 0
          }
        }
        packet { trusted_packet_sequence_id: 1 sequence_flags: 1 first_packet_on_sequence: true }
        packet {
          timestamp: 1794701451406145825
          trusted_packet_sequence_id: 1
          sequence_flags: 2
          interned_data {
            event_categories { iid: 1 name: "kernel" }
            event_names { iid: 1 name: "fusion" }
            debug_annotation_names { iid: 1 name: "correlation_id" }
            debug_annotation_names { iid: 2 name: "hlo_op" }
            debug_annotation_string_values { iid: 1 str: "add.1" }
          }
          track_event {
            type: TYPE_SLICE_BEGIN
            track_uuid: 4
            name_iid: 1
            category_iids: 1
            flow_ids: 7
            debug_annotations { name_iid: 1 uint_value: 7 }
            debug_annotations { name_iid: 2 string_value_iid: 1 }
          }
        }
        packet {
          track_descriptor {
            uuid: 5
            name: "Stream #14(Compute) (2)"
            parent_uuid: 4
            sibling_merge_behavior: SIBLING_MERGE_BEHAVIOR_NONE
          }
        }
        packet {
          timestamp: 1794701451406146825
          trusted_packet_sequence_id: 1
          sequence_flags: 2
          interned_data { event_names { iid: 2 name: "nccl" } }
          track_event {
            type: TYPE_SLICE_BEGIN
            track_uuid: 5
            name_iid: 2
            category_iids: 1
            flow_ids: 7
            debug_annotations { name_iid: 1 uint_value: 7 }
          }
        }
        packet {
          timestamp: 1794701451406147825
          trusted_packet_sequence_id: 1
          track_event { type: TYPE_SLICE_END track_uuid: 4 }
        }
        packet {
          timestamp: 1794701451406149825
          trusted_packet_sequence_id: 1
          track_event { type: TYPE_SLICE_END track_uuid: 5 }
        }
        packet { trusted_packet_sequence_id: 2 sequence_flags: 1 first_packet_on_sequence: true }
        packet {
          timestamp: 1794701451406144825
          trusted_packet_sequence_id: 2
          sequence_flags: 2
          interned_data {
            event_categories { iid: 1 name: "step" }
            event_names { iid: 2 name: "$train.py:7 step \"x\"" }
            debug_annotation_names { iid: 2 name: "step_num" }
          }
          track_event {
            type: TYPE_SLICE_BEGIN
            track_uuid: 3
            name_iid: 2
            category_iids: 1
            debug_annotations { name_iid: 2 int_value: -3 }
          }
        }
        packet {
          timestamp: 1794701451406145225
          trusted_packet_sequence_id: 2
          sequence_flags: 2
          interned_data {
            event_categories { iid: 2 name: "annotation" }
            event_names { iid: 1 name: "fusion" }
            debug_annotation_names { iid: 5 name: "long_name" }
            debug_annotation_names { iid: 1 name: "flops" }
            debug_annotation_names { iid: 3 name: "correlation_id" }
            debug_annotation_names { iid: 4 name: "program_id" }
            debug_annotation_string_values { iid: 1 str: "%fusion = f32[] fusion(...)" }
          }
          track_event {
            type: TYPE_INSTANT
            track_uuid: 3
            name_iid: 1
            category_iids: 2
            flow_ids: 7
            debug_annotations { name_iid: 5 string_value_iid: 1 }
            debug_annotations { name_iid: 1 double_value: 2.5 }
            debug_annotations { name_iid: 3 uint_value: 7 }
            debug_annotations { name_iid: 4 uint_value: 18446744073709551615 }
          }
        }
        packet {
          timestamp: 1794701451406145725
          trusted_packet_sequence_id: 2
          track_event { type: TYPE_SLICE_END track_uuid: 3 }
        }
      )pb",
      &expected));
  std::string expected_text;
  ASSERT_TRUE(google::protobuf::TextFormat::PrintToString(expected, &expected_text));
  EXPECT_EQ(text, expected_text);
  EXPECT_EQ(perfetto.stats.slices, 4);
}

// A Perfetto trace as its reader understands it. Reading checks what a reader relies on: tracks are
// described and texts interned before they are named, slices of a track nest and its times do not
// run backwards, all that begins ends.
class PerfettoTrace {
 public:
  struct Slice {
    std::string process;
    std::string track;
    std::string name;
    uint64_t start_ns = 0;
    uint64_t end_ns = 0;
    std::vector<uint64_t> flows;
    size_t num_args = 0;
  };

  explicit PerfettoTrace(const std::string& bytes) {
    pp::Trace trace;
    EXPECT_TRUE(trace.ParseFromString(bytes));
    for (const pp::TracePacket& packet : trace.packet()) AddPacket(packet);
    for (const auto& [uuid, track] : tracks_) EXPECT_THAT(track.open, IsEmpty());
  }

  // In order of their begins in the file.
  const std::vector<Slice>& slices() const { return slices_; }
  const std::vector<std::string>& processes() const { return process_names_; }

 private:
  struct Track {
    std::string process;
    std::string name;
    bool is_counter = false;
    uint64_t now_ns = 0;
    std::vector<size_t> open;
  };
  struct Sequence {
    std::map<uint64_t, std::string> names, categories, arg_names, values;
  };

  void AddPacket(const pp::TracePacket& packet) {
    if (packet.has_track_descriptor()) AddTrack(packet.track_descriptor());
    if (packet.sequence_flags() & 1) {
      EXPECT_TRUE(packet.first_packet_on_sequence());
      EXPECT_TRUE(sequences_.insert({packet.trusted_packet_sequence_id(), {}}).second);
    }
    if (packet.has_track_event()) AddEvent(packet);
  }

  void AddTrack(const pp::TrackDescriptor& descriptor) {
    if (descriptor.uuid() == 0) return;
    Track track;
    if (descriptor.has_process()) {
      track.process = descriptor.process().process_name();
      process_names_.push_back(track.process);
    } else {
      ASSERT_EQ(tracks_.count(descriptor.parent_uuid()), 1u);
      track.process = tracks_[descriptor.parent_uuid()].process;
      track.name = descriptor.has_thread() ? descriptor.thread().thread_name() : descriptor.name();
      track.is_counter = descriptor.has_counter();
    }
    EXPECT_TRUE(tracks_.insert({descriptor.uuid(), track}).second);
  }

  void AddEvent(const pp::TracePacket& packet) {
    const pp::TrackEvent& event = packet.track_event();
    ASSERT_EQ(sequences_.count(packet.trusted_packet_sequence_id()), 1u);
    Sequence& sequence = sequences_[packet.trusted_packet_sequence_id()];
    Intern(packet.interned_data().event_names(), &sequence.names);
    Intern(packet.interned_data().event_categories(), &sequence.categories);
    Intern(packet.interned_data().debug_annotation_names(), &sequence.arg_names);
    for (const auto& value : packet.interned_data().debug_annotation_string_values()) {
      EXPECT_GT(value.iid(), 0u);
      EXPECT_TRUE(sequence.values.insert({value.iid(), value.str()}).second);
    }
    ASSERT_EQ(tracks_.count(event.track_uuid()), 1u);
    Track& track = tracks_[event.track_uuid()];
    EXPECT_GE(packet.timestamp(), track.now_ns);
    track.now_ns = packet.timestamp();
    EXPECT_EQ(event.type() == pp::TrackEvent::TYPE_COUNTER, track.is_counter);
    if (event.type() == pp::TrackEvent::TYPE_SLICE_END) {
      ASSERT_FALSE(track.open.empty());
      slices_[track.open.back()].end_ns = packet.timestamp();
      track.open.pop_back();
    } else if (event.type() != pp::TrackEvent::TYPE_COUNTER) {
      EXPECT_EQ(packet.sequence_flags(), 2u);
      AddSlice(packet, sequence, track);
    }
  }

  void AddSlice(const pp::TracePacket& packet, const Sequence& sequence, Track& track) {
    const pp::TrackEvent& event = packet.track_event();
    ASSERT_EQ(sequence.names.count(event.name_iid()), 1u);
    for (uint64_t iid : event.category_iids()) EXPECT_EQ(sequence.categories.count(iid), 1u);
    for (const pp::DebugAnnotation& arg : event.debug_annotations()) {
      EXPECT_EQ(sequence.arg_names.count(arg.name_iid()), 1u);
      EXPECT_NE(arg.value_case(), pp::DebugAnnotation::VALUE_NOT_SET);
      if (arg.has_string_value_iid()) {
        EXPECT_EQ(sequence.values.count(arg.string_value_iid()), 1u);
      }
    }
    Slice slice;
    slice.process = track.process;
    slice.track = track.name;
    slice.name = sequence.names.at(event.name_iid());
    slice.start_ns = packet.timestamp();
    slice.end_ns = packet.timestamp();
    slice.flows.assign(event.flow_ids().begin(), event.flow_ids().end());
    slice.num_args = event.debug_annotations_size();
    if (event.type() == pp::TrackEvent::TYPE_SLICE_BEGIN) track.open.push_back(slices_.size());
    slices_.push_back(slice);
  }

  template <typename Entries>
  static void Intern(const Entries& entries, std::map<uint64_t, std::string>* texts) {
    for (const auto& entry : entries) {
      EXPECT_GT(entry.iid(), 0u);
      EXPECT_TRUE(texts->insert({entry.iid(), entry.name()}).second) << entry.name();
    }
  }

  std::map<uint64_t, Track> tracks_;
  std::map<uint32_t, Sequence> sequences_;
  std::vector<Slice> slices_;
  std::vector<std::string> process_names_;
};

// Two nodes whose launches have the same correlation ids; their host lines share a plane.
TEST(TraceExportTest, ArrowsStayWithinTheirNode) {
  XSpaceProto space;
  {
    XPlaneBuilder host(space.add_planes());
    host.SetName(kHostThreadsPlaneName);
    host.AddStatValue(*host.GetOrCreateStatMetadata(kNodeLinesStatName), "3:1-1,8:2-2");
    AddCorrelated("launch A", 0, 10, 5, host, AddLine(1, "Node 3: python3", 1, host));
    AddCorrelated("launch B", 0, 10, 5, host, AddLine(2, "Node 8: python3", 2, host));
  }
  for (int64_t node : {8, 3}) {
    XPlaneBuilder gpu(space.add_planes());
    gpu.SetName(node == 8 ? "/device:GPU:0" : "/device:GPU:1");
    gpu.AddStatValue(*gpu.GetOrCreateStatMetadata(kNodeIdStatName), node);
    gpu.AddStatValue(*gpu.GetOrCreateStatMetadata(kOriginalPlaneNameStatName), "/device:GPU:0");
    AddCorrelated(node == 8 ? "kernel B" : "kernel A", 0, 10, 5, gpu,
                  AddLine(7, "Stream #7", 3, gpu));
  }

  ASSERT_OK_AND_ASSIGN(const Exported perfetto, RunExport(ExportPerfetto, space));
  const PerfettoTrace trace(perfetto.text);
  EXPECT_THAT(trace.processes(), ElementsAre("Node 3: /host:CPU", "Node 3: /device:GPU:0",
                                             "Node 8: /host:CPU", "Node 8: /device:GPU:0"));
  std::map<std::string, std::vector<uint64_t>> flows;
  for (const PerfettoTrace::Slice& slice : trace.slices()) flows[slice.name] = slice.flows;
  EXPECT_THAT(flows["launch A"], SizeIs(1));
  EXPECT_EQ(flows["launch A"], flows["kernel A"]);
  EXPECT_EQ(flows["launch B"], flows["kernel B"]);
  EXPECT_NE(flows["launch A"], flows["launch B"]);

  ASSERT_OK_AND_ASSIGN(const Exported json, RunExport(ExportTraceJson, space));
  EXPECT_THAT(json.text, HasSubstr(R"(,"name":"launch","cat":"launch","id":5})"));
  EXPECT_THAT(json.text, HasSubstr(R"(,"name":"launch","cat":"launch","id":4294967301})"));
}

TEST(TraceExportTest, EventsThatNoCallCausedHaveNoArrow) {
  XSpaceProto space;
  {
    XPlaneBuilder gpu(space.add_planes());
    gpu.SetName("/device:GPU:0");
    XLineBuilder stream = AddLine(7, "Stream #7", 0, gpu);
    AddCorrelated("none", 0, 10, 0, gpu, stream);
    AddCorrelated("last", 20, 10, 0xFFFFFFFF, gpu, stream);
    AddCorrelated("beyond", 40, 10, 0x100000000, gpu, stream);
    AddCorrelated("negative", 60, 10, uint64_t(-1), gpu, stream);
  }
  ASSERT_OK_AND_ASSIGN(const Exported json, RunExport(ExportTraceJson, space));
  const std::vector<std::string> parts = absl::StrSplit(json.text, "\"ph\":\"f\"");
  EXPECT_THAT(parts, SizeIs(2));
  EXPECT_EQ(json.stats.slices, 4);
}

TEST(TraceExportTest, CountersAreTracksOfTheirProcess) {
  XSpaceProto space;
  {
    XPlaneBuilder gpu(space.add_planes());
    gpu.SetName("/device:GPU:0");
    XLineBuilder line = AddLine(9, "_counters_", 1, gpu);
    const XStatMetadataProto& value = *gpu.GetOrCreateStatMetadata("counter_value");
    AddEvent("sm active", 0, 0, gpu, line).AddStatValue(value, 12.5);
    AddEvent("sm active", 2000, 0, gpu, line).AddStatValue(value, std::nan(""));
    XEventBuilder two = AddEvent("memory", 3000, 0, gpu, line);
    two.AddStatValue(value, uint64_t{18446744073709551615u});
    two.AddStatValue(*gpu.GetOrCreateStatMetadata("free"), int64_t{-4});
    AddEvent("sm active", 4000, 0, gpu, line).AddStatValue(value, 13.5);
  }
  ASSERT_OK_AND_ASSIGN(const Exported json, RunExport(ExportTraceJson, space));
  EXPECT_EQ(json.text,
            R"json({"displayTimeUnit":"ns","metadata":{"highres-ticks":true},"traceEvents":[
{"ph":"M","pid":1,"tid":0,"name":"process_name","args":{"name":"/device:GPU:0"}},
{"ph":"M","pid":1,"tid":0,"name":"process_sort_index","args":{"sort_index":0}},
{"ph":"C","pid":1,"tid":0,"ts":0.001,"name":"sm active","args":{"value":12.5}},
{"ph":"C","pid":1,"tid":0,"ts":0.004,"name":"memory","args":{"value":18446744073709551615}},
{"ph":"C","pid":1,"tid":0,"ts":0.004,"name":"memory free","args":{"value":-4}},
{"ph":"C","pid":1,"tid":0,"ts":0.005,"name":"sm active","args":{"value":13.5}}
]}
)json");

  ASSERT_OK_AND_ASSIGN(const Exported perfetto, RunExport(ExportPerfetto, space));
  pp::Trace trace;
  ASSERT_TRUE(trace.ParseFromString(perfetto.text));
  std::map<uint64_t, std::string> names;
  std::vector<std::string> values;
  for (const pp::TracePacket& packet : trace.packet()) {
    if (packet.track_descriptor().has_counter()) {
      EXPECT_EQ(packet.track_descriptor().parent_uuid(), 1u);
      names[packet.track_descriptor().uuid()] = packet.track_descriptor().name();
    }
    if (!packet.has_track_event()) continue;
    const pp::TrackEvent& event = packet.track_event();
    values.push_back(event.has_counter_value()
                         ? absl::StrCat(names[event.track_uuid()], " ", event.counter_value())
                         : absl::StrCat(names[event.track_uuid()], " ",
                                        event.double_counter_value(), " as double"));
  }
  EXPECT_THAT(values, ElementsAre("sm active 12.5 as double", "memory 1.84467e+19 as double",
                                  "memory free -4", "sm active 13.5 as double"));
}

TEST(TraceExportTest, ALineOutOfOrderIsSorted) {
  XSpaceProto space;
  {
    XPlaneBuilder host(space.add_planes());
    host.SetName(kHostThreadsPlaneName);
    XLineBuilder line = AddLine(1, "main", 0, host);
    AddEvent("late", 50000, 1000, host, line);
    AddEvent("child", 10000, 5000, host, line);
    AddEvent("parent", 10000, 20000, host, line);
    AddEvent("twin", 10000, 20000, host, line);
  }
  ASSERT_OK_AND_ASSIGN(const Exported perfetto, RunExport(ExportPerfetto, space));
  const PerfettoTrace trace(perfetto.text);
  std::vector<std::string> names;
  for (const PerfettoTrace::Slice& slice : trace.slices()) names.push_back(slice.name);
  EXPECT_THAT(names, ElementsAre("parent", "twin", "child", "late"));
  EXPECT_EQ(trace.slices()[2].start_ns, 10u);
  EXPECT_EQ(trace.slices()[2].end_ns, 15u);
}

TEST(TraceExportTest, LeavesOutAndCountsWhatHasNoTime) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  XSpaceProto space;
  {
    XPlaneBuilder host(space.add_planes());
    host.SetName(kHostThreadsPlaneName);
    XLineBuilder line = AddLine(1, "main", 0, host);
    AddEvent("negative", 0, -1, host, line);
    AddEvent("before", -1, 1, host, line);
    AddEvent("good", 7, 0, host, line);
    AddEvent("beyond", 8, kMax, host, line);
    AddEvent("absurd", 0, 1, host, AddLine(2, "other", kMax, host));
  }
  ASSERT_OK_AND_ASSIGN(const Exported json, RunExport(ExportTraceJson, space));
  // Perfetto drops what is before 0.
  EXPECT_EQ(json.stats.left_out, 4);
  EXPECT_EQ(json.stats.slices, 1);
  EXPECT_THAT(json.text, Not(HasSubstr("baseTimeNanoseconds")));

  // Without a session start Perfetto's times begin at 0.
  ASSERT_OK_AND_ASSIGN(const Exported without_start, RunExport(ExportPerfetto, space));
  EXPECT_EQ(without_start.stats.left_out, 4);
  EXPECT_EQ(without_start.stats.slices, 1);
  ExportOptions options;
  options.profile_start_ns = 1;
  ASSERT_OK_AND_ASSIGN(const Exported with_start, RunExport(ExportPerfetto, space, options));
  EXPECT_EQ(with_start.stats.left_out, 3);
  const PerfettoTrace trace(with_start.text);
  ASSERT_THAT(trace.slices(), SizeIs(2));
  EXPECT_EQ(trace.slices()[0].start_ns, 0u);
  EXPECT_EQ(trace.slices()[0].end_ns, 1u);
}

TEST(TraceExportTest, LongTextsAndManyStatsAreCut) {
  XSpaceProto space;
  {
    XPlaneBuilder host(space.add_planes());
    host.SetName(std::string(5000, 'p'));
    XLineBuilder line = AddLine(1, std::string(5000, 't'), 0, host);
    XEventBuilder event = AddEvent(std::string(5000, 'n'), 0, 1, host, line);
    event.AddStatValue(*host.GetOrCreateStatMetadata(std::string(2000, 'k')),
                       std::string(2000, 'v'));
    for (int i = 0; i < 300; ++i) {
      event.AddStatValue(*host.GetOrCreateStatMetadata(absl::StrCat("stat ", i)), i);
    }
    event.AddStatValue(*host.GetOrCreateStatMetadata(std::string(2000, 'k')),
                       *host.GetOrCreateStatMetadata("never shown"));
  }
  ASSERT_OK_AND_ASSIGN(const Exported json, RunExport(ExportTraceJson, space));
  EXPECT_THAT(json.text, HasSubstr(absl::StrCat("\"", std::string(4000, 'p'), "...\"")));
  EXPECT_THAT(json.text, HasSubstr(absl::StrCat("\"", std::string(4000, 't'), "...\"")));
  EXPECT_THAT(json.text, HasSubstr(absl::StrCat("\"", std::string(4000, 'n'), "...\"")));
  EXPECT_THAT(json.text, HasSubstr(absl::StrCat("\"", std::string(1000, 'k'), "...\":\"",
                                                std::string(1000, 'v'), "...\"")));
  EXPECT_THAT(json.text, HasSubstr("stat 254"));
  EXPECT_THAT(json.text, Not(HasSubstr("stat 255")));
  ASSERT_OK_AND_ASSIGN(const Exported perfetto, RunExport(ExportPerfetto, space));
  EXPECT_LT(perfetto.text.size(), 40000u);
  const PerfettoTrace trace(perfetto.text);
  ASSERT_THAT(trace.slices(), SizeIs(1));
  EXPECT_EQ(trace.slices()[0].num_args, 256u);
  EXPECT_EQ(trace.slices()[0].name, std::string(4000, 'n') + "...");
}

TEST(TraceExportTest, AnEventsOwnStatReplacesItsMetadatas) {
  XSpaceProto space;
  {
    XPlaneBuilder host(space.add_planes());
    host.SetName(kHostThreadsPlaneName);
    const XStatMetadataProto& stat = *host.GetOrCreateStatMetadata("flops");
    XEventMetadataProto* metadata = host.GetOrCreateEventMetadata("dot");
    XStatsBuilder<XEventMetadataProto>(metadata, &host).AddStatValue(stat, 1);
    AddEvent("dot", 0, 1, host, AddLine(1, "main", 0, host)).AddStatValue(stat, 2);
  }
  ASSERT_OK_AND_ASSIGN(const Exported json, RunExport(ExportTraceJson, space));
  EXPECT_THAT(json.text, HasSubstr("\"args\":{\"flops\":2}"));
}

class FullSink : public ByteSink {
 public:
  absl::Status Append(absl::string_view) override {
    return absl::ResourceExhaustedError("disk full");
  }
};

TEST(TraceExportTest, ErrorsOfTheSinkAndOfTheProfileAreTold) {
  const std::string bytes = LaunchAndKernels().SerializeAsString();
  ASSERT_OK_AND_ASSIGN(const XSpaceReader reader, XSpaceReader::FromBytes(bytes, "test.pb"));
  FullSink full;
  EXPECT_THAT(ExportTraceJson(reader, {}, full),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("disk full")));
  EXPECT_THAT(ExportPerfetto(reader, {}, full), StatusIs(absl::StatusCode::kResourceExhausted));

  XSpaceProto damaged = LaunchAndKernels();
  damaged.mutable_planes(0)->mutable_lines(0)->mutable_events(1)->set_metadata_id(99);
  EXPECT_THAT(RunExport(ExportTraceJson, damaged),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("test.pb: offset ")));
}

// Slices in Perfetto's trace are the events with both times rounded down, whatever the events are.
TEST(TraceExportTest, PerfettoHoldsAllEventsRoundedDown) {
  std::mt19937 random(11);
  for (int round = 0; round < 20; ++round) {
    XSpaceProto space;
    std::vector<std::tuple<std::string, uint64_t, uint64_t>> expected;
    {
      XPlaneBuilder host(space.add_planes());
      host.SetName(kHostThreadsPlaneName);
      XLineBuilder line = AddLine(1, "main", 0, host);
      for (int i = 0; i < 200; ++i) {
        const auto start_ps = static_cast<int64_t>(random() % 100000);
        const auto duration_ps = static_cast<int64_t>(random() % 8000);
        const std::string name = absl::StrCat("event ", i);
        AddEvent(name, start_ps, duration_ps, host, line);
        expected.push_back({name, start_ps / 1000, (start_ps + duration_ps) / 1000});
      }
    }
    ASSERT_OK_AND_ASSIGN(const Exported perfetto, RunExport(ExportPerfetto, space));
    const PerfettoTrace trace(perfetto.text);
    std::vector<std::tuple<std::string, uint64_t, uint64_t>> actual;
    for (const PerfettoTrace::Slice& slice : trace.slices()) {
      actual.push_back({slice.name, slice.start_ns, slice.end_ns});
    }
    std::sort(expected.begin(), expected.end());
    std::sort(actual.begin(), actual.end());
    EXPECT_EQ(actual, expected);
  }
}

// Damage is an error or does no harm: what comes out is whole.
TEST(TraceExportTest, DamagedProfilesAreRefusedOrExportedWhole) {
  const std::string bytes = Serialize(LaunchAndKernels());
  std::mt19937_64 random(17);
  int exported = 0;
  for (int round = 0; round < 20000; ++round) {
    const std::string damaged = Damage(bytes, random);
    const absl::StatusOr<XSpaceReader> reader = XSpaceReader::FromBytes(damaged, "test.pb");
    if (!reader.ok()) continue;
    const absl::StatusOr<Exported> json = RunExport(ExportTraceJson, *reader);
    const absl::StatusOr<Exported> perfetto = RunExport(ExportPerfetto, *reader);
    EXPECT_EQ(json.ok(), perfetto.ok());
    if (!json.ok()) continue;
    ++exported;
    simdjson::dom::parser parser;
    EXPECT_EQ(parser.parse(json->text).error(), simdjson::SUCCESS) << json->text;
    PerfettoTrace trace(perfetto->text);
    EXPECT_EQ(static_cast<int64_t>(trace.slices().size()), perfetto->stats.slices);
  }
  EXPECT_GT(exported, 1000);
}

// (plane, name, start and end in ps from the session's start) of all events, as libprotobuf reads
// them.
using Span = std::tuple<std::string, std::string, int64_t, int64_t>;
std::multiset<Span> SpansOf(const std::string& bytes) {
  XSpaceProto space;
  EXPECT_TRUE(space.ParseFromString(bytes));
  std::multiset<Span> spans;
  for (const XPlaneProto& plane : space.planes()) {
    for (const XLineProto& line : plane.lines()) {
      for (const XEventProto& event : line.events()) {
        const auto& metadata = plane.event_metadata().at(event.metadata_id());
        std::string name =
            metadata.display_name().empty() ? metadata.name() : metadata.display_name();
        if (name.size() > 4000) name.clear();
        const int64_t start_ps = line.timestamp_ns() * 1000 + event.offset_ps();
        spans.insert({plane.name(), name, start_ps, start_ps + event.duration_ps()});
      }
    }
  }
  return spans;
}

TEST(TraceExportTest, RealProfilesAreWhole) {
  const std::vector<std::string> files = SharedXSpaceFiles();
  if (files.empty()) GTEST_SKIP() << kSharedDataMissing;
  for (const std::string& file : files) {
    SCOPED_TRACE(file);
    ASSERT_OK_AND_ASSIGN(const XSpaceReader reader, XSpaceReader::Open(FileSystem::Posix(), file));
    const std::multiset<Span> spans = SpansOf(std::string(reader.source().bytes));

    ASSERT_OK_AND_ASSIGN(const Exported json, RunExport(ExportTraceJson, reader));
    EXPECT_EQ(json.stats.slices, static_cast<int64_t>(spans.size()));
    simdjson::dom::parser parser;
    simdjson::dom::element document;
    ASSERT_EQ(parser.parse(json.text).get(document), simdjson::SUCCESS);
    std::map<int64_t, std::string> process_names;
    std::multiset<Span> json_spans;
    for (const auto event : document["traceEvents"].get_array()) {
      const std::string_view ph = event["ph"];
      const int64_t pid = event["pid"];
      if (ph == "M" && std::string_view(event["name"]) == "process_name") {
        process_names[pid] = std::string(std::string_view(event["args"]["name"]));
      }
      if (ph != "X") continue;
      const double ts = event["ts"].is_double() ? double(event["ts"]) : int64_t(event["ts"]);
      const double dur = event["dur"].is_double() ? double(event["dur"]) : int64_t(event["dur"]);
      const std::string_view name_view = event["name"];
      std::string name(name_view);
      if (name.size() > 4000) name.clear();
      // As Perfetto reads them.
      const int64_t start_ns = std::llround(ts * 1000);
      json_spans.insert({process_names[pid], name, start_ns, start_ns + std::llround(dur * 1000)});
    }
    // In both formats times are rounded down.
    std::multiset<Span> rounded;
    for (const auto& [plane, name, start_ps, end_ps] : spans) {
      rounded.insert({plane, name, start_ps / 1000, end_ps / 1000});
    }
    EXPECT_TRUE(json_spans == rounded);

    ASSERT_OK_AND_ASSIGN(const Exported perfetto, RunExport(ExportPerfetto, reader));
    EXPECT_EQ(perfetto.stats.slices, json.stats.slices);
    const PerfettoTrace trace(perfetto.text);
    pp::Trace raw;
    ASSERT_TRUE(raw.ParseFromString(perfetto.text));
    const uint64_t start_ns = raw.packet(0).has_clock_snapshot()
                                  ? raw.packet(0).clock_snapshot().clocks(0).timestamp()
                                  : 0;
    std::multiset<Span> perfetto_spans;
    for (const PerfettoTrace::Slice& slice : trace.slices()) {
      perfetto_spans.insert({slice.process, slice.name.size() > 4000 ? "" : slice.name,
                             static_cast<int64_t>(slice.start_ns - start_ns),
                             static_cast<int64_t>(slice.end_ns - start_ns)});
    }
    EXPECT_TRUE(perfetto_spans == rounded);
    EXPECT_LT(perfetto.text.size(), json.text.size());
  }
}

}  // namespace
}  // namespace meridian
