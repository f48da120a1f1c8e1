#include "xla_profiler/kineto/communication_calls.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "xla_profiler/base/json/json_cutter.h"
#include "xla_profiler/events/event_category.h"

namespace meridian {
namespace {

// Returns the size of an element by the name of PyTorch's scalar type, or of the type in C++.
std::optional<int64_t> BytesOfType(absl::string_view type) {
  static constexpr std::pair<int64_t, absl::string_view> kTypes[] = {
      {1,
       ",bool,byte,char,unsigned char,signed char,float8_e4m3fn,float8_e4m3fnuz,float8_e5m2,"
       "float8_e5m2fnuz,float8_e8m0fnu,"},
      {2, ",short,short int,uint16,half,bfloat16,"},
      {4, ",int,uint32,float,complexhalf,"},
      {8, ",long,long int,uint64,double,complexfloat,"},
      {16, ",complexdouble,"},
  };
  absl::ConsumePrefix(&type, "c10::");
  const std::string name = absl::StrCat(",", absl::AsciiStrToLower(type), ",");
  for (const auto& [size, types] : kTypes) {
    if (absl::StrContains(types, name)) return size;
  }
  return std::nullopt;
}

}  // namespace

std::optional<CollectiveKind> KindOfCall(absl::string_view name) {
  using Kind = CollectiveKind;
  static const auto& kinds = *new absl::flat_hash_map<absl::string_view, Kind>{
      {"allreduce", Kind::kAllReduce},
      {"allreducecoalesced", Kind::kAllReduce},
      {"allgather", Kind::kAllGather},
      {"allgatherbase", Kind::kAllGather},
      {"allgatherintotensorcoalesced", Kind::kAllGather},
      {"reducescatter", Kind::kReduceScatter},
      {"reducescatterbase", Kind::kReduceScatter},
      {"reducescattertensorcoalesced", Kind::kReduceScatter},
      {"alltoall", Kind::kAllToAll},
      {"alltoallbase", Kind::kAllToAll},
      {"alltoallv", Kind::kRaggedAllToAll},
      {"broadcast", Kind::kCollectiveBroadcast},
      {"broadcastoop", Kind::kCollectiveBroadcast},
      {"reduce", Kind::kCollectiveReduce},
      {"reduceoop", Kind::kCollectiveReduce},
      {"gather", Kind::kCollectiveGather},
      {"scatter", Kind::kCollectiveScatter},
      {"barrier", Kind::kBarrier},
      {"allreducebarrier", Kind::kBarrier},
      {"send", Kind::kSend},
      {"recv", Kind::kRecv}};
  if (!absl::ConsumePrefix(&name, "nccl:")) absl::ConsumePrefix(&name, "c10d::");
  const auto it = kinds.find(absl::StrReplaceAll(name, {{"_", ""}}));
  return it == kinds.end() ? std::nullopt : std::optional<Kind>(it->second);
}

std::optional<int64_t> MessageBytes(std::optional<int64_t> elements, absl::string_view type) {
  const std::optional<int64_t> size = BytesOfType(type);
  if (!elements.has_value() || !size.has_value() || *elements < 0 ||
      *elements > std::numeric_limits<int64_t>::max() / *size) {
    return std::nullopt;
  }
  return *elements * *size;
}

std::optional<int64_t> InputElements(const JsonValue& args, bool of_first) {
  JsonCutter tensors(args.Find("Input Dims").text());
  tensors.Enter('[');
  int64_t sum = 0, count = 0;
  while (!(of_first && count == 1) && tensors.NextElement()) {
    JsonCutter dims(tensors.CutValue());
    dims.Enter('[');
    int64_t product = 1, rank = 0;
    for (; dims.NextElement(); ++rank) {
      const std::optional<int64_t> dim = JsonValue(dims.CutValue()).AsInt64();
      if (!dim.has_value() || *dim < 0 || __builtin_mul_overflow(product, *dim, &product)) {
        return std::nullopt;
      }
    }
    if (rank == 0 || __builtin_add_overflow(sum, product, &sum)) return std::nullopt;
    ++count;
  }
  return count == 0 ? std::nullopt : std::optional<int64_t>(sum);
}

CommunicationCalls::CommunicationCalls(const EventTable& table) : table_(table) {
  for (EventRow row = 0; row < table.size(); ++row) {
    const EventCategory category = table.category(row);
    const absl::string_view name = table.name(row);
    const bool is_host = table.track(table.track_id(row)).kind == TrackKind::kHost;
    if (category == EventCategory::kAnnotation && is_host && absl::StartsWith(name, "nccl:")) {
      Thread& thread = threads_[table.track_id(row)];
      (name == "nccl:coalesced" ? thread.batches : thread.spans).push_back(row);
    } else if (category == EventCategory::kCpuOp && name == "record_param_comms") {
      threads_[table.track_id(row)].calls.push_back(row);
      threads_[table.track_id(row)].spans.push_back(row);
    } else if (category == EventCategory::kCpuOp && absl::StartsWith(name, "c10d::")) {
      threads_[table.track_id(row)].spans.push_back(row);
    }
  }
  const auto by_start = [&](EventRow a, EventRow b) {
    return table.start_ps(a) < table.start_ps(b);
  };
  for (auto& [track, thread] : threads_) {
    std::sort(thread.batches.begin(), thread.batches.end(), by_start);
    std::sort(thread.calls.begin(), thread.calls.end(), by_start);
    std::stable_sort(thread.spans.begin(), thread.spans.end(), by_start);
  }
}

std::vector<EventRow> CommunicationCalls::Around(EventRow launch) const {
  // They nest in three levels; what lies deeper has ended.
  constexpr int kMaxLookedAt = 8;
  std::vector<EventRow> around;
  const auto it = threads_.find(table_.track_id(launch));
  if (it == threads_.end()) return around;
  auto next = UpperBound(it->second.spans, table_.start_ps(launch));
  for (int i = 0; i < kMaxLookedAt && next != it->second.spans.begin(); ++i) {
    if (table_.end_ps(*--next) >= table_.start_ps(launch)) around.push_back(*next);
  }
  return around;
}

std::optional<EventRow> CommunicationCalls::BatchOf(EventRow launch) const {
  const auto it = threads_.find(table_.track_id(launch));
  if (it == threads_.end()) return std::nullopt;
  const std::vector<EventRow>& batches = it->second.batches;
  const auto next = UpperBound(batches, table_.start_ps(launch));
  if (next == batches.begin() || table_.end_ps(*(next - 1)) < table_.start_ps(launch)) {
    return std::nullopt;
  }
  return *(next - 1);
}

absl::Span<const EventRow> CommunicationCalls::CallsOf(EventRow batch) const {
  const Thread& thread = threads_.at(table_.track_id(batch));
  const auto first_batch = std::lower_bound(
      thread.batches.begin(), thread.batches.end(), table_.start_ps(batch),
      [&](EventRow row, int64_t time_ps) { return table_.start_ps(row) < time_ps; });
  int64_t since_ps = std::numeric_limits<int64_t>::min();
  if (first_batch != thread.batches.begin()) {
    since_ps = std::min(table_.end_ps(*(first_batch - 1)), table_.start_ps(batch));
  }
  const auto first = UpperBound(thread.calls, since_ps);
  const auto last = UpperBound(thread.calls, table_.end_ps(batch));
  return absl::MakeConstSpan(thread.calls)
      .subspan(first - thread.calls.begin(), std::max<std::ptrdiff_t>(0, last - first));
}

std::vector<EventRow>::const_iterator CommunicationCalls::UpperBound(
    const std::vector<EventRow>& rows, int64_t time_ps) const {
  return std::upper_bound(rows.begin(), rows.end(), time_ps,
                          [&](int64_t time, EventRow row) { return time < table_.start_ps(row); });
}

}  // namespace meridian
