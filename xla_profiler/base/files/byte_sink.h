// SPDX-License-Identifier: Apache-2.0
// Where a writer's bytes go: a file (atomic_file_writer.h), a string, a compressor.
#ifndef XLA_PROFILER_BASE_FILES_BYTE_SINK_H_
#define XLA_PROFILER_BASE_FILES_BYTE_SINK_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "xla_profiler/base/files/file_system.h"

namespace meridian {

class ByteSink {
 public:
  virtual ~ByteSink() = default;

  // Appends all of data or fails; after a failure nothing more may be appended.
  virtual absl::Status Append(absl::string_view data) = 0;
};

// Appends to a string owned by the caller.
class StringSink : public ByteSink {
 public:
  explicit StringSink(std::string* out) : out_(out) {}

  absl::Status Append(absl::string_view data) override {
    out_->append(data.data(), data.size());
    return absl::OkStatus();
  }

 private:
  std::string* out_;
};

// Appends to a file, e.g. to one that has no name.
class WritableFileSink : public ByteSink {
 public:
  // The file must outlive this object.
  explicit WritableFileSink(WritableFile& file) : file_(file) {}

  absl::Status Append(absl::string_view data) override { return file_.Append(data); }

 private:
  WritableFile& file_;
};

// Drops everything, for what is only to be tried or measured.
class DiscardingSink : public ByteSink {
 public:
  absl::Status Append(absl::string_view data) override {
    bytes_appended_ += data.size();
    return absl::OkStatus();
  }

  uint64_t bytes_appended() const { return bytes_appended_; }

 private:
  uint64_t bytes_appended_ = 0;
};

// Compresses into another sink, for outputs whose name ends in .gz.
class GzipSink : public ByteSink {
 public:
  // `compressed` must outlive this object.
  explicit GzipSink(ByteSink* compressed);
  ~GzipSink() override;

  absl::Status Append(absl::string_view data) override;

  // Writes what is still held back and the gzip trailer; without it the output is cut off. Nothing
  // may be appended afterwards. The other sink is left open.
  absl::Status Finish();

 private:
  struct Stream;

  ByteSink* compressed_;
  std::unique_ptr<Stream> stream_;
};

}  // namespace meridian

#endif  // XLA_PROFILER_BASE_FILES_BYTE_SINK_H_
