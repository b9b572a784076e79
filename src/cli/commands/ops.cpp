/// xtape ops: prints the reference page of all ops or of one op, or the operators of ONNX.
#include <iostream>
#include <memory>

#include "cli/commands.hpp"
#include "xtape/op/op.hpp"
#if defined(XTAPE_WITH_ONNX)
#include "xtape/onnx.hpp"
#endif

namespace xtape::cli {
namespace {

struct OpsArguments {
  std::string name;
  bool read = false, written = false;  // of ONNX
};

void print_one(const std::string& name) {
  OpTable table;
  try {
    table.add(builtin_ops().at(name));
  } catch (const Error& error) {  // the message suggests the nearest op
    throw WrongInput(error.what());
  }
  write_reference(table, std::cout);
}

void print_onnx([[maybe_unused]] bool written) {
#if defined(XTAPE_WITH_ONNX)
  for (const std::string& name : written ? onnx_written_ops() : onnx_operators()) std::cout << name << '\n';
#else
  throw WorkFailed(built_without_onnx);
#endif
}

void print_ops(const OpsArguments& arguments) {
  if (arguments.read || arguments.written) return print_onnx(arguments.written);
  if (!arguments.name.empty()) return print_one(arguments.name);
  write_reference(builtin_ops(), std::cout);
}

}  // namespace

void add_ops(CLI::App& program) {
  const auto [command, arguments] =
      add_command<OpsArguments>(program, "ops", "Print the reference of the ops, as Markdown", print_ops);
  add_option(command, "NAME", arguments.name, "Only this op");
  CLI::Option* onnx = command.add_flag("--onnx", arguments.read, "Instead, the operators of ONNX that are read");
  command.add_flag("--onnx-written", arguments.written, "Instead, the ops that ONNX files are written with")
      ->excludes(onnx);
}

}  // namespace xtape::cli
