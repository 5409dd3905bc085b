// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Writes toy models as model folders into a temporary directory.
#ifndef QUIRE_TEST_UNIT_RUNTIME_TOYFOLDER_H
#define QUIRE_TEST_UNIT_RUNTIME_TOYFOLDER_H

#include <nlohmann/json.hpp>

#include <filesystem>
#include <string>

namespace quire::test {

/// A directory that is removed at the end.
class TemporaryFolder {
public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder &) = delete;
  TemporaryFolder &operator=(const TemporaryFolder &) = delete;
  std::filesystem::path operator/(const std::string &name) const { return path_ / name; }

private:
  std::filesystem::path path_;
};

/// model.so, weights.bin, report.json and a manifest that fits them.
void writeToyFolder(const std::filesystem::path &folder, const std::string &code);

/// The manifest that writeToyFolder writes for the files that are there.
nlohmann::ordered_json toyManifest(const std::filesystem::path &folder);

std::string readFile(const std::filesystem::path &path);
void writeFile(const std::filesystem::path &path, const std::string &text);

} // namespace quire::test

#endif // QUIRE_TEST_UNIT_RUNTIME_TOYFOLDER_H
