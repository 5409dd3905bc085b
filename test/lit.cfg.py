# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# The lit suite: MLIR files and shell lines through the tools, beside the sources they mirror; GoogleTest programs.
import os

import lit.formats

config.name = "Quire"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs", "Unit", "Fuzz", "models", "CMakeLists.txt"]
config.test_source_root = os.path.join(config.quire_source, "test")
config.test_exec_root = os.path.join(config.quire_build, "test")

binaries = os.path.join(config.quire_build, "bin")
config.environment["PATH"] = os.pathsep.join([binaries, config.llvm_tools, os.environ.get("PATH", "")])
for name in ("HOME", "TMPDIR", "ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS", "OMP_NUM_THREADS"):
    if name in os.environ:
        config.environment[name] = os.environ[name]

# `%python` has the packages of scripts/requirements.txt; `%models` is the folder of small checked-in models.
config.substitutions.append(("%python", config.python))
config.substitutions.append(("%models", os.path.join(config.quire_source, "test", "models")))
config.substitutions.append(("%source", config.quire_source))
config.substitutions.append(("%build", config.quire_build))

for tool in ("quire-opt", "quirec", "quire-run", "quire-bench", "quire-replay", "quire-kernel-bench", "quire-kv-experiments"):
    if os.path.exists(os.path.join(binaries, tool)):
        config.available_features.add(tool)
if os.path.exists(os.path.join(config.quire_build, "lib", "QuirePlugin.so")):
    config.available_features.add("plugin")
for sanitizer in filter(None, config.sanitizers.split(",")):
    config.available_features.add(sanitizer)

# A folder of further models, read-only (CONTRIBUTING.md); tests that need it are skipped without it.
corpus = os.environ.get("QUIRE_MODEL_CORPUS")
if corpus:
    if not os.path.isdir(corpus):
        lit_config.fatal(f"QUIRE_MODEL_CORPUS: no folder '{corpus}'")
    config.available_features.add("model-corpus")
    config.substitutions.append(("%corpus", os.path.abspath(corpus)))
