#include <limits>

#include "xtape/optim.hpp"

namespace xtape {

struct EarlyStopping::Data {
  Store weights;
  std::int64_t patience = 0;
  std::vector<Array> kept = {};  // the weights of the best evaluation
  double best = std::numeric_limits<double>::infinity();
  std::int64_t evaluations = 0, best_evaluation = -1;

  void keep() {
    if (kept.empty())
      for (const Store::Entry& weight : weights) kept.emplace_back(weight.value.dtype(), weight.value.shape());
    for (std::size_t i = 0; i < kept.size(); ++i) kept[i].assign(weights[i].value);
  }
};

EarlyStopping::EarlyStopping(const Store& weights, std::int64_t patience) : data_(new Data{weights, patience}) {
  if (patience < 0) throw Error("EarlyStopping: patience must not be negative, got " + std::to_string(patience));
  for (const Store::Entry& weight : weights)
    if (!weight.value) throw Error("EarlyStopping: '" + weight.name + "' is empty");
}

bool EarlyStopping::operator()(double loss) {
  Data& d = *data_;
  const std::int64_t number = d.evaluations++;
  if (loss < d.best) {
    d.keep();
    d.best = loss;
    d.best_evaluation = number;
  }
  const bool ends = d.patience > 0 && number - d.best_evaluation >= d.patience;
  if (ends) restore();
  return ends;
}

void EarlyStopping::restore() {
  Data& d = *data_;
  for (std::size_t i = 0; i < d.kept.size(); ++i) Array(d.weights[i].value).assign(d.kept[i]);
}

double EarlyStopping::best() const {
  return data_->best;
}
std::int64_t EarlyStopping::best_evaluation() const {
  return data_->best_evaluation;
}

}  // namespace xtape
