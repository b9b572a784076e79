#include <algorithm>
#include <cmath>
#include <set>

#include "base/arrays/elements.hpp"
#include "base/arrays/visit.hpp"
#include "base/messages/wording.hpp"
#include "model/recording/model_data.hpp"
#include "model/weights/stored_weights.hpp"
#include "xtape/ops.hpp"

namespace xtape {

namespace model {

namespace {
/// Returns the axes of operand `input` along which scales may vary. Scales along such an axis can be applied to the
/// result of the call instead of the operand.
Axes scalable_axes(const Tape& tape, const Node& node, std::size_t input) {
  Axes axes;
  if (!node.op->algebra.scaled) return axes;
  Vars inputs;
  for (const ValueId& id : node.inputs) inputs.push_back(tape.var(id));
  const Shape& shape = inputs[input].shape();
  for (std::size_t i = 0; i < shape.size(); ++i) {
    Shape along = Shape::filled(shape.size(), 1);
    along[i] = shape[i];
    if (!node.op->algebra.scaled(node, inputs, input, ones(tape, along, inputs[input].dtype())).empty())
      axes.push_back(static_cast<std::int64_t>(i));
  }
  return axes;
}

/// Removes from `found` the weights and axes that the nodes of a recorded function do not allow.
void narrow_down(const Tape& tape, std::map<std::string, Axes>& found, std::set<std::string>& used) {
  const std::size_t size = tape.size();  // scalable_axes records more nodes
  for (std::size_t i = 0; i < size; ++i) {
    const Node node = tape.node(i);
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      const Node& source = tape.node(static_cast<std::size_t>(node.inputs[k].node));
      const auto weight = found.find(source.name);
      if (source.op != &parameter_op() || weight == found.end()) continue;
      used.insert(weight->first);
      const Axes axes = scalable_axes(tape, node, k);
      std::erase_if(weight->second, [&](std::int64_t axis) { return !contains(axes, axis); });
    }
  }
}

/// Records a function for small sizes. Returns false if it cannot be recorded for these sizes.
bool records(const Model& model, const std::string& function, Tape& tape) {
  NamedSizes sizes;
  for (const std::string& name : model.signature(function).sizes) sizes.add(name, 2);
  try {
    model.record(tape, function, model.inputs(tape, function, sizes));
    return true;
  } catch (const Error&) {
    return false;
  }
}

template <class T>
Quantised quantised(const std::string& name, const Array& weight, const Axes& channels) {
  const Shape shape = shape_of_scale(weight.shape(), channels);
  Quantised result{Array(Dtype::int8, weight.shape()), Array(weight.dtype(), shape)};
  const Layout places = Layout::dense(shape).broadcast_to(weight.shape());
  const T* from = weight.as<T>();
  T* scales = result.scale.as<T>();
  // Calls visit(element, its scale) in row-major order.
  const auto each = [&](const auto& visit) {
    Shape index = Shape::filled(weight.shape().size(), 0);
    std::int64_t place = 0;
    for (std::int64_t i = 0; i < weight.count(); ++i) {
      visit(i, scales[place]);
      for (std::size_t axis = index.size(); axis-- > 0;) {
        place += places.strides[axis];
        if (++index[axis] < places.shape[axis]) break;
        place -= places.strides[axis] * places.shape[axis];
        index[axis] = 0;
      }
    }
  };
  bool finite = true;
  each([&](std::int64_t i, T& greatest) {
    finite = finite && std::isfinite(from[i]);
    greatest = std::max(greatest, std::abs(from[i]));
  });
  if (!finite) throw Error("weight '" + name + "' has NaN or infinity and cannot be stored as int8");
  constexpr T most = 127;
  for (std::int64_t i = 0; i < result.scale.count(); ++i) scales[i] /= most;
  auto* numbers = result.numbers.as<std::int8_t>();
  each([&](std::int64_t i, T scale) {
    numbers[i] = scale > 0 ? static_cast<std::int8_t>(std::clamp(std::nearbyint(from[i] / scale), -most, most)) : 0;
  });
  return result;
}
}  // namespace

Shape shape_of_scale(const Shape& weight, const Axes& channels) {
  Shape shape = Shape::filled(weight.size(), 1);
  for (const std::int64_t axis : channels) shape[axis] = weight[axis];
  return shape;
}

Var weight_on(Tape& tape, const Store& store, const std::string& name, Dtype dtype) {
  const Var stored = tape.parameter(store, name);
  if (stored.dtype() == Dtype::int8) return dequantize(stored, tape.parameter(store, scale_name(name)));
  return stored.dtype() == dtype ? stored : cast(stored, dtype);
}

std::map<std::string, Axes> narrowable_weights(const Model& model) {
  std::map<std::string, Axes> found;
  for (const Store::Entry& entry : model.weights()) {
    Axes all;
    for (std::size_t i = 0; i < entry.value.shape().size(); ++i) all.push_back(static_cast<std::int64_t>(i));
    if (all.size() >= 2 && entry.value.dtype() == model.dtype()) found.emplace(entry.name, all);
  }
  std::set<std::string> used;
  for (const std::string& function : model.functions())
    if (Tape tape; records(model, function, tape)) narrow_down(tape, found, used);
  std::erase_if(found, [&](const auto& each) { return each.second.empty() || used.count(each.first) == 0; });
  for (auto& [name, axes] : found)
    if (axes.size() == model.weights().at(name).shape().size()) axes = {0};
  return found;
}

Array as_half(const Array& weight, Dtype dtype) {
  Array half(dtype, weight.shape());
  convert_floats(weight, half);
  if (all_finite(half)) return half;
  bool same = true;  // whether the same elements are finite before and after
  visit_floats(weight, [&](const auto* wide) {
    visit_floats(half, [&](const auto* narrow) {
      for (std::int64_t i = 0; i < weight.count(); ++i)
        same = same && std::isfinite(static_cast<double>(wide[i])) == std::isfinite(static_cast<float>(narrow[i]));
    });
  });
  return same ? half : Array();
}

Quantised as_int8(const std::string& name, const Array& weight, const Axes& channels) {
  return weight.dtype() == Dtype::float64 ? quantised<double>(name, weight, channels)
                                          : quantised<float>(name, weight, channels);
}

}  // namespace model

void Model::store_weights_as(Dtype dtype) {
  narrow_weights(dtype, true);
}

/// If `convert` is false, the new arrays are zero instead of converted.
void Model::narrow_weights(Dtype dtype, bool convert) {
  Store& store = data_->context.store;
  for (const Store::Entry& entry : store)
    if (const Dtype stored = entry.value.dtype(); stored != this->dtype() && stored != dtype)
      throw DtypeError(std::string("the weights are stored as ") + name_of(stored) + " and cannot become " +
                       name_of(dtype));
  if (dtype == this->dtype()) return;
  if (!is_half(dtype) && dtype != Dtype::int8)
    throw DtypeError(std::string("weights are stored as ") + name_of(this->dtype()) +
                     ", bfloat16, float16 or int8, not " + name_of(dtype));
  Store narrow;  // built completely before the model changes
  for (const auto& [name, channels] : model::narrowable_weights(*this)) {
    const Array weight = store.at(name);
    if (is_half(dtype)) {
      Array half = convert ? model::as_half(weight, dtype) : Array(dtype, weight.shape());
      if (!half)
        throw Error("weight '" + name + "' has numbers beyond the range of " + name_of(dtype) +
                    (dtype == Dtype::float16 ? ", 65504: store the weights as bfloat16" : ""));
      narrow.add(name, std::move(half));
      continue;
    }
    Array scale(weight.dtype(), model::shape_of_scale(weight.shape(), channels));
    model::Quantised quantised =
        convert ? model::as_int8(name, weight, channels) : model::Quantised{Array(dtype, weight.shape()), scale};
    narrow.add(name, std::move(quantised.numbers));
    narrow.add(model::scale_name(name), std::move(quantised.scale));
  }
  for (const Store::Entry& entry : narrow) store.set(entry.name, Array(entry.value));
  data_->players.clear();
}

}  // namespace xtape
