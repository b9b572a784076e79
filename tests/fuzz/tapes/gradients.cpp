// Compares gradients with central differences, and gradients of gradients with the first gradients.
#include <algorithm>
#include <cmath>
#include <sstream>

#include "differences.hpp"
#include "function.hpp"
#include "oracles.hpp"
#include "xtape/grad.hpp"
#include "xtape/ops.hpp"
#include "xtape/sparse.hpp"

namespace xtape::fuzz {

namespace {
using Result = std::optional<std::string>;

constexpr std::uint64_t weights_seed = 11, direction_seed = 23;

/// The value of the player's first output at x + step * direction.
double moved(Player& player, const Function& function, const Var& output, std::size_t play, double step) {
  std::vector<Array> arrays;
  std::vector<Feed> feeds;
  arrays.reserve(function.subject.inputs.size());
  std::size_t k = 0;
  for (const Feed& feed : function.subject.feeds(play)) {
    arrays.emplace_back(feed.values);
    if (is_floating(feed.var.dtype()) && count_of(feed.var.shape()) > 0) {
      const Array direction = made(feed.var.type(), {-1, 1, direction_seed + k++}, 0);
      for (std::int64_t i = 0; i < direction.count(); ++i)
        arrays.back().as<double>()[i] += step * direction.as<double>()[i];
    }
    feeds.emplace_back(feed.var, arrays.back());
  }
  player.play(feeds, play);
  return player.scalar(output);
}
/// Whether a node of the program makes an infinity or NaN of finite operands.
bool makes_infinities(const Function& function, std::size_t play) {
  const Tape& tape = function.subject.tape;
  std::vector<bool> finite;  // by node: all its outputs
  Vars values;
  std::int32_t last = 0;
  for (const Var& output : function.outputs) last = std::max(last, output.id().node);
  for (std::int32_t i = 0; i <= last; ++i)
    for (std::size_t k = 0; k < tape.node(static_cast<std::size_t>(i)).outputs.size(); ++k)
      values.push_back(tape.var({i, static_cast<std::int32_t>(k)}));
  PlayerOptions options;
  options.threads = 1;
  options.seed = 7;
  options.passes = Passes::reference();
  Player player(tape, values, options);
  player.play(function.subject.feeds(play), play);
  for (const Var& value : values) {
    finite.resize(static_cast<std::size_t>(value.id().node) + 1, true);
    if (!is_floating(value.dtype())) continue;
    const Array array = as_doubles(player.view(value));
    if (!std::all_of(array.as<double>(), array.as<double>() + array.count(), [](double x) { return std::isfinite(x); }))
      finite.back() = false;
  }
  for (std::int32_t i = 0; i <= last; ++i) {
    const Node& node = tape.node(static_cast<std::size_t>(i));
    const auto is_finite = [&](ValueId id) { return finite[static_cast<std::size_t>(id.node)]; };
    if (!finite[static_cast<std::size_t>(i)] && !node.op->is_source() &&
        std::all_of(node.inputs.begin(), node.inputs.end(), is_finite))
      return true;
  }
  return false;
}
}  // namespace

Check finite_differences() {
  return {"finite differences", [](Trial& trial) -> Result {
            const auto function = function_of(trial.recipe());
            if (!function || withholds(function->subject.tape)) return std::nullopt;
            const Tape& tape = function->subject.tape;
            const Var f = inner(function->outputs, numbers_like(tape, function->outputs, weights_seed));
            const Vars slopes = grad(f, function->inputs, {.materialize_grads = true});
            const Var slope = inner(slopes, numbers_like(tape, function->inputs, direction_seed));
            PlayerOptions options;
            options.threads = 1;
            options.seed = 7;
            options.arena = trial.arena();
            Player player(tape, {f, slope}, options);
            // A kink or a jump between the points makes one play disagree; a wrong gradient disagrees in both plays.
            Result failed;
            for (std::size_t play = 0; play < 2; ++play) {
              moved(player, *function, f, play, 0);
              const double recorded = player.scalar(slope);
              const auto difference = [&](double step) {
                return (moved(player, *function, f, play, step) - moved(player, *function, f, play, -step)) /
                       (2 * step);
              };
              // Differences with a third step show that the steps are too wide, as for `mod` by a tiny number.
              const double coarse = difference(1e-4), fine = difference(2e-5), finest = difference(1e-6);
              const double spread = std::abs(coarse - fine) + std::abs(fine - finest);
              const double tolerance = 1e-4 * (1 + std::abs(recorded)) + 10 * spread;
              if (!std::isfinite(spread) || std::abs(recorded - fine) <= tolerance) return std::nullopt;
              // With infinite intermediate values, the output can be finite and the gradient NaN.
              if (std::isnan(recorded) && makes_infinities(*function, play)) return std::nullopt;
              std::ostringstream out;
              out.precision(9);
              out << "along a direction: by the gradient " << recorded << ", by differences " << fine;
              failed = out.str();
            }
            return failed;
          }};
}

Check adjoint() {
  return {"<J v, u> = <v, J' u>", [](Trial& trial) -> Result {
            const auto function = function_of(trial.recipe());
            if (!function) return std::nullopt;
            const Tape& tape = function->subject.tape;
            const Vars u = numbers_like(tape, function->outputs, weights_seed);
            const Vars v = numbers_like(tape, function->inputs, direction_seed);
            const Vars back = grad(function->outputs, function->inputs, u, {.materialize_grads = true});
            const Var first = inner(back, v);
            const Var second = inner(grad(first, u, {.materialize_grads = true}), u);
            const Var forward = inner(jvp(function->outputs, function->inputs, v), u);
            Vars sizes;
            for (const Var& gradient : back) sizes.push_back(abs(gradient));
            Vars ones;
            for (const Var& gradient : back) ones.push_back(ones_like(gradient));
            const Var scale = inner(sizes, ones);
            PlayerOptions options;
            options.threads = 1;
            options.seed = 7;
            options.arena = trial.arena();
            Player player(tape, {first, second, forward, scale}, options);
            player.play(function->subject.feeds(0), 0);
            const double a = player.scalar(first), b = player.scalar(second), c = player.scalar(forward);
            if (!std::isfinite(a) || !std::isfinite(b)) return std::nullopt;
            const double tolerance = 1e-8 * (1 + player.scalar(scale));
            if (std::abs(a - b) <= tolerance && (std::abs(a - c) <= tolerance || !std::isfinite(c)))
              return std::nullopt;
            std::ostringstream out;
            out.precision(17);
            out << "<v, J' u> is " << a << ", <J v, u> is " << b << ", by jvp " << c;
            return out.str();
          }};
}

Check sparse_as_dense() {
  return {"sparse as dense Jacobians", [](Trial& trial) -> Result {
            const auto function = function_of(trial.recipe());
            if (!function) return std::nullopt;
            const Tape& tape = function->subject.tape;
            for (std::size_t i = 0; i < tape.size(); ++i)  // vmap needs one axis more
              for (const ValueType& type : tape.node(i).outputs)
                if (type.shape.size() == Shape::max_rank) return std::nullopt;
            constexpr std::int64_t most = 2000;
            std::vector<SparseMatrix> sparse;
            Vars outputs = function->outputs, played;
            const Var f = inner(outputs, numbers_like(tape, outputs, weights_seed));
            for (const Var& slope : grad(f, function->inputs, {.materialize_grads = true})) outputs.push_back(slope);
            for (const Var& output : outputs)
              for (const Var& input : function->inputs) {
                if (output.rank() + input.rank() > Shape::max_rank) continue;
                if (count_of(output.shape()) > most / count_of(input.shape())) continue;
                sparse.push_back(sparse_jacobian(output, input));
                played.push_back(sparse.back().values);
                played.push_back(jacobian(output, input));
              }
            for (const Var& input : function->inputs) {
              if (2 * input.rank() > Shape::max_rank || count_of(input.shape()) > 40) continue;
              sparse.push_back(sparse_hessian(f, input));
              played.push_back(sparse.back().values);
              played.push_back(hessian(f, input));
            }
            if (played.empty()) return std::nullopt;
            PlayerOptions options;
            options.threads = 1;
            options.seed = 7;
            options.arena = trial.arena();
            Player player(tape, played, options);
            for (std::size_t play = 0; play < 2; ++play) {
              player.play(function->subject.feeds(play), play);
              for (std::size_t k = 0; k < sparse.size(); ++k) {
                const SparsityPattern& pattern = sparse[k].pattern;
                const Array values(player.view(played[2 * k])), dense(player.view(played[2 * k + 1]));
                const double* elements = dense.as<double>();
                double largest = 0;
                for (std::int64_t i = 0; i < dense.count(); ++i) largest = std::max(largest, std::abs(elements[i]));
                const auto is_finite = [](double x) { return std::isfinite(x); };
                if (!std::all_of(elements, elements + dense.count(), is_finite)) continue;
                std::vector<double> found(static_cast<std::size_t>(dense.count()), 0);
                for (std::size_t i = 0; i < pattern.size(); ++i)
                  found[static_cast<std::size_t>(pattern.rows[i] * pattern.shape[1] + pattern.columns[i])] =
                      values.as<double>()[i];
                for (std::size_t i = 0; i < found.size(); ++i) {
                  if (std::abs(found[i] - elements[i]) <= 1e-7 * (1 + largest)) continue;
                  std::ostringstream out;
                  out.precision(9);
                  out << "matrix " << k << ", element " << i << " of " << dense.shape() << ": sparse " << found[i]
                      << ", dense " << elements[i];
                  return out.str();
                }
              }
            }
            return std::nullopt;
          }};
}

}  // namespace xtape::fuzz
