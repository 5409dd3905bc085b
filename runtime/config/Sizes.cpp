// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The C interface: sizes of pages from a configuration file.
#include "quire/config.h"

#include "abi/Handles.h"
#include "config/Config.h"

using namespace quire;

extern "C" quire_status quire_config_read_sizes(const char *path, quire_sized_pool_options *options) {
  if (!path || !options)
    return runtime::nullArgument("path and options");
  return runtime::guarded([&] {
    quire_sized_pool_options known;
    if (!runtime::readOptions(options, known))
      return runtime::badStructSize();
    config::Config read;
    QUIRE_TRY(config::readConfig(path, read, config::Keys::All));
    known.base = read.block.adaptive.base;
    known.double_every = read.block.adaptive.doubleEvery == 0 ? -1 : read.block.adaptive.doubleEvery;
    known.max = read.block.adaptive.max;
    known.chapter_page = read.document.chapterPage;
    known.paragraph_page = read.document.paragraphPage;
    runtime::writeResult(known, options);
    return runtime::success();
  });
}
