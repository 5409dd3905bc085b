// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Everything that the `kvrt` dialect defines.
#ifndef QUIRE_KVRT_OPS_TD
#define QUIRE_KVRT_OPS_TD

include "dialects/KVRT/KVRTCalls.td"
include "dialects/KVRT/KVRTViews.td"
include "dialects/KVRT/KVRTKernels.td"

#endif // QUIRE_KVRT_OPS_TD
