// What is left between the engine and the measured times, kind by kind: lines in segments of bytes.
//
//   time                        /        measured = overhead + engine time / efficiency
//     |                       /          within each segment
//     |             ____----*
//     |        .... *       |            lines that meet share the size where they do,
//     |   *----*            |            so that they (nearly) meet there in time, too
//     |________|____|_______|__ bytes
//
// Between two sizes there may also be a jump, as where a library changes its protocol. Where it is
// between them nobody knows: in the middle third the mean of both lines is taken. Times that jump
// by more than bytes do are a cliff, as where a cache is full: it is taken to be half way.
//
// Lines keep to what groups of all sizes have in common. What differs between those is the
// engine's part, so an overhead is taken for zero unless the transfers show it, and no line is
// below zero for two ranks and no bytes. Then a line also says something about groups that were not
// measured.
//
// More segments always fit better. Each costs a penalty, a jump half as much again, in units of the
// loss (half a squared standard deviation), and which penalty is right is found by leaving out
// whole sizes.
//
// The search looks at every range of sizes, once for each size left out. A kind of more than
// kMaxSizes sizes, as training runs have, is therefore searched by ranges of neighbouring
// sizes: those between so many equal steps of bytes, on a scale of ratios, count as one size.
#ifndef ASTRA_BRIDGE_CALIBRATION_CORRECTION_FIT_H_
#define ASTRA_BRIDGE_CALIBRATION_CORRECTION_FIT_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "astra_bridge/calibration/engine_model.h"
#include "astra_bridge/calibration/transfer_cells.h"
#include "astra_bridge/corrections.h"

namespace meridian {

// A cell of one kind, or the geometric mean of a group's cells of neighbouring sizes.
struct CorrectionPoint {
  int64_t bytes = 0;
  // Equal for points of the same group.
  uint32_t group = 0;
  double engine_ns = 0;
  double measured_ns = 0;
  double relative_error = 0;
};

// Points of one kind, and the line through every range of their sizes.
class SegmentedLine {
 public:
  // At least one point; times are positive. least_engine_ns is the engine's time of no bytes
  // between two ranks.
  SegmentedLine(const std::vector<CorrectionPoint>& points, double least_engine_ns);

  // Returns the segments of the least loss, each of which costs the penalty.
  std::vector<CorrectionSegment> Fit(double penalty) const;

 private:
  enum class StepKind { kLine, kJump, kCliff };
  // How a size is reached from a smaller one: by a line through both and all between, or by a jump
  // from the one before.
  struct Step {
    size_t from = 0;
    StepKind kind = StepKind::kLine;
  };
  // time = overhead + slope * engine time
  struct Line {
    double overhead_ns = 0;
    double slope = 0;
    // By size: what the line misses there.
    std::vector<double> losses;
  };

  size_t sizes() const { return by_size_.size(); }
  int64_t BytesOf(size_t size) const { return by_size_[size].front().bytes; }
  // Sizes from first to last, both included.
  const Line& LineOf(size_t first, size_t last) const { return lines_[first][last - first]; }
  Line FitLine(size_t first, size_t last) const;
  double LossOf(size_t first, size_t last) const;
  bool IsCliff(size_t size) const;
  // By size, from the second on.
  std::vector<Step> BestSteps(double penalty) const;

  // Points by size, ascending.
  std::vector<std::vector<CorrectionPoint>> by_size_;
  const double least_engine_ns_;
  // By first and last size.
  std::vector<std::vector<Line>> lines_;
  // By size: whether times jump by more than bytes to the next.
  std::vector<bool> cliffs_;
};

// Penalties to choose from, largest first.
absl::Span<const double> SegmentPenalties();

struct PenaltyChoice {
  double penalty = 0;
  // Mean |log(predicted / measured)| at sizes left out, with this penalty and with the best one.
  // Zero when there are no sizes between others to leave out.
  double error = 0;
  double best_error = 0;
};

// Returns the points with at most kMaxSizes sizes: as they are, or, where there are more,
// neighbouring sizes merged. A merged size is the geometric mean of its sizes and has one point of
// each group.
std::vector<CorrectionPoint> MergeSizes(const std::vector<CorrectionPoint>& points);

// Times are by cell, and by kind for two ranks and no bytes.
//
// Leaves out each size that lies between others, all groups of it, and predicts it from the rest.
// Returns the largest penalty that is no worse than the best by more than a standard error of the
// difference.
PenaltyChoice ChoosePenalty(absl::Span<const TransferCell> cells,
                            absl::Span<const double> engine_ns, const KindTimes& least_engine_ns);

// Kinds without cells get no segments.
Corrections FitCorrections(absl::Span<const TransferCell> cells, absl::Span<const double> engine_ns,
                           const KindTimes& least_engine_ns, double penalty);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_CALIBRATION_CORRECTION_FIT_H_
