// SPDX-License-Identifier: Apache-2.0
// What astra_predict does: times the edges of a list, or predicts a workload, on a network that a
// configuration and flags name.
#ifndef ASTRA_BRIDGE_PREDICTION_PREDICTION_RUN_H_
#define ASTRA_BRIDGE_PREDICTION_PREDICTION_RUN_H_

#include <cstdint>
#include <functional>
#include <istream>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "astra_bridge/calibration/calibration_files.h"
#include "astra_bridge/calibration/prediction_interval.h"
#include "astra_bridge/configuration/timing_config.h"
#include "astra_bridge/edges/comm_edge_list.h"
#include "astra_bridge/engine/network_config.h"
#include "astra_bridge/prediction/iteration_prediction.h"
#include "astra_bridge/prediction/prediction_report.pb.h"
#include "chakra_export/graph/execution_graph.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/files/input_file.h"
#include "xla_profiler/base/files/output_files.h"

namespace meridian {

// How the user names a network, and how to time communication on it.
struct NetworkFlags {
  // Path of a configuration; empty: there is none.
  std::string config;
  // The folder of a calibration, and files in place of its own (NamedCalibration).
  std::string calibration;
  CalibrationFiles files;
  // In place of what the configuration says; an empty folder: nothing.
  std::optional<TimingMode> mode;
  std::optional<Congestion> congestion;
  std::string cache_folder;
};

// A network that something is predicted on.
struct PredictionNetwork {
  // The mode of workloads is IterationOptions::mode.
  TimingConfig config;
  // How far predictions may be off.
  PredictionIntervals intervals;
  // As in NamedNetwork.
  bool is_measured = false;
  // All files that say how it is.
  std::vector<std::string> files;
};

absl::StatusOr<PredictionNetwork> ReadPredictionNetwork(FileSystem& file_system,
                                                        const NetworkFlags& flags);

// Reads the list and times its edges (PredictEdges). `progress` is told how many have been timed.
absl::StatusOr<PredictionReport> PredictEdgeList(FileSystem& file_system, const std::string& path,
                                                 const InputFileOptions& input,
                                                 const PredictionNetwork& network,
                                                 absl::FunctionRef<void(uint64_t)> progress);

// Answers requests for times until the end of the input, as astra_predict --serve does:
//
//   request   a list of comm edges (comm_edge_list.h), then an empty line
//   answer    one line: the report (PredictEdges), a single edge alone and several together; or
//             {"error": what is wrong with the list, "exit_code": that of a command}
//
// The first answer comes before any request and is the report of no edges. Returns only errors of the
// setup and of `answer`: whatever is asked, the next request is read.
absl::Status ServeEdges(FileSystem& file_system, const PredictionNetwork& network,
                        std::istream& requests,
                        absl::FunctionRef<absl::Status(const std::string&)> answer);

struct WorkloadOptions {
  // The workload's traces are PREFIX.<rank>.et[.gz].
  std::string prefix;
  // JSON file with the ranks of process groups; empty: there is none.
  std::string comm_groups;
  InputFileOptions input;
  // Told how many more bytes of the traces have been read, and forgotten then. May be null.
  std::function<void(uint64_t)> bytes_read;
  IterationOptions iteration;
  // Where the report goes, with the devices of edges: JSON, gzip when it ends in .gz. Empty: nowhere.
  std::string manifest;
};

// Predicts the workload. All that is smaller is read before the traces. Errors of a prediction name
// the prefix.
absl::StatusOr<PredictionReport> PredictWorkload(FileSystem& file_system, WorkloadOptions options,
                                                 const PredictionNetwork& network,
                                                 OutputFiles* outputs);

// Returns the report of a workload's prediction, without its times beside the measured ones.
PredictionReport MakeIterationReport(const IterationPrediction& prediction, TimingMode mode,
                                     const TimingSetup& setup, const ExecutionGraph& graph);

// Times the edges of a list, each alone or all together from 0 on, and returns the report. The
// iteration lasts as long as the longest. `progress` is told how many edges have been timed alone.
absl::StatusOr<PredictionReport> PredictEdges(const TimingSetup& setup, const CommEdgeList& list,
                                              TimingMode mode,
                                              absl::FunctionRef<void(uint64_t)> progress);

// Returns where the communication's time goes: of a list of edges the slowest, of a workload the
// kinds; then the sums. (prediction_text.cc)
std::string FormatPrediction(const PredictionReport& report);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_PREDICTION_PREDICTION_RUN_H_
