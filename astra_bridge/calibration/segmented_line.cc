#include "astra_bridge/calibration/segmented_line.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <utility>

#include "astra_bridge/calibration/robust_statistics.h"

namespace meridian {
namespace {

// Times that grow by this factor more than bytes are a cliff.
constexpr double kCliffFactor = 1.25;
// And by so many standard errors.
constexpr double kCliffDeviations = 3;
// Bytes before and behind a cliff that one size is enough to show.
constexpr double kSharpCliff = 2;

// A jump also makes a segment of its middle, which has no numbers of its own.
constexpr double kJumpPenalties = 1.5;

constexpr size_t kLeastSizes = 2;
// Shared sizes count half.
constexpr double kLeastSupport = 1.5;

// By how much times may fall where a segment ends, at so many times the engine's times.
struct AllowedFall {
  double engine_times = 1;
  double share = 0;
};
constexpr AllowedFall kAllowedFalls[] = {{1, 0.05}, {1.0 / 3, 0.1}, {3, 0.1}};

constexpr double kUnreached = std::numeric_limits<double>::infinity();

// Returns the bytes that far from low to high, on a scale of ratios: at least low, and below high.
int64_t ShareOfWay(int64_t low, int64_t high, double share) {
  const double log_bytes = (1 - share) * std::log(static_cast<double>(low)) +
                           share * std::log(static_cast<double>(high));
  return std::clamp(static_cast<int64_t>(std::llround(std::exp(log_bytes))), low, high - 1);
}

}  // namespace

// The cheapest way through all sizes. A way is known by its last piece: what follows depends on
// that alone.
class SegmentedLine::Search {
 public:
  Search(const SegmentedLine& line, double penalty) : line_(line), penalty_(penalty) {
    ways_.resize(line.sizes());
    for (size_t last = 0; last < line.sizes(); ++last) {
      ways_[last].resize(last + 1);
      for (size_t first = 0; first <= last; ++first) {
        if (!line.IsOneProtocol(first, last)) continue;
        Reach({first, last, Joint::kJump});
        if (first > 0 && first < last) Reach({first, last, Joint::kMeet});
      }
    }
  }

  std::vector<Piece> BestPieces() const {
    const size_t last = line_.sizes() - 1;
    const Piece* best = nullptr;
    double least_cost = kUnreached;
    for (const auto& of_first : ways_[last]) {
      for (const Way& way : of_first) {
        if (way.cost >= least_cost || !line_.HasSupport(way.piece, /*shares_last=*/false)) continue;
        least_cost = way.cost;
        best = &way.piece;
      }
    }
    std::vector<Piece> pieces = {*best};
    while (pieces.front().first > 0) {
      pieces.insert(pieces.begin(), WayTo(pieces.front()).before);
    }
    return pieces;
  }

 private:
  // Through all sizes up to the end of the piece.
  struct Way {
    Piece piece;
    double cost = kUnreached;
    Piece before;
  };

  const Way& WayTo(const Piece& piece) const {
    return ways_[piece.last][piece.first][piece.shares_first() ? 1 : 0];
  }

  void Reach(const Piece& piece) {
    const FittedLine& fitted = line_.LineOf(piece.first, piece.last);
    Way way = {piece, kUnreached, {}};
    if (piece.first == 0) {
      way.cost = penalty_ + fitted.loss;
    } else {
      const bool meets = piece.joint == Joint::kMeet;
      const size_t end = meets ? piece.first : piece.first - 1;
      for (const auto& of_first : ways_[end]) {
        for (const Way& before : of_first) {
          const double cost = before.cost + CostOfJoint(before.piece, piece);
          if (cost >= way.cost || !line_.HasSupport(before.piece, meets) ||
              !line_.MayFollow(line_.LineOf(before.piece), fitted.line, end, piece.joint)) {
            continue;
          }
          way.cost = cost;
          way.before = before.piece;
        }
      }
      way.cost += fitted.loss;
    }
    ways_[piece.last][piece.first][piece.shares_first() ? 1 : 0] = way;
  }

  // A shared size counts half for either.
  double CostOfJoint(const Piece& before, const Piece& after) const {
    if (after.joint == Joint::kMeet) {
      return penalty_ - (line_.LineOf(before.first, before.last).losses.back() +
                         line_.LineOf(after.first, after.last).losses.front()) /
                            2;
    }
    return line_.protocol_changes_[before.last] ? 0 : kJumpPenalties * penalty_;
  }

  const SegmentedLine& line_;
  const double penalty_;
  // By last and first size, and whether the first is shared.
  std::vector<std::vector<std::array<Way, 2>>> ways_;
};

SegmentedLine::SegmentedLine(std::vector<CorrectionPoint> points) : points_(std::move(points)) {
  std::stable_sort(
      points_.begin(), points_.end(),
      [](const CorrectionPoint& a, const CorrectionPoint& b) { return a.bytes < b.bytes; });
  for (size_t i = 0; i < points_.size(); ++i) {
    if (i == 0 || points_[i].bytes != points_[i - 1].bytes) first_points_.push_back(i);
  }
  first_points_.push_back(points_.size());
  size_t protocols = 0;
  for (size_t size = 0; size < sizes(); ++size) {
    DescribeStep(size);
    protocols_before_.push_back(protocols);
    protocols += protocol_changes_.back() ? 1 : 0;
  }
  // After cliffs, which are those of each group by itself.
  const double spread = SpreadOfGroups();
  for (CorrectionPoint& point : points_) {
    point.relative_error = std::hypot(point.relative_error, spread);
  }
  lines_.resize(sizes());
  for (size_t first = 0; first < sizes(); ++first) {
    for (size_t last = first; last < sizes(); ++last) {
      lines_[first].push_back(FitLine(first, last));
    }
  }
}

double SegmentedLine::SpreadOfGroups() const {
  const CorrectionLine line = FitCorrectionLine(points_);
  std::map<uint32_t, std::vector<double>> by_group;
  for (const CorrectionPoint& point : points_) {
    by_group[point.group].push_back(std::log(point.measured_ns / line.TimeNs(point.engine_ns)));
  }
  std::vector<double> medians;
  for (auto& [group, log_errors] : by_group) medians.push_back(Median(std::move(log_errors)));
  const double mean = Mean(medians);
  double squares = 0;
  for (double median : medians) squares += (median - mean) * (median - mean);
  return std::sqrt(squares / static_cast<double>(medians.size()));
}

absl::Span<const CorrectionPoint> SegmentedLine::PointsOf(size_t first, size_t last) const {
  return absl::MakeConstSpan(points_).subspan(first_points_[first],
                                              first_points_[last + 1] - first_points_[first]);
}

SegmentedLine::FittedLine SegmentedLine::FitLine(size_t first, size_t last) const {
  FittedLine fitted;
  fitted.line = FitCorrectionLine(PointsOf(first, last));
  std::map<uint32_t, size_t> sizes_of_groups;
  for (size_t size = first; size <= last; ++size) {
    double loss = 0;
    for (const CorrectionPoint& point : PointsOf(size, size)) {
      loss += LossOf(fitted.line, point);
      fitted.sizes_of_one_group =
          std::max(fitted.sizes_of_one_group, ++sizes_of_groups[point.group]);
    }
    fitted.losses.push_back(loss);
    fitted.loss += loss;
  }
  return fitted;
}

bool SegmentedLine::IsOneProtocol(size_t first, size_t last) const {
  return protocols_before_[first] == protocols_before_[last];
}

bool SegmentedLine::IsWholeProtocol(size_t first, size_t last) const {
  return IsOneProtocol(first, last) && (first == 0 || protocol_changes_[first - 1]) &&
         (last + 1 == sizes() || protocol_changes_[last]);
}

bool SegmentedLine::HasSupport(const Piece& piece, bool shares_last) const {
  if (IsWholeProtocol(piece.first, piece.last)) return true;
  if (IsSharpCliff(piece)) return true;
  const size_t own = LineOf(piece.first, piece.last).sizes_of_one_group;
  const double shared = (piece.shares_first() ? 0.5 : 0) + (shares_last ? 0.5 : 0);
  return own >= kLeastSizes && static_cast<double>(own) - shared >= kLeastSupport;
}

bool SegmentedLine::IsSharpCliff(const Piece& piece) const {
  if (piece.first == 0 || piece.first != piece.last || piece.last + 1 != sizes()) return false;
  return cliffs_[piece.first - 1] &&
         static_cast<double>(BytesOf(piece.first)) <=
             kSharpCliff * static_cast<double>(BytesOf(piece.first - 1));
}

bool SegmentedLine::MayFollow(const CorrectionLine& before, const CorrectionLine& after,
                              size_t size, Joint joint) const {
  if (joint == Joint::kJump && protocol_changes_[size]) return true;
  const std::vector<double>& engine_ns =
      joint == Joint::kJump ? engine_ns_after_[size] : engine_ns_at_[size];
  return std::all_of(engine_ns.begin(), engine_ns.end(), [&](double ns) {
    return std::all_of(
        std::begin(kAllowedFalls), std::end(kAllowedFalls), [&](const AllowedFall& fall) {
          const double at_ns = std::max(fall.engine_times * ns, least_engine_ns_[size]);
          return after.TimeNs(at_ns) >= (1 - fall.share) * before.TimeNs(at_ns);
        });
  });
}

std::vector<double> SegmentedLine::EngineTimesAt(double bytes) const {
  struct Neighbours {
    const CorrectionPoint* before = nullptr;
    const CorrectionPoint* after = nullptr;
  };
  std::map<uint32_t, Neighbours> by_group;
  for (const CorrectionPoint& point : points_) {
    Neighbours& neighbours = by_group[point.group];
    if (static_cast<double>(point.bytes) <= bytes) {
      neighbours.before = &point;
    } else if (neighbours.after == nullptr) {
      neighbours.after = &point;
    }
  }
  std::vector<double> engine_ns;
  for (const auto& [group, neighbours] : by_group) {
    const auto& [before, after] = neighbours;
    if (before != nullptr && static_cast<double>(before->bytes) == bytes) {
      engine_ns.push_back(before->engine_ns);
    } else if (before != nullptr && after != nullptr) {
      const double log_before = std::log(static_cast<double>(before->bytes));
      const double log_after = std::log(static_cast<double>(after->bytes));
      const double share = (std::log(bytes) - log_before) / (log_after - log_before);
      engine_ns.push_back(std::pow(before->engine_ns, 1 - share) *
                          std::pow(after->engine_ns, share));
    }
  }
  std::sort(engine_ns.begin(), engine_ns.end());
  engine_ns.erase(std::unique(engine_ns.begin(), engine_ns.end()), engine_ns.end());
  return engine_ns;
}

void SegmentedLine::DescribeStep(size_t size) {
  std::vector<double> excesses, deviations;
  // How many more groups name another protocol than the same.
  int other_protocols = 0;
  std::map<uint32_t, const CorrectionPoint*> by_group;
  for (const CorrectionPoint& point : PointsOf(size, size)) {
    by_group[point.group] = &point;
  }
  const double bytes = static_cast<double>(BytesOf(size));
  engine_ns_at_.push_back(EngineTimesAt(bytes));
  engine_ns_after_.emplace_back();
  least_engine_ns_.push_back(points_[first_points_[size]].least_engine_ns);
  if (size + 1 < sizes()) {
    const double next_bytes = static_cast<double>(BytesOf(size + 1));
    engine_ns_after_.back() = EngineTimesAt(std::sqrt(bytes * next_bytes));
    const double log_growth = std::log(next_bytes / bytes);
    for (const CorrectionPoint& after : PointsOf(size + 1, size + 1)) {
      const auto found = by_group.find(after.group);
      if (found == by_group.end()) continue;
      const CorrectionPoint& before = *found->second;
      excesses.push_back(std::log(after.measured_ns / before.measured_ns) - log_growth);
      deviations.push_back(std::hypot(before.relative_error, after.relative_error));
      if (before.protocol.empty() || after.protocol.empty()) continue;
      other_protocols += before.protocol != after.protocol ? 1 : -1;
    }
  }
  protocol_changes_.push_back(other_protocols > 0);
  cliffs_.push_back(
      !excesses.empty() &&
      Median(std::move(excesses)) >
          std::max(std::log(kCliffFactor), kCliffDeviations * Median(std::move(deviations))));
}

std::vector<CorrectionSegment> SegmentedLine::Fit(double penalty) const {
  const size_t protocols = protocols_before_.back() + 1;
  std::vector<Piece> pieces = Search(*this, penalty).BestPieces();
  while (pieces.size() > protocols && 2 * pieces.size() > sizes()) {
    penalty *= 2;
    pieces = Search(*this, penalty).BestPieces();
  }
  return SegmentsOf(pieces);
}

std::vector<CorrectionSegment> SegmentedLine::SegmentsOf(const std::vector<Piece>& pieces) const {
  std::vector<CorrectionSegment> segments;
  for (const Piece& piece : pieces) {
    const CorrectionLine& line = LineOf(piece);
    const double efficiency = 1 / line.slope;
    if (!segments.empty() && !piece.shares_first()) {
      const int64_t low = BytesOf(piece.first - 1);
      const int64_t high = BytesOf(piece.first);
      CorrectionSegment& before = segments.back();
      if (cliffs_[piece.first - 1]) {
        before.up_to_bytes = ShareOfWay(low, high, 0.5);
      } else {
        before.up_to_bytes = ShareOfWay(low, high, 1.0 / 3);
        const CorrectionSegment middle = {ShareOfWay(low, high, 2.0 / 3),
                                          (before.overhead_ns + line.overhead_ns) / 2,
                                          2 / (1 / before.efficiency + line.slope)};
        if (middle.up_to_bytes > before.up_to_bytes) segments.push_back(middle);
      }
    }
    segments.push_back({BytesOf(piece.last), line.overhead_ns, efficiency});
  }
  segments.back().up_to_bytes = std::numeric_limits<int64_t>::max();
  return segments;
}

}  // namespace meridian
