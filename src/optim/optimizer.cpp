// The optimiser: its options, the pieces of its weights, and their moments. update.cpp makes an update.
#include "optim/optimizer.hpp"

#include <fnmatch.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/threads/threads.hpp"

namespace xtape {

bool matches_pattern(const std::string& name, const std::string& pattern) {
  return fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
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
  if (options.kind == Kind::sgd) {
    below_one(options.momentum, "momentum");
    if (options.nesterov && options.momentum == 0) throw Error("optimizer: nesterov needs a momentum above 0");
  } else {
    below_one(options.beta1, "beta1");
    below_one(options.beta2, "beta2");
    if (!(static_cast<float>(options.epsilon) > 0)) throw Error("optimizer: epsilon must be above 0, in float32 too");
  }
  if (!(options.weight_decay >= 0)) throw Error("optimizer: weight_decay must not be negative");
  if (options.rate && !(*options.rate >= 0 && std::isfinite(*options.rate)))
    throw Error("optimizer: the rate of a group must be at least 0 and finite, got " + std::to_string(*options.rate));
}

constexpr const char* all_kinds[] = {"velocity", "first", "second"};

/// Returns whether an optimiser with these options has moments of this kind.
bool has_kind(const OptimizerOptions& options, const std::string& kind) {
  if (options.frozen) return false;
  return options.kind == Kind::sgd ? kind == all_kinds[0] && options.momentum != 0 : kind != all_kinds[0];
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

void Optimizer::Data::forget_bounds() {
  constexpr double unknown = std::numeric_limits<double>::infinity();
  for (Group& group : groups_) group.bounds = {unknown, unknown, unknown, unknown};
}

Optimizer::Data::Data(const Store& weights, const std::vector<OptimizerGroup>& groups, int threads,
                      std::unique_ptr<UpdateGroup> ranks)
    : threads_(thread_count(threads)),
      weights_(weights),
      pieces_(pieces_of(weights)),
      updates_(Dtype::int64, {static_cast<std::int64_t>(weights.size())}),
      found_(pieces_.size()),
      reached_(weights.size()),
      ranks_(std::move(ranks)) {
  for (const OptimizerGroup& group : groups) {
    check(group.options);
    groups_.push_back({.options = group.options});
  }
  for (const Store::Entry& weight : weights_) {
    const std::size_t group = group_of_.emplace_back(group_of(weight.name, groups));
    if (group == groups.size())
      throw Error("optimizer: no group matches weight '" + weight.name + "': a last one of \"*\" matches all others");
    groups_[group].narrow = groups_[group].narrow || weight.value.dtype() == Dtype::float32;
  }
  forget_bounds();
  for (const char* kind : all_kinds) {
    const auto has = [&](const Group& group) { return has_kind(group.options, kind); };
    if (std::ranges::none_of(groups_, has)) continue;
    kinds_.emplace_back(kind);
    allocate(kinds_.size() - 1);
  }
  state_.add("updates", updates_);
}

bool Optimizer::Data::keeps(std::size_t kind, std::size_t weight) const {
  return has_kind(groups_[group_of_[weight]].options, kinds_[kind]);
}

void Optimizer::Data::allocate(std::size_t kind) {
  std::vector<void*>& moments = moments_.emplace_back(pieces_.size(), nullptr);
  if (ranks_->size() == 1) {
    for (std::size_t i = 0; i < weights_.size(); ++i)
      if (const Array& weight = weights_[i].value; keeps(kind, i))
        state_.add(kinds_[kind] + "." + weights_[i].name, Array(weight.dtype(), weight.shape()));
    for (std::size_t i = 0; i < pieces_.size(); ++i) {
      if (!keeps(kind, pieces_[i].weight)) continue;
      Array array = state_.at(kinds_[kind] + "." + weights_[pieces_[i].weight].name);
      moments[i] =
          static_cast<std::byte*>(array.data()) + pieces_[i].begin * static_cast<std::int64_t>(size_of(array.dtype()));
    }
    return;
  }
  const auto bytes_of = [&](std::size_t i) {
    const auto bytes = pieces_[i].count * static_cast<std::int64_t>(size_of(dtype(pieces_[i])));
    return (bytes + 63) / 64 * 64;  // aligned, so that vectors do not cross cache lines
  };
  const auto held = [&](std::size_t i) { return ranks_->owns(i) && keeps(kind, pieces_[i].weight); };
  std::int64_t total = 0;
  for (std::size_t i = 0; i < pieces_.size(); ++i) total += held(i) ? bytes_of(i) : 0;
  auto* at = static_cast<std::byte*>(memory_.emplace_back(Dtype::boolean, Shape{total}).data());
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    if (!held(i)) continue;
    moments[i] = at;
    at += bytes_of(i);
  }
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
