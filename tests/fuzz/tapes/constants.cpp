// Compares derivatives by constants with derivatives by inputs. A call may copy the value of a literal, but must refer
// to a constant of the program.
#include <algorithm>

#include "differences.hpp"
#include "function.hpp"
#include "nestings.hpp"
#include "oracles.hpp"
#include "xtape/grad.hpp"
#include "xtape/ops.hpp"

namespace xtape::fuzz {

namespace {
using Result = std::optional<std::string>;

constexpr std::uint64_t weights_seed = 11, direction_seed = 23;

/// The first and second derivatives of the outputs, backward and forward.
Vars derivatives(Tape tape, const Vars& outputs, const Vars& by) {
  const auto gradients = [&](const Vars& of) {
    return grad(of, by, numbers_like(tape, of, weights_seed), {.materialize_grads = true});
  };
  const auto tangents = [&](const Vars& of) { return jvp(of, by, numbers_like(tape, by, direction_seed)); };
  const Vars first = gradients(outputs);
  Vars all = outputs;
  for (const Vars& more : {first, tangents(outputs), gradients(first), tangents(first)})
    all.insert(all.end(), more.begin(), more.end());
  return all;
}

std::vector<Array> played(const Tape& tape, const Vars& vars, const std::vector<Feed>& feeds, bool passes,
                          const std::shared_ptr<Arena>& arena) {
  PlayerOptions options;
  options.threads = 1;
  options.seed = 7;
  options.arena = arena;
  if (!passes) options.passes = Passes::reference();
  Player player(tape, vars, options);
  player.play(feeds, 0);
  std::vector<Array> found;
  for (const Var& var : vars) found.emplace_back(player.view(var));
  return found;
}

bool is_stale(const Var& var) {
  try {
    var.id();
    return false;
  } catch (const HandleError&) {
    return true;
  }
}

/// The derivatives of the program by all of its sources that are outside of bodies, which are constants or inputs.
/// Empty if there are no such sources or outputs.
std::vector<Array> by_sources(Trial& trial, Sources sources, Floats floats, bool passes) {
  const Function function(trial.recipe(), sources, floats);
  const auto differs = [](const Var& var) { return is_stale(var) || var.dtype() != Dtype::float64; };
  Vars by = function.subject.sources, outputs = function.outputs;
  std::erase_if(by, differs);
  std::erase_if(outputs, differs);
  if (by.empty() || outputs.empty()) return {};
  const Tape& tape = function.subject.tape;
  return played(tape, derivatives(tape, outputs, by), function.subject.feeds(0), passes, trial.arena());
}

/// Memory may not suffice for second derivatives of losses over thousands of classes.
bool lacks_memory(const Error& error) {
  return std::string(error.what()).find("out of memory") != std::string::npos;
}

/// A nesting of the program, in which some of its values come from outside of the functions that are transformed.
class OutsideValues {
 public:
  OutsideValues(const Function& function, Random& random) : program_(function.subject.tape) {
    std::vector<ValueId> results;
    for (const Var& output : function.outputs) results.push_back(output.id());
    program_.set_results(results);
    const auto feeds = function.subject.feeds(0);
    bool any = false;
    for (const ValueId& id : program_.inputs()) {
      const auto is_fed = [&](const Feed& feed) { return feed.var.id() == id; };
      arrays_.emplace_back(std::find_if(feeds.begin(), feeds.end(), is_fed)->values);
      const bool is_float = is_floating(arrays_.back().dtype()) && arrays_.back().count() > 0;
      is_argument_.push_back(is_float && (!any || random.one_in(2)));
      any |= is_float;
    }
  }

  /// The results of the nesting, and their derivatives by the values from outside, which are constants or inputs. One
  /// of them is a number. `moved`: all values differ by about rounding.
  std::vector<Array> run(const Nesting& nesting, Random random, bool constants, bool moved,
                         const std::shared_ptr<Arena>& arena) const {
    Tape tape = program_.blank();
    std::vector<Array> arrays = arrays_;
    arrays.emplace_back(Dtype::float64, Shape{});
    arrays.back().as<double>()[0] = 1.25;
    Vars all, arguments, by;
    std::vector<Feed> feeds;
    for (std::size_t i = 0; i < arrays.size(); ++i) {
      const bool is_argument = i < is_argument_.size() && is_argument_[i];
      for (int level = 0; is_argument && level < nesting.maps(); ++level)
        arrays[i] = spread(arrays[i], 0.03 * (level + 1));
      if (moved) arrays[i] = beside(arrays[i]);
      const bool is_input = is_argument || !constants;
      all.push_back(is_input ? tape.input("in" + std::to_string(i), arrays[i].shape(), arrays[i].dtype())
                             : tape.constant(arrays[i]));
      if (is_input) feeds.emplace_back(all.back(), arrays[i]);
      if (is_argument)
        arguments.push_back(all.back());
      else if (arrays[i].dtype() == Dtype::float64 && arrays[i].count() > 0)
        by.push_back(all.back());
    }
    const Var scale = all.back();
    const Mapping f = [&](const Vars& x) {
      Vars inputs(all.begin(), all.end() - 1);
      for (std::size_t i = 0, next = 0; i < inputs.size(); ++i)
        if (is_argument_[i]) inputs[i] = x[next++] * scale;
      return inline_body(tape, program_, inputs);
    };
    Vars results = nesting.of(f, &random)(arguments);
    for (Var& each : results) each = each * scale;
    return played(tape, derivatives(tape, results, by), feeds, random.one_in(2), arena);
  }

 private:
  Tape program_;
  std::vector<Array> arrays_;
  std::vector<bool> is_argument_;
};
}  // namespace

Check by_constants(std::uint64_t seed) {
  return {"derivatives by constants", [seed](Trial& trial) -> Result {
            const bool passes = Random(seed).one_in(2);
            std::vector<Array> inputs, moved;
            try {
              inputs = by_sources(trial, Sources::inputs, Floats::twofold, passes);
              if (inputs.empty()) return std::nullopt;
              moved = by_sources(trial, Sources::inputs, Floats::nudged, passes);
            } catch (const Error&) {  // it mixes widths and cannot be recorded in one width, or has no derivative
              return std::nullopt;
            }
            return beyond_rounding(inputs, by_sources(trial, Sources::constants, Floats::twofold, passes), moved);
          }};
}

Check nested_by_constants(std::uint64_t seed) {
  return {"nested derivatives by constants", [seed](Trial& trial) -> Result {
            const auto function = function_of(trial.recipe());
            if (!function) return std::nullopt;
            Random random(seed);
            const Nesting nesting = Nesting::drawn(random);
            if (draws_or_is_full(function->subject.tape, 2 * nesting.levels.size())) return std::nullopt;
            const OutsideValues values(*function, random);
            try {
              const std::vector<Array> inputs = values.run(nesting, random, false, false, trial.arena());
              const std::vector<Array> moved = values.run(nesting, random, false, true, trial.arena());
              const std::vector<Array> constants = values.run(nesting, random, true, false, trial.arena());
              const Result what = beyond_rounding(inputs, constants, moved);
              return what ? nesting.name() + ": " + *what : what;
            } catch (const Error& error) {
              if (lacks_memory(error)) return std::nullopt;
              throw;
            }
          }};
}

}  // namespace xtape::fuzz
