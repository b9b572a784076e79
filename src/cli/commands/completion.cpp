/// xtape completion: prints the completion of a shell or the manual page. Both are made from the commands and options
/// themselves, as --help is.
#include <algorithm>
#include <iostream>

#include "base/messages/wording.hpp"
#include "cli/commands.hpp"

namespace xtape::cli {
namespace {

struct CompletionArguments {
  std::string shell;
};

/// An option or argument of a command.
struct Known {
  std::string name;   ///< "--set", or "RECIPE" for an argument.
  std::string value;  ///< "TEXT", "float32|bf16"; "" for a flag.
  std::string help;
  std::vector<std::string> choices;  ///< The values that it may have. Empty: any.
  bool is_argument = false, is_required = false, is_list = false;
};

std::vector<Known> options_of(const CLI::App& command) {
  std::vector<Known> all;
  for (const CLI::Option* option : command.get_options()) {
    Known known;
    known.is_argument = option->get_positional();
    known.is_required = option->get_required();
    known.is_list = option->get_items_expected_max() > 1;
    known.name = known.is_argument ? option->get_name(true) : "--" + option->get_lnames().front();
    known.help = option->get_description();
    // CLI11 names the type and what is checked: "TEXT:{float32,bf16}", "INT:POSITIVE".
    std::string type = option->get_items_expected_max() == 0 ? "" : option->get_type_name();
    const std::size_t open = type.find(":{"), close = type.find('}', std::min(open, type.size()));
    if (close != std::string::npos) {
      known.choices = CLI::detail::split(type.substr(open + 2, close - open - 2), ',');
      type = joined(known.choices, {}, "|");
    }
    known.value = type.substr(0, type.find(':'));
    all.push_back(known);
  }
  return all;
}

std::vector<const CLI::App*> commands_of(const CLI::App& program) {
  return program.get_subcommands([](const CLI::App*) { return true; });
}

/// Returns the text with `before` in front of each of the characters.
std::string with(std::string text, const std::string& characters, const std::string& before) {
  for (std::size_t at = 0; (at = text.find_first_of(characters, at)) != std::string::npos; at += before.size() + 1)
    text.insert(at, before);
  return text;
}

/// Returns the text between apostrophes, as shells read it literally.
std::string literal(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string words(const std::vector<Known>& options) {
  std::vector<std::string> names;
  for (const Known& option : options)
    if (!option.is_argument) names.push_back(option.name);
  return joined(names, {}, " ");
}

/// The names of models and recipes are asked for at the time of completion, because they depend on the installation.
constexpr const char* installed = "xtape show 2>/dev/null | sed -n 's/^  \\([a-z0-9_]*\\) .*/\\1/p'";

void print_bash(const CLI::App& program) {
  std::cout << R"sh(# Completion of xtape for bash, from `xtape completion bash`.
_xtape() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} command= options= i
  if [ "$word" = = ]; then word=; elif [ "$before" = = ]; then before=${COMP_WORDS[COMP_CWORD - 2]}; fi
  for ((i = 1; i < COMP_CWORD; i++)); do
    if [[ ${COMP_WORDS[i]} != -* ]]; then command=${COMP_WORDS[i]}; break; fi
  done
  COMPREPLY=()
  case "$command $before" in
)sh";
  for (const CLI::App* command : commands_of(program))
    for (const Known& option : options_of(*command))
      if (!option.choices.empty())
        std::cout << "    "
                  << literal(command->get_name() + " " + (option.is_argument ? command->get_name() : option.name))
                  << ") COMPREPLY=($(compgen -W " << literal(joined(option.choices, {}, " "))
                  << " -- \"$word\")); return ;;\n";
  std::cout << "  esac\n  case \"$command\" in\n    '') options=" << literal(words(options_of(program))) << " ;;\n";
  for (const CLI::App* command : commands_of(program))
    std::cout << "    " << command->get_name() << ") options=" << literal(words(options_of(*command))) << " ;;\n";
  std::vector<std::string> names;
  for (const CLI::App* command : commands_of(program)) names.push_back(command->get_name());
  std::cout << R"sh(  esac
  if [[ $word == -* ]]; then
    COMPREPLY=($(compgen -W "$options" -- "$word"))
  elif [ -z "$command" ]; then
    COMPREPLY=($(compgen -W )sh"
            << literal(joined(names, {}, " ")) << R"sh( -- "$word"))
  elif [[ $before != -* ]]; then
    COMPREPLY=($(compgen -W "$()sh"
            << installed << R"sh()" -- "$word") $(compgen -f -- "$word"))
  fi
}
complete -o bashdefault -o default -o filenames -F _xtape xtape
)sh";
}

void print_zsh(const CLI::App& program) {
  std::cout << "#compdef xtape\n# Completion of xtape for zsh, from `xtape completion zsh`.\n"
            << "_xtape_models() {\n  compadd -- $(" << installed << ")\n  _files\n}\n"
            << "_xtape() {\n  local -a commands\n  commands=(\n";
  for (const CLI::App* command : commands_of(program))
    std::cout << "    " << literal(command->get_name() + ":" + with(command->get_description(), ":", "\\")) << '\n';
  std::cout << "  )\n  if ((CURRENT == 2)); then\n    _describe command commands\n    return\n  fi\n"
            << "  local command=$words[2]\n  shift words\n  ((CURRENT--))\n  case $command in\n";
  for (const CLI::App* command : commands_of(program)) {
    std::cout << "    " << command->get_name() << ") _arguments";
    for (const Known& option : options_of(*command)) {
      const std::string values = option.choices.empty() ? "_files" : "(" + joined(option.choices, {}, " ") + ")";
      const std::string value = ":" + with(option.value, ":[]\\", "\\") + ":" + values;
      std::cout << " \\\n      ";
      if (option.is_argument)
        std::cout << literal((option.is_list ? "*:" : ":") + option.name + ":" +
                             (option.choices.empty() ? "_xtape_models" : values));
      else
        std::cout << literal("*" + option.name + "[" + with(option.help, ":[]\\", "\\") + "]" +
                             (option.value.empty() ? "" : value));
    }
    std::cout << " ;;\n";
  }
  std::cout << "  esac\n}\n_xtape \"$@\"\n";
}

void print_fish(const CLI::App& program) {
  std::cout << "# Completion of xtape for fish, from `xtape completion fish`.\n";
  const auto line = [](const std::string& condition, const Known& option) {
    std::cout << "complete -c xtape -n " << literal(condition);
    if (!option.is_argument) std::cout << " -l " << option.name.substr(2);
    if (!option.value.empty() && !option.is_argument) std::cout << (option.choices.empty() ? " -r" : " -x");
    if (!option.choices.empty()) std::cout << " -a " << literal(joined(option.choices, {}, " "));
    if (option.is_argument && option.choices.empty())
      std::cout << " -a " << literal(std::string("(") + installed + ")");
    std::cout << " -d " << literal(option.help) << '\n';
  };
  for (const Known& option : options_of(program)) line("__fish_use_subcommand", option);
  for (const CLI::App* command : commands_of(program)) {
    std::cout << "complete -c xtape -n __fish_use_subcommand -f -a " << command->get_name() << " -d "
              << literal(command->get_description()) << '\n';
    for (const Known& option : options_of(*command)) line("__fish_seen_subcommand_from " + command->get_name(), option);
  }
}

/// Returns a text of the manual page. roff reads a point or an apostrophe at the beginning of a line, and hyphens.
std::string roff(const std::string& text) {
  return "\\&" + with(with(text, "\\", "\\"), "-", "\\");
}

void print_options(const CLI::App& command) {
  for (const Known& option : options_of(command)) {
    if (command.get_parent() != nullptr && option.name.starts_with("--help")) continue;  // all have these
    std::cout << ".TP\n\\fB" << roff(option.name) << "\\fR";
    if (!option.value.empty() && !option.is_argument) std::cout << " \\fI" << roff(option.value) << "\\fR";
    std::cout << '\n' << roff(option.help + (option.is_required && !option.is_argument ? " (required)" : "")) << '\n';
  }
}

void print_manual(const CLI::App& program) {
  std::cout << ".TH XTAPE 1 \"\" \"xtape " XTAPE_VERSION
               "\" \"User Commands\"\n.ad l\n.SH NAME\nxtape \\- train, evaluate and use models of "
            << "JSON files\n.SH SYNOPSIS\n.B xtape\n.I COMMAND\n[\\fIARGUMENT\\fR ...] [\\fIOPTION\\fR ...]\n.SH "
               "DESCRIPTION\n"
            << roff(program.get_description()) << "\n.SH OPTIONS\n";
  print_options(program);
  std::string group;
  for (const CLI::App* command : commands_of(program)) {
    if (command->get_group() != group) std::cout << ".SH \"" << roff(group = command->get_group()) << "\"\n";
    std::cout << ".SS \"xtape " << command->get_name();
    for (const Known& option : options_of(*command))
      if (option.is_argument)
        std::cout << (option.is_required ? " " : " [") << option.name << (option.is_required ? "" : "]");
    std::cout << "\"\n" << roff(command->get_description()) << ".\n";
    print_options(*command);
  }
  std::cout << ".SH \"EXIT STATUS\"\n";
  for (const auto& [code, meaning] : exit_codes) std::cout << ".TP\n\\fB" << code << "\\fR\n" << roff(meaning) << '\n';
}

void complete(const CLI::App& command, const CompletionArguments& arguments) {
  const CLI::App& program = *command.get_parent();
  if (arguments.shell == "bash") return print_bash(program);
  if (arguments.shell == "zsh") return print_zsh(program);
  if (arguments.shell == "fish") return print_fish(program);
  print_manual(program);
}

}  // namespace

void add_completion(CLI::App& program) {
  const auto [command, arguments] = add_command<CompletionArguments>(
      program, "completion", "Print the completion of a shell, or the manual page", complete);
  add_option(command, "SHELL", arguments.shell, "The shell; man: the manual page", required)
      ->check(CLI::IsMember({"bash", "zsh", "fish", "man"}));
}

}  // namespace xtape::cli
