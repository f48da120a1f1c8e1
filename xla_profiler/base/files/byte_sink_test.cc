#include "xla_profiler/base/files/byte_sink.h"

#include <sys/resource.h>
#include <unistd.h>
#include <zlib.h>

#include <cstdlib>
#include <random>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/files/input_file.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/base/testing/temporary_directory.h"

namespace meridian {
namespace {

TEST(StringSinkTest, AppendsBehindWhatIsThere) {
  std::string out = "head ";
  StringSink sink(&out);
  EXPECT_OK(sink.Append("one "));
  EXPECT_OK(sink.Append("two"));
  EXPECT_EQ(out, "head one two");
}

// Compresses in pieces of the given size, inflates, and compares.
void ExpectRoundTrip(const std::string& text, size_t piece_bytes) {
  std::string compressed;
  StringSink sink(&compressed);
  GzipSink gzip(&sink);
  for (size_t i = 0; i < text.size(); i += piece_bytes) {
    ASSERT_OK(gzip.Append(absl::string_view(text).substr(i, piece_bytes)));
  }
  ASSERT_OK(gzip.Finish());
  const TemporaryDirectory directory;
  const std::string path = directory.Write("text.gz", compressed);
  ASSERT_OK_AND_ASSIGN(const InputFile file, InputFile::Open(FileSystem::Posix(), path));
  EXPECT_TRUE(file.was_compressed());
  EXPECT_EQ(file.bytes(), text);
}

TEST(GzipSinkTest, InflatesToWhatWasAppended) {
  ExpectRoundTrip("", 1);
  ExpectRoundTrip("hello, hello", 5);
  // More than the output buffer holds, compressible or not.
  ExpectRoundTrip(std::string(1000000, 'a'), 4099);
  std::mt19937 random(6);
  std::string noise(1000000, ' ');
  for (char& c : noise) c = static_cast<char>(random());
  ExpectRoundTrip(noise, 65536);
  ExpectRoundTrip(noise, noise.size());
}

std::string Compressed(absl::string_view text) {
  std::string compressed;
  StringSink sink(&compressed);
  GzipSink gzip(&sink);
  EXPECT_OK(gzip.Append(text));
  EXPECT_OK(gzip.Finish());
  return compressed;
}

// Blocks of 1 MiB are compressed side by side: their ends, and what lies across them.
TEST(GzipSinkTest, BlocksAreOneMemberInTheirOrder) {
  std::mt19937 random(7);
  std::string noise(9 << 20, ' ');
  for (char& c : noise) c = static_cast<char>(random() % 16);
  for (const size_t bytes : {size_t{1} << 20, (size_t{1} << 20) + 1, (size_t{3} << 20) - 1}) {
    ExpectRoundTrip(noise.substr(0, bytes), 4099);
  }
  ExpectRoundTrip(noise, noise.size());
  const std::string compressed = Compressed(noise);
  EXPECT_EQ(compressed, Compressed(noise));
  // Readers that know of one member only are content, too.
  std::string inflated(noise.size() + 1, ' ');
  z_stream z = {};
  ASSERT_EQ(inflateInit2(&z, 15 + 16), Z_OK);
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(compressed.data()));
  z.avail_in = static_cast<uInt>(compressed.size());
  z.next_out = reinterpret_cast<Bytef*>(inflated.data());
  z.avail_out = static_cast<uInt>(inflated.size());
  EXPECT_EQ(inflate(&z, Z_FINISH), Z_STREAM_END);
  EXPECT_EQ(z.avail_in, 0);
  EXPECT_EQ(z.total_out, noise.size());
  inflateEnd(&z);
}

// A block knows what was before it: 20 kB that repeat are stored once, not once a block.
TEST(GzipSinkTest, BlocksReferToTheOneBefore) {
  std::mt19937 random(8);
  std::string noise(20'000, ' ');
  for (char& c : noise) c = static_cast<char>(random());
  std::string repeated;
  while (repeated.size() < size_t{8} << 20) repeated += noise;
  EXPECT_LT(Compressed(repeated).size(), 200'000);
}

TEST(GzipSinkTest, Compresses) { EXPECT_LT(Compressed(std::string(1000000, 'a')).size(), 2000); }

class BrokenSink : public ByteSink {
 public:
  absl::Status Append(absl::string_view) override { return absl::DataLossError("broken"); }
};

TEST(GzipSinkTest, ErrorsOfTheOtherSinkComeBack) {
  BrokenSink sink;
  GzipSink gzip(&sink);
  EXPECT_OK(gzip.Append("x"));
  EXPECT_THAT(gzip.Finish(), StatusIs(absl::StatusCode::kDataLoss, "broken"));
  // Long before the end, too, with blocks that are still being compressed.
  GzipSink large(&sink);
  EXPECT_THAT(large.Append(std::string(size_t{20} << 20, 'a')),
              StatusIs(absl::StatusCode::kDataLoss, "broken"));
}

#ifndef MERIDIAN_SANITIZED  // Their allocators end the program themselves.
// Leaves the process no more memory than the sink itself takes: the compressor's own 256 KiB are
// missing.
void TakeTheMemoryThatACompressorNeeds() {
  // Volatile: the compiler may drop what is only allocated and freed.
  void* volatile for_the_sink = std::malloc(80 << 10);
  const rlimit nothing_new = {0, 0};
  setrlimit(RLIMIT_AS, &nothing_new);
  while (std::malloc(32 << 10) != nullptr) {
  }
  std::free(for_the_sink);
}

TEST(GzipSinkTest, WithoutMemoryForTheCompressorItFailsInsteadOfAborting) {
  EXPECT_EXIT(
      {
        DiscardingSink sink;
        TakeTheMemoryThatACompressorNeeds();
        GzipSink gzip(&sink);
        const absl::Status appended = gzip.Append("x");
        _exit(appended.ok() && absl::IsResourceExhausted(gzip.Finish()) ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}
#endif

}  // namespace
}  // namespace meridian
