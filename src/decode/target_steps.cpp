#include "target_steps.hpp"

#include <algorithm>

#include "data_sizes.hpp"
#include "xtape/text.hpp"

namespace xtape::decode {

namespace {
/// The logits at position `column` of every row.
LogitRows rows_of(const ArrayView& result, std::int64_t rows, std::int64_t column) {
  const Shape& shape = result.shape();
  if (shape.size() != 3 || shape[0] != rows || column >= shape[1] || !is_floating(result.dtype()))
    throw DefinitionError("the function 'logits' must give floats [rows, tokens, classes], not " +
                          to_string(ValueType{result.dtype(), shape}));
  // Players give dense outputs.
  const std::int64_t offset = result.layout().offset + column * shape[2];
  const auto* first =
      static_cast<const std::byte*>(result.data()) + offset * static_cast<std::int64_t>(size_of(result.dtype()));
  return {first, result.dtype(), shape[1] * shape[2], shape[2]};
}

class CachedSteps : public TargetSteps {
 public:
  explicit CachedSteps(Predictor& predictor) : predictor_(predictor) {}

  void begin(const Array& source, std::int64_t repeat) override {
    predictor_.begin(source.shape()[0], {{"source", source}}, repeat);
  }

  LogitRows step(const std::vector<std::int32_t>& tokens) override {
    const auto rows = static_cast<std::int64_t>(tokens.size());
    if (!tokens_ || tokens_.shape()[0] != rows) tokens_ = Array(Dtype::int64, {rows, 1});
    std::copy(tokens.begin(), tokens.end(), tokens_.as<std::int64_t>());
    return rows_of(predictor_.step(tokens_), rows, 0);
  }

  void select(const std::vector<std::int32_t>& rows) override { predictor_.select(rows); }

 private:
  Predictor& predictor_;
  Array tokens_;
};

class ReplayedSteps : public TargetSteps {
 public:
  explicit ReplayedSteps(Model& model) : model_(model) {}

  void begin(const Array& source, std::int64_t repeat) override {
    sources_.clear();
    const std::int64_t length = source.shape()[1];
    for (std::int64_t row = 0; row < source.shape()[0]; ++row) {
      const std::int64_t* first = source.as<std::int64_t>() + row * length;
      sources_.insert(sources_.end(), static_cast<std::size_t>(repeat),
                      std::vector<std::int64_t>(first, first + length));
    }
    targets_.assign(sources_.size(), {});
  }

  LogitRows step(const std::vector<std::int32_t>& tokens) override {
    for (std::size_t i = 0; i < tokens.size(); ++i) targets_[i].push_back(tokens[i]);
    const auto rows = static_cast<std::int64_t>(tokens.size());
    const auto length = static_cast<std::int64_t>(targets_[0].size());
    const std::int64_t columns = (length + 7) / 8 * 8;  // padding after the last token does not affect its logits
    const Batch batch = {{"source", together(sources_, static_cast<std::int64_t>(sources_[0].size()))},
                         {"tokens", together(targets_, columns)}};
    const auto function = model_.player("logits", Mode::predict, data_sizes(model_, "logits", batch));
    function->player.play(feeds_of(function->inputs, batch), 0);
    return rows_of(function->player.view(function->results[0].value), rows, length - 1);
  }

  void select(const std::vector<std::int32_t>& rows) override {
    std::vector<std::vector<std::int64_t>> sources, targets;
    for (const std::int32_t row : rows) {
      sources.push_back(sources_[static_cast<std::size_t>(row)]);
      targets.push_back(targets_[static_cast<std::size_t>(row)]);
    }
    sources_ = std::move(sources);
    targets_ = std::move(targets);
  }

 private:
  static Array together(const std::vector<std::vector<std::int64_t>>& rows, std::int64_t columns) {
    Array array(Dtype::int64, {static_cast<std::int64_t>(rows.size()), columns});
    for (std::size_t i = 0; i < rows.size(); ++i)
      std::copy(rows[i].begin(), rows[i].end(), array.as<std::int64_t>() + static_cast<std::int64_t>(i) * columns);
    return array;
  }

  Model& model_;
  std::vector<std::vector<std::int64_t>> sources_, targets_;  // per row
};
}  // namespace

std::unique_ptr<TargetSteps> cached_steps(Predictor& predictor) {
  return std::make_unique<CachedSteps>(predictor);
}
std::unique_ptr<TargetSteps> replayed_steps(Model& model) {
  return std::make_unique<ReplayedSteps>(model);
}

}  // namespace xtape::decode
