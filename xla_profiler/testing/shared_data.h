// SPDX-License-Identifier: Apache-2.0
// Real profiles for tests, more than the tree holds: a collection that lies beside the checkout
// (../shared) on machines that have it. Bazel does not see it: --nocache_test_results runs the
// tests again after it has changed.
#ifndef XLA_PROFILER_TESTING_SHARED_DATA_H_
#define XLA_PROFILER_TESTING_SHARED_DATA_H_

#include <optional>
#include <string>
#include <vector>

namespace meridian {

// Returns the folder beside the checkout, or nullopt when there is none. Tests that need it say
// GTEST_SKIP() << kSharedDataMissing.
std::optional<std::string> SharedDataDirectory();

inline constexpr char kSharedDataMissing[] = "skipped: ../shared not found";

// Returns the XSpace files (*.xplane.pb, plain or gzip) of the traces and samples there, sorted.
std::vector<std::string> SharedXSpaceFiles();

}  // namespace meridian

#endif  // XLA_PROFILER_TESTING_SHARED_DATA_H_
