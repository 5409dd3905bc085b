// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Greedy decoding of a case of the corpus by the evaluator: `evaluate-model CASE OUTPUT`. Reads meta.json and
// requests.jsonl (with "inputs": {name: file.npy} for values that every call takes), writes OUTPUT/out.jsonl and
// OUTPUT/ID.npy as quire-run does.
#include "Tools.h"
#include "lib/Analysis/Evaluate/Generate.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;
using namespace quire::eval;
using quire::InputRole;

static Expected<json::Value> readJson(StringRef path) {
  auto file = MemoryBuffer::getFile(path);
  if (!file)
    return fail("cannot read '" + path + "'");
  return json::parse((*file)->getBuffer());
}

static std::optional<InputPlan> planInput(StringRef name, StringRef role) {
  auto found =
      StringSwitch<std::optional<InputRole>>(role)
          .Case("input_ids", InputRole::InputIds)
          .Cases({"attention_mask_total", "attention_mask_physical", "attention_mask_static"}, InputRole::AttentionMask)
          .Case("position_ids", InputRole::PositionIds)
          .Case("cache_position", InputRole::CachePosition)
          .Case("past_len_vec", InputRole::PastLengths)
          .Case("total_len_vec", InputRole::TotalLengths)
          .Case("past_len_scalar", InputRole::PastLength)
          .Case("prefix_len", InputRole::PrefixLength)
          .Case("use_cache_branch", InputRole::UseCacheBranch)
          .Case("mask4d_additive", InputRole::CallerMask)
          .Default(std::nullopt);
  if (!found)
    return std::nullopt;
  return InputPlan{name.str(), *found, role == "attention_mask_physical"};
}

static Expected<GenerationPlan> planOf(const json::Object &run) {
  GenerationPlan plan;
  const json::Array *inputs = run.getArray("inputs"), *states = run.getArray("states");
  if (!inputs || !states || !run.getString("logits"))
    return fail("expected run.inputs, run.states and run.logits in meta.json");
  plan.logits = run.getString("logits")->str();
  for (const json::Value &value : *inputs) {
    const json::Object &input = *value.getAsObject();
    StringRef role = input.getString("role").value_or(""), name = *input.getString("name");
    if (role == "state")
      continue;
    std::optional<InputPlan> made = planInput(name, role);
    if (!made)
      return fail("not implemented: the role '" + role + "' of input '" + name + "'");
    plan.inputs.push_back(*made);
  }
  for (const json::Value &value : *states) {
    const json::Object &state = *value.getAsObject();
    StatePlan made;
    made.input = state.getString("input")->str();
    made.output = state.getString("output")->str();
    auto kind = StringSwitch<std::optional<ElementKind>>(*state.getString("dtype"))
                    .Case("float32", ElementKind::F32)
                    .Case("float16", ElementKind::F16)
                    .Case("int64", ElementKind::I64)
                    .Default(std::nullopt);
    if (!kind)
      return fail("not implemented: states of type " + *state.getString("dtype"));
    made.kind = *kind;
    for (const json::Value &extent : *state.getArray("init_shape"))
      made.initialShape.push_back(*extent.getAsInteger());
    if (auto axis = state.getInteger("seq_axis"))
      made.sequenceAxis = *axis;
    plan.states.push_back(std::move(made));
  }
  return plan;
}

static Error runRequest(ImportedModel &model, const GenerationPlan &plan, const json::Object &request, StringRef output,
                        raw_ostream &answers) {
  GenerateOptions options;
  options.newTokens = request.getInteger("max_new_tokens").value_or(24);
  std::vector<int64_t> prompt;
  for (const json::Value &token : *request.getArray("prompt"))
    prompt.push_back(*token.getAsInteger());
  if (const json::Object *inputs = request.getObject("inputs"))
    for (const auto &[name, file] : *inputs) {
      Result value = readNpy(*file.getAsString());
      if (!value)
        return value.takeError();
      options.fixedInputs[name] = *value;
    }
  for (const InputPlan &input : plan.inputs) // the whole prompt is the prefix
    if (input.role == InputRole::PrefixLength)
      options.fixedInputs[input.name] = scalarTensor(ElementKind::I64, static_cast<double>(prompt.size()));
  auto generated = generateGreedy(model.evaluator(), plan, prompt, options);
  if (!generated)
    return generated.takeError();
  std::string id =
      request.getInteger("id") ? std::to_string(*request.getInteger("id")) : request.getString("id")->str();
  answers << json::Value(json::Object{{"id", *request.get("id")}, {"tokens", json::Array(generated->tokens)}}) << "\n";
  std::vector<float> rows;
  for (const std::vector<float> &row : generated->logits)
    rows.insert(rows.end(), row.begin(), row.end());
  auto steps = static_cast<int64_t>(generated->logits.size()), columns = static_cast<int64_t>(rows.size()) / steps;
  return writeNpy((output + "/" + id + ".npy").str(),
                  Tensor::adopt(ElementKind::F32, {steps, columns}, std::move(rows)));
}

static Error runCase(StringRef folder, StringRef output) {
  auto meta = readJson((folder + "/meta.json").str());
  if (!meta)
    return meta.takeError();
  const json::Object *run = meta->getAsObject()->getObject("run");
  if (!run)
    return fail("expected 'run' in meta.json");
  auto plan = planOf(*run);
  if (!plan)
    return plan.takeError();
  auto context = makeContext();
  ImportedModel model(*context);
  StringRef file = meta->getAsObject()->getString("file").value_or("model.onnx");
  if (Error error = model.load((folder + "/" + file).str()))
    return error;
  auto requests = MemoryBuffer::getFile((folder + "/requests.jsonl").str());
  if (!requests)
    return fail("cannot read requests.jsonl");
  std::error_code code = sys::fs::create_directories(output);
  if (code)
    return fail("cannot make '" + output + "'");
  raw_fd_ostream answers((output + "/out.jsonl").str(), code);
  if (code)
    return fail("cannot write in '" + output + "'");
  SmallVector<StringRef> lines;
  (*requests)->getBuffer().split(lines, '\n', -1, /*KeepEmpty=*/false);
  for (StringRef line : lines) {
    auto request = json::parse(line);
    if (!request)
      return request.takeError();
    if (Error error = runRequest(model, *plan, *request->getAsObject(), output, answers))
      return error;
  }
  return Error::success();
}

int main(int argc, char **argv) {
  if (argc != 3) {
    errs() << "usage: evaluate-model CASE OUTPUT\n";
    return 1;
  }
  if (Error error = runCase(argv[1], argv[2])) {
    errs() << toString(std::move(error)) << "\n";
    return 1;
  }
  return 0;
}
