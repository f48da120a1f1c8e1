// Any bytes as requests for the times of comm edges: there is an answer of one line for each.
#include <sstream>
#include <string>

#include "astra_bridge/prediction/prediction_run.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/testing/temporary_directory.h"
#include "xla_profiler/testing/fuzz.h"

absl::Status meridian::FuzzOne(absl::string_view bytes) {
  static const TemporaryDirectory& directory = *new TemporaryDirectory;
  static const PredictionNetwork& network = *[] {
    auto* made = new PredictionNetwork;
    made->config.topologies[""].network = directory.Write(
        "ring.yml", "topology: [ Ring ]\nnpus_count: [ 4 ]\nbandwidth: [ 50 ]\nlatency: [ 500 ]\n");
    return made;
  }();
  std::istringstream requests{std::string(bytes)};
  return ServeEdges(FileSystem::Posix(), network, requests, [](const std::string& answer) {
    return answer.find('\n') == answer.size() - 1 ? absl::OkStatus()
                                                  : absl::InternalError("not one line");
  });
}
