#include <algorithm>
#include <optional>

#include "next_token.hpp"
#include "xtape/decode.hpp"

namespace xtape {

namespace {
/// Lengths are powers of two up to `most`, so that few players are planned.
std::int64_t bucket(std::int64_t length, std::int64_t most) {
  std::int64_t size = 16;
  while (size < length) size *= 2;
  return std::min(size, most);
}

void put_as_doubles(const ArrayView& from, std::int64_t row, std::vector<double>& out) {
  const std::int64_t classes = from.shape().back();
  out.resize(static_cast<std::size_t>(classes));
  if (from.dtype() == Dtype::float64)
    std::copy_n(from.as<double>() + row * classes, classes, out.begin());
  else
    std::copy_n(from.as<float>() + row * classes, classes, out.begin());
}

/// Reads tokens, and says what comes next.
class Reader {
 public:
  virtual ~Reader() = default;
  /// The logits of what follows tokens[from …], where `from` never falls.
  virtual void next(const Tokens& tokens, std::size_t from, std::vector<double>& logits) = 0;
};

/// Reads every token once, until `from` changes.
class CachedReader : public Reader {
 public:
  CachedReader(Predictor& predictor, std::int64_t context) : predictor_(predictor), context_(context) {}

  void next(const Tokens& tokens, std::size_t from, std::vector<double>& logits) override {
    if (!begun_ || from != from_) {
      predictor_.begin(1);
      predictor_.reserve(static_cast<std::int64_t>(tokens.size() - from));
      begun_ = true;
      from_ = read_ = from;
    }
    while (read_ < tokens.size()) read_piece(tokens, logits);
  }

 private:
  void read_piece(const Tokens& tokens, std::vector<double>& logits) {
    constexpr std::int64_t longest_piece = 128;  // every place costs the logits of all classes
    const std::int64_t count = std::min(static_cast<std::int64_t>(tokens.size() - read_), longest_piece);
    const std::int64_t room = context_ - predictor_.past()[0];
    const Shape shape{1, count == 1 ? 1 : bucket(count, std::min(room, longest_piece))};
    if (!piece_ || piece_.shape() != shape) piece_ = Array(Dtype::int64, shape);
    std::int64_t* places = piece_.as<std::int64_t>();
    const auto first = tokens.begin() + static_cast<std::ptrdiff_t>(read_);
    std::copy(first, first + count, places);
    std::fill(places + count, places + shape[1], std::int64_t{0});
    counts_.assign(1, count);
    const ArrayView& result = predictor_.step(piece_, counts_);
    read_ += static_cast<std::size_t>(count);
    if (read_ < tokens.size()) return;
    if (result.shape().size() != 3 || !is_floating(result.dtype()))
      throw DefinitionError("the function must give floats [rows, tokens, classes], not " +
                            to_string(ValueType{result.dtype(), result.shape()}));
    put_as_doubles(result, count - 1, logits);
  }

  Predictor& predictor_;
  std::int64_t context_;
  bool begun_ = false;
  std::size_t from_ = 0, read_ = 0;
  Array piece_;
  std::vector<std::int64_t> counts_;
};

/// Reads all of them every time.
class ReplayingReader : public Reader {
 public:
  ReplayingReader(Model& model, std::int64_t context) : model_(model), context_(context) {}

  void next(const Tokens& tokens, std::size_t from, std::vector<double>& logits) override {
    const auto length = static_cast<std::int64_t>(tokens.size() - from);
    if (!next_ || bucket(length, context_) != columns_) {
      columns_ = bucket(length, context_);
      next_.emplace(model_, 1, columns_, Mode::predict);
    }
    // What stands behind the last token does not reach its logits: the model looks back only.
    std::copy(tokens.end() - length, tokens.end(), next_->row(0));
    std::fill(next_->row(0) + length, next_->row(0) + columns_, 0);
    next_->play();
    next_->logits(0, length - 1, logits);
  }

 private:
  Model& model_;
  std::int64_t context_;
  std::optional<decode::NextToken> next_;
  std::int64_t columns_ = 0;
};

void check(const Tokens& prompt, const GenerateOptions& options) {
  if (prompt.empty()) throw Error("a prompt of no tokens cannot be continued");
  if (options.context < 1) throw Error("the context must be at least one token");
}

Tokens continued(Reader& reader, const Tokens& prompt, const GenerateOptions& options) {
  Tokens all = prompt;
  const auto context = static_cast<std::size_t>(options.context);
  std::size_t from = all.size() - std::min(all.size(), context);  // what came before is forgotten
  std::vector<double> logits;
  for (std::int64_t made = 0; made < options.tokens; ++made) {
    // Not one at a time: everything that stays has to be read again, from other positions.
    if (all.size() - from > context) from = all.size() - std::max<std::size_t>(1, context / 2);
    reader.next(all, from, logits);
    all.push_back(sample(logits, options.sampling, static_cast<std::uint64_t>(made)));
    if ((options.each && options.each(all.back())) || all.back() == options.end_token) break;
  }
  return Tokens(all.begin() + static_cast<std::ptrdiff_t>(prompt.size()), all.end());
}
}  // namespace

Tokens generate(Model& model, const Tokens& prompt, const GenerateOptions& options) {
  check(prompt, options);
  if (!options.cached) {
    ReplayingReader reader(model, options.context);
    return continued(reader, prompt, options);
  }
  PredictorOptions predictor_options;
  predictor_options.limit = options.context;
  Predictor predictor(model, "logits", predictor_options);
  return generate(predictor, prompt, options);
}

Tokens generate(Predictor& predictor, const Tokens& prompt, const GenerateOptions& options) {
  check(prompt, options);
  if (!options.cached) throw Error("a predictor always caches: generate without caches with the model");
  CachedReader reader(predictor, options.context);
  return continued(reader, prompt, options);
}

}  // namespace xtape
