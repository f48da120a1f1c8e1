// SPDX-License-Identifier: Apache-2.0
// Traces of MPI calls as A-mpiP writes them, in both of its forms, and the table of callsites that
// comes with them:
//
//   1  TRACE 34 -> 35 614.0 MPI_Alltoallv coll 0xc4000009 12 to 0>4<4 1>8<0
//      TRACE 13 -> 14 19.0 MPI_Sendrecv p2p 8 to 1:2
//      TRACE 9 -> 10 41.0 MPI_Comm_dup
//   2  callsite,op,dur_us,sendSize_B,dest_group,dest_global,region
//      1,MPI_Isend,12.000000,4,1,1,main.exchange
//
// The time of a line is not the compute time between two calls: it is taken when the second call has
// returned, so that its own duration, waiting included, is part of it. The first line's, from
// callsite 0, counts from 1970. Callsites are numbered by each process as it comes to them.
#ifndef WORKLOAD_MODEL_MEASUREMENTS_CALL_TRACES_H_
#define WORKLOAD_MODEL_MEASUREMENTS_CALL_TRACES_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace meridian {

struct TracedCall {
  int64_t source = 0;
  int64_t destination = 0;
  double us = 0;
  // The name of the call, e.g. "MPI_Allreduce".
  std::string operation;
  // How many bytes the caller sends; absent where the trace does not say.
  std::optional<double> bytes;
  // World ranks of a collective's communicator, in its order; empty for others.
  std::vector<int64_t> members;
  // Whether it sends a message, and the world rank that this goes to; nobody at the end of a row.
  bool sends_message = false;
  std::optional<int64_t> peer;
  // How long the call itself took, which `us` contains; traces do not say, other sources do.
  std::optional<double> call_us;
};

// Splits at blanks and tabs.
std::vector<absl::string_view> Words(absl::string_view line);

// InvalidArgument: "name:line: what".
absl::Status LineError(const std::string& name, int64_t line, absl::string_view what);

// True for text in which there is a line of such a trace.
bool IsCallTrace(absl::string_view text);

// InvalidArgument with file and line for a line that is no call; lines that are not the tracer's at
// all (what the program itself printed) are passed over if they do not begin with TRACE.
absl::StatusOr<std::vector<TracedCall>> ParseCallTrace(absl::string_view text,
                                                       const std::string& name);

// What a report of mpiP says about a callsite.
struct Callsite {
  // "Allreduce".
  std::string operation;
  // The mean time of its calls over all ranks; absent when the report has no time statistics.
  std::optional<double> us;
};

// Reads the sections "Callsites" and, where it is there, "Callsite Time statistics" of a report of
// mpiP or A-mpiP. Returns callsites by the numbers that traces call them. InvalidArgument with file
// and line when there is no table of callsites, or a row cannot be read.
absl::StatusOr<std::map<int64_t, Callsite>> ParseCallsites(absl::string_view text,
                                                           const std::string& name);

// Writes the times of callsites into the calls of a trace. InvalidArgument, which names the callsite,
// when a call is not in the report, or the report says it is another operation.
absl::Status AddCallTimes(const std::map<int64_t, Callsite>& callsites, const std::string& name,
                          std::vector<TracedCall>* calls);

}  // namespace meridian

#endif  // WORKLOAD_MODEL_MEASUREMENTS_CALL_TRACES_H_
