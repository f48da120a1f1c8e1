// SPDX-License-Identifier: Apache-2.0
// Records the MPI calls of a C or C++ program as A-mpiP does, for `workload_model fit`
// (docs/cluster.md#mpi_tracer). Preloaded, it stands between the program and MPI (PMPI):
//
//   mpicc -O2 -fPIC -shared -o libmpi_tracer.so mpi_tracer.c
//   MERIDIAN_MPI_TRACE=runs/bfs_16-16-1-20 mpirun -x MERIDIAN_MPI_TRACE -x LD_PRELOAD=libmpi_tracer.so ...
//
// Each rank writes PREFIX-<rank>.trace, a line a call; MPI_Finalize has rank 0 write PREFIX.mpiP, the
// callsites. A callsite is called by the place of its return address in its program or library, so that
// all ranks and runs of one program call it alike, in whatever order they come to it.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <mpi.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

// Of MPI 3 and later; what programs are built with decides which constants they pass.
#if MPI_VERSION < 3
#error "MPI 3 or newer is needed"
#endif

enum { kBufferBytes = 1 << 16, kMaxSites = 1 << 12, kMaxPath = 1 << 12 };

typedef struct {
  // Where it returns to, and what is called there: what tells callsites of a process.
  const void* address;
  char operation[32];
  // The function that calls, or the program or library where nobody knows.
  char caller[64];
  int64_t id;
  int64_t count;
  double us, least_us, most_us;
} Site;

// The ranks of a communicator, kept as its attribute and freed with it.
typedef struct {
  int size;
  // World ranks of the communicator, or of the remote group of one between two groups.
  int* world;
  // What traces call it, e.g. "coll 0xc4000009 ".
  char name[32];
  // Its ranks as traces list them: "0 1 2 ".
  char* list;
} Members;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static bool is_open, is_finalized;
// -1: nothing is written, since it cannot be.
static int trace_file = -1;
static pid_t process;
static int world_rank, keyval = MPI_KEYVAL_INVALID;
static int64_t last_id;
static double last_us;
static char buffer[kBufferBytes];
static size_t buffered;
// By address and operation; an entry without an address is free.
static Site sites[kMaxSites];
static int site_count;

static double NowUs(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return 1e6 * (double)now.tv_sec + 1e-3 * (double)now.tv_nsec;
}

// Tracing ends; the program goes on.
static void Fail(const char* what, const char* why) {
  fprintf(stderr, "mpi_tracer: rank %d: %s: %s; calls are no longer traced\n", world_rank, what,
          why);
  if (trace_file >= 0) close(trace_file);
  trace_file = -1;
}

static void MakePath(char* path, const char* ending) {
  const char* prefix = getenv("MERIDIAN_MPI_TRACE");
  snprintf(path, kMaxPath, "%s%s", prefix != NULL ? prefix : "mpi", ending);
}

static void Flush(void) {
  size_t done = 0;
  while (trace_file >= 0 && done < buffered) {
    const ssize_t written = write(trace_file, buffer + done, buffered - done);
    if (written > 0) {
      done += (size_t)written;
    } else if (written == 0 || errno != EINTR) {
      Fail("its trace cannot be written", strerror(errno));
    }
  }
  buffered = 0;
}

// For programs that end without MPI_Finalize; what a child process inherits is not its own.
__attribute__((destructor)) static void FlushAtExit(void) {
  if (getpid() == process) Flush();
}

static void WriteBytes(const char* text, size_t length) {
  while (length > 0) {
    if (buffered == kBufferBytes) Flush();
    const size_t part = length < kBufferBytes - buffered ? length : kBufferBytes - buffered;
    memcpy(buffer + buffered, text, part);
    buffered += part;
    text += part;
    length -= part;
  }
}

static void WriteText(const char* text) { WriteBytes(text, strlen(text)); }

// Lines have few digits, and printf takes longer than some calls do.
static void WriteNumber(int64_t number) {
  char digits[24];
  char* first = digits + sizeof(digits);
  uint64_t rest = number < 0 ? -(uint64_t)number : (uint64_t)number;
  do {
    *--first = (char)('0' + rest % 10);
    rest /= 10;
  } while (rest > 0);
  if (number < 0) *--first = '-';
  WriteBytes(first, (size_t)(digits + sizeof(digits) - first));
}

static int FreeMembers(MPI_Comm comm, int key, void* value, void* extra) {
  (void)comm, (void)key, (void)extra;
  Members* members = value;
  free(members->world);
  free(members->list);
  free(members);
  return MPI_SUCCESS;
}

static void Open(void) {
  is_open = true;
  process = getpid();
  PMPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
  PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, FreeMembers, &keyval, NULL);
  char path[kMaxPath], ending[32];
  snprintf(ending, sizeof(ending), "-%d.trace", world_rank);
  MakePath(path, ending);
  trace_file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (trace_file < 0) Fail(path, strerror(errno));
}

static bool HasId(int64_t id) {
  for (int i = 0; i < kMaxSites; ++i) {
    if (sites[i].address != NULL && sites[i].id == id) return true;
  }
  return false;
}

// Returns NULL where there are too many callsites.
static Site* SiteOf(const void* address, const char* operation) {
  size_t place = ((uintptr_t)address * UINT64_C(0x9e3779b97f4a7c15)) >> 52;
  while (sites[place].address != NULL) {
    if (sites[place].address == address && strcmp(sites[place].operation, operation) == 0) {
      return &sites[place];
    }
    place = (place + 1) % kMaxSites;
  }
  // One entry stays free, which ends the search.
  if (site_count == kMaxSites - 1) {
    Fail("there are more than 4,095 callsites", "too many");
    return NULL;
  }
  Dl_info object = {.dli_fname = "[unknown]"};
  dladdr(address, &object);
  int64_t id = (int64_t)((uintptr_t)address - (uintptr_t)object.dli_fbase);
  const char* slash = strrchr(object.dli_fname, '/');
  const char* file = slash != NULL ? slash + 1 : object.dli_fname;
  // Two libraries may have calls at the same place.
  while (id < 1 || HasId(id)) ++id;
  Site* site = &sites[place];
  site->address = address;
  site->id = id;
  snprintf(site->operation, sizeof(site->operation), "%s", operation);
  snprintf(site->caller, sizeof(site->caller), "%s", object.dli_sname ? object.dli_sname : file);
  ++site_count;
  return site;
}

// Returns NULL for no communicator, or without memory.
static const Members* MembersOf(MPI_Comm comm) {
  if (comm == MPI_COMM_NULL) return NULL;
  Members* members = NULL;
  int found = 0, is_inter = 0;
  PMPI_Comm_get_attr(comm, keyval, &members, &found);
  if (found) return members;
  MPI_Group group, world_group;
  PMPI_Comm_test_inter(comm, &is_inter);
  is_inter ? PMPI_Comm_remote_group(comm, &group) : PMPI_Comm_group(comm, &group);
  PMPI_Comm_group(MPI_COMM_WORLD, &world_group);
  members = calloc(1, sizeof(*members));
  if (members != NULL) {
    PMPI_Group_size(group, &members->size);
    members->world = malloc(((size_t)members->size + 1) * sizeof(int));
    members->list = malloc(12 * (size_t)members->size + 1);
  }
  int* places = members == NULL ? NULL : malloc(((size_t)members->size + 1) * sizeof(int));
  if (places != NULL && members->world != NULL && members->list != NULL) {
    for (int i = 0; i < members->size; ++i) places[i] = i;
    PMPI_Group_translate_ranks(group, members->size, places, world_group, members->world);
    snprintf(members->name, sizeof(members->name), "coll %p ", (void*)members);
    char* end = members->list;
    *end = '\0';
    for (int i = 0; i < members->size; ++i) end += sprintf(end, "%d ", members->world[i]);
    PMPI_Comm_set_attr(comm, keyval, members);
  } else if (members != NULL) {
    FreeMembers(comm, keyval, members, NULL);
    members = NULL;
  }
  free(places);
  PMPI_Group_free(&group);
  PMPI_Group_free(&world_group);
  return members;
}

static int64_t TypeBytes(MPI_Datatype type) {
  int bytes = 0;
  if (type != MPI_DATATYPE_NULL) PMPI_Type_size(type, &bytes);
  return bytes;
}

static int64_t Sum(const int* counts, MPI_Comm comm) {
  const Members* members = MembersOf(comm);
  int64_t sum = 0;
  for (int i = 0; members != NULL && counts != NULL && i < members->size; ++i) sum += counts[i];
  return sum;
}

// What a call tells besides its name. Nothing of it is looked at where nothing is traced.
typedef enum { kPlain, kMessage, kCollective } Kind;
typedef struct {
  Kind kind;
  MPI_Comm comm;
  int64_t bytes;
  // Of a message, in the communicator.
  int target;
  // Of collectives with a count for each member; NULL for others.
  const int *sent, *received;
} Details;

static void WriteDetails(const Details* details) {
  const Members* members = details->kind == kPlain ? NULL : MembersOf(details->comm);
  if (members == NULL) return;
  if (details->kind == kMessage) {
    const bool is_member = details->target >= 0 && details->target < members->size;
    WriteText("p2p ");
    WriteNumber(details->bytes);
    WriteText(" to ");
    WriteNumber(details->target);
    WriteText(":");
    WriteNumber(is_member ? members->world[details->target] : -1);
    return;
  }
  WriteText(members->name);
  WriteNumber(details->bytes);
  WriteText(" to ");
  if (details->sent == NULL && details->received == NULL) {
    WriteText(members->list);
    return;
  }
  for (int i = 0; i < members->size; ++i) {
    WriteNumber(members->world[i]);
    if (details->sent != NULL) WriteText(">"), WriteNumber(details->sent[i]);
    if (details->received != NULL) WriteText("<"), WriteNumber(details->received[i]);
    WriteText(" ");
  }
}

// As of A-mpiP, the time of a line ends when the call has returned, and begins when the line before was
// written: what the tracer itself takes is left out.
static bool BeginLine(double start_us, const void* address, const char* name) {
  const double now_us = NowUs(CLOCK_MONOTONIC);
  pthread_mutex_lock(&mutex);
  if (!is_open) Open();
  Site* site = trace_file < 0 || is_finalized ? NULL : SiteOf(address, name);
  if (site == NULL) {
    pthread_mutex_unlock(&mutex);
    return false;
  }
  const double us = now_us - start_us;
  if (site->count == 0 || us < site->least_us) site->least_us = us;
  if (us > site->most_us) site->most_us = us;
  site->us += us;
  ++site->count;
  const double since_us = last_id == 0 ? NowUs(CLOCK_REALTIME) : now_us - last_us;
  const int64_t tenths = (int64_t)(10 * since_us + 0.5);
  WriteText("TRACE ");
  WriteNumber(last_id);
  WriteText(" -> ");
  WriteNumber(site->id);
  WriteText(" ");
  WriteNumber(tenths / 10);
  WriteText(".");
  WriteNumber(tenths % 10);
  WriteText(" MPI_");
  WriteText(name);
  WriteText(" ");
  last_id = site->id;
  return true;
}

static void EndLine(void) {
  WriteBytes("\n", 1);
  last_us = NowUs(CLOCK_MONOTONIC);
  pthread_mutex_unlock(&mutex);
}

// Defines MPI_NAME with these parameters, which calls PMPI_NAME with the arguments; what follows are
// designated members of Details.
#define TRACED(NAME, PARAMETERS, ARGUMENTS, ...)                   \
  int MPI_##NAME PARAMETERS {                                      \
    const double start_us = NowUs(CLOCK_MONOTONIC);                \
    const int result = PMPI_##NAME ARGUMENTS;                      \
    if (BeginLine(start_us, __builtin_return_address(0), #NAME)) { \
      const Details details = {__VA_ARGS__};                       \
      WriteDetails(&details);                                      \
      EndLine();                                                   \
    }                                                              \
    return result;                                                 \
  }
#define PLAIN(NAME, PARAMETERS, ARGUMENTS) TRACED(NAME, PARAMETERS, ARGUMENTS, .kind = kPlain)

// A collective, and the one that is only begun.
#define REQUEST , MPI_Request* request
#define COLLECTIVE(NAME, INAME, PARAMETERS, ARGUMENTS, ...)                                       \
  TRACED(NAME, (PARAMETERS, MPI_Comm comm), (ARGUMENTS, comm), .kind = kCollective, .comm = comm, \
         __VA_ARGS__)                                                                             \
  TRACED(INAME, (PARAMETERS, MPI_Comm comm REQUEST), (ARGUMENTS, comm, request),                  \
         .kind = kCollective, .comm = comm, __VA_ARGS__)
// Puts several parameters or arguments into one of a macro.
#define LIST(...) __VA_ARGS__

#define SEND_PARAMETERS \
  const void *data, int count, MPI_Datatype type, int target, int tag, MPI_Comm comm
#define SEND_ARGUMENTS data, count, type, target, tag, comm
#define SEND_DETAILS \
  .kind = kMessage, .comm = comm, .bytes = count * TypeBytes(type), .target = target
#define SEND(NAME, INAME)                                         \
  TRACED(NAME, (SEND_PARAMETERS), (SEND_ARGUMENTS), SEND_DETAILS) \
  TRACED(INAME, (SEND_PARAMETERS REQUEST), (SEND_ARGUMENTS, request), SEND_DETAILS)
SEND(Send, Isend)
SEND(Bsend, Ibsend)
SEND(Ssend, Issend)
SEND(Rsend, Irsend)

TRACED(Sendrecv,
       (const void* data, int count, MPI_Datatype type, int target, int tag, void* received,
        int most, MPI_Datatype received_type, int source, int received_tag, MPI_Comm comm,
        MPI_Status* status),
       (data, count, type, target, tag, received, most, received_type, source, received_tag, comm,
        status),
       SEND_DETAILS)
TRACED(Sendrecv_replace,
       (void* data, int count, MPI_Datatype type, int target, int tag, int source, int received_tag,
        MPI_Comm comm, MPI_Status* status),
       (data, count, type, target, tag, source, received_tag, comm, status), SEND_DETAILS)

#define RECEIVE_PARAMETERS \
  void *data, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm
#define RECEIVE_ARGUMENTS data, count, type, source, tag, comm
PLAIN(Recv, (RECEIVE_PARAMETERS, MPI_Status* status), (RECEIVE_ARGUMENTS, status))
PLAIN(Irecv, (RECEIVE_PARAMETERS REQUEST), (RECEIVE_ARGUMENTS, request))
PLAIN(Probe, (int source, int tag, MPI_Comm comm, MPI_Status* status), (source, tag, comm, status))
PLAIN(Iprobe, (int source, int tag, MPI_Comm comm, int* flag, MPI_Status* status),
      (source, tag, comm, flag, status))

PLAIN(Wait, (MPI_Request * request, MPI_Status* status), (request, status))
PLAIN(Test, (MPI_Request * request, int* flag, MPI_Status* status), (request, flag, status))
PLAIN(Waitall, (int count, MPI_Request requests[], MPI_Status statuses[]),
      (count, requests, statuses))
PLAIN(Testall, (int count, MPI_Request requests[], int* flag, MPI_Status statuses[]),
      (count, requests, flag, statuses))
PLAIN(Waitany, (int count, MPI_Request requests[], int* index, MPI_Status* status),
      (count, requests, index, status))
PLAIN(Testany, (int count, MPI_Request requests[], int* index, int* flag, MPI_Status* status),
      (count, requests, index, flag, status))
PLAIN(Waitsome, (int count, MPI_Request requests[], int* done, int places[], MPI_Status statuses[]),
      (count, requests, done, places, statuses))
PLAIN(Testsome, (int count, MPI_Request requests[], int* done, int places[], MPI_Status statuses[]),
      (count, requests, done, places, statuses))
PLAIN(Start, (MPI_Request * request), (request))
PLAIN(Startall, (int count, MPI_Request requests[]), (count, requests))

TRACED(Barrier, (MPI_Comm comm), (comm), .kind = kCollective, .comm = comm)
TRACED(Ibarrier, (MPI_Comm comm REQUEST), (comm, request), .kind = kCollective, .comm = comm)

// What the caller puts in; with MPI_IN_PLACE that lies where the result comes.
#define BYTES_IN \
  .bytes = data == MPI_IN_PLACE ? most * TypeBytes(received_type) : count * TypeBytes(type)
#define IN const void *data, int count, MPI_Datatype type
#define OUT void *received, int most, MPI_Datatype received_type
#define IN_OUT data, count, type, received, most, received_type
#define REDUCE_IN const void *data, void *received, int count, MPI_Datatype type, MPI_Op op
COLLECTIVE(Bcast, Ibcast, LIST(void* data, int count, MPI_Datatype type, int root),
           LIST(data, count, type, root), .bytes = count * TypeBytes(type))
COLLECTIVE(Reduce, Ireduce, LIST(REDUCE_IN, int root), LIST(data, received, count, type, op, root),
           .bytes = count * TypeBytes(type))
COLLECTIVE(Allreduce, Iallreduce, LIST(REDUCE_IN), LIST(data, received, count, type, op),
           .bytes = count * TypeBytes(type))
COLLECTIVE(Scan, Iscan, LIST(REDUCE_IN), LIST(data, received, count, type, op),
           .bytes = count * TypeBytes(type))
COLLECTIVE(Exscan, Iexscan, LIST(REDUCE_IN), LIST(data, received, count, type, op),
           .bytes = count * TypeBytes(type))
COLLECTIVE(Reduce_scatter_block, Ireduce_scatter_block, LIST(REDUCE_IN),
           LIST(data, received, count, type, op),
           .bytes = count * TypeBytes(type) * (MembersOf(comm) != NULL ? MembersOf(comm)->size : 0))
COLLECTIVE(Reduce_scatter, Ireduce_scatter,
           LIST(const void* data, void* received, const int counts[], MPI_Datatype type, MPI_Op op),
           LIST(data, received, counts, type, op), .bytes = Sum(counts, comm) * TypeBytes(type),
           .received = counts)
COLLECTIVE(Gather, Igather, LIST(IN, OUT, int root), LIST(IN_OUT, root), BYTES_IN)
COLLECTIVE(Allgather, Iallgather, LIST(IN, OUT), LIST(IN_OUT), BYTES_IN)
COLLECTIVE(Alltoall, Ialltoall, LIST(IN, OUT), LIST(IN_OUT), BYTES_IN)
// Of a scatter only what comes out means something on every rank.
COLLECTIVE(Scatter, Iscatter, LIST(IN, OUT, int root), LIST(IN_OUT, root),
           .bytes = received == MPI_IN_PLACE ? count * TypeBytes(type)
                                             : most * TypeBytes(received_type))
static int OwnCount(const int counts[], MPI_Comm comm) {
  int rank = 0;
  PMPI_Comm_rank(comm, &rank);
  return counts[rank];
}
COLLECTIVE(Scatterv, Iscatterv,
           LIST(const void* data, const int counts[], const int places[], MPI_Datatype type, OUT,
                int root),
           LIST(data, counts, places, type, received, most, received_type, root),
           .bytes = received == MPI_IN_PLACE ? OwnCount(counts, comm) * TypeBytes(type)
                                             : most * TypeBytes(received_type))
#define OUT_V                                                               \
  void *received, const int received_counts[], const int received_places[], \
      MPI_Datatype received_type
#define IN_OUT_V data, count, type, received, received_counts, received_places, received_type
#define BYTES_IN_V                                                                           \
  .bytes = data == MPI_IN_PLACE ? OwnCount(received_counts, comm) * TypeBytes(received_type) \
                                : count * TypeBytes(type)
COLLECTIVE(Gatherv, Igatherv, LIST(IN, OUT_V, int root), LIST(IN_OUT_V, root), BYTES_IN_V)
COLLECTIVE(Allgatherv, Iallgatherv, LIST(IN, OUT_V), LIST(IN_OUT_V), BYTES_IN_V,
           .received = received_counts)
COLLECTIVE(Alltoallv, Ialltoallv,
           LIST(const void* data, const int counts[], const int places[], MPI_Datatype type, OUT_V),
           LIST(data, counts, places, type, received, received_counts, received_places,
                received_type),
           .bytes = data == MPI_IN_PLACE ? Sum(received_counts, comm) * TypeBytes(received_type)
                                         : Sum(counts, comm) * TypeBytes(type),
           .sent = data == MPI_IN_PLACE ? received_counts : counts, .received = received_counts)

PLAIN(Comm_dup, (MPI_Comm comm, MPI_Comm* made), (comm, made))
PLAIN(Comm_split, (MPI_Comm comm, int color, int key, MPI_Comm* made), (comm, color, key, made))
PLAIN(Comm_create, (MPI_Comm comm, MPI_Group group, MPI_Comm* made), (comm, group, made))
PLAIN(Comm_free, (MPI_Comm * comm), (comm))
PLAIN(Cart_create,
      (MPI_Comm comm, int count, const int sizes[], const int periodic[], int reorder,
       MPI_Comm* made),
      (comm, count, sizes, periodic, reorder, made))
PLAIN(Cart_sub, (MPI_Comm comm, const int remains[], MPI_Comm* made), (comm, remains, made))

int MPI_Abort(MPI_Comm comm, int error) {
  Flush();
  return PMPI_Abort(comm, error);
}

static int ById(const void* a, const void* b) {
  const int64_t left = ((const Site*)a)->id, right = ((const Site*)b)->id;
  return (left > right) - (left < right);
}

// Adds what another rank says of a callsite to what this one has, which lies at the front.
static void Merge(const Site* other) {
  for (int i = 0; i < site_count; ++i) {
    Site* site = &sites[i];
    if (site->id != other->id || strcmp(site->operation, other->operation) != 0) continue;
    site->count += other->count;
    site->us += other->us;
    if (site->least_us > other->least_us) site->least_us = other->least_us;
    if (site->most_us < other->most_us) site->most_us = other->most_us;
    return;
  }
  if (site_count < kMaxSites) sites[site_count++] = *other;
}

static void WriteCallsites(void) {
  char path[kMaxPath];
  MakePath(path, ".mpiP");
  FILE* report = fopen(path, "we");
  if (report == NULL) {
    Fail(path, strerror(errno));
    return;
  }
  qsort(sites, (size_t)site_count, sizeof(Site), ById);
  fprintf(report, "@ mpiP\n@ Version: mpi_tracer\n@--- Callsites: %d ---\n", site_count);
  fprintf(report, " ID TmpID HashID Lev File/Address Line Parent_Funct MPI_Call\n");
  for (const Site* site = sites; site < sites + site_count; ++site) {
    fprintf(report, "%" PRId64 " %" PRId64 " 0 0 0x%" PRIx64 " %s %s\n", site->id, site->id,
            (uint64_t)site->id, site->caller, site->operation);
  }
  fprintf(report, "@--- Callsite Time statistics (all, milliseconds): %d ---\n", site_count);
  fprintf(report, "Name Site Rank Count Max Mean Min App%% MPI%%\n");
  for (const Site* site = sites; site < sites + site_count; ++site) {
    fprintf(report, "%s %" PRId64 " * %" PRId64 " %.6f %.6f %.6f 0 0\n", site->operation, site->id,
            site->count, site->most_us / 1e3, site->us / 1e3 / (double)site->count,
            site->least_us / 1e3);
  }
  if (fclose(report) != 0) Fail(path, strerror(errno));
}

// Rank 0 asks one rank after the other, so that it never holds more than the callsites of two.
static void CollectCallsites(void) {
  MPI_Comm comm;
  int ranks = 0, bytes = 0, used = 0;
  for (int i = 0; i < kMaxSites; ++i) {
    if (sites[i].address != NULL) sites[used++] = sites[i];
  }
  PMPI_Comm_dup(MPI_COMM_WORLD, &comm);
  PMPI_Comm_size(comm, &ranks);
  if (world_rank != 0) {
    PMPI_Send(sites, site_count * (int)sizeof(Site), MPI_BYTE, 0, 0, comm);
  } else {
    static Site others[kMaxSites];
    for (int rank = 1; rank < ranks; ++rank) {
      MPI_Status status;
      PMPI_Recv(others, sizeof(others), MPI_BYTE, rank, 0, comm, &status);
      PMPI_Get_count(&status, MPI_BYTE, &bytes);
      for (int i = 0; i < bytes / (int)sizeof(Site); ++i) Merge(&others[i]);
    }
    WriteCallsites();
  }
  PMPI_Comm_free(&comm);
}

int MPI_Finalize(void) {
  pthread_mutex_lock(&mutex);
  if (!is_open) Open();
  Flush();
  is_finalized = true;
  CollectCallsites();
  pthread_mutex_unlock(&mutex);
  return PMPI_Finalize();
}
