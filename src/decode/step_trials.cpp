#include "decode/step_trials.hpp"

#include <algorithm>
#include <numeric>
#include <sstream>

#include "base/arrays/visit.hpp"
#include "base/messages/wording.hpp"

namespace xtape::decode {

namespace {
constexpr const char* stepped = "tokens";

Array token_rows(const std::vector<std::vector<std::int64_t>>& rows) {
  Array array(Dtype::int64, {std::ssize(rows), static_cast<std::int64_t>(rows.at(0).size())});
  std::int64_t* to = array.as<std::int64_t>();
  for (const auto& row : rows) to = std::copy(row.begin(), row.end(), to);
  return array;
}

/// Returns an array whose row i is row rows[i] of `array`. `axis` is the axis of the rows.
Array with_rows(const Array& array, std::size_t axis, const std::vector<std::int32_t>& rows) {
  Shape shape = array.shape();
  std::int64_t outer = 1;
  auto bytes = static_cast<std::int64_t>(size_of(array.dtype()));
  for (std::size_t i = 0; i < axis; ++i) outer *= shape[i];
  for (std::size_t i = axis + 1; i < shape.size(); ++i) bytes *= shape[i];
  const std::int64_t before = shape[axis], after = std::ssize(rows);
  shape[axis] = after;
  Array made(array.dtype(), shape);
  const auto* from = static_cast<const std::byte*>(array.data());
  auto* to = static_cast<std::byte*>(made.data());
  for (std::int64_t i = 0; i < outer; ++i)
    for (std::int64_t k = 0; k < after; ++k)
      std::copy_n(from + (i * before + rows[k]) * bytes, bytes, to + (i * after + k) * bytes);
  return made;
}

template <class T>
std::vector<T> picked(const std::vector<T>& all, const std::vector<std::int32_t>& rows) {
  std::vector<T> some;
  for (const std::int32_t row : rows) some.push_back(all[row]);
  return some;
}

std::string text_of(double number) {
  std::ostringstream out;
  out.precision(6);
  out << number;
  return out.str();
}

std::string first_call(const std::string& found) {
  return found.empty() ? "" : "\n  The first call whose values differ: " + found;
}
}  // namespace

StepTrials::StepTrials(Model& model, const std::string& function, const StepSizes& sizes)
    : model_(model),
      function_(function),
      sizes_(sizes),
      tolerance_(model.dtype() == Dtype::float64 ? 1e-9 : 1e-4),
      said_(static_cast<std::size_t>(sizes.rows()),
            std::vector<std::int64_t>(static_cast<std::size_t>(sizes.tokens), 0)),
      past_(said_.size(), 0) {
  Tape tape(Mode::predict);
  for (const auto& [name, var] : model.inputs(tape, function, sizes.sizes))
    if (name != stepped) fixed_.add(name, drawn(var.type()));
  for (const FunctionInput& input : model.signature(function).inputs) {
    const auto rows = std::ranges::find(input.dims, sizes.rows_name);
    row_axes_.add(input.name, rows == input.dims.end() ? -1 : rows - input.dims.begin());
  }
  for (std::int64_t row = 0; row < sizes.rows(); ++row)
    sentence_.push_back(static_cast<std::int32_t>(row / sizes.repeat));
}

std::string StepTrials::begin() {
  const Array result = whole(said_);
  const Shape& shape = result.shape();
  if (!is_floating(result.dtype()) || shape.size() != 3 || shape[0] != sizes_.rows() || shape[1] != sizes_.tokens)
    return "gives " + to_string(ValueType{result.dtype(), shape}) + " for tokens " +
           to_string(Shape{sizes_.rows(), sizes_.tokens}) + ", not a row of classes for each";
  classes_ = different_ = shape[2];
  for (auto& row : said_) draw(row, 0);
  try {
    whole(said_);
  } catch (const Error&) {  // the model has fewer tokens than classes
    different_ = std::min<std::int64_t>(classes_, 3);
    for (auto& row : said_) draw(row, 0);
    whole(said_);
  }
  return "";
}

void StepTrials::check_ahead() {
  if (sizes_.tokens < 2) return;
  const std::int64_t cut = sizes_.tokens / 2;
  Rows others = said_;
  for (auto& row : others)
    std::transform(row.begin() + cut, row.end(), row.begin() + cut,
                   [&](std::int64_t token) { return other_than(token); });
  const std::vector<double> a = numbers_of(whole(said_)), b = numbers_of(whole(others));
  const double allowed = tolerance_ * greatest_finite(a);
  for (std::int64_t row = 0; row < sizes_.rows(); ++row)
    for (std::int64_t i = row * sizes_.tokens * classes_; i < (row * sizes_.tokens + cut) * classes_; ++i) {
      const auto at = static_cast<std::size_t>(i);
      if (distance(a[at], b[at]) <= allowed) continue;
      throw DefinitionError(whose() + " looks ahead: its result at row " + std::to_string(row) + ", position " +
                            std::to_string(i / classes_ % sizes_.tokens) + " changes from " + text_of(a[at]) + " to " +
                            text_of(b[at]) + " with the tokens from position " + std::to_string(cut) + " on (" +
                            counted() + ")" + first_call(first_looking_ahead(traced(), cut, token_rows(others))) +
                            "\n  Later tokens must be masked, as by causal_mask: generation does not have them.");
    }
}

double StepTrials::check_pieces(const std::vector<std::int64_t>& pieces) {
  PredictorOptions options;
  options.stepped = stepped;
  options.capacity = 2;
  Predictor predictor(model_, function_, options);
  std::vector<std::int32_t> each(static_cast<std::size_t>(sizes_.sentences));
  std::iota(each.begin(), each.end(), 0);
  const Store sources = fixed_of(each);
  predictor.begin(sizes_.sentences, sources, sizes_.repeat);
  double greatest = 0;
  for (std::size_t number = 0; number < pieces.size(); ++number) {
    const std::int64_t columns = pieces[number];
    Rows piece;
    std::vector<std::int64_t> counts;
    for (std::size_t row = 0; row < said_.size(); ++row) {
      const auto first = said_[row].begin() + past_[row];
      piece.emplace_back(first, first + columns);
      // The rows end at different positions of the piece. In a piece of one token, one row gets no token.
      const auto index = static_cast<std::int64_t>(row);
      counts.push_back(columns > 1 ? columns - index % columns : static_cast<std::int64_t>(row != number));
    }
    greatest = std::max(greatest, compare(predictor.step(token_rows(piece), counts), counts, pieces));
    for (std::size_t row = 0; row < said_.size(); ++row) past_[row] += counts[row];
    if (number + 1 == pieces.size()) break;
    const std::size_t count = said_.size();
    // The selections alternate: all rows in reverse order, some rows twice, and some rows twice with one row fewer.
    std::vector<std::int32_t> rows;
    for (std::size_t i = 0; i < count; ++i)
      rows.push_back(static_cast<std::int32_t>(number % 3 == 0 ? count - 1 - i : i * 2 % count));
    if (number % 3 == 2 && count > 2) rows.pop_back();
    select(predictor, rows);
  }
  return greatest;
}

std::string StepTrials::counted() const {
  return std::to_string(said_.size()) + " rows of " + std::to_string(sizes_.tokens) + " tokens";
}

/// Draws the tokens of a row from index `from` on. Avoids 0, because many models use 0 as padding, and the result at a
/// position of padding may be NaN.
void StepTrials::draw(std::vector<std::int64_t>& row, std::int64_t from) {
  const std::int64_t low = different_ > 1 ? 1 : 0;
  for (auto token = row.begin() + from; token != row.end(); ++token) *token = draws_.integer(low, different_ - 1);
}

std::int64_t StepTrials::other_than(std::int64_t token) const {
  const std::int64_t low = different_ > 1 ? 1 : 0;
  return low + (token - low + 1) % (different_ - low);
}

/// Returns a random array. Integers are 1 or 2, because the number of classes is not known. The last integer is 0,
/// which may be padding.
Array StepTrials::drawn(const ValueType& type) {
  Array array(type.dtype, type.shape);
  for (std::int64_t i = 0; i < array.count(); ++i) {
    const std::int64_t integer = i > 0 && i + 1 == array.count() ? 0 : draws_.integer(1, 2);
    const double number = draws_.uniform(-1, 1);
    visit_elements(array, [&]<class T>(T* elements) {
      if constexpr (std::is_same_v<T, bool>)
        elements[i] = number > 0;
      else
        elements[i] = is_floating(type.dtype) ? static_cast<T>(number) : static_cast<T>(integer);
    });
  }
  return array;
}

/// Returns the fixed inputs with one row for each of `sentences`.
Store StepTrials::fixed_of(const std::vector<std::int32_t>& sentences) const {
  std::vector<std::int32_t> rows;
  for (const std::int32_t sentence : sentences)
    rows.push_back((sentence + 1) * static_cast<std::int32_t>(sizes_.repeat) - 1);
  Store store;
  for (const auto& [name, array] : fixed_) {
    const std::int64_t axis = row_axes_.at(name);
    store.add(name, axis < 0 ? Array(array) : with_rows(array, static_cast<std::size_t>(axis), rows));
  }
  return store;
}

/// Plays the function for the current sentences and all tokens of `rows` at once. Returns its result.
Array StepTrials::whole(const Rows& rows) {
  Store arrays = fixed_of(sentence_);
  arrays.add(stepped, token_rows(rows));
  return model_.play(function_, arrays, Mode::predict)[0].value;
}

Traced StepTrials::traced() {
  traced_arrays_ = fixed_of(sentence_);
  traced_arrays_.add(stepped, token_rows(said_));
  NamedSizes sizes = sizes_.sizes;
  sizes.set(sizes_.rows_name, std::ssize(said_));
  return {model_, function_, stepped, sizes_.tokens_name, sizes, traced_arrays_, tolerance_};
}

double StepTrials::compare(const ArrayView& result, const std::vector<std::int64_t>& counts,
                           const std::vector<std::int64_t>& pieces) {
  const std::vector<double> found = numbers_of(result), expected = numbers_of(whole(said_));
  const double size = greatest_finite(expected);
  const std::int64_t columns = result.shape()[1];
  double greatest = 0;
  for (std::size_t row = 0; row < said_.size(); ++row)
    for (std::int64_t i = 0; i < std::max<std::int64_t>(counts[row], 1); ++i)
      for (std::int64_t k = 0; k < classes_; ++k) {
        const auto index = static_cast<std::int64_t>(row);
        const std::int64_t place = past_[row] + i;
        const double got = found[(index * columns + i) * classes_ + k];
        const double wanted = expected[(index * sizes_.tokens + place) * classes_ + k];
        if (std::isnan(wanted))
          throw DefinitionError(whose() + " gives NaN at row " + std::to_string(row) + ", position " +
                                std::to_string(place) + ", class " + std::to_string(k) + " (" + counted() + ")");
        const double between = distance(got, wanted);
        if (!(between <= tolerance_ * size)) refuse(row, place, k, got, wanted, pieces);
        if (size > 0) greatest = std::max(greatest, between / size);
      }
  return greatest;
}

void StepTrials::refuse(std::size_t row, std::int64_t place, std::int64_t k, double got, double wanted,
                        const std::vector<std::int64_t>& pieces) {
  const std::string list = joined(pieces, [](std::int64_t piece) { return std::to_string(piece); });
  throw DefinitionError(
      whose() + " gives other values in pieces, as in generation, than for the whole: " + text_of(got) +
      " instead of " + text_of(wanted) + " at row " + std::to_string(row) + ", position " + std::to_string(place) +
      ", class " + std::to_string(k) + " (" + counted() + ", in pieces of " + list + ")" +
      first_call(sizes_.tokens < 2 ? "" : first_unlike_whole(traced(), sizes_.tokens / 2)) +
      "\n  A position may depend on earlier ones only through cache and the states of scan, not through cumsum, a "
      "convolution or a sum along the tokens. Only positions and causal_mask know the index of a position.");
}

void StepTrials::select(Predictor& predictor, const std::vector<std::int32_t>& rows) {
  predictor.select(rows);
  said_ = picked(said_, rows);
  past_ = picked(past_, rows);
  sentence_ = picked(sentence_, rows);
  for (std::size_t row = 0; row < rows.size(); ++row)
    draw(said_[row], past_[row]);  // copies of a row get different tokens from here on
}

}  // namespace xtape::decode
