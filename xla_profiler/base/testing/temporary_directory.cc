#include "xla_profiler/base/testing/temporary_directory.h"

#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/byte_sink.h"

namespace meridian {

TemporaryDirectory::TemporaryDirectory() {
  const char* parent = getenv("TEST_TMPDIR");
  path_ = absl::StrCat(parent == nullptr ? "/tmp" : parent, "/test.XXXXXX");
  MERIDIAN_CHECK(mkdtemp(path_.data()) != nullptr);
}

TemporaryDirectory::~TemporaryDirectory() { std::filesystem::remove_all(path_); }

std::string TemporaryDirectory::PathOf(absl::string_view name) const {
  return absl::StrCat(path_, "/", name);
}

std::string TemporaryDirectory::Write(absl::string_view name, absl::string_view contents) const {
  const std::string path = PathOf(name);
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream file(path, std::ios::binary);
  file.write(contents.data(), contents.size());
  file.close();
  MERIDIAN_CHECK(file.good());
  return path;
}

std::string TemporaryDirectory::Read(absl::string_view name) const {
  std::ifstream file(PathOf(name), std::ios::binary);
  MERIDIAN_CHECK(file.good());
  return std::string(std::istreambuf_iterator<char>(file), {});
}

std::vector<std::string> TemporaryDirectory::List() const {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(path_)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string GzipText(absl::string_view text) {
  std::string compressed;
  StringSink sink(&compressed);
  GzipSink gzip(&sink);
  MERIDIAN_CHECK(gzip.Append(text).ok() && gzip.Finish().ok());
  return compressed;
}

}  // namespace meridian
