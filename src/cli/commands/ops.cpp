/// xtape ops: prints the reference page of all ops, or of one.
#include <iostream>
#include <memory>

#include "commands.hpp"
#include "xtape/op/op.hpp"

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

}  // namespace

void add_ops(CLI::App& program) {
  CLI::App* command = program.add_subcommand("ops", "Print the reference of the ops, as Markdown");
  const auto name = std::make_shared<std::string>();
  command->add_option("NAME", *name, "Only this op");
  command->callback([name] {
    if (name->empty()) {
      write_reference(builtin_ops(), std::cout);
    } else {
      print_one(*name);
    }
  });
}

}  // namespace xtape::cli
