// Compares nested transformations of a program with others that must give the same values.
#include <algorithm>
#include <cmath>
#include <sstream>

#include "function.hpp"
#include "oracles.hpp"
#include "random.hpp"
#include "xtape/derivatives.hpp"
#include "xtape/grad.hpp"
#include "xtape/ops.hpp"
#include "xtape/scan.hpp"
#include "xtape/vmap.hpp"

namespace xtape::fuzz {

namespace {
using Result = std::optional<std::string>;
using Mapping = std::function<Vars(const Vars&)>;

constexpr std::int64_t batch = 2;
constexpr std::int64_t few = 12;  // elements, for which a gradient is a tangent for each of them

/// A way of writing a transformation of a function.
using Writing = Vars (*)(const Mapping& f, const Vars& x, std::uint64_t seed);

struct Transformation {
  const char* name;
  bool maps;  ///< Takes and gives a batch of what the function takes and gives.
  std::vector<Writing> writings;
};

std::int64_t elements_of(const Vars& vars) {
  std::int64_t count = 0;
  for (const Var& var : vars) count += count_of(var.shape());
  return count;
}

/// The function's sum with fixed weights.
Var weighted(const Mapping& f, const Vars& x, std::uint64_t seed) {
  const Vars y = f(x);
  return inner(y, numbers_like(x[0].tape(), y, seed));
}

Vars by_grad(const Mapping& f, const Vars& x, std::uint64_t seed) {
  return grad(weighted(f, x, seed), x, {.materialize_grads = true});
}
/// The gradient, from a tangent for each element of the inputs.
Vars by_tangents(const Mapping& f, const Vars& x, std::uint64_t seed) {
  if (elements_of(x) > few) return by_grad(f, x, seed);
  return jacobian(weighted(f, x, seed), x, {.mode = JacobianMode::forward});
}
/// The gradient of the function inside of a checkpoint.
Vars by_grad_of_checkpoint(const Mapping& f, const Vars& x, std::uint64_t seed) {
  return by_grad([&](const Vars& inner) { return checkpoint(f, inner); }, x, seed);
}

Vars by_jvp(const Mapping& f, const Vars& x, std::uint64_t seed) {
  return jvp(f(x), x, numbers_like(x[0].tape(), x, seed));
}
/// The tangent as the derivative of <v, J' u> by u.
Vars by_two_grads(const Mapping& f, const Vars& x, std::uint64_t seed) {
  const Vars y = f(x);
  Vars u;
  for (const Var& each : y) u.push_back(zeros_like(each) * 1.0);
  const Var product = inner(grad(y, x, u, {.materialize_grads = true}), numbers_like(x[0].tape(), x, seed));
  return grad(product, u, {.materialize_grads = true});
}

Vars by_vmap(const Mapping& f, const Vars& x, std::uint64_t) {
  return vmap(f, x);
}
Vars by_loop(const Mapping& f, const Vars& x, std::uint64_t) {
  std::vector<Vars> examples;
  for (std::int64_t i = 0; i < batch; ++i) {
    Vars example;
    for (const Var& each : x) example.push_back(squeeze(slice(each, {i}, {i + 1}), {0}));
    examples.push_back(f(example));
  }
  Vars all;
  for (std::size_t k = 0; k < examples[0].size(); ++k) {
    Vars rows;
    for (const Vars& example : examples) rows.push_back(example[k]);
    all.push_back(stack(rows));
  }
  return all;
}
Vars by_scan(const Mapping& f, const Vars& x, const ScanOptions& options) {
  return scan([&](const Vars& slices, const Vars&) { return std::pair(f(slices), Vars()); }, x, {}, options).outputs;
}
Vars by_plain_scan(const Mapping& f, const Vars& x, std::uint64_t) {
  ScanOptions options;
  options.axis = 0;
  return by_scan(f, x, options);
}
Vars by_scan_in_segments(const Mapping& f, const Vars& x, std::uint64_t) {
  ScanOptions options;
  options.axis = 0;
  options.checkpoint_every = {1};
  return by_scan(f, x, options);
}

Vars as_it_is(const Mapping& f, const Vars& x, std::uint64_t) {
  return f(x);
}
Vars by_checkpoint(const Mapping& f, const Vars& x, std::uint64_t) {
  return checkpoint(f, x);
}

const std::vector<Transformation>& transformations() {
  static const std::vector<Transformation> all = {
      {"grad", false, {by_grad, by_tangents, by_grad_of_checkpoint}},
      {"jvp", false, {by_jvp, by_two_grads}},
      {"vmap", true, {by_vmap, by_loop, by_plain_scan, by_scan_in_segments}},
      {"checkpoint", false, {as_it_is, by_checkpoint}}};
  return all;
}

/// A nesting of transformations, from the inside out.
struct Nesting {
  std::vector<const Transformation*> levels;

  std::string name() const {
    std::string text;
    for (const Transformation* level : levels) text = std::string(level->name) + (text.empty() ? "" : "(" + text + ")");
    return text;
  }
  /// The nesting of `f`, each level in a drawn writing; the first writing of each if `random` is null.
  Mapping of(Mapping f, Random* random) const {
    std::uint64_t seed = 31;
    for (const Transformation* level : levels) {
      const Writing writing = random == nullptr ? level->writings[0] : random->pick(level->writings);
      f = [inner = std::move(f), writing, seed](const Vars& x) { return writing(inner, x, seed); };
      seed += 100;
    }
    return f;
  }
  int maps() const {
    return static_cast<int>(
        std::count_if(levels.begin(), levels.end(), [](const Transformation* level) { return level->maps; }));
  }
};

/// Whether a node draws random numbers, which differ from call to call, or has so many axes that it cannot be mapped.
bool draws_or_is_full(const Tape& tape, std::size_t more_axes) {
  for (std::size_t i = 0; i < tape.size(); ++i) {
    const Node& node = tape.node(i);
    if (node.op->random || (node.body && draws_or_is_full(*node.body, more_axes))) return true;
    for (const ValueType& type : node.outputs)
      if (type.shape.size() + more_axes > Shape::max_rank) return true;
  }
  return false;
}

/// `array` for each of a batch, each example a little larger than the one before.
Array spread(const Array& array, double by) {
  Shape shape = array.shape();
  shape.insert(0, batch);
  Array all(array.dtype(), shape);
  for (std::int64_t i = 0; i < all.count(); ++i)
    all.as<double>()[i] = array.as<double>()[i % array.count()] * (1 + by * static_cast<double>(i / array.count()));
  return all;
}

/// The results of the first writing, of another, and of the first on inputs that differ by about rounding.
struct Values {
  std::vector<Array> first, other, moved;
};

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
      moved.back() = Array(arrays.back().dtype(), arrays.back().shape());
      for (std::int64_t i = 0; i < moved.back().count(); ++i)
        moved.back().as<double>()[i] = arrays.back().as<double>()[i] * (1 + (i % 2 == 0 ? 1e-13 : -1e-13));
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
  Values result{values(first, arrays), {}, values(first, moved)};
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
            Nesting nesting;
            for (std::int64_t depth = random.between(1, 3); depth > 0; --depth)
              nesting.levels.push_back(&random.pick(transformations()));
            // An alternative may map twice at each level.
            if (draws_or_is_full(function->subject.tape, 2 * nesting.levels.size())) return std::nullopt;
            const Values values = played(*function, nesting, random, trial.arena());
            for (std::size_t k = 0; k < values.first.size(); ++k) {
              const Array &a = values.first[k], &b = values.other[k], &moved = values.moved[k];
              if (a.shape() != b.shape()) return nesting.name() + ": the shapes differ";
              double largest = 0, noise = 0;
              bool finite = true;
              for (std::int64_t i = 0; i < a.count(); ++i) {
                const double x = a.as<double>()[i];
                finite = finite && std::isfinite(x);
                largest = std::max(largest, std::abs(x));
                noise = std::max(noise, std::abs(x - moved.as<double>()[i]));
              }
              if (!finite || !std::isfinite(noise)) continue;
              for (std::int64_t i = 0; i < a.count(); ++i) {
                const double x = a.as<double>()[i], y = b.as<double>()[i];
                if (std::abs(x - y) <= 1e-9 * (1 + largest) + 1000 * noise || !std::isfinite(y)) continue;
                std::ostringstream out;
                out.precision(17);
                out << nesting.name() << ", output " << k << ", element " << i << ": " << x << ", in another way " << y;
                return out.str();
              }
            }
            return std::nullopt;
          }};
}

}  // namespace xtape::fuzz
