#include <limits>

#include "xtape/optim.hpp"

namespace xtape {

struct EarlyStopping::Data {
  Store weights;
  std::int64_t patience = 0;
  Store state = {};  // the best weights, in their order, then these two arrays:
  Array loss = Array(Dtype::float64, {}), evaluations = Array(Dtype::int64, {2});

  double& best() { return *loss.as<double>(); }
  std::int64_t& count() { return evaluations.as<std::int64_t>()[0]; }
  std::int64_t& best_evaluation() { return evaluations.as<std::int64_t>()[1]; }

  void keep() {
    for (std::size_t i = 0; i < weights.size(); ++i) Array(state[i].value).assign(weights[i].value);
  }
};

EarlyStopping::EarlyStopping(const Store& weights, std::int64_t patience) : data_(new Data{weights, patience}) {
  if (patience < 0) throw Error("EarlyStopping: patience must not be negative, got " + std::to_string(patience));
  Data& d = *data_;
  for (const Store::Entry& weight : weights) {
    if (!weight.value) throw Error("EarlyStopping: '" + weight.name + "' is empty");
    d.state.add("best." + weight.name, Array(weight.value.dtype(), weight.value.shape()));
  }
  d.state.add("loss", Array(d.loss));
  d.state.add("evaluations", Array(d.evaluations));
  d.best() = std::numeric_limits<double>::infinity();
  d.best_evaluation() = -1;
}

bool EarlyStopping::operator()(double loss) {
  Data& d = *data_;
  const std::int64_t number = d.count()++;
  if (loss < d.best()) {
    d.keep();
    d.best() = loss;
    d.best_evaluation() = number;
  }
  const bool ends = d.patience > 0 && number - d.best_evaluation() >= d.patience;
  if (ends) restore();
  return ends;
}

void EarlyStopping::restore() {
  Data& d = *data_;
  if (d.best_evaluation() < 0) return;
  for (std::size_t i = 0; i < d.weights.size(); ++i) Array(d.weights[i].value).assign(d.state[i].value);
}

double EarlyStopping::best() const {
  return data_->best();
}
std::int64_t EarlyStopping::best_evaluation() const {
  return data_->best_evaluation();
}
Store EarlyStopping::state() const {
  return data_->state;
}

}  // namespace xtape
