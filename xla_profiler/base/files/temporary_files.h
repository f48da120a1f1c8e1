// SPDX-License-Identifier: Apache-2.0
// What a killed command leaves: the temporary files of AtomicFileWriter.
#ifndef XLA_PROFILER_BASE_FILES_TEMPORARY_FILES_H_
#define XLA_PROFILER_BASE_FILES_TEMPORARY_FILES_H_

#include <string>

#include "xla_profiler/base/files/file_system.h"

namespace meridian {

// Removes the temporary files in a folder, for whoever knows that nobody is writing there. Files that
// cannot be removed stay.
void RemoveTemporaryFiles(FileSystem& file_system, const std::string& folder);

}  // namespace meridian

#endif  // XLA_PROFILER_BASE_FILES_TEMPORARY_FILES_H_
