// Whether an update keeps weights and moments finite. Bounds on both rule overflows out for almost every update, so
// that only one that is not ruled out is made on copies first.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>

#include "element_index.hpp"
#include "for_pieces.hpp"

namespace xtape {

namespace {
using Kind = OptimizerOptions::Kind;

/// A number that an update would make NaN or infinite.
struct Overflow {
  const char* kind = nullptr;  // of the array; null: none
  std::int64_t index = 0;      // in the piece
  double now = 0, then = 0;    // before and after the update
  double gradient = 0;         // scaled
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

/// First moments up to this size count apart: the squares of such gradients underflow.
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
}  // namespace

bool PieceOptimizer::stays_finite(double norm, double rate, double scale) {
  const bool narrow = std::any_of(weights_.begin(), weights_.end(),
                                  [](const Store::Entry& weight) { return weight.value.dtype() == Dtype::float32; });
  // The margin is for the rounding of the numbers themselves.
  const double most =
      (narrow ? static_cast<double>(std::numeric_limits<float>::max()) : std::numeric_limits<double>::max()) / 16;
  bool fits = true;
  const auto within = [&](double bound) {
    fits = fits && std::abs(bound) <= most;  // not if it is NaN
    return std::abs(bound);
  };
  const double decay = within(options_.weight_decay);
  Magnitudes next;
  if (options_.kind == Kind::sgd) {
    const double gradient = within(norm + decay * bounds_.weight);
    next.first = kinds_.empty() ? gradient : within(options_.momentum * bounds_.first + gradient);
    const double step = options_.nesterov ? within(gradient + options_.momentum * next.first) : next.first;
    next.weight = within(bounds_.weight + within(within(rate) * step));
  } else {
    const AdamStep adam = adam_step(rate, scale);
    const double gradient = within(norm + (options_.kind == Kind::adam ? decay * bounds_.weight : 0));
    next.first = within(std::max(bounds_.first, gradient));
    next.second = within(std::max(bounds_.second, gradient * gradient));
    within(std::sqrt(next.second) * within(1 / std::sqrt(adam.correction2)));
    // By the inequality of Cauchy and Schwarz: b1 m + (1 - b1) g is at most that many roots of b2 v + (1 - b2) g^2.
    const double rest1 = 1 - adam.beta1, rest2 = 1 - adam.beta2;
    next.ratio =
        std::sqrt(adam.beta1 * adam.beta1 * bounds_.ratio * bounds_.ratio / adam.beta2 + rest1 * rest1 / rest2);
    const double epsilon = narrow ? static_cast<double>(static_cast<float>(adam.epsilon)) : adam.epsilon;
    const double length = within(rate / adam.correction1), small = narrow ? tiny<float> : tiny<double>;
    within(length * next.first);
    const double step = length * std::min(next.first / epsilon, next.ratio + small / epsilon);
    const double shrink = options_.kind == Kind::adamw ? within(1 - rate * decay) : 1;
    next.weight = within(shrink * bounds_.weight + step);
  }
  if (fits)
    bounds_ = next;
  else
    forget_bounds();
  return fits;
}

Magnitudes PieceOptimizer::magnitudes() const {
  std::vector<Magnitudes> of_piece(pieces_.size());
  PieceGradients owned(pieces_.size());  // any address: all pieces that this process updates
  for (std::size_t i = 0; i < pieces_.size(); ++i)
    owned[i] = kinds_.empty() || moment(0, i) != nullptr ? this : nullptr;
  for_pieces(*this, owned, [&](std::size_t index, auto scalar) {
    using T = decltype(scalar);
    const Piece& piece = pieces_[index];
    const Array& array = weights_[piece.weight].value;
    Magnitudes& found = of_piece[index];
    found.weight = largest(array.as<T>() + piece.begin, piece.count);
    if (!kinds_.empty()) found.first = largest(static_cast<const T*>(moment(0, index)), piece.count);
    if (kinds_.size() < 2) return;
    const T* second = static_cast<const T*>(moment(1, index));
    const bool has_roots = std::all_of(second, second + piece.count, [](T square) { return square >= 0; });
    found.second = has_roots ? largest(second, piece.count) : std::numeric_limits<double>::infinity();
    found.ratio = largest_ratio(static_cast<const T*>(moment(0, index)), second, piece.count);
  });
  Magnitudes all;
  for (const Magnitudes& each : of_piece) all = larger(all, each);
  return all;
}

std::string PieceOptimizer::overflow(const PieceGradients& gradients, double rate, double scale) const {
  const AdamStep adam = adam_step(rate, scale);
  std::vector<Overflow> of_piece(pieces_.size());
  for_pieces(*this, gradients, [&](std::size_t index, auto scalar) {
    using T = decltype(scalar);
    const Piece& piece = pieces_[index];
    const Array& array = weights_[piece.weight].value;
    const auto* gradient = static_cast<const T*>(gradients[index]);
    struct Part {
      const char* kind;
      const T* now;
      std::vector<T> then;
    };
    std::vector<Part> parts{{"value", array.as<T>() + piece.begin, {}}};
    for (std::size_t kind = 0; kind < kinds_.size(); ++kind) {
      const char* name = kinds_.size() == 1 ? "velocity" : kind == 0 ? "first moment" : "second moment";
      parts.push_back({name, static_cast<const T*>(moment(kind, index)), {}});
    }
    for (Part& part : parts) part.then.assign(part.now, part.now + piece.count);
    update_piece(piece, parts[0].then.data(), gradient, parts.size() > 1 ? parts[1].then.data() : nullptr,
                 parts.size() > 2 ? parts[2].then.data() : nullptr, adam);
    for (std::int64_t i = 0; i < piece.count; ++i)
      for (auto part = parts.rbegin(); part != parts.rend(); ++part)  // a weight overflows because a moment did
        if (const T then = part->then[i]; !std::isfinite(then)) {
          of_piece[index] = {part->kind, i, static_cast<double>(part->now[i]), static_cast<double>(then),
                             static_cast<double>(gradient[i]) * scale};
          return;
        }
  });
  const auto found = std::find_if(of_piece.begin(), of_piece.end(), [](const Overflow& each) { return each.kind; });
  if (found == of_piece.end()) return "";
  const Piece& piece = pieces_[found - of_piece.begin()];
  const Store::Entry& weight = weights_[piece.weight];
  return "update " + std::to_string(*updates_.as<std::int64_t>() + 1) + " would make the " + found->kind + " of '" +
         weight.name + "' " + number(found->then) + " at " +
         index_text(index_of(piece.begin + found->index, weight.value.shape())) + ", where it is " +
         number(found->now) + " and the gradient " + number(found->gradient) + " (" + name_of(weight.value.dtype()) +
         ")";
}

void PieceOptimizer::check_update(const PieceGradients& gradients, double norm, double rate, double scale,
                                  const AllGather& all_gather) {
  const auto of_all = [&](const std::string& own) {
    return all_gather ? all_gather(own) : std::vector<std::string>{own};
  };
  if (stays_finite(norm, rate, scale)) return;
  const Magnitudes own = magnitudes();
  Magnitudes all;
  for (const std::string& bytes : of_all({reinterpret_cast<const char*>(&own), sizeof own})) {
    Magnitudes each;
    std::memcpy(&each, bytes.data(), sizeof each);
    all = larger(all, each);
  }
  bounds_ = all;
  if (stays_finite(norm, rate, scale)) return;
  for (const std::string& found : of_all(overflow(gradients, rate, scale)))
    if (!found.empty()) throw UpdateError(found);
}

}  // namespace xtape
