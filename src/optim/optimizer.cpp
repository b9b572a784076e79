// The optimiser of a single process. An update is one pass over the gradients for their norm, followed by one pass over
// weights, gradients and moments.
#include "optim/piece_optimizer.hpp"

namespace xtape {

void Optimizer::Data::check(const std::vector<ArrayView>& views) const {
  const Store& weights = pieces.weights();
  if (views.size() != weights.size())
    throw Error("optimizer: got " + std::to_string(views.size()) + " gradients for " + std::to_string(weights.size()) +
                " weights");
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (views[i].data() == nullptr) continue;
    const Array& weight = weights[i].value;
    const std::string name = "optimizer: the gradient of '" + weights[i].name + "' ";
    if (views[i].dtype() != weight.dtype())
      throw DtypeError(name + "is " + name_of(views[i].dtype()) + ", the weight " + name_of(weight.dtype()));
    if (views[i].shape() != weight.shape())
      throw ShapeError(name + "has shape " + to_string(views[i].shape()) + ", the weight " + to_string(weight.shape()));
    if (!views[i].layout().contiguous()) throw Error(name + "must be a dense row-major array");
  }
}

void Optimizer::Data::find(const std::vector<ArrayView>& views) {
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const Piece& piece = pieces.pieces()[i];
    const ArrayView& view = views[piece.weight];
    gradients[i] = view.data() == nullptr || pieces.options(piece).frozen
                       ? nullptr
                       : static_cast<const std::byte*>(view.data()) +
                             (view.layout().offset + piece.begin) * static_cast<std::int64_t>(size_of(view.dtype()));
  }
}

Optimizer::Optimizer(const Store& weights, const OptimizerOptions& options, int threads)
    : data_(new Data(weights, {{"*", options}}, threads)) {}

double Optimizer::update(const std::vector<ArrayView>& gradients, double rate, double scale, double clip) {
  Data& d = *data_;
  d.check(gradients);
  d.find(gradients);
  return d.pieces.update(d.gradients, rate, scale, clip);
}

const Store& Optimizer::state() const {
  data_->pieces.forget_bounds();  // the caller may write to the moments
  return data_->pieces.state();
}

std::int64_t Optimizer::updates() const {
  return *data_->pieces.updates().as<std::int64_t>();
}

}  // namespace xtape
