#include "cluster/replay/gpu_libraries.h"

#include <dlfcn.h>

#include <initializer_list>

#include "absl/strings/str_cat.h"
#include "xla_profiler/base/errors.h"

namespace meridian {
namespace {

struct Symbol {
  // Takes a pointer to the pointer that the function is put into.
  template <typename Function>
  Symbol(const char* name, Function** function)
      : name(name), address(reinterpret_cast<void**>(function)) {}

  const char* name;
  void** address;
};

absl::Status LoadLibrary(const char* library, absl::string_view advice,
                         std::initializer_list<Symbol> symbols) {
  void* handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    return absl::UnavailableError(absl::StrCat("--backend=nccl: ", dlerror(), "; ", advice));
  }
  for (const Symbol& symbol : symbols) {
    *symbol.address = dlsym(handle, symbol.name);
    if (*symbol.address != nullptr) continue;
    return absl::UnavailableError(
        absl::StrCat("--backend=nccl: ", library, " has no ", symbol.name, "; ", advice));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CudaDriver::Check(int error, absl::string_view call) const {
  if (error == 0) return absl::OkStatus();
  const char* text = nullptr;
  GetErrorString(error, &text);
  return absl::UnavailableError(
      absl::StrCat(call, ": ", text == nullptr ? absl::StrCat("error ", error) : text));
}

absl::Status Nccl::Check(int error, absl::string_view call) const {
  if (error == 0) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat(call, ": ", GetErrorString(error), " (NCCL_DEBUG=WARN says more)"));
}

absl::StatusOr<CudaDriver> LoadCudaDriver() {
  CudaDriver cuda;
  RETURN_IF_ERROR(LoadLibrary("libcuda.so.1", "install NVIDIA's driver (Debian: libcuda1)",
                              {{"cuInit", &cuda.Init},
                               {"cuGetErrorString", &cuda.GetErrorString},
                               {"cuDeviceGetCount", &cuda.DeviceGetCount},
                               {"cuDeviceGet", &cuda.DeviceGet},
                               {"cuDevicePrimaryCtxRetain", &cuda.DevicePrimaryCtxRetain},
                               {"cuDevicePrimaryCtxRelease_v2", &cuda.DevicePrimaryCtxRelease},
                               {"cuCtxSetCurrent", &cuda.CtxSetCurrent},
                               {"cuMemAlloc_v2", &cuda.MemAlloc},
                               {"cuMemHostAlloc", &cuda.MemHostAlloc},
                               {"cuMemsetD8_v2", &cuda.MemsetD8},
                               {"cuStreamCreate", &cuda.StreamCreate},
                               {"cuStreamWaitEvent", &cuda.StreamWaitEvent},
                               {"cuEventCreate", &cuda.EventCreate},
                               {"cuEventRecord", &cuda.EventRecord},
                               {"cuEventQuery", &cuda.EventQuery},
                               {"cuEventSynchronize", &cuda.EventSynchronize},
                               {"cuEventElapsedTime", &cuda.EventElapsedTime},
                               {"cuModuleLoadData", &cuda.ModuleLoadData},
                               {"cuModuleGetFunction", &cuda.ModuleGetFunction},
                               {"cuLaunchKernel", &cuda.LaunchKernel}}));
  return cuda;
}

absl::StatusOr<Nccl> LoadNccl() {
  Nccl nccl;
  RETURN_IF_ERROR(LoadLibrary("libnccl.so.2",
                              "install NCCL 2.7 or newer (NVIDIA's apt: libnccl2, pip: "
                              "nvidia-nccl-cu12) or name its folder "
                              "in LD_LIBRARY_PATH",
                              {{"ncclGetErrorString", &nccl.GetErrorString},
                               {"ncclGetUniqueId", &nccl.GetUniqueId},
                               {"ncclCommInitRank", &nccl.CommInitRank},
                               {"ncclCommDestroy", &nccl.CommDestroy},
                               {"ncclCommGetAsyncError", &nccl.CommGetAsyncError},
                               {"ncclGroupStart", &nccl.GroupStart},
                               {"ncclGroupEnd", &nccl.GroupEnd},
                               {"ncclAllReduce", &nccl.AllReduce},
                               {"ncclReduce", &nccl.Reduce},
                               {"ncclBroadcast", &nccl.Broadcast},
                               {"ncclAllGather", &nccl.AllGather},
                               {"ncclReduceScatter", &nccl.ReduceScatter},
                               {"ncclSend", &nccl.Send},
                               {"ncclRecv", &nccl.Receive}}));
  return nccl;
}

}  // namespace meridian
