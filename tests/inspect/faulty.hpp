/// Faults that are recorded on purpose, each with the call and the line that must be named.
#pragma once

#include <functional>
#include <limits>
#include <optional>
#include <string>

#include "play.hpp"
#include "xtape/inspect.hpp"

namespace faulty {

using namespace xtape;

/// What a fault records: its outputs, the call that is at fault, and what the failure's text says of it.
struct Recorded {
  Vars outputs;
  std::string op;
  int line = 0;  ///< 0: not checked.
  std::string says = "";
};

struct Fault {
  std::string name;
  xt::xarray<float> x;  ///< Fed to the input "x".
  std::function<Recorded(const Var& x)> record;
  bool backward = false;
};

constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float NaN = std::numeric_limits<float>::quiet_NaN();

/// `y`, which is recorded in this line, is at fault.
#define AT_FAULT(y, op)              \
  const Var at_fault = (y);          \
  const std::string fault_op = (op); \
  const int fault_line = __LINE__

/// Records the fault in `file` and finds its failure. Checks that it names the op and the line, and that the capsule
/// fails in the same way. `fed` are the arrays of other inputs.
inline Failure checked(const Fault& fault, const std::string& file, Store fed = {}) {
  Tape tape;
  const Recorded recorded = fault.record(tape.input("x", Shape(fault.x.shape().begin(), fault.x.shape().end())));
  fed.add("x", Array(ArrayView(fault.x)));
  const std::optional<Capsule> capsule = find_failure({tape, recorded.outputs, fed, {}});
  REQUIRE(capsule);
  const Failure& failure = capsule->failure;
  const std::string text = to_string(failure);
  CAPTURE(text);
  CHECK(failure.op == recorded.op);
  CHECK(text.find(recorded.says) != std::string::npos);
  const std::string& place = failure.error ? failure.what : failure.site;
  if (recorded.line > 0) CHECK(place.find(file + ", line " + std::to_string(recorded.line)) != std::string::npos);
  CHECK((failure.passed_on || capsule->tape.size() <= 20));
  const Replay again = replay(*capsule);
  CHECK(again.fails);
  CHECK(again.same_bits);
  return failure;
}

}  // namespace faulty
