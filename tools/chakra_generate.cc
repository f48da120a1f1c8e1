// chakra_generate: made-up workloads as Chakra execution traces.
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "chakra_export/generate/generate_report.pb.h"
#include "chakra_export/generate/generated_workload.h"
#include "chakra_export/generate/micro_benchmark.h"
#include "chakra_export/generate/transformer_step.h"
#include "chakra_export/generate/workload_writer.h"
#include "tools/command.h"
#include "tools/pipeline/output_files.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/tables/text_table.h"

ABSL_FLAG(std::string, pattern, "",
          "transformer: one training step; or a micro-benchmark: all-reduce, all-gather, "
          "reduce-scatter, all-to-all, p2p-ring, p2p-pair, p2p-ping-pong, p2p-incast.");
ABSL_FLAG(std::string, output, "",
          "Prefix of what is written: PREFIX.<rank>.et and PREFIX.comm_groups.json.");
ABSL_FLAG(double, tflops, 300, "10^12 operations per second that a rank reaches.");

ABSL_FLAG(int64_t, ranks, 0, "Micro-benchmark: number of ranks.");
ABSL_FLAG(int64_t, group_size, 0,
          "Micro-benchmark: ranks per group; groups are of ranks next to each other and work side "
          "by side. Default: all ranks; two for p2p-pair and p2p-ping-pong.");
ABSL_FLAG(std::string, bytes, "1MiB",
          "Micro-benchmark: sizes, e.g. 4KiB,1MiB; of an all-gather one rank's shard, else one "
          "rank's whole buffer.");
ABSL_FLAG(int64_t, repeats, 1, "Micro-benchmark: how often each size comes.");
ABSL_FLAG(int64_t, compute_us, 0,
          "Micro-benchmark: every rank computes for so long before each communication.");

ABSL_FLAG(int64_t, tp, 1, "Transformer: tensor parallel ranks.");
ABSL_FLAG(int64_t, dp, 1, "Transformer: data parallel copies.");
ABSL_FLAG(int64_t, pp, 1, "Transformer: stages of the pipeline.");
ABSL_FLAG(
    int64_t, cp, 1,
    "Transformer: context parallel ranks, which share the tokens of a sequence, for each data "
    "parallel copy.");
ABSL_FLAG(int64_t, layers, 24, "Transformer: layers of the model.");
ABSL_FLAG(int64_t, hidden, 2048, "Transformer: hidden size; four times that inside the MLP.");
ABSL_FLAG(int64_t, sequence, 2048, "Transformer: tokens of a sequence.");
ABSL_FLAG(int64_t, vocab, 51200,
          "Transformer: size of the vocabulary; 0: neither embedding nor head.");
ABSL_FLAG(int64_t, batch, 32, "Transformer: sequences of the step, over all data parallel copies.");
ABSL_FLAG(int64_t, microbatches, 4,
          "Transformer: into how many parts a data parallel copy cuts its share of the batch.");
ABSL_FLAG(std::string, schedule, "1f1b", "Transformer: 1f1b or gpipe.");
ABSL_FLAG(int64_t, dtype_bytes, 2,
          "Transformer: bytes of an element of activations, parameters and gradients.");
ABSL_FLAG(bool, zero, false,
          "Transformer: the data parallel copies divide the optimizer between them: reduce-scatter "
          "of gradients, all-gather of parameters.");
ABSL_FLAG(
    bool, sharded, false,
    "Transformer: they divide parameters, too (fully sharded data parallel, ZeRO-3): gathered "
    "before each use, gradients scattered after each.");
ABSL_FLAG(
    int64_t, experts, 0,
    "Transformer: experts of each layer in place of the MLP, divided between the data parallel "
    "copies (mixture of experts, expert parallel).");
ABSL_FLAG(int64_t, experts_per_token, 2, "Transformer: to how many experts each token goes.");
ABSL_FLAG(std::string, phase, "training",
          "Transformer: training, or of inference prefill (all tokens of the sequences) or decode "
          "(one new token of each).");

namespace meridian {
namespace {

constexpr absl::string_view kTransformer = "transformer";

constexpr const char* kMicroFlags[] = {"ranks", "group_size", "bytes", "repeats", "compute_us"};
constexpr const char* kTransformerFlags[] = {
    "tp",          "dp",    "pp",      "layers",       "hidden",
    "sequence",    "vocab", "batch",   "microbatches", "schedule",
    "dtype_bytes", "zero",  "sharded", "experts",      "experts_per_token",
    "phase",       "cp"};

std::vector<std::string> AllFlags() {
  std::vector<std::string> flags = {"pattern", "output", "tflops"};
  flags.insert(flags.end(), std::begin(kMicroFlags), std::end(kMicroFlags));
  flags.insert(flags.end(), std::begin(kTransformerFlags), std::end(kTransformerFlags));
  return flags;
}

// A size that has no effect is a misunderstanding.
absl::Status CheckNotGiven(absl::Span<const char* const> flags) {
  for (const char* name : flags) {
    if (!IsGiven(name)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("--", name, " means nothing with --pattern=", absl::GetFlag(FLAGS_pattern)));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<GeneratedWorkload>> Transformer() {
  RETURN_IF_ERROR(CheckNotGiven(kMicroFlags));
  TransformerOptions options;
  options.tensor_parallel = absl::GetFlag(FLAGS_tp);
  options.data_parallel = absl::GetFlag(FLAGS_dp);
  options.pipeline_parallel = absl::GetFlag(FLAGS_pp);
  options.context_parallel = absl::GetFlag(FLAGS_cp);
  options.layers = absl::GetFlag(FLAGS_layers);
  options.hidden = absl::GetFlag(FLAGS_hidden);
  options.sequence = absl::GetFlag(FLAGS_sequence);
  options.vocabulary = absl::GetFlag(FLAGS_vocab);
  options.batch = absl::GetFlag(FLAGS_batch);
  options.microbatches = absl::GetFlag(FLAGS_microbatches);
  ASSIGN_OR_RETURN(options.schedule,
                   NamedValue<PipelineSchedule>(FLAGS_schedule,
                                                {{"1f1b", PipelineSchedule::kOneForwardOneBackward},
                                                 {"gpipe", PipelineSchedule::kGpipe}}));
  options.element_bytes = absl::GetFlag(FLAGS_dtype_bytes);
  options.tflops = absl::GetFlag(FLAGS_tflops);
  options.zero = absl::GetFlag(FLAGS_zero);
  options.sharded = absl::GetFlag(FLAGS_sharded);
  options.experts = absl::GetFlag(FLAGS_experts);
  options.experts_per_token = absl::GetFlag(FLAGS_experts_per_token);
  ASSIGN_OR_RETURN(options.phase, NamedValue<TransformerPhase>(
                                      FLAGS_phase, {{"training", TransformerPhase::kTraining},
                                                    {"prefill", TransformerPhase::kPrefill},
                                                    {"decode", TransformerPhase::kDecode}}));
  return MakeTransformerStep(options);
}

absl::StatusOr<std::vector<int64_t>> ParseSizes(const std::string& list) {
  std::vector<int64_t> sizes;
  for (const absl::string_view part : absl::StrSplit(list, ',', absl::SkipEmpty())) {
    const absl::StatusOr<int64_t> size = ParseByteSize(part);
    if (!size.ok()) return Annotate(size.status(), "--bytes");
    sizes.push_back(*size);
  }
  return sizes;
}

absl::StatusOr<std::unique_ptr<GeneratedWorkload>> Micro(MicroPattern pattern) {
  RETURN_IF_ERROR(CheckNotGiven(kTransformerFlags));
  MicroBenchmarkOptions options;
  options.pattern = pattern;
  options.ranks = absl::GetFlag(FLAGS_ranks);
  options.group_size = absl::GetFlag(FLAGS_group_size);
  ASSIGN_OR_RETURN(options.bytes, ParseSizes(absl::GetFlag(FLAGS_bytes)));
  options.repeats = absl::GetFlag(FLAGS_repeats);
  options.compute_us = absl::GetFlag(FLAGS_compute_us);
  options.tflops = absl::GetFlag(FLAGS_tflops);
  return MakeMicroBenchmark(options);
}

absl::StatusOr<std::unique_ptr<GeneratedWorkload>> MakeWorkload(const std::string& pattern) {
  if (pattern == kTransformer) return Transformer();
  const std::optional<MicroPattern> micro = ParseMicroPattern(pattern);
  if (micro.has_value()) return Micro(*micro);
  return NoneOf("pattern", pattern,
                absl::StrCat(kTransformer, ", ", absl::StrJoin(MicroPatternNames(), ", ")));
}

absl::StatusOr<int> Generate() {
  const std::string pattern = absl::GetFlag(FLAGS_pattern);
  ASSIGN_OR_RETURN(const std::string output,
                   RequiredPath(FLAGS_output, "prefix", "et/run for et/run.0.et, ..."));
  RETURN_IF_ERROR(CheckOutputPrefix("--output", output, {}, {}));
  ASSIGN_OR_RETURN(const std::unique_ptr<GeneratedWorkload> workload, MakeWorkload(pattern));
  ASSIGN_OR_RETURN(ChakraGenerateReport report,
                   WriteGeneratedWorkload(FileSystem::Posix(), *workload, output,
                                          ShowProgress("writing", workload->rank_count())));
  report.set_pattern(pattern);
  return PrintReport(report, FormatGenerateReport);
}

}  // namespace
}  // namespace meridian

int main(int argc, char** argv) {
  return meridian::RunCommand(
      {"chakra_generate",
       "Makes up a workload and writes it as Chakra execution traces, one per rank: a training "
       "step of a transformer on tensor x data x pipeline parallel ranks, or a micro-benchmark "
       "of communication. The same flags give the same bytes.",
       {"chakra_generate --pattern=all-reduce --ranks=8 --bytes=4KiB,1MiB,256MiB --repeats=10 "
        "--output=et/sweep",
        "chakra_generate --pattern=transformer --tp=8 --dp=2 --pp=4 --layers=96 --hidden=12288 "
        "--batch=128 --microbatches=64 --output=et/gpt"},
       meridian::AllFlags()},
      argc, argv, meridian::Generate);
}
