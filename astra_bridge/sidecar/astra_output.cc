#include "astra_bridge/sidecar/astra_output.h"

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

constexpr size_t kMaxComplaints = 2;
constexpr size_t kShownCharacters = 200;
constexpr int64_t kUnfinished = -1;

// Takes a number that is not negative from the front of the text.
template <typename Number>
bool ConsumeNumber(absl::string_view* text, Number* number) {
  size_t digits = 0;
  while (digits < text->size() && absl::ascii_isdigit((*text)[digits])) ++digits;
  const bool good = absl::SimpleAtoi(text->substr(0, digits), number);
  text->remove_prefix(digits);
  return good;
}

bool SkipPast(absl::string_view* text, absl::string_view marker) {
  const size_t position = text->find(marker);
  if (position == absl::string_view::npos) return false;
  text->remove_prefix(position + marker.size());
  return true;
}

bool IsComplaint(absl::string_view line) {
  for (absl::string_view sign : {"[Error]", "[error]", "[critical]", "terminate called",
                                 "Assertion", "what():", "unreleased nodes"}) {
    if (absl::StrContains(line, sign)) return true;
  }
  return false;
}

bool ParseFinish(absl::string_view line, int64_t* rank, int64_t* finish_ns) {
  int64_t exposed_ns = 0;
  return SkipPast(&line, "] sys[") && ConsumeNumber(&line, rank) &&
         absl::ConsumePrefix(&line, "] finished, ") && ConsumeNumber(&line, finish_ns) &&
         absl::ConsumePrefix(&line, " cycles, exposed communication ") &&
         ConsumeNumber(&line, &exposed_ns) && absl::ConsumePrefix(&line, " cycles.");
}

std::string Shown(absl::string_view line) {
  return FirstCharacters(Printable(line.substr(0, 4 * kShownCharacters)), kShownCharacters);
}

// `progress` says how many ranks finished and what AstraSim said.
absl::Status Failure(const ChildProcessResult& end, absl::Duration timeout,
                     absl::string_view progress) {
  using End = ChildProcessResult::End;
  switch (end.end) {
    case End::kTimedOut:
      return absl::DeadlineExceededError(
          absl::StrCat("AstraSim was ended after ", absl::FormatDuration(timeout), ": ", progress));
    case End::kWroteTooMuch:
      return absl::AbortedError(
          absl::StrCat("AstraSim was ended because it wrote without end: ", progress));
    case End::kSignaled:
      return absl::AbortedError(
          absl::StrCat("AstraSim crashed (signal ", end.signal, "): ", progress));
    case End::kExited:
      break;
  }
  if (end.exit_code == 255) {
    return InvalidArgument("AstraSim refused its configuration (exit 255): ", progress);
  }
  return absl::AbortedError(
      absl::StrCat("AstraSim exited with ", end.exit_code, ": ", progress,
                   "; --engine=embedded says what is wrong with inputs that it cannot finish"));
}

}  // namespace

absl::StatusOr<std::vector<int64_t>> AstraFinishTimes(const AstraRun& run, int64_t ranks,
                                                      absl::Duration timeout) {
  std::vector<int64_t> finish_ns(ranks, kUnfinished);
  std::vector<std::string> complaints;
  int64_t finished = 0;
  for (absl::string_view line : absl::StrSplit(run.output, '\n')) {
    if (complaints.size() < kMaxComplaints && IsComplaint(line)) complaints.push_back(Shown(line));
    int64_t rank = 0, rank_ns = 0;
    if (!ParseFinish(line, &rank, &rank_ns)) continue;
    if (rank >= ranks || (finish_ns[rank] != kUnfinished && finish_ns[rank] != rank_ns)) {
      return absl::AbortedError(absl::StrCat("AstraSim's output makes no sense: of ", ranks,
                                             " ranks, one more or again: ", Shown(line)));
    }
    if (finish_ns[rank] == kUnfinished) ++finished;
    finish_ns[rank] = rank_ns;
  }
  if (finished == ranks) return finish_ns;
  if (complaints.empty()) {
    const std::vector<absl::string_view> lines =
        absl::StrSplit(absl::StripAsciiWhitespace(run.errors), '\n');
    if (!lines.back().empty()) complaints.push_back(Shown(lines.back()));
  }
  std::string progress = absl::StrCat(finished, " of ", ranks, " ranks finished");
  if (!complaints.empty()) {
    absl::StrAppend(&progress, "; it said: ", absl::StrJoin(complaints, " | "));
  }
  return Failure(run.end, timeout, progress);
}

absl::StatusOr<std::vector<NodeTime>> ParseAstraNodeTimes(
    absl::Span<const absl::string_view> log_parts, int64_t ranks) {
  std::vector<NodeTime> nodes;
  // Positions in `nodes`.
  absl::flat_hash_map<std::pair<int32_t, uint64_t>, size_t> by_rank_and_id;
  const auto lost = [](const NodeTime& node, absl::string_view what) {
    return absl::DataLossError(absl::StrCat("node ", node.id, " of rank ", node.rank, " ", what));
  };
  for (absl::string_view part : log_parts) {
    for (absl::string_view rest : absl::StrSplit(part, '\n')) {
      const bool is_issue = absl::StrContains(rest, "issue,sys->id=");
      NodeTime node;
      int64_t tick = 0;
      if (!SkipPast(&rest, is_issue ? "issue,sys->id=" : "callback,sys->id=") ||
          !ConsumeNumber(&rest, &node.rank) || !absl::ConsumePrefix(&rest, ", tick=") ||
          !ConsumeNumber(&rest, &tick) || !absl::ConsumePrefix(&rest, ", node->id=") ||
          !ConsumeNumber(&rest, &node.id) || !absl::ConsumePrefix(&rest, ", node->name=")) {
        continue;
      }
      const auto [known, is_new] =
          by_rank_and_id.insert({std::make_pair(node.rank, node.id), nodes.size()});
      if (is_issue) {
        if (!is_new) return lost(node, "was issued twice");
        node.issue_ns = tick;
        node.finish_ns = kUnfinished;
        nodes.push_back(node);
      } else if (is_new || nodes[known->second].finish_ns != kUnfinished) {
        return lost(node, "finished but was not running");
      } else {
        nodes[known->second].finish_ns = tick;
      }
    }
  }
  for (const NodeTime& node : nodes) {
    if (node.finish_ns == kUnfinished) return lost(node, "did not finish");
    if (node.rank >= ranks) {
      return absl::DataLossError(absl::StrCat("there is no rank ", node.rank));
    }
  }
  std::sort(nodes.begin(), nodes.end(), [](const NodeTime& a, const NodeTime& b) {
    return std::tie(a.rank, a.id) < std::tie(b.rank, b.id);
  });
  return nodes;
}

}  // namespace meridian
