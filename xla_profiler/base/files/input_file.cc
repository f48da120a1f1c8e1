#include "xla_profiler/base/files/input_file.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "xla_profiler/base/errors.h"
#include "zlib.h"

namespace meridian {
namespace {

constexpr absl::string_view kGzipMagic = "\x1f\x8b";
constexpr size_t kInflatedBytes = size_t{1} << 20;
// zlib counts in 32 bits.
constexpr size_t kMaxFedBytes = size_t{1} << 30;
constexpr int kGunzipWindowBits = 15 + 16;

bool IsBomb(uint64_t compressed_bytes, uint64_t inflated_bytes, const InputFileOptions& options) {
  // In double, since "no limit" times a size would overflow.
  return inflated_bytes > options.max_inflated_bytes &&
         static_cast<double>(inflated_bytes) >
             static_cast<double>(options.max_inflation_ratio) * compressed_bytes;
}

// Inflates the members one after the other. Zeros after the last one are a tape's padding, which gzip
// ignores, too.
absl::Status Inflate(absl::string_view compressed, const InputFileOptions& options,
                     WritableFile& out) {
  const auto buffer = std::make_unique<char[]>(kInflatedBytes);
  z_stream stream = {};
  // All that can go wrong when it begins is the memory.
  int result = inflateInit2(&stream, kGunzipWindowBits) == Z_OK ? Z_OK : Z_MEM_ERROR;
  const absl::Cleanup end_stream = [&] { inflateEnd(&stream); };
  // What zlib has not consumed yet.
  absl::string_view rest = compressed;
  const auto error = [&](absl::string_view reason) {
    return InvalidArgument("offset ", compressed.size() - rest.size(), ": ", reason);
  };
  uint64_t inflated_bytes = 0;
  while (true) {
    const size_t fed_bytes = std::min(rest.size(), kMaxFedBytes);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(rest.data()));
    stream.avail_in = fed_bytes;
    stream.next_out = reinterpret_cast<Bytef*>(buffer.get());
    stream.avail_out = kInflatedBytes;
    if (result == Z_OK) result = inflate(&stream, Z_NO_FLUSH);
    rest.remove_prefix(fed_bytes - stream.avail_in);
    // There was room for output, so the input is used up.
    if (result == Z_BUF_ERROR) return error("truncated gzip data");
    if (result == Z_MEM_ERROR) {
      return absl::ResourceExhaustedError(error("out of memory").message());
    }
    if (result != Z_OK && result != Z_STREAM_END) {
      return error(stream.msg == nullptr ? "bad gzip data" : stream.msg);
    }
    const size_t size = kInflatedBytes - stream.avail_out;
    inflated_bytes += size;
    if (IsBomb(compressed.size(), inflated_bytes, options)) {
      return error(absl::StrCat(
          "inflates to more than ", options.max_inflation_ratio,
          " times its size, refused as a decompression bomb; gunzip it first if it is genuine"));
    }
    RETURN_IF_ERROR(out.Append(absl::string_view(buffer.get(), size)));
    if (result == Z_OK) continue;
    if (rest.find_first_not_of('\0') == absl::string_view::npos) return absl::OkStatus();
    if (!absl::StartsWith(rest, kGzipMagic)) {
      return error("unknown data after the end of the gzip data");
    }
    result = inflateReset(&stream);
  }
}

absl::StatusOr<std::unique_ptr<MappedRegion>> MapInflated(FileSystem& file_system,
                                                          absl::string_view compressed,
                                                          const InputFileOptions& options) {
  absl::StatusOr<std::unique_ptr<WritableFile>> created =
      file_system.CreateTemporary(options.temporary_directory);
  // A scratch folder that is missing, say, is not the user's input.
  if (ExitCode(created.status()) == kExitBadInput) {
    return absl::UnavailableError(
        absl::StrCat("no place to inflate it (TMPDIR): ", created.status().message()));
  }
  RETURN_IF_ERROR(created.status());
  const std::unique_ptr<WritableFile> file = *std::move(created);
  RETURN_IF_ERROR(Inflate(compressed, options, *file));
  return file_system.MapTemporary(*file);
}

class BytesOfOthers : public MappedRegion {
 public:
  explicit BytesOfOthers(absl::string_view bytes) : bytes_(bytes) {}

  absl::string_view bytes() const override { return bytes_; }

 private:
  absl::string_view bytes_;
};

}  // namespace

absl::StatusOr<InputFile> InputFile::Open(FileSystem& file_system, const std::string& path,
                                          const InputFileOptions& options) {
  InputFile file;
  file.path_ = path;
  ASSIGN_OR_RETURN(file.region_, file_system.Map(path));
  file.file_size_ = file.bytes().size();
  file.was_compressed_ = absl::StartsWith(file.bytes(), kGzipMagic);
  if (file.was_compressed_) {
    ASSIGN_OR_RETURN(file.region_, Annotate(MapInflated(file_system, file.bytes(), options), path));
  }
  return file;
}

InputFile InputFile::OfBytes(absl::string_view bytes, std::string path) {
  InputFile file;
  file.path_ = std::move(path);
  file.file_size_ = bytes.size();
  file.region_ = std::make_unique<BytesOfOthers>(bytes);
  return file;
}

}  // namespace meridian
