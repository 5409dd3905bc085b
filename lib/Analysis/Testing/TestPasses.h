// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Passes that print what the symbolic analysis found, for tests.

#ifndef QUIRE_ANALYSIS_TESTING_TESTPASSES_H
#define QUIRE_ANALYSIS_TESTING_TESTPASSES_H

namespace quire {

/// Registers `test-print-element` and `test-print-score`.
void registerAnalysisTestPasses();

} // namespace quire

#endif // QUIRE_ANALYSIS_TESTING_TESTPASSES_H
