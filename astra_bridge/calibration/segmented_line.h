// Lines through measured times in segments of bytes: no more of them than the times ask for.
//
//   time                        /        measured = overhead + engine time / efficiency
//     |                       /          within each segment
//     |             ____----*
//     |        .... *       |            lines that meet share the size where they do,
//     |   *----*            |            so that they are near each other there
//     |________|____|_______|__ bytes
//
// Between two sizes there may also be a jump, as where a library changes its protocol. Where it is
// between them nobody knows: in the middle third the mean of both lines is taken. Times that jump
// by more than bytes do are a cliff, as where a cache is full: it is taken to be half way. Where
// kernels are named after their protocol, and it changes, there is a jump for certain.
//
// More segments always fit better, so each costs a penalty, a jump half as much again, in units of
// the loss (half a squared standard deviation). Besides:
//
//   * A line goes through two sizes of one group or more, and those that it shares count half: one
//     that shares both its ends needs a third. Only the last size may have a line to itself, behind
//     a cliff no wider than a factor of two. There are never more numbers than sizes, but for a
//     line for each protocol that kernels are named after.
//   * Groups that lie apart are no reason for segments, which all of them share: what lies between
//     them counts as an error of every point.
//   * Times do not fall where a segment ends, unless the name of kernels changes there: not by more
//     than a few per cent for the groups that were measured, and by a tenth for groups of a third
//     or three times their engine times, as rings of half or twice the ranks have.
#ifndef ASTRA_BRIDGE_CALIBRATION_SEGMENTED_LINE_H_
#define ASTRA_BRIDGE_CALIBRATION_SEGMENTED_LINE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "astra_bridge/calibration/correction_line.h"
#include "astra_bridge/calibration/correction_points.h"
#include "astra_bridge/corrections/corrections.h"

namespace meridian {

class SegmentedLine {
 public:
  // Points of one kind, at least one; times are positive.
  explicit SegmentedLine(std::vector<CorrectionPoint> points);

  // Returns the segments of the least loss, each of which costs the penalty, which is positive.
  std::vector<CorrectionSegment> Fit(double penalty) const;

 private:
  // How a line begins where another ends.
  enum class Joint { kMeet, kJump };
  // Sizes from first to last, both included.
  struct Piece {
    size_t first = 0;
    size_t last = 0;
    // With the piece before; the first piece has none, and nothing to share.
    Joint joint = Joint::kJump;

    bool shares_first() const { return joint == Joint::kMeet; }
  };
  struct FittedLine {
    CorrectionLine line;
    // By size: what the line misses there.
    std::vector<double> losses;
    double loss = 0;
    // How many of its sizes one group has, of the group that has most.
    size_t sizes_of_one_group = 0;
  };
  class Search;

  // How far groups lie apart: the standard deviation of what one line misses of each.
  double SpreadOfGroups() const;
  size_t sizes() const { return first_points_.size() - 1; }
  absl::Span<const CorrectionPoint> PointsOf(size_t first, size_t last) const;
  int64_t BytesOf(size_t size) const { return points_[first_points_[size]].bytes; }
  FittedLine FitLine(size_t first, size_t last) const;
  const FittedLine& LineOf(size_t first, size_t last) const { return lines_[first][last - first]; }
  const CorrectionLine& LineOf(const Piece& piece) const {
    return LineOf(piece.first, piece.last).line;
  }
  // Whether a line may go from one size to the other: no protocol changes between them.
  bool IsOneProtocol(size_t first, size_t last) const;
  // Whether there is all of a protocol between the two sizes, and nothing else.
  bool IsWholeProtocol(size_t first, size_t last) const;
  // Whether the piece is the last size alone, and times jump to it.
  bool IsSharpCliff(const Piece& piece) const;
  bool HasSupport(const Piece& piece, bool shares_last) const;
  bool MayFollow(const CorrectionLine& before, const CorrectionLine& after, size_t size,
                 Joint joint) const;
  // What the size is to the next.
  void DescribeStep(size_t size);
  // Of each group, on a straight line between its neighbours on scales of ratios.
  std::vector<double> EngineTimesAt(double bytes) const;
  std::vector<CorrectionSegment> SegmentsOf(const std::vector<Piece>& pieces) const;

  // By bytes, ascending.
  std::vector<CorrectionPoint> points_;
  // By size: position of its first point; then the number of points.
  std::vector<size_t> first_points_;
  // By first and last size.
  std::vector<std::vector<FittedLine>> lines_;
  // By size: whether times jump by more than bytes to the next, and whether kernels have another
  // name there.
  std::vector<bool> cliffs_;
  std::vector<bool> protocol_changes_;
  // How many sizes before this one the protocol changed after.
  std::vector<size_t> protocols_before_;
  // By size: the engine's times of all groups there, and half way to the next size; of groups that
  // were measured at others, interpolated.
  std::vector<std::vector<double>> engine_ns_at_;
  std::vector<std::vector<double>> engine_ns_after_;
  // By size: two ranks' times.
  std::vector<double> least_engine_ns_;
};

}  // namespace meridian

#endif  // ASTRA_BRIDGE_CALIBRATION_SEGMENTED_LINE_H_
