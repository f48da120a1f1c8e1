#include "chakra_export/generate/device_model.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "xla_profiler/base/config/config_value.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

constexpr size_t kMaxYamlBytes = 1 << 16;
constexpr int64_t kMaxUnits = 1 << 20;
constexpr size_t kMaxLevels = 8;
constexpr int64_t kMaxTile = 1 << 16;
// Into how many parts of k a product may be cut, so that units have work; another kernel adds them up.
constexpr int64_t kMostParts = 8;
// Longer than any workload may be; the sum of two fits into 64 bits.
constexpr double kMaxNs = 4e18;
// Sums are kept as 4-byte numbers.
constexpr double kSumBytes = 4;

// Written so that NaN fails, too.
absl::StatusOr<double> PositiveNumber(const ConfigValue& value) {
  constexpr double kLeast = 1e-3;
  constexpr double kMost = 1e9;
  ASSIGN_OR_RETURN(const double number, value.Number());
  if (number >= kLeast && number <= kMost) return number;
  return value.Error("expected a number from 1e-3 to 1e9");
}

absl::StatusOr<MemoryLevel> ReadLevel(const ConfigValue& value) {
  MemoryLevel level;
  RETURN_IF_ERROR(value.ReadMembers(
      {{"size", ReadInto(&level.bytes,
                         [](const ConfigValue& size) -> absl::StatusOr<double> {
                           ASSIGN_OR_RETURN(const std::string text, size.Text());
                           const absl::StatusOr<int64_t> bytes = ParseByteSize(text);
                           if (!bytes.ok()) return size.Error(bytes.status().message());
                           if (*bytes == 0) return size.Error("expected at least 1 byte");
                           return static_cast<double>(*bytes);
                         })},
       // 1 GB/s is a byte per nanosecond.
       {"gb_per_s", ReadInto(&level.bytes_per_ns, PositiveNumber)}}));
  if (level.bytes_per_ns == 0) return value.Error("has no gb_per_s, its bandwidth in 1e9 bytes/s");
  return level;
}

// A memory is larger than the one inside it, and no faster.
absl::Status CheckIsOutside(const MemoryLevel& level, const MemoryLevel& inside,
                            const ConfigValue& value) {
  if (inside.bytes == 0) {
    return value.Error("the memory before it has no size; only the outermost may be without");
  }
  if (level.bytes > 0 && level.bytes <= inside.bytes) {
    return value.Error("is not larger than the memory before it; the innermost comes first");
  }
  if (level.bytes_per_ns <= inside.bytes_per_ns) return absl::OkStatus();
  return value.Error("is faster than the memory before it; the innermost comes first");
}

absl::StatusOr<std::vector<int64_t>> ReadTiles(const ConfigValue& list) {
  std::vector<int64_t> tiles;
  RETURN_IF_ERROR(list.ForEachElement([&](const ConfigValue& element) -> absl::Status {
    ASSIGN_OR_RETURN(const int64_t side, element.Integer("expected 1 to 65536", 1, kMaxTile));
    tiles.push_back(side);
    return absl::OkStatus();
  }));
  if (tiles.empty() || tiles.size() > kMaxLevels) {
    return list.Error(absl::StrCat("expected 1 to ", kMaxLevels, " sides, e.g. [64, 128]"));
  }
  return tiles;
}

// Elements that blocks of these sides move of a product.
double ElementsMoved(const MatrixProduct& product, double rows, double columns) {
  const double m = static_cast<double>(product.m);
  const double k = static_cast<double>(product.k);
  const double n = static_cast<double>(product.n);
  return static_cast<double>(product.count) *
         (m * k * std::ceil(n / columns) + k * n * std::ceil(m / rows) + m * n);
}

// How long the memories take to move what tiles need.
double MemoryNs(const DeviceModel& device, const MatrixProduct& product, double rows,
                double columns, int64_t element_bytes) {
  double slowest_ns = 0;
  for (const MemoryLevel& level : device.memories) {
    const double bytes = static_cast<double>(element_bytes) * ElementsMoved(product, rows, columns);
    slowest_ns = std::max(slowest_ns, bytes / level.bytes_per_ns);
    // A block of each matrix lies in this memory while it is used; no smaller than a tile.
    const double side = std::sqrt(level.bytes / (3 * static_cast<double>(element_bytes)));
    rows = std::max(rows, side);
    columns = std::max(columns, side);
  }
  return slowest_ns;
}

}  // namespace

double MatrixProduct::operations() const {
  return 2 * static_cast<double>(m) * static_cast<double>(k) * static_cast<double>(n) *
         static_cast<double>(count);
}

absl::StatusOr<DeviceModel> ParseDeviceModel(absl::string_view yaml, absl::string_view source) {
  ASSIGN_OR_RETURN(const ConfigValue document,
                   ConfigValue::FromYaml(yaml, source, kMaxYamlBytes, "a device"));
  if (!document.IsMap()) return document.Error("no device: expected tflops, units, memories, ...");
  DeviceModel device;
  double launch_us = 0;
  RETURN_IF_ERROR(document.ReadMembers(
      {{"tflops", ReadInto(&device.tflops, PositiveNumber)},
       {"units", ReadInto(&device.units,
                          [](const ConfigValue& value) {
                            return value.Integer("expected 1 to 1048576", 1, kMaxUnits);
                          })},
       {"tiles", ReadInto(&device.tiles, ReadTiles)},
       {"launch_us", ReadInto(&launch_us, PositiveNumber)},
       {"memories", [&](const ConfigValue& list) {
          return list.ForEachElement([&](const ConfigValue& level) -> absl::Status {
            ASSIGN_OR_RETURN(const MemoryLevel read, ReadLevel(level));
            if (!device.memories.empty()) {
              RETURN_IF_ERROR(CheckIsOutside(read, device.memories.back(), level));
            }
            device.memories.push_back(read);
            return absl::OkStatus();
          });
        }}}));
  if (!document.Find("tflops").exists()) {
    return document.Find("tflops").Error("missing; expected e.g. tflops: 50");
  }
  device.launch_ns = launch_us * 1000;
  if (device.memories.empty() || device.memories.size() > kMaxLevels) {
    return document.Find("memories").Error("expected 1 to 8, the innermost first");
  }
  RETURN_IF_ERROR(Annotate(CheckTflops(device.tflops), source));
  return device;
}

double ProductNs(const DeviceModel& device, const MatrixProduct& product, int64_t element_bytes) {
  if (device.memories.empty()) return product.operations() / (device.tflops * 1000);
  const double m = static_cast<double>(product.m);
  const double k = static_cast<double>(product.k);
  const double n = static_cast<double>(product.n);
  const double count = static_cast<double>(product.count);
  const double units = static_cast<double>(device.units);
  double best_ns = std::numeric_limits<double>::infinity();
  for (const int64_t rows : device.tiles) {
    for (const int64_t columns : device.tiles) {
      const double a = static_cast<double>(rows);
      const double b = static_cast<double>(columns);
      const double memory_ns = MemoryNs(device, product, a, b, element_bytes);
      for (int64_t parts = 1; parts <= kMostParts; parts *= 2) {
        const double tiles =
            std::ceil(m / a) * std::ceil(n / b) * count * static_cast<double>(parts);
        const double tile_ns =
            2 * a * b * std::ceil(k / static_cast<double>(parts)) / (device.tflops * 1000 / units);
        double ns = device.launch_ns + std::max(std::ceil(tiles / units) * tile_ns, memory_ns);
        if (parts > 1) {
          ns += device.launch_ns + static_cast<double>(parts + 1) * m * n * count * kSumBytes /
                                       device.memories.back().bytes_per_ns;
        }
        best_ns = std::min(best_ns, ns);
      }
    }
  }
  return best_ns;
}

int64_t DurationNs(const DeviceModel& device, const WorkCost& cost,
                   absl::Span<const MatrixProduct> products, int64_t element_bytes) {
  if (device.memories.empty()) return DurationNs(cost, device.tflops);
  double other_operations = static_cast<double>(cost.operations);
  double ns = 0;
  for (const MatrixProduct& product : products) {
    ns += ProductNs(device, product, element_bytes);
    other_operations -= product.operations();
  }
  if (products.empty()) ns = device.launch_ns;
  ns += std::max(0.0, other_operations) / (device.tflops * 1000);
  const double memory_ns = static_cast<double>(cost.bytes) / device.memories.back().bytes_per_ns;
  return std::llround(std::min(std::max(ns, memory_ns), kMaxNs));
}

}  // namespace meridian
