#include <algorithm>
#include <atomic>
#include <cmath>
#include <numeric>
#include <set>

#include "base/arrays/elements.hpp"
#include "base/arrays/visit.hpp"
#include "base/blocks/block_formats.hpp"
#include "base/messages/wording.hpp"
#include "base/threads/threads.hpp"
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
  auto* numbers = result.numbers.as<std::int8_t>();
  const std::int64_t length = weight.shape().back(), step = places.strides.back(), of_scale = result.scale.count();
  Shape outer = weight.shape();
  outer.erase(outer.size() - 1);
  // Calls visit(first element, the place of its scale) for rows of elements, whose scales are `step` apart.
  const auto each_row = [&](std::int64_t begin, std::int64_t finish, const auto& visit) {
    for (std::int64_t row = begin; row < finish; ++row) {
      const std::vector<std::int64_t> index = index_of(row, outer);
      visit(row * length, std::inner_product(index.begin(), index.end(), places.strides.begin(), std::int64_t{0}));
    }
  };
  const int threads = thread_count();
  const std::int64_t rows = count_of(outer), grain = (1 << 14) / std::max<std::int64_t>(1, length) + 1;
  std::vector<T> greatest(static_cast<std::size_t>(threads * of_scale));  // of each thread
  std::atomic<bool> finite = true;
  parallel_pieces(threads, rows, grain, [&](std::int64_t begin, std::int64_t finish, std::int64_t worker) {
    T* own = greatest.data() + worker * of_scale;
    each_row(begin, finish, [&](std::int64_t first, std::int64_t place) {
      T sum = 0;  // not finite if a number is not
      for (std::int64_t i = 0; i < length; ++i) {
        T& most = own[place + i * step];
        most = std::max(most, std::abs(from[first + i]));
        sum += 0 * from[first + i];
      }
      if (sum != 0) finite = false;
    });
  });
  if (!finite) throw Error("weight '" + name + "' has NaN or infinity and cannot be stored as int8");
  constexpr T most = 127;
  for (std::int64_t i = 0; i < of_scale; ++i) {
    for (int worker = 0; worker < threads; ++worker) scales[i] = std::max(scales[i], greatest[worker * of_scale + i]);
    scales[i] /= most;
  }
  parallel_for(threads, rows, grain, [&](std::int64_t begin, std::int64_t finish) {
    each_row(begin, finish, [&](std::int64_t first, std::int64_t place) {
      for (std::int64_t i = 0; i < length; ++i) {
        const T scale = scales[place + i * step], number = from[first + i];
        numbers[first + i] =
            scale > 0 ? static_cast<std::int8_t>(std::clamp(std::nearbyint(number / scale), -most, most)) : 0;
      }
    });
  });
  return result;
}
}  // namespace

Shape shape_of_scale(const Shape& weight, const Axes& channels) {
  Shape shape = Shape::filled(weight.size(), 1);
  for (const std::int64_t axis : channels) shape[axis] = weight[axis];
  return shape;
}

Var weight_on(Tape& tape, const ModelContext& context, const std::string& name) {
  const Var stored = tape.parameter(context.store, name);
  if (stored.dtype() == Dtype::int8) return dequantize(stored, tape.parameter(context.store, scale_name(name)));
  const Var numbers = stored.dtype() == context.dtype ? stored : cast(stored, context.dtype);
  const auto order = context.orders.find(name);
  if (order == context.orders.end()) return numbers;
  std::vector<std::int64_t> back(order->second.size());
  for (std::size_t i = 0; i < back.size(); ++i) back[order->second[i]] = static_cast<std::int64_t>(i);
  return transpose(numbers, back);
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

std::optional<BlockStorage> block_storage(const Shape& weight, const Axes& channels, Dtype wanted) {
  BlockStorage storage{wanted, channels};
  std::int64_t terms = 1;
  for (std::size_t i = 0; i < weight.size(); ++i) {
    if (contains(channels, static_cast<std::int64_t>(i))) continue;
    storage.order.push_back(static_cast<std::int64_t>(i));
    terms *= weight[i];
  }
  if (terms == 0 || terms % block_of(Dtype::q8_0) != 0) return std::nullopt;
  if (terms % block_of(wanted) != 0) storage.dtype = Dtype::q8_0;
  return storage;
}

Array as_blocks(const Array& weight, Dtype dtype, const Axes& order) {
  Layout places = Layout::dense(weight.shape());
  for (std::size_t i = 0; i < order.size(); ++i) {
    places.shape[i] = weight.shape()[order[i]];
    places.strides[i] = dense_strides(weight.shape())[order[i]];
  }
  const Array turned = places.contiguous() ? Array() : Array(ArrayView(weight.data(), weight.dtype(), places));
  Array blocks(dtype, places.shape);
  const BlockFormat& format = *find_block_format(name_of(dtype));
  auto* to = static_cast<std::byte*>(blocks.data());
  std::atomic<bool> fits = true;
  visit_floats(turned ? turned : weight, [&](const auto* from) {
    constexpr std::int64_t grain = 16, piece = 16;  // blocks
    parallel_for(thread_count(), weight.count() / format.elements, grain, [&](std::int64_t begin, std::int64_t finish) {
      std::vector<float> numbers(static_cast<std::size_t>(piece * format.elements));
      for (std::int64_t at = begin; at < finish; at += piece) {
        const std::int64_t some = std::min(piece, finish - at), count = some * format.elements;
        for (std::int64_t i = 0; i < count; ++i) numbers[i] = static_cast<float>(from[at * format.elements + i]);
        constexpr float most = 65504;  // the largest float16
        if (std::all_of(numbers.begin(), numbers.begin() + count, [](float x) { return std::abs(x) <= most; }))
          format.encode(numbers.data(), to + at * format.bytes, some);
        else
          fits = false;
      }
    });
  });
  return fits ? blocks : Array();
}

Array numbers_of(const Array& blocks, const Axes& order) {
  Array numbers = numbers_of_blocks(blocks);
  if (order.empty()) return numbers;
  Layout places = Layout::dense(numbers.shape());
  for (std::size_t i = 0; i < order.size(); ++i) {
    places.shape[order[i]] = numbers.shape()[i];
    places.strides[order[i]] = dense_strides(numbers.shape())[i];
  }
  return Array(ArrayView(numbers.data(), numbers.dtype(), places));
}

Quantised as_int8(const std::string& name, const Array& weight, const Axes& channels) {
  return weight.dtype() == Dtype::float64 ? quantised<double>(name, weight, channels)
                                          : quantised<float>(name, weight, channels);
}

}  // namespace model

namespace {
/// Converts a weight to bfloat16 or float16. If `convert` is false, the new array is zero.
Array narrow_half(const std::string& name, const Array& weight, Dtype dtype, bool convert) {
  if (!convert) return {dtype, weight.shape()};
  Array half = model::as_half(weight, dtype);
  if (!half)
    throw Error("weight '" + name + "' has numbers beyond the range of " + name_of(dtype) +
                (dtype == Dtype::float16 ? ", 65504: store the weights as bfloat16" : ""));
  return half;
}

Array narrow_blocks(const std::string& name, const Array& weight, const model::BlockStorage& storage, bool convert) {
  if (!convert) {
    Shape shape;
    for (const std::int64_t axis : storage.order) shape.push_back(weight.shape()[axis]);
    return {storage.dtype, shape};
  }
  Array blocks = model::as_blocks(weight, storage.dtype, storage.order);
  if (!blocks)
    throw Error("weight '" + name + "' has NaN, infinity or numbers beyond 65504, and cannot be stored as " +
                name_of(storage.dtype));
  return blocks;
}
}  // namespace

std::optional<Dtype> WeightDtypes::of(const std::string& weight) const {
  for (const auto& [pattern, dtype] : rows_)
    if (model::matches_weight(weight, {pattern})) return dtype;
  return std::nullopt;
}

void Model::store_weights_as(const WeightDtypes& dtypes) {
  narrow_weights(dtypes, true);
}

void Model::allocate_weights_as(const WeightDtypes& dtypes) {
  narrow_weights(dtypes, false);
}

/// If `convert` is false, the new arrays are zero instead of converted.
void Model::narrow_weights(const WeightDtypes& dtypes, bool convert) {
  for (const auto& row : dtypes.rows())
    if (const Dtype dtype = row.second;
        dtype != this->dtype() && !is_half(dtype) && dtype != Dtype::int8 && !is_block(dtype))
      throw DtypeError(std::string("weights are stored as ") + name_of(this->dtype()) +
                       ", bfloat16, float16, int8 or in blocks (Q8_0, Q4_0, Q4_K, Q5_K or Q6_K), not " +
                       name_of(dtype));
  Store& store = data_->context.store;
  for (const Store::Entry& entry : store) {
    const Dtype stored = entry.value.dtype();
    const std::optional<Dtype> wanted = stored == this->dtype() ? std::nullopt : dtypes.of(entry.name);
    // Sums that are not whole blocks of 256 numbers were stored as Q8_0 in place of another format.
    if (!wanted || stored == *wanted || (stored == Dtype::q8_0 && is_block(*wanted))) continue;
    if (!is_block(stored) || !convert)
      throw DtypeError(std::string("the weights are stored as ") + name_of(stored) + " and cannot become " +
                       name_of(*wanted));
    const auto order = data_->context.orders.find(entry.name);
    const Array numbers = model::numbers_of(entry.value, order == data_->context.orders.end() ? Axes{} : order->second);
    Array wide(this->dtype(), numbers.shape());
    convert_floats(numbers, wide);
    store.set(entry.name, wide);
    data_->context.orders.erase(entry.name);
    data_->players.clear();
  }
  if (std::ranges::all_of(dtypes.rows(), [&](const auto& row) { return row.second == this->dtype(); })) return;
  Store narrow;  // built completely before the model changes
  std::map<std::string, Axes> orders = data_->context.orders;
  for (const auto& [name, channels] : model::narrowable_weights(*this)) {
    const Array weight = store.at(name);
    const Dtype dtype = dtypes.of(name).value_or(this->dtype());
    if (is_half(dtype)) {
      narrow.add(name, narrow_half(name, weight, dtype, convert));
    } else if (is_block(dtype)) {
      const auto storage = model::block_storage(weight.shape(), channels, dtype);
      if (!storage) continue;
      narrow.add(name, narrow_blocks(name, weight, *storage, convert));
      if (!std::is_sorted(storage->order.begin(), storage->order.end())) orders[name] = storage->order;
    } else if (dtype == Dtype::int8) {
      Array scale(weight.dtype(), model::shape_of_scale(weight.shape(), channels));
      model::Quantised quantised =
          convert ? model::as_int8(name, weight, channels) : model::Quantised{Array(dtype, weight.shape()), scale};
      narrow.add(name, std::move(quantised.numbers));
      narrow.add(model::scale_name(name), std::move(quantised.scale));
    }
  }
  for (const Store::Entry& entry : narrow) store.set(entry.name, Array(entry.value));
  data_->context.orders = std::move(orders);
  data_->players.clear();
}

}  // namespace xtape
