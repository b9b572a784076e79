/// Calls that become nodes: their checks, and their locations in sites and errors.
#pragma once

#include <algorithm>
#include <cstddef>
#include <exception>
#include <vector>

#include "xtape/op/op.hpp"
#include "xtape/tape.hpp"

namespace xtape {

// Checks of a call before it becomes a node. Kernels and gradient rules rely on these checks.

/// Returns the spec of an operand. If the op takes many operands (Arity::many), the last spec also applies to all
/// further operands. The op must have inputs.
inline const InputSpec& spec_of(const Op& op, std::size_t operand) {
  return op.inputs[std::min(operand, op.inputs.size() - 1)];
}
/// Returns whether operands of this kind are converted to one dtype.
inline bool promotes(Accept accept) {
  return accept == Accept::value || accept == Accept::floating;
}
/// Throws Error unless the op takes `count` operands.
void check_arity(const Op& op, std::size_t count);
/// Throws DtypeError if operands that are promoted together have different dtypes. Kernels expect a single dtype.
void check_one_dtype(const OpCall& call);
/// Checks the operands and attributes of a call that `apply` has not recorded, such as one from a file. Makes the same
/// checks as `apply`, but converts nothing. Runs the shape rule and returns the output types. The text of an Error does
/// not begin with the op's name.
std::vector<ValueType> checked_types(const OpCall& call);

/// Adds the location of a call to an error.
void name_place(Error& error, const Caller& caller);
void name_place(Error& error, const Site& site);

/// Runs `body`. Errors of `body` name the location of the call.
template <class Body>
auto at_place(const Caller& caller, const Body& body) {
  try {
    return body();
  } catch (Error& error) {
    name_place(error, caller);
    throw;
  }
}

/// Runs `body` as a call of `op` from `caller`. `op` is null if the call belongs to no particular op. The sites of the
/// nodes that `body` records have this op and this location. Errors that `body` throws name the location.
template <class Body>
auto as_call(Tape tape, const Op* op, const Caller& caller, const Body& body) {
  return at_place(caller, [&] {
    const auto guard = tape.in_call(op, caller);
    return body();
  });
}

/// If an exception ends its scope, the tape becomes what it was: without the nodes recorded since, and with its default
/// dtype and ops.
class [[nodiscard]] Rollback {
 public:
  explicit Rollback(const Tape& tape)
      : tape_(tape), size_(tape.size()), default_dtype_(tape.default_dtype()), ops_(tape.ops()) {}
  Rollback(const Rollback&) = delete;
  Rollback& operator=(const Rollback&) = delete;
  ~Rollback() {
    if (std::uncaught_exceptions() == exceptions_) return;
    tape_.truncate(size_);
    tape_.set_default_dtype(default_dtype_);
    tape_.set_ops(ops_ != nullptr ? *ops_ : builtin_ops());
  }

 private:
  Tape tape_;
  std::size_t size_;
  Dtype default_dtype_;
  const OpTable* ops_;
  int exceptions_ = std::uncaught_exceptions();
};

/// Like as_call, but with a Rollback.
template <class Body>
auto all_or_nothing(Tape tape, const Op* op, const Caller& caller, const Body& body) {
  return as_call(tape, op, caller, [&] {
    const Rollback rollback(tape);
    return body();
  });
}

}  // namespace xtape
