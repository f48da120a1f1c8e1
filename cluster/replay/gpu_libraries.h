// SPDX-License-Identifier: Apache-2.0
// The functions of NVIDIA's driver and of NCCL that a replay calls. They are looked up while it runs
// (dlopen, so LD_LIBRARY_PATH counts), so that nothing of CUDA is needed to build it. Handles are
// what those libraries call CUstream, CUevent, CUdeviceptr and ncclComm_t.
#ifndef CLUSTER_REPLAY_GPU_LIBRARIES_H_
#define CLUSTER_REPLAY_GPU_LIBRARIES_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace meridian {

using GpuHandle = void*;
using GpuAddress = uint64_t;

// libcuda.so.1. Functions return 0, or an error.
struct CudaDriver {
  static constexpr int kNotReady = 600;

  int (*Init)(unsigned flags);
  int (*GetErrorString)(int error, const char** text);
  int (*DeviceGetCount)(int* count);
  int (*DeviceGet)(int* device, int ordinal);
  int (*DevicePrimaryCtxRetain)(GpuHandle* context, int device);
  int (*DevicePrimaryCtxRelease)(int device);
  int (*CtxSetCurrent)(GpuHandle context);
  int (*MemAlloc)(GpuAddress* address, size_t bytes);
  int (*MemHostAlloc)(void** memory, size_t bytes, unsigned flags);
  int (*MemsetD8)(GpuAddress address, unsigned char value, size_t bytes);
  int (*StreamCreate)(GpuHandle* stream, unsigned flags);
  int (*StreamWaitEvent)(GpuHandle stream, GpuHandle event, unsigned flags);
  int (*EventCreate)(GpuHandle* event, unsigned flags);
  int (*EventRecord)(GpuHandle event, GpuHandle stream);
  int (*EventQuery)(GpuHandle event);
  int (*EventSynchronize)(GpuHandle event);
  int (*EventElapsedTime)(float* ms, GpuHandle begin, GpuHandle end);
  int (*ModuleLoadData)(GpuHandle* module, const void* image);
  int (*ModuleGetFunction)(GpuHandle* function, GpuHandle module, const char* name);
  int (*LaunchKernel)(GpuHandle function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                      unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                      GpuHandle stream, void** arguments, void** extra);

  // Unavailable for an error, with its text: "cuInit: no CUDA-capable device is detected".
  absl::Status Check(int error, absl::string_view call) const;
};

// libnccl.so.2. Functions return 0, or an error.
struct Nccl {
  struct UniqueId {
    char bytes[128];
  };
  static constexpr int kUint8 = 1;
  static constexpr int kFloat32 = 7;
  static constexpr int kSum = 0;

  const char* (*GetErrorString)(int error);
  int (*GetUniqueId)(UniqueId* id);
  int (*CommInitRank)(GpuHandle* communicator, int ranks, UniqueId id, int rank);
  int (*CommDestroy)(GpuHandle communicator);
  int (*CommGetAsyncError)(GpuHandle communicator, int* error);
  int (*GroupStart)();
  int (*GroupEnd)();
  int (*AllReduce)(const void* sent, void* received, size_t count, int type, int operation,
                   GpuHandle communicator, GpuHandle stream);
  int (*Reduce)(const void* sent, void* received, size_t count, int type, int operation, int root,
                GpuHandle communicator, GpuHandle stream);
  int (*Broadcast)(const void* sent, void* received, size_t count, int type, int root,
                   GpuHandle communicator, GpuHandle stream);
  int (*AllGather)(const void* sent, void* received, size_t count, int type, GpuHandle communicator,
                   GpuHandle stream);
  int (*ReduceScatter)(const void* sent, void* received, size_t count, int type, int operation,
                       GpuHandle communicator, GpuHandle stream);
  int (*Send)(const void* sent, size_t count, int type, int peer, GpuHandle communicator,
              GpuHandle stream);
  int (*Receive)(void* received, size_t count, int type, int peer, GpuHandle communicator,
                 GpuHandle stream);

  // Unavailable for an error, with its text: "ncclSend: unhandled system error".
  absl::Status Check(int error, absl::string_view call) const;
};

// Unavailable says which library or function is missing, and what to install. Libraries stay loaded.
absl::StatusOr<CudaDriver> LoadCudaDriver();
absl::StatusOr<Nccl> LoadNccl();

}  // namespace meridian

#endif  // CLUSTER_REPLAY_GPU_LIBRARIES_H_
