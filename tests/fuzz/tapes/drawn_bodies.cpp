// Draws checkpoints and scans, gradients, and the outputs and carries of a program.
#include <algorithm>

#include "drawer.hpp"

namespace xtape::fuzz {

/// Values that are drawn during the lifetime of a Scope are visible only in its block.
struct Drawer::Scope {
  Scope(Drawer& drawer, Block& block) : drawer(drawer), steps_before(drawer.steps_), values_before(drawer.values_) {
    drawer.steps_ = &block.steps;
    ++drawer.depth_;
  }
  ~Scope() {
    drawer.steps_ = steps_before;
    drawer.values_ = values_before;
    --drawer.depth_;
  }
  Drawer& drawer;
  std::vector<Step>* steps_before;
  std::vector<Known> values_before;
};

/// Draws the steps of a body; the caller chooses its results.
void Drawer::draw_body(Block& block, const Vars& arguments) {
  // In one of three bodies, all values outside are visible; in the others, those of one element without axes.
  if (!random.one_in(3)) std::erase_if(values_, [&](const Known& value) { return !shape(value.ref).empty(); });
  for (const Var& argument : arguments) {
    block.arguments.push_back(new_id());
    const Ref ref{block.arguments.back()};
    recorder_.set(ref.step, {argument});
    all_known_[ref] = {ref};
    values_.push_back(all_known_[ref]);
  }
  const auto calls = static_cast<std::size_t>(random.between(1, 4));
  for (std::size_t tries = 0; tries < 3 * calls && calls_in(block.steps) < calls; ++tries) grow();
}

bool Drawer::draw_checkpoint() {
  Step step{new_id(), "checkpoint"};
  for (std::int64_t more = random.between(1, 2); more > 0; --more) step.operands.push_back(any());
  step.body.resize(1);
  Block& block = step.body[0];
  const auto function = [&](const Vars& arguments) {
    const Scope scope(*this, block);
    draw_body(block, arguments);
    Vars results;
    for (std::int64_t more = random.between(1, 2); more > 0; --more) {
      block.results.push_back(any());
      results.push_back(recorder_.at(block.results.back()));
    }
    return results;
  };
  return record(step, [&] { recorder_.record_checkpoint(step, function); }).has_value();
}

/// A value of a state's type that depends on values of the body.
Ref Drawer::state_like(const ValueType& wanted) {
  std::vector<Ref> same;
  for (const Known& value : values_)
    if (type(value.ref) == wanted) same.push_back(value.ref);
  const Ref old = same.empty() || random.one_in(3) ? fitting(wanted) : same.back();
  if (!is_floating(wanted.dtype) || random.one_in(3)) return old;
  const Ref x = any([&](const ValueType& own) { return own.dtype == wanted.dtype; });
  const Ref total = must("tanh", {{must(count_of(shape(x)) == 0 ? "sum" : "mean", {{x}})}});
  return must("tanh", {{must("add", {{old, total}})}});
}

bool Drawer::draw_scan() {
  const Ref x = any([](const ValueType& own) {
    return own.shape.size() > 0 && *std::min_element(own.shape.begin(), own.shape.end()) < 7;
  });
  const Shape whole = shape(x);
  std::vector<std::int64_t> axes;
  for (std::size_t i = 0; i < whole.size(); ++i)
    if (whole[i] < 7) axes.push_back(static_cast<std::int64_t>(i));
  if (axes.empty()) return false;
  const std::int64_t axis = random.pick(axes);
  const auto at = static_cast<std::size_t>(axis);
  Step step{new_id(), "scan", {x}};
  if (random.one_in(3)) {
    ValueType other{random.one_in(4) ? Dtype::int64 : real_, whole};
    while (other.shape.size() > at + 1 && random.one_in(2))
      other.shape = Shape(other.shape.begin(), other.shape.end() - 1);
    step.operands.push_back(fitting(other));
  }
  const auto sequences = static_cast<std::int64_t>(step.operands.size());
  const bool valid = random.one_in(3);
  for (std::int64_t more = random.below(3); more > 0; --more) {
    Shape state(whole.begin(), whole.begin() + at);
    if (random.one_in(2)) state.push_back(size());
    if (count_of(state) > most_elements_) return false;
    step.operands.push_back(fitting(ValueType{random.one_in(8) ? Dtype::int64 : real_, state}));
  }
  if (valid) step.operands.push_back(fitting(ValueType{Dtype::boolean, Shape(whole.begin(), whole.begin() + at + 1)}));
  step.attributes = {{"axis", axis}, {"reverse", random.one_in(3)}, {"valid", valid}, {"sequences", sequences}};
  step.body.resize(1);
  Block& block = step.body[0];
  const auto cell = [&](const Vars& slices, const Vars& states) {
    const Scope scope(*this, block);
    std::vector<ValueType> types;
    for (const Var& state : states) types.push_back(state.type());
    Vars arguments = slices;
    arguments.insert(arguments.end(), states.begin(), states.end());
    draw_body(block, arguments);
    for (std::int64_t more = random.between(states.empty() ? 1 : 0, 2); more > 0; --more)
      block.results.push_back(any([&](const ValueType& own) {
        return own.shape.size() >= at && (!valid || std::equal(whole.begin(), whole.begin() + at, own.shape.begin()));
      }));
    for (const ValueType& wanted : types) block.results.push_back(state_like(wanted));
    Vars results;
    for (const Ref ref : block.results) results.push_back(recorder_.at(ref));
    const auto next = results.end() - static_cast<std::ptrdiff_t>(types.size());
    return std::pair(Vars(results.begin(), next), Vars(next, results.end()));
  };
  return record(step, [&] { recorder_.record_scan(step, cell); }).has_value();
}

/// Draws tokens with a past, and their embedding.
void Drawer::draw_tokens() {
  const std::int64_t rows = random.between(1, 3), places = random.between(1, 4), width = random.between(1, 5);
  Step step{new_id(), "tokens", {}, {{"capacity", places + random.between(0, 5)}}, {Dtype::int64, {rows, places}}};
  step.numbers = {0, 3, random.bits() >> 16};
  record(step, [&] { recorder_.record(step); });
  must("take", {{source({real_, {4, width}}), values_.front().ref}});
}

/// A scalar that depends on one or two values.
Ref Drawer::loss() {
  const Ref x = floating();
  const Ref y = random.one_in(3) ? must("square", {{must("tanh", {{x}})}})
                                 : must(random.pick({"sigmoid", "tanh", "own_bend"}), {{x}});
  return must("sum", {{y}});
}

bool Drawer::draw_grad() {
  if (program_.mode == Mode::predict) return false;
  Step step{new_id(), "grad"};
  const bool number = !random.one_in(3);
  const std::int64_t outputs = number ? 1 : random.between(1, 2), inputs = random.between(1, 2);
  for (std::int64_t i = 0; i < outputs; ++i) step.operands.push_back(number ? loss() : floating());
  for (std::int64_t i = 0; i < inputs; ++i) {
    std::vector<Ref> sources;
    for (const Known& value : values_)
      if (is_floating(type(value.ref).dtype)) sources.push_back(value.ref);
    // Many values depend on early ones.
    const auto count = static_cast<std::int64_t>(sources.size());
    step.operands.push_back(sources[static_cast<std::size_t>(random.below(std::max<std::int64_t>(1, count / 2)))]);
  }
  if (!number && random.one_in(2))
    for (std::int64_t i = 0; i < outputs; ++i)
      step.operands.push_back(fitting(std::get<Ref>(step.operands[static_cast<std::size_t>(i)])));
  step.attributes = {{"outputs", outputs}, {"inputs", inputs}};
  return record(step, [&] { recorder_.record(step); }).has_value();
}

void Drawer::choose_outputs() {
  if (!random.one_in(3)) draw_grad();
  if (random.one_in(3)) draw_grad();  // often the gradient of a gradient
  std::vector<Ref> refs;
  for (const auto& [ref, value] : all_known_)
    if (std::any_of(program_.steps.begin(), program_.steps.end(),
                    [&drawn = ref](const Step& step) { return step.id == drawn.step && !step.is_source(); }))
      refs.push_back(ref);
  if (refs.empty()) refs.push_back(must("neg", {{floating()}}));
  std::set<Ref> chosen{refs.back()};
  for (std::int64_t more = random.between(1, 4); more > 0; --more) {
    const auto count = static_cast<std::int64_t>(refs.size());
    chosen.insert(refs[static_cast<std::size_t>(
        random.one_in(2) ? random.below(count) : count - 1 - random.below(std::min<std::int64_t>(5, count)))]);
  }
  program_.outputs.assign(chosen.begin(), chosen.end());
  if (random.one_in(20)) program_.outputs.push_back(program_.outputs.front());
  if (random.one_in(20)) program_.outputs.push_back({program_.steps.front().id});
}

void Drawer::choose_carries() {
  if (program_.mode == Mode::predict) return;  // the states of caches are carried instead
  for (const Step& step : program_.steps) {
    // Values that must stay in a range, such as indices and divisors, are not carried.
    if (step.op != "input" || random.one_in(3) || is_integer(step.type.dtype) || step.numbers.low > 0) continue;
    std::vector<Ref> same;
    for (const Known& value : values_)
      if (type(value.ref) == step.type && value.ref.step != step.id) same.push_back(value.ref);
    if (!same.empty()) program_.carries.emplace_back(step.id, random.pick(same));
  }
}

}  // namespace xtape::fuzz
