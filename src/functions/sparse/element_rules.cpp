// The rules for elementwise ops, products, running sums, and calls about which nothing is known.
#include <algorithm>

#include "base/arrays/visit.hpp"
#include "base/messages/wording.hpp"
#include "functions/sparse/dependence.hpp"
#include "ops/linear_algebra/equation.hpp"

namespace xtape {

namespace {
using Ids = std::vector<IndexSets::Id>;

Dependence shared(Ids&& ids) {
  return std::make_shared<const Ids>(std::move(ids));
}

/// Replaces ids[i] by its union with more[places[i]].
void unite(IndexSets& sets, Ids& ids, const Ids& more, const std::vector<std::int64_t>& places) {
  IndexSets::Id last = IndexSets::none, last_more = IndexSets::none, together = IndexSets::none;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const IndexSets::Id added = more[places[i]];
    if (ids[i] != last || added != last_more) {  // neighbours often have the same sets
      last = ids[i];
      last_more = added;
      together = sets.united(last, last_more);
    }
    ids[i] = together;
  }
}

/// Returns the strides of `letters` in a dense array of `shape`, whose axes have the letters `of`. The stride of a
/// letter that the array lacks is 0.
Strides strides_of(const std::string& letters, const std::string& of, const Shape& shape) {
  const Strides dense = dense_strides(shape);
  Strides strides = Strides::filled(letters.size(), 0);
  for (std::size_t i = 0; i < letters.size(); ++i)
    if (const std::size_t at = of.find(letters[i]); at != std::string::npos) strides[i] = dense[at];
  return strides;
}

/// A product, seen from one of its two factors.
struct Factor {
  std::string letters, other, result;  ///< The axis labels of this factor, of the other factor, and of the result.
  std::vector<std::int64_t> sizes;     ///< The size of each letter.

  Shape shape_of(const std::string& of) const {
    Shape shape;
    for (const char letter : of) shape.push_back(sizes[static_cast<unsigned char>(letter)]);
    return shape;
  }
  Layout over(const std::string& loop, const std::string& of) const {
    return {shape_of(loop), strides_of(loop, of, shape_of(of))};
  }
};

/// Up to this number of terms, the rule examines each term and ignores terms that are 0.
constexpr std::int64_t most_terms = std::int64_t{1} << 26;

/// Returns the dependence of the result on this factor if no term is 0. Each element gets the union of the sets along
/// the letters that the result lacks.
Ids by_factor(IndexSets& sets, const Factor& product, const Ids& ids) {
  std::string kept;
  for (const char letter : product.letters)
    if (contains(product.result, letter)) kept += letter;
  CollectedSets meetings;
  const std::vector<std::int64_t> places = places_of(product.over(product.letters, kept));
  for (std::size_t i = 0; i < ids.size(); ++i) meetings.add(places[i], ids[i]);
  const Ids summed = meetings.united(sets, count_of(product.shape_of(kept)));
  Ids result;
  for (const std::int64_t place : places_of(product.over(product.result, kept))) result.push_back(summed[place]);
  return result;
}

/// Like the function above, but ignores terms in which the other factor is 0.
Ids by_factor(IndexSets& sets, const Factor& product, const Ids& ids, const std::vector<bool>& zeros) {
  std::string rest;  // the letters that the other factor lacks
  for (const char letter : product.letters + product.result)
    if (!contains(product.other, letter) && !contains(rest, letter)) rest += letter;
  const auto outer = places_of(product.over(product.other, product.letters));
  const auto outer_result = places_of(product.over(product.other, product.result));
  const auto inner = places_of(product.over(rest, product.letters));
  const auto inner_result = places_of(product.over(rest, product.result));
  auto terms = static_cast<std::int64_t>(std::ranges::count(zeros, false));
  if (!checked_multiply(terms, std::ssize(inner)) || terms > most_terms) return by_factor(sets, product, ids);
  CollectedSets meetings;
  for (std::size_t i = 0; i < zeros.size(); ++i)
    for (std::size_t k = 0; !zeros[i] && k < inner.size(); ++k)
      meetings.add(outer_result[i] + inner_result[k], ids[outer[i] + inner[k]]);
  return meetings.united(sets, count_of(product.shape_of(product.result)));
}

bool is_plain(const std::string& letters, const Shape& shape, const std::vector<std::int64_t>& sizes) {
  for (std::size_t i = 0; i < letters.size(); ++i)
    if (letters.find(letters[i], i + 1) != std::string::npos ||
        shape[i] != sizes[static_cast<unsigned char>(letters[i])])
      return false;
  return true;
}
}  // namespace

std::vector<IndexSets::Id> CollectedSets::united(IndexSets& sets, std::int64_t count) {
  const auto is_before = [](const auto& a, const auto& b) { return a.first < b.first; };
  if (!std::is_sorted(all_.begin(), all_.end(), is_before)) std::ranges::sort(all_, is_before);
  Ids found(static_cast<std::size_t>(count), IndexSets::none);
  Ids here;
  for (std::size_t i = 0; i < all_.size(); ++i) {
    here.push_back(all_[i].second);
    if (i + 1 < all_.size() && all_[i + 1].first == all_[i].first) continue;
    found[all_[i].first] = sets.united(here);
    here.clear();
  }
  return found;
}

std::vector<std::int64_t> places_of(const Layout& layout) {
  std::vector<std::int64_t> places;
  const std::int64_t count = count_of(layout.shape);
  places.reserve(static_cast<std::size_t>(count));
  Shape index = Shape::filled(layout.shape.size(), 0);
  std::int64_t place = layout.offset;
  for (std::int64_t i = 0; i < count; ++i) {
    places.push_back(place);
    for (std::size_t axis = layout.shape.size(); axis-- > 0;) {
      place += layout.strides[axis];
      if (++index[axis] < layout.shape[axis]) break;
      place -= layout.strides[axis] * layout.shape[axis];
      index[axis] = 0;
    }
  }
  return places;
}

std::vector<bool> zeros_of(const Array& array) {
  std::vector<bool> zeros;
  visit_elements(array, [&](const auto* elements) {
    for (std::int64_t i = 0; i < array.count(); ++i) zeros.push_back(static_cast<double>(elements[i]) == 0);
  });
  return zeros;
}

Dependences through_elements(const DependenceCall& call) {
  const Op& op = *call.node.op;
  if (!op.lowering.tile) return std::nullopt;
  const Shape& shape = call.node.outputs[0].shape;
  Ids ids(static_cast<std::size_t>(count_of(shape)), IndexSets::none);
  const auto broadcast = [&](std::size_t i) {
    return places_of(Layout::dense(call.inputs[i].shape).broadcast_to(shape));
  };
  for (std::size_t i = 0; i < call.given.size(); ++i) {
    if (!call.given[i]) continue;
    // The product with a constant 0, as in a mask, depends on no input.
    if (const Array* factor = &op == &builtin_ops().at("mul") ? call.known(1 - i) : nullptr) {
      const std::vector<bool> zeros = zeros_of(*factor);
      const auto places = broadcast(i), factors = broadcast(1 - i);
      for (std::size_t k = 0; k < ids.size(); ++k)
        if (!zeros[factors[k]]) ids[k] = (*call.given[i])[places[k]];
    } else {
      unite(call.sets, ids, *call.given[i], broadcast(i));
    }
  }
  return std::vector<Dependence>(call.node.outputs.size(), shared(std::move(ids)));
}

Dependences through_product(const DependenceCall& call) {
  if (call.node.op != &builtin_ops().at("einsum")) return std::nullopt;
  const auto& text = call.node.attributes.get<std::string>("equation");
  std::vector<Shape> shapes;
  for (const ValueType& type : call.inputs) shapes.push_back(type.shape);
  const Equation equation = parse_equation(text, shapes);
  const std::vector<std::int64_t> sizes = sizes_of_letters(equation, shapes, text);
  if (shapes.size() != 2) return std::nullopt;
  for (std::size_t i = 0; i < 2; ++i)
    if (!is_plain(equation.operands[i], shapes[i], sizes)) return std::nullopt;
  Ids ids(static_cast<std::size_t>(count_of(call.node.outputs[0].shape)), IndexSets::none);
  const std::vector<std::int64_t> same = places_of(Layout::dense(call.node.outputs[0].shape));
  for (std::size_t i = 0; i < 2; ++i) {
    if (!call.given[i]) continue;
    const Factor product{equation.operands[i], equation.operands[1 - i], equation.result, sizes};
    const Array* factor = call.known(1 - i);
    unite(call.sets, ids,
          factor ? by_factor(call.sets, product, *call.given[i], zeros_of(*factor))
                 : by_factor(call.sets, product, *call.given[i]),
          same);
  }
  return std::vector<Dependence>{shared(std::move(ids))};
}

Dependences through_running_sum(const DependenceCall& call) {
  if (call.node.op != &builtin_ops().at("cumsum")) return std::nullopt;
  const Shape& shape = call.inputs[0].shape;
  const std::size_t axis = normal_axis(call.node.attributes.get<std::int64_t>("axis"), shape.size());
  const bool reverse = call.node.attributes.get<bool>("reverse");
  Layout lines = Layout::dense(shape);
  const std::int64_t stride = lines.strides[axis], length = shape[axis];
  if (length > 0) lines.shape[axis] = 1;
  Ids ids = *call.given[0];
  for (const std::int64_t first : places_of(lines))
    for (std::int64_t i = 1; i < length; ++i) {
      const std::int64_t at = first + (reverse ? length - 1 - i : i) * stride;
      ids[at] = call.sets.united(ids[at], ids[at + (reverse ? stride : -stride)]);
    }
  return std::vector<Dependence>{shared(std::move(ids))};
}

Dependences through_anything(const DependenceCall& call) {
  Ids all;
  for (const Dependence& given : call.given)
    if (given) all.insert(all.end(), given->begin(), given->end());
  const IndexSets::Id everything = call.sets.united(all);
  std::vector<Dependence> outputs;
  for (std::size_t k = 0; k < call.node.outputs.size(); ++k) {
    outputs.emplace_back();
    if (!call.read[k]) continue;
    const std::int64_t count = count_of(call.node.outputs[k].shape);
    if (count > IndexSets::most)
      throw Error("sparsity: " + call.node.op->name + " gives " + to_string(call.node.outputs[k]) +
                  ", which has too many elements to follow");
    outputs.back() = shared(Ids(static_cast<std::size_t>(count), everything));
  }
  return outputs;
}

}  // namespace xtape
