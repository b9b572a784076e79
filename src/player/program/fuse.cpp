// Applies the rules of the tape's op table to a program.
#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "player/program/passes.hpp"
#include "rewrite/fusions.hpp"

namespace xtape {

namespace {
/// Applies the rules to the forward pass. Merges each fused call with the equal call that `grad` recorded for its
/// gradient.
class Fuse {
 public:
  explicit Fuse(Program& program, bool finds_misses = false)
      : program_(program),
        fusions_(
            ops_of(program.tape),
            {program.tape, std::vector<bool>(program.tape.size(), true), program.outputs, {}, false, &program.regions},
            finds_misses) {}

  void run() {
    const auto is_marked = [&](std::int32_t index) { return program_.node(index).fused; };
    if (fusions_.found().empty() && std::none_of(program_.order.begin(), program_.order.end(), is_marked)) return;
    find_twins();
    Rewriter rewriter(program_);
    for (const std::int32_t index : program_.order) record(rewriter, index);
    rewriter.finish();
  }

  std::vector<Plan::Fusion> notes() {
    find_twins();
    std::vector<Plan::Fusion> notes;
    const auto note = [&](const FusionRule& rule, std::int32_t root, const std::string& miss) {
      notes.push_back({rule.name, program_.label({root, 0}), to_string(program_.node(root).site), miss});
    };
    for (const Fusion& fusion : fusions_.found())
      note(*fusion.rule, fusion.root, applies(fusion) ? "" : "none of the gradients that it would compute is used");
    for (const NearMiss& miss : fusions_.near_misses())
      note(*miss.rule, miss.root, (miss.elsewhere.node < 0 ? "" : program_.label(miss.elsewhere) + " ") + miss.why);
    return notes;
  }

 private:
  /// The forward fusion that belongs to a fused call recorded by `grad`. Its rule applies to the forward pass, or would
  /// apply if no node outside of the fusion read an interior value.
  struct Twin {
    const Fusion* fusion = nullptr;
    bool prevented = false;  ///< True if the rule does not apply. The call and its gradient are then expanded.
  };

  void find_twins() {
    twins_.resize(program_.tape.size());
    const auto pair = [&](const std::vector<Fusion>& fusions, bool prevented) {
      for (const Fusion& fusion : fusions)
        for (const std::int32_t index : fusions_.recorded_calls(fusion)) {
          Twin& twin = twins_[index];
          if (twin.fusion != nullptr) continue;
          twin = {&fusion, prevented};
          if (prevented) unfused_.insert(program_.node(index).site.key);
          if (fusion.rule->gradients_beforehand && uses_gradients_of(index, fusion)) with_gradients_.insert(&fusion);
        }
    };
    pair(fusions_.found(), false);
    pair(fusions_.prevented(), true);
    for (const Fusion& fusion : fusions_.prevented())  // a program may have a fused gradient but not the fused call
      unfused_.insert(program_.node(fusion.root).site.key);
  }

  /// Returns whether a node reads a gradient that the call computes. Each output of the call is an output of the
  /// fusion's root or a gradient.
  bool uses_gradients_of(std::int32_t index, const Fusion& fusion) {
    if (!users_) users_.emplace(program_);
    for (std::size_t k = 0; k < program_.node(index).outputs.size(); ++k) {
      const ValueId id{index, static_cast<std::int32_t>(k)};
      const auto at_root = [&](const auto& output) { return output.second == id.output; };
      if (!users_->of(id).empty() && std::none_of(fusion.outputs.begin(), fusion.outputs.end(), at_root)) return true;
    }
    return false;
  }

  bool applies(const Fusion& fusion) const {
    return !fusion.rule->gradients_beforehand || with_gradients_.count(&fusion) != 0;
  }

  /// Returns whether `grad` fused a call whose forward pass is not fused.
  bool is_undone(const Node& node) const { return node.fused && node.op->expand && unfused_.count(node.site.key) != 0; }

  void record(Rewriter& rewriter, std::int32_t index) {
    const Node& node = program_.node(index);
    const Fusion* fusion = fusions_.at(index);
    const Twin& twin = twins_[index];
    if (fusion != nullptr && applies(*fusion)) {
      const auto in_site = rewriter.tape().in_site(node.site);
      const Vars fused = record_fusion(*fusion, rewriter.tape(), [&](ValueId id) { return rewriter.var(id); });
      for (const auto& [of_root, of_call] : fusion->outputs) rewriter.replace({index, of_root}, fused[of_call]);
      recorded_.emplace(fusion, fused);
      rewriter.close(index);
    } else if (twin.fusion != nullptr && !twin.prevented && applies(*twin.fusion)) {
      const Vars& fused = recorded_.at(twin.fusion);
      for (std::size_t k = 0; k < node.outputs.size(); ++k)
        rewriter.replace({index, static_cast<std::int32_t>(k)}, fused[k]);
    } else if (is_undone(node)) {
      expand_node(rewriter, index);
      if (twin.fusion != nullptr)
        for (const auto& [of_root, of_call] : twin.fusion->outputs)
          rewriter.replace({index, of_call}, rewriter.var({twin.fusion->root, of_root}));
    } else {
      rewriter.keep(index);
    }
  }

  Program& program_;
  std::optional<Users> users_;  // for rules that compute gradients in the forward pass
  Fusions fusions_;
  std::vector<Twin> twins_;
  std::unordered_set<std::uint64_t> unfused_;  // keys of the sites whose forward pass is not fused
  std::unordered_set<const Fusion*> with_gradients_;
  std::unordered_map<const Fusion*, Vars> recorded_;
};
}  // namespace

void fuse_pass(Program& program) {
  program.compact();  // the search for rules goes from the last node of the tape to the first
  Fuse(program).run();
}

std::vector<Plan::Fusion> notes_on_rules(Program& program) {
  program.compact();
  return Fuse(program, true).notes();
}

}  // namespace xtape
