// One update: a pass over the gradients for their norm, a check that weights and moments stay finite (bounds.cpp), and
// a pass over weights, gradients and moments.
#include <algorithm>
#include <cmath>

#include "base/threads/simulated_team.hpp"
#include "kernels/table/kernels.hpp"
#include "optim/optimizer.hpp"

namespace xtape {

namespace {
using Kind = OptimizerOptions::Kind;

/// Returns the norm of the gradients times `scale`, from their sums of squares per piece.
double norm_of(const std::vector<double>& square_sums, double scale) {
  double total = 0;
  for (double square : square_sums) total += square;
  return std::sqrt(total) * std::abs(scale);
}
}  // namespace

void check_numbers(double rate, double clip) {
  if (!std::isfinite(rate)) throw Error("optimizer: the learning rate is not a finite number");
  if (!(clip >= 0)) throw Error("optimizer: clip must be at least 0 (0: gradients are not clipped)");
}

double Optimizer::Data::decay_of(const Piece& piece) const {
  const OptimizerOptions& options = of(piece).options;
  return options.decay_all || weights_[piece.weight].value.shape().size() >= 2 ? options.weight_decay : 0;
}

void Optimizer::Data::correct(AdamUpdate& step, double updates) {
  step.correction1 = 1 - kernels().numbers.pow(step.beta1, updates);
  step.correction2 = 1 - kernels().numbers.pow(step.beta2, updates);
}

void Optimizer::Data::set_steps(const ReachedWeights& reached, double rate, double scale) {
  for (Group& group : groups_) group.fewest = static_cast<double>(most_updates);
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    const std::int64_t before = updates_.as<std::int64_t>()[i];
    if (before < 0 || before > most_updates)
      throw Error("optimizer: the number of updates of '" + weights_[i].name + "', " + std::to_string(before) +
                  ", is not from 0 to 2^62");
    double& fewest = groups_[group_of_[i]].fewest;
    if (reached[i] != 0) fewest = std::min(fewest, static_cast<double>(before + 1));
  }
  for (Group& group : groups_) {
    const OptimizerOptions& options = group.options;
    group.step.rate = rate * options.rate.value_or(1);
    group.step.scale = scale;
    group.step.beta1 = options.beta1;
    group.step.beta2 = options.beta2;
    group.step.epsilon = options.epsilon;
    correct(group.step, group.fewest);  // the smallest corrections, for bounds
  }
}

template <class T>
void Optimizer::Data::update_piece(const Piece& piece, T* weight, const T* gradient,
                                   const PieceMoments& moments) const {
  const OptimizerOptions& options = of(piece).options;
  const auto& functions = kernels().of<T>();
  const auto at = [&](Moment kind) { return static_cast<T*>(moments[static_cast<std::size_t>(kind)]); };
  const auto scales = [&](Moment kind) { return static_cast<float*>(moments[static_cast<std::size_t>(kind)]); };
  AdamUpdate step = of(piece).step;
  const double decay = decay_of(piece);
  switch (options.kind) {
    case Kind::sgd:
      return functions.sgd_update(weight, gradient, at(Moment::velocity), piece.count,
                                  {step.rate, step.scale, options.momentum, options.nesterov, decay});
    case Kind::rmsprop:
      return functions.rmsprop_update(weight, gradient, at(Moment::second), at(Moment::first), at(Moment::velocity),
                                      piece.count,
                                      {step.rate, step.scale, options.alpha, options.momentum, options.epsilon, decay});
    case Kind::adafactor:
      return update_adafactor(piece, weight, gradient, moments);
    case Kind::muon:
      return update_muon(piece, weight, gradient, at(Moment::velocity));
    case Kind::adam:
      step.decay = decay;
      break;
    default:
      step.shrink = 1 - step.rate * decay;
  }
  correct(step, updates_of(piece));
  if (options.kind == Kind::lion) return functions.lion_update(weight, gradient, at(Moment::first), piece.count, step);
  if (float* first_scales = scales(Moment::first_scales)) {
    const auto codes = [&](Moment kind) { return reinterpret_cast<std::uint8_t*>(at(kind)); };
    return functions.adam_update_bytes(
        weight, gradient, {codes(Moment::first), codes(Moment::second), first_scales, scales(Moment::second_scales)},
        piece.count, step);
  }
  functions.adam_update(weight, gradient, at(Moment::first), at(Moment::second), piece.count, step);
}
template void Optimizer::Data::update_piece(const Piece&, float*, const float*, const PieceMoments&) const;
template void Optimizer::Data::update_piece(const Piece&, double*, const double*, const PieceMoments&) const;

void Optimizer::Data::note_update(SimulatedTeam& team, const PieceGradients& gradients) const {
  const auto bytes_of = [&](std::size_t i) {
    return static_cast<std::size_t>(pieces_[i].count) * size_of(dtype(pieces_[i]));
  };
  for (std::size_t i = 0; i < pieces_.size(); ++i)  // for the norm
    if (gradients[i] != nullptr) team.touched(gradients[i], bytes_of(i), false);
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    if (gradients[i] == nullptr) continue;
    const Piece& piece = pieces_[i];
    const std::size_t size = size_of(dtype(piece)), bytes = bytes_of(i);
    const auto* weight = static_cast<const std::byte*>(weights_[piece.weight].value.data());
    team.touched(gradients[i], bytes, false);
    team.touched(weight + static_cast<std::size_t>(piece.begin) * size, bytes, true);
    for (std::size_t kind = 0; kind < moment_kinds; ++kind)
      if (moment(kind, i) != nullptr) team.touched(moment(kind, i), moment_bytes(kind, piece).second, true);
  }
  team.worked("(optimizer)");
}

double Optimizer::Data::update(const PieceGradients& gradients, const ReachedWeights& reached, double rate,
                               double scale, double clip) {
  constexpr double clip_epsilon = 1e-6;  // the value in PyTorch's clip_grad_norm_
  SimulatedTeam* const team = SimulatedTeam::current();
  if (team != nullptr) team->worked("(rest)");
  check_numbers(rate, clip);
  square_sums_.assign(pieces_.size(), 0);
  for_pieces(gradients, [&](std::size_t index, auto scalar) {
    using T = decltype(scalar);
    square_sums_[index] = kernels().of<T>().square_sum(static_cast<const T*>(gradients[index]), pieces_[index].count);
  });
  ranks_->share(square_sums_);
  const double norm = norm_of(square_sums_, scale);
  if (!std::isfinite(norm)) return norm;
  if (clip > 0) scale *= std::min(1.0, clip / (norm + clip_epsilon));
  set_steps(reached, rate, scale);
  check_update(gradients, norm_of(square_sums_, scale));
  for_updates(gradients, [&](std::size_t index, auto scalar) {
    using T = decltype(scalar);
    Array array(weights_[pieces_[index].weight].value);
    update_piece(pieces_[index], array.as<T>() + pieces_[index].begin, static_cast<const T*>(gradients[index]),
                 moments_[index]);
  });
  for (std::size_t i = 0; i < weights_.size(); ++i) updates_.as<std::int64_t>()[i] += reached[i] != 0 ? 1 : 0;
  if (team != nullptr) note_update(*team, gradients);
  return norm;
}

}  // namespace xtape
