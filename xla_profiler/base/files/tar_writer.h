// SPDX-License-Identifier: Apache-2.0
// Writes a tar archive (POSIX ustar) as a stream: a block of 512 bytes that describes the member, its
// bytes filled up to whole blocks, and two empty blocks at the end.
#ifndef XLA_PROFILER_BASE_FILES_TAR_WRITER_H_
#define XLA_PROFILER_BASE_FILES_TAR_WRITER_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "xla_profiler/base/files/byte_sink.h"

namespace meridian {

// Appends a plain file. InvalidArgument for names of more than 100 bytes and for 8 GiB and more.
absl::Status AppendTarMember(absl::string_view name, absl::string_view bytes, ByteSink& sink);

// Ends the archive; without it readers take it for cut off.
absl::Status FinishTar(ByteSink& sink);

}  // namespace meridian

#endif  // XLA_PROFILER_BASE_FILES_TAR_WRITER_H_
