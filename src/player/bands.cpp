#include "bands.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "passes.hpp"

namespace xtape {

// The order ----------------------------------------------------------------------------------------------------------

namespace {
class Follow {
 public:
  explicit Follow(const Program& program)
      : program_(program), users_(users_of(program.tape)), kept_(program.tape.size(), false), rewriter_(program) {}

  Program run() {
    for (std::size_t i = 0; i < kept_.size(); ++i) {
      if (kept_[i]) continue;
      keep(static_cast<std::int32_t>(i));
      while (!asked_.empty()) {
        const auto [user, index] = asked_.back();
        asked_.pop_back();
        if (may_follow(user, index)) keep(user);
      }
    }
    return rewriter_.finish();
  }

 private:
  void keep(std::int32_t index) {
    const auto i = static_cast<std::size_t>(index);
    rewriter_.keep(index);
    kept_[i] = true;
    const Kind kind = program_.node(index).op->kind;
    if (kind == Kind::source || kind == Kind::view) return;
    const auto& users = users_[i][0];
    for (auto user = users.rbegin(); user != users.rend(); ++user) asked_.emplace_back(*user, index);
  }

  /// What is computed long before it is wanted takes up memory: only few nodes are overtaken.
  bool may_follow(std::int32_t user, std::int32_t index) const {
    constexpr std::int32_t farthest = 6;
    const auto u = static_cast<std::size_t>(user);
    const Node& node = program_.node(user);
    return !kept_[u] && user - index <= farthest && (runs_in_tiles(*node.op) || node.op->row_by_row) &&
           program_.regions[u] == program_.regions[static_cast<std::size_t>(index)] &&
           std::all_of(node.inputs.begin(), node.inputs.end(),
                       [&](ValueId id) { return kept_[static_cast<std::size_t>(id.node)]; });
  }

  const Program& program_;
  std::vector<std::vector<std::vector<std::int32_t>>> users_;
  std::vector<bool> kept_;
  std::vector<std::pair<std::int32_t, std::int32_t>> asked_;  // (user, what it reads): whether it may follow, last first
  Rewriter rewriter_;
};
}  // namespace

Program follow_pass(const Program& program) { return Follow(program).run(); }

// The steps ----------------------------------------------------------------------------------------------------------

namespace {
/// What the steps of a group read and write, while steps join.
class Group {
 public:
  explicit Group(const PlannedStep& leader) : elements_(leader.out[0].dense_elements) {
    const Kernel& kernel = leader.kernel;
    if (elements_ == 0 || !(kernel.band || kernel.run_in_bands)) return;
    open_ = true;
    fixed_step_ = static_cast<bool>(kernel.run_in_bands);
    step_ = kernel.band_step;
    for (const Spot& spot : leader.in) {
      if (contains({leader.out[0]}, spot)) continue;  // a band that is written over is not read again
      (fixed_step_ || !in_bands(spot) ? whole_ : read_).push_back(spot);
    }
    for (std::size_t k = 0; k < leader.out.size(); ++k)
      (fixed_step_ && k > 0 ? unfinished_ : written_).push_back(leader.out[k]);
  }

  bool takes(const PlannedStep& step) const {
    if (!open_ || !step.kernel.band || step.out[0].dense_elements != elements_) return false;
    if (fixed_step_ && step_ % step.kernel.band_step != 0) return false;
    bool follows = false;
    for (const Spot& spot : step.in) {
      if (touches(unfinished_, spot)) return false;
      if (!touches(written_, spot)) continue;
      if (!in_bands(spot) || !contains(written_, spot)) return false;
      follows = true;
    }
    const auto apart = [&](const std::vector<Spot>& spots, const Spot& spot) {
      return !touches(spots, spot) || (in_bands(spot) && contains(spots, spot));
    };
    return follows && std::all_of(step.out.begin(), step.out.end(), [&](const Spot& spot) {
             return !touches(whole_, spot) && !touches(unfinished_, spot) && apart(read_, spot) && apart(written_, spot);
           });
  }

  void add(const PlannedStep& follower) {
    for (const Spot& spot : follower.in) (in_bands(spot) ? read_ : whole_).push_back(spot);
    written_.insert(written_.end(), follower.out.begin(), follower.out.end());
    if (!fixed_step_) step_ = std::lcm(step_, follower.kernel.band_step);
  }

  std::int64_t band_step() const { return step_; }

 private:
  bool in_bands(const Spot& spot) const { return spot.dense_elements == elements_; }
  static bool touches(const std::vector<Spot>& spots, const Spot& spot) {
    return std::any_of(spots.begin(), spots.end(), [&](const Spot& other) { return other.buffer == spot.buffer; });
  }
  /// Whether it is one of them, just so, and all that lie in its buffer are.
  static bool contains(const std::vector<Spot>& spots, const Spot& spot) {
    bool found = false;
    for (const Spot& other : spots) {
      if (other.buffer != spot.buffer) continue;
      if (other.byte_offset != spot.byte_offset || other.dense_elements != spot.dense_elements) return false;
      found = true;
    }
    return found;
  }

  std::int64_t elements_;
  bool open_ = false;
  bool fixed_step_ = false;  // the leader says where bands end
  std::int64_t step_ = 1;
  std::vector<Spot> written_, read_;  // band by band
  std::vector<Spot> whole_;           // read, but not so
  std::vector<Spot> unfinished_;      // written by the leader, ready at its end alone
};

void append(PlannedStep& leader, PlannedStep follower) {
  leader.op += " > " + follower.op;
  leader.types.insert(leader.types.end(), follower.types.begin(), follower.types.end());
  leader.cost += follower.cost;
  leader.followers.push_back(std::move(follower));
}
}  // namespace

std::vector<PlannedStep> join_bands(std::vector<PlannedStep> steps) {
  std::vector<PlannedStep> joined;
  for (std::size_t i = 0; i < steps.size();) {
    Group group(steps[i]);
    std::size_t next = i + 1;
    for (; next < steps.size() && group.takes(steps[next]); ++next) group.add(steps[next]);
    PlannedStep leader = std::move(steps[i]);
    leader.band_step = group.band_step();
    for (std::size_t k = i + 1; k < next; ++k) append(leader, std::move(steps[k]));
    joined.push_back(std::move(leader));
    i = next;
  }
  return joined;
}

}  // namespace xtape
