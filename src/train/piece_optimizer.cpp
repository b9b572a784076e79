#include "piece_optimizer.hpp"

#include <algorithm>
#include <cmath>

#include "kernels.hpp"
#include "thread_count.hpp"
#include "threads.hpp"

namespace xtape::train {

namespace {
using Kind = OptimizerOptions::Kind;

void check(const OptimizerOptions& options) {
  const auto below_one = [](double value, const char* name) {
    if (!(value >= 0 && value < 1))
      throw Error(std::string("optimizer: ") + name + " must be at least 0 and below 1, got " + std::to_string(value));
  };
  if (options.kind == Kind::sgd) {
    below_one(options.momentum, "momentum");
    if (options.nesterov && options.momentum == 0) throw Error("optimizer: nesterov needs a momentum above 0");
  } else {
    below_one(options.beta1, "beta1");
    below_one(options.beta2, "beta2");
    if (!(options.epsilon > 0)) throw Error("optimizer: epsilon must be above 0");
  }
  if (!(options.weight_decay >= 0)) throw Error("optimizer: weight_decay must not be negative");
}

std::vector<std::string> kinds_of(const OptimizerOptions& options) {
  if (options.kind != Kind::sgd) return {"first", "second"};
  if (options.momentum != 0) return {"velocity"};
  return {};
}

/// Calls f(index, T{}) in parallel for every piece with a gradient; T is the element type of its weight.
template <class F>
void for_pieces(const PieceOptimizer& optimizer, const PieceGradients& gradients, const F& f) {
  const auto count = static_cast<std::int64_t>(optimizer.pieces().size());
  parallel_for(optimizer.threads(), count, 1, [&](std::int64_t begin, std::int64_t finish) {
    for (std::int64_t i = begin; i < finish; ++i) {
      const auto index = static_cast<std::size_t>(i);
      if (gradients[index] == nullptr) continue;
      if (optimizer.dtype(optimizer.pieces()[index]) == Dtype::float64)
        f(index, double{});
      else
        f(index, float{});
    }
  });
}
}  // namespace

std::vector<Piece> pieces_of(const Store& weights) {
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const Array& array = weights[i].value;
    if (!is_floating(array.dtype()))
      throw DtypeError("optimizer: '" + weights[i].name + "' is " + name_of(array.dtype()) + ", not a float array");
    for (std::int64_t begin = 0; begin < array.count(); begin += Piece::most)
      pieces.push_back({i, begin, std::min(Piece::most, array.count() - begin)});
  }
  return pieces;
}

double norm_of(const std::vector<double>& square_sums, double scale) {
  double total = 0;
  for (double square : square_sums) total += square;
  return std::sqrt(total) * std::abs(scale);
}

double clipped(double scale, double clip, double norm) {
  constexpr double clip_epsilon = 1e-6;  // PyTorch's clip_grad_norm_
  return clip > 0 ? scale * std::min(1.0, clip / (norm + clip_epsilon)) : scale;
}

PieceOptimizer::PieceOptimizer(const Store& weights, const OptimizerOptions& options, int threads,
                               const std::vector<bool>& owned)
    : options_(options),
      threads_(thread_count(threads)),
      weights_(weights),
      pieces_(pieces_of(weights)),
      kinds_(kinds_of(options)),
      updates_(Dtype::int64, {1}) {
  check(options);
  for (const std::string& kind : kinds_) allocate(kind, owned);
  state_.add("updates", updates_);
}

void PieceOptimizer::allocate(const std::string& kind, const std::vector<bool>& owned) {
  std::vector<void*>& moments = moments_.emplace_back(pieces_.size(), nullptr);
  if (owned.empty()) {
    for (const Store::Entry& weight : weights_)
      state_.add(kind + "." + weight.name, Array(weight.value.dtype(), weight.value.shape()));
    for (std::size_t i = 0; i < pieces_.size(); ++i) {
      Array array = state_.at(kind + "." + weights_[pieces_[i].weight].name);
      moments[i] =
          static_cast<std::byte*>(array.data()) + pieces_[i].begin * static_cast<std::int64_t>(size_of(array.dtype()));
    }
    return;
  }
  const auto bytes_of = [&](std::size_t i) {
    const auto bytes = pieces_[i].count * static_cast<std::int64_t>(size_of(dtype(pieces_[i])));
    return (bytes + 63) / 64 * 64;  // vectors do not cross cache lines
  };
  std::int64_t total = 0;
  for (std::size_t i = 0; i < pieces_.size(); ++i) total += owned[i] ? bytes_of(i) : 0;
  auto* at = static_cast<std::byte*>(memory_.emplace_back(Dtype::boolean, Shape{total}).data());
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    if (!owned[i]) continue;
    moments[i] = at;
    at += bytes_of(i);
  }
}

void PieceOptimizer::square_sums(const PieceGradients& gradients, std::vector<double>& sums,
                                 const std::function<void(std::size_t)>& before) const {
  sums.assign(pieces_.size(), 0);
  for_pieces(*this, gradients, [&](std::size_t index, auto scalar) {
    using T = decltype(scalar);
    if (before) before(index);
    sums[index] = kernels().of<T>().square_sum(static_cast<const T*>(gradients[index]), pieces_[index].count);
  });
}

double PieceOptimizer::decay_of(const Piece& piece) const {
  return options_.decay_all || weights_[piece.weight].value.shape().size() >= 2 ? options_.weight_decay : 0;
}

void PieceOptimizer::update(const PieceGradients& gradients, double rate, double scale) {
  const double count = static_cast<double>(++*updates_.as<std::int64_t>());
  AdamStep adam;
  adam.rate = rate;
  adam.scale = scale;
  adam.beta1 = options_.beta1;
  adam.beta2 = options_.beta2;
  adam.epsilon = options_.epsilon;
  adam.correction1 = 1 - std::pow(options_.beta1, count);
  adam.correction2 = 1 - std::pow(options_.beta2, count);
  for_pieces(*this, gradients, [&](std::size_t index, auto scalar) {
    using T = decltype(scalar);
    const Piece& piece = pieces_[index];
    Array array = weights_[piece.weight].value;
    T* weight = array.as<T>() + piece.begin;
    const T* gradient = static_cast<const T*>(gradients[index]);
    const double decay = decay_of(piece);
    if (options_.kind == Kind::sgd) {
      T* velocity = kinds_.empty() ? nullptr : static_cast<T*>(moment(0, index));
      kernels().of<T>().sgd_update(weight, gradient, velocity, piece.count,
                                   {rate, scale, options_.momentum, options_.nesterov, decay});
      return;
    }
    AdamStep own = adam;
    if (options_.kind == Kind::adam)
      own.decay = decay;
    else
      own.shrink = 1 - rate * decay;
    kernels().of<T>().adam_update(weight, gradient, static_cast<T*>(moment(0, index)),
                                  static_cast<T*>(moment(1, index)), piece.count, own);
  });
}

}  // namespace xtape::train
