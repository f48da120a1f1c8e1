#include "trace_alignment/collectives/collective_run.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/numeric/int128.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/input_file.h"
#include "xla_profiler/base/parallel.h"
#include "xla_profiler/base/picoseconds.h"
#include "xla_profiler/base/tables/text_table.h"
#include "xla_profiler/collectives/xspace_collectives.h"
#include "xla_profiler/kineto/kineto_collectives.h"
#include "xla_profiler/sources/trace_files.h"
#include "xla_profiler/xplane/combined_profile.h"

namespace meridian {

absl::StatusOr<CollectiveRun> MatchCollectives(std::vector<ProfileCollectives> profiles,
                                               const RankOptions& ranks) {
  CollectiveRun run;
  run.profiles = std::move(profiles);
  ASSIGN_OR_RETURN(run.ranks, ResolveRanks(absl::MakeSpan(run.profiles), ranks));
  run.runs = ResolveRuns(run.profiles);
  ASSIGN_OR_RETURN(run.table, BuildCollectiveTable(run.profiles, run.ranks, run.runs));
  return run;
}

namespace {

// Clocks of hosts are not so far off: what was recorded so long apart is not of one run.
constexpr int64_t kMaxApartNs = int64_t{3600} * 1'000'000'000;

absl::Status CheckStatedRanks(const std::vector<ProfileCollectives>& profiles) {
  const ProfileCollectives* first = nullptr;
  for (const ProfileCollectives& profile : profiles) {
    if (!profile.stated_ranks.has_value()) continue;
    if (first == nullptr) first = &profile;
    if (profile.stated_ranks == first->stated_ranks) continue;
    return InvalidArgument(profile.trace, ": its job has ", *profile.stated_ranks,
                           " ranks, that of ", first->trace, " has ", *first->stated_ranks,
                           "; give the profiles of one job");
  }
  return absl::OkStatus();
}

absl::Status CheckRecordedTogether(const std::vector<ProfileCollectives>& profiles) {
  struct Span {
    int64_t start_ns = 0;
    int64_t end_ns = 0;
    const ProfileCollectives* profile = nullptr;
  };
  std::vector<Span> spans;
  for (const ProfileCollectives& profile : profiles) {
    Span span = {profile.base_ns, profile.base_ns, &profile};
    for (const CollectiveEvent& event : profile.events) {
      int64_t end_ns = 0;
      if (__builtin_add_overflow(profile.base_ns, event.end_ps / kPsPerNs, &end_ns)) continue;
      span.end_ns = std::max(span.end_ns, end_ns);
    }
    spans.push_back(span);
  }
  absl::c_sort(spans, [](const Span& a, const Span& b) { return a.start_ns < b.start_ns; });
  int64_t end_ns = spans.empty() ? 0 : spans[0].end_ns;
  for (size_t i = 1; i < spans.size(); ++i) {
    const int64_t apart_ns = SaturateToInt64(absl::int128(spans[i].start_ns) - end_ns);
    end_ns = std::max(end_ns, spans[i].end_ns);
    if (apart_ns <= kMaxApartNs) continue;
    // The fewer are those that do not fit.
    const bool is_first_odd = i < spans.size() - i;
    const Span &odd = spans[is_first_odd ? i - 1 : i], &other = spans[is_first_odd ? i : i - 1];
    return InvalidArgument(
        odd.profile->trace, ": recorded over ", apart_ns / kMaxApartNs,
        apart_ns / kMaxApartNs == 1 ? " hour " : " hours ", is_first_odd ? "before " : "after ",
        other.profile->trace,
        ", so that they are not of one run; if a clock was off by so much, give --offsets");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckOneRun(const CollectiveRun& run, bool clocks_are_measured) {
  RETURN_IF_ERROR(CheckStatedRanks(run.profiles));
  if (!clocks_are_measured) RETURN_IF_ERROR(CheckRecordedTogether(run.profiles));
  const CollectiveTable& table = run.table;
  // How many members each profile has in instances that other profiles have members in, and in
  // instances that others should have members in but have not.
  std::vector<int64_t> joint(run.profiles.size()), lonely(run.profiles.size());
  for (const CollectiveInstance& instance : table.instances()) {
    const absl::Span<const CollectiveMember> members = table.MembersOf(instance);
    const bool has_others = absl::c_any_of(members, [&](const CollectiveMember& member) {
      return table.NodeOf(member) != table.NodeOf(members[0]);
    });
    for (const CollectiveMember& member : members) {
      joint[table.NodeOf(member)] += has_others ? 1 : 0;
      lonely[table.NodeOf(member)] += !has_others && instance.missing > 0 ? 1 : 0;
    }
  }
  const auto silent = absl::c_find_if(
      run.profiles, [](const ProfileCollectives& profile) { return profile.events.empty(); });
  for (size_t p = 0; p < run.profiles.size() && run.profiles.size() > 1; ++p) {
    if (joint[p] > 0 || lonely[p] == 0) continue;
    return InvalidArgument(
        run.profiles[p].trace, ": none of its ", lonely[p],
        " collectives with other ranks has a counterpart in the other profiles; are they all of "
        "one run, and of the same steps?",
        silent == run.profiles.end()
            ? ""
            : absl::StrCat(" ", silent->trace,
                           " has no collectives at all: was its device profiled?"));
  }
  return absl::OkStatus();
}

std::string DescribeNoCollectives(const std::vector<ProfileCollectives>& profiles) {
  const std::string who = absl::StrCat(
      profiles[0].trace, profiles.size() > 1 ? " and the others hold " : ": there are ");
  for (const ProfileCollectives& profile : profiles) {
    for (const auto& [reason, entry] : profile.unresolved.entries()) {
      return absl::StrCat(who, "no collectives that are known, but ", profile.trace, " has ",
                          entry.count, " x ", reason, ", e.g. ",
                          FirstCharacters(entry.example, 100));
    }
  }
  return absl::StrCat(who,
                      "no kernels that are known to communicate (Gloo has none on processors; "
                      "those of other libraries are named with --collective_kernels; in a table "
                      "they are rows of a kind such as all-reduce or send)");
}

absl::Status RefuseViolations(const CollectiveRun& run, const HappensBefore& check) {
  if (check.violations.empty()) return absl::OkStatus();
  const Violation& first = check.violations[0];
  const auto trace = [&run](uint32_t member) {
    return run.profiles[run.table.NodeOf(run.table.members()[member])].trace;
  };
  return FailedPrecondition(trace(first.ended), " and ", trace(first.started),
                            ": the clocks of the nodes disagree: ", check.violations.size(), " of ",
                            check.checked, " collectives end before they began elsewhere, e.g. ",
                            DescribeViolation(run.table, first),
                            "; run combine first, or insist with --allow_violations");
}

absl::StatusOr<CollectiveRun> ReadCollectiveRun(FileSystem& file_system,
                                                const std::vector<std::string>& traces,
                                                const CollectiveRunOptions& options) {
  std::vector<ProfileCollectives> profiles;
  if (traces.empty()) return MatchCollectives(std::move(profiles), options.ranks);
  TraceFilesOptions opened;
  opened.input = options.reader.input;
  opened.conversion = options.conversion;
  ASSIGN_OR_RETURN(const TraceFiles files, TraceFiles::Create(file_system, traces, opened));
  // By file: those of its nodes.
  std::vector<std::vector<ProfileCollectives>> by_file(files.size());
  const auto read_file = [&](size_t i) -> absl::Status {
    const auto add = [&](absl::StatusOr<ProfileCollectives> profile) {
      if (profile.ok()) by_file[i].push_back(*std::move(profile));
      return profile.status();
    };
    ASSIGN_OR_RETURN(InputFile file, files.Open(i));
    if (files.form() == TraceForm::kKineto) return add(ReadKinetoCollectives(file));
    ASSIGN_OR_RETURN(const XSpaceReader reader,
                     XSpaceReader::OfFile(std::move(file), options.reader.limits));
    ASSIGN_OR_RETURN(const std::vector<NodeProfile> nodes, SplitCombinedProfile(reader));
    if (nodes.empty()) return add(ReadXSpaceCollectives(reader));
    by_file[i].resize(nodes.size());
    return ParallelFor(nodes.size(), [&](size_t n) -> absl::Status {
      ASSIGN_OR_RETURN(by_file[i][n], ReadXSpaceCollectives(nodes[n].reader));
      return absl::OkStatus();
    });
  };
  RETURN_IF_ERROR(ParallelFor(files.size(), read_file, options.progress));
  for (std::vector<ProfileCollectives>& nodes : by_file) {
    absl::c_move(nodes, std::back_inserter(profiles));
  }
  ASSIGN_OR_RETURN(CollectiveRun run, MatchCollectives(std::move(profiles), options.ranks));
  if (options.conversion.durations_suffice) run.table.PlaceByDurations(run.profiles);
  run.ranks.notes.insert(run.ranks.notes.begin(), files.notes().begin(), files.notes().end());
  return run;
}

}  // namespace meridian
