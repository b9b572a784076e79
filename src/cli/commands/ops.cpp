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

}  // namespace

void add_ops(CLI::App& program) {
  CLI::App* command = program.add_subcommand("ops", "Print the reference of the ops, as Markdown");
  const auto name = std::make_shared<std::string>();
  const auto read = std::make_shared<bool>(), written = std::make_shared<bool>();
  command->add_option("NAME", *name, "Only this op");
  CLI::Option* onnx = command->add_flag("--onnx", *read, "Instead, the operators of ONNX that are read");
  command->add_flag("--onnx-written", *written, "Instead, the ops that ONNX files are written with")->excludes(onnx);
  command->callback([name, read, written] {
    if (*read || *written) {
      print_onnx(*written);
    } else if (name->empty()) {
      write_reference(builtin_ops(), std::cout);
    } else {
      print_one(*name);
    }
  });
}

}  // namespace xtape::cli
