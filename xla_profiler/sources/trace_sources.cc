#include "xla_profiler/sources/trace_sources.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/flight_recorder/flight_recorder.h"
#include "xla_profiler/nccl_logs/nccl_logs.h"
#include "xla_profiler/perfetto_traces/perfetto_traces.h"
#include "xla_profiler/sqlite_traces/sqlite_traces.h"
#include "xla_profiler/table_traces/table_traces.h"

namespace meridian {
namespace {

class KinetoSource : public TraceSource {
 public:
  absl::string_view noun() const override { return "a Kineto trace"; }
  std::vector<absl::string_view> suffixes() const override { return {".json"}; }
  bool NeedsConversion() const override { return false; }

  bool Detect(const FileHead& head) const override {
    bool has_metadata = false;
    for (const std::string& key : head.keys()) {
      if (key == "schemaVersion" || key == "distributedInfo" || key == "deviceProperties") {
        return true;
      }
      // What others make of XSpaces has a base, too, and metadata in front of it.
      if (key == "baseTimeNanoseconds" && !has_metadata) return true;
      has_metadata |= key == "metadata";
    }
    // Where the events come first, they must tell: what only PyTorch's have.
    if (!head.HasKey("traceEvents")) return false;
    for (const absl::string_view mark :
         {"\"cpu_op\"", "\"External id\"", "\"external id\"", "\"ProfilerStep#"}) {
      if (absl::StrContains(head.text(), mark)) return true;
    }
    return false;
  }
};

class XSpaceSource : public TraceSource {
 public:
  absl::string_view noun() const override { return "an XSpace"; }
  std::vector<absl::string_view> suffixes() const override { return {".xplane.pb"}; }
  TraceForm form() const override { return TraceForm::kXSpace; }
  bool NeedsConversion() const override { return false; }

  // Planes, errors, warnings and hostnames are length-delimited fields 1 to 4.
  bool Detect(const FileHead& head) const override {
    // An empty file may be of any source; its reader says that it is empty.
    if (head.bytes().empty() || absl::StartsWith(head.text(), "{")) return false;
    return absl::StrContains("\x0a\x12\x1a\x22", head.bytes().substr(0, 1));
  }
};

// A Chakra trace begins with a message that holds a version: its length, the tag of a string, the
// string's length, and letters, digits and points.
bool IsChakraEt(const FileHead& head) {
  const absl::string_view bytes = head.bytes();
  if (bytes.size() < 4 || absl::StartsWith(head.text(), "{")) return false;
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

OtherFile DetectOther(const FileHead& head, bool is_kineto) {
  if (head.HasKey("combinedRanks")) return OtherFile::kCombinedKineto;
  if (absl::StartsWith(head.text(), "[")) return OtherFile::kTraceJson;
  if (head.HasKey("traceEvents") && !is_kineto) return OtherFile::kTraceJson;
  if (head.HasKey("schema") && head.HasKey("nodes")) return OtherFile::kPytorchEt;
  if (head.HasKey("rocprofiler-sdk-tool")) return OtherFile::kRocprofJson;
  if (TellPerfettoWriter(head.bytes()) == PerfettoWriter::kOther) return OtherFile::kPerfetto;
  return IsChakraEt(head) ? OtherFile::kChakraEt : OtherFile::kNone;
}

// In the order of OtherFile.
constexpr struct {
  absl::string_view noun, remedy;
} kOthers[] = {
    {"", ""},
    {"what combine made of ranks' Kineto traces", "; give the originals"},
    {"Chrome trace JSON that PyTorch's profiler did not write",
     "; or write its events as a table of rank, kind, start_ns and end_ns"},
    {"a Chakra execution trace", ""},
    {"a PyTorch execution trace", "; it has no times, give the profile of the same run"},
    {"rocprofv3's JSON", "; record with rocprofv3 --output-format rocpd, its default"},
    {"a Perfetto trace that PyTorch did not write", ""},
};

// Returns what a file that is no trace that is known looks like, to follow "is".
absl::string_view LooksLike(const FileHead& head) {
  const absl::string_view line = head.text().substr(0, head.text().find_first_of("\r\n"));
  const bool is_text = std::all_of(line.begin(), line.end(), [](char c) {
    return c == '\t' || !absl::ascii_iscntrl(static_cast<unsigned char>(c));
  });
  if (head.bytes().empty()) return "empty";
  if (absl::StartsWith(head.bytes(), "SQLite format 3")) {
    return "an SQLite database without tables of nsys or rocprofv3";
  }
  if (absl::StartsWith(line, "{")) {
    return "JSON whose beginning names neither traceEvents nor rank, kind, start_ns and end_ns";
  }
  if (is_text && line.find_first_of(",;\t") != line.npos) {
    return "a table without columns rank, kind, start_ns and end_ns";
  }
  return "no trace that is known";
}

template <typename Source>
const TraceSource* One() {
  static const auto& source = *new Source;
  return &source;
}

}  // namespace

const std::vector<const TraceSource*>& TraceSources() {
  static const auto& sources = *new std::vector<const TraceSource*>{
      One<KinetoSource>(),
      One<FlightRecorderSource>(),
      One<NcclLogSource>(),
      One<SqliteTraceSource>(),
      One<TableSource>(),
      One<PerfettoSource>(),
      // The last: XSpaces have nothing at their beginning that others could not have.
      One<XSpaceSource>(),
  };
  return sources;
}

std::vector<std::string> ProfileSuffixes() {
  std::vector<std::string> suffixes;
  for (const TraceSource* source : TraceSources()) {
    for (const absl::string_view suffix : source->suffixes()) {
      // Several kinds of traces are .json.
      if (std::find(suffixes.begin(), suffixes.end(), suffix) != suffixes.end()) continue;
      suffixes.push_back(std::string(suffix));
      suffixes.push_back(absl::StrCat(suffix, ".gz"));
    }
  }
  return suffixes;
}

absl::string_view DetectedFile::noun() const {
  if (!is_known()) return looks_like;
  return source != nullptr ? source->noun() : kOthers[static_cast<int>(other)].noun;
}

absl::string_view DetectedFile::remedy() const { return kOthers[static_cast<int>(other)].remedy; }

DetectedFile DetectFile(const FileHead& head) {
  DetectedFile file;
  file.other = DetectOther(head, One<KinetoSource>()->Detect(head));
  if (file.other != OtherFile::kNone) return file;
  file.looks_like = LooksLike(head);
  for (const TraceSource* source : TraceSources()) {
    if (!source->Detect(head)) continue;
    file.source = source;
    break;
  }
  return file;
}

absl::StatusOr<DetectedFile> DetectFile(FileSystem& file_system, const std::string& path) {
  ASSIGN_OR_RETURN(const FileHead head, FileHead::Read(file_system, path));
  return DetectFile(head);
}

bool IsNamedLikeProfiles(absl::string_view path) {
  path = absl::StripSuffix(path, ".gz");
  for (absl::string_view suffix : {".log", ".csv", ".jsonl", ".db", ".sqlite"}) {
    if (absl::EndsWith(path, suffix)) return false;
  }
  return true;
}

std::vector<std::string> KeepProfiles(FileSystem& file_system, std::vector<std::string> paths) {
  std::vector<DetectedFile> files;
  for (const std::string& path : paths) {
    // What cannot be read is for the reader to refuse.
    files.push_back(DetectFile(file_system, path).value_or(DetectedFile()));
  }
  bool has_sources = false, has_profiles = false;
  for (const DetectedFile& file : files) {
    has_sources |= file.source != nullptr;
    has_profiles |= file.source != nullptr && !file.source->TellsWhyJobsHang();
  }
  if (!has_sources) return paths;
  std::vector<std::string> kept;
  for (size_t i = 0; i < paths.size(); ++i) {
    const TraceSource* source = files[i].source;
    const bool may_be_profile = source == nullptr
                                    ? !files[i].is_known() && IsNamedLikeProfiles(paths[i])
                                    : !has_profiles || !source->TellsWhyJobsHang();
    if (may_be_profile) kept.push_back(std::move(paths[i]));
  }
  return kept;
}

}  // namespace meridian
