/// xtape translate: translates lines of the standard input with the model of a run or of a folder.
#include <iostream>
#include <memory>
#include <optional>
#include <sstream>
#include <unordered_set>

#include "base/messages/wording.hpp"
#include "cli/commands.hpp"
#include "cli/lines.hpp"
#include "cli/opened_model.hpp"
#include "cli/run_options.hpp"
#include "ranks/rank_group.hpp"
#include "xtape/train.hpp"

namespace xtape::cli {
namespace {

constexpr std::size_t lines_at_once = 1024;  // number of lines that are batched by length, which reduces padding

struct TranslateArguments {
  std::string run;
  std::string checkpoint = "last";
  std::optional<std::int64_t> beam;
  std::optional<double> length_penalty;
  std::optional<std::string> penalty_kind;
  std::optional<std::int64_t> max_length;
  std::int64_t n_best = 1;
  std::int64_t batch = 64;
  std::int64_t threads = 0;
  std::int64_t max_line = 0;
  InferenceArguments inference;
  RankArguments ranks;
};

SearchOptions options_of(const TranslateArguments& arguments, SearchOptions options) {
  if (arguments.beam) options.beam_size = *arguments.beam;
  if (arguments.length_penalty) {
    options.alpha = *arguments.length_penalty;
    if (options.length_penalty == LengthPenalty::none) options.length_penalty = LengthPenalty::wu;
  }
  if (arguments.penalty_kind) options.length_penalty = length_penalty_named(*arguments.penalty_kind);
  if (arguments.max_length) options.max_length = *arguments.max_length;
  options.n_best = arguments.n_best;
  options.batch_size = arguments.batch;
  if (options.n_best > options.beam_size)
    throw WrongInput("--n-best " + std::to_string(options.n_best) + " needs a --beam of at least that, not " +
                     std::to_string(options.beam_size));
  return options;
}

/// Warns about the words of a source that the model does not know, about each word once.
class UnknownWords {
 public:
  void warn(std::int64_t number, const std::string& line, const Tokenizer& tokenizer) {
    if (tokenizer.unknown() < 0 || !is_unknown(line, tokenizer)) return;
    std::vector<std::string> found;
    std::istringstream words(line);
    for (std::string word; words >> word;)
      if (is_unknown(word, tokenizer) && warned_.insert(word).second) found.push_back("'" + word + "'");
    if (!found.empty())
      std::cerr << "line " << number << ": the model does not know " << joined_first(found, 10) << '\n';
  }

 private:
  static bool is_unknown(const std::string& text, const Tokenizer& tokenizer) {
    return contains(tokenizer.encode(text), tokenizer.unknown());
  }
  std::unordered_set<std::string> warned_;
};

/// Prints one line per translation. With --n-best above 1, prints `line ||| text ||| score` for each candidate.
void write(std::int64_t number, const Translation& translation, const TranslateArguments& arguments) {
  if (!translation.problem.empty()) std::cerr << "line " << number << ": " << translation.problem << '\n';
  if (arguments.n_best == 1) {
    std::cout << (translation.candidates.empty() ? "" : translation.candidates[0].text) << '\n';
    return;
  }
  for (const Translation::Candidate& each : translation.candidates)
    std::cout << number << " ||| " << each.text << " ||| " << each.score << '\n';
  if (translation.candidates.empty()) std::cout << number << " |||  ||| 0\n";
}

/// Returns the lines of rank 0 on all ranks.
std::vector<std::string> lines_of_first_rank(const std::vector<std::string>& lines, ranks::RankGroup& group) {
  ranks::PackedBytes own;
  for (const std::string& line : lines) own.add_text(line);
  ranks::PackedBytes first(group.all_gather(own.bytes()).front());
  std::vector<std::string> shared;
  while (!first.at_end()) shared.push_back(first.take_text());
  return shared;
}

void translate(const TranslateArguments& arguments) {
  const std::shared_ptr<Communicator> communicator = ranks(arguments.ranks);
  ranks::RankGroup group(communicator);
  OpenedModel model(Use::pairs, arguments.run, arguments.checkpoint, arguments.inference, arguments.threads,
                    communicator);
  const SearchOptions options = options_of(arguments, model.search_options());
  catch_interrupt();
  InputLines input(arguments.max_line);
  std::int64_t number = 0;
  UnknownWords unknown;
  for (std::vector<std::string> lines;;) {
    lines = is_first_rank() ? input.next(lines_at_once) : std::vector<std::string>();
    if (communicator) lines = lines_of_first_rank(lines, group);
    if (lines.empty()) break;
    const std::vector<Translation> translations = model.translate(lines, options);
    for (std::size_t i = 0; i < translations.size() && is_first_rank(); ++i) {
      ++number;
      if (translations[i].problem.empty()) unknown.warn(number, lines[i], model.source_tokenizer());
      write(number, translations[i], arguments);
    }
    std::cout << std::flush;
    if (group.any(interrupted())) throw Interrupted();
  }
}

}  // namespace

void add_translate(CLI::App& program) {
  const auto [command, arguments] =
      add_command<TranslateArguments>(program, "translate", "Translate the lines of the standard input", translate);
  add_option(command, "RUN", arguments.run, "A run directory, or a Hugging Face model folder", required);
  add_checkpoint(command, arguments.checkpoint);
  add_option(command, "--beam", arguments.beam, "The beam size; 1: greedy (default: the recipe's)", positive);
  add_option(command, "--length-penalty", arguments.length_penalty,
             "The exponent alpha of the length penalty; 0: none (default: the recipe's)");
  add_option(command, "--penalty", arguments.penalty_kind,
             "The length penalty: wu, ((5+L)/6)^alpha; power, L^alpha; none (default: the recipe's)")
      ->check(CLI::IsMember({"wu", "power", "none"}));
  add_option(command, "--max-length", arguments.max_length,
             "The maximum number of tokens of a translation (default: the recipe's)", positive);
  add_option(command, "--n-best", arguments.n_best, "Write this many candidates per line, as line ||| text ||| score",
             positive);
  add_option(command, "--batch", arguments.batch, "The number of sentences that are translated together",
             shown | positive);
  add_threads(command, arguments.threads);
  add_max_line(command, arguments.max_line);
  add_inference(command, arguments.inference);
  add_caches(command, arguments.inference);
  add_ranks(command, arguments.ranks);
}

}  // namespace xtape::cli
