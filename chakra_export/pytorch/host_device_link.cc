#include "chakra_export/pytorch/host_device_link.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "xla_profiler/events/event_category.h"
#include "xla_profiler/kineto/event_table_json.h"

namespace meridian {
namespace {

// Comparing each thread of the host trace with each of the profile takes this many pairs at most;
// each costs as many steps as the two have calls.
constexpr size_t kMaxThreadPairs = 10'000;

// What a thread called, in order: the names as numbers, and the calls themselves.
template <typename Call>
struct CallSequence {
  std::vector<uint64_t> names;
  std::vector<Call> calls;
};

// Returns where `part`, which is not empty, first stands in `whole` as it is; nullopt when it does
// not. Linear (Knuth, Morris and Pratt).
std::optional<size_t> FindPart(const std::vector<uint64_t>& whole,
                               const std::vector<uint64_t>& part) {
  // The length of the longest proper prefix of part that ends at each position.
  std::vector<size_t> border(part.size(), 0);
  for (size_t i = 1, length = 0; i < part.size(); ++i) {
    while (length > 0 && part[i] != part[length]) length = border[length - 1];
    if (part[i] == part[length]) ++length;
    border[i] = length;
  }
  for (size_t i = 0, length = 0; i < whole.size(); ++i) {
    while (length > 0 && whole[i] != part[length]) length = border[length - 1];
    if (whole[i] == part[length]) ++length;
    if (length == part.size()) return i + 1 - length;
  }
  return std::nullopt;
}

// True for events that host traces have operators for.
bool IsHostOpCategory(EventCategory category) {
  return category == EventCategory::kCpuOp || category == EventCategory::kAnnotation ||
         category == EventCategory::kStep;
}

class Linker {
 public:
  Linker(const HostTrace& host, const EventTable& table, absl::string_view text)
      : host_(host), table_(table), text_(text) {}

  HostDeviceLink Link() {
    for (EventRow row = 0; row < table_.size(); ++row) {
      if (IsHostOpCategory(table_.category(row)) &&
          table_.track(table_.track_id(row)).kind == TrackKind::kHost) {
        rows_.push_back(row);
      }
    }
    IndexOps();
    if (!LinkByIds(LinkMethod::kRecordFunctionId, "Record function id")) {
      HostDeviceLink best = std::move(link_);
      if (!LinkByIds(LinkMethod::kExternalId, "External id")) {
        KeepBetter(&best);
        LinkByNames();
        KeepBetter(&best);
        link_ = std::move(best);
      }
    }
    CountUnlinked();
    return std::move(link_);
  }

 private:
  void IndexOps() {
    for (HostOpIndex op = 0; op < host_.ops().size(); ++op) {
      if (host_.IsStructural(op)) continue;
      ++calls_;
      const uint64_t id = host_.ops()[op].record_function_id;
      if (id != 0) op_of_id_.try_emplace(id, op);
    }
  }

  void Clear(LinkMethod method) {
    link_ = HostDeviceLink();
    link_.method = method;
    link_.op_of_row.assign(table_.size(), kNoHostOp);
    link_.row_of_op.assign(host_.ops().size(), kNoRow);
  }

  void KeepBetter(HostDeviceLink* best) {
    if (link_.linked >= best->linked) *best = std::move(link_);
  }

  void AddLink(HostOpIndex op, EventRow row) {
    link_.op_of_row[row] = op;
    link_.row_of_op[op] = row;
    ++link_.linked;
  }

  // Returns whether it linked at least half of what it could.
  bool LinkByIds(LinkMethod method, absl::string_view key) {
    Clear(method);
    for (const EventRow row : rows_) {
      const std::optional<uint64_t> id = ReadTraceJsonArgs(text_, table_, row).Find(key).AsUint64();
      const char* reason = LinkById(row, id);
      if (reason != nullptr) ++link_.unlinked_rows[reason];
    }
    return link_.linked > 0 &&
           2 * link_.linked >= static_cast<int64_t>(std::min<size_t>(rows_.size(), calls_));
  }

  // Returns why it is not linked, or nullptr.
  const char* LinkById(EventRow row, std::optional<uint64_t> id) {
    if (!id.has_value() || *id == 0) return "the event has no id";
    const auto it = op_of_id_.find(*id);
    if (it == op_of_id_.end()) return "no operator of that id in the host trace";
    if (host_.name(it->second) != table_.name(row))
      return "the operator of that id has another name";
    if (link_.row_of_op[it->second] != kNoRow) return "an earlier event has the same id";
    AddLink(it->second, row);
    return nullptr;
  }

  void LinkByNames() {
    Clear(LinkMethod::kOpNames);
    std::vector<CallSequence<HostOpIndex>> threads = HostThreads();
    std::vector<CallSequence<EventRow>> tracks = Tracks();
    const bool are_too_many = threads.size() * tracks.size() > kMaxThreadPairs;
    if (are_too_many) threads.clear();
    // The longer, the less by chance.
    std::stable_sort(threads.begin(), threads.end(),
                     [](const auto& a, const auto& b) { return a.calls.size() > b.calls.size(); });
    for (const CallSequence<HostOpIndex>& thread : threads) {
      for (auto track = tracks.begin(); track != tracks.end(); ++track) {
        const std::optional<size_t> found = FindPart(track->names, thread.names);
        if (!found.has_value()) continue;
        for (size_t i = 0; i < thread.calls.size(); ++i) {
          AddLink(thread.calls[i], track->calls[*found + i]);
        }
        tracks.erase(track);
        break;
      }
    }
    const char* reason = are_too_many ? "too many threads to compare what they called"
                                      : "no thread of the host trace called it here";
    for (const EventRow row : rows_) {
      if (link_.op_of_row[row] == kNoHostOp) {
        ++link_.unlinked_rows[reason];
      }
    }
  }

  uint64_t NameNumber(absl::string_view name) {
    return numbers_.try_emplace(name, numbers_.size()).first->second;
  }

  // Ids grow from call to call, so their order is that of the calls.
  std::vector<CallSequence<HostOpIndex>> HostThreads() {
    std::map<int64_t, std::vector<HostOpIndex>> threads;
    for (HostOpIndex op = 0; op < host_.ops().size(); ++op) {
      if (!host_.IsStructural(op)) threads[host_.ops()[op].thread].push_back(op);
    }
    std::vector<CallSequence<HostOpIndex>> sequences;
    for (auto& [id, calls] : threads) {
      CallSequence<HostOpIndex>& sequence = sequences.emplace_back();
      for (const HostOpIndex op : calls) sequence.names.push_back(NameNumber(host_.name(op)));
      sequence.calls = std::move(calls);
    }
    return sequences;
  }

  // The profiler lists the events of a thread as they began, which tells more than their times:
  // many begin in the same microsecond.
  std::vector<CallSequence<EventRow>> Tracks() {
    std::map<TrackId, std::vector<EventRow>> tracks;
    for (const EventRow row : rows_) tracks[table_.track_id(row)].push_back(row);
    std::vector<CallSequence<EventRow>> sequences;
    for (auto& [id, calls] : tracks) {
      std::stable_sort(calls.begin(), calls.end(), [this](EventRow a, EventRow b) {
        return table_.start_ps(a) < table_.start_ps(b);
      });
      CallSequence<EventRow>& sequence = sequences.emplace_back();
      for (const EventRow row : calls) sequence.names.push_back(NameNumber(table_.name(row)));
      sequence.calls = std::move(calls);
    }
    return sequences;
  }

  void CountUnlinked() {
    for (HostOpIndex op = 0; op < host_.ops().size(); ++op) {
      if (link_.row_of_op[op] != kNoRow) continue;
      ++link_.unlinked_ops[host_.IsStructural(op) ? "stands for no call"
                                                  : "no such event in the profile"];
    }
  }

  const HostTrace& host_;
  const EventTable& table_;
  const absl::string_view text_;
  // The events that may be linked, and how many operators may be.
  std::vector<EventRow> rows_;
  size_t calls_ = 0;
  absl::flat_hash_map<uint64_t, HostOpIndex> op_of_id_;
  absl::flat_hash_map<absl::string_view, uint64_t> numbers_;
  HostDeviceLink link_;
};

}  // namespace

absl::string_view LinkMethodName(LinkMethod method) {
  static constexpr absl::string_view kNames[] = {"rf_id", "external_id", "op_names"};
  return kNames[static_cast<size_t>(method)];
}

HostDeviceLink LinkHostTrace(const HostTrace& host, const EventTable& table,
                             absl::string_view text) {
  return Linker(host, table, text).Link();
}

}  // namespace meridian
