// SPDX-License-Identifier: Apache-2.0
// What astra_predict does: times the edges of a list, or predicts a workload, on a network that a
// configuration and flags name.
#ifndef ASTRA_BRIDGE_PREDICTION_PREDICTION_RUN_H_
#define ASTRA_BRIDGE_PREDICTION_PREDICTION_RUN_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "astra_bridge/calibration/calibration_files.h"
#include "astra_bridge/calibration/prediction_interval.h"
#include "astra_bridge/configuration/timing_config.h"
#include "astra_bridge/configuration/timing_setup.h"
#include "astra_bridge/prediction/iteration_prediction.h"
#include "astra_bridge/prediction/prediction_report.pb.h"
#include "chakra_export/et/et_files.h"
#include "chakra_export/graph/communication_match.h"
#include "chakra_export/graph/execution_graph.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/files/input_file.h"
#include "xla_profiler/base/files/output_files.h"

namespace meridian {

// How the user names networks, and how to time communication on them.
struct NetworkFlags {
  // Path of a configuration; empty: there is none.
  std::string config;
  // Comma lists, for several networks (NamedCalibrations).
  std::string calibrations;
  CalibrationFiles files;
  // In place of the configuration; its files are not used.
  TimingFlags timing;
  // How communication is timed where neither configuration nor flags say.
  TimingModel model = TimingModel::kAnalytical;
};

// A network that something is predicted on.
struct PredictionNetwork {
  // The mode of workloads is IterationOptions::mode.
  TimingConfig config;
  // What sets it apart from others, as the user named it.
  std::string name;
  // How far predictions may be off.
  PredictionIntervals intervals;
  // All files that say how it is.
  std::vector<std::string> files;
};

// Returns at least one network.
absl::StatusOr<std::vector<PredictionNetwork>> ReadNetworks(FileSystem& file_system,
                                                            const NetworkFlags& flags);

// Reads the list and times its edges (PredictEdges). `progress` is told how many have been timed.
absl::StatusOr<PredictionReport> PredictEdgeList(FileSystem& file_system, const std::string& path,
                                                 const InputFileOptions& input,
                                                 const PredictionNetwork& network,
                                                 const TimingEnvironment& environment,
                                                 absl::FunctionRef<void(uint64_t)> progress);

// A workload that is predicted on one network after the other, and read before the first.
class WorkloadPredictor {
 public:
  struct Options {
    // The workload's traces are PREFIX.<rank>.et[.gz].
    std::string prefix;
    // JSON file with the ranks of process groups; empty: there is none.
    std::string comm_groups;
    InputFileOptions input;
    TimingEnvironment environment;
    IterationOptions iteration;
    // Where the list of traffic intervals goes: JSON, or a binary message when it ends in .pb; gzip
    // when .gz follows. Empty: nowhere.
    std::string manifest;
  };

  // The file system and the outputs must outlive this object.
  WorkloadPredictor(FileSystem& file_system, Options options, OutputFiles* outputs)
      : file_system_(file_system), options_(std::move(options)), outputs_(outputs) {}

  // Reads the traces after all that is smaller, unless they are there; `bytes_read` is told how many
  // more bytes have been, and forgotten then. Errors of the prediction name the prefix.
  absl::StatusOr<PredictionReport> Predict(const PredictionNetwork& network,
                                           std::function<void(uint64_t)> bytes_read,
                                           std::function<void(uint64_t)> progress);

 private:
  struct Workload {
    explicit Workload(ExecutionGraph read) : graph(std::move(read)), match(graph) {}

    const ExecutionGraph graph;
    const CommunicationMatch match;
  };

  absl::Status ReadWorkload(const EtFiles& traces, std::function<void(uint64_t)> bytes_read);
  absl::Status WriteManifest(const IterationPrediction& prediction, const TimingSetup& setup);

  FileSystem& file_system_;
  const Options options_;
  OutputFiles* const outputs_;
  // Null before it is read.
  std::unique_ptr<const Workload> workload_;
};

}  // namespace meridian

#endif  // ASTRA_BRIDGE_PREDICTION_PREDICTION_RUN_H_
