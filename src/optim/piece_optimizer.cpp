#include "piece_optimizer.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "for_pieces.hpp"
#include "kernels.hpp"
#include "thread_count.hpp"

namespace xtape {

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
    if (!(static_cast<float>(options.epsilon) > 0)) throw Error("optimizer: epsilon must be above 0, in float32 too");
  }
  if (!(options.weight_decay >= 0)) throw Error("optimizer: weight_decay must not be negative");
}

/// The norm of the gradients times `scale`, from the sums of their squares by piece.
double norm_of(const std::vector<double>& square_sums, double scale) {
  double total = 0;
  for (double square : square_sums) total += square;
  return std::sqrt(total) * std::abs(scale);
}

std::vector<std::string> kinds_of(const OptimizerOptions& options) {
  if (options.kind != Kind::sgd) return {"first", "second"};
  if (options.momentum != 0) return {"velocity"};
  return {};
}
}  // namespace

std::vector<Piece> pieces_of(const Store& weights) {
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const Array& array = weights[i].value;
    if (!array) throw Error("optimizer: '" + weights[i].name + "' cannot be updated: the array is empty");
    if (array.dtype() != Dtype::float32 && array.dtype() != Dtype::float64)
      throw DtypeError("optimizer: '" + weights[i].name + "' is " + name_of(array.dtype()) +
                       ", not float32 or float64" +
                       (is_half(array.dtype()) ? ": keep the weight as float32, and cast it where it is used" : ""));
    for (std::int64_t begin = 0; begin < array.count(); begin += Piece::most)
      pieces.push_back({i, begin, std::min(Piece::most, array.count() - begin)});
  }
  return pieces;
}

void check_numbers(double rate, double clip) {
  if (!std::isfinite(rate)) throw Error("optimizer: the learning rate is not a finite number");
  if (!(clip >= 0)) throw Error("optimizer: clip must be at least 0 (0: gradients are not clipped)");
}

void PieceOptimizer::forget_bounds() {
  constexpr double unknown = std::numeric_limits<double>::infinity();
  bounds_ = {unknown, unknown, unknown, unknown};
}

PieceOptimizer::PieceOptimizer(const Store& weights, const OptimizerOptions& options, int threads,
                               const std::vector<bool>& owned)
    : options_(options),
      threads_(thread_count(threads)),
      weights_(weights),
      pieces_(pieces_of(weights)),
      kinds_(kinds_of(options)),
      updates_(Dtype::int64, {1}) {
  forget_bounds();
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

double PieceOptimizer::decay_of(const Piece& piece) const {
  return options_.decay_all || weights_[piece.weight].value.shape().size() >= 2 ? options_.weight_decay : 0;
}

AdamStep PieceOptimizer::adam_step(double rate, double scale) const {
  const std::int64_t before = *updates_.as<std::int64_t>();
  if (before < 0 || before > most_updates)
    throw Error("optimizer: the number of updates, " + std::to_string(before) + ", is not from 0 to 2^62");
  const auto count = static_cast<double>(before + 1);  // with the update to come
  AdamStep adam;
  adam.rate = rate;
  adam.scale = scale;
  adam.beta1 = options_.beta1;
  adam.beta2 = options_.beta2;
  adam.epsilon = options_.epsilon;
  adam.correction1 = 1 - std::pow(options_.beta1, count);
  adam.correction2 = 1 - std::pow(options_.beta2, count);
  return adam;
}

template <class T>
void PieceOptimizer::update_piece(const Piece& piece, T* weight, const T* gradient, T* first, T* second,
                                  const AdamStep& adam) const {
  const double decay = decay_of(piece);
  if (options_.kind == Kind::sgd) {
    kernels().of<T>().sgd_update(weight, gradient, first, piece.count,
                                 {adam.rate, adam.scale, options_.momentum, options_.nesterov, decay});
    return;
  }
  AdamStep own = adam;
  if (options_.kind == Kind::adam)
    own.decay = decay;
  else
    own.shrink = 1 - adam.rate * decay;
  kernels().of<T>().adam_update(weight, gradient, first, second, piece.count, own);
}
template void PieceOptimizer::update_piece(const Piece&, float*, const float*, float*, float*, const AdamStep&) const;
template void PieceOptimizer::update_piece(const Piece&, double*, const double*, double*, double*,
                                           const AdamStep&) const;

double PieceOptimizer::update(const PieceGradients& gradients, double rate, double scale, double clip,
                              const SharedUpdate& shared) {
  constexpr double clip_epsilon = 1e-6;  // PyTorch's clip_grad_norm_
  check_numbers(rate, clip);
  square_sums_.assign(pieces_.size(), 0);
  for_pieces(*this, gradients, [&](std::size_t index, auto scalar) {
    using T = decltype(scalar);
    if (shared.before) shared.before(index);
    square_sums_[index] = kernels().of<T>().square_sum(static_cast<const T*>(gradients[index]), pieces_[index].count);
  });
  if (shared.share) shared.share(square_sums_);
  const double norm = norm_of(square_sums_, scale);
  if (!std::isfinite(norm)) return norm;
  if (clip > 0) scale *= std::min(1.0, clip / (norm + clip_epsilon));
  check_update(gradients, norm_of(square_sums_, scale), rate, scale, shared.all_gather);
  const AdamStep adam = adam_step(rate, scale);
  ++*updates_.as<std::int64_t>();
  for_pieces(*this, gradients, [&](std::size_t index, auto scalar) {
    using T = decltype(scalar);
    Array array(weights_[pieces_[index].weight].value);
    const auto moment_at = [&](std::size_t kind) {
      return kind < kinds_.size() ? static_cast<T*>(moment(kind, index)) : nullptr;
    };
    update_piece(pieces_[index], array.as<T>() + pieces_[index].begin, static_cast<const T*>(gradients[index]),
                 moment_at(0), moment_at(1), adam);
  });
  return norm;
}

}  // namespace xtape
