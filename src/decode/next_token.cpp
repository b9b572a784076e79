#include "next_token.hpp"

#include "data_sizes.hpp"

namespace xtape::decode {

NextToken::NextToken(Model& model, std::int64_t rows, std::int64_t columns, Mode mode)
    : tokens_(Dtype::int64, {rows, columns}), columns_(columns) {
  const Batch batch = {{"tokens", tokens_}};
  function_ = model.player("logits", mode, data_sizes(model, "logits", batch));
  const Var result = function_->results[0].value;
  if (!is_floating(result.dtype()) || result.rank() != 3 || result.size(0) != rows || result.size(1) != columns)
    throw DefinitionError("function 'logits' of model '" + model.name() + "' must give floats " +
                          to_string(Shape{rows, columns}) + " and classes, not " + to_string(result.type()));
  classes_ = result.size(2);
  feeds_ = feeds_of(function_->inputs, batch);
}

void NextToken::play() {
  function_->player.play(feeds_, 0);
  result_ = function_->player.view(function_->results[0].value);
}

void NextToken::logits(std::int64_t row, std::int64_t column, std::vector<double>& out) const {
  out.resize(static_cast<std::size_t>(classes_));
  const Strides& strides = result_.layout().strides;
  const std::int64_t place = row * strides[0] + column * strides[1];
  for (std::int64_t i = 0; i < classes_; ++i) {
    const std::int64_t at = place + i * strides[2];
    out[static_cast<std::size_t>(i)] =
        result_.dtype() == Dtype::float64 ? result_.as<double>()[at] : static_cast<double>(result_.as<float>()[at]);
  }
}

}  // namespace xtape::decode
