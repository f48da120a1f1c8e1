#include "xla_profiler/collectives/communication_kernel.h"

#include <cstddef>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "re2/re2.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/tables/text_table.h"
#include "xla_profiler/collectives/communication_kernels_csv.h"

namespace meridian {
namespace {

using Kind = CollectiveKind;

// Distinct symbols that a thread remembers; a trace has thousands.
constexpr size_t kMaxRemembered = size_t{1} << 16;

struct KernelRow {
  std::unique_ptr<RE2> pattern;
  Kind kind = Kind::kUnknown;
};

std::optional<Kind> KindOfText(absl::string_view name) {
  for (int kind = 0; kind <= static_cast<int>(Kind::kUnknown); ++kind) {
    if (CollectiveKindName(static_cast<Kind>(kind)) == name) return static_cast<Kind>(kind);
  }
  return std::nullopt;
}

absl::StatusOr<KernelRow> ReadKernelRow(absl::string_view line) {
  const size_t comma = line.rfind(',');
  if (comma == absl::string_view::npos || comma == 0) {
    return InvalidArgument("expected pattern,kind, e.g. my_all_reduce_kernel,all-reduce");
  }
  const absl::string_view name = absl::StripAsciiWhitespace(line.substr(comma + 1));
  const std::optional<Kind> kind = KindOfText(name);
  if (!kind.has_value()) {
    return InvalidArgument("'", FirstCharacters(name, 40),
                           "' is no kind of collective; expected e.g. all-reduce, all-gather, "
                           "reduce-scatter, all-to-all, barrier or unknown");
  }
  const absl::string_view pattern = line.substr(0, comma);
  if (pattern.size() > kMaxKernelPattern) {
    return InvalidArgument("the pattern has more than ", kMaxKernelPattern, " characters");
  }
  RE2::Options options;
  options.set_log_errors(false);
  KernelRow row = {std::make_unique<RE2>(re2::StringPiece(pattern.data(), pattern.size()), options),
                   *kind};
  if (!row.pattern->ok()) return InvalidArgument("no regular expression: ", row.pattern->error());
  return row;
}

absl::StatusOr<std::vector<KernelRow>> ReadKernelRows(absl::string_view text,
                                                      absl::string_view file) {
  std::vector<KernelRow> rows;
  size_t number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    line = absl::StripAsciiWhitespace(line);
    if (line.empty() || line[0] == '#') continue;
    const std::string place = absl::StrCat(Printable(file), ":", number);
    if (rows.size() == kMaxKernelRows) {
      return InvalidArgument(place, ": more than ", kMaxKernelRows, " rows");
    }
    ASSIGN_OR_RETURN(KernelRow row, Annotate(ReadKernelRow(line), place));
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<KernelRow>& KernelRows() {
  static auto& rows = *new std::vector<KernelRow>(
      ReadKernelRows(kCommunicationKernels, "communication_kernels.csv").value());
  return rows;
}

// Returns nullopt for what is no communication kernel.
std::optional<Kind> FindKernel(absl::string_view name) {
  thread_local absl::flat_hash_map<std::string, std::optional<Kind>> remembered;
  thread_local size_t known_rows = 0;
  if (remembered.size() >= kMaxRemembered || known_rows != KernelRows().size()) remembered.clear();
  known_rows = KernelRows().size();
  const auto [it, is_new] = remembered.try_emplace(name);
  if (is_new) {
    for (const KernelRow& row : KernelRows()) {
      if (!RE2::PartialMatch(re2::StringPiece(name.data(), name.size()), *row.pattern)) continue;
      it->second = row.kind;
      break;
    }
  }
  return it->second;
}

}  // namespace

bool IsCommunicationKernel(absl::string_view kernel_name) {
  return FindKernel(kernel_name).has_value();
}

std::optional<CollectiveKind> KindOfKernel(absl::string_view kernel_name, bool has_groups) {
  const std::optional<Kind> kind = FindKernel(kernel_name);
  if (!kind.has_value() || *kind == Kind::kUnknown) return std::nullopt;
  return has_groups && *kind == Kind::kCollectivePermute ? Kind::kAllToAll : *kind;
}

absl::Status AddCommunicationKernels(absl::string_view text, absl::string_view file) {
  ASSIGN_OR_RETURN(std::vector<KernelRow> added, ReadKernelRows(text, file));
  std::vector<KernelRow>& rows = KernelRows();
  rows.insert(rows.begin(), std::make_move_iterator(added.begin()),
              std::make_move_iterator(added.end()));
  return absl::OkStatus();
}

}  // namespace meridian
