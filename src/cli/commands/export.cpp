/// xtape export: writes a run's model as a folder in the format of the Hugging Face Hub, as a GGUF file, or one of its
/// functions as an ONNX file.
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>

#include "base/system/durable.hpp"
#include "cli/commands.hpp"
#include "cli/opened_model.hpp"
#include "cli/run_options.hpp"
#include "train/run/run_parts.hpp"
#include "xtape/train.hpp"
#if defined(XTAPE_WITH_ONNX)
#include "xtape/onnx.hpp"
#endif
#if defined(XTAPE_WITH_GGUF)
#include "xtape/gguf.hpp"
#endif

namespace xtape::cli {
namespace {

struct ExportArguments {
  std::string source, target;
  std::string checkpoint = "last";
  std::string weights;
  std::string quantise;              // for a GGUF file
  std::string function, with, step;  // for an ONNX file
  std::int64_t capacity = 0, opset = 18;
  bool adapter = false;
  std::string base;  // the base of an adapter; if empty, the folder from which the adapter was trained
};

#if defined(XTAPE_WITH_ONNX)

/// Records the function in mode eval. With `step`, records it in mode predict; the past and the states are then further
/// inputs, and the states after the step are outputs.
SavedTape recorded(const Model& model, const ExportArguments& arguments, const NamedSizes& sizes) {
  const bool is_step = !arguments.step.empty();
  SavedTape made{Tape(is_step ? Mode::predict : Mode::eval), {}, {}, {}};
  const NamedVars given = model.inputs(made.tape, arguments.function, sizes);
  made.inputs = given;
  if (is_step) {
    const Var& stepped = given.at(arguments.step);
    const Var past = made.tape.input("past", {stepped.size(0)}, Dtype::int64);
    made.tape.set_past(stepped, past, arguments.capacity);
    made.inputs.add("past", past);
  }
  for (const auto& [name, var] : model.record(made.tape, arguments.function, given))
    made.outputs.add(made.inputs.has(name) ? name + ".next" : name, var);
  for (const Carry& state : made.tape.states()) {
    const std::string name = state.input.node().name;
    made.inputs.add(name, state.input);
    made.outputs.add(name + ".next", state.output);
  }
  return made;
}

/// Writes a function. The sizes that --with does not set are dynamic.
void write_function(const Model& model, const ExportArguments& arguments, OnnxSaveOptions options) {
  const NamedSizes given = sizes_of(arguments.with);
  std::vector<std::string> open;
  for (const std::string& size : model.signature(arguments.function).sizes)
    if (!given.has(size)) open.push_back(size);
  const auto record = [&](const NamedSizes& sizes) {
    NamedSizes all = given;
    for (const auto& [name, size] : sizes) all.add(name, size);
    return recorded(model, arguments, all);
  };
  if (!open.empty()) return save_onnx(arguments.target, open, record, options);
  const SavedTape tape = record({});
  options.inputs = tape.inputs;
  save_onnx(arguments.target, tape.outputs, options);
}

void write_onnx(const ExportArguments& arguments) {
  OnnxSaveOptions options;
  options.opset = arguments.opset;
  const bool is_tape = is_saved_tape(arguments.source);
  if (is_tape != arguments.function.empty())
    throw WrongInput(is_tape ? "'" + arguments.source + "' is a saved tape, which takes no --function"
                             : "--function names the function of the model that the ONNX file is to have");
  if (arguments.step.empty() != (arguments.capacity == 0))
    throw WrongInput("--step and --capacity go together: a step of decoding has caches of this many positions");
  if (is_tape) {
    const SavedTape tape = Tape::load(arguments.source);
    options.inputs = tape.inputs;
    save_onnx(arguments.target, tape.outputs, options);
  } else if (const auto folder = model_folder(arguments.source)) {
    write_function(open_folder(*folder), arguments, options);
  } else {
    write_function(open_run(arguments.source, arguments.checkpoint).model(), arguments, options);
  }
}
#else
void write_onnx(const ExportArguments&) {
  throw WorkFailed(built_without_onnx);
}
#endif

std::string absolute(const std::string& path) {
  return std::filesystem::absolute(path).lexically_normal().string();
}

/// Writes the adapters of a run or a folder as a folder of PEFT. Returns a folder with the config of their base.
std::string write_adapter(const ExportArguments& arguments) {
  if (const auto folder = model_folder(arguments.source)) {
    save_adapter(open_folder(*folder), arguments.target,
                 arguments.base.empty() ? absolute(folder->path) : arguments.base);
    return folder->path;
  }
  const Run run = open_run(arguments.source, arguments.checkpoint);
  if (!run.save_adapter(arguments.target, arguments.base))
    std::cerr << "warning: " << run.recipe().from << " is gone, so that the adapters were not read back on top of it\n";
  return train::hugging_face_folder(run.directory());
}

#if defined(XTAPE_WITH_GGUF)
/// Writes a run's model, or a folder, as a GGUF file. It comes from a temporary folder beside it: of a run, the one
/// that `xtape export RUN FOLDER` writes, with its tokenizer.
void write_gguf(const ExportArguments& arguments) {
  const std::string format = arguments.quantise.empty() ? "F32" : arguments.quantise;
  if (const auto folder = model_folder(arguments.source)) {
    save_gguf(open_folder(*folder), arguments.target, format, folder->path);
    return;
  }
  const std::string folder = arguments.target + ".folder" + unfinished;
  remove_if_possible(folder);
  try {
    open_run(arguments.source, arguments.checkpoint).save_hugging_face(folder, Dtype::float32);
    convert_to_gguf(folder, arguments.target, format);
  } catch (...) {
    remove_if_possible(folder);
    throw;
  }
  remove_if_possible(folder);
}

/// Writes the adapters of a run or a folder as a GGUF file, which comes from a temporary folder of PEFT beside it.
void write_gguf_adapter(const ExportArguments& arguments) {
  const std::string folder = arguments.target + ".folder" + unfinished;
  ExportArguments to_folder = arguments;
  to_folder.target = folder;
  remove_if_possible(folder);
  try {
    const std::string base = write_adapter(to_folder);
    convert_adapter_to_gguf(folder, base, arguments.target);
  } catch (...) {
    remove_if_possible(folder);
    throw;
  }
  remove_if_possible(folder);
}
#else
void write_gguf(const ExportArguments&) {
  throw WorkFailed("this program was built without xtape-gguf, which writes GGUF files");
}
void write_gguf_adapter(const ExportArguments& arguments) {
  write_gguf(arguments);
}
#endif

void write(const ExportArguments& arguments) {
  if (path_exists(arguments.target)) throw WrongInput(arguments.target + " already exists");
  const bool onnx = arguments.target.ends_with(".onnx"), gguf = arguments.target.ends_with(".gguf");
  if (!arguments.quantise.empty() && !gguf)
    throw WrongInput("--quantise is for GGUF files: name one, such as model.gguf");
  if (!onnx && (!(arguments.function + arguments.with + arguments.step).empty() || arguments.capacity != 0))
    throw WrongInput("--function, --with, --step and --capacity are for ONNX files: name one, such as model.onnx");
  if (onnx) {
    if (arguments.adapter) throw WrongInput("--adapter writes a folder, not an ONNX file");
    if (!arguments.weights.empty())
      throw WrongInput("--weights is for folders: an ONNX file has the weights as they are");
    write_onnx(arguments);
    std::cout << arguments.target << '\n';
    return;
  }
  if (gguf) {
    if (!arguments.weights.empty())
      throw WrongInput("a GGUF file has weights in the format of --quantise: leave --weights out");
    if (arguments.adapter && !arguments.quantise.empty())
      throw WrongInput("adapters in a GGUF file are float32: leave --quantise out");
    arguments.adapter ? write_gguf_adapter(arguments) : write_gguf(arguments);
    std::cout << arguments.target << '\n';
    return;
  }
  const Dtype weights = arguments.weights.empty() ? Dtype::float32 : dtype_named(arguments.weights);
  if (arguments.adapter) {
    write_adapter(arguments);
  } else if (const auto folder = model_folder(arguments.source)) {
    save_hugging_face(open_folder(*folder), arguments.target, folder->path, weights);
  } else {
    for (const std::string& note :
         open_run(arguments.source, arguments.checkpoint).save_hugging_face(arguments.target, weights))
      std::cerr << "note: " << note << '\n';
  }
  std::cout << arguments.target << '\n';
}

}  // namespace

void add_export(CLI::App& program) {
  const auto [command, arguments] = add_command<ExportArguments>(
      program, "export", "Write a run's model as a folder for transformers, or as an ONNX or GGUF file",
      [](const ExportArguments& given) { as_wrong_input([&] { write(given); }); });
  add_option(command, "RUN", arguments.source,
             "A run directory, or a Hugging Face model folder, whose weights become float32 in one file; for an ONNX "
             "file also a saved tape",
             required);
  add_option(command, "FOLDER", arguments.target, "The folder to write, or the file NAME.onnx or NAME.gguf", required);
  add_option(command, "--function", arguments.function, "For an ONNX file: the function of the model");
  add_option(command, "--with", arguments.with, "For an ONNX file: sizes of its inputs: b=1,t=8; others stay open");
  add_option(command, "--step", arguments.step,
             "For an ONNX file: a step of decoding, in which this input has the next tokens; its caches are inputs and "
             "outputs");
  add_option(command, "--capacity", arguments.capacity, "With --step: the number of positions in caches", positive);
  add_option(command, "--opset", arguments.opset, "For an ONNX file: the version of its operators, 18 to 23", shown);
  add_checkpoint(command, arguments.checkpoint);
  command.add_flag("--adapter", arguments.adapter,
                   "Write the low-rank adapters alone: a folder of PEFT, or NAME.gguf for llama.cpp");
  add_option(command, "--base", arguments.base,
             "With --adapter: the name of the base in adapter_config.json, such as one of the Hugging Face Hub "
             "(default: the folder that the run started from)")
      ->needs("--adapter");
  add_option(command, "--weights", arguments.weights,
             "Store the weights of products as this dtype; int8 and blocks (Q4_K …) are read by xtape only")
      ->check(CLI::IsMember(storage_names({"float32"})))
      ->excludes("--adapter");
  add_option(command, "--quantise", arguments.quantise,
             "For a GGUF file: the format of matrices, such as F16, Q8_0 or Q4_K_M (default: F32)")
#if defined(XTAPE_WITH_GGUF)
      ->check(CLI::IsMember(gguf_formats()))
#endif
      ;
}

}  // namespace xtape::cli
