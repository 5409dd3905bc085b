// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The account of a compilation, as JSON and as a table.
#ifndef QUIRE_LIB_DRIVER_REPORT_H
#define QUIRE_LIB_DRIVER_REPORT_H

#include "lib/Conversion/ONNXToKV/RaiseAttention.h"

#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

namespace quire {

struct Report {
  std::string model; // name of the ONNX file
  RaiseReport raise;
  std::string reason; // why the model was refused after raising; empty otherwise
  std::string kvType = "model"; // how K and V are stored, see CompileOptions
  int64_t blockTokens = 0;
  int64_t blockBytes = 0; // one block over all layers
  std::optional<llvm::json::Object> certificate;

  bool paged() const { return raise.raised && reason.empty(); }
};

/// The document that README and `report.json` describe.
llvm::json::Object toJson(const Report &report);
/// The same for people; at most a line a layer.
void printTable(const Report &report, llvm::raw_ostream &os);
/// Writes the JSON text to a temporary name beside `path` and renames it.
bool writeReport(const Report &report, llvm::StringRef path, std::string &error);

} // namespace quire

#endif // QUIRE_LIB_DRIVER_REPORT_H
