#include "differences.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "xtape/error.hpp"

namespace xtape::fuzz {

namespace {
double element(const Array& array, std::int64_t i) {
  switch (array.dtype()) {
    case Dtype::float32:
      return static_cast<double>(array.as<float>()[i]);
    case Dtype::float64:
      return array.as<double>()[i];
    case Dtype::int32:
      return array.as<std::int32_t>()[i];
    case Dtype::int64:
      return static_cast<double>(array.as<std::int64_t>()[i]);
    case Dtype::bfloat16:
      return array.as<bfloat16>()[i];
    case Dtype::float16:
      return array.as<float16>()[i];
    case Dtype::int8:
      return array.as<std::int8_t>()[i];
    default:
      return array.as<bool>()[i] ? 1 : 0;
  }
}

bool any_node(const Tape& tape, const std::function<bool(const Node&)>& is) {
  for (std::size_t i = 0; i < tape.size(); ++i)
    if (is(tape.node(i)) || (tape.node(i).body && any_node(*tape.node(i).body, is))) return true;
  return false;
}

/// The relative difference of output `k` of a play between two ways of playing.
double apart(Trial& trial, const Way& a, const Way& b, std::size_t play, std::size_t k) {
  const auto difference =
      furthest(as_doubles(trial.played(a).values[play][k]), as_doubles(trial.played(b).values[play][k]), 0);
  return difference ? difference->relative : 0;
}
}  // namespace

std::string Difference::described(const std::string& first, const std::string& second) const {
  std::ostringstream out;
  out.precision(17);
  out << "element " << place << " is " << a << " (" << first << ") and " << b << " (" << second << "), apart by ";
  out.precision(3);
  out << relative;
  return out.str();
}

Array beside(const Array& array) {
  Array moved(ArrayView{array});  // a copy
  for (std::int64_t i = 0; array.dtype() == Dtype::float64 && i < moved.count(); ++i)
    moved.as<double>()[i] *= 1 + (i % 2 == 0 ? 1e-13 : -1e-13);
  return moved;
}

std::optional<std::string> beyond_rounding(const std::vector<Array>& first, const std::vector<Array>& other,
                                           const std::vector<Array>& moved) {
  for (std::size_t k = 0; k < first.size(); ++k) {
    const Array& a = first[k];
    std::ostringstream out;
    out.precision(17);
    out << "result " << k;
    if (a.shape() != other[k].shape()) return out.str() + ": the shapes differ";
    double largest = 0, noise = 0;
    bool finite = true;
    for (std::int64_t i = 0; i < a.count(); ++i) {
      const double x = a.as<double>()[i];
      finite = finite && std::isfinite(x);
      largest = std::max(largest, std::abs(x));
      noise = std::max(noise, std::abs(x - moved[k].as<double>()[i]));
    }
    if (!finite || !std::isfinite(noise)) continue;
    for (std::int64_t i = 0; i < a.count(); ++i) {
      const double x = a.as<double>()[i], y = other[k].as<double>()[i];
      if (std::abs(x - y) <= 1e-9 * (1 + largest) + 1000 * noise || !std::isfinite(y)) continue;
      out << ", element " << i << ": " << x << ", in another way " << y;
      return out.str();
    }
  }
  return std::nullopt;
}

Array as_doubles(const ArrayView& view) {
  const Array dense(view);
  Array result(Dtype::float64, dense.shape());
  for (std::int64_t i = 0; i < dense.count(); ++i) result.as<double>()[i] = element(dense, i);
  return result;
}

std::optional<Difference> furthest(const Array& a, const Array& b, double tolerance) {
  const bool exact = !is_floating(a.dtype());
  double scale = 1;
  if (!exact)
    for (std::int64_t i = 0; i < b.count(); ++i)
      if (const double size = std::abs(element(b, i)); std::isfinite(size)) scale = std::max(scale, size);
  Difference worst;
  bool found = false;
  for (std::int64_t i = 0; i < b.count(); ++i) {
    const double x = element(a, i), y = element(b, i);
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    const double off = std::abs(x - y) / scale;
    const double relative = std::isnan(off) ? HUGE_VAL : off;
    if (found && relative <= worst.relative) continue;
    found = true;
    worst = {i, x, y, relative};
  }
  if (!found || (!exact && worst.relative <= tolerance)) return std::nullopt;
  return worst;
}

bool comparable_widths(Trial& trial) {
  try {
    trial.subject(Floats::single);
    return !any_node(trial.subject(Floats::twofold).tape, [](const Node& node) {
      const std::string& op = node.op->name;
      const bool jumps = (op == "mod" || op == "floor_divide") && is_floating(node.outputs[0].dtype);
      return jumps || (node.op->random && op != "dropout" && op != "bernoulli");
    });
  } catch (const Error&) {
    return false;
  }
}

bool rounding_flips(Trial& trial) {
  const Subject& subject = trial.subject();
  return std::any_of(subject.carries.begin(), subject.carries.end(),
                     [](const Carry& carry) { return is_floating(carry.input.dtype()); }) &&
         any_node(subject.tape, [](const Node& node) {
           return !node.op->is_source() && !std::all_of(node.outputs.begin(), node.outputs.end(),
                                                        [](const auto& type) { return is_floating(type.dtype); });
         });
}

double tolerance_of(Trial& trial, std::size_t play, std::size_t k) {
  // A float64 value may be a float32 value that was cast.
  const bool single = any_node(trial.subject(Floats::as_written).tape, [](const Node& node) {
    return std::any_of(node.outputs.begin(), node.outputs.end(),
                       [](const ValueType& type) { return type.dtype == Dtype::float32; });
  });
  // The precision of float32 is 2^29 times coarser, and so is the effect of rounding.
  // What large values leave where they cancel is not in proportion to the change of the inputs.
  double coarse = 1e-3, fine = 0;
  try {
    for (std::size_t each = 0; !single && each < plays; ++each)
      fine = std::max(fine, apart(trial, reference(Floats::nudged), reference(Floats::twofold), each, k));
    coarse = apart(trial, reference(Floats::single), reference(Floats::twofold), play, k) + noise_of(trial, play, k);
  } catch (const Error&) {  // the program mixes widths and cannot be recorded in one width
  }
  // Not less, because an output may be a sum of thousands of values that are zero except for rounding.
  // Carried values take the rounding of earlier plays along, in which other errors cancel than in this one.
  const double carried = trial.subject().carries.empty() ? 1 : 100;
  return single ? carried * 1e-5 + 100 * coarse : carried * 1e-10 + 1e-5 * coarse + 3 * fine;
}

double noise_of(Trial& trial, std::size_t play, std::size_t k) {
  return apart(trial, reference(Floats::moved), reference(Floats::twofold), play, k);
}

}  // namespace xtape::fuzz
