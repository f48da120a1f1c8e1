#include "trace_alignment/combine/kineto_merger.h"

#include <map>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "trace_alignment/aligner/kineto_aligner.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/json/json_cutter.h"
#include "xla_profiler/base/json/json_value.h"
#include "xla_profiler/base/json/json_writer.h"
#include "xla_profiler/kineto/kineto_collectives.h"
#include "xla_profiler/trace_json/trace_json_rewriter.h"

namespace meridian {
namespace {

// What is collected before it goes to the sink.
constexpr size_t kBufferBytes = size_t{1} << 18;
// Arrows have numbers below this within a rank, and in all below 2^53, as viewers read them.
constexpr uint64_t kFlowsPerRank = uint64_t{1} << 32;
constexpr uint64_t kMaxFlowRanks = uint64_t{1} << 20;
constexpr int64_t kSortsPerRank = int64_t{1} << 32;

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

  void Edit(const WrittenEvent& event, EventEdits* edits) {
    aligner_.Edit(event, edits);
    if (!event.pid.empty()) edits->emplace_back(event.pid, PidText(event.pid));
    if (!event.id.empty()) edits->emplace_back(event.id, IdText(event.id));
    if (event.Is('M') && !event.args.empty()) EditMetadata(event, edits);
  }

  AlignmentStats TakeStats() const { return aligner_.TakeStats(); }

 private:
  // A number that no other rank has; text stays text.
  const std::string& PidText(absl::string_view pid) {
    const auto known = pids_.find(pid);
    if (known != pids_.end()) return known->second;
    int64_t number = 0;
    std::string text;
    if (absl::SimpleAtoi(pid, &number)) {
      text = absl::StrCat(++last_pid_);
    } else {
      text = QuotedJson(absl::StrCat("rank ", input_.rank, " ", TextOf(pid)));
    }
    return pids_.emplace(std::string(pid), std::move(text)).first->second;
  }

  // A number that no other rank has.
  std::string IdText(absl::string_view id) const {
    uint64_t number = 0;
    const std::string text = TextOf(id);
    if (!absl::SimpleAtoi(text, &number)) number = std::hash<std::string>()(text);
    const uint64_t place = static_cast<uint64_t>(input_.rank) % kMaxFlowRanks + 1;
    return absl::StrCat(place * kFlowsPerRank + number % kFlowsPerRank);
  }

  void EditMetadata(const WrittenEvent& event, EventEdits* edits) const {
    if (event.name == "\"process_name\"") {
      edits->emplace_back(event.args,
                          absl::StrCat("{\"name\": ", QuotedJson(ProcessName(event)), "}"));
    } else if (event.name == "\"process_sort_index\"") {
      const std::optional<int64_t> index = JsonValue(event.args).Find("sort_index").AsInt64();
      if (!index.has_value() || *index < 0 || *index >= kSortsPerRank) return;
      edits->emplace_back(
          event.args, absl::StrCat("{\"sort_index\": ", input_.rank * kSortsPerRank + *index, "}"));
    }
  }

  // Devices have small numbers; processes of a host, and Kineto's own tracks, others.
  std::string ProcessName(const WrittenEvent& event) const {
    const std::string host = input_.hostname.empty() ? "" : absl::StrCat(" ", input_.hostname);
    return absl::StrCat("rank ", input_.rank, host, " (", TextOf(event.pid), ") ",
                        TextOf(JsonValue(event.args).Find("name").text()));
  }

  const KinetoMergeInput& input_;
  KinetoEventAligner aligner_;
  int64_t& last_pid_;
  // By what is written.
  std::map<std::string, std::string, std::less<>> pids_;
};

}  // namespace

absl::StatusOr<std::vector<AlignmentStats>> MergeKineto(
    absl::Span<const KinetoMergeInput> inputs, const std::function<void(uint64_t bytes)>& progress,
    ByteSink& sink) {
  const int64_t base_ns = inputs[0].base_ns;
  std::string buffer = absl::StrCat(
      "{\n\"schemaVersion\": 1,\n\"displayTimeUnit\": \"ms\",\n\"", kCombinedRanksKey,
      "\": ", inputs.size(), ",\n\"baseTimeNanoseconds\": ", base_ns, ",\n\"traceEvents\": [");
  std::vector<AlignmentStats> stats;
  bool is_first = true;
  int64_t last_pid = 0;
  uint64_t bytes_before = 0;
  for (const KinetoMergeInput& input : inputs) {
    RankEvents rank(input, base_ns, &last_pid);
    const auto on_event = [&](absl::string_view element) -> absl::Status {
      if (element.empty()) return absl::OkStatus();
      buffer.append(std::exchange(is_first, false) ? "\n" : ",\n");
      AppendEdited(
          element, [&](const WrittenEvent& event, EventEdits* edits) { rank.Edit(event, edits); },
          &buffer);
      if (buffer.size() < kBufferBytes) return absl::OkStatus();
      RETURN_IF_ERROR(sink.Append(buffer));
      buffer.clear();
      if (progress) progress(bytes_before + (element.data() - input.text.data()));
      return absl::OkStatus();
    };
    const auto on_member = [](absl::string_view, absl::string_view) { return absl::OkStatus(); };
    RETURN_IF_ERROR(CutTrace(input.text, on_event, on_member));
    bytes_before += input.text.size();
    stats.push_back(rank.TakeStats());
  }
  absl::StrAppend(&buffer, "\n]\n}\n");
  RETURN_IF_ERROR(sink.Append(buffer));
  return stats;
}

}  // namespace meridian
