// SPDX-License-Identifier: Apache-2.0
// What SST's headers say as far as generated motifs use them: see embermpigen.h.
