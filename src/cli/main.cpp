/// The `xtape` program: parses arguments, calls the library, and turns errors into exit codes.
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "base/messages/wording.hpp"
#include "base/system/instruction_set.hpp"
#include "base/system/process_memory.hpp"
#include "base/system/usable_cores.hpp"
#include "cli/commands.hpp"
#include "cli/lines.hpp"
#include "player/plan/budget.hpp"
#include "xtape/text.hpp"
#include "xtape/train.hpp"
#if defined(XTAPE_WITH_ONNX)
#include "xtape/onnx.hpp"
#endif
#if defined(XTAPE_WITH_GGUF)
#include "xtape/gguf.hpp"
#endif

namespace xtape::cli {

int exit_code(const std::exception& error) {
  if (dynamic_cast<const Interrupted*>(&error) != nullptr) return by_signal + interrupting_signal();
  const bool as_wrong_input =
      dynamic_cast<const WrongInput*>(&error) != nullptr || dynamic_cast<const DefinitionError*>(&error) != nullptr ||
      dynamic_cast<const FileError*>(&error) != nullptr || dynamic_cast<const ShapeError*>(&error) != nullptr ||
      dynamic_cast<const DtypeError*>(&error) != nullptr || dynamic_cast<const LimitError*>(&error) != nullptr;
  return as_wrong_input ? wrong_input : work_failed;
}

void flush_results() {
  std::cout << std::flush;
  if (interrupted()) throw Interrupted();
}

namespace {

std::string version() {
  std::string set = name_of(instruction_set());
  if (instruction_set() != processor_instruction_set())
    set += ", limited by XTAPE_ISA: the processor has " + std::string(name_of(processor_instruction_set()));
  const ThreadChoice& threads = default_threads();
  return "xtape " XTAPE_VERSION "\ninstruction set " + set + "\nthreads " + std::to_string(threads.count) + " (" +
         threads.reason + ")";
}

/// The keys of recipes that other programs have as options, by the names of these.
constexpr std::pair<const char*, const char*> keys_of_recipes[] = {{"--accumulate", "batch.accumulate"},
                                                                   {"--batch-size", "batch.size"},
                                                                   {"--clip", "clip"},
                                                                   {"--epochs", "epochs"},
                                                                   {"--lr", "schedule.rate"},
                                                                   {"--learning-rate", "schedule.rate"},
                                                                   {"--memory", "memory"},
                                                                   {"--patience", "patience"},
                                                                   {"--rate", "schedule.rate"},
                                                                   {"--steps", "steps"},
                                                                   {"--warmup", "schedule.warmup"},
                                                                   {"--weight-decay", "optimizer.weight_decay"}};

/// Returns a hint to what the user may have meant by an option that `command` does not have: another option, or a key
/// of the recipe.
std::string hint_for(const std::string& word, const CLI::App& command) {
  const std::string option = word.substr(0, word.find('='));
  std::vector<std::string> names;
  for (const CLI::Option* each : command.get_options())
    for (const std::string& name : each->get_lnames()) names.push_back("--" + name);
  if (command.get_option_no_throw("--set") != nullptr)
    for (const auto& [name, key] : keys_of_recipes) names.push_back(name);
  const std::string best = nearest(option, names);
  for (const auto& [name, key] : keys_of_recipes)
    if (best == name && command.get_option_no_throw(best) == nullptr)
      return "; did you mean '--set " + std::string(key) + "=…', a key of the recipe?";
  return did_you_mean(option, names);
}

/// Returns the error message for wrong arguments. It replaces CLI11's message in two cases: CLI11 reports a mistyped
/// command as a missing one, and reports a missing argument before an unknown option.
std::string complaint(const CLI::App& program, const CLI::ParseError& error) {
  const std::vector<CLI::App*> chosen = program.get_subcommands();
  for (const std::string& word : program.remaining(true))
    if (!chosen.empty() && word.starts_with('-'))
      return "there is no option '" + word + "'" + hint_for(word, *chosen.front());
  const std::vector<std::string> left = program.remaining();
  if (!program.get_subcommands().empty() || left.empty()) return error.what();
  std::vector<std::string> names;
  for (const CLI::App* command : program.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(command->get_name());
  }
  return "there is no command '" + left.front() + "'" + did_you_mean(left.front(), names);
}

/// Makes the options of all commands reject empty values, and numbers that are not finite.
void check_values(CLI::App& program) {
  for (CLI::App* command : program.get_subcommands([](const CLI::App*) { return true; }))
    for (CLI::Option* option : command->get_options()) {
      if (option->get_items_expected_max() == 0 || option->get_type_name() == any_text) continue;
      const bool is_float = option->get_type_name().starts_with("FLOAT");
      option->transform(CLI::Validator(
          [is_float](const std::string& text) -> std::string {
            double number = 0;
            if (text.empty()) return "must not be empty";
            if (is_float && CLI::detail::lexical_cast(text, number) && !std::isfinite(number))
              return "must be a finite number, not " + text;
            return "";
          },
          ""));
    }
}

constexpr const char* examples = R"(Examples:
  xtape show                                      the models and recipes that are installed
  xtape show gpt2                                 the modules and weights of one
  xtape train shakespeare_char --set data.text=FILE --out runs/mine
  xtape generate runs/mine --prompt "The "
  xtape COMMAND --help                            the options of a command)";

int run(int count, char** arguments) {
  const GuardedTerminal output(std::cout, standard_output);
  const GuardedTerminal messages(std::cerr, standard_error);
  CLI::App program("Train, evaluate and use models of JSON files, Hugging Face folders and ONNX files.", "xtape");
  program.set_version_flag("--version", version);
  program.require_subcommand(0, 1);
  program.callback([&] {
    if (program.get_subcommands().empty()) throw CLI::CallForHelp();
  });
  program.get_formatter()->label("SUBCOMMAND", "COMMAND");
  program.set_help_all_flag("--help-all", "Print the help of every command");
  add_commands(program);
  program.footer(examples);  // after the commands, which would inherit it
  check_values(program);
  watch_inputs([](const std::string& sentence) { std::fputs((escaped(sentence) + "\n").c_str(), stderr); });
  try {
    try {
      program.parse(count, arguments);
    } catch (const CLI::Success& request) {  // --help and --version
      program.exit(request);
    }
    errno = 0;
    std::cout.flush();
    if (!std::cout && errno != EPIPE) throw WorkFailed("cannot write to the standard output");
    return done;
  } catch (const CLI::ParseError& error) {
    std::cerr << "xtape: " << complaint(program, error) << "\nTry xtape --help or xtape COMMAND --help\n";
    return wrong_input;
  } catch (const Interrupted& interruption) {
    std::cout.flush();
    if (is_first_rank()) std::cerr << "xtape: " << interruption.what() << '\n';
    return exit_code(interruption);
  } catch (const std::bad_alloc&) {
    const std::string message = "out of memory: " + memory_left_text();
    end_all_ranks(message, work_failed, false);
    std::cerr << "xtape: " << message << '\n';
    return work_failed;
  } catch (const std::exception& error) {
    std::cout.flush();
    end_all_ranks(error.what(), exit_code(error), dynamic_cast<const TrainingError*>(&error) != nullptr);
    std::cerr << "xtape: " << error.what() << '\n';
    return exit_code(error);
  }
}

}  // namespace
}  // namespace xtape::cli

int main(int count, char** arguments) {
  xtape::prepare_streams();
#if defined(XTAPE_WITH_ONNX)
  xtape::read_onnx_blocks();
#endif
#if defined(XTAPE_WITH_GGUF)
  xtape::read_gguf_files();
#endif
  const int code = xtape::cli::run(count, arguments);
  xtape::cli::leave_ranks();
  return code;
}
