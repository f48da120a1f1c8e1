// SPDX-License-Identifier: Apache-2.0
// What the planes of several nodes are called in one file.
#ifndef TRACE_ALIGNMENT_COMBINE_PLANE_NAMING_H_
#define TRACE_ALIGNMENT_COMBINE_PLANE_NAMING_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace meridian {

enum class PlaneNaming {
  // As viewers expect it: `/device:GPU:<n>` numbered through, one `/host:CPU`; what no viewer shows
  // as a device is `/node:<id>/...`.
  kViewer,
  // Every plane is `/node:<id>/...`.
  kNodePrefix,
};

// The most devices that viewers show.
inline constexpr int64_t kMaxViewerDevices = 499;

// Returns e.g. "/node:3/host:CPU" for "/host:CPU" of node 3, "/node:3/Task Environment" for "Task
// Environment".
std::string NodePlaneName(int64_t node_id, absl::string_view name);

class PlaneNames {
 public:
  explicit PlaneNames(PlaneNaming naming) : naming_(naming) {}

  // Names the node's next plane. Devices are numbered per kind, in the order they come; planes of
  // one device of a node (a TPU and its SparseCores) share its number. InvalidArgument beyond what
  // viewers show.
  absl::StatusOr<std::string> Name(int64_t node_id, absl::string_view name);

 private:
  const PlaneNaming naming_;
  // The numbers of devices, by "kind node number", and how many devices of a kind there are.
  absl::flat_hash_map<std::string, int64_t> devices_;
  absl::flat_hash_map<std::string, int64_t> counts_;
  int64_t total_ = 0;
};

}  // namespace meridian

#endif  // TRACE_ALIGNMENT_COMBINE_PLANE_NAMING_H_
