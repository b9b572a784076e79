/// What the tables of tapes and players share, and the rows of arrays.
#pragma once

#include <cmath>

#include "misuse.hpp"

namespace misuse::tapes {

using namespace xtape;

/// What the calls are made with.
struct World {
  Tape tape, other;
  Var x, y, foreign;
  Array three{Dtype::float32, {3}};
  xt::xarray<float> values{1, 2, 3};
  ArrayView null{nullptr, Dtype::float32, Layout::dense({3})};

  World() {
    x = tape.input("x", {3});
    y = tanh(x);
    foreign = other.input("z", {3});
  }
  Player player() const { return Player(tape, {y}); }
  std::shared_ptr<Player> played() const {
    auto made = std::make_shared<Player>(tape, Vars{y});
    made->play({{x, values}});
    return made;
  }
};

inline Node node_of(const Op& op, std::vector<ValueId> inputs, std::vector<ValueType> outputs) {
  Node node;
  node.op = &op;
  node.inputs = std::move(inputs);
  node.outputs = std::move(outputs);
  return node;
}

inline Op own_op(const std::string& name) {
  Op op;
  op.name = name;
  op.doc = "Nothing.";
  op.inputs = {{"x", Accept::floating}};
  op.shape = [](const OpCall& call) { return std::vector<ValueType>{call.inputs[0]}; };
  return op;
}

/// An op whose lowering gives functions that are empty.
inline Op empty_op(bool tile) {
  Op op = own_op(tile ? "no_tile" : "no_kernel");
  if (tile)
    op.lowering.tile = [](const KernelCall&) { return TileFunction(); };
  else
    op.lowering.kernel = [](const KernelCall&) { return Kernel(); };
  return op;
}

/// An op whose kernel does nothing, after `change`.
inline Op changed_op(const std::function<void(Kernel&)>& change) {
  Op op = own_op("changed");
  op.lowering.kernel = [change](const KernelCall&) {
    Kernel kernel{[](const KernelArguments&) {}};
    change(kernel);
    return kernel;
  };
  return op;
}

inline std::vector<Row> rows_of_arrays(World& w) {
  const Array empty;
  return {
      {"Array::Array", "null", "the array is empty", [] { Array(nullptr, Dtype::float32, {3}); }},
      {"Array::Array", "no alignment", "aligned to 64 bytes",
       [&w] {
         auto* inside = static_cast<std::byte*>(w.three.data()) + 4;
         Array(std::shared_ptr<std::byte>(std::make_shared<Array>(w.three), inside), Dtype::float32, {1});
       }},
      {"Array::Array", "null view", "a view without memory", [&w] { Array{w.null}; }},
      {"Array::Array", "empty view", "a view without memory", [] { Array{ArrayView()}; }},
      {"Array::Array", "negative size", "must not be negative", [] { Array(Dtype::int8, {-1}); }},
      {"Array::as", "empty", "the array is empty", [empty] { static_cast<void>(empty.as<float>()); }},
      {"Array::as", "moved", "the array is empty", [&w] { moved_from(w.three.clone()).as<float>(); }},
      {"Array::to", "empty", "the array is empty", [empty] { empty.to<float>(); }},
      {"Array::tensor", "empty", "the array is empty", [empty] { empty.tensor<float>(); }},
      {"Array::operator()", "empty", "the array is empty", [empty] { static_cast<void>(empty(0)); }},
      {"Array::to", "moved", "the array is empty", [&w] { moved_from(w.three.clone()).to<float>(); }},
      {"Array::clone", "empty", "the array is empty", [empty] { empty.clone(); }},
      {"Array::clone", "moved", "the array is empty", [&w] { moved_from(w.three.clone()).clone(); }},
      {"Array::first", "empty", "the array is empty", [] { Array().first({}); }},
      {"Array::assign", "empty", "the array is empty", [&w] { Array().assign(w.three); }},
      {"Array::assign", "null", "a view without memory", [&w] { w.three.assign(w.null); }},
      {"Array::data", "empty", "", [] { CHECK(Array().data() == nullptr); }},
      {"ArrayView::ArrayView", "strides missing", "needs a stride for each axis",
       [&w] {
         ArrayView(w.values.data(), Dtype::float32, Layout{{3}, {}, 0});
       }},
      {"ArrayView::as", "null", "a view without memory", [&w] { w.null.as<float>(); }},
      {"ArrayView::to", "null", "a view without memory", [&w] { w.null.to<float>(); }},
      {"ArrayView::tensor", "null", "a view without memory", [&w] { w.null.tensor<float>(); }},
      {"ArrayView::element", "null", "a view without memory", [&w] { static_cast<void>(w.null.element({0})); }},
      {"Compiled::plans", "moved", gone,
       [] {
         Compiled f([](Var v) { return v; });
         static_cast<void>(std::make_unique<Compiled>(std::move(f)));
         f.plans();
       }},
      {"Compiled::Compiled", "a copy of what was moved from", gone,
       [] {
         Compiled f([](Var v) { return v; });
         static_cast<void>(std::make_unique<Compiled>(std::move(f)));
         Compiled copy(f);
       }},
      {"Compiled::last", "never called", "has not been called", [] { Compiled([](Var v) { return v; }).last(); }},
      {"Compiled::operator()", "no result", "at least one output",
       [] { Compiled([](Var) { return Vars(); })({ArrayView()}); }},
      {"ArrayView::to", "empty", "a view without memory", [] { ArrayView().to<float>(); }},
      {"ArrayView::copy_to", "null", "the destination of 12 bytes is null",
       [&w] { ArrayView(w.values).copy_to(nullptr); }},
      {"ArrayView::copy_to", "null view", "a view without memory", [&w] { w.null.copy_to(w.three.data()); }},
      {"Shape::erase", "out of range", "has no axis 1", [] { Shape{2}.erase(1); }},
      {"Shape::insert", "out of range", "has no axis 3", [] { Shape{2}.insert(3, 1); }},
      {"Shape::push_back", "too many", "at most 10 axes", [] { Shape::filled(10, 1).push_back(1); }},
      {"Shape::filled", "too many", "at most 10 axes", [] { Shape::filled(11, 1); }},
      {"Named::at", "unknown", "'w'", [] { Store().at("w"); }},
      {"Named::operator[]", "out of range", "there is no array 0", [] { Store()[0]; }},
      {"SharedList::at", "out of range", "there is no element 2",
       [] {
         SharedList<int>({1, 2}).at(2);
       }},
      {"save_arrays", "moved", "array 'x' is empty",
       [&w] {
         save_arrays("never", {{"x", moved_from(w.three.clone())}});
       }},
      {"save_arrays", "a key twice", "the metadata has the key 'k' twice",
       [&w] {
         save_arrays("never", {{"x", w.three}}, {{"k", "1"}, {"k", "2"}});
       }},
      {"save_arrays", "the key of a checksum", "the metadata has the key 'xxh3:x' twice",
       [&w] {
         save_arrays("never", {{"x", w.three}}, {{"xxh3:x", "1"}});
       }},
      {"ArrayWriter::ArrayWriter", "a name twice", "two arrays have the name 'a'",
       [] {
         ArrayWriter("never", {{"a", Dtype::int8, {1}}, {"a", Dtype::int8, {1}}});
       }},
      {"ArrayWriter::write", "null view", "array 'a' is empty",
       [&w] {
         ArrayWriter("never", {{"a", Dtype::float32, {3}}}).write(w.null);
       }},
      {"save_play", "moved", "array 'x' is empty",
       [&w] {
         save_play({w.tape, {w.y}, {{"x", moved_from(w.three.clone())}}, {}}, {"y"}, "never");
       }},
      {"dtype_named", "unknown", "unknown dtype", [] { dtype_named("float"); }},
      {"normal_axis", "out of range", "out of range", [] { normal_axis(2, 2); }},
  };
}

}  // namespace misuse::tapes
