#include "workload_model/measurements/call_traces.h"

#include <cmath>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

constexpr absl::string_view kHeader = "callsite,op,dur_us,sendSize_B,dest_group,dest_global,region";
constexpr size_t kShownCharacters = 60;

bool ParseTime(absl::string_view word, double* us) {
  return absl::SimpleAtod(word, us) && std::isfinite(*us);
}

bool ParseBytes(absl::string_view word, std::optional<double>* bytes) {
  double value = 0;
  if (!absl::SimpleAtod(word, &value) || !(value >= 0 && std::isfinite(value))) return false;
  *bytes = value;
  return true;
}

// "0", "0>4<4": a member, with what is sent to it and received from it.
bool ParseMember(absl::string_view word, int64_t* rank) {
  return absl::SimpleAtoi(word.substr(0, word.find_first_of("<>")), rank) && *rank >= 0;
}

std::optional<TracedCall> ParseFirstForm(absl::string_view line) {
  const std::vector<absl::string_view> words = Words(line);
  TracedCall call;
  if (words.size() < 6 || words[0] != "TRACE" || words[2] != "->" ||
      !absl::SimpleAtoi(words[1], &call.source) || !absl::SimpleAtoi(words[3], &call.destination) ||
      call.source < 0 || call.destination < 1 || !ParseTime(words[4], &call.us) ||
      !absl::StartsWith(words[5], "MPI_")) {
    return std::nullopt;
  }
  call.operation = std::string(words[5]);
  if (words.size() == 6) return call;
  if (words[6] == "coll") {
    if (words.size() < 10 || words[9] != "to" || !ParseBytes(words[8], &call.bytes)) {
      return std::nullopt;
    }
    for (size_t i = 10; i < words.size(); ++i) {
      int64_t rank = 0;
      if (!ParseMember(words[i], &rank)) return std::nullopt;
      call.members.push_back(rank);
    }
    return call;
  }
  if (words[6] != "p2p" || words.size() != 10 || words[8] != "to" ||
      !ParseBytes(words[7], &call.bytes)) {
    return std::nullopt;
  }
  const std::vector<absl::string_view> ranks = absl::StrSplit(words[9], ':');
  int64_t peer = 0;
  if (ranks.size() != 2 || !absl::SimpleAtoi(ranks[1], &peer)) return std::nullopt;
  call.sends_message = true;
  if (peer >= 0) call.peer = peer;
  return call;
}

// The source is the callsite of the line before.
std::optional<TracedCall> ParseSecondForm(absl::string_view line, int64_t source) {
  const std::vector<absl::string_view> fields = absl::StrSplit(line, ',');
  TracedCall call;
  int64_t peer = 0;
  call.source = source;
  if (fields.size() < 7 || !absl::SimpleAtoi(fields[0], &call.destination) ||
      call.destination < 1 || !absl::StartsWith(fields[1], "MPI_") ||
      !ParseTime(fields[2], &call.us) || !ParseBytes(fields[3], &call.bytes) ||
      !absl::SimpleAtoi(fields[5], &peer)) {
    return std::nullopt;
  }
  call.operation = std::string(fields[1]);
  // At the end of a row nobody receives what is sent.
  call.sends_message = absl::StrContains(absl::AsciiStrToLower(call.operation), "send");
  if (peer >= 0) {
    call.sends_message = true;
    call.peer = peer;
  } else if (*call.bytes == 0) {
    call.bytes.reset();
  }
  return call;
}

// Callsites by their numbers in the report, with what traces call them, which the stock table does not
// say: its own number there.
using TableRows = std::map<int64_t, std::pair<int64_t, Callsite>>;

// Reads a row "ID Lev File Line Function [Operation]", or, of A-mpiP, one that begins with "ID TmpID
// HashID Lev": so many columns are numbers. Only the innermost level, 0, has the operation, at its end.
bool ParseTableRow(const std::vector<absl::string_view>& words, size_t columns, TableRows* rows) {
  std::vector<int64_t> numbers(columns);
  if (columns == 0 || words.size() <= columns) return false;
  for (size_t i = 0; i < columns; ++i) {
    if (!absl::SimpleAtoi(words[i], &numbers[i])) return false;
  }
  const bool is_innermost = numbers.back() == 0;
  if (numbers.back() < 0 || (is_innermost && words.size() == columns + 1)) return false;
  auto& [traced_id, callsite] = (*rows)[numbers[0]];
  traced_id = numbers[columns == 4 ? 1 : 0];
  if (is_innermost) callsite.operation = std::string(words.back());
  return true;
}

// Reads a row "Name Site Rank Count Max Mean Min App% MPI%"; only the rank * of all together counts.
bool ParseTimesRow(const std::vector<absl::string_view>& words, TableRows* rows) {
  constexpr size_t kSite = 1, kRank = 2, kMean = 5, kLeastWords = 7;
  if (words[0] == "Name" || (words.size() > kRank && words[kRank] != "*")) return true;
  int64_t site = 0;
  double ms = 0;
  if (words.size() < kLeastWords || !absl::SimpleAtoi(words[kSite], &site) ||
      !ParseTime(words[kMean], &ms) || ms < 0) {
    return false;
  }
  // Reports list callsites first.
  if (const auto row = rows->find(site); row != rows->end()) row->second.second.us = 1000 * ms;
  return true;
}

}  // namespace

absl::Status LineError(const std::string& name, int64_t line, absl::string_view what) {
  return InvalidArgument(Printable(name), ":", line, ": ", what);
}

std::vector<absl::string_view> Words(absl::string_view line) {
  return absl::StrSplit(line, absl::ByAnyChar(" \t\r"), absl::SkipEmpty());
}

bool IsCallTrace(absl::string_view text) {
  // The program may have printed something first; models have no such lines anywhere.
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    line = absl::StripAsciiWhitespace(line);
    if (absl::StartsWith(line, "TRACE ") || line == kHeader) return true;
  }
  return false;
}

absl::StatusOr<std::vector<TracedCall>> ParseCallTrace(absl::string_view text,
                                                       const std::string& name) {
  std::vector<TracedCall> calls;
  bool is_second_form = false;
  int64_t number = 0, source = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    line = absl::StripAsciiWhitespace(line);
    if (line == kHeader) {
      is_second_form = true;
      continue;
    }
    if (line.empty() || (!is_second_form && !absl::StartsWith(line, "TRACE"))) continue;
    // Marks of regions, which one version wrote.
    if (absl::StartsWith(line, "REGION ")) continue;
    std::optional<TracedCall> call =
        is_second_form ? ParseSecondForm(line, source) : ParseFirstForm(line);
    if (!call.has_value()) {
      return LineError(
          name, number,
          absl::StrCat("'", Printable(FirstCharacters(line, kShownCharacters)),
                       "' is no call; expected e.g. '",
                       is_second_form ? "1,MPI_Isend,12.0,4,1,1,main"
                                      : "TRACE 1 -> 2 501.0 MPI_Allreduce coll 0xc4 8 to 0 1",
                       "'"));
    }
    source = call->destination;
    calls.push_back(*std::move(call));
  }
  if (calls.empty()) return LineError(name, number, "there is no call in it");
  return calls;
}

absl::StatusOr<std::map<int64_t, Callsite>> ParseCallsites(absl::string_view text,
                                                           const std::string& name) {
  enum class Section { kOther, kTable, kTimes };
  Section section = Section::kOther;
  TableRows rows;
  size_t columns = 0;
  int64_t number = 0, announced = -1;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    line = absl::StripAsciiWhitespace(line);
    if (absl::ConsumePrefix(&line, "@--- Callsites:")) {
      section = Section::kTable;
      const std::vector<absl::string_view> words = Words(line);
      if (words.empty() || !absl::SimpleAtoi(words[0], &announced) || announced < 0) {
        return LineError(name, number, "the number of callsites is no number");
      }
    } else if (absl::StartsWith(line, "@---")) {
      section =
          absl::StartsWith(line, "@--- Callsite Time stat") ? Section::kTimes : Section::kOther;
    } else if (section != Section::kOther && !line.empty() && !absl::StartsWith(line, "---")) {
      const std::vector<absl::string_view> words = Words(line);
      if (section == Section::kTimes) {
        if (ParseTimesRow(words, &rows)) continue;
        return LineError(name, number, "this is no row of the statistics of callsites");
      }
      if (words[0] == "ID") {
        columns = words.size() > 2 && words[1] == "TmpID" ? 4 : 2;
      } else if (!ParseTableRow(words, columns, &rows)) {
        return LineError(name, number, "this is no row of the table of callsites");
      }
    }
  }
  if (announced < 0) {
    return LineError(name, number, "there is no table of callsites (@--- Callsites: N)");
  }
  // Reports may list fewer levels, never fewer callsites; excerpts do.
  if (rows.empty() && announced > 0) {
    return LineError(name, number, "the table of callsites is empty");
  }
  std::map<int64_t, Callsite> callsites;
  for (auto& [id, row] : rows) callsites[row.first] = std::move(row.second);
  return callsites;
}

absl::Status AddCallTimes(const std::map<int64_t, Callsite>& callsites, const std::string& name,
                          std::vector<TracedCall>* calls) {
  for (TracedCall& call : *calls) {
    const auto callsite = callsites.find(call.destination);
    if (callsite == callsites.end()) {
      return InvalidArgument(Printable(name), ": callsite ", call.destination,
                             " of the trace is not in the table");
    }
    const std::string& operation = callsite->second.operation;
    if (!absl::EqualsIgnoreCase(absl::StrCat("MPI_", operation), call.operation)) {
      return InvalidArgument(Printable(name), ": callsite ", call.destination, " is ",
                             Printable(call.operation), " in the trace and ", Printable(operation),
                             " in the table: they are of different runs, or of different ranks");
    }
    call.call_us = callsite->second.us;
  }
  return absl::OkStatus();
}

}  // namespace meridian
