// SPDX-License-Identifier: Apache-2.0
// Reads traces as Perfetto's importers do (trace_processor 58), and counts what they would lose:
//
//   times      `ts` and `dur` are rounded to ns one by one; what is before 0 is dropped
//   order      by time; at equal times as in the document
//   slices     of a thread nest or follow each other; others are not where they belong
//   arrows     `s`, `t` and `f` are tied to the innermost open slice of their thread; a `t` or `f` whose
//              `s` did not come before is dropped
//   processes  `process_sort_index` is cut to 32 bits; labels are not read
//
// In Perfetto's own format slices begin and end one by one, and an end closes the innermost that is
// open; slices that share a flow id are joined in order of time, each with the next.
#ifndef INTEGRATION_TESTING_PERFETTO_READER_H_
#define INTEGRATION_TESTING_PERFETTO_READER_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace meridian {

struct PerfettoReading {
  struct Process {
    // Empty when nothing names it.
    std::string name;
    int32_t sort_index = 0;
    int64_t slices = 0;
  };
  // An arrow that is drawn, between slices of these pids.
  struct Arrow {
    std::string category;
    int64_t from_pid = 0;
    int64_t to_pid = 0;
    std::string from_name;
    std::string to_name;
  };

  std::map<int64_t, Process> processes;
  std::vector<Arrow> arrows;
  int64_t slices = 0;
  // What is lost, and why.
  int64_t negative_times = 0;
  int64_t overlapping_slices = 0;
  // By category.
  std::map<std::string, int64_t> lost_arrow_ends;

  // The names of processes with slices, in the order in which they are shown.
  std::vector<std::string> RowNames() const;
  int64_t CountArrows(absl::string_view category) const;
};

// Fails the test when the text is no trace.
PerfettoReading ReadJsonAsPerfetto(absl::string_view text);

// Reads a trace in Perfetto's own format; fails the test when it is none. Arrows have no category, and
// ids of processes stand for pids. Ends of slices that none began, and slices that never end, count as
// overlapping.
PerfettoReading ReadProtoAsPerfetto(const std::string& bytes);

// Returns names and bytes of the plain files in a tar archive; fails the test when Perfetto would not
// read it.
std::vector<std::pair<std::string, std::string>> ReadTarAsPerfetto(absl::string_view bytes);

}  // namespace meridian

#endif  // INTEGRATION_TESTING_PERFETTO_READER_H_
