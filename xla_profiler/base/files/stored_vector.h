// SPDX-License-Identifier: Apache-2.0
// A long vector that is written into a file without a name once it is complete: what is read from there
// takes memory only until it is forgotten.
#ifndef XLA_PROFILER_BASE_FILES_STORED_VECTOR_H_
#define XLA_PROFILER_BASE_FILES_STORED_VECTOR_H_

#include <cstddef>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/file_system.h"

namespace meridian {

template <typename T>
class StoredVector {
 public:
  static_assert(std::is_trivially_copyable_v<T>, "elements are copied as bytes");

  // The elements while they may change; not once they are stored.
  std::vector<T>& elements() {
    MERIDIAN_CHECK(region_ == nullptr);
    return elements_;
  }

  // Writes the elements into a temporary file of the folder, which gives them another place. They stay
  // in memory where they are few, or cannot be written.
  void Store(FileSystem& file_system, const std::string& folder) {
    if (region_ == nullptr && !StoreInFile(file_system, folder)) elements_.shrink_to_fit();
  }
  absl::Span<const T> view() const {
    if (region_ == nullptr) return elements_;
    const absl::string_view bytes = region_->bytes();
    return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
  }

  size_t size() const { return view().size(); }
  const T& operator[](size_t position) const { return view()[position]; }

  // Takes the elements out of memory until they are read again, if they are stored.
  void Forget() const {
    if (region_ != nullptr) ForgetMapped(region_->bytes());
  }

 private:
  // Returns whether the elements are in a file now.
  bool StoreInFile(FileSystem& file_system, const std::string& folder) {
    const absl::string_view bytes(reinterpret_cast<const char*>(elements_.data()),
                                  elements_.size() * sizeof(T));
    if (bytes.size() < kFewBytes) return false;
    const auto file = file_system.CreateTemporary(folder);
    if (!file.ok() || !(*file)->Append(bytes).ok()) return false;
    auto region = file_system.MapTemporary(**file);
    if (!region.ok() || (*region)->bytes().size() != bytes.size()) return false;
    region_ = *std::move(region);
    elements_ = std::vector<T>();
    return true;
  }

  // A file takes time, too.
  static constexpr size_t kFewBytes = size_t{1} << 16;

  std::vector<T> elements_;
  // Null until they are stored.
  std::unique_ptr<MappedRegion> region_;
};

}  // namespace meridian

#endif  // XLA_PROFILER_BASE_FILES_STORED_VECTOR_H_
