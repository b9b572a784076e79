// One update: a pass over the gradients for their norm, a check that weights and moments stay finite, and a pass over
// weights, gradients and moments. For almost every update, bounds on weights and moments rule out overflows. Any other
// update is first computed on copies.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>

#include "base/arrays/elements.hpp"
#include "base/threads/simulated_team.hpp"
#include "base/threads/threads.hpp"
#include "kernels/table/kernels.hpp"
#include "optim/optimizer.hpp"

namespace xtape {

namespace {
using Kind = OptimizerOptions::Kind;

/// A value that an update would make NaN or infinite.
struct Overflow {
  const char* kind = nullptr;  // the kind of array; null if there is no overflow
  std::int64_t index = 0;      // the index in the piece
  double now = 0, then = 0;    // the values before and after the update
  double gradient = 0;         // the scaled gradient
};

template <class T>
double largest(const T* values, std::int64_t count) {
  T most = 0;
  bool finite = true;
  for (std::int64_t i = 0; i < count; ++i) {
    most = std::max(most, std::abs(values[i]));
    finite = finite && std::isfinite(values[i]);
  }
  return finite ? static_cast<double>(most) : std::numeric_limits<double>::infinity();
}

/// First moments up to this size do not count in ratios, because the squares of gradients of this size underflow.
template <class T>
constexpr double tiny = sizeof(T) == sizeof(float) ? 1e-18 : 1e-153;

template <class T>
double largest_ratio(const T* first, const T* second, std::int64_t count) {
  double most = 0;
  for (std::int64_t i = 0; i < count; ++i)
    if (const double size = std::abs(static_cast<double>(first[i])); size > tiny<T>)
      most = std::max(most, size / std::sqrt(static_cast<double>(second[i])));
  return most;
}

Magnitudes larger(const Magnitudes& a, const Magnitudes& b) {
  return {std::max(a.weight, b.weight), std::max(a.first, b.first), std::max(a.second, b.second),
          std::max(a.ratio, b.ratio)};
}

std::string number(double value) {
  if (std::isnan(value)) return "nan";  // printf would print its sign
  char text[40];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

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

template <class F>
void Optimizer::Data::for_pieces(const PieceGradients& gradients, const F& f) const {
  parallel_for(threads_, std::ssize(pieces_), 1, [&](std::int64_t begin, std::int64_t finish) {
    for (std::int64_t i = begin; i < finish; ++i) {
      const auto index = static_cast<std::size_t>(i);
      if (gradients[index] == nullptr) continue;
      if (dtype(pieces_[index]) == Dtype::float64)
        f(index, double{});
      else
        f(index, float{});
    }
  });
}

template <class T>
std::array<T*, 2> Optimizer::Data::moments_of(std::size_t piece) const {
  std::array<T*, 2> found = {};
  std::size_t count = 0;
  for (std::size_t kind = 0; kind < kinds_.size(); ++kind)
    if (keeps(kind, pieces_[piece].weight)) found[count++] = static_cast<T*>(moment(kind, piece));
  return found;
}

template <class T>
void Optimizer::Data::update_piece(const Piece& piece, T* weight, const T* gradient,
                                   const std::array<T*, 2>& moments) const {
  const OptimizerOptions& options = of(piece).options;
  AdamUpdate step = of(piece).step;
  const double decay = decay_of(piece);
  if (options.kind == Kind::sgd) {
    kernels().of<T>().sgd_update(weight, gradient, moments[0], piece.count,
                                 {step.rate, step.scale, options.momentum, options.nesterov, decay});
    return;
  }
  correct(step, static_cast<double>(updates_.as<std::int64_t>()[piece.weight] + 1));
  if (options.kind == Kind::adam)
    step.decay = decay;
  else
    step.shrink = 1 - step.rate * decay;
  kernels().of<T>().adam_update(weight, gradient, moments[0], moments[1], piece.count, step);
}

bool Optimizer::Data::stays_finite(double norm) {
  bool fits = true;
  for (Group& group : groups_) {
    const OptimizerOptions& options = group.options;
    if (options.frozen) continue;
    // The factor 16 is a margin for rounding errors.
    const double most =
        (group.narrow ? static_cast<double>(std::numeric_limits<float>::max()) : std::numeric_limits<double>::max()) /
        16;
    const auto within = [&](double bound) {
      fits = fits && std::abs(bound) <= most;  // false if the bound is NaN
      return std::abs(bound);
    };
    const Magnitudes bounds = group.bounds;
    const AdamUpdate& step = group.step;
    const double decay = within(options.weight_decay);
    Magnitudes& next = group.bounds;
    if (options.kind == Kind::sgd) {
      const double gradient = within(norm + decay * bounds.weight);
      next.first = options.momentum == 0 ? gradient : within(options.momentum * bounds.first + gradient);
      const double length = options.nesterov ? within(gradient + options.momentum * next.first) : next.first;
      next.weight = within(bounds.weight + within(within(step.rate) * length));
    } else {
      const double gradient = within(norm + (options.kind == Kind::adam ? decay * bounds.weight : 0));
      next.first = within(std::max(bounds.first, gradient));
      next.second = within(std::max(bounds.second, gradient * gradient));
      within(std::sqrt(next.second) * within(1 / std::sqrt(step.correction2)));
      // By the Cauchy-Schwarz inequality, b1 m + (1 - b1) g is at most the new `ratio` times the root of b2 v + (1 -
      // b2) g^2.
      const double rest1 = 1 - step.beta1, rest2 = 1 - step.beta2;
      next.ratio =
          std::sqrt(step.beta1 * step.beta1 * bounds.ratio * bounds.ratio / step.beta2 + rest1 * rest1 / rest2);
      const double epsilon = group.narrow ? static_cast<double>(static_cast<float>(step.epsilon)) : step.epsilon;
      const double length = within(step.rate / step.correction1), small = group.narrow ? tiny<float> : tiny<double>;
      within(length * next.first);
      const double most_step = length * std::min(next.first / epsilon, next.ratio + small / epsilon);
      const double shrink = options.kind == Kind::adamw ? within(1 - step.rate * decay) : 1;
      next.weight = within(shrink * bounds.weight + most_step);
    }
  }
  if (!fits) forget_bounds();
  return fits;
}

std::vector<Magnitudes> Optimizer::Data::magnitudes() const {
  std::vector<Magnitudes> of_piece(pieces_.size());
  PieceGradients owned(pieces_.size());  // any address that is not null marks a piece that this process updates
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    bool here = !options(pieces_[i]).frozen;
    for (std::size_t kind = 0; kind < kinds_.size(); ++kind)
      here = here && (moment(kind, i) != nullptr || !keeps(kind, pieces_[i].weight));
    owned[i] = here ? this : nullptr;
  }
  for_pieces(owned, [&](std::size_t index, auto scalar) {
    using T = decltype(scalar);
    const Piece& piece = pieces_[index];
    const Array& array = weights_[piece.weight].value;
    const auto [first, second] = moments_of<T>(index);
    Magnitudes& found = of_piece[index];
    found.weight = largest(array.as<T>() + piece.begin, piece.count);
    if (first != nullptr) found.first = largest<T>(first, piece.count);
    if (second == nullptr) return;
    const bool has_roots = std::all_of(second, second + piece.count, [](T square) { return square >= 0; });
    found.second = has_roots ? largest<T>(second, piece.count) : std::numeric_limits<double>::infinity();
    found.ratio = largest_ratio<T>(first, second, piece.count);
  });
  std::vector<Magnitudes> all(groups_.size());
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    Magnitudes& of_group = all[group_of_[pieces_[i].weight]];
    of_group = larger(of_group, of_piece[i]);
  }
  return all;
}

std::string Optimizer::Data::overflow(const PieceGradients& gradients) const {
  std::vector<Overflow> of_piece(pieces_.size());
  for_pieces(gradients, [&](std::size_t index, auto scalar) {
    using T = decltype(scalar);
    const Piece& piece = pieces_[index];
    const Array& array = weights_[piece.weight].value;
    const auto* gradient = static_cast<const T*>(gradients[index]);
    struct Part {
      const char* kind;
      const T* now;
      std::vector<T> then;
    };
    const std::array<T*, 2> moments = moments_of<T>(index);
    std::vector<Part> parts{{"value", array.as<T>() + piece.begin, {}}};
    if (moments[0] != nullptr) parts.push_back({moments[1] == nullptr ? "velocity" : "first moment", moments[0], {}});
    if (moments[1] != nullptr) parts.push_back({"second moment", moments[1], {}});
    for (Part& part : parts) part.then.assign(part.now, part.now + piece.count);
    update_piece(piece, parts[0].then.data(), gradient,
                 std::array<T*, 2>{parts.size() > 1 ? parts[1].then.data() : nullptr,
                                   parts.size() > 2 ? parts[2].then.data() : nullptr});
    for (std::int64_t i = 0; i < piece.count; ++i)
      // moments come before weights, because a weight overflows if its moment does
      for (auto part = parts.rbegin(); part != parts.rend(); ++part)
        if (const T then = part->then[i]; !std::isfinite(then)) {
          of_piece[index] = {part->kind, i, static_cast<double>(part->now[i]), static_cast<double>(then),
                             static_cast<double>(gradient[i]) * of(piece).step.scale};
          return;
        }
  });
  const auto found = std::ranges::find_if(of_piece, [](const Overflow& each) { return each.kind; });
  if (found == of_piece.end()) return "";
  const Piece& piece = pieces_[found - of_piece.begin()];
  const Store::Entry& weight = weights_[piece.weight];
  return "update " + std::to_string(updates_.as<std::int64_t>()[piece.weight] + 1) + " would make the " + found->kind +
         " of '" + weight.name + "' " + number(found->then) + " at " +
         index_text(index_of(piece.begin + found->index, weight.value.shape())) + ", where it is " +
         number(found->now) + " and the gradient " + number(found->gradient) + " (" + name_of(weight.value.dtype()) +
         ")";
}

void Optimizer::Data::check_update(const PieceGradients& gradients, double norm) {
  if (stays_finite(norm)) return;
  const std::vector<Magnitudes> own = magnitudes();
  std::vector<Magnitudes> all(own.size()), each(own.size());
  const std::size_t size = own.size() * sizeof(Magnitudes);
  for (const std::string& bytes : ranks_->all_gather({reinterpret_cast<const char*>(own.data()), size})) {
    std::memcpy(each.data(), bytes.data(), size);
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = larger(all[i], each[i]);
  }
  for (std::size_t i = 0; i < all.size(); ++i) groups_[i].bounds = all[i];
  if (stays_finite(norm)) return;
  for (const std::string& found : ranks_->all_gather(overflow(gradients)))
    if (!found.empty()) throw UpdateError(found);
}

void Optimizer::Data::note_update(SimulatedTeam& team, const PieceGradients& gradients) const {
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    if (gradients[i] == nullptr) continue;
    const Piece& piece = pieces_[i];
    const std::size_t size = size_of(dtype(piece)), bytes = static_cast<std::size_t>(piece.count) * size;
    const auto* weight = static_cast<const std::byte*>(weights_[piece.weight].value.data());
    team.touched(gradients[i], bytes, false);
    team.touched(weight + static_cast<std::size_t>(piece.begin) * size, bytes, true);
    for (std::size_t kind = 0; kind < kinds_.size(); ++kind)
      if (keeps(kind, piece.weight)) team.touched(moment(kind, i), bytes, true);
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
  for_pieces(gradients, [&](std::size_t index, auto scalar) {
    using T = decltype(scalar);
    Array array(weights_[pieces_[index].weight].value);
    update_piece(pieces_[index], array.as<T>() + pieces_[index].begin, static_cast<const T*>(gradients[index]),
                 moments_of<T>(index));
  });
  for (std::size_t i = 0; i < weights_.size(); ++i) updates_.as<std::int64_t>()[i] += reached[i] != 0 ? 1 : 0;
  if (team != nullptr) note_update(*team, gradients);
  return norm;
}

}  // namespace xtape
