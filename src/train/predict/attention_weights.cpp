#include <algorithm>

#include "base/messages/wording.hpp"
#include "train/predict/predict.hpp"

namespace xtape::train {

namespace {
const char* const function = "attention";

/// The tokens fed to one input of the function, and their labels in the results.
struct Read {
  std::string input;
  std::string text;  // "source", "target" or "text"
  Tokens tokens;
  std::vector<std::string> labels;
  std::vector<std::string> produced;  // for a target only: the token that the model produces after each token
};

[[noreturn]] void refuse(const std::string& name, const std::string& what) {
  throw Error("the result '" + name + "' of the function 'attention' " + what);
}

/// The texts to which the queries and the keys of one result belong, as indices into `reads`.
struct Sides {
  std::size_t queries, keys;
};
/// Returns the sides of each result of the function. The actual texts may have equal lengths. To tell the texts apart,
/// sides_of() records the function with a different length for each text. It does not play the recording.
std::vector<Sides> sides_of(const Model& model, const std::vector<Read>& reads) {
  std::vector<std::int64_t> lengths;
  for (std::size_t i = 0; i < reads.size(); ++i) lengths.push_back(static_cast<std::int64_t>(i) + 2);
  Tape tape(Mode::eval);
  NamedVars inputs;
  for (std::size_t i = 0; i < reads.size(); ++i)
    inputs.add(reads[i].input, tape.input(reads[i].input, {1, lengths[i]}, Dtype::int64));
  std::vector<Sides> sides;
  for (const auto& [name, var] : model.record(tape, function, inputs)) {
    const Shape& shape = var.shape();
    if (shape.size() != 5 || shape[1] != 1 || var.dtype() != Dtype::float32)
      refuse(name,
             "is " + to_string(var.type()) + " for one row; it must be float32 (layers, 1, heads, queries, keys)");
    const auto side = [&, &result = name](std::size_t axis) {
      const auto found = std::ranges::find(lengths, shape[axis]);
      if (found == lengths.end()) refuse(result, "has queries or keys that do not match the tokens of any input");
      return static_cast<std::size_t>(found - lengths.begin());
    };
    sides.push_back({side(3), side(4)});
  }
  return sides;
}

std::vector<Attention> attention(Model& model, const std::vector<Read>& reads) {
  const std::vector<Sides> sides = sides_of(model, reads);
  std::vector<Array> tokens;
  NamedArrays arrays;
  for (const Read& read : reads) arrays.add(read.input, tokens.emplace_back(token_array({read.tokens})));
  const Store results = model.play(function, arrays);
  std::vector<Attention> found;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const auto& [name, weights] = results[i];
    Shape shape = weights.shape();
    shape.erase(1);  // the axis of rows; the batch has one row
    const Read& queries = reads[sides[i].queries];
    const Read& keys = reads[sides[i].keys];
    const bool produces = sides[i].queries != sides[i].keys && !queries.produced.empty();
    found.push_back({name,
                     Array(weights).first(shape),
                     {queries.text, produces ? queries.produced : queries.labels},
                     {keys.text, keys.labels}});
  }
  return found;
}
}  // namespace

void check_attention(const Model& model) {
  const std::vector<std::string> functions = model.functions();
  if (!contains(functions, function))
    throw Error("the definition '" + model.name() + "' has no function 'attention' to compute attention weights");
}

std::vector<Attention> attention(Model& model, const Tokenizers& tokenizers, const std::string& source,
                                 const Tokens& produced) {
  const Tokens read = source_of(*tokenizers.source, source);
  if (read == source_of(*tokenizers.source, "") || produced.empty())
    throw Error("the source is empty: there is nothing to attend to");
  Tokens given = {tokenizers.target->start()};
  given.insert(given.end(), produced.begin(), produced.end() - 1);
  return attention(
      model, {{"source", "source", read, tokenizers.source->pieces(read), {}},
              {"tokens", "target", given, tokenizers.target->pieces(given), tokenizers.target->pieces(produced)}});
}

std::vector<Attention> attention(Model& model, const Tokenizer& tokenizer, const std::string& text) {
  const Tokens tokens = tokenizer.encode(text);
  if (tokens.empty()) throw Error("the text is empty: there is nothing to attend to");
  return attention(model, {{"tokens", "text", tokens, tokenizer.pieces(tokens), {}}});
}

Tokens produced(const Tokenizer& tokenizer, const std::string& target) {
  Tokens tokens = framed(tokenizer, target);
  tokens.erase(tokens.begin());
  return tokens;
}

}  // namespace xtape::train
