/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * The installed header and library work from C: an absent model gives an error with a text. */
#include <quire/runtime.h>
#include <stdio.h>

int main(void) {
  quire_model *model = NULL;
  quire_status status = quire_model_load("/nonexistent.quire", &model);
  printf("%s: %s, %s\n", quire_runtime_version(), quire_status_name(status), quire_last_error());
  return status != QUIRE_OK && model == NULL && quire_last_error()[0] != 0 ? 0 : 1;
}
