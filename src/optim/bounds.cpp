// Whether an update keeps weights and moments finite. For almost every update, bounds on weights and moments rule out
// overflows. Any other update is first computed on copies.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>

#include "base/arrays/elements.hpp"
#include "optim/optimizer.hpp"

namespace xtape {

namespace {
using Kind = OptimizerOptions::Kind;

/// A value that an update would make NaN or infinite.
struct Overflow {
  const char* kind = nullptr;  // the kind of array; null if there is no overflow
  std::int64_t index = 0;      // the index in the piece; -1 if there is none
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

/// What the arrays of each kind are called in errors.
constexpr std::array<const char*, moment_kinds> moment_texts = {"velocity",
                                                                "first moment",
                                                                "second moment",
                                                                "largest first moment",
                                                                "largest second moment",
                                                                "mean square of a row",
                                                                "mean square of a column"};

bool is_of_squares(Moment kind) {
  return kind != Moment::velocity && kind != Moment::first && kind != Moment::first_scales;
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

}  // namespace

/// Whether all bounds are below what the dtype of a group can hold.
struct Optimizer::Data::WithinBounds {
  double most;
  bool fits = true;

  double operator()(double bound) {
    fits = fits && std::abs(bound) <= most;  // false if the bound is NaN
    return std::abs(bound);
  }
};

Magnitudes Optimizer::Data::adam_bounds(const Group& group, double norm, WithinBounds& within) {
  const OptimizerOptions& options = group.options;
  const AdamUpdate& step = group.step;
  const Magnitudes& bounds = group.bounds;
  Magnitudes next;
  const double decay = options.weight_decay;
  const double gradient = within(norm + (options.kind == Kind::adam ? decay * bounds.weight : 0));
  next.first = within(std::max(bounds.first, gradient));
  next.second = within(std::max(bounds.second, gradient * gradient));
  within(std::sqrt(next.second) * within(1 / std::sqrt(step.correction2)));
  // By the Cauchy-Schwarz inequality, b1 m + (1 - b1) g is at most the new `ratio` times the root of b2 v + (1 -
  // b2) g^2. Codes of eight bits can be 0 for second moments that are not.
  const double rest1 = 1 - step.beta1, rest2 = 1 - step.beta2;
  next.ratio =
      options.eight_bits
          ? std::numeric_limits<double>::infinity()
          : std::sqrt(step.beta1 * step.beta1 * bounds.ratio * bounds.ratio / step.beta2 + rest1 * rest1 / rest2);
  const double epsilon = group.narrow ? static_cast<double>(static_cast<float>(step.epsilon)) : step.epsilon;
  const double length = within(step.rate / step.correction1), small = group.narrow ? tiny<float> : tiny<double>;
  within(length * next.first);
  const double most_step = length * std::min(next.first / epsilon, next.ratio + small / epsilon);
  const double shrink = options.kind == Kind::adamw ? within(1 - step.rate * decay) : 1;
  next.weight = within(shrink * bounds.weight + most_step);
  return next;
}

Magnitudes Optimizer::Data::bounds_after(const Group& group, double norm, WithinBounds& within) {
  const OptimizerOptions& options = group.options;
  const Magnitudes& bounds = group.bounds;
  const double rate = within(group.step.rate), decay = within(options.weight_decay);
  const double decayed = within(1 + rate * decay) * bounds.weight;  // of methods with decoupled decay
  Magnitudes next = bounds;
  switch (options.kind) {
    case Kind::sgd: {
      const double gradient = within(norm + decay * bounds.weight);
      next.first = options.momentum == 0 ? gradient : within(options.momentum * bounds.first + gradient);
      const double length = options.nesterov ? within(gradient + options.momentum * next.first) : next.first;
      next.weight = within(bounds.weight + within(rate * length));
      return next;
    }
    case Kind::lion:
      next.first = within(std::max(bounds.first, norm));
      next.weight = within(decayed + rate);
      return next;
    case Kind::rmsprop: {
      const double gradient = within(norm + decay * bounds.weight);
      next.second = within(std::max(bounds.second, gradient * gradient));
      const double epsilon = group.narrow ? static_cast<double>(static_cast<float>(options.epsilon)) : options.epsilon;
      next.first = within(std::max(gradient, options.momentum * bounds.first + gradient / epsilon));
      next.weight = within(bounds.weight + within(rate * next.first));
      return next;
    }
    case Kind::adafactor:
      next.second = within(std::max(bounds.second, norm * norm));
      next.weight =
          within(decayed + rate * std::max(options.least_scale, bounds.weight) * options.most_change * group.root);
      return next;
    case Kind::muon:  // no singular value of an orthogonalised matrix is above 2
      next.first = within(std::max(bounds.first, norm));
      next.weight = within(decayed + 2 * rate * group.root);
      return next;
    default:
      return adam_bounds(group, norm, within);
  }
}

bool Optimizer::Data::stays_finite(double norm) {
  bool fits = true;
  for (Group& group : groups_) {
    if (group.options.frozen || group.root == 0) continue;
    // The factor 16 is a margin for rounding errors.
    WithinBounds within{
        (group.narrow ? static_cast<double>(std::numeric_limits<float>::max()) : std::numeric_limits<double>::max()) /
        16};
    group.bounds = bounds_after(group, norm, within);
    fits = fits && within.fits;
  }
  if (!fits) forget_bounds();
  return fits;
}

std::vector<Magnitudes> Optimizer::Data::magnitudes() const {
  std::vector<Magnitudes> of_piece(pieces_.size());
  PieceGradients owned(pieces_.size());  // any address that is not null marks a piece that this process updates
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    bool here = !options(pieces_[i]).frozen;
    for (std::size_t kind = 0; kind < moment_kinds; ++kind)
      here = here && (moment(kind, i) != nullptr || type(kind, pieces_[i].weight) == nullptr);
    owned[i] = here ? this : nullptr;
  }
  for_pieces(owned, [&](std::size_t index, auto scalar) {
    using T = decltype(scalar);
    const Piece& piece = pieces_[index];
    const Array& array = weights_[piece.weight].value;
    Magnitudes& found = of_piece[index];
    found.weight = largest(array.as<T>() + piece.begin, piece.count);
    for (std::size_t kind = 0; kind < moment_kinds; ++kind) {
      const void* const moments = moment(kind, index);
      if (moments == nullptr) continue;
      const MomentType& of_kind = *type(kind, piece.weight);
      if (of_kind.dtype == Dtype::int8) continue;  // its scales tell
      const std::int64_t count = of_kind.of(piece).second;
      const double most = of_kind.dtype == dtype_of<T>() ? largest(static_cast<const T*>(moments), count)
                                                         : largest(static_cast<const float*>(moments), count);
      double& of_moments = is_of_squares(static_cast<Moment>(kind)) ? found.second : found.first;
      of_moments = std::max(of_moments, most);
    }
    const auto at = [&](Moment kind) { return static_cast<const T*>(moment(static_cast<std::size_t>(kind), index)); };
    const T* const second = at(Moment::second);
    if (second == nullptr || at(Moment::first_scales) != nullptr) return;
    const bool has_roots = std::all_of(second, second + piece.count, [](T square) { return square >= 0; });
    if (!has_roots) found.second = std::numeric_limits<double>::infinity();
    if (at(Moment::first) != nullptr) found.ratio = largest_ratio<T>(at(Moment::first), second, piece.count);
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
  for_updates(gradients, [&](std::size_t index, auto scalar) {
    using T = decltype(scalar);
    const Piece& piece = pieces_[index];
    const T* const weight = weights_[piece.weight].value.as<T>() + piece.begin;
    const T* const gradient = static_cast<const T*>(gradients[index]);
    std::array<std::vector<std::byte>, moment_kinds> moments;
    PieceMoments copies = {};
    for (std::size_t kind = 0; kind < moment_kinds; ++kind) {
      if (moment(kind, index) == nullptr) continue;
      const auto* now = static_cast<const std::byte*>(moment(kind, index));
      moments[kind].assign(now, now + moment_bytes(kind, piece).second);
      copies[kind] = moments[kind].data();
    }
    std::vector<T> then(weight, weight + piece.count);
    update_piece(piece, then.data(), gradient, copies);
    Overflow& found = of_piece[index];
    const auto look = [&](const char* kind, const auto* before, const auto* after, std::int64_t count,
                          bool by_element) {
      for (std::int64_t i = 0; i < count && found.kind == nullptr; ++i)
        if (!std::isfinite(after[i]))
          found = {kind, by_element ? i : -1, static_cast<double>(before[i]), static_cast<double>(after[i]),
                   by_element ? static_cast<double>(gradient[i]) * of(piece).step.scale : 0};
    };
    for (std::size_t kind = 0; kind < moment_kinds; ++kind) {  // before the weight, which overflows if they do
      const MomentType* of_kind = copies[kind] == nullptr ? nullptr : type(kind, piece.weight);
      if (of_kind == nullptr || of_kind->dtype == Dtype::int8) continue;
      const std::int64_t count = of_kind->of(piece).second;
      const auto look_at = [&](auto element) {
        using E = decltype(element);
        look(moment_texts[kind], static_cast<const E*>(moment(kind, index)), static_cast<const E*>(copies[kind]), count,
             of_kind->unit == 1);
      };
      if (of_kind->dtype == dtype_of<T>())
        look_at(T{});
      else
        look_at(float{});
    }
    look("value", weight, then.data(), piece.count, true);
  });
  const auto found = std::ranges::find_if(of_piece, [](const Overflow& each) { return each.kind; });
  if (found == of_piece.end()) return "";
  const Piece& piece = pieces_[found - of_piece.begin()];
  const Store::Entry& weight = weights_[piece.weight];
  const std::string place =
      found->index < 0 ? ""
                       : " at " + index_text(index_of(piece.begin + found->index, weight.value.shape())) +
                             ", where it is " + number(found->now) + " and the gradient " + number(found->gradient);
  return "update " + std::to_string(updates_.as<std::int64_t>()[piece.weight] + 1) + " would make the " + found->kind +
         " of '" + weight.name + "' " + number(found->then) + place + " (" + name_of(weight.value.dtype()) + ")";
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

}  // namespace xtape
