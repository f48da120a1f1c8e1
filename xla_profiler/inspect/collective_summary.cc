#include "xla_profiler/inspect/collective_summary.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "xla_profiler/base/status_macros.h"
#include "xla_profiler/base/tables/text_table.h"
#include "xla_profiler/base/tables/time_text.h"
#include "xla_profiler/base/timespan.h"
#include "xla_profiler/collectives/collective_event.h"
#include "xla_profiler/collectives/xspace_collectives.h"

namespace meridian {
namespace {

constexpr size_t kMaxGroupsText = 200;

// Groups can name millions: only as many are written as are shown.
std::string GroupsText(const CollectiveOp& op) {
  std::string text;
  if (HasPairs(op.kind)) {
    for (const SourceTargetPair& pair : op.pairs) {
      if (text.size() > kMaxGroupsText) break;
      absl::StrAppend(&text, text.empty() ? "" : ",", pair.source, "->", pair.target);
    }
  }
  for (size_t g = 0; g < op.groups.size() && text.size() <= kMaxGroupsText; ++g) {
    const absl::Span<const int64_t> group = op.groups[g];
    const size_t shown = std::min(group.size(), kMaxGroupsText);
    absl::StrAppend(&text, text.empty() ? "{" : ",{", absl::StrJoin(group.subspan(0, shown), ","),
                    shown < group.size() ? ",..." : "", "}");
  }
  return FirstCharacters(text, kMaxGroupsText);
}

int64_t SaturatingAdd(int64_t a, int64_t b) {
  int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? std::numeric_limits<int64_t>::max() : sum;
}

// Sums up events of equal kind, size and groups.
class Summary {
 public:
  explicit Summary(const ProfileCollectives& profile) {
    for (const CollectiveOp& op : profile.ops) {
      rows_of_ops_.push_back(&rows_[{op.kind, op.operand_bytes, GroupsText(op)}]);
    }
    for (const CollectiveEvent& event : profile.events) Add(event);
  }

  void Write(XSpaceReport* report) const {
    for (const auto& [key, row] : rows_) {
      if (row.events == 0) continue;
      CollectiveReport* out = report->add_collectives();
      out->set_kind(std::string(CollectiveKindName(std::get<0>(key))));
      out->set_operand_bytes(std::get<1>(key));
      out->set_groups(std::get<2>(key));
      out->set_instructions(static_cast<int64_t>(row.instructions.size()));
      out->set_events(row.events);
      out->set_events_without_run(row.without_run);
      out->set_total_duration_ps(row.total_ps);
      out->set_shortest_duration_ps(row.shortest_ps);
    }
    std::stable_sort(report->mutable_collectives()->begin(), report->mutable_collectives()->end(),
                     [](const CollectiveReport& a, const CollectiveReport& b) {
                       return a.total_duration_ps() > b.total_duration_ps();
                     });
  }

 private:
  struct Row {
    std::set<uint32_t> instructions;
    int64_t events = 0;
    int64_t without_run = 0;
    int64_t total_ps = 0;
    int64_t shortest_ps = 0;
  };

  void Add(const CollectiveEvent& event) {
    Row& row = *rows_of_ops_[event.op];
    // Pieces far apart may span more than 2^63 ps.
    const int64_t duration_ps = Timespan::FromEndPoints(event.start_ps, event.end_ps).duration_ps();
    row.instructions.insert(event.op);
    row.shortest_ps = row.events == 0 ? duration_ps : std::min(row.shortest_ps, duration_ps);
    row.total_ps = SaturatingAdd(row.total_ps, duration_ps);
    ++row.events;
    if (!event.run_id.has_value()) ++row.without_run;
  }

  // Rows keep their address.
  std::map<std::tuple<CollectiveKind, int64_t, std::string>, Row> rows_;
  std::vector<Row*> rows_of_ops_;
};

void WriteDevices(const ProfileCollectives& profile, XSpaceReport* report) {
  // One profile tells ranks only for devices whose id it tells.
  const std::vector<int64_t>& ids = profile.assigned_devices;
  for (const LocalDevice& device : profile.devices) {
    DeviceReport* out = report->add_devices();
    out->set_name(device.name);
    out->set_source(std::string(DeviceIdSourceName(device.source)));
    if (device.global_id == kUnknownId) continue;
    out->set_global_id(device.global_id);
    const auto it = std::lower_bound(ids.begin(), ids.end(), device.global_id);
    if (it != ids.end() && *it == device.global_id) out->set_rank(it - ids.begin());
  }
}

std::string Optional(bool known, int64_t number) { return known ? absl::StrCat(number) : "?"; }

}  // namespace

absl::Status AddCollectives(const XSpaceReader& reader, XSpaceReport* report) {
  XSpaceCollectivesOptions options;
  // Durations and counts need no absolute time.
  if (!report->has_profile_start_ns()) options.profile_start_ns = 0;
  ASSIGN_OR_RETURN(const ProfileCollectives profile, ReadXSpaceCollectives(reader, options));
  if (!profile.events.empty()) WriteDevices(profile, report);
  Summary(profile).Write(report);
  for (const auto& [reason, entry] : profile.unresolved.entries()) {
    UnresolvedReport* out = report->add_unresolved();
    out->set_reason(reason);
    out->set_count(entry.count);
    out->set_example(entry.example);
  }
  return absl::OkStatus();
}

std::string FormatCollectives(const XSpaceReport& report) {
  std::string out;
  constexpr TextTable::Align kRight = TextTable::Align::kRight;
  constexpr size_t kMaxWidth = 60;
  if (report.devices_size() > 0) {
    TextTable table({{"device"}, {"global id", kRight}, {"rank", kRight}, {"known by"}});
    for (const DeviceReport& device : report.devices()) {
      table.AddRow({device.name(), Optional(device.has_global_id(), device.global_id()),
                    Optional(device.has_rank(), device.rank()), device.source()});
    }
    absl::StrAppend(&out, "\n", table.ToString());
  }
  if (report.collectives_size() > 0) {
    TextTable table({{"collective"},
                     {"bytes", kRight},
                     {"groups"},
                     {"ops", kRight},
                     {"events", kRight},
                     {"no run", kRight},
                     {"total ms", kRight},
                     {"shortest ms", kRight}});
    for (const CollectiveReport& row : report.collectives()) {
      table.AddRow({row.kind(), WithThousands(row.operand_bytes()),
                    FirstCharacters(row.groups(), kMaxWidth), WithThousands(row.instructions()),
                    WithThousands(row.events()), WithThousands(row.events_without_run()),
                    FormatMillis(row.total_duration_ps(), 6),
                    FormatMillis(row.shortest_duration_ps(), 6)});
    }
    absl::StrAppend(&out, "\n", table.ToString());
  }
  if (report.unresolved_size() > 0) {
    TextTable table({{"not resolved"}, {"count", kRight}, {"first example"}});
    for (const UnresolvedReport& row : report.unresolved()) {
      table.AddRow(
          {row.reason(), WithThousands(row.count()), FirstCharacters(row.example(), kMaxWidth)});
    }
    absl::StrAppend(&out, "\n", table.ToString());
  }
  return out;
}

}  // namespace meridian
