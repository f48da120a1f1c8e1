// SPDX-License-Identifier: Apache-2.0
// What a graph is of: a trace, or the traces of a job, and the part of them to look at, which is
// the whole or some occurrences of an annotation such as "ProfilerStep".
#ifndef CRITICAL_PATH_GRAPH_GRAPH_SOURCE_H_
#define CRITICAL_PATH_GRAPH_GRAPH_SOURCE_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "critical_path/graph/path_graph.h"
#include "xla_profiler/base/number_range.h"

namespace meridian {

struct WindowChoice {
  // Part of the annotation's name; empty for the whole trace.
  std::string annotation;
  // Which of its occurrences, from 0: the window spans them all. Those beyond the last are left
  // out.
  NumberRange instances;
};

// Where an operation comes from: what the framework calls it, "jit(step)/transpose", and the line of
// the program, "train.py:42".
struct OperationOrigin {
  std::string framework_op;
  std::string source;
};

struct GraphSource {
  // The trace's path, or that of the first trace and how many there are more.
  std::string trace;
  WindowChoice window;
  bool hta_compatible = false;
  // What the graph's steps are, in a word: "step" when the program marked them, "execution" of a
  // program, or "period" of repeating work (periods.h).
  std::string step_word = "step";
  // The devices are no GPUs (XLA:CPU, TPU), so that nothing is to be called after them.
  bool without_gpus = false;
  // By the name of events, where programs are known.
  std::map<std::string, OperationOrigin> origins;
  // What is wrong or missing in the trace, one sentence each.
  std::vector<std::string> notes;
  // Of a window, notes that begin with a count, which windows add up: the count by what follows it.
  std::map<std::string, int64_t> counts;
};

// A graph and what it is of.
struct TraceAnalysis {
  GraphSource source;
  PathGraph graph;
};

// Returns NotFound with the annotations there are: no event's name contains the one asked for.
absl::Status AnnotationNotFound(absl::string_view annotation, const std::set<std::string>& known);

// Returns which of so many occurrences are chosen, all of which exist. OutOfRange when there are
// too few.
absl::StatusOr<NumberRange> ChooseInstances(const WindowChoice& choice, int64_t occurrences);

// Which steps of a job are meant. Ranks may have been recorded from different steps on, so steps
// are told by their numbers: the n-th occurrence is the n-th number that any rank has.
class StepChoice {
 public:
  // A step is called e.g. "train#3", as Kineto calls its own.
  void Add(absl::string_view name, int64_t number);

  // Returns the numbers of the chosen occurrences of steps whose name contains the annotation.
  // NotFound naming those there are; OutOfRange when there are too few.
  absl::StatusOr<NumberRange> Choose(const WindowChoice& choice) const;

 private:
  // The full names by the steps' numbers.
  std::map<int64_t, std::string> names_;
};

}  // namespace meridian

#endif  // CRITICAL_PATH_GRAPH_GRAPH_SOURCE_H_
