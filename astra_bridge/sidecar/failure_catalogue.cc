#include "astra_bridge/sidecar/failure_catalogue.h"

#include <csignal>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

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
    return "ranks wait for each other: a peer, tag or size without a match, a group of one, or "
           "halvingDoubling among a number of ranks that is no power of two";
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
