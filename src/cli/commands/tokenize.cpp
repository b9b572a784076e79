/// xtape tokenize: converts text to tokens and back.
#include <filesystem>
#include <iostream>
#include <memory>
#include <sstream>

#include "base/system/folder_file.hpp"
#include "cli/lines.hpp"
#include "cli/run_options.hpp"
#include "data/texts/long_text.hpp"
#include "data/texts/token_files.hpp"
#include "xtape/hugging_face.hpp"
#include "xtape/train.hpp"

namespace xtape::cli {
namespace {

struct TokenizeArguments {
  std::string run;
  std::vector<std::string> files;
  std::string out;
  bool pieces = false;
  bool detokenize = false;
  bool target = false;
  std::int64_t max_line = 0;
};

Tokens numbers_of(const std::string& line) {
  std::istringstream words(line);
  Tokens tokens;
  for (std::string word; words >> word;) {
    std::size_t read = 0;
    int number = -1;
    try {
      number = std::stoi(word, &read);
    } catch (const std::exception&) {
      read = 0;
    }
    if (read != word.size()) throw WrongInput("'" + word + "' is not a token number");
    tokens.push_back(number);
  }
  return tokens;
}

std::string line_of(const Tokenizer& tokenizer, const std::string& line, const TokenizeArguments& arguments) {
  if (arguments.detokenize) return tokenizer.decode(numbers_of(line));
  const Tokens tokens = tokenizer.encode(line);
  std::string text;
  const auto add = [&](const std::string& word) { text += (text.empty() ? "" : " ") + word; };
  if (arguments.pieces)
    for (const std::string& piece : tokenizer.pieces(tokens)) add(piece);
  else
    for (const std::int32_t token : tokens) add(std::to_string(token));
  return text;
}

/// Returns the tokenizer of a run or of a Hugging Face model folder.
std::shared_ptr<const Tokenizer> tokenizer_of(const TokenizeArguments& arguments) {
  namespace fs = std::filesystem;
  if (opens_as_folder(arguments.run) && !fs::exists(fs::path(arguments.run) / "recipe.json")) {
    const std::string folder = is_adapter(arguments.run) ? base_of_adapter(arguments.run) : arguments.run;
    return arguments.target ? load_target_tokenizer(folder) : load_tokenizer(folder);
  }
  const auto run = std::make_shared<Run>(Run::open(arguments.run));
  return {run, arguments.target ? &run->tokenizer() : &run->source_tokenizer()};
}

/// Writes the tokens of the files, as data of kind "text" has them, to a token file.
void write_tokens(const Tokenizer& tokenizer, const TokenizeArguments& arguments) {
  if (!arguments.out.ends_with(".npy")) throw WrongInput("--out must be an .npy file, not '" + arguments.out + "'");
  require_readable(arguments.files);
  LongText text;
  for (const std::string& file : arguments.files) text.add(file, {arguments.max_line});
  TokenWriter writer(arguments.out, tokenizer.size(), 0);
  encode_text(tokenizer, text, writer);
  if (!writer.is_in_file()) throw WrongInput("there is no text in " + text.names());
  const auto tokens = writer.finish();
  std::cout << arguments.out << ": " << grouped(tokens->size()) << " tokens\n";
}

void tokenize(const TokenizeArguments& arguments) {
  const auto found = as_wrong_input([&] { return tokenizer_of(arguments); });
  const Tokenizer& tokenizer = *found;
  if (!arguments.files.empty()) return write_tokens(tokenizer, arguments);
  catch_interrupt();
  InputLines input(arguments.max_line);
  std::int64_t number = 0;
  for (std::vector<std::string> lines; !(lines = input.next(1000)).empty();) {
    for (const std::string& line : lines) {
      ++number;
      try {
        std::cout << line_of(tokenizer, line, arguments) << '\n';
      } catch (const Error& error) {
        throw WrongInput("line " + std::to_string(number) + ": " + error.what());
      }
    }
    flush_results();
  }
}

}  // namespace

void add_tokenize(CLI::App& program) {
  const auto [command, arguments] = add_command<TokenizeArguments>(
      program, "tokenize", "Convert lines of the standard input to token numbers, or back, or files to a token file",
      tokenize);
  add_option(command, "RUN", arguments.run, "A run directory, or a Hugging Face folder with tokenizer files", required);
  auto* files = add_option(command, "FILE", arguments.files, "Texts, whose tokens --out gets");
  auto* out = add_option(command, "--out", arguments.out, "An .npy file for the tokens of the files");
  out->needs(files);
  files->needs(out);
  auto* pieces =
      command.add_flag("--pieces", arguments.pieces, "Write the tokens as text instead of numbers")->excludes(out);
  command.add_flag("--detokenize", arguments.detokenize, "Read numbers and write text")
      ->excludes(pieces)
      ->excludes(out);
  command.add_flag("--target", arguments.target, "Use the target's tokenizer (default: the source's, if they differ)");
  add_max_line(command, arguments.max_line);
}

}  // namespace xtape::cli
