// The optimiser: its options, the pieces of its weights, and their moments. update.cpp makes an update.
#include "optim/optimizer.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/system/system.hpp"
#include "kernels/table/kernels.hpp"

namespace xtape {

bool matches_pattern(const std::string& name, const std::string& pattern) {
  return fits_pattern(name, pattern);
}

std::size_t group_of(const std::string& weight, const std::vector<OptimizerGroup>& groups) {
  const auto first =
      std::ranges::find_if(groups, [&](const OptimizerGroup& group) { return matches_pattern(weight, group.weights); });
  return static_cast<std::size_t>(first - groups.begin());
}

namespace {
using Kind = OptimizerOptions::Kind;

void check(const OptimizerOptions& options) {
  const auto below_one = [](double value, const char* name) {
    if (!(value >= 0 && value < 1))
      throw Error(std::string("optimizer: ") + name + " must be at least 0 and below 1, got " + std::to_string(value));
  };
  const auto at_least_0 = [](double value, const char* name) {
    if (!(value >= 0 && std::isfinite(value)))
      throw Error(std::string("optimizer: ") + name + " must be at least 0 and finite, got " + std::to_string(value));
  };
  const Kind kind = options.kind;
  const bool is_muon = kind == Kind::muon;
  if (kind == Kind::sgd || kind == Kind::rmsprop || is_muon) below_one(options.momentum, "momentum");
  if (options.nesterov && options.momentum == 0 && (kind == Kind::sgd || is_muon))
    throw Error("optimizer: nesterov needs a momentum above 0");
  if (kind == Kind::adam || kind == Kind::adamw || kind == Kind::lion || is_muon) {
    below_one(options.beta1, "beta1");
    below_one(options.beta2, "beta2");
  }
  if (kind == Kind::rmsprop) below_one(options.alpha, "alpha");
  if (kind != Kind::sgd && kind != Kind::lion && kind != Kind::adafactor && !(static_cast<float>(options.epsilon) > 0))
    throw Error("optimizer: epsilon must be above 0, in float32 too");
  if (kind == Kind::adafactor) {
    if (!(options.beta2_decay <= 0 && std::isfinite(options.beta2_decay)))
      throw Error("optimizer: beta2_decay must be at most 0, got " + std::to_string(options.beta2_decay));
    at_least_0(options.least_scale, "least_scale");
    if (!(options.most_change > 0 && std::isfinite(options.most_change)))
      throw Error("optimizer: most_change must be above 0, got " + std::to_string(options.most_change));
  }
  if (is_muon && (options.iterations < 1 || options.iterations >= 100))
    throw Error("optimizer: muon makes 1 to 99 iterations, not " + std::to_string(options.iterations));
  if (options.eight_bits && kind != Kind::adam && kind != Kind::adamw)
    throw Error("optimizer: only adam and adamw have moments of eight bits");
  at_least_0(options.weight_decay, "weight_decay");
  if (options.rate) at_least_0(*options.rate, "the rate of a group");
}

/// Returns whether muon orthogonalises arrays of this shape. It updates others like adamw.
bool is_matrix(const Shape& shape) {
  return shape.size() == 2 && shape[0] > 0 && shape[1] > 0;
}

/// Weights with fewer elements keep moments of full precision, as in bitsandbytes.
constexpr std::int64_t least_for_bytes = 4096;
}  // namespace

std::optional<MomentType> moment_type(Moment kind, const OptimizerOptions& options, const Array& weight) {
  if (options.frozen) return {};
  const MomentType like_weight = {weight.dtype(), weight.shape()};
  const auto only = [&](bool has) { return has ? std::optional(like_weight) : std::nullopt; };
  const Shape& shape = weight.shape();
  switch (options.kind) {
    case Kind::sgd:
    case Kind::muon:
      return only(kind == Moment::velocity && (options.momentum != 0 || options.kind == Kind::muon));
    case Kind::lion:
      return only(kind == Moment::first);
    case Kind::rmsprop:
      return only(kind == Moment::second || (kind == Moment::first && options.centered) ||
                  (kind == Moment::velocity && options.momentum != 0));
    case Kind::adafactor: {
      if (shape.size() < 2) return only(kind == Moment::second);
      if (kind == Moment::rows) return MomentType{weight.dtype(), Shape(shape.begin(), shape.end() - 1), 0};
      if (kind != Moment::columns) return {};
      Shape columns(shape.begin(), shape.end() - 2);
      columns.push_back(shape.back());
      return MomentType{weight.dtype(), columns, 0};
    }
    default: {
      const bool bytes = options.eight_bits && weight.count() >= least_for_bytes;
      if (kind == Moment::first || kind == Moment::second)
        return MomentType{bytes ? Dtype::int8 : weight.dtype(), shape};
      if (!bytes || (kind != Moment::first_scales && kind != Moment::second_scales)) return {};
      return MomentType{Dtype::float32, {(weight.count() + moment_block - 1) / moment_block}, moment_block};
    }
  }
}

std::pair<std::int64_t, std::int64_t> MomentType::of(const Piece& piece) const {
  static_assert(Piece::most % moment_block == 0, "blocks of moments do not cross pieces");
  if (unit == 0) return {0, count_of(shape)};
  return {piece.begin / unit, (piece.count + unit - 1) / unit};
}

std::pair<std::size_t, std::size_t> Optimizer::Data::moment_bytes(std::size_t kind, const Piece& piece) const {
  const MomentType& type = *types_[kind][piece.weight];
  const auto [first, count] = type.of(piece);
  return {static_cast<std::size_t>(first) * size_of(type.dtype), static_cast<std::size_t>(count) * size_of(type.dtype)};
}

std::vector<Piece> pieces_of(const Store& weights, const std::vector<OptimizerGroup>& groups) {
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const Array& array = weights[i].value;
    if (!array) throw Error("optimizer: '" + weights[i].name + "' cannot be updated: the array is empty");
    if (array.dtype() != Dtype::float32 && array.dtype() != Dtype::float64)
      throw DtypeError("optimizer: '" + weights[i].name + "' is " + name_of(array.dtype()) +
                       ", not float32 or float64" +
                       (is_half(array.dtype()) ? ": keep the weight as float32, and cast it where it is used" : ""));
    const std::size_t group = group_of(weights[i].name, groups);
    const OptimizerOptions options = group < groups.size() ? groups[group].options : OptimizerOptions();
    const bool whole = !options.frozen &&
                       (options.kind == Kind::adafactor || (options.kind == Kind::muon && is_matrix(array.shape())));
    if (whole && array.count() > 0) pieces.push_back({i, 0, array.count(), true});
    for (std::int64_t begin = 0; begin < array.count() && !whole; begin += Piece::most)
      pieces.push_back({i, begin, std::min(Piece::most, array.count() - begin)});
  }
  return pieces;
}

void Optimizer::Data::forget_bounds() {
  constexpr double unknown = std::numeric_limits<double>::infinity();
  for (Group& group : groups_) group.bounds = {unknown, unknown, unknown, unknown};
}

Optimizer::Data::Data(const Store& weights, const std::vector<OptimizerGroup>& groups, int threads, Bits bits,
                      std::unique_ptr<UpdateGroup> ranks)
    : threads_(thread_count(threads)),
      weights_(weights),
      pieces_(pieces_of(weights, groups)),
      moments_(pieces_.size()),
      updates_(Dtype::int64, {static_cast<std::int64_t>(weights.size())}),
      found_(pieces_.size()),
      reached_(weights.size()),
      ranks_(std::move(ranks)) {
  group_weights(groups);
  forget_bounds();
  for (std::size_t kind = 0; kind < moment_kinds; ++kind) allocate(kind);
  plan_whole_updates(bits);
  state_.add("updates", updates_);
}

void Optimizer::Data::group_weights(const std::vector<OptimizerGroup>& groups) {
  for (const OptimizerGroup& group : groups) {
    check(group.options);
    groups_.push_back({.options = group.options});
  }
  for (const OptimizerGroup& group : groups) {  // a twin for weights that muon does not orthogonalise
    groups_.push_back({.options = group.options});
    if (group.options.kind == Kind::muon) groups_.back().options.kind = Kind::adamw;
  }
  for (const Store::Entry& weight : weights_) {
    const std::size_t group = group_of(weight.name, groups);
    if (group == groups.size())
      throw Error("optimizer: no group matches weight '" + weight.name + "': a last one of \"*\" matches all others");
    const bool twin = groups[group].options.kind == Kind::muon && !is_matrix(weight.value.shape());
    Group& of_weight = groups_[group_of_.emplace_back(twin ? groups.size() + group : group)];
    of_weight.narrow = of_weight.narrow || weight.value.dtype() == Dtype::float32 || of_weight.options.eight_bits;
    of_weight.root = std::max(of_weight.root, std::sqrt(static_cast<double>(weight.value.count())));
  }
}

void Optimizer::Data::allocate(std::size_t kind) {
  for (std::size_t i = 0; i < weights_.size(); ++i)
    types_[kind].push_back(moment_type(static_cast<Moment>(kind), groups_[group_of_[i]].options, weights_[i].value));
  if (ranks_->size() == 1) {
    std::vector<std::byte*> arrays(weights_.size());
    for (std::size_t i = 0; i < weights_.size(); ++i)
      if (const MomentType* moments = type(kind, i)) {
        const std::string name = moment_names[kind] + ("." + weights_[i].name);
        arrays[i] = static_cast<std::byte*>(state_.add(name, Array(moments->dtype, moments->shape)).data());
      }
    for (std::size_t i = 0; i < pieces_.size(); ++i)
      if (const Piece& piece = pieces_[i]; arrays[piece.weight] != nullptr)
        moments_[i][kind] = arrays[piece.weight] + moment_bytes(kind, piece).first;
    return;
  }
  const auto bytes_of = [&](std::size_t i) {  // aligned, so that vectors do not cross cache lines
    return (static_cast<std::int64_t>(moment_bytes(kind, pieces_[i]).second) + 63) / 64 * 64;
  };
  const auto held = [&](std::size_t i) { return ranks_->owns(i) && type(kind, pieces_[i].weight) != nullptr; };
  std::int64_t total = 0;
  for (std::size_t i = 0; i < pieces_.size(); ++i) total += held(i) ? bytes_of(i) : 0;
  auto* at = static_cast<std::byte*>(memory_.emplace_back(Dtype::boolean, Shape{total}).data());
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    if (!held(i)) continue;
    moments_[i][kind] = at;
    at += bytes_of(i);
  }
}

void Optimizer::Data::plan_whole_updates(Bits bits) {
  std::size_t scratch = 0, sums = 0, parts = 0;
  orthogonal_.resize(weights_.size());
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    const Piece& piece = pieces_[i];
    const Array& weight = weights_[piece.weight].value;
    if (options(piece).eight_bits)
      kernels().of<float>().adam_update_bytes(nullptr, nullptr, {}, 0, {});  // makes tables
    if (!piece.whole || !ranks_->owns(i)) continue;
    const Shape& shape = weight.shape();
    parts = std::max(parts, static_cast<std::size_t>(piece.count / Piece::most + 1));
    if (options(piece).kind == Kind::adafactor) {
      const std::int64_t width = shape.empty() ? 1 : shape.back();
      sums = std::max(sums, static_cast<std::size_t>(width + 2 * (piece.count / width)));
      continue;
    }
    orthogonal_[piece.weight] = std::make_unique<Orthogonal>(weight.dtype(), shape[0], shape[1], threads_, bits);
    scratch = std::max(scratch, weight.bytes() + 64 + orthogonal_[piece.weight]->scratch_bytes());
  }
  sums_.resize(sums);
  parts_.resize(parts);
  scratch_ = Array(Dtype::boolean, {static_cast<std::int64_t>(scratch)});
}

namespace {
/// Throws if `views` do not have one entry for each weight. The entry is the gradient, or empty.
void check_views(const Store& weights, const std::vector<ArrayView>& views) {
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
}  // namespace

const PieceGradients& Optimizer::Data::found(const std::vector<ArrayView>& views) {
  check_views(weights_, views);
  for (std::size_t i = 0; i < weights_.size(); ++i)
    reached_[i] = static_cast<char>(views[i].data() != nullptr && !groups_[group_of_[i]].options.frozen);
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    const Piece& piece = pieces_[i];
    const ArrayView& view = views[piece.weight];
    found_[i] = view.data() == nullptr || options(piece).frozen
                    ? nullptr
                    : static_cast<const std::byte*>(view.data()) +
                          (view.layout().offset + piece.begin) * static_cast<std::int64_t>(size_of(view.dtype()));
  }
  return found_;
}

// The public class.

Optimizer::Optimizer(const Store& weights, const OptimizerOptions& options, int threads)
    : data_(new Data(weights, {{"*", options}}, threads)) {}

double Optimizer::update(const std::vector<ArrayView>& gradients, double rate, double scale, double clip) {
  const PieceGradients& found = data_->found(gradients);
  return data_->update(found, data_->reached(), rate, scale, clip);
}

const Store& Optimizer::state() const {
  data_->forget_bounds();  // the caller may write to the moments
  return data_->state();
}

std::int64_t Optimizer::updates() const {
  const Array& updates = data_->updates();
  const auto* begin = updates.as<std::int64_t>();
  return updates.count() == 0 ? 0 : *std::max_element(begin, begin + updates.count());
}

}  // namespace xtape
