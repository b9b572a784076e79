// Compares nested transformations of a program with others that must give the same values, and with differences.
#include <algorithm>
#include <cmath>
#include <sstream>

#include "function.hpp"
#include "nestings.hpp"
#include "oracles.hpp"
#include "xtape/grad.hpp"
#include "xtape/ops.hpp"

namespace xtape::fuzz {

namespace {
using Result = std::optional<std::string>;

/// What a play of a nesting gives.
struct Values {
  std::vector<Array> first, other;  ///< The results of the first writing and of another.
  std::vector<Array> moved;         ///< Those of the first on inputs that differ by about rounding.
  Result slope;                     ///< How the tangent of the results differs from differences of them, if it does.
};

/// How the second output of a player, the slope of the first along `direction`, differs from differences of the first.
/// A kink between the points makes it differ at one place, so this asks at two.
Result differs_from_differences(Player& player, const Vars& all, const Vars& outputs, const std::vector<Array>& arrays,
                                const std::vector<Array>& direction) {
  const auto value = [&](double place, double step) {
    std::vector<Array> moved;
    std::vector<Feed> feeds;
    moved.reserve(arrays.size());
    for (std::size_t k = 0; k < arrays.size(); ++k) {
      moved.emplace_back(ArrayView(arrays[k]));  // a copy
      for (std::int64_t i = 0; i < direction[k].count(); ++i)
        moved[k].as<double>()[i] += (place + step) * direction[k].as<double>()[i];
      feeds.emplace_back(all[k], moved[k]);
    }
    player.play(feeds);
    return player.scalar(outputs[0]);
  };
  Result failed;
  for (const double place : {0.0, 0.01}) {
    const double rounding = 1e-15 * std::abs(value(place, 0)) / 1e-6;  // of the finest difference
    const double recorded = player.scalar(outputs[1]);
    const auto difference = [&](double step) { return (value(place, step) - value(place, -step)) / (2 * step); };
    const double coarse = difference(1e-4), fine = difference(2e-5), finest = difference(1e-6);
    const double spread = std::abs(coarse - fine) + std::abs(fine - finest);
    const double tolerance = 1e-4 * (1 + std::abs(recorded)) + 10 * spread + rounding;
    if (!std::isfinite(spread) || !std::isfinite(recorded) || std::abs(recorded - fine) <= tolerance)
      return std::nullopt;
    std::ostringstream out;
    out.precision(9);
    out << "the tangent along a direction is " << recorded << ", by differences " << fine;
    failed = out.str();
  }
  return failed;
}

Values played(const Function& function, const Nesting& nesting, Random& random, const std::shared_ptr<Arena>& arena) {
  Tape program = function.subject.tape;
  std::vector<ValueId> results;
  for (const Var& output : function.outputs) results.push_back(output.id());
  program.set_results(results);
  Tape tape = program.blank();
  std::vector<Array> arrays, moved;
  Vars all, varying;
  std::vector<std::size_t> places;  // of the varying inputs
  const auto feeds = function.subject.feeds(0);
  for (const ValueId& id : program.inputs()) {
    const auto is_fed = [&](const Feed& feed) { return feed.var.id() == id; };
    arrays.emplace_back(std::find_if(feeds.begin(), feeds.end(), is_fed)->values);
    moved.push_back(arrays.back());
    const bool varies = is_floating(arrays.back().dtype()) && arrays.back().count() > 0;
    if (varies) {
      for (int i = 0; i < nesting.maps(); ++i) arrays.back() = spread(arrays.back(), 0.03 * (i + 1));
      moved.back() = beside(arrays.back());
      places.push_back(all.size());
    }
    all.push_back(tape.input("in" + std::to_string(all.size()), arrays.back().shape(), arrays.back().dtype()));
    if (varies) varying.push_back(all.back());
  }
  const Mapping f = [&](const Vars& x) {
    Vars inputs = all;
    for (std::size_t i = 0; i < places.size(); ++i) inputs[places[i]] = x[i];
    return inline_body(tape, program, inputs);
  };
  const Vars first = nesting.of(f, nullptr)(varying), other = nesting.of(f, &random)(varying);
  PlayerOptions options;
  options.threads = 1;
  options.arena = arena;
  const auto values = [&](const Vars& vars, const std::vector<Array>& fed) {
    Player player(tape, vars, options);
    std::vector<Feed> given;
    for (std::size_t i = 0; i < all.size(); ++i) given.emplace_back(all[i], fed[i]);
    player.play(given);
    std::vector<Array> found;
    for (const Var& var : vars) found.emplace_back(player.view(var));
    return found;
  };
  Values result{values(first, arrays), {}, values(first, moved), {}};
  if (!withholds(program) && random.one_in(3)) {
    std::vector<Array> direction(arrays.size(), Array(Dtype::float64, {0}));
    Vars along;
    for (std::size_t i = 0; i < places.size(); ++i) {
      direction[places[i]] = made(varying[i].type(), {-1, 1, 23 + i}, 0);
      along.push_back(tape.constant(direction[places[i]]));
    }
    const Var total = inner(first, numbers_like(tape, first, 11));
    const Vars outputs = {total, jvp({total}, varying, along)[0]};
    Player player(tape, outputs, options);
    result.slope = differs_from_differences(player, all, outputs, arrays, direction);
  }
  if (random.one_in(2)) options.passes = Passes::reference();
  result.other = values(other, arrays);
  return result;
}
}  // namespace

Check nested(std::uint64_t seed) {
  return {"nested transformations", [seed](Trial& trial) -> Result {
            const auto function = function_of(trial.recipe());
            if (!function) return std::nullopt;
            Random random(seed);
            const Nesting nesting = Nesting::drawn(random);
            // An alternative may map twice at each level.
            if (draws_or_is_full(function->subject.tape, 2 * nesting.levels.size())) return std::nullopt;
            Values values;
            try {
              values = played(*function, nesting, random, trial.arena());
            } catch (const Error& error) {  // a derivative of a loss over thousands of classes
              if (std::string(error.what()).find("out of memory") != std::string::npos) return std::nullopt;
              throw;
            }
            if (values.slope) return nesting.name() + ": " + *values.slope;
            const Result what = beyond_rounding(values.first, values.other, values.moved);
            return what ? nesting.name() + ": " + *what : what;
          }};
}

}  // namespace xtape::fuzz
