#include "tools/pipeline/calibration_output.h"

#include <string>

#include "astra_bridge/calibration/calibration_report.pb.h"
#include "astra_bridge/corrections/corrections.h"
#include "astra_bridge/sidecar/astra_files.h"
#include "tools/pipeline/output_files.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/json/report_json.h"

namespace meridian {

absl::Status WriteCalibration(FileSystem& file_system, const Calibration& calibration,
                              const CalibrationFiles& paths) {
  OutputFiles outputs(file_system);
  if (!paths.network.empty()) {
    ASSIGN_OR_RETURN(const std::string network, NetworkConfigToYaml(calibration.fabric.network));
    RETURN_IF_ERROR(outputs.WriteText("network", paths.network, network));
  }
  RETURN_IF_ERROR(
      outputs.WriteText("system", paths.system,
                        SystemConfigToJson(calibration.fabric.system, /*trace_enabled=*/false)));
  RETURN_IF_ERROR(outputs.WriteText("corrections", paths.corrections,
                                    CorrectionsToJson(calibration.corrections)));
  RETURN_IF_ERROR(outputs.WriteText("report", paths.report, ReportToJson(calibration.report)));
  return outputs.Commit();
}

}  // namespace meridian
