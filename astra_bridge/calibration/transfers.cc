#include "astra_bridge/calibration/transfers.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "astra_bridge/calibration/nccl_tests.h"
#include "trace_alignment/collectives/happens_before.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/input_file.h"
#include "xla_profiler/base/picoseconds.h"
#include "xla_profiler/base/statistics.h"
#include "xla_profiler/base/tables/text_table.h"
#include "xla_profiler/sources/file_head.h"

namespace meridian {
namespace {

// Returns for each instance whether one of its members was in another at the same time.
std::vector<bool> FindOverlapped(const CollectiveTable& table) {
  struct Part {
    uint32_t rank;
    int64_t start_ps;
    int64_t end_ps;
    uint32_t instance;
  };
  std::vector<Part> parts;
  parts.reserve(table.members().size());
  for (uint32_t i = 0; i < table.instances().size(); ++i) {
    for (const CollectiveMember& member : table.MembersOf(table.instances()[i])) {
      parts.push_back({member.rank, member.start_ps, member.end_ps, i});
    }
  }
  std::sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) {
    return std::make_pair(a.rank, a.start_ps) < std::make_pair(b.rank, b.start_ps);
  });
  std::vector<bool> overlapped(table.instances().size());
  const Part* last_to_end = nullptr;
  for (const Part& part : parts) {
    if (last_to_end != nullptr && last_to_end->rank != part.rank) last_to_end = nullptr;
    if (last_to_end != nullptr && part.start_ps < last_to_end->end_ps) {
      overlapped[part.instance] = true;
      overlapped[last_to_end->instance] = true;
    }
    if (last_to_end == nullptr || part.end_ps > last_to_end->end_ps) last_to_end = &part;
  }
  return overlapped;
}

// Sets the times of a sample and returns its group.
std::vector<int32_t> TakeGroup(const CollectiveTable& table, const CollectiveInstance& instance,
                               TransferSample* sample) {
  const std::optional<GroupTiming> timing = TimingOf(table, instance);
  if (!timing.has_value()) return {};
  sample->transfer_ns = static_cast<double>(timing->transfer_ps) / kPsPerNs;
  const auto& ranks = table.groups()[instance.group];
  return {ranks.begin(), ranks.end()};
}

// The same for a permute. The pairs move the same bytes at the same time; their median stands for
// all.
std::vector<int32_t> TakePairs(const CollectiveTable& table, const CollectiveInstance& instance,
                               TransferSample* sample) {
  const absl::Span<const CollectiveMember> members = table.MembersOf(instance);
  std::vector<int32_t> group;
  std::vector<double> transfers_ns;
  std::set<uint32_t> senders, receivers;
  for (const MemberPair& pair : table.PairsOf(instance)) {
    const CollectiveMember& source = members[pair.source];
    const CollectiveMember& target = members[pair.target];
    if (source.rank == target.rank) continue;
    senders.insert(source.rank);
    receivers.insert(target.rank);
    sample->is_both_ways |= receivers.count(source.rank) + senders.count(target.rank) > 0;
    if (group.empty()) {
      group = {static_cast<int32_t>(source.rank), static_cast<int32_t>(target.rank)};
    }
    transfers_ns.push_back(static_cast<double>(PairTransferPs(table, instance, pair)) / kPsPerNs);
  }
  if (group.empty()) return group;
  sample->pairs = static_cast<int32_t>(transfers_ns.size());
  sample->transfer_ns = Median(std::move(transfers_ns));
  return group;
}

// "/device:GPU:0" is a GPU, and so is Kineto's "GPU 0"; XLA:CPU's devices are no planes.
std::string DeviceKind(absl::string_view device_name) {
  if (absl::StartsWith(device_name, "GPU ")) return "GPU";
  if (!absl::ConsumePrefix(&device_name, "/device:")) return "CPU";
  return std::string(device_name.substr(0, device_name.find(':')));
}

using ProfileFolder = std::pair<std::string, std::vector<std::string>>;

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

// Each host writes into a folder of its own below plugins/profile/. Those of one run are not told
// from several runs by their names, but no host has two profiles of one run.
std::vector<ProfileFolder> SplitByFolder(const std::vector<std::string>& traces) {
  struct Sessions {
    std::set<std::string> folders, names;
    bool has_host_twice = false;
  };
  std::map<std::string, Sessions> sessions_below;
  for (const std::string& trace : traces) {
    Sessions& sessions = sessions_below[FolderOf(FolderOf(trace))];
    sessions.folders.insert(FolderOf(trace));
    sessions.has_host_twice |= !sessions.names.insert(trace.substr(trace.rfind('/') + 1)).second;
  }
  std::vector<ProfileFolder> folders;
  for (const std::string& trace : traces) {
    std::string name = FolderOf(trace);
    const std::string parent = FolderOf(name);
    const Sessions& sessions = sessions_below[parent];
    // Names of other profiles hold the process and the time, and never come twice.
    const bool is_named_after_host = absl::EndsWith(absl::StripSuffix(trace, ".gz"), ".xplane.pb");
    if (is_named_after_host && absl::EndsWith(parent, "/plugins/profile") &&
        sessions.folders.size() > 1 && !sessions.has_host_twice) {
      name = parent;
    }
    auto found = std::find_if(folders.begin(), folders.end(),
                              [&](const ProfileFolder& known) { return known.first == name; });
    if (found == folders.end()) found = folders.insert(folders.end(), {name, {}});
    found->second.push_back(trace);
  }
  return folders;
}

}  // namespace

int32_t RanksPerNode(absl::Span<const uint32_t> node_of_rank) {
  size_t per_node = 0;
  while (per_node < node_of_rank.size() && node_of_rank[per_node] == node_of_rank[0]) ++per_node;
  std::set<uint32_t> seen;
  for (size_t first = 0; first < node_of_rank.size(); first += per_node) {
    const absl::Span<const uint32_t> node = node_of_rank.subspan(first, per_node);
    if (node.size() < per_node || !seen.insert(node[0]).second) return 0;
    if (std::count(node.begin(), node.end(), node[0]) != static_cast<int64_t>(per_node)) return 0;
  }
  return static_cast<int32_t>(per_node);
}

TransferSamples TakeTransfers(const CollectiveTable& table) {
  const std::vector<bool> overlapped = FindOverlapped(table);
  std::map<std::vector<int32_t>, uint32_t> positions;
  TransferSamples result;
  result.ranks = static_cast<int32_t>(table.node_of_rank().size());
  for (size_t i = 0; i < table.instances().size(); ++i) {
    const CollectiveInstance& instance = table.instances()[i];
    const MatchedOp& op = table.OpOf(instance);
    const std::optional<CollectiveKind> kind = TimedKindOf(op.kind);
    if (!kind.has_value()) {
      ++result.other_kinds;
      continue;
    }
    if (instance.missing > 0) {
      ++result.incomplete;
      continue;
    }
    TransferSample sample;
    sample.kind = *kind;
    sample.bytes = op.operand_bytes;
    sample.overlapped = overlapped[i];
    for (const CollectiveMember& member : table.MembersOf(instance)) {
      sample.start_ns = std::max(sample.start_ns, FloorToNs(member.start_ps));
    }
    std::vector<int32_t> group = *kind == CollectiveKind::kPointToPoint
                                     ? TakePairs(table, instance, &sample)
                                     : TakeGroup(table, instance, &sample);
    if (group.size() < 2 || sample.bytes <= 0 || sample.transfer_ns <= 0) {
      ++result.without_transfer;
      continue;
    }
    const uint32_t next = static_cast<uint32_t>(result.groups.size());
    const auto [found, is_new] = positions.insert({group, next});
    if (is_new) result.groups.push_back(std::move(group));
    sample.group = found->second;
    result.samples.push_back(sample);
  }
  return result;
}

std::vector<int64_t> WholeSteps(const CollectiveRun& run) {
  size_t profiles_with_any = 0;
  std::map<int64_t, size_t> profiles_with;
  for (const ProfileCollectives& profile : run.profiles) {
    std::set<int64_t> steps;
    for (const CollectiveEvent& event : profile.events) {
      if (event.step.has_value()) steps.insert(*event.step);
    }
    if (!steps.empty()) ++profiles_with_any;
    for (int64_t step : steps) ++profiles_with[step];
  }
  std::vector<int64_t> steps;
  for (const auto& [step, profiles] : profiles_with) {
    if (profiles == profiles_with_any) steps.push_back(step);
  }
  if (steps.size() >= 3) {
    steps.pop_back();
    steps.erase(steps.begin());
  }
  return steps;
}

absl::StatusOr<CalibrationRun> MakeCalibrationRun(const std::string& folder,
                                                  const CollectiveRun& run,
                                                  const CalibrationRunOptions& options) {
  RETURN_IF_ERROR(CheckOneRun(run));
  const HappensBefore check = CheckHappensBefore(run.table);
  if (!options.allow_violations) RETURN_IF_ERROR(RefuseViolations(run, check));
  CalibrationRun result;
  result.folder = folder;
  result.transfers = TakeTransfers(run.table);
  result.ranks_per_node = RanksPerNode(run.table.node_of_rank());
  result.steps = WholeSteps(run);
  for (const std::string& note : run.ranks.notes) result.notes.push_back(Printable(note));
  if (!check.violations.empty()) {
    result.notes.push_back(absl::StrCat(Printable(folder), ": ", check.violations.size(),
                                        " collectives end before they began somewhere: its clocks "
                                        "disagree, and its transfers are wrong by as much"));
  }
  for (const ProfileCollectives& profile : run.profiles) {
    for (const LocalDevice& device : profile.devices) {
      result.device_kinds.insert(DeviceKind(device.name));
    }
  }
  for (const std::vector<int32_t>& group : result.transfers.groups) {
    std::set<int64_t> nodes;
    for (int32_t rank : group) nodes.insert(run.table.node_of_rank()[rank]);
    (nodes.size() > 1 ? result.across_nodes : result.within_nodes) = true;
  }
  return result;
}

absl::StatusOr<std::vector<CalibrationRun>> ReadCalibrationRuns(
    FileSystem& file_system, const std::vector<std::string>& traces,
    const CalibrationRunOptions& options) {
  std::vector<CalibrationRun> runs;
  size_t files_done = 0;
  std::vector<std::string> profiles;
  for (const std::string& trace : traces) {
    ASSIGN_OR_RETURN(const FileHead head, FileHead::Read(file_system, trace));
    if (!IsNcclTestsTable(head.text())) {
      profiles.push_back(trace);
      continue;
    }
    ASSIGN_OR_RETURN(const InputFile file,
                     InputFile::Open(file_system, trace, options.reader.input));
    ASSIGN_OR_RETURN(runs.emplace_back(), ParseNcclTestsTable(file.bytes(), trace));
    ++files_done;
  }
  for (auto& [folder, of_folder] : SplitByFolder(profiles)) {
    CollectiveRunOptions read;
    read.reader = options.reader;
    read.conversion.durations_suffice = true;
    if (options.progress) read.progress = [&](size_t file) { options.progress(files_done + file); };
    ASSIGN_OR_RETURN(const CollectiveRun run, ReadCollectiveRun(file_system, of_folder, read));
    files_done += of_folder.size();
    ASSIGN_OR_RETURN(runs.emplace_back(), MakeCalibrationRun(folder, run, options));
    runs.back().traces = std::move(of_folder);
  }
  return runs;
}

CellKey KeyOf(const TransferSamples& run, const TransferSample& sample) {
  return {sample.kind,  sample.bytes,       run.ranks, run.groups[sample.group],
          sample.pairs, sample.is_both_ways};
}

std::vector<TransferCell> MakeTransferCells(absl::Span<const CalibrationRun> runs,
                                            const CellOptions& options) {
  std::map<CellKey, TransferCell> cells;
  for (const CalibrationRun& run : runs) {
    const TransferSamples& transfers = run.transfers;
    std::map<CellKey, std::vector<const TransferSample*>> repeats_by_cell;
    for (const TransferSample& sample : transfers.samples) {
      if (sample.overlapped && !options.keep_overlapped) continue;
      repeats_by_cell[KeyOf(transfers, sample)].push_back(&sample);
    }
    for (const auto& [key, repeats] : repeats_by_cell) {
      TransferCell& cell = cells[key];
      static_cast<CellKey&>(cell) = key;
      const size_t first = std::min<size_t>(options.dropped_repeats, repeats.size() - 1);
      for (size_t i = first; i < repeats.size(); ++i) {
        cell.transfers_ns.push_back(repeats[i]->transfer_ns);
      }
    }
  }
  std::vector<TransferCell> result;
  for (auto& [key, cell] : cells) {
    cell.median_ns = Median(cell.transfers_ns);
    result.push_back(std::move(cell));
  }
  return result;
}

std::optional<double> NoiseFloor(absl::Span<const TransferCell> cells) {
  std::vector<double> differences;
  for (const TransferCell& cell : cells) {
    if (cell.transfers_ns.size() < 2) continue;
    std::vector<double> halves[2];
    for (size_t i = 0; i < cell.transfers_ns.size(); ++i) {
      halves[i % 2].push_back(cell.transfers_ns[i]);
    }
    differences.push_back(std::abs(Median(halves[1]) / Median(halves[0]) - 1));
  }
  if (differences.empty()) return std::nullopt;
  return Mean(differences);
}

CommEdge EdgeOf(const TransferCell& cell) {
  CommEdge edge;
  edge.id = absl::StrCat(CollectiveKindName(cell.kind), " of ", cell.bytes, " bytes by ",
                         GroupText(cell), " ranks");
  edge.kind = cell.kind;
  edge.bytes = cell.bytes;
  edge.participants = cell.participants;
  return edge;
}

std::string GroupText(const TransferCell& cell) {
  constexpr size_t kListed = 32;
  const std::vector<int32_t>& group = cell.participants;
  std::string members = absl::StrJoin(group, ",");
  if (group.size() > kListed) {
    members = absl::StrCat(group.size(), " ranks from ", group.front(), " to ", group.back());
  }
  return absl::StrCat(cell.pairs > 1 ? absl::StrCat(cell.pairs, " pairs from ") : "", "{", members,
                      "} of ", cell.ranks, IsOneWay(cell) ? ", one way" : "");
}

int32_t MovingRanksOf(const TransferCell& cell) {
  if (cell.kind != CollectiveKind::kPointToPoint) {
    return static_cast<int32_t>(cell.participants.size());
  }
  const int32_t pairs = std::max(cell.pairs, 1);
  return std::clamp(cell.is_both_ways ? pairs : 2 * pairs, 2, std::max(cell.ranks, 2));
}

}  // namespace meridian
