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

/// Sums of squares: of the values in float64, and of three differences.
struct Squares {
  double values = 0, made = 0, inherited = 0, total = 0;

  void operator+=(const Squares& other) {
    values += other.values;
    made += other.made;
    inherited += other.inherited;
    total += other.total;
  }
  /// The root mean square of a difference relative to that of the values.
  double relative(double differences) const {
    return differences == 0 ? 0 : values == 0 ? HUGE_VAL : std::sqrt(differences / values);
  }
};

/// Compares a value with that of its node in float64 alone, and with the value of the play in float64. Writes to
/// `error` what must be added to the value for the latter.
template <class T>
Squares compared(const T* value, const double* alone, const double* exact, float* error, std::int64_t count,
                 int threads) {
  std::vector<Squares> parts(static_cast<std::size_t>((count + chunk - 1) / chunk));
  const auto square = [](double difference) { return std::isfinite(difference) ? difference * difference : 0; };
  parallel_for(threads, static_cast<std::int64_t>(parts.size()), 1, [&](std::int64_t begin, std::int64_t finish) {
    for (std::int64_t part = begin; part < finish; ++part) {
      Squares sums;
      for (std::int64_t i = part * chunk; i < std::min(count, (part + 1) * chunk); ++i) {
        const double total = exact[i] - static_cast<double>(value[i]);
        sums.values += square(exact[i]);
        sums.made += square(alone[i] - static_cast<double>(value[i]));
        sums.inherited += square(exact[i] - alone[i]);
        sums.total += square(total);
        error[i] = std::isfinite(total) ? static_cast<float>(total) : 0;
      }
      parts[static_cast<std::size_t>(part)] = sums;
    }
  });
  Squares sums;
  for (const Squares& part : parts) sums += part;
  return sums;
}

Squares compared(const Array& value, const Array& alone, const Array& exact, Array& error, int threads) {
  const auto compare = [&](const auto* elements) {
    return compared(elements, alone.as<double>(), exact.as<double>(), error.as<float>(), value.count(), threads);
  };
  return value.dtype() == Dtype::float32   ? compare(value.as<float>())
         : value.dtype() == Dtype::float64 ? compare(value.as<double>())
                                           : compare(value.as<bfloat16>());
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
    std::vector<Array> right, local;  // the operands in float64: of the play in float64, and those that the node had
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
  void compare(const Array& value, const Array& alone, const Array& exact, ValueId id, NodeError& error) {
    error.elements = value.count();
    if (!is_floating(value.dtype())) {
      for (std::size_t at = 0, size = size_of(value.dtype()); at < value.bytes(); at += size)
        error.flipped += std::memcmp(static_cast<const std::byte*>(value.data()) + at,
                                     static_cast<const std::byte*>(exact.data()) + at, size) != 0;
      return;
    }
    Array difference(Dtype::float32, value.shape());
    const Squares squares = compared(value, alone, exact, difference, threads_);
    error.made = squares.relative(squares.made);
    error.inherited = squares.relative(squares.inherited);
    error.total = squares.relative(squares.total);
    totals_[key_of(id)] = error.total;
    if (error.total > 0) errors_of_[key_of(id)] = difference;
  }

  void describe(ValueId id, NodeError& error) const {
    const Node& node = program_.node(id.node);
    error.node = program_.label(id);
    error.op = node.op->name;
    error.module = node.site.scope ? node.site.scope->path : "";
    error.site = to_string(node.site);
    error.type = to_string(program_.tape.type(id));
    error.is_read = plays_.last_user(id) >= 0;
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
