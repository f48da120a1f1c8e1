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
#ifndef WORKLOAD_MODEL_CALL_TRACES_H_
#define WORKLOAD_MODEL_CALL_TRACES_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace meridian {

struct TracedCall {
  int64_t source = 0;
  int64_t destination = 0;
  double us = 0;
  // "MPI_Allreduce".
  std::string operation;
  // What the caller sends.
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

// True for text in which there is a line of such a trace.
bool IsCallTrace(absl::string_view text);

// InvalidArgument with file and line for a line that is no call; lines that are not the tracer's at
// all (what the program itself printed) are passed over if they do not begin with TRACE.
absl::StatusOr<std::vector<TracedCall>> ParseCallTrace(absl::string_view text,
                                                       const std::string& name);

struct Callsite {
  // What the table itself counts; and what traces call it, which the stock table does not say.
  int64_t id = 0;
  std::optional<int64_t> traced_id;
  // "Allreduce".
  std::string operation;
  // Innermost first: "SpParMat.cpp:795 getncol".
  std::vector<std::string> frames;
};

// Reads the section "Callsites" of a report of mpiP or A-mpiP. InvalidArgument with file and line
// when there is none, or when it lacks what it announces.
absl::StatusOr<std::vector<Callsite>> ParseCallsites(absl::string_view text,
                                                     const std::string& name);

// Mean times of calls by callsite, as its `id` counts, in us, over all ranks: the section "Callsite Time
// statistics" of a report. Empty when there is none; InvalidArgument with file and line when it can not
// be read.
absl::StatusOr<std::map<int64_t, double>> ParseCallTimes(absl::string_view text,
                                                         const std::string& name);

// InvalidArgument, which names the callsite, when a call of the trace is not in the table, or the
// table says it is another operation.
absl::Status CheckCallsites(const std::vector<TracedCall>& calls,
                            const std::vector<Callsite>& callsites, const std::string& name);

}  // namespace meridian

#endif  // WORKLOAD_MODEL_CALL_TRACES_H_
