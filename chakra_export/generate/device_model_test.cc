#include "chakra_export/generate/device_model.h"

#include <cmath>
#include <string>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/files/input_file.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::StartsWith;

// 4 units of 1 operation per nanosecond each, tiles of 2 x 2; a memory of 48 bytes and 2 bytes per
// nanosecond before one of 1 byte per nanosecond.
DeviceModel Small() {
  DeviceModel device;
  device.tflops = 0.004;
  device.units = 4;
  device.tiles = {2};
  device.memories = {{48, 1e9}, {0, 1e9}};
  return device;
}

// 4 x 4 are 4 tiles, one wave of 2 * 2 * 2 * 8 operations; 6 x 4 are two, or three of half of k.
TEST(DeviceModelTest, UnitsWorkInWaves) {
  EXPECT_DOUBLE_EQ(ProductNs(Small(), {4, 8, 4}, 1), 64);
  EXPECT_NEAR(ProductNs(Small(), {6, 8, 4}, 1), 96, 1e-6);
  // Two products of 2 x 2 fill half of the units; cut in two along k all of them, and half as long.
  EXPECT_NEAR(ProductNs(Small(), {2, 8, 2, 2}, 1), 32, 1e-6);
}

// With 3 blocks of 4 x 4 in the inner memory, 8 x 2 times 2 x 8 reads the left factor twice, and the
// right one: 2 * 16 + 2 * 16 + 64 bytes from the outer memory; tiles of 2 read four times from the
// inner one: 4 * 16 + 4 * 16 + 64.
TEST(DeviceModelTest, TheSlowestMemoryDecides) {
  DeviceModel device = Small();
  device.tflops = 1000;
  device.memories[1].bytes_per_ns = 1;
  EXPECT_NEAR(ProductNs(device, {8, 2, 8}, 1), 128, 0.01);
  device.memories[0].bytes_per_ns = 1;
  EXPECT_NEAR(ProductNs(device, {8, 2, 8}, 1), 192, 0.01);
  device.launch_ns = 5;
  EXPECT_NEAR(ProductNs(device, {8, 2, 8}, 1), 197, 0.01);
}

TEST(DeviceModelTest, OtherWorkTakesItsOperationsOrItsBytes) {
  DeviceModel device = Small();
  device.launch_ns = 5;
  device.memories[1].bytes_per_ns = 1;
  EXPECT_EQ(DurationNs(device, {400, 10}, {}, 1), 105);
  EXPECT_EQ(DurationNs(device, {400, 1000}, {}, 1), 1000);
  // 4 x 8 times 8 x 4 move 32 + 32 + 16 bytes; and 40 operations more.
  EXPECT_EQ(DurationNs(device, {2 * 4 * 8 * 4 + 40, 10}, {{4, 8, 4}}, 1), 5 + 80 + 10);
  device.memories.clear();
  EXPECT_EQ(DurationNs(device, {400, 1000}, {}, 1), 100);
}

// The shortest kernels, in us, of products of 4-byte numbers that several processes ran at once on an
// H200: PyTorch's mm and addmm in three recordings (Kineto, "Input Dims"). The last one gave the
// device its speed; the other sizes are data sheet and one guess, 5 us a kernel.
constexpr struct {
  MatrixProduct product;
  double measured_us;
} kMeasured[] = {
    {{512, 1024, 512}, 22.1},  {{512, 1024, 2048}, 56.6},   {{512, 2048, 512}, 31.2},
    {{512, 2048, 2048}, 95.7}, {{1024, 512, 512}, 23.2},    {{1024, 512, 1536}, 48.6},
    {{1024, 512, 2048}, 51.2}, {{1024, 1536, 512}, 46.9},   {{1024, 2048, 512}, 56.9},
    {{1536, 1024, 512}, 47.1}, {{1536, 2048, 512}, 78.1},   {{2048, 512, 512}, 30.0},
    {{2048, 512, 1536}, 92.3}, {{2048, 512, 2048}, 90.5},   {{2048, 1024, 512}, 56.2},
    {{2048, 2048, 512}, 97.8}, {{2048, 2048, 2048}, 340.5},
};

TEST(DeviceModelTest, IsNearerToMeasuredKernelsThanOperationsAlone) {
  const std::string path = "examples/devices/h200_fp32.yml";
  ASSERT_OK_AND_ASSIGN(const InputFile file, InputFile::Open(FileSystem::Posix(), path));
  ASSERT_OK_AND_ASSIGN(const DeviceModel device, ParseDeviceModel(file.bytes(), path));
  double error = 0;
  double error_of_operations = 0;
  for (const auto& [product, measured_us] : kMeasured) {
    error += std::abs(ProductNs(device, product, 4) / 1000 / measured_us - 1);
    error_of_operations += std::abs(product.operations() / (device.tflops * 1e6) / measured_us - 1);
  }
  EXPECT_NEAR(error / std::size(kMeasured), 0.101, 0.001);
  EXPECT_NEAR(error_of_operations / std::size(kMeasured), 0.25, 0.005);
}

TEST(DeviceModelTest, NamesTheKeyAtFault) {
  const struct {
    std::string yaml;
    std::string message;
  } cases[] = {
      {"[]", "d.yml: no device"},
      {"tflops: 5", "d.yml: memories: expected 1 to 8"},
      {"memories: [{gb_per_s: 1}]", "d.yml: tflops: missing; expected e.g. tflops: 50"},
      {"memories: [{size: 1MB}]", "d.yml: memories[0]: has no gb_per_s"},
      {"memories: [{gb_per_s: 0}]", "d.yml: memories[0].gb_per_s: expected a number from"},
      {"memories: [{gb_per_s: .nan}]", "d.yml: memories[0].gb_per_s: expected a number"},
      {"memories: [{gb_per_s: 1, size: x}]", "d.yml: memories[0].size: "},
      {"{units: 0, memories: [{gb_per_s: 1}]}", "d.yml: units: expected 1 to"},
      {"{tiles: [], memories: [{gb_per_s: 1}]}", "d.yml: tiles: expected"},
      {"{tiles: [0], memories: [{gb_per_s: 1}]}", "d.yml: tiles[0]: expected"},
      {"{speed: 3}", "d.yml: speed: "},
      {"{tflops: 200000, memories: [{gb_per_s: 1}]}",
       "d.yml: --tflops=200000: expected more than 0"},
      {"{tiles: [1, 2, 3, 4, 5, 6, 7, 8, 9]}", "d.yml: tiles: expected 1 to 8 sides"},
      {"memories: [{gb_per_s: 1, size: 0}]", "d.yml: memories[0].size: expected at least 1 byte"},
      {"memories: [{gb_per_s: 2}, {gb_per_s: 1}]",
       "d.yml: memories[1]: the memory before it has no size"},
      {"memories: [{gb_per_s: 2, size: 2MB}, {gb_per_s: 1, size: 1MB}]",
       "d.yml: memories[1]: is not larger than the memory before it"},
      {"memories: [{gb_per_s: 1, size: 2MB}, {gb_per_s: 2}]",
       "d.yml: memories[1]: is faster than the memory before it"},
  };
  for (const auto& test : cases) {
    EXPECT_THAT(ParseDeviceModel(test.yaml, "d.yml"),
                StatusIs(absl::StatusCode::kInvalidArgument, StartsWith(test.message)))
        << test.yaml;
  }
}

}  // namespace
}  // namespace meridian
