#include "astra_bridge/sidecar/astra_output.h"

#include <algorithm>
#include <csignal>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

// Longer lines are skipped; no line that matters is as long.
constexpr size_t kMaxLineBytes = size_t{1} << 16;
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

// Steps behind the first occurrence of the marker.
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

using End = ChildProcessResult::End;

// A shell in between reports signal N as this + N.
constexpr int kShellSignalBase = 128;
constexpr size_t kShownRanks = 8;

// The signal that ended it, also when a wrapper script reported it; 0 for none.
int EndSignal(const ChildProcessResult& end) {
  if (end.end == End::kSignaled) return end.signal;
  if (end.end == End::kExited && end.exit_code > kShellSignalBase && end.exit_code < 255) {
    return end.exit_code - kShellSignalBase;
  }
  return 0;
}

std::string HowItEnded(const ChildProcessResult& end) {
  const int signal = EndSignal(end);
  if (signal != 0) return absl::StrCat("crashed (signal ", signal, ")");
  return absl::StrCat("exited with ", end.exit_code);
}

// What is known to end like that.
absl::string_view LikelyCause(const ChildProcessResult& end) {
  switch (EndSignal(end)) {
    case SIGABRT:
      return "an attribute or file it cannot use, an impossible peer or group, an event at time 0, "
             "or its own memory error in direct all-reduces";
    case SIGFPE:
      return "preferred-dataset-splits is 0 or missing";
    case SIGSEGV:
      return "doubleBinaryTree among a part of the ranks or a number that is no power of two";
    case 0:
      break;
    default:
      return "the system ended it, perhaps for lack of memory";
  }
  if (end.exit_code == 0) {
    return "ranks wait for each other: a peer, tag or size without a match, a collective of a "
           "group of one, halvingDoubling among a number of ranks that is no power of two; or, "
           "with roofline-enabled, a computation of tensor_size 0, which it skips together with "
           "all that waits for it (chakra_inspect --check names such nodes)";
  }
  if (end.exit_code == 1) {
    return "a file it cannot read, an algorithm it does not know or that the collective does not "
           "have, or a group that does not exist";
  }
  return "not known";
}

// E.g. "5 of 8 ranks finished, not 1, 2, 7".
std::string Progress(const AstraOutput& output) {
  std::vector<int64_t> missing;
  for (size_t rank = 0; rank < output.finish_ns().size(); ++rank) {
    if (!output.finish_ns()[rank].has_value()) missing.push_back(static_cast<int64_t>(rank));
  }
  const bool many = missing.size() > kShownRanks;
  if (many) missing.resize(kShownRanks);
  return absl::StrCat(output.finished_ranks(), " of ", output.finish_ns().size(),
                      " ranks finished, not ", absl::StrJoin(missing, ", "), many ? ", ..." : "");
}

// What it said itself; else the end of its error stream.
std::string Complaints(const ChildProcessResult& end, const AstraOutput& output) {
  if (!output.complaints().empty()) {
    return absl::StrCat("; it said: ", absl::StrJoin(output.complaints(), " | "));
  }
  const std::vector<std::string> lines =
      absl::StrSplit(absl::StripAsciiWhitespace(end.error_tail), '\n');
  if (lines.back().empty()) return "";
  return absl::StrCat("; it said: ", Printable(lines.back()));
}

}  // namespace

void AstraOutput::Append(absl::string_view piece) {
  while (!piece.empty()) {
    const size_t end = piece.find('\n');
    const absl::string_view part = piece.substr(0, end);
    if (!skip_to_line_end_) partial_line_.append(part.data(), part.size());
    if (partial_line_.size() > kMaxLineBytes) {
      partial_line_.clear();
      skip_to_line_end_ = true;
    }
    if (end == absl::string_view::npos) return;
    ReadLine(partial_line_);
    partial_line_.clear();
    skip_to_line_end_ = false;
    piece.remove_prefix(end + 1);
  }
}

void AstraOutput::ReadLine(absl::string_view line) {
  if (IsComplaint(line) && complaints_.size() < kMaxComplaints) {
    complaints_.push_back(FirstCharacters(Printable(line), kShownCharacters));
  }
  int64_t rank = 0, finish_ns = 0, exposed_ns = 0;
  absl::string_view rest = line;
  if (!SkipPast(&rest, "] sys[") || !ConsumeNumber(&rest, &rank) ||
      !absl::ConsumePrefix(&rest, "] finished, ") || !ConsumeNumber(&rest, &finish_ns) ||
      !absl::ConsumePrefix(&rest, " cycles, exposed communication ") ||
      !ConsumeNumber(&rest, &exposed_ns) || !absl::ConsumePrefix(&rest, " cycles.")) {
    return;
  }
  if (rank >= static_cast<int64_t>(finish_ns_.size())) {
    status_.Update(absl::AbortedError(
        absl::StrCat("rank ", rank, " finished, but there are ", finish_ns_.size(), " ranks")));
    return;
  }
  std::optional<int64_t>& known = finish_ns_[rank];
  if (!known.has_value()) {
    known = finish_ns;
    ++finished_ranks_;
  } else if (*known != finish_ns) {
    status_.Update(absl::AbortedError(
        absl::StrCat("rank ", rank, " finished twice, at ", *known, " and ", finish_ns)));
  }
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

absl::Status CheckAstraRun(const ChildProcessResult& end, const AstraOutput& output,
                           absl::Duration timeout) {
  if (!output.status().ok()) {
    return absl::AbortedError(
        absl::StrCat("AstraSim's output makes no sense: ", output.status().message()));
  }
  if (output.finished_ranks() == static_cast<int64_t>(output.finish_ns().size())) {
    return absl::OkStatus();
  }
  const std::string complaints = Complaints(end, output);
  switch (end.end) {
    case End::kTimedOut:
      return absl::DeadlineExceededError(absl::StrCat("AstraSim was ended after ",
                                                      absl::FormatDuration(timeout), ": ",
                                                      Progress(output), complaints));
    case End::kWroteTooMuch:
      return absl::AbortedError(absl::StrCat(
          "AstraSim was ended because it wrote without end: ", Progress(output), complaints));
    case End::kExited:
    case End::kSignaled:
      break;
  }
  if (end.end == End::kExited && end.exit_code == 255) {
    return absl::InvalidArgumentError(
        absl::StrCat("AstraSim refused its configuration (exit 255)", complaints));
  }
  return absl::AbortedError(absl::StrCat("AstraSim ", HowItEnded(end), ": ", Progress(output),
                                         "; likely cause: ", LikelyCause(end), complaints));
}

std::string EndAfterFinish(const ChildProcessResult& end) {
  constexpr absl::string_view kAfter = " after all ranks had finished";
  switch (end.end) {
    case End::kTimedOut:
      return absl::StrCat("did not end", kAfter);
    case End::kWroteTooMuch:
      return absl::StrCat("wrote without end", kAfter);
    case End::kExited:
    case End::kSignaled:
      break;
  }
  if (end.end == End::kExited && end.exit_code == 0) return "";
  return absl::StrCat(HowItEnded(end), kAfter);
}

}  // namespace meridian
