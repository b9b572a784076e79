// Optimisers. An update is one pass over the gradients for their norm, then one over weights, gradients and moments.
#include <algorithm>
#include <cmath>
#include <optional>

#include "threads.hpp"
#include "update.hpp"
#include "xtape/optim.hpp"

namespace xtape {

namespace {
using OptimizerKind = OptimizerOptions::Kind;

/// The number of elements that a thread processes at a time. It is fixed, so that the rounding of the norm does not
/// depend on the number of threads.
constexpr std::int64_t piece_size = 32768;

void check(const OptimizerOptions& options) {
  const auto below_one = [](double value, const char* name) {
    if (!(value >= 0 && value < 1))
      throw Error(std::string("optimizer: ") + name + " must be at least 0 and below 1, got " + std::to_string(value));
  };
  if (options.kind == OptimizerKind::sgd) {
    below_one(options.momentum, "momentum");
    if (options.nesterov && options.momentum == 0) throw Error("optimizer: nesterov needs a momentum above 0");
  } else {
    below_one(options.beta1, "beta1");
    below_one(options.beta2, "beta2");
    if (!(options.epsilon > 0)) throw Error("optimizer: epsilon must be above 0");
  }
  if (!(options.weight_decay >= 0)) throw Error("optimizer: weight_decay must not be negative");
}

/// A range of the elements of one weight.
struct Piece {
  std::size_t array;
  std::int64_t begin;
  std::int64_t count;
};
}  // namespace

struct Optimizer::Data {
  OptimizerOptions options;
  int threads = 1;
  std::vector<Store::Entry> weights;
  std::vector<Array> first;   ///< Velocities or first moments; empty for SGD without momentum.
  std::vector<Array> second;  ///< Second moments.
  Array updates;              ///< The number of updates: int64 [1].
  Store state;
  std::vector<Piece> pieces;
  std::vector<double> square_sums;  ///< Sum of the squared gradient, per piece.

  void remember(const char* kind, std::vector<Array>& arrays) {
    for (const Store::Entry& weight : weights)
      arrays.push_back(
          state.add(std::string(kind) + "." + weight.name, Array(weight.value.dtype(), weight.value.shape())));
  }

  void check_gradients(const std::vector<ArrayView>& gradients) const {
    if (gradients.size() != weights.size())
      throw Error("optimizer: got " + std::to_string(gradients.size()) + " gradients for " +
                  std::to_string(weights.size()) + " weights");
    for (std::size_t i = 0; i < weights.size(); ++i) {
      if (gradients[i].data() == nullptr) continue;
      const Array& weight = weights[i].value;
      const std::string name = "optimizer: the gradient of '" + weights[i].name + "' ";
      if (gradients[i].dtype() != weight.dtype())
        throw DtypeError(name + "is " + name_of(gradients[i].dtype()) + ", the weight " + name_of(weight.dtype()));
      if (gradients[i].shape() != weight.shape())
        throw ShapeError(name + "has shape " + to_string(gradients[i].shape()) + ", the weight " +
                         to_string(weight.shape()));
      if (!gradients[i].layout().contiguous()) throw Error(name + "must be a dense row-major array");
    }
  }

  /// Calls f(index, piece, T{}) in parallel for every piece of a weight that has a gradient; T is the weight's type.
  template <class F>
  void for_pieces(const std::vector<ArrayView>& gradients, const F& f) const {
    parallel_for(threads, static_cast<std::int64_t>(pieces.size()), 1, [&](std::int64_t begin, std::int64_t finish) {
      for (std::int64_t i = begin; i < finish; ++i) {
        const std::size_t index = static_cast<std::size_t>(i);
        if (gradients[pieces[index].array].data() == nullptr) continue;
        if (weights[pieces[index].array].value.dtype() == Dtype::float64)
          f(index, pieces[index], double{});
        else
          f(index, pieces[index], float{});
      }
    });
  }

  double gradient_norm(const std::vector<ArrayView>& gradients) {
    std::fill(square_sums.begin(), square_sums.end(), 0.0);
    for_pieces(gradients, [&](std::size_t index, const Piece& piece, auto scalar) {
      using T = decltype(scalar);
      square_sums[index] = square_sum<T>(gradients[piece.array].as<T>() + piece.begin, piece.count);
    });
    double total = 0;
    for (double square : square_sums) total += square;
    return std::sqrt(total);
  }

  double decay_of(const Piece& piece) const {
    return options.decay_all || weights[piece.array].value.shape().size() >= 2 ? options.weight_decay : 0;
  }

  void update_by_sgd(const std::vector<ArrayView>& gradients, double rate, double scale) {
    for_pieces(gradients, [&](std::size_t, const Piece& piece, auto scalar) {
      using T = decltype(scalar);
      const std::size_t i = piece.array;
      T* velocity = first.empty() ? nullptr : first[i].as<T>() + piece.begin;
      sgd_update<T>(weights[i].value.as<T>() + piece.begin, gradients[i].as<T>() + piece.begin, velocity, piece.count,
                    {rate, scale, options.momentum, options.nesterov, decay_of(piece)});
    });
  }

  void update_by_adam(const std::vector<ArrayView>& gradients, double rate, double scale) {
    AdamStep step;
    step.rate = rate;
    step.scale = scale;
    step.beta1 = options.beta1;
    step.beta2 = options.beta2;
    step.epsilon = options.epsilon;
    const double count = static_cast<double>(*updates.as<std::int64_t>());
    step.correction1 = 1 - std::pow(options.beta1, count);
    step.correction2 = 1 - std::pow(options.beta2, count);
    for_pieces(gradients, [&](std::size_t, const Piece& piece, auto scalar) {
      using T = decltype(scalar);
      const std::size_t i = piece.array;
      AdamStep own = step;
      if (options.kind == OptimizerKind::adam)
        own.decay = decay_of(piece);
      else
        own.shrink = 1 - rate * decay_of(piece);
      adam_update<T>(weights[i].value.as<T>() + piece.begin, gradients[i].as<T>() + piece.begin,
                     first[i].as<T>() + piece.begin, second[i].as<T>() + piece.begin, piece.count, own);
    });
  }
};

Optimizer::Optimizer(const Store& weights, const OptimizerOptions& options, int threads)
    : data_(std::make_unique<Data>()) {
  check(options);
  Data& d = *data_;
  d.options = options;
  d.threads = threads > 0 ? threads : omp_get_max_threads();
  d.weights.assign(weights.begin(), weights.end());
  for (std::size_t i = 0; i < d.weights.size(); ++i) {
    const Array& array = d.weights[i].value;
    if (!is_floating(array.dtype()))
      throw DtypeError("optimizer: '" + d.weights[i].name + "' is " + name_of(array.dtype()) + ", not a float array");
    for (std::int64_t begin = 0; begin < array.count(); begin += piece_size)
      d.pieces.push_back({i, begin, std::min(piece_size, array.count() - begin)});
  }
  d.square_sums.resize(d.pieces.size());
  if (options.kind == OptimizerKind::sgd) {
    if (options.momentum != 0) d.remember("velocity", d.first);
  } else {
    d.remember("first", d.first);
    d.remember("second", d.second);
  }
  d.updates = d.state.add("updates", Array(Dtype::int64, {1}));
}

Optimizer::Optimizer(Optimizer&&) noexcept = default;
Optimizer& Optimizer::operator=(Optimizer&&) noexcept = default;
Optimizer::~Optimizer() = default;

double Optimizer::update(const std::vector<ArrayView>& gradients, double rate, double scale, double clip) {
  Data& d = *data_;
  d.check_gradients(gradients);
  if (!std::isfinite(rate)) throw Error("optimizer: the learning rate is not a finite number");
  const double norm = d.gradient_norm(gradients) * std::abs(scale);
  if (!std::isfinite(norm)) return norm;
  constexpr double clip_epsilon = 1e-6;  // PyTorch's clip_grad_norm_
  if (clip > 0) scale *= std::min(1.0, clip / (norm + clip_epsilon));
  ++*d.updates.as<std::int64_t>();
  if (d.options.kind == OptimizerKind::sgd)
    d.update_by_sgd(gradients, rate, scale);
  else
    d.update_by_adam(gradients, rate, scale);
  return norm;
}

const Store& Optimizer::state() const {
  return data_->state;
}

}  // namespace xtape
