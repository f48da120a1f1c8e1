// SPDX-License-Identifier: Apache-2.0
// What differs between the Chakra traces of two workloads.
#ifndef CHAKRA_EXPORT_ET_TOOLS_ET_DIFF_H_
#define CHAKRA_EXPORT_ET_TOOLS_ET_DIFF_H_

#include <string>

#include "absl/status/statusor.h"
#include "chakra_export/et/et_files.h"
#include "chakra_export/et/et_reader.h"
#include "xla_profiler/base/files/file_system.h"

namespace meridian {

class ChakraDiffReport;

// Compares nodes of equal rank and id; an id that occurs twice in a file is InvalidArgument. The
// order of nodes in a file, of dependencies and of attributes is no difference.
absl::StatusOr<ChakraDiffReport> DiffEtFiles(FileSystem& file_system, const EtFiles& first,
                                             const EtFiles& second,
                                             const EtReaderOptions& options = {});

// Returns the report as text for people.
std::string FormatDiff(const ChakraDiffReport& report);

}  // namespace meridian

#endif  // CHAKRA_EXPORT_ET_TOOLS_ET_DIFF_H_
