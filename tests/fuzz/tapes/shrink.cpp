#include "shrink.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "record.hpp"
#include "xtape/error.hpp"

namespace xtape::fuzz {

namespace {
using Steps = std::vector<Step>;

/// Calls f on every ref that is read: by steps, bodies, outputs and carries.
template <class F>
void for_each_ref(Steps& steps, const F& f) {
  for (Step& step : steps) {
    for (Term& term : step.operands)
      if (auto* ref = std::get_if<Ref>(&term)) f(*ref);
    for (Block& block : step.body) {
      for_each_ref(block.steps, f);
      for (Ref& ref : block.results) f(ref);
    }
  }
}
template <class F>
void for_each_ref(Program& program, const F& f) {
  for_each_ref(program.steps, f);
  for (Ref& ref : program.outputs) f(ref);
  for (auto& [input, ref] : program.carries) f(ref);
}

/// Calls f on the lists of steps, the inner ones first.
template <class F>
void for_each_list(Steps& steps, const F& f) {
  for (Step& step : steps)
    for (Block& block : step.body) for_each_list(block.steps, f);
  f(steps);
}

/// Removes steps that are not used.
void prune(Program& program) {
  for (bool again = true; again;) {
    again = false;
    std::set<int> read;
    for_each_ref(program, [&](Ref ref) { read.insert(ref.step); });
    for (const auto& [input, ref] : program.carries) read.insert(input);
    for_each_list(program.steps, [&](Steps& steps) {
      const auto kept =
          std::remove_if(steps.begin(), steps.end(), [&](const Step& step) { return read.count(step.id) == 0; });
      again |= kept != steps.end();
      steps.erase(kept, steps.end());
    });
  }
}

std::vector<int> ids_in(Program program) {
  std::vector<int> ids;
  for_each_list(program.steps, [&](Steps& steps) {
    for (const Step& step : steps) ids.push_back(step.id);
  });
  std::sort(ids.rbegin(), ids.rend());
  return ids;
}

/// The list that contains the step with that id, and the step's index in it.
std::pair<Steps*, std::size_t> find(Program& program, int id) {
  std::pair<Steps*, std::size_t> found{nullptr, 0};
  for_each_list(program.steps, [&](Steps& steps) {
    for (std::size_t i = 0; i < steps.size(); ++i)
      if (steps[i].id == id) found = {&steps, i};
  });
  return found;
}

class Shrinker {
 public:
  Shrinker(const Program& program, const Failure& failure, int most)
      : best_{program, failure}, check_(check_named(failure.check)), left_(most) {}

  Shrunk run() {
    prune(best_.program);
    types();
    for (bool changed = true; changed && left_ > 0;) {
      changed = fewer_outputs();
      changed = fewer_calls() || changed;
      changed = plainer_calls() || changed;
      changed = smaller_sizes() || changed;
    }
    return best_;
  }

 private:
  static std::string kind(const Failure& failure) { return failure.what.substr(0, 24); }
  static bool throws(const Failure& failure) { return failure.what.rfind("throws: ", 0) == 0; }

  /// Whether the candidate fails the same check as the best program; if so, it becomes the best program.
  bool attempt(Program candidate) {
    if (left_ <= 0) return false;
    --left_;
    prune(candidate);
    if (candidate.outputs.empty()) return false;
    try {
      Subject subject(candidate.mode, Floats::as_written);
      record(candidate, subject);
    } catch (const Error&) {
      return false;
    }
    const auto failure = first_failure(recipe_of(candidate), {check_});
    if (!failure || throws(*failure) != throws(best_.failure)) return false;
    if (throws(*failure) && kind(*failure) != kind(best_.failure)) return false;
    best_ = {candidate, *failure};
    types();
    return true;
  }

  void types() {
    Subject subject(best_.program.mode, Floats::as_written);
    types_ = record(best_.program, subject);
  }

  bool fewer_outputs() {
    bool smaller = false;
    for (const Ref ref : std::vector<Ref>(best_.program.outputs)) {
      if (best_.program.outputs.size() == 1) break;
      Program candidate = best_.program;
      candidate.outputs = {ref};
      if (attempt(candidate)) return true;
    }
    for (std::size_t i = best_.program.outputs.size(); i-- > 0 && best_.program.outputs.size() > 1;) {
      Program candidate = best_.program;
      candidate.outputs.erase(candidate.outputs.begin() + static_cast<std::ptrdiff_t>(i));
      smaller |= attempt(candidate);
    }
    for (std::size_t i = best_.program.carries.size(); i-- > 0;) {
      Program candidate = best_.program;
      candidate.carries.erase(candidate.carries.begin() + static_cast<std::ptrdiff_t>(i));
      smaller |= attempt(candidate);
    }
    return smaller;
  }

  /// Replaces each call by an operand of the same type or by a source, and a checkpoint by the steps of its body.
  bool fewer_calls() {
    bool smaller = false;
    for (const int id : ids_in(best_.program)) {
      Program program = best_.program;
      const auto [list, at] = find(program, id);
      if (list == nullptr || (*list)[at].is_source()) continue;
      const Step step = (*list)[at];
      smaller |= step_out(step) || body_out(step) || source_in(step);
    }
    return smaller;
  }

  bool step_out(const Step& step) {
    for (const Term& term : step.operands) {
      const auto* operand = std::get_if<Ref>(&term);
      if (operand == nullptr) continue;
      Program candidate = best_.program;
      bool all = true;
      for_each_ref(candidate, [&](Ref& ref) {
        if (ref.step != step.id) return;
        all &= types_.at(ref) == types_.at(*operand);
        ref = *operand;
      });
      if (all && attempt(candidate)) return true;
    }
    return false;
  }

  bool body_out(const Step& step) {
    if (step.op != "checkpoint") return false;
    Program candidate = best_.program;
    const auto [list, at] = find(candidate, step.id);
    const Block block = step.body[0];
    list->erase(list->begin() + static_cast<std::ptrdiff_t>(at));
    list->insert(list->begin() + static_cast<std::ptrdiff_t>(at), block.steps.begin(), block.steps.end());
    for_each_ref(candidate, [&](Ref& ref) {
      if (ref.step == step.id) ref = block.results[static_cast<std::size_t>(ref.output)];
    });
    for_each_ref(candidate, [&](Ref& ref) {
      for (std::size_t i = 0; i < block.arguments.size(); ++i)
        if (ref.step == block.arguments[i]) ref = std::get<Ref>(step.operands[i]);
    });
    return attempt(candidate);
  }

  bool source_in(const Step& step) {
    Program candidate = best_.program;
    std::map<int, Step> sources;
    for_each_ref(candidate, [&](Ref& ref) {
      if (ref.step != step.id) return;
      Step& source = sources[ref.output];
      source.id = 1000000 + step.id * 100 + ref.output;
      source.type = types_.at(ref);
      source.numbers.seed = static_cast<std::uint64_t>(source.id);
      if (!is_floating(source.type.dtype)) source.numbers.low = 0;
      ref = {source.id, 0};
    });
    const auto [list, at] = find(candidate, step.id);
    const bool inside = list != &candidate.steps;
    for (auto& [output, source] : sources) {
      source.op = inside ? "constant" : "input";
      list->insert(list->begin() + static_cast<std::ptrdiff_t>(at), source);
    }
    return attempt(candidate);
  }

  /// Tries default attributes, inputs instead of parameters, mode eval, and ordinary numbers.
  bool plainer_calls() {
    bool smaller = false;
    Program calm = best_.program;
    calm.mode = Mode::eval;
    if (best_.program.mode == Mode::train) smaller |= attempt(calm);
    for (const int id : ids_in(best_.program)) {
      const auto changed = [&](const std::function<bool(Step&)>& change) {
        Program candidate = best_.program;
        const auto [list, at] = find(candidate, id);
        if (list != nullptr && change((*list)[at])) smaller |= attempt(candidate);
      };
      changed([](Step& step) { return std::exchange(step.numbers.levels, 0) != 0; });
      changed([](Step& step) { return step.op == "parameter" && !std::exchange(step.op, "input").empty(); });
      changed([](Step& step) {
        if (step.is_source() || step.body.size() > 0 || step.op == "grad") return false;
        return !std::exchange(step.attributes, Attributes()).items().empty();
      });
      changed([](Step& step) {
        const bool mostly = step.op == "scan" && step.attributes.get<bool>("reverse");
        if (mostly) step.attributes.set("reverse", false);
        return mostly;
      });
      changed([](Step& step) {
        const bool masked = step.op == "scan" && step.attributes.get<bool>("valid");
        if (masked) step.attributes.set("valid", false), step.operands.pop_back();
        return masked;
      });
    }
    return smaller;
  }

  /// Replaces one size by another in the whole program, and removes axes of sources.
  bool smaller_sizes() {
    bool smaller = false;
    std::set<std::int64_t> sizes;
    for (const auto& [ref, type] : types_)
      for (const std::int64_t size : type.shape) sizes.insert(size);
    for (auto size = sizes.rbegin(); size != sizes.rend(); ++size)
      for (const std::int64_t less : {std::int64_t{1}, std::int64_t{2}, *size / 2, *size - 1})
        if (less > 0 && less < *size && attempt(resized(*size, less))) {
          smaller = true;
          break;
        }
    return smaller;
  }

  Program resized(std::int64_t size, std::int64_t less) const {
    Program candidate = best_.program;
    for_each_list(candidate.steps, [&](Steps& steps) {
      for (Step& step : steps) {
        for (std::int64_t& own : step.type.shape)
          if (own == size) own = less;
        Attributes attributes;
        for (const auto& [name, value] : step.attributes.items()) {
          Attribute changed = value;
          if (auto* list = std::get_if<std::vector<std::int64_t>>(&changed))
            std::replace(list->begin(), list->end(), size, less);
          attributes.set(name, changed);
        }
        step.attributes = attributes;
      }
    });
    return candidate;
  }

  Shrunk best_;
  Check check_;
  int left_;
  std::map<Ref, ValueType> types_;
};
}  // namespace

Check check_named(const std::string& name) {
  for (const Check& check : all_checks())
    if (check.name == name) return check;
  throw Error("unknown check '" + name + "'");
}

Shrunk shrink(const Program& program, const Failure& failure, int most) {
  return Shrinker(program, failure, most).run();
}

}  // namespace xtape::fuzz
