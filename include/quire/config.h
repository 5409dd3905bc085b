/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * Configuration files from C. A library of its own (quire-config, with yaml-cpp), so that the runtime needs no YAML. */
#ifndef QUIRE_CONFIG_H
#define QUIRE_CONFIG_H

#include "quire/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Sets base, double_every and max to what a file says under block.adaptive, or to the defaults of these keys, and chapter_page and
 * paragraph_page likewise from document; the other options stay, `sizes` among them. The file may have all other keys of a run, which quire-run
 * has to have without these. QUIRE_INVALID_ARGUMENT with FILE:LINE:COLUMN and the reason, QUIRE_IO_ERROR; then nothing has changed. */
quire_status quire_config_read_sizes(const char *path, quire_sized_pool_options *options);

#ifdef __cplusplus
}
#endif

#endif /* QUIRE_CONFIG_H */
