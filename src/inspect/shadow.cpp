// A play beside itself in float64: the error that each node makes, and that it inherits.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "node_by_node.hpp"
#include "threads.hpp"
#include "xtape/inspect.hpp"

namespace xtape {

namespace {
constexpr std::int64_t chunk = 1 << 14;  // sums are over chunks of this size, so that threads do not change them

/// The sums of f(i) over all elements i.
template <class F>
double sum(std::int64_t count, int threads, const F& f) {
  std::vector<double> parts(static_cast<std::size_t>((count + chunk - 1) / chunk), 0);
  parallel_for(threads, static_cast<std::int64_t>(parts.size()), 1, [&](std::int64_t begin, std::int64_t finish) {
    for (std::int64_t part = begin; part < finish; ++part) {
      double total = 0;
      for (std::int64_t i = part * chunk; i < std::min(count, (part + 1) * chunk); ++i) total += f(i);
      parts[static_cast<std::size_t>(part)] = total;
    }
  });
  double total = 0;
  for (const double part : parts) total += part;
  return total;
}

/// The root mean square of the difference relative to that of `of`.
double relative(const double* a, const double* b, const double* of, std::int64_t count, int threads) {
  const double difference = sum(count, threads, [&](std::int64_t i) {
    const double d = a[i] - b[i];
    return std::isfinite(d) ? d * d : 0;
  });
  if (difference == 0) return 0;
  const double size = sum(count, threads, [&](std::int64_t i) { return std::isfinite(of[i]) ? of[i] * of[i] : 0; });
  return size > 0 ? std::sqrt(difference / size) : HUGE_VAL;
}

class Shadow {
 public:
  explicit Shadow(const RecordedPlay& play)
      : plays_(play),
        program_(plays_.program()),
        threads_(play.options.threads > 0 ? play.options.threads : std::max(1, omp_get_max_threads())) {}

  std::vector<NodeError> run() {
    plays_.play([&](std::int32_t index, const std::vector<Array>& operands, std::vector<Array>& outputs) {
      if (!program_.node(index).op->is_source()) visit(index, operands, outputs);
      return true;
    });
    return std::move(errors_);
  }

 private:
  void visit(std::int32_t index, const std::vector<Array>& operands, const std::vector<Array>& outputs) {
    const Node& node = program_.node(index);
    std::vector<Array> right, local;  // the operands in the play in float64, and those that the node had
    bool inherits = false;
    NodeError found;
    for (std::size_t k = 0; k < operands.size(); ++k) {
      const Array wide = xtape::in_float64(operands[k]);
      const auto error = errors_of_.find(key_of(node.inputs[k]));
      local.push_back(wide);
      right.push_back(error == errors_of_.end() ? wide : with_error(wide, error->second));
      inherits = inherits || error != errors_of_.end();
      const auto total = totals_.find(key_of(node.inputs[k]));
      if (total != totals_.end()) found.of_operands = std::max(found.of_operands, total->second);
    }
    const std::vector<Array> exact = in_float64(node, right);
    const std::vector<Array> alone = inherits ? in_float64(node, local) : exact;
    for (std::size_t k = 0; k < outputs.size(); ++k) {
      const ValueId id{index, static_cast<std::int32_t>(k)};
      NodeError error = found;
      compare(outputs[k], alone[k], exact[k], id, error);
      describe(id, error);
      errors_.push_back(error);
    }
    for (const ValueId id : node.inputs)
      if (plays_.last_user(id) <= index) errors_of_.erase(key_of(id));
  }

  std::vector<Array> in_float64(const Node& node, const std::vector<Array>& operands) const {
    // The operands are float64 already; the node's attributes and body become so.
    const SingleNode single = single_node(program_.tape, node, operands);
    const WidenedTape wide = xtape::in_float64(single.tape, single.outputs);
    return played(wide.tape, wide.vars, plays_.options(), plays_.step());
  }

  Array with_error(const Array& value, const Array& error) const {
    Array sum = value.clone();
    double* elements = sum.as<double>();
    const float* errors = error.as<float>();
    parallel_for(threads_, sum.count(), chunk, [&](std::int64_t begin, std::int64_t finish) {
      for (std::int64_t i = begin; i < finish; ++i) elements[i] += static_cast<double>(errors[i]);
    });
    return sum;
  }

  /// Compares the value with that of the same node in float64 on its own operands, and in the play in float64.
  void compare(const Array& value, const Array& local, const Array& right, ValueId id, NodeError& error) {
    error.elements = value.count();
    if (!is_floating(value.dtype())) {
      for (std::size_t at = 0, size = size_of(value.dtype()); at < value.bytes(); at += size)
        error.flipped += std::memcmp(static_cast<const std::byte*>(value.data()) + at,
                                     static_cast<const std::byte*>(right.data()) + at, size) != 0;
      return;
    }
    const Array wide = xtape::in_float64(value);
    const auto* of = right.as<double>();
    error.made = relative(wide.as<double>(), local.as<double>(), of, value.count(), threads_);
    error.inherited = local.data() == right.data() ? 0 : relative(local.as<double>(), of, of, value.count(), threads_);
    error.total = relative(wide.as<double>(), of, of, value.count(), threads_);
    totals_[key_of(id)] = error.total;
    if (error.total == 0) return;
    Array difference(Dtype::float32, value.shape());
    float* differences = difference.as<float>();
    const double* values = wide.as<double>();
    parallel_for(threads_, value.count(), chunk, [&](std::int64_t begin, std::int64_t finish) {
      for (std::int64_t i = begin; i < finish; ++i) {
        const double d = of[i] - values[i];
        differences[i] = std::isfinite(d) ? static_cast<float>(d) : 0;
      }
    });
    errors_of_[key_of(id)] = difference;
  }

  void describe(ValueId id, NodeError& error) const {
    const Node& node = program_.node(id.node);
    error.node = program_.label(id);
    error.op = node.op->name;
    error.module = node.site.scope ? node.site.scope->path : "";
    error.site = to_string(node.site);
    error.type = to_string(program_.tape.type(id));
  }

  const NodeByNode plays_;
  const Program& program_;
  const int threads_;
  std::map<std::pair<std::int32_t, std::int32_t>, Array> errors_of_;  // what must be added for the value in float64
  std::map<std::pair<std::int32_t, std::int32_t>, double> totals_;
  std::vector<NodeError> errors_;
};
}  // namespace

std::vector<NodeError> shadow(const RecordedPlay& play) {
  return Shadow(play).run();
}

std::vector<NodeError> ranked(std::vector<NodeError> errors, double least) {
  const auto is_less = [&](const NodeError& error) { return !(error.added() > least); };
  errors.erase(std::remove_if(errors.begin(), errors.end(), is_less), errors.end());
  const auto more = [](const NodeError& a, const NodeError& b) { return a.added() > b.added(); };
  std::stable_sort(errors.begin(), errors.end(), more);
  return errors;
}

}  // namespace xtape
