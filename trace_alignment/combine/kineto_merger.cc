#include "trace_alignment/combine/kineto_merger.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <tuple>

#include "absl/numeric/int128.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "trace_alignment/aligner/kineto_aligner.h"
#include "trace_alignment/aligner/line_aligner.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/json/exact_decimal.h"
#include "xla_profiler/base/json/json_cutter.h"
#include "xla_profiler/base/json/json_value.h"
#include "xla_profiler/base/json/json_writer.h"
#include "xla_profiler/base/picoseconds.h"
#include "xla_profiler/kineto/kineto_collectives.h"
#include "xla_profiler/trace_json/trace_json_rewriter.h"

namespace meridian {
namespace {

// What is collected before it goes to the sink.
constexpr size_t kBufferBytes = size_t{1} << 18;
// Arrows have numbers below this within a rank, and in all below 2^53, as viewers read them.
constexpr uint64_t kFlowsPerRank = uint64_t{1} << 32;
constexpr uint64_t kMaxFlowRanks = uint64_t{1} << 20;
// Readers take microseconds for doubles, and these times a thousand.
constexpr int64_t kMaxExactNs = int64_t{1} << 52;
constexpr int64_t kBeforeFirstNs = 1'000'000'000;

std::string QuotedJson(absl::string_view text) {
  std::string quoted;
  AppendJsonString(text, &quoted);
  return quoted;
}

// Returns a string's text, or what else is written.
std::string TextOf(absl::string_view value) {
  return JsonValue(value).AsString().value_or(std::string(value));
}

// Makes the events of one rank its own.
class RankEvents {
 public:
  // `last_pid` counts the processes of all ranks, and outlives this object.
  RankEvents(const KinetoMergeInput& input, int64_t new_base_ns, int64_t* last_pid)
      : input_(input), aligner_(*input.clock, input.base_ns, new_base_ns), last_pid_(*last_pid) {}

  // Appends the event and returns true, or keeps what it says of a process.
  bool Append(absl::string_view element, absl::string_view separator, std::string* out) {
    const size_t size_before = out->size();
    bool is_kept = true;
    out->append(separator.data(), separator.size());
    AppendEdited(
        element,
        [&](const WrittenEvent& event, EventEdits* edits) { is_kept = Edit(event, edits); }, out);
    if (!is_kept) out->resize(size_before);
    return is_kept;
  }

  // Returns the number of the process or device.
  int64_t PidOf(absl::string_view pid) { return ProcessOf(pid).number; }

  // Appends the names of the processes that have events; `position` counts those of all ranks.
  void AppendProcesses(int64_t* position, std::string* out) const {
    std::vector<const Process*> processes;
    for (const auto& [pid, process] : processes_) {
      if (process.has_events) processes.push_back(&process);
    }
    std::sort(processes.begin(), processes.end(), [](const Process* a, const Process* b) {
      return std::tie(a->sort_index, a->number) < std::tie(b->sort_index, b->number);
    });
    for (const Process* process : processes) {
      const auto append = [&](absl::string_view name, absl::string_view key,
                              absl::string_view value) {
        absl::StrAppend(out, ",\n{\"ph\": \"M\", \"pid\": ", process->number,
                        ", \"tid\": 0, \"name\": \"", name, "\", \"args\": {\"", key, "\": ", value,
                        "}}");
      };
      append("process_name", "name", QuotedJson(NameOf(*process)));
      if (!process->label.empty()) append("process_labels", "labels", QuotedJson(process->label));
      append("process_sort_index", "sort_index", absl::StrCat((*position)++));
    }
  }

  AlignmentStats TakeStats() const { return aligner_.TakeStats(); }

 private:
  // What the trace says of a process or device.
  struct Process {
    // A number that no other rank has. Perfetto takes a pid that is text for any number.
    int64_t number = 0;
    // As it is written in the trace, without quotes.
    std::string pid;
    std::string name;
    std::string label;
    // Of its first event.
    std::string category;
    int64_t sort_index = std::numeric_limits<int64_t>::max();
    bool has_events = false;
  };

  // Returns false for an event that is not to be written.
  bool Edit(const WrittenEvent& event, EventEdits* edits) {
    if (!event.pid.empty()) {
      Process& process = ProcessOf(event.pid);
      if (event.Is('M') && ReadProcess(event, &process)) return false;
      if (!event.Is('M') && !process.has_events) {
        process.has_events = true;
        process.category = TextOf(event.cat);
      }
      edits->emplace_back(event.pid, absl::StrCat(process.number));
    }
    aligner_.Edit(event, edits);
    if (!event.id.empty()) edits->emplace_back(event.id, IdText(event.id));
    return true;
  }

  // Returns whether the event says something of its process.
  static bool ReadProcess(const WrittenEvent& event, Process* process) {
    const JsonValue args(event.args);
    if (event.name == "\"process_name\"") {
      process->name = TextOf(args.Find("name").text());
    } else if (event.name == "\"process_labels\"") {
      process->label = TextOf(args.Find("labels").text());
    } else if (event.name == "\"process_sort_index\"") {
      process->sort_index = args.Find("sort_index").AsInt64().value_or(process->sort_index);
    } else {
      return false;
    }
    return true;
  }

  Process& ProcessOf(absl::string_view pid) {
    const auto known = processes_.find(pid);
    if (known != processes_.end()) return known->second;
    Process& process = processes_[std::string(pid)];
    process.number = ++last_pid_;
    process.pid = TextOf(pid);
    return process;
  }

  // Kineto gives devices the name of the process, and says which they are in the label.
  std::string NameOf(const Process& process) const {
    std::string name = absl::StrCat("rank ", input_.rank);
    const auto add = [&](absl::string_view part) {
      if (!part.empty()) absl::StrAppend(&name, " ", part);
    };
    add(input_.hostname);
    if (absl::StartsWith(process.label, "GPU")) {
      add(process.label);
    } else if (!process.name.empty()) {
      add(absl::StrCat(process.name, " (", process.pid, ")"));
    } else {
      int64_t number = 0;
      const bool is_number = absl::SimpleAtoi(process.pid, &number);
      add(is_number && !process.category.empty() ? process.category : process.pid);
    }
    return name;
  }

  // A number that no other rank has; those of arrows between ranks are smaller.
  std::string IdText(absl::string_view id) const {
    uint64_t number = 0;
    const std::string text = TextOf(id);
    if (!absl::SimpleAtoi(text, &number)) number = std::hash<std::string>()(text);
    const uint64_t place = static_cast<uint64_t>(input_.rank) % kMaxFlowRanks + 1;
    return absl::StrCat(place * kFlowsPerRank + number % kFlowsPerRank);
  }

  const KinetoMergeInput& input_;
  KinetoEventAligner aligner_;
  int64_t& last_pid_;
  // By what is written.
  std::map<std::string, Process, std::less<>> processes_;
};

// Appends the arrow's ends, each behind a comma, the start first.
void AppendArrow(const KinetoArrow& arrow, int64_t time_ns, uint64_t id,
                 std::deque<RankEvents>* ranks, std::string* out) {
  for (const bool starts : {true, false}) {
    const KinetoArrow::End& end = starts ? arrow.from : arrow.to;
    absl::StrAppend(out, ",\n{\"ph\": \"", starts ? "s" : "f", "\", \"id\": ", id,
                    ", \"pid\": ", (*ranks)[end.input].PidOf(absl::StrCat(end.device)),
                    ", \"tid\": ", end.stream, ", \"ts\": ");
    AppendPicosAsMicros(absl::int128(time_ns) * kPsPerNs, out);
    absl::StrAppend(out, ", \"cat\": \"collective\", \"name\": ", QuotedJson(arrow.name),
                    starts ? "}" : ", \"bp\": \"e\"}");
  }
}

}  // namespace

int64_t EarliestBase(absl::Span<const KinetoMergeInput> inputs) {
  int64_t base_ns = std::numeric_limits<int64_t>::max();
  for (const KinetoMergeInput& input : inputs) {
    // Traces whose times count from 1970 may name their threads before the first slice.
    const int64_t first_ns = input.first_ns.value_or(input.base_ns);
    const bool is_far = absl::int128(first_ns) - input.base_ns > kMaxExactNs;
    const int64_t own_ns = is_far ? first_ns - kBeforeFirstNs : std::min(first_ns, input.base_ns);
    // Maps go forward: what is behind a base stays there.
    base_ns = std::min({base_ns, own_ns, MapHostTime(*input.clock, own_ns).value_or(own_ns)});
  }
  return base_ns;
}

absl::StatusOr<std::vector<AlignmentStats>> MergeKineto(
    absl::Span<const KinetoMergeInput> inputs, ForEachArrow for_each_arrow, int64_t base_ns,
    const std::function<void(uint64_t bytes)>& progress, ByteSink& sink) {
  std::string buffer = absl::StrCat(
      "{\n\"schemaVersion\": 1,\n\"displayTimeUnit\": \"ms\",\n\"", kCombinedRanksKey,
      "\": ", inputs.size(), ",\n\"baseTimeNanoseconds\": ", base_ns, ",\n\"traceEvents\": [");
  std::deque<RankEvents> ranks;
  std::vector<AlignmentStats> stats;
  bool is_first = true;
  int64_t last_pid = 0;
  uint64_t bytes_before = 0;
  const auto flush = [&](size_t limit) -> absl::Status {
    if (buffer.size() < limit) return absl::OkStatus();
    RETURN_IF_ERROR(sink.Append(buffer));
    buffer.clear();
    return absl::OkStatus();
  };
  for (const KinetoMergeInput& input : inputs) {
    RankEvents& rank = ranks.emplace_back(input, base_ns, &last_pid);
    const auto on_event = [&](absl::string_view element) -> absl::Status {
      if (element.empty()) return absl::OkStatus();
      if (rank.Append(element, is_first ? "\n" : ",\n", &buffer)) is_first = false;
      if (buffer.size() < kBufferBytes) return absl::OkStatus();
      if (progress) progress(bytes_before + (element.data() - input.text.data()));
      return flush(kBufferBytes);
    };
    const auto on_member = [](absl::string_view, absl::string_view) { return absl::OkStatus(); };
    RETURN_IF_ERROR(CutTrace(input.text, on_event, on_member));
    bytes_before += input.text.size();
    stats.push_back(rank.TakeStats());
  }
  int64_t position = 0;
  for (const RankEvents& rank : ranks) rank.AppendProcesses(&position, &buffer);
  // All slices stand before the arrows. Times are rounded as theirs are.
  const absl::int128 run_base_ns = inputs[0].clock->run.base_ns();
  const absl::int128 run_in_base_ps = (run_base_ns - base_ns) * kPsPerNs;
  uint64_t last_arrow = 0;
  RETURN_IF_ERROR(for_each_arrow([&](const KinetoArrow& arrow) -> absl::Status {
    const std::optional<int64_t> time_ns = WrittenNs(arrow.time_ps + run_in_base_ps);
    const std::optional<int64_t> end_ns = WrittenNs(arrow.to_end_ps + run_in_base_ps);
    if (!time_ns.has_value() || !end_ns.has_value() || *time_ns >= *end_ns) {
      return absl::OkStatus();
    }
    AppendArrow(arrow, *time_ns, ++last_arrow, &ranks, &buffer);
    return flush(kBufferBytes);
  }));
  absl::StrAppend(&buffer, "\n]\n}\n");
  RETURN_IF_ERROR(flush(0));
  return stats;
}

std::string PerfettoManifest(absl::Span<const ArchivedTrace> traces) {
  std::string text;
  JsonWriter json(&text, JsonSpacing::kSpaced);
  json.BeginObject(JsonLayout::kIndented);
  json.BeginObject("perfetto_manifest", JsonLayout::kIndented);
  json.Member("version", 1);
  json.BeginArray("files", JsonLayout::kIndented);
  for (const ArchivedTrace& trace : traces) {
    json.BeginObject();
    json.Member("path", trace.name);
    json.BeginObject("machine");
    json.Member("name", trace.machine);
    json.EndObject();
    json.EndObject();
  }
  json.EndArray();
  json.EndObject();
  json.EndObject();
  text += "\n";
  return text;
}

}  // namespace meridian
