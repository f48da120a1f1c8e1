#include "xla_profiler/trace_kind/trace_kind.h"

#include <zlib.h>

#include <algorithm>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/json/json_cutter.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

// What tells a trace stands within so many bytes.
constexpr size_t kBeginningBytes = size_t{1} << 18;
constexpr int kLinesLookedAt = 100;

constexpr absl::string_view kGzipMagic = "\x1f\x8b";
// zlib: the window of gzip, told by its header.
constexpr int kGzipWindow = 15 + 32;

TraceKind TellJson(absl::string_view text) {
  if (text.front() == '[') return TraceKind::kTraceJson;
  bool is_kineto = false, has_schema = false, has_header = false, has_stats = false,
       has_metadata = false;
  JsonCutter cutter(text);
  cutter.Enter('{');
  for (absl::string_view key; cutter.NextMember(&key); cutter.CutValue()) {
    // What others make of XSpaces has a base, too, and metadata in front of it.
    is_kineto |= key == "schemaVersion" || key == "distributedInfo" || key == "deviceProperties" ||
                 (key == "baseTimeNanoseconds" && !has_metadata);
    has_metadata |= key == "metadata";
    if (key == "combinedRanks") return TraceKind::kCombinedKineto;
    has_schema |= key == "schema";
    has_header |= key == "header";
    has_stats |= key == "dump_stats";
    if (key == "coll_perf" || key == "p2p_perf" || (has_header && has_stats)) {
      return TraceKind::kInspector;
    }
    if (key == "traceEvents") return is_kineto ? TraceKind::kKineto : TraceKind::kTraceJson;
    if (key == "nodes" && has_schema) return TraceKind::kPytorchEt;
  }
  return is_kineto ? TraceKind::kKineto : TraceKind::kUnknown;
}

// A log may begin with lines that are no records: cut off, or of the program.
bool HasInspectorLine(absl::string_view text) {
  for (int line = 0; line < kLinesLookedAt && !text.empty(); ++line) {
    const absl::string_view row = text.substr(0, text.find('\n'));
    if (absl::StartsWith(row, "{") && TellJson(row) == TraceKind::kInspector) return true;
    text.remove_prefix(std::min(text.size(), row.size() + 1));
  }
  return false;
}

// A Chakra trace begins with a message that holds a version: its length, the tag of a string, the
// string's length, and digits and points.
bool IsChakraEt(absl::string_view bytes) {
  if (bytes.size() < 4) return false;
  const size_t message = static_cast<unsigned char>(bytes[0]);
  const size_t version = static_cast<unsigned char>(bytes[2]);
  if (bytes[1] != '\x0a' || message < version + 2 || message >= 0x80 || version == 0 ||
      bytes.size() < version + 3) {
    return false;
  }
  const absl::string_view text = bytes.substr(3, version);
  return std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '-';
  });
}

// Returns the beginning of what gzip data inflate to; what cannot be inflated is left out.
std::string InflateBeginning(absl::string_view compressed) {
  std::string inflated(kBeginningBytes, '\0');
  z_stream stream = {};
  if (inflateInit2(&stream, kGzipWindow) != Z_OK) return "";
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(compressed.data()));
  stream.avail_in = static_cast<uInt>(std::min<size_t>(compressed.size(), kBeginningBytes));
  stream.next_out = reinterpret_cast<Bytef*>(inflated.data());
  stream.avail_out = static_cast<uInt>(inflated.size());
  inflate(&stream, Z_SYNC_FLUSH);
  inflated.resize(inflated.size() - stream.avail_out);
  inflateEnd(&stream);
  return inflated;
}

absl::Status NotWanted(const std::string& path, TraceKind kind,
                       const std::vector<TraceKind>& wanted) {
  std::vector<absl::string_view> names;
  for (const TraceKind other : wanted) names.push_back(TraceKindText(other));
  return absl::InvalidArgumentError(absl::StrCat(Printable(path), " is ", TraceKindText(kind),
                                                 "; expected ", absl::StrJoin(names, " or ")));
}

}  // namespace

absl::string_view TraceKindText(TraceKind kind) {
  switch (kind) {
    case TraceKind::kXSpace:
      return "an XSpace";
    case TraceKind::kKineto:
      return "a Kineto trace";
    case TraceKind::kCombinedKineto:
      return "several ranks' Kineto traces in one";
    case TraceKind::kTraceJson:
      return "Chrome trace JSON";
    case TraceKind::kChakraEt:
      return "a Chakra execution trace";
    case TraceKind::kPytorchEt:
      return "a PyTorch execution trace";
    case TraceKind::kInspector:
      return "a log of NCCL Inspector";
    case TraceKind::kUnknown:
      break;
  }
  return "no trace that is known";
}

TraceKind TellTraceKind(absl::string_view beginning) {
  if (beginning.empty()) return TraceKind::kXSpace;
  absl::string_view text = beginning;
  absl::ConsumePrefix(&text, "\xef\xbb\xbf");
  text = absl::StripLeadingAsciiWhitespace(text);
  TraceKind json = TraceKind::kUnknown;
  if (!text.empty() && (text.front() == '{' || text.front() == '[')) json = TellJson(text);
  if (json != TraceKind::kUnknown) return json;
  if (HasInspectorLine(text)) return TraceKind::kInspector;
  if (!text.empty() && text.front() == '{') return TraceKind::kUnknown;
  if (IsChakraEt(beginning)) return TraceKind::kChakraEt;
  // Planes, errors, warnings and hostnames of an XSpace are length-delimited fields 1 to 4.
  const unsigned char tag = static_cast<unsigned char>(beginning.front());
  const bool is_field = tag == 0x0a || tag == 0x12 || tag == 0x1a || tag == 0x22;
  return is_field ? TraceKind::kXSpace : TraceKind::kUnknown;
}

absl::StatusOr<TraceKind> TellTraceKind(FileSystem& file_system, const std::string& path) {
  ASSIGN_OR_RETURN(const std::unique_ptr<MappedRegion> region, file_system.Map(path));
  const absl::string_view bytes = region->bytes();
  if (absl::StartsWith(bytes, kGzipMagic)) return TellTraceKind(InflateBeginning(bytes));
  return TellTraceKind(bytes.substr(0, kBeginningBytes));
}

absl::StatusOr<TraceKind> TellOneTraceKind(FileSystem& file_system,
                                           const std::vector<std::string>& paths,
                                           const std::vector<TraceKind>& wanted) {
  const auto is_wanted = [&](TraceKind wished) {
    return std::find(wanted.begin(), wanted.end(), wished) != wanted.end();
  };
  // What all are so far, and the first file that is.
  TraceKind common = TraceKind::kUnknown;
  std::string first;
  for (const std::string& path : paths) {
    ASSIGN_OR_RETURN(const TraceKind kind, TellTraceKind(file_system, path));
    // It may be a broken one of the same kind, of which its reader says more.
    if (kind == TraceKind::kUnknown) continue;
    if (!is_wanted(kind)) return NotWanted(path, kind, wanted);
    if (first.empty()) {
      common = kind;
      first = path;
    } else if (kind != common) {
      return absl::InvalidArgumentError(absl::StrCat(
          Printable(first), " is ", TraceKindText(common), ", ", Printable(path), " is ",
          TraceKindText(kind), "; runs of different profilers are not mixed, give those of one"));
    }
  }
  if (!first.empty()) return common;
  if (is_wanted(TraceKind::kXSpace)) return TraceKind::kXSpace;
  return NotWanted(paths[0], TraceKind::kUnknown, wanted);
}

std::vector<std::string> KeepProfiles(FileSystem& file_system, std::vector<std::string> paths) {
  std::vector<TraceKind> kinds;
  for (const std::string& path : paths) {
    // What can not be read is for the reader to refuse.
    kinds.push_back(TellTraceKind(file_system, path).value_or(TraceKind::kUnknown));
  }
  const auto count = [&](TraceKind kind) { return std::count(kinds.begin(), kinds.end(), kind); };
  // Both are an error, which names them.
  if (count(TraceKind::kXSpace) + count(TraceKind::kKineto) + count(TraceKind::kInspector) == 0) {
    return paths;
  }
  std::vector<std::string> kept;
  for (size_t i = 0; i < paths.size(); ++i) {
    const bool is_log = absl::EndsWith(absl::StripSuffix(paths[i], ".gz"), ".log");
    const bool is_other = kinds[i] == TraceKind::kPytorchEt || kinds[i] == TraceKind::kChakraEt ||
                          kinds[i] == TraceKind::kTraceJson ||
                          kinds[i] == TraceKind::kCombinedKineto ||
                          (is_log && kinds[i] != TraceKind::kInspector);
    if (!is_other) kept.push_back(std::move(paths[i]));
  }
  return kept;
}

}  // namespace meridian
