// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Packing, conversion and placement of entries of weights.bin.
#include "dialects/KVRT/KVRT.h"
#include "dialects/ONNX/ONNXDialect.h"
#include "lib/Target/CPU/FloatFormats.h"
#include "lib/Target/CPU/WeightsWriter.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace quire;

namespace {

// Writes 12 floats 0..11 at offset 64 of a file, and the entries of `text` from it; the result, or the error.
struct Written {
  std::string bytes, error;

  explicit Written(const std::string &text) {
    llvm::SmallString<128> folder;
    EXPECT_FALSE(llvm::sys::fs::createUniqueDirectory("quire-weights", folder));
    std::string source = path(folder, "w.data"), result = path(folder, "weights.bin");
    std::error_code code;
    {
      llvm::raw_fd_ostream stream(source, code);
      stream.write_zeros(64);
      for (int i = 0; i < 12; ++i) {
        float value = i;
        stream.write(reinterpret_cast<const char *>(&value), 4);
      }
    }
    mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
    context.loadDialect<kvrt::KVRTDialect, onnx::ONNXDialect>();
    mlir::ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic &diagnostic) {
      error += diagnostic.str();
      return mlir::success();
    });
    mlir::OwningOpRef<mlir::ModuleOp> module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
    if (module && mlir::succeeded(cpu::writeWeights(*module, folder, result)))
      if (auto buffer = llvm::MemoryBuffer::getFile(result))
        bytes = (*buffer)->getBuffer().str();
    EXPECT_FALSE(llvm::sys::fs::remove_directories(folder));
  }

  static std::string path(llvm::StringRef folder, llvm::StringRef name) {
    llvm::SmallString<128> path(folder);
    llvm::sys::path::append(path, name);
    return path.str().str();
  }

  float f32(size_t offset) const {
    float value;
    std::memcpy(&value, bytes.data() + offset, 4);
    return value;
  }
  uint16_t half(size_t offset) const {
    uint16_t value;
    std::memcpy(&value, bytes.data() + offset, 2);
    return value;
  }
};

const std::string initializer =
    "onnx.initializer @w {file = \"w.data\", offset = 64 : i64, bytes = 48 : i64} : tensor<3x4xf32>\n";

TEST(Weights, PacksPanelsAndPadsColumns) {
  Written w(
      initializer +
      "kvrt.packed @p {source = @w, layout = #kvrt.panels<nr = 3>, k = 3, n = 4, offset = 0} : tensor<2x3x3xf32>");
  ASSERT_EQ(w.error, "");
  ASSERT_EQ(w.bytes.size(), 128u);
  const float expected[] = {0, 1, 2, 4, 5, 6, 8, 9, 10, 3, 0, 0, 7, 0, 0, 11, 0, 0};
  for (size_t i = 0; i < std::size(expected); ++i)
    EXPECT_EQ(w.f32(4 * i), expected[i]) << i;
}

TEST(Weights, PacksTransposedSources) {
  Written w(initializer +
            "kvrt.packed @p {source = @w, layout = #kvrt.panels<nr = 2>, transposed, k = 4, n = 3, offset = 0} : "
            "tensor<2x4x2xf32>");
  ASSERT_EQ(w.error, "");
  const float expected[] = {0, 4, 1, 5, 2, 6, 3, 7, 8, 0, 9, 0, 10, 0, 11, 0};
  for (size_t i = 0; i < std::size(expected); ++i)
    EXPECT_EQ(w.f32(4 * i), expected[i]) << i;
}

TEST(Weights, ConvertsAndPlaces) {
  Written w(initializer + "kvrt.raw @r {source = @w, offset = 64} : tensor<12xf16>\n"
                          "kvrt.raw @b {source = @w, offset = 128} : tensor<3x4xbf16>");
  ASSERT_EQ(w.error, "");
  ASSERT_EQ(w.bytes.size(), 192u);
  for (int i = 0; i < 12; ++i) {
    EXPECT_EQ(cpu::floatFromHalf(w.half(64 + 2 * i)), i);
    EXPECT_EQ(cpu::floatFromBfloat(w.half(128 + 2 * i)), i);
  }
}

TEST(Weights, RefusesWhatDoesNotFit) {
  auto error = [](const std::string &text) { return Written(text).error; };
  EXPECT_NE(error(initializer + "kvrt.raw @r {source = @w} : tensor<12xf32>").find("expected an offset: run assign-weight-offsets first"),
            std::string::npos);
  EXPECT_NE(error(initializer + "kvrt.raw @r {source = @w, offset = 0} : tensor<13xf32>")
                .find("expected an initializer of 52 bytes, but got 48"),
            std::string::npos);
  EXPECT_NE(error(initializer + "kvrt.raw @r {source = @w, offset = 0} : tensor<12xi32>")
                .find("not implemented: conversion from 'f32' to 'i32'"),
            std::string::npos);
  EXPECT_NE(error("kvrt.raw @r {source = @r, offset = 0} : tensor<12xf32>").find("expected an initializer, but got @r"),
            std::string::npos);
  EXPECT_NE(error("onnx.initializer @w {file = \"absent\", offset = 0 : i64, bytes = 48 : i64} : tensor<12xf32>\n"
                  "kvrt.raw @r {source = @w, offset = 0} : tensor<12xf32>")
                .find("cannot read"),
            std::string::npos);
  EXPECT_NE(error("onnx.initializer @w {file = \"w.data\", offset = 96 : i64, bytes = 48 : i64} : tensor<12xf32>\n"
                  "kvrt.raw @r {source = @w, offset = 0} : tensor<12xf32>")
                .find("expected at least 144 bytes in "),
            std::string::npos);
  EXPECT_NE(error(initializer + "kvrt.raw @r {source = @w, offset = 64} : tensor<12xf32>\n"
                                "kvrt.raw @s {source = @w, offset = 0} : tensor<12xf32>")
                .find("expected entries in the order of their offsets"),
            std::string::npos);
}

// Every half is the nearest of what it came from, and comes back.
TEST(FloatFormats, RoundTripAndRoundToNearestEven) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    float value = cpu::floatFromHalf(bits);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(cpu::floatFromHalf(cpu::halfFromFloat(value))));
      continue;
    }
    ASSERT_EQ(cpu::halfFromFloat(value), bits);
    float bfloat = cpu::floatFromBfloat(bits);
    ASSERT_TRUE(std::isnan(bfloat) || cpu::bfloatFromFloat(bfloat) == bits);
  }
  for (uint32_t bits = 0; bits < 0x7bff; ++bits) {
    float low = cpu::floatFromHalf(bits), high = cpu::floatFromHalf(bits + 1);
    float middle = low + (high - low) / 2;
    uint16_t even = bits % 2 ? bits + 1 : bits;
    ASSERT_EQ(cpu::halfFromFloat(middle), even);
    ASSERT_EQ(cpu::halfFromFloat(std::nextafter(middle, 0.0f)), bits);
    ASSERT_EQ(cpu::halfFromFloat(std::nextafter(middle, 1e9f)), bits + 1);
  }
  EXPECT_EQ(cpu::halfFromFloat(65519.0f), 0x7bff);
  EXPECT_EQ(cpu::halfFromFloat(65520.0f), 0x7c00);
  EXPECT_EQ(cpu::bfloatFromFloat(1.00390625f), 0x3f80);
  EXPECT_EQ(cpu::bfloatFromFloat(1.01171875f), 0x3f82);
}

} // namespace
