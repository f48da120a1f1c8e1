// SPDX-License-Identifier: Apache-2.0
// What the residuals of a fit are worth as evidence of its errors. A few cells, or many that are
// wrong in the same way, tell little about how far the fitted numbers may be off:
//
//   points   cells, of which those of one kind and size that the engine gives the same time count
//            once
//   free     = points - unknowns
//   c        = (1 + r) / (1 - r), r the correlation of neighbouring sizes' residuals, from 0 on:
//              what the model misses, it misses at the next size, too
//   widening = sqrt(points / free) * sqrt(c) * t(free / c) / 1.96
//
// by which standard deviations and the ends of intervals are moved outwards. The first root makes
// up for the freedom that the fit has used, the second is that of a mean of values of a first-order
// autoregression, and t is Student's 95 % quantile.
#ifndef ASTRA_BRIDGE_CALIBRATION_EVIDENCE_H_
#define ASTRA_BRIDGE_CALIBRATION_EVIDENCE_H_

#include <cstddef>
#include <vector>

#include "absl/types/span.h"
#include "astra_bridge/calibration/transfers.h"

namespace meridian {

// Returns the positions of the cells of each point, e.g. those of groups {0,1} and {2,3} together
// when both are alike in the network. engine_ns is by cell.
std::vector<std::vector<size_t>> EvidencePoints(absl::Span<const TransferCell> cells,
                                                absl::Span<const double> engine_ns);

// Returns the correlation between the residuals of neighbouring sizes of the same kind and group,
// after the mean of each kind is taken out, from 0 to 0.9. Residuals are by cell, in units of their
// deviations; those beyond two of them count as two. A fit of u unknowns leaves n residuals about
// u / n less correlated than the errors were, which is added again. Strong correlation is still
// found too weak where it has only one or two series of sizes to show in: intervals of 95 % were
// seen to hold 87 % then.
double NeighbourCorrelation(absl::Span<const TransferCell> cells,
                            absl::Span<const double> residuals, size_t unknowns);

// Returns the widening, at least 1; infinity when not one degree of freedom is left.
double Widening(size_t points, size_t unknowns, double correlation);

// Returns Student's t with P(|T| <= t) = 0.95, to a thousandth of it. There is at least one degree
// of freedom, not necessarily a whole number of them.
double StudentQuantile95(double degrees_of_freedom);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_CALIBRATION_EVIDENCE_H_
