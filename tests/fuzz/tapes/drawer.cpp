#include "drawer.hpp"

#include <algorithm>

namespace xtape::fuzz {

namespace {
/// All ops that programs may call. Checkpoints, scans and gradients are drawn separately.
std::vector<std::string> names_of_ops() {
  std::vector<std::string> names;
  for (const auto& [name, row] : ops().ops())
    if (is_drawn(name)) names.push_back(name);
  return names;
}

bool has_rule(const Op& op) {
  const auto& rules = ops().rules();
  return std::any_of(rules.begin(), rules.end(), [&](const FusionRule& rule) { return rule.op == &op; });
}

/// Ops with bounded results, which keep values small.
const std::initializer_list<const char*> tame = {"tanh", "sigmoid", "own_bend"};
}  // namespace

Drawer::Drawer(std::uint64_t seed, const DrawOptions& options)
    : random(seed),
      focus_(options.focus),
      program_{random.one_in(12)  ? Mode::predict
               : random.one_in(4) ? Mode::eval
                                  : Mode::train},
      subject_(program_.mode, Floats::as_written),
      recorder_(subject_),
      steps_(&program_.steps),
      names_(names_of_ops()) {
  choose_size();
}

void Drawer::choose_size() {
  const std::int64_t kind = random.below(20);
  std::vector<std::int64_t> from;
  if (kind < 15) {  // small arrays: combinations of shapes
    from = {1, 2, 3, 4, 5, 7, 8};
    calls_ = static_cast<int>(random.between(3, 12));
  } else if (kind < 17) {  // long rows: tiles, and tails of vectorised loops
    from = {1, 2, 3, 63, 64, 100, 257, 2050};
    most_elements_ = 12000;
    calls_ = static_cast<int>(random.between(3, 8));
  } else if (kind < 19) {  // products for register tiles and the matrix unit
    from = {16, 24, 33, 64, 80, 96, 130, 160};
    most_elements_ = 30000;
    if (random.one_in(2)) real_ = Dtype::float32;
    calls_ = static_cast<int>(random.between(2, 6));
  } else {  // enough work for several threads
    from = {2, 3, 64, 300, 1024, 9000};
    most_elements_ = 60000;
    calls_ = static_cast<int>(random.between(2, 5));
  }
  random.shuffle(from);
  from.resize(3);
  sizes_ = from;
  sizes_.push_back(1);
  if (random.one_in(10)) sizes_.push_back(0);
  mixed_ = random.one_in(8);
  if (random.one_in(8)) real_ = Dtype::float32;
}

Program Drawer::run() {
  if (program_.mode == Mode::predict) draw_tokens();
  for (std::int64_t sources = random.between(1, 3); sources > 0; --sources)
    source({random.one_in(5) ? Dtype::int64 : real_, any_shape()});
  floating();
  if (random.one_in(3)) source({real_, {}});
  for (int tries = 0; tries < 6 * calls_ && static_cast<int>(calls_in(program_.steps)) < calls_; ++tries) grow();
  choose_outputs();
  if (random.one_in(4)) choose_carries();
  return program_;
}

std::optional<Ref> Drawer::record(Step& step, const std::function<void()>& recording) {
  const std::size_t before = subject_.tape.size();
  try {
    recording();
  } catch (const Error&) {
    recorder_.forget(step.id);
    if (subject_.tape.size() != before) throw Error("a refused call of '" + step.op + "' left nodes on the tape");
    return std::nullopt;
  }
  const Ref first{step.id};
  for (std::size_t i = before; i < subject_.tape.size(); ++i)  // nodes that a gradient needs
    for (const ValueType& made : subject_.tape.node(i).outputs)
      if (count_of(made.shape) > 100 * most_elements_) {
        recorder_.forget(step.id);
        return std::nullopt;
      }
  std::size_t outputs = 0;
  for (;; ++outputs) {
    const Ref ref{step.id, static_cast<int>(outputs)};
    if (!recorder_.has(ref)) break;
    if (count_of(shape(ref)) > 2 * most_elements_) {
      recorder_.forget(step.id);
      return std::nullopt;
    }
  }
  const Hint& hint = hint_of(step.op);
  const auto row = ops().find(step.op);
  bool exact = true, steady = true, positive = !step.operands.empty();
  for (const Term& term : step.operands)
    if (const auto* ref = std::get_if<Ref>(&term)) {
      exact &= known(*ref).exact;
      steady &= known(*ref).steady;
      positive &= known(*ref).positive;
    }
  const bool view = row != nullptr && row->is_view();
  const bool drawn = step.is_source() || (row != nullptr && (row->random || row->inputs.empty()));
  for (std::size_t i = 0; i < outputs; ++i) {
    const Ref ref{step.id, static_cast<int>(i)};
    const bool whole = !is_floating(type(ref).dtype) && row != nullptr;
    Known value{ref};
    value.exact = drawn ? exact : exact && (hint.exact || view || whole);
    value.steady = value.exact || (view && steady) || whole;
    value.positive = view && positive;
    all_known_[ref] = value;
    values_.push_back(value);
  }
  steps_->push_back(std::move(step));
  return first;
}

std::optional<Ref> Drawer::call(const std::string& op, const Draft& draft) {
  Step step{new_id(), op, draft.operands, draft.attributes};
  return record(step, [&] { recorder_.record(step); });
}

Ref Drawer::must(const std::string& op, const Draft& draft) {
  const auto result = call(op, draft);
  if (!result) throw Refused("the call of '" + op + "' was refused");
  return *result;
}

Draft Drawer::generic(const Op& op) {
  Draft draft;
  const auto operand = [&](const InputSpec& spec) -> Term {
    const bool first = draft.operands.empty() || !std::holds_alternative<Ref>(draft.operands[0]);
    const Hint& hint = hint_of(op.name);
    const auto prepared = [&](Ref x) {
      if (hint.positive == static_cast<int>(draft.operands.size())) x = positive(x);
      return hint.jumps ? steady(x) : x;
    };
    switch (spec.accept) {
      case Accept::integer:
        return integer();
      case Accept::mask:
        return first ? flag() : mask_for(shape(std::get<Ref>(draft.operands[0])));
      case Accept::any:
        return prepared(any());
      default:
        break;
    }
    if (first) return prepared(spec.accept == Accept::floating && !random.one_in(10) ? floating() : number());
    const Term other = partner(std::get<Ref>(draft.operands[0]));
    return std::holds_alternative<Ref>(other) ? prepared(std::get<Ref>(other)) : other;
  };
  for (const InputSpec& spec : op.inputs) {
    if (spec.arity == Arity::optional && random.one_in(2)) break;
    const std::int64_t count = spec.arity == Arity::many ? random.between(1, 3) : 1;
    for (std::int64_t i = 0; i < count; ++i) draft.operands.push_back(operand(spec));
  }
  draw_attributes(op, draft);
  return draft;
}

void Drawer::draw_attributes(const Op& op, Draft& draft) {
  const Ref* x = nullptr;
  for (const Term& term : draft.operands)
    if (x == nullptr) x = std::get_if<Ref>(&term);
  for (const AttributeSpec& spec : op.attributes) {
    if (spec.initial && random.one_in(3)) continue;
    switch (spec.type) {
      case AttributeType::boolean:
        draft.attributes.set(spec.name, random.one_in(2));
        break;
      case AttributeType::integer:
        draft.attributes.set(spec.name, spec.name == "axis" && x != nullptr ? axis_of(*x) : random.between(0, 4));
        break;
      case AttributeType::number:
        draft.attributes.set(spec.name, static_cast<double>(random.between(0, 16)) / 16);
        break;
      case AttributeType::element:
        if (random.one_in(2))
          draft.attributes.set(spec.name, random.between(0, 4));
        else
          draft.attributes.set(spec.name, static_cast<double>(random.between(0, 16)) / 16);
        break;
      case AttributeType::text:
        if (const auto words = words_of(spec.name); !words.empty()) draft.attributes.set(spec.name, random.pick(words));
        break;
      case AttributeType::integers: {
        std::vector<std::int64_t> list;
        if (spec.name == "shape") {
          const Shape made = any_shape();
          list.assign(made.begin(), made.end());
        } else if (x != nullptr) {
          const auto rank = static_cast<std::int64_t>(shape(*x).size());
          for (std::int64_t axis = 0; axis < rank; ++axis)
            if (random.one_in(2)) list.push_back(random.one_in(4) ? axis - rank : axis);
        }
        draft.attributes.set(spec.name, list);
        break;
      }
      case AttributeType::dtype:
        draft.attributes.set(spec.name, random.pick({real_, real_, real_, Dtype::int64, Dtype::int32, Dtype::boolean,
                                                     Dtype::float32, Dtype::float64}));
        break;
      case AttributeType::named_sizes:
        break;
    }
  }
}

std::optional<Draft> Drawer::drafted(const Op& op) {
  const Hint& hint = hint_of(op.name);
  return hint.draft ? hint.draft(*this) : generic(op);
}

bool Drawer::grow() {
  try {
    return grown();
  } catch (const Refused&) {
    return false;
  }
}

bool Drawer::grown() {
  if (focus_.empty() || !random.one_in(2)) {
    const std::int64_t kind = random.below(30);
    if (kind < 2 && depth_ < 2) return draw_scan();
    if (kind == 2 && depth_ < 2) return draw_checkpoint();
    if (kind < 5 && depth_ == 0) return draw_grad();
  }
  const std::string name = !focus_.empty() && random.one_in(3) ? focus_ : random.pick(names_);
  if (name == "scan") return draw_scan();
  if (name == "checkpoint") return draw_checkpoint();
  if (name == "grad") return draw_grad();
  const Op& op = ops().at(name);
  if (op.expand && random.one_in(has_rule(op) ? 2 : 12)) return write_out(op);
  const auto draft = drafted(op);
  if (!draft) return false;
  const auto result = call(name, *draft);
  if (!result) return false;
  // Large numbers are mostly bounded, so that later values are not infinite.
  const Hint& hint = hint_of(name);
  if (!hint.grows || random.one_in(4)) return true;
  const Dtype dtype = type(*result).dtype;
  if (dtype == Dtype::boolean) return true;
  if (is_floating(dtype) && random.one_in(3))
    call("mul", {{*result, 0.25}});
  else if (is_floating(dtype))
    call(random.pick(tame), {{*result}});
  else
    call("mod", {{*result, std::int64_t{7}}});
  values_.erase(
      std::remove_if(values_.begin(), values_.end(), [&](const Known& value) { return value.ref == *result; }),
      values_.end());
  return true;
}

bool Drawer::write_out(const Op& op) {
  const auto draft = drafted(op);
  if (!draft) return false;
  // The expansion is recorded on another tape; its nodes become steps.
  Tape aside(program_.mode);
  std::vector<Operand> operands;
  std::map<std::pair<std::int32_t, std::int32_t>, Term> terms;
  for (const Term& term : draft->operands) {
    const auto* ref = std::get_if<Ref>(&term);
    if (ref == nullptr) return false;
    const Var input = aside.input("x" + std::to_string(operands.size()), shape(*ref), type(*ref).dtype);
    terms[{input.id().node, 0}] = term;
    operands.emplace_back(input);
  }
  if (operands.empty()) return false;
  std::int32_t first = 0;
  try {
    const Vars called = apply(op, operands, draft->attributes);
    const Node node = called[0].node();
    if (node.op != &op) return false;  // it is always recorded as other ops
    first = called[0].id().node;
    Vars inputs;
    for (const ValueId id : node.inputs) inputs.push_back(aside.var(id));
    op.expand({{node.attributes}, op, node, aside, inputs});
  } catch (const Error&) {
    return false;
  }
  for (auto i = static_cast<std::int32_t>(operands.size()); i < static_cast<std::int32_t>(aside.size()); ++i) {
    if (i == first) continue;
    const Node& node = aside.node(static_cast<std::size_t>(i));
    if (node.op == &constant_op()) {
      if (!node.outputs[0].shape.empty() || !is_floating(node.outputs[0].dtype)) return false;
      terms[{i, 0}] = node.outputs[0].dtype == Dtype::float64 ? node.storage.as<double>()[0]
                                                              : static_cast<double>(node.storage.as<float>()[0]);
      continue;
    }
    Draft written{{}, node.attributes};
    for (const ValueId id : node.inputs) {
      const auto found = terms.find({id.node, id.output});
      if (found == terms.end()) return false;
      written.operands.push_back(found->second);
    }
    if (ops().find(node.op->name) != node.op) return false;
    const auto result = call(node.op->name, written);
    if (!result) return false;
    for (std::int32_t k = 0; recorder_.has({result->step, k}); ++k) terms[{i, k}] = Ref{result->step, k};
  }
  return true;
}

Program draw(std::uint64_t seed, const DrawOptions& options) {
  return Drawer(seed, options).run();
}

}  // namespace xtape::fuzz
