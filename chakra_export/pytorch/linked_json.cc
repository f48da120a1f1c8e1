#include "chakra_export/pytorch/linked_json.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/json/exact_decimal.h"
#include "xla_profiler/base/json/json_writer.h"
#include "xla_profiler/base/picoseconds.h"

namespace meridian {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 18;

absl::string_view CategoryText(EventCategory category) {
  if (category == EventCategory::kMemcpy) return "gpu_memcpy";
  return category == EventCategory::kMemset ? "gpu_memset" : "kernel";
}

class Writer {
 public:
  Writer(const HostTrace& host, const EventTable& table, const HostDeviceLink& link,
         const RankTimeline& timeline, const RankCommunication& communication, ByteSink* sink)
      : host_(host),
        table_(table),
        link_(link),
        timeline_(timeline),
        communication_(communication),
        sink_(*sink) {}

  absl::Status Write() {
    NumberDeviceWork();
    CollectWaits();
    json_.BeginObject();
    for (const auto& [key, value] : host_.header()) {
      // The name has its escapes as it was written.
      json_.Key(
          JsonValue(absl::string_view(key.data() - 1, key.size() + 2)).AsString().value_or(""));
      json_.Raw(value.text());
    }
    json_.BeginArray("nodes", JsonLayout::kLines);
    for (HostOpIndex op = 0; op < host_.ops().size(); ++op) {
      AppendHostOp(op);
      RETURN_IF_ERROR(FlushWhenFull());
    }
    for (TimelineIndex node = 0; node < timeline_.nodes.size(); ++node) {
      if (timeline_.nodes[node].on_host) continue;
      AppendDeviceWork(node);
      RETURN_IF_ERROR(FlushWhenFull());
    }
    json_.EndArray();
    json_.EndObject();
    buffer_.push_back('\n');
    return sink_.Append(buffer_);
  }

 private:
  void NumberDeviceWork() {
    uint64_t next = host_.ops().empty() ? 1 : host_.ops().back().id + 1;
    device_ids_.assign(timeline_.nodes.size(), 0);
    for (TimelineIndex i = 0; i < timeline_.nodes.size(); ++i) {
      if (!timeline_.nodes[i].on_host) device_ids_[i] = next++;
    }
  }

  // What a thread waited for in a gap, or in a call that is no operator here, its next operator
  // has waited for.
  void CollectWaits() {
    std::vector<TimelineIndex> bearers(timeline_.nodes.size(), kNoTimelineNode);
    // The next operator of each thread.
    absl::flat_hash_map<TrackId, TimelineIndex> next;
    for (size_t i = timeline_.nodes.size(); i-- > 0;) {
      const TimelineNode& node = timeline_.nodes[i];
      if (!node.on_host) continue;
      TimelineIndex& bearer = next.try_emplace(node.track, kNoTimelineNode).first->second;
      if (node.row != kNoRow && link_.op_of_row[node.row] != kNoHostOp) {
        bearer = static_cast<TimelineIndex>(i);
      }
      bearers[i] = bearer;
    }
    for (const DependencyEdge& edge : timeline_.edges) {
      if (!edge.kinds.Contains(EdgeKind::kSync) || bearers[edge.node] == kNoTimelineNode) continue;
      waits_[bearers[edge.node]].push_back(edge.source);
    }
  }

  absl::Status FlushWhenFull() {
    if (buffer_.size() < kBufferBytes) return absl::OkStatus();
    RETURN_IF_ERROR(sink_.Append(buffer_));
    buffer_.clear();
    return absl::OkStatus();
  }

  void AppendHostOp(HostOpIndex op) {
    absl::string_view text = host_.Json(op).text();
    const EventRow row = link_.row_of_op[op];
    const TimelineIndex node = row == kNoRow ? kNoTimelineNode : timeline_.node_of_row[row];
    if (node == kNoTimelineNode || !absl::ConsumeSuffix(&text, "}")) return json_.Raw(text);
    json_.ContinueObject(text);
    AppendTimes(node, table_.duration_ps(row));
    AppendWaits(node);
    json_.EndObject();
  }

  void AppendTimes(TimelineIndex node, int64_t inclusive_ps) {
    const TimelineNode& from = timeline_.nodes[node];
    const int64_t start_ns = table_.base_ns() + table_.start_ps(from.row) / kPsPerNs;
    json_.Key("ts");
    json_.Raw(absl::StrCat(start_ns / 1000, ".",
                           absl::Dec(start_ns % 1000 < 0 ? 0 : start_ns % 1000, absl::kZeroPad3)));
    AppendDuration("inclusive_dur", inclusive_ps);
    AppendDuration("exclusive_dur", from.duration_ps);
  }

  void AppendDuration(absl::string_view key, int64_t duration_ps) {
    std::string micros;
    AppendPicosAsMicros(duration_ps, &micros);
    json_.Key(key);
    json_.Raw(micros);
  }

  void AppendWaits(TimelineIndex node) {
    const auto it = waits_.find(node);
    if (it == waits_.end()) return;
    std::vector<uint64_t> works;
    // The last that it waited for; the format has room for one.
    HostOpIndex other_thread = kNoHostOp;
    for (const TimelineIndex source : it->second) {
      const TimelineNode& from = timeline_.nodes[source];
      if (!from.on_host) {
        works.push_back(device_ids_[source]);
      } else if (from.row != kNoRow && link_.op_of_row[from.row] != kNoHostOp) {
        other_thread = link_.op_of_row[from.row];
      }
    }
    if (other_thread != kNoHostOp) {
      json_.Member("inter_thread_dep", host_.ops()[other_thread].id);
    }
    if (works.empty()) return;
    json_.Key("sync_dep");
    json_.List(works);
  }

  void AppendDeviceWork(TimelineIndex node) {
    const TimelineNode& work = timeline_.nodes[node];
    json_.BeginObject();
    json_.Member("id", device_ids_[node]);
    json_.Member("name", table_.name(work.row));
    const bool has_op = work.launching_op != kNoHostOp;
    const bool has_parent = has_op || !host_.ops().empty();
    json_.Member("ctrl_deps", has_parent ? host_.ops()[has_op ? work.launching_op : 0].id : 0);
    if (has_op) {
      CopyMembers(host_.Json(work.launching_op));
    } else {
      AppendNoTensorsAndAttributes();
    }
    json_.Member("cat", CategoryText(table_.category(work.row)));
    json_.Member("ph", "X");
    json_.Member("stream", StreamNumber(work.track));
    AppendTimes(node, work.duration_ps);
    const auto communication = communication_.nodes.find(node);
    if (communication != communication_.nodes.end()) {
      json_.Member("pg_name", communication->second[0].process_group);
    }
    json_.EndObject();
  }

  // Readers of this format take the stream for a number, and the name of the track is one unless
  // the profile's writer is not PyTorch.
  int64_t StreamNumber(TrackId track) const {
    int64_t number = 0;
    return absl::SimpleAtoi(table_.track(track).thread, &number) ? number : track;
  }

  // What PyTorch writes of an operator without arguments that nobody called, for work whose
  // operator is not known: readers of this format expect every node to have these members.
  void AppendNoTensorsAndAttributes() {
    for (const absl::string_view key : {"inputs", "outputs"}) {
      json_.Key(key);
      json_.Raw(R"({"values": [], "shapes": [], "types": []})");
    }
    json_.BeginArray("attrs");
    for (const absl::string_view name :
         {"rf_id", "fw_parent", "seq_id", "scope", "tid", "fw_tid"}) {
      const bool is_sequence = name == "seq_id";
      json_.BeginObject();
      json_.Member("name", name);
      json_.Member("type", is_sequence ? "int64" : "uint64");
      json_.Member("value", is_sequence ? -1 : 0);
      json_.EndObject();
    }
    json_.Raw(R"({"name": "op_schema", "type": "string", "value": ""})");
    json_.EndArray();
  }

  void CopyMembers(JsonValue op) {
    for (const absl::string_view key : {"inputs", "outputs", "attrs"}) {
      const JsonValue value = op.Find(key);
      if (!value.exists()) continue;
      json_.Key(key);
      json_.Raw(value.text());
    }
  }

  const HostTrace& host_;
  const EventTable& table_;
  const HostDeviceLink& link_;
  const RankTimeline& timeline_;
  const RankCommunication& communication_;
  ByteSink& sink_;
  std::vector<uint64_t> device_ids_;
  // What the thread of a host node waited for, by host node.
  absl::flat_hash_map<TimelineIndex, std::vector<TimelineIndex>> waits_;
  std::string buffer_;
  JsonWriter json_{&buffer_, JsonSpacing::kSpaced};
};

}  // namespace

absl::Status WriteLinkedJson(const HostTrace& host, const EventTable& table,
                             const HostDeviceLink& link, const RankTimeline& timeline,
                             const RankCommunication& communication, ByteSink* sink) {
  return Writer(host, table, link, timeline, communication, sink).Write();
}

}  // namespace meridian
