#include "xtape/parameters.hpp"

#include <functional>
#include <optional>

#include "base/messages/wording.hpp"
#include "tape/calls.hpp"
#include "xtape/ops.hpp"
#include "xtape/player.hpp"

namespace xtape {

struct Parameters::Data {
  explicit Data(const Tape& of) : tape(of) {}
  Tape tape;
  Store own;  // used unless the caller has a store
  Store* store = &own;
  std::optional<std::uint64_t> seed;  // without a seed, arrays must exist and are not created
  // Stores names, because vars become stale: a parameter first used inside a scan moves out of the body.
  std::vector<std::string> trained, statistics;
  NamedVars updates;

  /// What a call requests. If there is a type, the array must have this type, and `fill` sets the values of a new
  /// array. Without a type, the store must already have the array, and its type may be any.
  struct Wanted {
    std::optional<ValueType> type = {};
    std::function<void(Array&)> fill = {};
  };
  Wanted filled(const std::string& name, const Shape& shape, const Initialiser& initialiser) const {
    return {ValueType{tape.default_dtype(), shape},
            [this, &name, &initialiser](Array& made) { initialise(made, initialiser, *seed, name); }};
  }
  static Wanted copied(const ArrayView& initial) {
    return {ValueType{initial.dtype(), initial.shape()}, [&initial](Array& made) { made.assign(initial); }};
  }

  /// Returns the array with this name as a parameter of the tape. If the store lacks the array, creates it.
  Var parameter(const std::string& name, const Wanted& wanted, std::vector<std::string>& names) {
    if (wanted.type && !is_floating(wanted.type->dtype))
      throw DtypeError("parameter '" + name + "' must be of floats, not " + to_string(*wanted.type));
    if (!store->has(name)) {
      if (!seed || !wanted.type)
        throw Error("the store has no parameter '" + name + "'" + did_you_mean(name, store->names()) +
                    (seed ? " (a call with its shape and initialiser would make it)"
                          : " (Parameters with a seed would make it)"));
      Array made(wanted.type->dtype, wanted.type->shape);
      wanted.fill(made);
      store->add(name, made);
    }
    const Array& found = store->at(name);
    if (wanted.type) check(name, {found.dtype(), found.shape()}, *wanted.type);
    const Var var = tape.parameter(name, found);
    if (!contains(names, name)) names.push_back(name);
    return var;
  }

  static void check(const std::string& name, const ValueType& there, const ValueType& wanted) {
    const std::string difference =
        "parameter '" + name + "' is " + to_string(there) + " in the store, but asked for as " + to_string(wanted);
    if (there.shape != wanted.shape) throw ShapeError(difference);
    if (there.dtype != wanted.dtype) throw DtypeError(difference);
  }

  /// Returns the value of a statistic. No gradient flows through it.
  Var statistic(const std::string& name, const Wanted& wanted) {
    const Var var = parameter(name, wanted, statistics);
    const Var* updated = updates.find(name);
    return stop_gradient(updated != nullptr ? *updated : var);
  }
};

Parameters::Parameters(const Tape& tape, std::uint64_t seed) : data_(std::make_shared<Data>(tape)) {
  data_->seed = seed;
}

Parameters::Parameters(const Tape& tape, Store& store, std::uint64_t seed) : Parameters(tape, seed) {
  data_->store = &store;
}

Parameters::Parameters(const Tape& tape, const Store& store) : data_(std::make_shared<Data>(tape)) {
  data_->own = store;
}

Parameters::Parameters(std::shared_ptr<Data> data, std::string prefix)
    : data_(std::move(data)), prefix_(std::move(prefix)) {}

std::string Parameters::full_name(const std::string& name) const {
  if (name.empty()) throw Error("a parameter or scope needs a name");
  return prefix_ + name;
}

Var Parameters::operator()(const std::string& name, const Shape& shape, const Initialiser& initialiser,
                           Caller caller) const {
  return as_call(data_->tape, nullptr, caller, [&] {
    const std::string full = full_name(name);
    return data_->parameter(full, data_->filled(full, shape, initialiser), data_->trained);
  });
}

Var Parameters::operator()(const std::string& name, const ArrayView& initial, Caller caller) const {
  return as_call(data_->tape, nullptr, caller,
                 [&] { return data_->parameter(full_name(name), Data::copied(initial), data_->trained); });
}

Var Parameters::operator()(const std::string& name, Caller caller) const {
  return as_call(data_->tape, nullptr, caller, [&] { return data_->parameter(full_name(name), {}, data_->trained); });
}

Parameters Parameters::scope(const std::string& name) const {
  return {data_, full_name(name) + "."};
}
const std::string& Parameters::prefix() const {
  return prefix_;
}
Tape Parameters::tape() const {
  return data_->tape;
}
Store& Parameters::store() const {
  return *data_->store;
}

NamedVars Parameters::vars() const {
  NamedVars vars;
  for (const std::string& name : data_->trained) vars.add(name, data_->tape.parameter(*data_->store, name));
  return vars;
}

Vars Parameters::list() const {
  Vars list;
  for (const auto& entry : vars()) list.push_back(entry.value);
  return list;
}

std::int64_t Parameters::count() const {
  std::int64_t count = 0;
  for (const std::string& name : data_->trained) count += data_->store->at(name).count();
  return count;
}

Var Parameters::statistic(const std::string& name, const Shape& shape, const Initialiser& initialiser,
                          Caller caller) const {
  return as_call(data_->tape, nullptr, caller, [&] {
    const std::string full = full_name(name);
    return data_->statistic(full, data_->filled(full, shape, initialiser));
  });
}

Var Parameters::statistic(const std::string& name, const ArrayView& initial, Caller caller) const {
  return as_call(data_->tape, nullptr, caller,
                 [&] { return data_->statistic(full_name(name), Data::copied(initial)); });
}

Var Parameters::statistic(const std::string& name, Caller caller) const {
  return as_call(data_->tape, nullptr, caller, [&] { return data_->statistic(full_name(name), {}); });
}

void Parameters::record_update(const std::string& name, const Var& value, Caller caller) const {
  at_place(caller, [&] {
    const std::string full = full_name(name);
    const std::vector<std::string>& known = data_->statistics;
    if (!contains(known, full)) throw Error("there is no statistic '" + full + "'" + did_you_mean(full, known));
    if (value.tape(caller) != data_->tape) throw HandleError("the update of '" + full + "' is a var of another tape");
    const Array& there = data_->store->at(full);
    const std::string difference = "the update of '" + full + "' is " + to_string(value.type(caller)) +
                                   ", the statistic " + to_string(ValueType{there.dtype(), there.shape()});
    if (value.shape() != there.shape()) throw ShapeError(difference);
    if (value.dtype() != there.dtype()) throw DtypeError(difference);
    data_->updates.set(full, value);
  });
}

const NamedVars& Parameters::updates() const {
  return data_->updates;
}

void Parameters::update(const Player& player) const {
  std::vector<ArrayView> values;
  for (const auto& entry : data_->updates) values.push_back(player.view(entry.value));
  for (std::size_t i = 0; i < values.size(); ++i) data_->store->at(data_->updates[i].name).assign(values[i]);
}

}  // namespace xtape
