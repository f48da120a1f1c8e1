#include "xla_profiler/perfetto_traces/perfetto_traces.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "third_party/perfetto/perfetto_trace.pb.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/files/input_file.h"
#include "xla_profiler/base/json/json_cutter.h"
#include "xla_profiler/base/json/json_value.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/base/testing/temporary_directory.h"
#include "xla_profiler/collectives/collective_event.h"
#include "xla_profiler/events/event_category.h"
#include "xla_profiler/events/event_table.h"
#include "xla_profiler/kineto/event_table_json.h"
#include "xla_profiler/kineto/kineto_collectives.h"
#include "xla_profiler/sources/trace_files.h"
#include "xla_profiler/sources/trace_sources.h"
#include "xla_profiler/testing/damage.h"
#include "xla_profiler/testing/opened_traces.h"
#include "xla_profiler/trace_json/trace_json_reader.h"

namespace meridian {
namespace {

namespace pp = ::perfetto::protos;

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// As in Kineto traces: rounded down to a quarter of a year.
constexpr int64_t kBaseNs = 1790857026000000000;

// PyTorch's encoders: one without categories, clock snapshot and what stages communicate, and one
// with them.
enum class Version { kOlder, kNewer };

// Encodes as PyTorch does, packet by packet.
class Encoder {
 public:
  struct Row {
    std::string category, name;
    int64_t pid = 0, tid = 0;
    // From the base.
    int64_t start_ns = 0, end_ns = 0;
    // JSON.
    std::string args;
  };

  explicit Encoder(Version version, int64_t base_ns = kBaseNs)
      : version_(version), base_ns_(base_ns) {}

  void AddGroup(std::vector<Row> rows) {
    for (const Row& row : rows) TrackFor(row);
    groups_.push_back(std::move(rows));
  }

  // The category is that of the JSON; the arguments are those of a kernel and of its collective.
  void AddStage(Row row) { stages_.push_back(std::move(row)); }

  pp::Trace Packets() {
    pp::Trace trace;
    if (version_ == Version::kNewer) AddSnapshot(trace.add_packet());
    for (const pp::TrackDescriptor& track : tracks_) {
      *trace.add_packet()->mutable_track_descriptor() = track;
    }
    pp::TracePacket& interned = *trace.add_packet();
    interned.set_trusted_packet_sequence_id(1);
    interned.set_sequence_flags(pp::TracePacket::SEQ_INCREMENTAL_STATE_CLEARED);
    for (const std::vector<Row>& group : groups_) {
      for (const Row& row : group) AddBegin(row, NewPacket(row.start_ns, 2, &trace));
      for (const Row& row : group) {
        pp::TracePacket& packet = NewPacket(row.end_ns, 0, &trace);
        packet.mutable_track_event()->set_type(pp::TrackEvent::TYPE_SLICE_END);
        packet.mutable_track_event()->set_track_uuid(TrackFor(row));
      }
    }
    for (const Row& row : stages_) AddRenderStage(row, NewPacket(row.start_ns, 2, &trace));
    NewPacket(5, 2, &trace).mutable_gpu_counter_event();
    AddTexts(trace
                 .mutable_packet(static_cast<int>(tracks_.size()) +
                                 (version_ == Version::kNewer ? 1 : 0))
                 ->mutable_interned_data());
    return trace;
  }

  std::string Bytes() { return Packets().SerializeAsString(); }

 private:
  static constexpr std::pair<const char*, const char*> kStages[] = {
      {"kernel", "Kernel"},
      {"gpu_memcpy", "Memcpy"},
      {"gpu_memset", "Memset"},
      {"gpu_user_annotation", "Annotation"}};

  uint64_t AddTrack(uint64_t parent) {
    tracks_.emplace_back();
    tracks_.back().set_uuid(tracks_.size());
    if (parent > 0) tracks_.back().set_parent_uuid(parent);
    return tracks_.size();
  }

  uint64_t TrackFor(const Row& row) {
    uint64_t& process = processes_[row.pid];
    if (process == 0) {
      process = AddTrack(0);
      tracks_.back().mutable_process()->set_pid(row.pid & 0x7FFFFFFF);
      tracks_.back().mutable_process()->set_process_name("python");
    }
    uint64_t& thread = threads_[{row.pid, row.tid}];
    if (thread == 0) {
      thread = AddTrack(process);
      tracks_.back().mutable_thread()->set_pid(row.pid & 0x7FFFFFFF);
      tracks_.back().mutable_thread()->set_tid(row.tid & 0x7FFFFFFF);
      tracks_.back().mutable_thread()->set_thread_name(
          row.pid == -1 ? "Overhead" : absl::StrCat("thread ", row.tid));
    }
    return thread;
  }

  static uint64_t Intern(const std::string& text, std::vector<std::string>* table) {
    const auto it = std::find(table->begin(), table->end(), text);
    if (it != table->end()) return it - table->begin() + 1;
    table->push_back(text);
    return table->size();
  }

  void AddSnapshot(pp::TracePacket* packet) const {
    packet->set_timestamp(base_ns_);
    packet->set_trusted_packet_sequence_id(1);
    for (const int clock : {6, 1}) {
      pp::ClockSnapshot::Clock& reading = *packet->mutable_clock_snapshot()->add_clocks();
      reading.set_clock_id(clock);
      reading.set_timestamp(base_ns_);
    }
  }

  pp::TracePacket& NewPacket(int64_t time_ns, int flags, pp::Trace* trace) const {
    pp::TracePacket& packet = *trace->add_packet();
    packet.set_timestamp(base_ns_ + time_ns);
    packet.set_trusted_packet_sequence_id(1);
    if (flags > 0) packet.set_sequence_flags(flags);
    return packet;
  }

  static void Annotate(const JsonValue& value, pp::DebugAnnotation* annotation) {
    const char first = value.text()[0];
    if (first == '{') {
      JsonCutter cutter(value.text());
      cutter.Enter('{');
      for (absl::string_view key; cutter.NextMember(&key);) {
        pp::DebugAnnotation& entry = *annotation->add_dict_entries();
        entry.set_name(std::string(key));
        Annotate(JsonValue(cutter.CutValue()), &entry);
      }
    } else if (first == '[') {
      for (const JsonValue& element : value.Elements()) {
        Annotate(element, annotation->add_array_values());
      }
    } else if (first == '"') {
      annotation->set_string_value(*value.AsString());
    } else if (first == 't' || first == 'f') {
      annotation->set_bool_value(first == 't');
    } else if (first == 'n') {
      annotation->set_string_value("null");
    } else if (const std::optional<int64_t> number = value.AsInt64()) {
      annotation->set_int_value(*number);
    } else {
      annotation->set_double_value(*value.AsDouble());
    }
  }

  void AddBegin(const Row& row, pp::TracePacket& packet) {
    pp::TrackEvent& slice = *packet.mutable_track_event();
    slice.set_type(pp::TrackEvent::TYPE_SLICE_BEGIN);
    slice.set_track_uuid(TrackFor(row));
    slice.set_name_iid(Intern(row.name, &names_));
    const bool has_category = row.category != "cuda_sync" && row.category != "overhead";
    if (version_ == Version::kNewer && has_category) {
      slice.add_category_iids(Intern(row.category, &categories_));
    }
    if (row.category == "cuda_runtime") {
      // GpuCorrelation.
      slice.mutable_unknown_fields()->AddLengthDelimited(3000)->assign("\x08\x07");
    }
    JsonCutter cutter(row.args);
    cutter.Enter('{');
    for (absl::string_view key; cutter.NextMember(&key);) {
      pp::DebugAnnotation& annotation = *slice.add_debug_annotations();
      annotation.set_name(std::string(key));
      Annotate(JsonValue(cutter.CutValue()), &annotation);
    }
  }

  void AddRenderStage(const Row& row, pp::TracePacket& packet) {
    const JsonValue args(row.args);
    pp::GpuRenderStageEvent& stage = *packet.mutable_gpu_render_stage_event();
    stage.set_event_id(7);
    stage.set_duration(row.end_ns - row.start_ns);
    stage.set_gpu_id(static_cast<int32_t>(row.pid));
    stage.set_hw_queue_iid(100);
    stage.set_context(1);
    for (size_t i = 0; i < std::size(kStages); ++i) {
      if (row.category == kStages[i].first) stage.set_stage_iid(i + 1);
    }
    const bool is_named = row.category == "kernel" || row.category == "gpu_user_annotation";
    if (is_named) stage.set_name_iid(Intern(row.name, &names_));
    // ComputeKernelLaunch, with a grid.
    stage.mutable_unknown_fields()->AddLengthDelimited(21)->assign("\x0a\x02\x08\x01");
    const auto add = [&](absl::string_view name, absl::string_view value) {
      stage.add_extra_data()->set_name(std::string(name));
      stage.mutable_extra_data()->rbegin()->set_value(std::string(value));
    };
    add("device id", absl::StrCat(row.pid));
    add("context id", "1");
    add("stream id", absl::StrCat(row.tid));
    for (const char* key : {"correlation", "bytes", "graph node id"}) {
      if (args.Find(key).exists()) add(key, args.Find(key).text());
    }
    add("arch", "sm_90");
    if (version_ == Version::kOlder || !args.Find("Collective name").exists()) return;
    JsonCutter cutter(row.args);
    cutter.Enter('{');
    for (absl::string_view key; cutter.NextMember(&key);) {
      const JsonValue value(cutter.CutValue());
      add(key, value.AsString().value_or(std::string(value.text())));
    }
  }

  void AddTexts(pp::InternedData* texts) const {
    const auto add = [](const std::string& text, auto* table) {
      table->Add()->set_name(text);
      table->rbegin()->set_iid(table->size());
    };
    for (const std::string& name : names_) add(name, texts->mutable_event_names());
    for (const std::string& name : categories_) add(name, texts->mutable_event_categories());
    for (const auto& [category, name] : kStages) add(name, texts->mutable_gpu_specifications());
    texts->add_gpu_specifications()->set_name("[07] stream 7");
    texts->mutable_gpu_specifications()->rbegin()->set_iid(100);
  }

  const Version version_;
  const int64_t base_ns_;
  std::vector<pp::TrackDescriptor> tracks_;
  std::map<int64_t, uint64_t> processes_;
  std::map<std::pair<int64_t, int64_t>, uint64_t> threads_;
  std::vector<std::vector<Row>> groups_;
  std::vector<Row> stages_;
  std::vector<std::string> names_, categories_;
};

using Row = Encoder::Row;

// What a rank of two does, process 4711: a step with a kernel, an all-reduce of 4 KiB in 64 us on
// stream 16, a message from rank 0 to 1 and a copy.
Encoder MakeRank(int rank, Version version) {
  Encoder encoder(version);
  const std::string group =
      R"(,"dtype":"Float","Group size":2,"Process Group Name":"0",)"
      R"("Process Group Description":"default_pg","Process Group Ranks":"[0, 1]","Seq":3)";
  const std::string reduce = absl::StrCat(
      R"("Collective name":"allreduce","In msg nelems":1024,"Out msg nelems":1024,"Rank":)", rank,
      group);
  // Here the rank is the other's.
  const std::string message = absl::StrCat(
      R"("In msg nelems":64,"Out msg nelems":64,"Collective name":")", rank == 0 ? "send" : "recv",
      rank == 0 ? R"(","Dst Rank":1,"Rank":1)" : R"(","Src Rank":0,"Rank":0)", group);
  const auto host = [&](const char* category, const char* name, int64_t start_us, int64_t end_us,
                        const std::string& args) {
    return Row{
        category, name, 4711, 4712, start_us * 1000, end_us * 1000, absl::StrCat("{", args, "}")};
  };
  encoder.AddGroup(
      {host("user_annotation", "ProfilerStep#7", 0, 1000, R"("External id":1)"),
       host("cpu_op", "aten::mm", 10, 20,
            R"("External id":2,"Input Dims":[[8,2],[]],"alpha":0.25,"ok":true,"o":{"a":[]})"),
       host("cpu_op", "record_param_comms", 200, 260, R"("External id":4,)" + message),
       host("cpu_op", "record_param_comms", 100, 160, R"("External id":3,)" + reduce),
       host("user_annotation", "nccl:all_reduce", 110, 150, R"("External id":5)")});
  encoder.AddGroup(
      {host("cuda_runtime", "cudaLaunchKernel", 12, 14, R"("cbid":211,"correlation":1)"),
       host("cuda_runtime", "cudaLaunchKernelExC", 120, 130, R"("cbid":430,"correlation":2)"),
       host("cuda_runtime", "cudaMemcpyAsync", 300, 310, R"("cbid":41,"correlation":4)")});
  encoder.AddGroup(
      {host("cuda_driver", "cuLaunchKernelEx", 210, 220, R"("cbid":652,"correlation":3)")});
  encoder.AddGroup({{"overhead", "Buffer Flush", -1, 0, 400000, 500000, "{}"}});
  encoder.AddGroup({{"cuda_sync", "Stream Sync", 0, 7, 600000, 610000,
                     R"({"stream":7,"correlation":9,"device":0,"cuda_sync_kind":"Stream Sync"})"}});
  const auto stage = [&](const char* category, const char* name, int64_t stream, int64_t start_us,
                         int64_t end_us, int64_t correlation, const std::string& args) {
    encoder.AddStage({category, name, 0, stream, start_us * 1000 + 1, end_us * 1000 + 1,
                      absl::StrCat(R"({"correlation":)", correlation, args, "}")});
  };
  stage("kernel", "gemm", 7, 30, 90, 1, "");
  stage("kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL()", 16, 136 + rank, 200, 2,
        "," + reduce);
  stage("kernel", "ncclDevKernel_SendRecv()", 16, 250, 280, 3, "," + message);
  stage("gpu_memcpy", "", 7, 320, 330, 4, R"(,"bytes":4096)");
  stage("gpu_user_annotation", "nccl:all_reduce", 16, 136, 200, 0, "");
  return encoder;
}

// Collectives as "kind bytes of ranks @start-end in ns of the base, step".
std::vector<std::string> Texts(const ProfileCollectives& profile) {
  std::vector<std::string> texts;
  for (const CollectiveEvent& event : profile.events) {
    const CollectiveOp& op = profile.ops[event.op];
    std::string text = absl::StrCat(op.instruction, ": ", op.operand_bytes, " of");
    for (const int64_t rank : op.groups.ids()) absl::StrAppend(&text, " ", rank);
    const int64_t base_ns = profile.base_ns - kBaseNs;
    absl::StrAppend(&text, " @", base_ns + event.start_ps / 1000, "-",
                    base_ns + event.end_ps / 1000, " step ", event.step.value_or(-1), " run ",
                    event.run_id.has_value());
    texts.push_back(text);
  }
  std::sort(texts.begin(), texts.end());
  return texts;
}

// Rows as text, sorted.
std::vector<std::string> Rows(absl::string_view trace) {
  const absl::StatusOr<TraceJsonTable> loaded = LoadTraceJson(trace, "t.json");
  EXPECT_OK(loaded.status());
  EXPECT_EQ(loaded->problems.ToString(), "");
  const EventTable& table = loaded->table;
  std::vector<std::string> rows;
  for (EventRow row = 0; row < table.size(); ++row) {
    const Track& track = table.track(table.track_id(row));
    rows.push_back(absl::StrCat(
        EventCategoryName(table.category(row)), " | ", table.name(row), " | ", track.process, "/",
        track.thread, " @", table.base_ns() - kBaseNs + table.start_ps(row) / 1000, "+",
        table.duration_ps(row) / 1000, " #", table.correlation(row).value_or(0)));
  }
  std::sort(rows.begin(), rows.end());
  return rows;
}

TEST(PerfettoTracesTest, TwoRanksAreReadWithTheirCollectives) {
  for (const Version version : {Version::kOlder, Version::kNewer}) {
    const OpenedTraces opened = OpenTraces({{"a.pftrace", GzipText(MakeRank(1, version).Bytes())},
                                            {"b.pftrace", MakeRank(0, version).Bytes()}});
    ASSERT_OK(opened.status);
    EXPECT_EQ(opened.noun, "a Perfetto trace of PyTorch");
    EXPECT_THAT(opened.notes, IsEmpty());
    EXPECT_THAT(Texts(opened.collectives[0]),
                ElementsAre("allreduce Float 1024->1024: 4096 of 0 1 @137001-200001 step 7 run 1",
                            "transfer 0->1 Float 64: 256 of @250001-280001 step 7 run 1"));
    EXPECT_THAT(Texts(opened.collectives[1]),
                ElementsAre("allreduce Float 1024->1024: 4096 of 0 1 @136001-200001 step 7 run 1",
                            "transfer 0->1 Float 64: 256 of @250001-280001 step 7 run 1"));
    for (const int file : {0, 1}) {
      EXPECT_EQ(opened.collectives[file].devices[0].global_id, 1 - file);
      EXPECT_TRUE(opened.collectives[file].unresolved.entries().empty());
    }
    EXPECT_EQ(opened.collectives[0].ops[0].module, "0 (default_pg)");
    EXPECT_EQ(opened.collectives[0].events[0].run_id, opened.collectives[1].events[0].run_id);
  }
}

TEST(PerfettoTracesTest, EventsAreThoseThatPytorchWritesToJson) {
  for (const Version version : {Version::kOlder, Version::kNewer}) {
    const OpenedTraces opened = OpenTraces({{"rank0.pftrace", MakeRank(0, version).Bytes()}});
    ASSERT_OK(opened.status);
    EXPECT_THAT(
        Rows(opened.traces[0]),
        ElementsAre("annotation | nccl:all_reduce | 4711/4712 @110000+40000 #0",
                    "cpu_op | aten::mm | 4711/4712 @10000+10000 #0",
                    "cpu_op | record_param_comms | 4711/4712 @100000+60000 #0",
                    "cpu_op | record_param_comms | 4711/4712 @200000+60000 #0",
                    "device_annotation | nccl:all_reduce | 0/16 @136001+64000 #0",
                    "device_sync | Stream Sync | 0/7 @600000+10000 #9",
                    "kernel | gemm | 0/7 @30001+60000 #1",
                    "kernel | ncclDevKernel_AllReduce_Sum_f32_RING_LL() | 0/16 @136001+64000 #2",
                    "kernel | ncclDevKernel_SendRecv() | 0/16 @250001+30000 #3",
                    "memcpy | Memcpy | 0/7 @320001+10000 #4",
                    "overhead | Buffer Flush | 2147483647/0 @400000+100000 #0",
                    "runtime_api | cuLaunchKernelEx | 4711/4712 @210000+10000 #3",
                    "runtime_api | cudaLaunchKernel | 4711/4712 @12000+2000 #1",
                    "runtime_api | cudaLaunchKernelExC | 4711/4712 @120000+10000 #2",
                    "runtime_api | cudaMemcpyAsync | 4711/4712 @300000+10000 #4",
                    "step | ProfilerStep#7 | 4711/4712 @0+1000000 #0"));
    // An empty object cannot be told from an empty list.
    EXPECT_THAT(
        opened.traces[0],
        AllOf(HasSubstr(R"({"External id":2,"Input Dims":[[8,2],[]],"alpha":0.25,"ok":true,)"
                        R"("o":{"a":[]}})"),
              HasSubstr(R"({"device":0,"context":1,"stream":7,"correlation":4,"bytes":4096,)"),
              HasSubstr(R"("cat":"cuda_driver")")));
    if (version == Version::kOlder) continue;
    EXPECT_THAT(opened.traces[0], HasSubstr(R"("Collective name":"allreduce","In msg nelems":1024,)"
                                            R"("Out msg nelems":1024,"Rank":0,"dtype":"Float",)"
                                            R"("Group size":2,"Process Group Name":"0",)"));
  }
}

// Encodes a Kineto trace as PyTorch would have.
std::string EncodeKineto(absl::string_view text, Version version) {
  std::map<std::string, std::vector<Row>> groups;
  std::vector<Row> stages;
  TraceJsonProblems problems;
  const auto take = [&](const TraceJsonEvent& event) {
    Row row;
    row.category = std::string(event.cat);
    row.name = std::string(event.name);
    const bool has_place =
        absl::SimpleAtoi(event.pid, &row.pid) && absl::SimpleAtoi(event.tid, &row.tid);
    if (event.ph != 'X' || !has_place) return absl::OkStatus();
    row.start_ns = static_cast<int64_t>(*event.ts_ps / 1000);
    row.end_ns = row.start_ns + event.dur_ps / 1000;
    row.args = std::string(event.args.text());
    const bool is_call = row.category == "cuda_runtime" || row.category == "cuda_driver";
    const bool is_stage = row.category == "kernel" || absl::StartsWith(row.category, "gpu_");
    if (is_call) {
      row.args = absl::StrCat("{\"cbid\":", event.args.Find("cbid").text(),
                              ",\"correlation\":", event.args.Find("correlation").text(), "}");
    }
    if (is_stage) {
      stages.push_back(row);
    } else {
      groups[is_call ? row.category : "1 host"].push_back(row);
    }
    return absl::OkStatus();
  };
  const absl::StatusOr<TraceJsonHeader> header = ReadTraceJson(text, take, &problems);
  EXPECT_OK(header.status());
  Encoder encoder(version, *header->base_time_ns);
  for (auto& [category, rows] : groups) encoder.AddGroup(std::move(rows));
  for (Row& row : stages) encoder.AddStage(std::move(row));
  return encoder.Bytes();
}

TEST(PerfettoTracesTest, KinetoTracesComeBackAsTheyWere) {
  for (const char* path : {"examples/networks/ddp4_1g/kineto_1.json.gz",
                           "examples/torch_pipeline4/kineto_2.json.gz"}) {
    ASSERT_OK_AND_ASSIGN(const InputFile original, InputFile::Open(FileSystem::Posix(), path));
    ASSERT_OK_AND_ASSIGN(const ProfileCollectives collectives, ReadKinetoCollectives(original));
    ASSERT_THAT(collectives.events, Not(IsEmpty()));
    for (const Version version : {Version::kOlder, Version::kNewer}) {
      std::vector<std::string> expected;
      for (std::string row : Rows(original.bytes())) {
        if (absl::StartsWith(row, "unknown | PyTorch Profiler (0)")) continue;
        // Copies have no names of their own; in older files few names tell annotations.
        const bool is_copy = absl::StartsWith(row, "mem");
        if (is_copy)
          row.replace(row.find(" | Mem") + 9, row.rfind(" | ") - row.find(" | Mem") - 9, "");
        const bool is_range =
            absl::StartsWith(row, "annotation") && !absl::StrContains(row, "nccl:");
        if (version == Version::kOlder && is_range) row.replace(0, 10, "cpu_op");
        expected.push_back(row);
      }
      std::sort(expected.begin(), expected.end());
      const OpenedTraces opened =
          OpenTraces({{"a.pftrace", EncodeKineto(original.bytes(), version)}});
      ASSERT_OK(opened.status);
      EXPECT_THAT(opened.notes, IsEmpty());
      EXPECT_THAT(Rows(opened.traces[0]), ElementsAreArray(expected));
      EXPECT_THAT(Texts(opened.collectives[0]), ElementsAreArray(Texts(collectives)));
      EXPECT_EQ(opened.collectives[0].devices[0].global_id, collectives.devices[0].global_id);
    }
  }
}

std::string NounOf(const std::string& bytes) {
  return std::string(DetectFile(FileHead(bytes)).noun());
}

TEST(PerfettoTracesTest, TracesOfOthersAreToldApart) {
  const std::string other = "a Perfetto trace that PyTorch did not write";
  const pp::Trace ours = MakeRank(0, Version::kNewer).Packets();
  EXPECT_EQ(NounOf(ours.SerializeAsString()), "a Perfetto trace of PyTorch");
  EXPECT_EQ(NounOf(ours.SerializeAsString().substr(0, 200)), "a Perfetto trace of PyTorch");

  // What combine writes: clock snapshots without a sequence, then the root of the tracks.
  pp::Trace combined;
  combined.add_packet()->mutable_clock_snapshot()->add_clocks()->set_clock_id(1);
  combined.add_packet()->mutable_track_descriptor()->set_uuid(0);
  EXPECT_EQ(NounOf(combined.SerializeAsString()), other);

  // A tracing service notes its user in each packet, or takes tracks' numbers from addresses.
  pp::Trace service = ours;
  for (pp::TracePacket& packet : *service.mutable_packet()) {
    packet.mutable_unknown_fields()->AddVarint(3, 1000);
    packet.set_trusted_packet_sequence_id(2);
  }
  EXPECT_EQ(NounOf(service.SerializeAsString()), other);
  pp::Trace addresses = ours;
  addresses.mutable_packet(1)->mutable_track_descriptor()->set_uuid(0x7f0012345678);
  EXPECT_EQ(NounOf(addresses.SerializeAsString()), other);

  const std::string plane("\x0a\x12\x08\x01\x12\x0e/host:metadata", 20);
  EXPECT_EQ(NounOf(plane), "an XSpace");
  // One that holds only stats looks like a clock snapshot.
  EXPECT_EQ(NounOf(std::string("\x0a\x04\x32\x02\x08\x01", 6) + plane), "an XSpace");

  EXPECT_THAT(OpenTraces({{"a.pftrace", combined.SerializeAsString()}}).status,
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("a.pftrace is a Perfetto trace that PyTorch did not write"),
                             HasSubstr("or a Perfetto trace of PyTorch or"))));
  const TemporaryDirectory directory;
  const std::string rocprof = directory.Write("1_results.pftrace", service.SerializeAsString());
  const std::string kineto = directory.Write("k.json", R"({"schemaVersion":1,"traceEvents":[]})");
  EXPECT_THAT(KeepProfiles(FileSystem::Posix(), {rocprof, kineto}), ElementsAre(kineto));
}

// Returns the error for a trace that was changed.
template <typename Change>
absl::Status ErrorOf(Change change) {
  pp::Trace trace = MakeRank(0, Version::kNewer).Packets();
  change(trace);
  return OpenTraces({{"a.pftrace", trace.SerializeAsString()}}).status;
}

TEST(PerfettoTracesTest, WhatPytorchWouldNotWriteIsRefused) {
  const auto refuses = [](const char* reason) {
    return StatusIs(absl::StatusCode::kInvalidArgument,
                    AllOf(HasSubstr("a.pftrace: "), HasSubstr(reason)));
  };
  // Snapshot, two tracks of the host and two of each of overhead and device, texts; then slices.
  constexpr int kTexts = 7, kFirst = 8, kSlices = 5;
  EXPECT_OK(ErrorOf([](pp::Trace&) {}));
  EXPECT_THAT(ErrorOf([](pp::Trace& trace) {
                trace.mutable_packet(kFirst)->mutable_track_event()->set_track_uuid(9);
              }),
              refuses("a slice on a track that is not described"));
  EXPECT_THAT(ErrorOf([](pp::Trace& trace) {
                trace.mutable_packet(kFirst + kSlices)->mutable_track_event()->set_track_uuid(4);
              }),
              refuses("ends of slices are not in the order of begins"));
  EXPECT_THAT(ErrorOf([](pp::Trace& trace) {
                trace.mutable_packet()->DeleteSubrange(kFirst + 1,
                                                       trace.packet_size() - kFirst - 1);
              }),
              refuses("a slice without an end: the trace is cut off"));
  EXPECT_THAT(ErrorOf([](pp::Trace& trace) { *trace.add_packet() = trace.packet(kTexts); }),
              refuses("a Perfetto trace that PyTorch did not write; expected"));
  EXPECT_THAT(ErrorOf([](pp::Trace& trace) {
                trace.mutable_packet(kFirst)->set_trusted_packet_sequence_id(2);
              }),
              refuses("PyTorch did not write"));
  // Nothing that a profiler of PyTorch records.
  EXPECT_THAT(ErrorOf([](pp::Trace& trace) {
                trace.mutable_packet(kTexts)->mutable_interned_data()->clear_gpu_specifications();
                for (pp::TracePacket& packet : *trace.mutable_packet()) {
                  if (!packet.has_track_event()) continue;
                  packet.mutable_track_event()->clear_category_iids();
                  packet.mutable_track_event()->clear_debug_annotations();
                  packet.mutable_track_event()->set_track_uuid(2);
                }
              }),
              refuses("PyTorch did not write"));
}

TEST(PerfettoTracesTest, SizesAreLimited) {
  // A name of 1 MiB for each of a thousand slices.
  EXPECT_THAT(ErrorOf([](pp::Trace& trace) {
                pp::TracePacket begin = trace.packet(8), end = trace.packet(8 + 5);
                for (int i = 0; i < 1000; ++i) *trace.add_packet() = begin;
                for (int i = 0; i < 1000; ++i) *trace.add_packet() = end;
                trace.mutable_packet(7)->mutable_interned_data()->mutable_event_names(0)->set_name(
                    std::string(1 << 20, 'x'));
              }),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("names are too long")));
  EXPECT_THAT(ErrorOf([](pp::Trace& trace) {
                pp::DebugAnnotation* inner =
                    trace.mutable_packet(8)->mutable_track_event()->add_debug_annotations();
                for (int i = 0; i < 100; ++i) inner = inner->add_array_values();
              }),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("not a packet of at most")));
  EXPECT_THAT(ErrorOf([](pp::Trace& trace) {
                trace.mutable_packet(7)->mutable_interned_data()->mutable_event_names(0)->set_name(
                    std::string(64 << 20, 'x'));
              }),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("not a packet of at most")));
}

TEST(PerfettoTracesTest, ImpossibleTimesBecomeZero) {
  pp::Trace trace = MakeRank(0, Version::kNewer).Packets();
  // An end before its begin, and a begin before all clocks.
  trace.mutable_packet(13)->set_timestamp(1);
  trace.mutable_packet(9)->set_timestamp(0);
  const OpenedTraces opened = OpenTraces({{"a.pftrace", trace.SerializeAsString()}});
  ASSERT_OK(opened.status);
  EXPECT_THAT(opened.traces[0],
              HasSubstr(R"("name":"ProfilerStep#7","cat":"user_annotation",)"
                        R"("pid":4711,"tid":4712,"ts":86400000000.000,"dur":0.000)"));
  EXPECT_THAT(opened.traces[0], HasSubstr(R"("ts":0.000)"));
}

TEST(PerfettoTracesTest, RanksAreThoseOfTheCallsElseOfTheNames) {
  const auto trace_of = [](const std::string& args) {
    Encoder encoder(Version::kNewer);
    encoder.AddGroup({{"cpu_op", "record_param_comms", 1, 1, 0, 10,
                       absl::StrCat(R"({"External id":1,"Group size":2,)", args, "}")}});
    return encoder.Bytes();
  };
  const std::string members = R"(,"Rank":1,"Process Group Ranks":"[4, 6]")";
  const auto rank_of = [&](const char* file, const char* call) {
    const OpenedTraces opened =
        OpenTraces({{file, trace_of(absl::StrCat("\"Collective name\":\"", call, "\"", members))}});
    EXPECT_OK(opened.status);
    const bool is_told = opened.notes.empty();
    return absl::StrCat(opened.collectives[0].devices[0].global_id, is_told ? "" : " by name");
  };
  EXPECT_EQ(rank_of("rank3.pftrace", "_allgather_base"), "6");
  EXPECT_EQ(rank_of("rank3.pftrace", "_reduce_scatter_base"), "6");
  EXPECT_EQ(rank_of("rank3.pftrace", "all_to_allv"), "6");
  // Their rank is the root's or the peer's.
  EXPECT_EQ(rank_of("rank3.pftrace", "broadcast"), "3 by name");
  EXPECT_EQ(rank_of("t_5.pftrace", "recv"), "5 by name");
  EXPECT_EQ(rank_of("t.pftrace", "reduce"), "0 by name");
  EXPECT_THAT(OpenTraces({{"t2.pftrace", trace_of(R"("a":"b")")}}).notes,
              ElementsAre(HasSubstr("t2.pftrace: no call tells its rank; by its name it is 2")));
  EXPECT_THAT(OpenTraces({{"t.pftrace", trace_of(R"("a":"b")")}}).notes,
              ElementsAre(HasSubstr("tells its rank, nor does its name; it is taken to be 0")));
}

TEST(PerfettoTracesTest, DamagedFilesAreRefusedOrRead) {
  const PerfettoSource source;
  std::mt19937_64 random(7);
  size_t read = 0, refused = 0;
  const auto try_bytes = [&](const std::string& bytes) {
    source.Detect(FileHead(bytes));
    const absl::Status status =
        source
            .Convert(
                1,
                [&](size_t) {
                  return absl::StatusOr<InputFile>(InputFile::OfBytes(bytes, "d.pftrace"));
                },
                {},
                [&](size_t, const std::string& trace, absl::string_view) {
                  EXPECT_OK(LoadTraceJson(trace, "t.json").status());
                  return absl::OkStatus();
                })
            .status();
    (status.ok() ? read : refused) += 1;
    if (!status.ok()) {
      EXPECT_THAT(status.message(), HasSubstr("d.pftrace: "));
    }
  };
  for (const Version version : {Version::kOlder, Version::kNewer}) {
    const std::string whole = MakeRank(0, version).Bytes();
    for (size_t size = 0; size < whole.size(); ++size) try_bytes(whole.substr(0, size));
    for (int i = 0; i < 3000; ++i) try_bytes(Damage(whole, random));
  }
  EXPECT_GT(read, 500);
  EXPECT_GT(refused, 500);
}

}  // namespace
}  // namespace meridian
