/* Both libcuda.so.1 and libnccl.so.2 for machines without a GPU: streams and events on the host's clock.
 * Kernels take what they are asked for, communication 300 us, and nobody waits for other ranks.
 * STAND_IN_CALLS names a file to which calls are appended, a line each. STAND_IN_FAIL names a function
 * that fails. STAND_IN_SPEED says how many times as fast as the host's the GPU's clock runs. */
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A stream is a number from 1 on, an event has the time when its stream comes to it. */
static int64_t stream_ns[100];
static intptr_t stream_count;
static intptr_t communicator_count;
/* Kernels whose end is not written down yet. */
static int kernel_count;
/* How many hold the context, and its memory, which goes with the last of them. */
static int holder_count;
static void* held[4096];
static int held_count;
static char id_count;
enum { kTransferNs = 300000, kNotReady = 600 };

static int64_t Now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  const char* speed = getenv("STAND_IN_SPEED");
  /* Of a day, so that it stays a number of 64 bits however fast it goes. */
  return (time.tv_sec % 86400 * 1000000000LL + time.tv_nsec) * (speed == NULL ? 1 : atoi(speed));
}

/* Writes the call down and returns its error. */
static int Call(const char* name, int64_t a, int64_t b, int64_t c) {
  const char* path = getenv("STAND_IN_CALLS");
  const char* fails = getenv("STAND_IN_FAIL");
  FILE* file = path == NULL ? NULL : fopen(path, "a");
  if (file != NULL) {
    fprintf(file, "%s %lld %lld %lld\n", name, (long long)a, (long long)b, (long long)c);
    fclose(file);
  }
  return fails != NULL && strcmp(fails, name) == 0 ? 999 : 0;
}

static void* Hold(size_t bytes) {
  return held_count == 4096 ? NULL : (held[held_count++] = calloc(bytes, 1));
}

void StandInSpend(void* stream, int64_t ns) {
  int64_t* at = &stream_ns[(intptr_t)stream];
  *at = (*at > Now() ? *at : Now()) + ns;
}

int cuInit(unsigned flags) { return Call("cuInit", flags, 0, 0); }
int cuGetErrorString(int error, const char** text) {
  *text = error == 999 ? "made to fail" : NULL;
  return 0;
}
int cuDeviceGetCount(int* count) {
  *count = 2;
  return 0;
}
int cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return Call("cuDeviceGet", ordinal, 0, 0);
}
int cuDevicePrimaryCtxRetain(void** context, int device) {
  *context = (void*)(intptr_t)(device + 1);
  ++holder_count;
  return 0;
}
int cuCtxSetCurrent(void* context) { return context == NULL; }
int cuMemAlloc_v2(uint64_t* address, size_t bytes) {
  *address = 4096;
  return Call("cuMemAlloc", (int64_t)bytes, 0, 0);
}
int cuMemHostAlloc(void** memory, size_t bytes, unsigned flags) {
  *memory = Hold(bytes);
  return flags != 3 || *memory == NULL;
}
int cuMemsetD8_v2(uint64_t address, unsigned char value, size_t bytes) {
  return address == 0 || value != 0 || bytes == 0;
}
int cuStreamCreate(void** stream, unsigned flags) {
  (void)flags;
  *stream = (void*)++stream_count;
  return stream_count == 100;
}
int cuEventCreate(void** event, unsigned flags) {
  (void)flags;
  *event = Hold(sizeof(int64_t));
  return *event == NULL;
}
int cuEventRecord(void* event, void* stream) {
  StandInSpend(stream, 0);
  *(int64_t*)event = stream_ns[(intptr_t)stream];
  return 0;
}
int cuStreamWaitEvent(void* stream, void* event, unsigned flags) {
  int64_t* at = &stream_ns[(intptr_t)stream];
  (void)flags;
  if (*at < *(int64_t*)event) *at = *(int64_t*)event;
  return Call("cuStreamWaitEvent", (intptr_t)stream, 0, 0);
}
int cuEventQuery(void* event) { return *(int64_t*)event <= Now() ? 0 : kNotReady; }
int cuEventSynchronize(void* event) {
  while (cuEventQuery(event) != 0 || __atomic_load_n(&kernel_count, __ATOMIC_ACQUIRE) > 0) {
    sched_yield();
  }
  return 0;
}
int cuEventElapsedTime(float* ms, void* begin, void* end) {
  *ms = (float)(*(int64_t*)end - *(int64_t*)begin) / 1e6f;
  return 0;
}
int cuModuleLoadData(void** module, const void* image) {
  *module = (void*)image;
  return strstr(image, ".entry") == NULL;
}
int cuModuleGetFunction(void** function, void* module, const char* name) {
  *function = module;
  return strstr(module, name) == NULL;
}

/* Kernels under way, and a thread that writes down when they ended, once they have. */
static struct Kernel {
  int64_t* times;
  int64_t end_ns;
} kernels[4096];
static pthread_mutex_t kernels_mutex = PTHREAD_MUTEX_INITIALIZER;
static void* EndKernels(void* unused) {
  const struct timespec pause = {0, 20000};
  for (;;) {
    pthread_mutex_lock(&kernels_mutex);
    int kept = 0;
    for (int i = 0; i < kernel_count; ++i) {
      if (kernels[i].end_ns > Now()) {
        kernels[kept++] = kernels[i];
      } else {
        __atomic_store_n(&kernels[i].times[2], kernels[i].end_ns, __ATOMIC_RELEASE);
      }
    }
    __atomic_store_n(&kernel_count, kept, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&kernels_mutex);
    nanosleep(&pause, NULL);
  }
  return unused;
}
int cuDevicePrimaryCtxRelease_v2(int device) {
  if (--holder_count > 0) return 0;
  pthread_mutex_lock(&kernels_mutex);
  kernel_count = 0;
  pthread_mutex_unlock(&kernels_mutex);
  while (held_count > 0) free(held[--held_count]);
  return Call("cuDevicePrimaryCtxRelease", device, 0, 0);
}
int cuLaunchKernel(void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                   unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                   void* stream, void** arguments, void** extra) {
  static pthread_t thread;
  const int64_t ns = *(int64_t*)arguments[2];
  int64_t* times = *(int64_t**)arguments[1];
  if (Call("cuLaunchKernel", (intptr_t)stream, ns, *(int*)arguments[3]) != 0) return 999;
  if (function == NULL || *(uint64_t*)arguments[0] == 0 || shared_bytes != 0 || extra != NULL)
    return 1;
  if (grid_x * grid_y * grid_z * block_x * block_y * block_z != 1) return 1;
  if (thread == 0 && pthread_create(&thread, NULL, EndKernels, NULL) != 0) return 1;
  pthread_mutex_lock(&kernels_mutex);
  StandInSpend(stream, 0);
  const int64_t start_ns = stream_ns[(intptr_t)stream];
  __atomic_store_n(&times[0], start_ns, __ATOMIC_RELEASE);
  __atomic_store_n(&times[1], start_ns + ns, __ATOMIC_RELEASE);
  StandInSpend(stream, ns);
  kernels[kernel_count].times = times;
  kernels[kernel_count].end_ns = start_ns + ns;
  __atomic_store_n(&kernel_count, kernel_count + 1, __ATOMIC_RELEASE);
  pthread_mutex_unlock(&kernels_mutex);
  return 0;
}

struct Id {
  char bytes[128];
};
const char* ncclGetErrorString(int error) { return error == 999 ? "made to fail" : "unknown"; }
int ncclGetUniqueId(struct Id* id) {
  memset(id->bytes, ++id_count, sizeof(id->bytes));
  return Call("ncclGetUniqueId", id_count, 0, 0);
}
int ncclCommInitRank(void** communicator, int ranks, struct Id id, int rank) {
  *communicator = (void*)++communicator_count;
  return Call("ncclCommInitRank", ranks, id.bytes[127], rank);
}
int ncclCommDestroy(void* communicator) {
  --communicator_count;
  --id_count;
  return Call("ncclCommDestroy", (intptr_t)communicator, 0, 0);
}
int ncclCommGetAsyncError(void* communicator, int* error) {
  *error = 0;
  return communicator == NULL;
}
int ncclGroupStart(void) { return Call("ncclGroupStart", 0, 0, 0); }
int ncclGroupEnd(void) { return Call("ncclGroupEnd", 0, 0, 0); }

/* Of communication: count, type and communicator. */
static int Transfer(const char* name, size_t count, int type, void* communicator, void* stream) {
  /* The streams are the driver's. */
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  ((void (*)(void*, int64_t))dlsym(driver, "StandInSpend"))(stream, kTransferNs);
  return Call(name, (int64_t)count, type, (intptr_t)communicator);
}
int ncclAllReduce(const void* sent, void* received, size_t count, int type, int operation,
                  void* communicator, void* stream) {
  if (sent == NULL || received == NULL || operation != 0) return 1;
  return Transfer("ncclAllReduce", count, type, communicator, stream);
}
int ncclReduce(const void* sent, void* received, size_t count, int type, int operation, int root,
               void* communicator, void* stream) {
  if (sent == NULL || received == NULL || operation != 0 || root != 0) return 1;
  return Transfer("ncclReduce", count, type, communicator, stream);
}
int ncclBroadcast(const void* sent, void* received, size_t count, int type, int root,
                  void* communicator, void* stream) {
  if (sent == NULL || received == NULL || root != 0) return 1;
  return Transfer("ncclBroadcast", count, type, communicator, stream);
}
int ncclAllGather(const void* sent, void* received, size_t count, int type, void* communicator,
                  void* stream) {
  if (sent == NULL || received == NULL) return 1;
  return Transfer("ncclAllGather", count, type, communicator, stream);
}
int ncclReduceScatter(const void* sent, void* received, size_t count, int type, int operation,
                      void* communicator, void* stream) {
  if (sent == NULL || received == NULL || operation != 0) return 1;
  return Transfer("ncclReduceScatter", count, type, communicator, stream);
}
int ncclSend(const void* sent, size_t count, int type, int peer, void* communicator, void* stream) {
  if (sent == NULL || peer < 0) return 1;
  return Transfer("ncclSend", count, type, communicator, stream);
}
int ncclRecv(void* received, size_t count, int type, int peer, void* communicator, void* stream) {
  if (received == NULL || peer < 0) return 1;
  return Transfer("ncclRecv", count, type, communicator, stream);
}
