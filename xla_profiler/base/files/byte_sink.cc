#include "xla_profiler/base/files/byte_sink.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <deque>
#include <future>
#include <thread>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "xla_profiler/base/errors.h"

namespace meridian {
namespace {

// Much less would compress worse, much more would not begin early enough.
constexpr size_t kBlockBytes = size_t{1} << 20;
// Deflate looks back so far.
constexpr size_t kWindowBytes = size_t{32} << 10;
// zlib's largest window; negative for the blocks alone, without a header.
constexpr int kRawWindowBits = -15;
constexpr int kDefaultMemoryLevel = 8;
// Traces take 2.6 times as long at zlib's default, 6, which makes them a fifth smaller: the first
// block, which is all of a small file, gets it.
constexpr int kFirstLevel = 6;
constexpr int kLevel = 3;
// Bounds the memory where there are many cores.
constexpr size_t kMaxStartedBlocks = 8;
// No name, no time, written on Unix.
constexpr absl::string_view kGzipHeader("\x1f\x8b\x08\0\0\0\0\0\0\x03", 10);

// Returns the four bytes, the least first.
std::string LittleEndian(uint32_t value) {
  std::string bytes;
  for (int shift = 0; shift < 32; shift += 8) bytes.push_back(static_cast<char>(value >> shift));
  return bytes;
}

const Bytef* ZlibBytes(absl::string_view data) {
  return reinterpret_cast<const Bytef*>(data.data());
}

struct Block {
  std::string compressed;
  uint32_t crc = 0;
  size_t bytes = 0;
};

// Compresses what comes after `before`. A block that is not the last ends at a byte (Z_SYNC_FLUSH).
absl::StatusOr<Block> CompressBlock(absl::string_view data, absl::string_view before, int flush) {
  z_stream z = {};
  const int result = deflateInit2(&z, before.empty() ? kFirstLevel : kLevel, Z_DEFLATED,
                                  kRawWindowBits, kDefaultMemoryLevel, Z_DEFAULT_STRATEGY);
  MERIDIAN_CHECK(result == Z_OK || result == Z_MEM_ERROR);
  if (result == Z_MEM_ERROR) {
    return absl::ResourceExhaustedError("out of memory, there is none to compress with");
  }
  const absl::Cleanup end = [&] { deflateEnd(&z); };
  MERIDIAN_CHECK(deflateSetDictionary(&z, ZlibBytes(before), static_cast<uInt>(before.size())) ==
                 Z_OK);
  Block block;
  block.bytes = data.size();
  block.crc = static_cast<uint32_t>(crc32(0, ZlibBytes(data), static_cast<uInt>(data.size())));
  z.next_in = const_cast<Bytef*>(ZlibBytes(data));
  z.avail_in = static_cast<uInt>(data.size());
  std::array<unsigned char, size_t{64} << 10> output;
  // As long as zlib fills the output it may have more.
  do {
    z.next_out = output.data();
    z.avail_out = static_cast<uInt>(output.size());
    // Z_BUF_ERROR only says that there was nothing left to do.
    MERIDIAN_CHECK(deflate(&z, flush) != Z_STREAM_ERROR);
    block.compressed.append(reinterpret_cast<const char*>(output.data()),
                            output.size() - z.avail_out);
  } while (z.avail_out == 0);
  return block;
}

}  // namespace

// Blocks are compressed on other threads while the next one is filled. The output is one gzip member,
// the same however many threads there are.
struct GzipSink::Stream {
  // What is not being compressed yet, less than a block, and the end of what came before it.
  std::string data;
  std::string before;
  // Blocks that are being compressed, in their order.
  std::deque<std::future<absl::StatusOr<Block>>> started;
  // Of the blocks written.
  bool has_header = false;
  uint32_t crc = 0;
  uint32_t bytes = 0;

  absl::Status Write(const absl::StatusOr<Block>& block, ByteSink* out) {
    RETURN_IF_ERROR(block.status());
    if (!std::exchange(has_header, true)) RETURN_IF_ERROR(out->Append(kGzipHeader));
    crc = static_cast<uint32_t>(crc32_combine(crc, block->crc, static_cast<z_off_t>(block->bytes)));
    // Modulo 2^32, as the trailer has it.
    bytes += static_cast<uint32_t>(block->bytes);
    return out->Append(block->compressed);
  }

  absl::Status WriteFirstStarted(ByteSink* out) {
    const absl::StatusOr<Block> block = started.front().get();
    started.pop_front();
    return Write(block, out);
  }
};

GzipSink::GzipSink(ByteSink* compressed)
    : compressed_(compressed), stream_(std::make_unique<Stream>()) {}

GzipSink::~GzipSink() = default;

absl::Status GzipSink::Append(absl::string_view data) {
  static const size_t most_started =
      std::clamp<size_t>(std::thread::hardware_concurrency(), 1, kMaxStartedBlocks);
  std::string& block = stream_->data;
  while (data.size() >= kBlockBytes - block.size()) {
    const size_t taken = kBlockBytes - block.size();
    block.append(data.data(), taken);
    data.remove_prefix(taken);
    if (stream_->started.size() == most_started) {
      RETURN_IF_ERROR(stream_->WriteFirstStarted(compressed_));
    }
    std::string before = std::exchange(stream_->before, block.substr(kBlockBytes - kWindowBytes));
    // Runs on this thread, later, where no other is to be had.
    stream_->started.push_back(
        std::async([data = std::exchange(block, ""), before = std::move(before)] {
          return CompressBlock(data, before, Z_SYNC_FLUSH);
        }));
  }
  block.append(data.data(), data.size());
  return absl::OkStatus();
}

absl::Status GzipSink::Finish() {
  Stream& stream = *stream_;
  while (!stream.started.empty()) RETURN_IF_ERROR(stream.WriteFirstStarted(compressed_));
  RETURN_IF_ERROR(stream.Write(CompressBlock(stream.data, stream.before, Z_FINISH), compressed_));
  return compressed_->Append(absl::StrCat(LittleEndian(stream.crc), LittleEndian(stream.bytes)));
}

}  // namespace meridian
