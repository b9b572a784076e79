// Continues many prompts at a time.
#include <algorithm>
#include <iterator>

#include "base/messages/wording.hpp"
#include "decode/sampler.hpp"
#include "xtape/decode.hpp"

namespace xtape {

namespace {
using EachToken = std::function<bool(std::int64_t, std::int32_t)>;

/// Rounds a length up to a power of two, at least 8 and at most `most`, so that few players are planned. The minimum
/// costs little, because products of 8 rows still use the method for few rows.
std::int64_t bucket(std::int64_t length, std::int64_t most) {
  std::int64_t size = 8;
  while (size < length) size *= 2;
  return std::min(size, most);
}

/// A prompt and its continuation.
struct Row {
  std::int64_t number = 0;   // the index of the row's result
  std::uint64_t stream = 0;  // the stream of the row's random numbers
  Tokens all;                // the prompt and the generated tokens
  std::size_t prompt = 0;    // number of tokens of the prompt
  std::size_t from = 0;      // the index of the first token that the model sees
  bool done = false;

  std::int64_t length() const { return static_cast<std::int64_t>(all.size() - from); }  // number of visible tokens
};

/// Draws tokens and decides when a row is finished.
class Chooser {
 public:
  Chooser(const GenerateOptions& options, const EachToken& each)
      : options_(options), each_(each), sampler_(options.sampling) {}

  void begin(Row& row) const {
    row.done = options_.tokens <= 0;
    forget(row);
  }

  /// Appends a token drawn from the logits of the next token.
  void go_on(Row& row, const ArrayView& logits) {
    const std::size_t made = row.all.size() - row.prompt;
    row.all.push_back(sampler_.draw(logits, made, row.stream));
    const bool enough = static_cast<std::int64_t>(made) + 1 >= options_.tokens;
    const bool asked = each_ && each_(row.number, row.all.back());
    row.done = enough || asked || contains(options_.end_tokens, row.all.back());
  }

  /// If the row is longer than the context, drops its oldest tokens and returns true. A prompt keeps as many tokens as
  /// fit. Later, half of the context stays. Dropping one token at a time would be slow, because the remaining tokens
  /// get new positions and must be read again.
  bool forget(Row& row) const {
    if (row.length() <= options_.context) return false;
    const bool begins = row.all.size() == row.prompt;
    row.from = row.all.size() -
               static_cast<std::size_t>(begins ? options_.context : std::max<std::int64_t>(1, options_.context / 2));
    return true;
  }

 private:
  const GenerateOptions& options_;
  const EachToken& each_;
  decode::Sampler sampler_;
};

/// Reads each token once. After tokens were dropped, reads all visible tokens again.
class Continuation {
 public:
  Continuation(Predictor& predictor, std::int64_t context, Chooser& chooser, std::vector<Row>& rows)
      : predictor_(predictor), context_(context), chooser_(chooser), rows_(rows) {}

  void run() {
    bool forgot = true;
    for (;;) {
      if (std::ranges::all_of(rows_, [](const Row& row) { return row.done; })) return;
      for (Row& row : rows_) forgot = (!row.done && chooser_.forget(row)) || forgot;
      if (forgot)
        read_all();
      else
        read_last();
      forgot = false;
    }
  }

 private:
  static constexpr std::int64_t longest_piece =
      128;  // tokens of all rows together, because the logits of all classes are computed at every position
  static constexpr std::int64_t shortest_piece = 16;

  std::int64_t count() const { return std::ssize(live_); }
  Row& row(std::int64_t place) { return rows_[live_[place]]; }

  void read_all() {
    live_.clear();
    std::int64_t longest = 0;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      if (rows_[i].done) continue;
      live_.push_back(i);
      longest = std::max(longest, rows_[i].length());
    }
    predictor_.begin(count());
    predictor_.reserve(longest);
    const std::int64_t most = std::max(shortest_piece, longest_piece / count());
    lengths_.clear();
    for (std::int64_t i = 0; i < count(); ++i) lengths_.push_back(row(i).length());
    for (std::int64_t first = 0; first < longest; first += most) {
      const std::int64_t columns = std::min(longest - first, most);
      read(first, columns == 1 ? 1 : bucket(columns, std::min(context_ - first, most)), columns);
    }
  }

  /// Reads up to `columns` tokens of every row, starting at its token `first`, in a piece of `width` positions.
  /// Computes logits only if a row ends.
  void read(std::int64_t first, std::int64_t width, std::int64_t columns) {
    make_piece(width);
    bool ends = false;
    for (std::int64_t i = 0; i < count(); ++i) {
      const Row& from = row(i);
      const std::int64_t here = std::clamp<std::int64_t>(lengths_[i] - first, 0, columns);
      std::int64_t* to = piece_.as<std::int64_t>() + i * width;
      std::fill(to, to + width, std::int64_t{0});
      if (here > 0) std::copy_n(from.all.begin() + static_cast<std::ptrdiff_t>(from.from) + first, here, to);
      counts_[i] = here;
      ends = ends || ends_in_piece(i, first);
    }
    if (!ends) return predictor_.read(piece_, counts_);
    const ArrayView& logits = step();
    for (std::int64_t i = 0; i < count(); ++i)
      if (ends_in_piece(i, first)) choose(i, logits, counts_[i] - 1);
  }

  /// Whether the piece that begins at token `first` has the last token of the row.
  bool ends_in_piece(std::int64_t place, std::int64_t first) const {
    return counts_[place] > 0 && first + counts_[place] == lengths_[place];
  }

  /// Reads the last token of every row.
  void read_last() {
    leave_done_rows();
    make_piece(1);
    for (std::int64_t i = 0; i < count(); ++i) {
      piece_.as<std::int64_t>()[i] = row(i).all.back();
      counts_[i] = row(i).done ? 0 : 1;
    }
    const ArrayView& logits = step();
    for (std::int64_t i = 0; i < count(); ++i)
      if (!row(i).done) choose(i, logits, 0);
  }

  /// Drops finished rows as soon as at most half of the rows continue, so that players are planned for few different
  /// numbers of rows.
  void leave_done_rows() {
    selected_.clear();
    for (std::int64_t i = 0; i < count(); ++i)
      if (!row(i).done) selected_.push_back(static_cast<std::int32_t>(i));
    if (2 * selected_.size() > live_.size()) return;
    predictor_.select(selected_);
    for (std::size_t i = 0; i < selected_.size(); ++i) live_[i] = live_[selected_[i]];
    live_.resize(selected_.size());
  }

  void make_piece(std::int64_t width) {
    const Shape shape{count(), width};
    if (!piece_ || piece_.shape() != shape) piece_ = Array(Dtype::int64, shape);
    counts_.assign(live_.size(), 0);
  }

  const ArrayView& step() { return decode::checked_logits(predictor_.step(piece_, counts_)); }

  void choose(std::int64_t place, const ArrayView& logits, std::int64_t column) {
    const std::int64_t classes = logits.shape()[2];
    const std::int64_t offset = logits.layout().offset + (place * logits.shape()[1] + column) * classes;
    chooser_.go_on(row(place), {logits.data(), logits.dtype(), Layout{{classes}, {1}, offset}});
  }

  Predictor& predictor_;
  std::int64_t context_;
  Chooser& chooser_;
  std::vector<Row>& rows_;
  std::vector<std::size_t> live_;  // per row of the predictor: its index in rows_
  std::vector<std::int64_t> lengths_;
  Array piece_;
  std::vector<std::int64_t> counts_;
  std::vector<std::int32_t> selected_;
};

std::vector<Row> rows_of(const std::vector<Tokens>& prompts, const GenerateOptions& options, const Chooser& chooser) {
  if (options.context < 1) throw Error("the context must be at least one token");
  if (options.samples < 1) throw Error("at least one continuation of each prompt must be requested");
  if (options.batch_size < 1) throw Error("a batch has at least one row");
  constexpr std::int64_t most_rows = INT32_MAX;
  if (!prompts.empty() && options.samples > most_rows / std::ssize(prompts))
    throw Error("at most " + std::to_string(most_rows) + " continuations can be requested, not " +
                std::to_string(options.samples) + " of each prompt");
  std::vector<Row> rows;
  for (const Tokens& prompt : prompts) {
    if (prompt.empty()) throw Error("a prompt without tokens cannot be continued");
    for (std::int64_t sample = 0; sample < options.samples; ++sample) {
      rows.push_back({std::ssize(rows), static_cast<std::uint64_t>(sample), prompt, prompt.size()});
      constexpr std::int64_t most_reserved = 1 << 16;  // a limit, because a huge `tokens` may stand for no limit
      rows.back().all.reserve(prompt.size() +
                              static_cast<std::size_t>(std::clamp<std::int64_t>(options.tokens, 0, most_reserved)));
      chooser.begin(rows.back());
    }
  }
  return rows;
}

/// Returns the callback of `options` for a single row.
EachToken only_token(const GenerateOptions& options) {
  if (!options.each) return {};
  return [&each = options.each](std::int64_t, std::int32_t token) { return each(token); };
}
}  // namespace

std::vector<Tokens> generate_batch(Predictor& predictor, const std::vector<Tokens>& prompts,
                                   const GenerateOptions& options, const EachToken& each) {
  Chooser chooser(options, each);
  std::vector<Row> rows = rows_of(prompts, options, chooser);
  std::vector<Tokens> made;
  for (std::size_t first = 0; first < rows.size(); first += static_cast<std::size_t>(options.batch_size)) {
    const std::size_t last = std::min(rows.size(), first + static_cast<std::size_t>(options.batch_size));
    std::vector<Row> batch(std::make_move_iterator(rows.begin() + static_cast<std::ptrdiff_t>(first)),
                           std::make_move_iterator(rows.begin() + static_cast<std::ptrdiff_t>(last)));
    Continuation(predictor, options.context, chooser, batch).run();
    for (const Row& row : batch)
      made.emplace_back(row.all.begin() + static_cast<std::ptrdiff_t>(row.prompt), row.all.end());
  }
  return made;
}

std::vector<Tokens> generate_batch(Model& model, const std::vector<Tokens>& prompts, const GenerateOptions& options,
                                   const EachToken& each) {
  PredictorOptions predictor_options;
  predictor_options.limit = options.context;
  Predictor predictor(model, "logits", predictor_options);
  return generate_batch(predictor, prompts, options, each);
}

namespace {
/// Continues one prompt once.
template <class Source>
Tokens generate_one(Source& source, const Tokens& prompt, GenerateOptions options) {
  options.samples = 1;
  return std::move(generate_batch(source, {prompt}, options, only_token(options)).front());
}
}  // namespace

Tokens generate(Model& model, const Tokens& prompt, const GenerateOptions& options) {
  return generate_one(model, prompt, options);
}
Tokens generate(Predictor& predictor, const Tokens& prompt, const GenerateOptions& options) {
  return generate_one(predictor, prompt, options);
}

}  // namespace xtape
