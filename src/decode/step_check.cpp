#include <algorithm>
#include <cmath>

#include "base/arrays/visit.hpp"
#include "base/messages/wording.hpp"
#include "decode/step_trials.hpp"

namespace xtape::decode {

namespace {
/// Returns the input to divide into pieces. Returns null and sets `unfit` to the reason if the function has no suitable
/// input.
const FunctionInput* stepped_input(const Signature& signature, std::string& unfit) {
  const auto tokens =
      std::ranges::find_if(signature.inputs, [](const FunctionInput& input) { return input.name == "tokens"; });
  const auto bound = [&](const std::string& size) { return contains(signature.sizes, size); };
  if (tokens == signature.inputs.end()) {
    unfit = "takes no tokens";
  } else if (tokens->dtype != Dtype::int64 || tokens->dims.size() != 2 || tokens->dims[0] == tokens->dims[1] ||
             !bound(tokens->dims[0]) || !bound(tokens->dims[1])) {
    unfit = "takes tokens that are not int [rows, tokens]";
  }
  for (const FunctionInput& input : signature.inputs)
    if (unfit.empty() && input.name != "tokens" && contains(input.dims, tokens->dims[1]))
      unfit = "takes " + input.name + " for each token";
  return unfit.empty() ? &*tokens : nullptr;
}

/// Returns a number of sentences that differs from all integer hyper-parameters, also after multiplication by `repeat`.
/// The axis of the rows then cannot be mistaken for another axis. Returns 17 if no small prime is suitable.
std::int64_t unlike_sizes(const Model& model, std::int64_t repeat) {
  const auto known = [&](std::int64_t count) {
    return std::ranges::any_of(model.hyper().items(), [&](const auto& entry) {
      const auto* size = std::get_if<std::int64_t>(&entry.value);
      return size != nullptr && (*size == count || *size == count * repeat);
    });
  };
  for (const std::int64_t count : {3, 5, 7, 11, 13})
    if (!known(count)) return count;
  return 17;
}

StepSizes sizes_for(const Model& model, const Signature& signature, const FunctionInput& input, const NamedSizes& given,
                    std::int64_t tokens) {
  const auto given_or = [&](const std::string& name, std::int64_t otherwise) {
    const std::int64_t* size = given.find(name);
    return size != nullptr ? *size : otherwise;
  };
  StepSizes chosen;
  chosen.rows_name = input.dims[0];
  chosen.tokens_name = input.dims[1];
  chosen.repeat = signature.inputs.size() > 1 ? 2 : 1;
  chosen.sentences = given_or(chosen.rows_name, unlike_sizes(model, chosen.repeat));
  chosen.tokens = given_or(chosen.tokens_name, tokens);
  std::int64_t other = tokens;
  for (const std::string& name : signature.sizes) {
    std::int64_t size = name == chosen.rows_name ? chosen.rows() : chosen.tokens;
    if (name != chosen.rows_name && name != chosen.tokens_name)
      size = given_or(name, other = std::max<std::int64_t>(1, other - 2));
    if (size < 1) throw Error("to be played, '" + name + "' must be at least 1");
    chosen.sizes.add(name, size);
  }
  return chosen;
}

/// Returns the lengths of pieces: first a long piece, then pieces of one and of two tokens.
std::vector<std::int64_t> pieces_of(std::int64_t tokens) {
  std::vector<std::int64_t> pieces = {(tokens + 1) / 2};
  for (std::int64_t left = tokens - pieces[0], next = 1; left > 0; next = 3 - next) {
    pieces.push_back(std::min(left, next));
    left -= pieces.back();
  }
  return pieces;
}
}  // namespace

StepCheck check_steps(Model& model, const std::string& function, const NamedSizes& given) {
  StepCheck check;
  const Signature& signature = model.signature(function);
  const FunctionInput* input = stepped_input(signature, check.unfit);
  if (input == nullptr) return check;
  std::exception_ptr first;
  for (const std::int64_t tokens : {9, 6, 4, 2, 1}) {
    const StepSizes sizes = sizes_for(model, signature, *input, given, tokens);
    StepTrials trials(model, function, sizes);
    try {
      check.unfit = trials.begin();
    } catch (const Error&) {  // the definition may allow only fewer tokens
      if (first == nullptr) first = std::current_exception();
      continue;
    }
    if (!check.unfit.empty()) return check;
    check.rows = sizes.rows();
    check.tokens = sizes.tokens;
    check.pieces = pieces_of(sizes.tokens);
    trials.check_ahead();
    check.difference = trials.check_pieces(check.pieces);
    return check;
  }
  std::rethrow_exception(first);
}

void draw_weights(const Model& model) {
  Draws draws(0);
  for (const Store::Entry& entry : model.weights()) {
    Array array(entry.value);
    const Shape& shape = array.shape();
    const std::size_t rank = shape.size();
    const double middle = rank < 2 ? 1 : 0;
    const double reach =  // half the length of the range; for matrices, the variance is 1 / (the smaller size)
        rank < 2 ? 0.5 : std::sqrt(3 / static_cast<double>(std::min(shape[rank - 1], shape[rank - 2])));
    for (std::int64_t i = 0; i < array.count(); ++i) {
      const double number = middle + draws.uniform(-reach, reach);
      visit_floats(array, [&]<class T>(T* elements) { elements[i] = static_cast<T>(number); });
    }
  }
}

}  // namespace xtape::decode
