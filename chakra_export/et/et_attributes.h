// SPDX-License-Identifier: Apache-2.0
// The named values of a Chakra node. Producers disagree about the kind in which they store a number
// (comm_size was uint64, is int64, and is text in traces made by hand), so reading accepts every
// kind that can hold the value. Readers elsewhere look at one kind only, so writing uses the one
// they expect of that name.
//
//   ASSIGN_OR_RETURN(const std::optional<int64_t> bytes,
//                    GetIntAttribute(node.attr(), kCommSizeAttribute));
//   SetIntAttribute(kCommSizeAttribute, 4096, node.mutable_attr());
//
// Of several attributes with one name the first counts.
#ifndef CHAKRA_EXPORT_ET_ET_ATTRIBUTES_H_
#define CHAKRA_EXPORT_ET_ET_ATTRIBUTES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/repeated_field.h"
#include "third_party/chakra/et_def.pb.h"

namespace meridian {

// Names that simulators know, and what ASTRA-sim can do with their values.
inline constexpr absl::string_view kIsCpuOpAttribute = "is_cpu_op";
inline constexpr absl::string_view kCommTypeAttribute = "comm_type";
// In ASTRA-sim's meaning: of an all-gather the shard of one rank, else one rank's whole buffer.
inline constexpr absl::string_view kCommSizeAttribute = "comm_size";
// The most bytes of a collective or message: times of larger ones might not fit into 64 bits.
inline constexpr int64_t kMaxCommBytes = int64_t{1} << 42;
// With more chunks than bytes an all-gather never ends; up to 64 chunks are usual.
inline constexpr int64_t kMinAllGatherBytes = 64;
// A smaller message at time 0 takes less than a nanosecond on a link of over a terabyte per second,
// which aborts the simulation.
inline constexpr int64_t kMinEarlyMessageBytes = 1024;
inline constexpr absl::string_view kCommPriorityAttribute = "comm_priority";
inline constexpr absl::string_view kCommSrcAttribute = "comm_src";
inline constexpr absl::string_view kCommDstAttribute = "comm_dst";
inline constexpr absl::string_view kCommTagAttribute = "comm_tag";
// Tags are taken modulo this; those above are used for collectives.
inline constexpr int32_t kCommTagLimit = 500000000;
// The process group, a whole number as text; absent, "" and "0" are all ranks.
inline constexpr absl::string_view kPgNameAttribute = "pg_name";
// The collectives of a group are numbered from a million times the group on: tags wrap beyond this.
inline constexpr int64_t kMaxGroupNumber = 499;
// Which dimensions of the network take part.
inline constexpr absl::string_view kInvolvedDimAttribute = "involved_dim";
inline constexpr absl::string_view kNumOpsAttribute = "num_ops";
inline constexpr absl::string_view kTensorSizeAttribute = "tensor_size";
// With a roofline, a computation at time 0 that moves less takes less than a nanosecond on memory
// of 64 terabytes per second, and less than a nanosecond at time 0 aborts the simulation.
inline constexpr int64_t kMinEarlyTensorBytes = 65536;
// Names and bytes of the tensors that a node reads and writes, a list of texts.
inline constexpr absl::string_view kInputsAttribute = "inputs";
inline constexpr absl::string_view kOutputsAttribute = "outputs";

// Names that converters of profiles use.
inline constexpr absl::string_view kStreamAttribute = "stream";
inline constexpr absl::string_view kThreadAttribute = "tid";
inline constexpr absl::string_view kRecordFunctionIdAttribute = "rf_id";
inline constexpr absl::string_view kOpSchemaAttribute = "op_schema";

// The schema's start and duration are whole microseconds.
inline constexpr int64_t kNsPerMicro = 1000;

// Names of this project, exact where the schema is not.
inline constexpr absl::string_view kStartNsAttribute = "start_ns";
inline constexpr absl::string_view kDurationNsAttribute = "duration_ns";
// How long communication lasted including the time in which it waited for other ranks.
inline constexpr absl::string_view kRawDurationNsAttribute = "raw_duration_ns";
// The number of the step that the node belongs to.
inline constexpr absl::string_view kStepAttribute = "step";
// Why a node waits for each of its data dependencies, e.g. "d,ds,l" (EdgeKinds::Letters).
inline constexpr absl::string_view kDependencyKindsAttribute = "dep_kinds";
// What a COMP node stands for when it is no kernel, and the values that readers look for.
inline constexpr absl::string_view kOpKindAttribute = "op_kind";
inline constexpr absl::string_view kMemcpyOpKind = "memcpy";
inline constexpr absl::string_view kMemsetOpKind = "memset";
// Time in which a device had nothing to do because its host was not ready.
inline constexpr absl::string_view kHostGapOpKind = "host_gap";
// A collective of which other members are not in their profiles.
inline constexpr absl::string_view kUnmatchedOpKind = "unmatched_collective";
// A collective in which the rank communicates with nobody but itself, or moves nothing.
inline constexpr absl::string_view kLocalOpKind = "local_collective";

using EtAttributes = google::protobuf::RepeatedPtrField<ChakraProtoMsg::AttributeProto>;
using EtAttributeKind = ChakraProtoMsg::AttributeProto::ValueCase;

// Returns the attribute of that name, or nullptr.
const ChakraProtoMsg::AttributeProto* FindAttribute(const EtAttributes& attributes,
                                                    absl::string_view name);

// Each returns the value, nullopt when there is no attribute of that name, and InvalidArgument
// ("attribute comm_size is a double_list; expected an integer") when its kind or value cannot be
// meant. An integer may be of any integer kind, a bool, or decimal text; a bool may be any
// integer, or the text "true" or "false" in any case; a text may be a number.
absl::StatusOr<std::optional<int64_t>> GetIntAttribute(const EtAttributes& attributes,
                                                       absl::string_view name);
absl::StatusOr<std::optional<bool>> GetBoolAttribute(const EtAttributes& attributes,
                                                     absl::string_view name);
absl::StatusOr<std::optional<std::string>> GetStringAttribute(const EtAttributes& attributes,
                                                              absl::string_view name);
absl::StatusOr<std::optional<std::vector<bool>>> GetBoolListAttribute(
    const EtAttributes& attributes, absl::string_view name);

// Each sets or replaces the value in the kind that readers expect of the name; of other names:
// int64_val, bool_val, string_val, bool_list. The value must fit (comm_src is an int32).
void SetIntAttribute(absl::string_view name, int64_t value, EtAttributes* attributes);
void SetBoolAttribute(absl::string_view name, bool value, EtAttributes* attributes);
void SetStringAttribute(absl::string_view name, absl::string_view value, EtAttributes* attributes);
void SetBoolListAttribute(absl::string_view name, const std::vector<bool>& values,
                          EtAttributes* attributes);
// Adds an empty list of texts, unless there is an attribute of that name.
void AddEmptyList(absl::string_view name, EtAttributes* attributes);

// Does nothing when there is none of that name.
void RemoveAttribute(absl::string_view name, EtAttributes* attributes);

// Sets num_ops and tensor_size.
void SetRoofline(int64_t operations, int64_t bytes, EtAttributes* attributes);

// Adds what ASTRA-sim asks of a node, to be called when it has everything else:
//   * roofline-enabled: num_ops and tensor_size of at least 1 for every computation of a device. One
//     whose cost is not known takes no time so; with 0 bytes it would be skipped, and what waits for
//     it never run. A computation that waits for nothing moves kMinEarlyTensorBytes at least.
//   * track-local-mem: `inputs` and `outputs`, empty lists where there are none.
void CompleteForSimulators(ChakraProtoMsg::Node* node);

// Returns the kind that readers expect of the name; VALUE_NOT_SET when there is no convention.
EtAttributeKind ExpectedAttributeKind(absl::string_view name);

// Returns e.g. "int64_val"; "nothing" for VALUE_NOT_SET.
std::string AttributeKindName(EtAttributeKind kind);

}  // namespace meridian

#endif  // CHAKRA_EXPORT_ET_ET_ATTRIBUTES_H_
