#ifndef CRITICAL_PATH_GRAPH_SOURCE_H_
#define CRITICAL_PATH_GRAPH_SOURCE_H_

#include <string>
#include <vector>

#include "critical_path/window_choice.h"

namespace meridian {

// What a graph is of.
struct GraphSource {
  std::string trace;
  WindowChoice window;
  bool hta_compatible = false;
  // What is wrong or missing in the trace, one sentence each.
  std::vector<std::string> notes;
};

}  // namespace meridian

#endif  // CRITICAL_PATH_GRAPH_SOURCE_H_
