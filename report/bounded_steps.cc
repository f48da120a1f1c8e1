#include "report/bounded_steps.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "google/protobuf/repeated_field.h"
#include "trace_alignment/combine/combine_report.pb.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

// Returns so many values, evenly spaced, the first and the last among them.
template <typename T>
std::vector<T> EvenlySpaced(const std::vector<T>& values, size_t count) {
  std::vector<T> chosen;
  for (size_t i = 0; i < count; ++i) {
    chosen.push_back(values[i * (values.size() - 1) / (count - 1)]);
  }
  return chosen;
}

void BoundLengths(google::protobuf::RepeatedField<double>* lengths) {
  if (lengths->size() <= kMaxReportedSteps) return;
  const std::vector<double> kept =
      EvenlySpaced(std::vector<double>(lengths->begin(), lengths->end()), kMaxReportedSteps);
  lengths->Clear();
  lengths->Add(kept.begin(), kept.end());
}

// Whoever has no step belongs to none.
bool HasStep(const ReportedStep&) { return true; }
template <typename Row>
bool HasStep(const Row& row) {
  return row.has_step();
}

template <typename Row>
void Collect(const google::protobuf::RepeatedPtrField<Row>& rows, std::set<int64_t>* steps) {
  for (const Row& row : rows) {
    if (HasStep(row)) steps->insert(row.step());
  }
}

template <typename Row>
void Keep(const std::set<int64_t>& steps, google::protobuf::RepeatedPtrField<Row>* rows) {
  rows->erase(
      std::remove_if(rows->begin(), rows->end(),
                     [&](const Row& row) { return HasStep(row) && steps.count(row.step()) == 0; }),
      rows->end());
}

}  // namespace

void BoundSteps(RunReport* report) {
  if (report->has_comparison()) {
    BoundLengths(report->mutable_comparison()->mutable_before_steps_ns());
    BoundLengths(report->mutable_comparison()->mutable_after_steps_ns());
  }
  std::set<int64_t> all;
  Collect(report->steps(), &all);
  Collect(report->combine().step_waits(), &all);
  // A report that was read back may be bounded already.
  if (all.size() <= kMaxReportedSteps || report->run().has_reported_steps()) return;
  const std::vector<int64_t> spaced =
      EvenlySpaced(std::vector<int64_t>(all.begin(), all.end()), kMaxReportedSteps);
  std::set<int64_t> kept(spaced.begin(), spaced.end());
  Collect(report->findings(), &kept);
  Keep(kept, report->mutable_steps());
  Keep(kept, report->mutable_path());
  Keep(kept, report->mutable_blame());
  Keep(kept, report->mutable_combine()->mutable_step_waits());
  if (report->has_simulation()) Keep(kept, report->mutable_simulation()->mutable_steps());
  const auto count = static_cast<int64_t>(kept.size());
  report->mutable_run()->set_reported_steps(count);
  report->add_notes(
      absl::StrCat("of ", WithThousands(static_cast<int64_t>(all.size())),
                   " steps this report shows ", WithThousands(count),
                   ", evenly spaced and those that findings point at; findings rest on all"));
}

}  // namespace meridian
