// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a configuration says of a pool that may change while it is in use, and of the doctor.
#ifndef QUIRE_RUNTIME_SERVING_TUNING_H
#define QUIRE_RUNTIME_SERVING_TUNING_H

#include "config/Config.h"
#include "quire/runtime.h"
#include "serving/Scheduler.h"

namespace quire::serving {

quire_status tunePool(quire_pool *pool, const config::Config &config);

DocumentRules documentRules(const config::Config &config);

TurnRules turnRules(const config::Config &config);

/// Whether the model lets the configuration do what it says; else why not.
bool checkModel(const config::Config &config, const quire_model_info &model, std::string &why);

quire_doctor_options doctorOptions(const config::Config &config, int64_t preemptions);

} // namespace quire::serving

#endif // QUIRE_RUNTIME_SERVING_TUNING_H
