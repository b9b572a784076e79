// The sites of nodes, and the guards that determine them.
#include "base/arrays/order.hpp"
#include "tape/tape_data.hpp"
#include "xtape/op/op.hpp"

namespace xtape {

namespace {
std::uint64_t place_hash(const Site& site, const Op& op) {
  return ByteHash().add(site.scope->path).add(site.line).add(op.name).value();
}
}  // namespace

std::string to_string(const Caller& caller) {
  if (!caller.known()) return "";
  const std::string file = caller.file;
  return file.substr(file.find_last_of("/\\") + 1) + ", line " + std::to_string(caller.line);
}

std::string to_string(const Site& site) {
  if (!site.scope) return to_string(site.caller);
  const Scope& scope = *site.scope;
  const std::string line = site.line > 0 ? ", line " + std::to_string(scope.shown(site.line)) : "";
  const std::string place = scope.where.empty() ? to_string(site.caller) : scope.where + line;
  if (scope.path.empty() || place.empty()) return scope.path + place;
  return scope.path + " (" + place + ")";
}

Site next_site(TapeData& data, const Op& op) {
  if (data.site_is_fixed) return data.site;
  Site site = data.site;
  if (site.op == nullptr) site.op = &op;
  const std::uint64_t place = place_hash(site, op);
  site.occurrence = data.occurrences[place]++;
  data.counted.push_back(place);
  site.key = ByteHash().add(static_cast<std::int64_t>(place)).add(site.occurrence).value();
  return site;
}

Tape::Guard::Guard(std::shared_ptr<TapeData> tape, Site site, bool site_is_fixed, bool fused)
    : tape_(std::move(tape)),
      site_before_(tape_->site),
      fixed_before_(tape_->site_is_fixed),
      fused_before_(tape_->fused) {
  tape_->site = std::move(site);
  tape_->site_is_fixed = site_is_fixed;
  tape_->fused = fused;
}

Tape::Guard::~Guard() {
  tape_->site = std::move(site_before_);
  tape_->site_is_fixed = fixed_before_;
  tape_->fused = fused_before_;
}

Tape::Guard Tape::in_call(const Op* op, const Caller& caller) {
  Site site = data_->site;
  if (!data_->site_is_fixed && site.op == nullptr && !site.caller.known()) {
    site.op = op;
    if (site.scope->where.empty()) site.caller = caller;
  }
  return Guard(data_, std::move(site), data_->site_is_fixed, data_->fused);
}

Tape::Guard Tape::out_of_call() {
  Site site = data_->site;
  if (!data_->site_is_fixed) {
    site.op = nullptr;
    site.caller = {};
  }
  return Guard(data_, std::move(site), data_->site_is_fixed, data_->fused);
}

Tape::Guard Tape::in_scope(std::shared_ptr<const Scope> scope, std::int32_t line) {
  if (!scope) throw Error("in_scope: the scope is null");
  return Guard(data_, Site{std::move(scope), line, 0, 0}, false, data_->fused);
}

Tape::Guard Tape::in_site(const Site& site) {
  Site complete = site;
  if (!complete.scope) complete.scope = std::make_shared<const Scope>();
  return Guard(data_, std::move(complete), true, data_->fused);
}

Tape::Guard Tape::in_fused_call() {
  return Guard(data_, data_->site, data_->site_is_fixed, true);
}

// The past of the rows of a tape in mode predict, and the states that hold it.

void Tape::set_past(const Var& tokens, const Var& past, std::int64_t capacity, Dtype caches) {
  if (mode() != Mode::predict)
    throw Error(std::string("only a tape in mode predict has a past, not one in mode ") + name_of(mode()));
  if (data_->past >= 0) throw Error("the tape already has a past");
  if (tokens.tape() != *this || past.tape() != *this) throw HandleError("set_past: its vars must be of this tape");
  if (tokens.rank() == 0 || past.type() != ValueType{Dtype::int64, {tokens.size(0)}})
    throw ShapeError("the past of tokens " + to_string(tokens.type()) +
                     " must be int64, one number for each row, not " + to_string(past.type()));
  if (capacity < 1) throw Error("the capacity of caches must be at least 1, got " + std::to_string(capacity));
  if (caches != Dtype::float32 && caches != Dtype::q8_0)
    throw DtypeError(std::string("caches are stored as float32 or Q8_0, not ") + name_of(caches));
  data_->tokens = tokens.id().node;
  data_->past = past.id().node;
  data_->capacity = capacity;
  data_->caches = caches;
}

Var Tape::past_of(const Var& x) const {
  if (x.tape() != *this) throw HandleError("past_of: the var is of another tape");
  if (data_->past < 0) return {};
  std::vector<bool> seen(size(), false);
  std::vector<std::int32_t> open{x.id().node};
  while (!open.empty()) {
    const std::int32_t index = open.back();
    open.pop_back();
    if (index == data_->tokens || index == data_->past) return var({data_->past, 0});
    if (seen[index]) continue;
    seen[index] = true;
    for (const ValueId& input : node(index).inputs) open.push_back(input.node);
  }
  return {};
}

std::int64_t Tape::capacity() const {
  return data_->capacity;
}

Dtype Tape::caches() const {
  return data_->caches;
}

std::vector<Carry> Tape::states() const {
  std::vector<Carry> states;
  for (const auto& [input, output] : data_->states) states.push_back({var(input), var(output)});
  return states;
}

void Tape::add_state(const Var& input, const Var& output) {
  if (input.tape() != *this || output.tape() != *this) throw HandleError("add_state: a var is of another tape");
  if (input.node().op != &input_op())
    throw Error("add_state: a state begins at an input, not at " + input.node().op->name);
  data_->states.emplace_back(input.id(), output.id());
}

}  // namespace xtape
