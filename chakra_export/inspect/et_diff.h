// What differs between the Chakra traces of two workloads.
#ifndef CHAKRA_EXPORT_INSPECT_ET_DIFF_H_
#define CHAKRA_EXPORT_INSPECT_ET_DIFF_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "chakra_export/et/et_files.h"
#include "chakra_export/et/et_reader.h"
#include "chakra_export/inspect/chakra_report.pb.h"
#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/files/input_file.h"

namespace meridian {

struct EtDiffOptions {
  InputFileOptions input;
  EtProgress progress;
};

// Compares nodes of equal rank and id; an id that occurs twice in a file is InvalidArgument. The
// order of nodes in a file, of dependencies and of attributes is no difference.
absl::StatusOr<ChakraDiffReport> DiffEtFiles(FileSystem& file_system, const EtFiles& first,
                                             const EtFiles& second,
                                             const EtDiffOptions& options = {});

// True when the report says so.
bool AreEqual(const ChakraDiffReport& report);

// Returns what changed from one node to the other; empty when nothing did.
std::vector<std::string> NodeChanges(const ChakraProtoMsg::Node& first,
                                     const ChakraProtoMsg::Node& second);

// For people.
std::string FormatDiff(const ChakraDiffReport& report);

}  // namespace meridian

#endif  // CHAKRA_EXPORT_INSPECT_ET_DIFF_H_
