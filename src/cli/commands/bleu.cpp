/// xtape bleu: computes the BLEU score of a translation.
#include "xtape/bleu.hpp"

#include "cli/commands.hpp"
#include "cli/lines.hpp"
#include "data/tokenizers/utf8.hpp"
#include "xtape/text.hpp"

namespace xtape::cli {
namespace {

struct BleuArguments {
  std::string hypotheses;
  std::string references;
  BleuOptions options;
  ReadOptions reading;
};

/// Prints one line in the format of sacreBLEU.
void print(const BleuArguments& arguments) {
  const Bleu bleu = as_wrong_input([&] {
    return corpus_bleu(read_utf8_lines(arguments.hypotheses, arguments.reading),
                       read_utf8_lines(arguments.references, arguments.reading), arguments.options);
  });
  const double ratio = bleu.reference_length == 0
                           ? 0
                           : static_cast<double>(bleu.hypothesis_length) / static_cast<double>(bleu.reference_length);
  const std::string numbers =
      formatted("%.2f %.1f/%.1f/%.1f/%.1f (BP = %.3f ratio = %.3f hyp_len = %lld ref_len = %lld)", bleu.score,
                bleu.precisions[0], bleu.precisions[1], bleu.precisions[2], bleu.precisions[3], bleu.brevity_penalty,
                ratio, static_cast<long long>(bleu.hypothesis_length), static_cast<long long>(bleu.reference_length));
  std::cout << "BLEU|" << bleu.signature << " = " << numbers << '\n';
}

}  // namespace

void add_bleu(CLI::App& program) {
  const auto [command, arguments] =
      add_command<BleuArguments>(program, "bleu", "Score a translation against its reference by BLEU", print);
  add_option(command, "HYP", arguments.hypotheses, "The translation: a text file, one sentence per line, plain or .gz",
             required);
  add_option(command, "REF", arguments.references, "The reference translation, in the same format", required);
  add_option(command, "--tokenize", arguments.options.tokenize, "The tokenization: 13a, or none (split at white space)",
             shown);
  command.add_flag("--lowercase", arguments.options.lowercase, "Ignore case");
  add_max_line(command, arguments.reading.max_line);
}

}  // namespace xtape::cli
