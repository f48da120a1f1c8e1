#include "xla_profiler/base/files/byte_sink.h"

#include <zlib.h>

#include <algorithm>
#include <array>

#include "xla_profiler/base/errors.h"

namespace meridian {
namespace {

// zlib's largest window, and 16 for a gzip header instead of zlib's own.
constexpr int kGzipWindowBits = 15 + 16;
constexpr int kDefaultMemoryLevel = 8;
// zlib counts input in unsigned ints.
constexpr size_t kMaxPieceBytes = size_t{1} << 30;

}  // namespace

struct GzipSink::Stream {
  z_stream z = {};
  std::array<unsigned char, size_t{64} << 10> output;
};

GzipSink::GzipSink(ByteSink* compressed)
    : compressed_(compressed), stream_(std::make_unique<Stream>()) {
  const int result = deflateInit2(&stream_->z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzipWindowBits,
                                  kDefaultMemoryLevel, Z_DEFAULT_STRATEGY);
  MERIDIAN_CHECK(result == Z_OK || result == Z_MEM_ERROR);
  if (result == Z_MEM_ERROR) {
    status_ = absl::ResourceExhaustedError("out of memory, there is none to compress with");
  }
}

GzipSink::~GzipSink() { deflateEnd(&stream_->z); }

absl::Status GzipSink::Append(absl::string_view data) {
  while (!data.empty()) {
    const size_t size = std::min(data.size(), kMaxPieceBytes);
    RETURN_IF_ERROR(Deflate(data.substr(0, size), Z_NO_FLUSH));
    data.remove_prefix(size);
  }
  return absl::OkStatus();
}

absl::Status GzipSink::Finish() { return Deflate("", Z_FINISH); }

absl::Status GzipSink::Deflate(absl::string_view data, int flush) {
  RETURN_IF_ERROR(status_);
  z_stream& z = stream_->z;
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data.data()));
  z.avail_in = static_cast<uInt>(data.size());
  // As long as zlib fills the output it may have more.
  do {
    z.next_out = stream_->output.data();
    z.avail_out = static_cast<uInt>(stream_->output.size());
    // Z_BUF_ERROR only says that there was nothing left to do.
    MERIDIAN_CHECK(deflate(&z, flush) != Z_STREAM_ERROR);
    const size_t produced = stream_->output.size() - z.avail_out;
    if (produced == 0) break;
    RETURN_IF_ERROR(compressed_->Append(
        absl::string_view(reinterpret_cast<const char*>(stream_->output.data()), produced)));
  } while (z.avail_out == 0);
  return absl::OkStatus();
}

}  // namespace meridian
