// chakra_generate: made-up workloads as Chakra execution traces.
#include <algorithm>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "chakra_export/generate/device_model.h"
#include "chakra_export/generate/generated_workload.h"
#include "chakra_export/generate/matrix_workloads.h"
#include "chakra_export/generate/micro_benchmark.h"
#include "chakra_export/generate/msccl.h"
#include "chakra_export/generate/transformer_step.h"
#include "chakra_export/run/run_workload.h"
#include "chakra_export/run/workload_report.pb.h"
#include "tools/command.h"
#include "tools/commands.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/files/input_file.h"
#include "xla_profiler/base/files/output_files.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

Flag<std::string> FLAGS_pattern(
    "pattern", "",
    "transformer, lstm: one training step; gemm: a matrix product; or a micro-benchmark: "
    "all-reduce, all-gather, reduce-scatter, "
    "all-to-all, p2p-ring, p2p-pair, p2p-ping-pong, p2p-incast, halo-1d, halo-2d, halo-3d, "
    "sweep3d, "
    "lu.");
Flag<std::string> FLAGS_output(
    "output", "", "Prefix of what is written: PREFIX.<rank>.et and PREFIX.comm_groups.json.");
Flag<std::string> FLAGS_msccl(
    "msccl", "",
    "In place of a pattern: an algorithm of MSCCL, XML, whose traces are a custom collective of "
    "--bytes.");
Flag<double> FLAGS_tflops("tflops", 300, "10^12 operations per second that a rank reaches.");
Flag<std::string> FLAGS_device(
    "device", "",
    "Transformer, gemm, lstm: YAML of a device, whose roofline (speed, memories, tiles of matrix "
    "products) gives computations their durations in place of --tflops.");
Flag<std::string> FLAGS_gemm("gemm", "4096x4096x4096",
                             "Gemm: MxKxN, a product of an M x K and a K x N matrix.");

Flag<int64_t> FLAGS_ranks("ranks", 0, "Micro-benchmark: number of ranks.");
Flag<int64_t> FLAGS_group_size(
    "group_size", 0,
    "Micro-benchmark: ranks per group; groups are of ranks next to each other and work side by "
    "side. Default: all ranks; two for p2p-pair and p2p-ping-pong.");
Flag<std::string> FLAGS_grid(
    "grid", "",
    "Halo, sweep3d, lu: ranks of a group along each axis, e.g. 8x4. Default: as equal as can be. "
    "Gemm: ranks that divide M, N and K.");
Flag<int64_t> FLAGS_blocks("blocks", 8, "Sweep3d, lu: blocks of planes that follow each other.");
Flag<std::string> FLAGS_bytes("bytes", "1MiB",
                              "Micro-benchmark: sizes, e.g. 4KiB,1MiB; of an all-gather one rank's "
                              "shard, else one rank's whole buffer.");
Flag<int64_t> FLAGS_repeats("repeats", 1, "Micro-benchmark: how often each size comes.");
Flag<int64_t> FLAGS_compute_us(
    "compute_us", 0, "Micro-benchmark: every rank computes for so long before each communication.");

Flag<int64_t> FLAGS_tp("tp", 1, "Transformer: tensor parallel ranks.");
Flag<int64_t> FLAGS_dp("dp", 1, "Transformer: data parallel copies.");
Flag<int64_t> FLAGS_pp("pp", 1, "Transformer: stages of the pipeline.");
Flag<int64_t> FLAGS_cp("cp", 1,
                       "Transformer: context parallel ranks, which share the tokens of a sequence, "
                       "for each data parallel copy.");
Flag<int64_t> FLAGS_layers("layers", 24, "Transformer: layers of the model.");
Flag<int64_t> FLAGS_hidden("hidden", 2048,
                           "Transformer: hidden size; four times that inside the MLP.");
Flag<int64_t> FLAGS_sequence("sequence", 2048, "Transformer: tokens of a sequence.");
Flag<int64_t> FLAGS_vocab("vocab", 51200,
                          "Transformer: size of the vocabulary; 0: neither embedding nor head.");
Flag<int64_t> FLAGS_batch("batch", 32,
                          "Transformer: sequences of the step, over all data parallel copies.");
Flag<int64_t> FLAGS_microbatches(
    "microbatches", 4,
    "Transformer: into how many parts a data parallel copy cuts its share of the batch.");
Flag<std::string> FLAGS_schedule("schedule", "1f1b", "Transformer: 1f1b or gpipe.");
Flag<int64_t> FLAGS_chunks(
    "chunks", 1,
    "Transformer: chunks of layers that each stage holds (interleaved 1f1b); "
    "shorter ramps, more messages.");
Flag<bool> FLAGS_sequence_parallel(
    "sequence_parallel", false,
    "Transformer: between attention and MLP the tensor parallel ranks share the tokens (Megatron's "
    "sequence parallelism): reduce-scatter and all-gather in place of all-reduce.");
Flag<int64_t> FLAGS_dtype_bytes(
    "dtype_bytes", 2, "Transformer: bytes of an element of activations, parameters and gradients.");
Flag<bool> FLAGS_zero("zero", false,
                      "Transformer: the data parallel copies divide the optimizer between them: "
                      "reduce-scatter of gradients, all-gather of parameters.");
Flag<bool> FLAGS_sharded("sharded", false,
                         "Transformer: they divide parameters, too (fully sharded data parallel, "
                         "ZeRO-3): gathered before each use, gradients scattered after each.");
Flag<int64_t> FLAGS_experts(
    "experts", 0,
    "Transformer: experts of each layer in place of the MLP, divided between the data parallel "
    "copies (mixture of experts, expert parallel).");
Flag<int64_t> FLAGS_experts_per_token("experts_per_token", 2,
                                      "Transformer: to how many experts each token goes.");
Flag<std::string> FLAGS_phase("phase", "training",
                              "Transformer: training, or of inference prefill (all tokens of the "
                              "sequences) or decode (one new token of each).");

constexpr absl::string_view kTransformer = "transformer";

AnyFlag* const kMicroFlags[] = {&FLAGS_ranks, &FLAGS_group_size, &FLAGS_grid,      &FLAGS_blocks,
                                &FLAGS_bytes, &FLAGS_repeats,    &FLAGS_compute_us};
AnyFlag* const kTransformerFlags[] = {&FLAGS_tp,
                                      &FLAGS_dp,
                                      &FLAGS_pp,
                                      &FLAGS_layers,
                                      &FLAGS_hidden,
                                      &FLAGS_sequence,
                                      &FLAGS_vocab,
                                      &FLAGS_batch,
                                      &FLAGS_microbatches,
                                      &FLAGS_schedule,
                                      &FLAGS_dtype_bytes,
                                      &FLAGS_zero,
                                      &FLAGS_sharded,
                                      &FLAGS_experts,
                                      &FLAGS_experts_per_token,
                                      &FLAGS_phase,
                                      &FLAGS_cp,
                                      &FLAGS_chunks,
                                      &FLAGS_sequence_parallel};

std::vector<AnyFlag*> AllFlags() {
  std::vector<AnyFlag*> flags = {&FLAGS_pattern, &FLAGS_output, &FLAGS_msccl,
                                 &FLAGS_tflops,  &FLAGS_device, &FLAGS_gemm};
  flags.insert(flags.end(), std::begin(kMicroFlags), std::end(kMicroFlags));
  flags.insert(flags.end(), std::begin(kTransformerFlags), std::end(kTransformerFlags));
  return flags;
}

// A size that has no effect is a misunderstanding.
absl::Status CheckNotGiven(absl::Span<AnyFlag* const> flags) {
  return RefuseFlags({flags.begin(), flags.end()},
                     absl::StrCat("means nothing with --pattern=", FLAGS_pattern.value()));
}

// Refuses all flags of single patterns but these.
absl::Status CheckOnlyGiven(const std::vector<AnyFlag*>& flags) {
  std::vector<AnyFlag*> others = AllFlags();
  others.erase(std::remove_if(others.begin(), others.end(),
                              [&](AnyFlag* flag) {
                                return absl::c_linear_search(flags, flag) ||
                                       flag == &FLAGS_pattern || flag == &FLAGS_output ||
                                       flag == &FLAGS_tflops || flag == &FLAGS_device;
                              }),
               others.end());
  return CheckNotGiven(others);
}

absl::StatusOr<DeviceModel> ReadDevice() {
  DeviceModel device;
  device.tflops = FLAGS_tflops.value();
  const std::string path = UserPath(FLAGS_device);
  if (path.empty()) return device;
  RETURN_IF_ERROR(RefuseFlags({&FLAGS_tflops}, "is in the file of --device"));
  ASSIGN_OR_RETURN(const InputFile file, InputFile::Open(FileSystem::Posix(), path));
  return ParseDeviceModel(file.bytes(), path);
}

absl::StatusOr<std::vector<int64_t>> ParseSides(const Flag<std::string>& flag) {
  std::vector<int64_t> sides;
  if (flag.value().empty()) return sides;
  for (const absl::string_view part : absl::StrSplit(flag.value(), 'x')) {
    if (absl::SimpleAtoi(part, &sides.emplace_back())) continue;
    return InvalidArgument("--", flag.name(), "=", flag.value(), " is no grid; expected e.g. 8x4");
  }
  return sides;
}

absl::StatusOr<std::unique_ptr<GeneratedWorkload>> Gemm() {
  RETURN_IF_ERROR(CheckOnlyGiven({&FLAGS_gemm, &FLAGS_grid, &FLAGS_repeats, &FLAGS_dtype_bytes}));
  GemmOptions options;
  ASSIGN_OR_RETURN(const std::vector<int64_t> sides, ParseSides(FLAGS_gemm));
  ASSIGN_OR_RETURN(options.grid, ParseSides(FLAGS_grid));
  if (sides.size() != 3 || options.grid.size() > 3) {
    return InvalidArgument("--gemm has three sizes, --grid up to three, e.g. --grid=4x2");
  }
  options.product = {sides[0], sides[1], sides[2]};
  options.repeats = FLAGS_repeats.value();
  options.element_bytes = FLAGS_dtype_bytes.value();
  ASSIGN_OR_RETURN(options.device, ReadDevice());
  return MakeGemm(options);
}

absl::StatusOr<std::unique_ptr<GeneratedWorkload>> Lstm() {
  RETURN_IF_ERROR(CheckOnlyGiven({&FLAGS_tp, &FLAGS_dp, &FLAGS_layers, &FLAGS_hidden,
                                  &FLAGS_sequence, &FLAGS_batch, &FLAGS_dtype_bytes}));
  LstmOptions options;
  options.tensor_parallel = FLAGS_tp.value();
  options.data_parallel = FLAGS_dp.value();
  options.layers = FLAGS_layers.value();
  options.hidden = FLAGS_hidden.value();
  options.sequence = FLAGS_sequence.value();
  options.batch = FLAGS_batch.value();
  options.element_bytes = FLAGS_dtype_bytes.value();
  ASSIGN_OR_RETURN(options.device, ReadDevice());
  return MakeLstmStep(options);
}

absl::StatusOr<std::unique_ptr<GeneratedWorkload>> Transformer() {
  RETURN_IF_ERROR(CheckNotGiven(kMicroFlags));
  RETURN_IF_ERROR(CheckNotGiven({&FLAGS_gemm}));
  TransformerOptions options;
  options.tensor_parallel = FLAGS_tp.value();
  options.data_parallel = FLAGS_dp.value();
  options.pipeline_parallel = FLAGS_pp.value();
  options.context_parallel = FLAGS_cp.value();
  options.layers = FLAGS_layers.value();
  options.hidden = FLAGS_hidden.value();
  options.sequence = FLAGS_sequence.value();
  options.vocabulary = FLAGS_vocab.value();
  options.batch = FLAGS_batch.value();
  options.microbatches = FLAGS_microbatches.value();
  ASSIGN_OR_RETURN(options.schedule,
                   NamedValue<PipelineSchedule>(FLAGS_schedule,
                                                {{"1f1b", PipelineSchedule::kOneForwardOneBackward},
                                                 {"gpipe", PipelineSchedule::kGpipe}}));
  options.chunks = FLAGS_chunks.value();
  options.sequence_parallel = FLAGS_sequence_parallel.value();
  options.element_bytes = FLAGS_dtype_bytes.value();
  ASSIGN_OR_RETURN(options.device, ReadDevice());
  options.tflops = options.device.tflops;
  options.zero = FLAGS_zero.value();
  options.sharded = FLAGS_sharded.value();
  options.experts = FLAGS_experts.value();
  options.experts_per_token = FLAGS_experts_per_token.value();
  ASSIGN_OR_RETURN(options.phase, NamedValue<TransformerPhase>(
                                      FLAGS_phase, {{"training", TransformerPhase::kTraining},
                                                    {"prefill", TransformerPhase::kPrefill},
                                                    {"decode", TransformerPhase::kDecode}}));
  return MakeTransformerStep(options);
}

absl::StatusOr<std::vector<int64_t>> ParseSizes(const std::string& list) {
  std::vector<int64_t> sizes;
  for (const absl::string_view part : absl::StrSplit(list, ',', absl::SkipEmpty())) {
    ASSIGN_OR_RETURN(const int64_t size, Annotate(ParseByteSize(part), "--bytes"));
    sizes.push_back(size);
  }
  return sizes;
}

absl::StatusOr<std::unique_ptr<GeneratedWorkload>> Micro(const std::string& pattern) {
  RETURN_IF_ERROR(CheckNotGiven(kTransformerFlags));
  RETURN_IF_ERROR(CheckNotGiven({&FLAGS_gemm, &FLAGS_device}));
  if (pattern != "sweep3d" && pattern != "lu") RETURN_IF_ERROR(CheckNotGiven({&FLAGS_blocks}));
  MicroBenchmarkOptions options;
  options.pattern = pattern;
  options.ranks = FLAGS_ranks.value();
  options.group_size = FLAGS_group_size.value();
  options.blocks = FLAGS_blocks.value();
  ASSIGN_OR_RETURN(options.grid, ParseSides(FLAGS_grid));
  ASSIGN_OR_RETURN(options.bytes, ParseSizes(FLAGS_bytes.value()));
  options.repeats = FLAGS_repeats.value();
  options.compute_us = FLAGS_compute_us.value();
  options.tflops = FLAGS_tflops.value();
  return MakeMicroBenchmark(options);
}

absl::StatusOr<std::unique_ptr<GeneratedWorkload>> MakeWorkload(const std::string& pattern) {
  if (pattern == kTransformer) return Transformer();
  if (pattern == "gemm") return Gemm();
  if (pattern == "lstm") return Lstm();
  const std::vector<std::string> micro = MicroPatternNames();
  if (absl::c_linear_search(micro, pattern)) return Micro(pattern);
  return NoneOf("pattern", pattern,
                absl::StrCat(kTransformer, ", gemm, lstm, ", absl::StrJoin(micro, ", ")));
}

absl::StatusOr<ChakraWorkloadReport> ConvertMsccl(const std::string& output) {
  std::vector<const AnyFlag*> others;
  for (const AnyFlag* const flag : AllFlags()) {
    if (flag != &FLAGS_output && flag != &FLAGS_msccl && flag != &FLAGS_bytes) {
      others.push_back(flag);
    }
  }
  RETURN_IF_ERROR(RefuseFlags(others, "means nothing with --msccl"));
  ASSIGN_OR_RETURN(const int64_t bytes, Annotate(ParseByteSize(FLAGS_bytes.value()), "--bytes"));
  return WriteMscclTraces(FileSystem::Posix(), UserPath(FLAGS_msccl), UserInputOptions(), bytes,
                          output);
}

absl::StatusOr<int> Generate() {
  const std::string pattern = FLAGS_pattern.value();
  ASSIGN_OR_RETURN(const std::string output,
                   RequiredPath(FLAGS_output, "prefix", "et/run for et/run.0.et, ..."));
  RETURN_IF_ERROR(CheckOutputPrefix("--output", output, {".et", ".et.gz", ".comm_groups.json"},
                                    {UserPath(FLAGS_msccl), UserPath(FLAGS_device)}));
  if (!FLAGS_msccl.value().empty()) {
    ASSIGN_OR_RETURN(const ChakraWorkloadReport report, ConvertMsccl(output));
    return PrintReport(report, FormatWorkloadReport);
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<GeneratedWorkload> workload, MakeWorkload(pattern));
  ASSIGN_OR_RETURN(const ChakraWorkloadReport report,
                   WriteGeneratedWorkload(FileSystem::Posix(), *workload, output,
                                          ShowProgress("writing", workload->rank_count())));
  return PrintReport(report, FormatWorkloadReport);
}

}  // namespace

Command ChakraGenerateCommand() {
  return {
      "chakra_generate",
      "Makes up a workload and writes it as Chakra execution traces, one per rank: a training "
      "step of a transformer on tensor x data x pipeline parallel ranks or of an LSTM, a matrix "
      "product, or a micro-benchmark of communication. The same flags give the same bytes.",
      {"chakra_generate --pattern=all-reduce --ranks=8 --bytes=4KiB,1MiB,256MiB --repeats=10 "
       "--output=et/sweep",
       "chakra_generate --pattern=transformer --tp=8 --dp=2 --pp=4 --layers=96 --hidden=12288 "
       "--batch=128 --microbatches=64 --output=et/gpt",
       "chakra_generate --msccl=allreduce_ring.xml --bytes=1MiB --output=et/ring"},
      AllFlags(),
      Generate};
}

}  // namespace meridian
