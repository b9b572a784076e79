/// Functions of the program that become bodies of nodes. Private to ops.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "xtape/op/op.hpp"

namespace xtape {

/// The op of custom_gradient, also for the sites of functions that are made of it.
const Op& custom_gradient_op();

struct Enclosed {
  std::shared_ptr<const Tape> body;  ///< Its inputs are the arguments in their order, then `captured`.
  Vars captured;                     ///< The values of the tape that the function uses.
};

/// Calls `function` on values without a number, of the types `arguments`, and encloses what it records. Throws what the
/// function throws, HandleError for results of another tape, and Error if one of its values is played or differentiated
/// by an argument outside of it. The caller truncates the tape then.
Enclosed enclosed(Tape tape, const std::vector<ValueType>& arguments,
                  const std::function<Vars(const Vars&)>& function);

/// Whether a call, or one in its body, draws random numbers. Attention and dropout with a rate of 0 draw none.
bool draws(const Node& node);
/// Whether a node of the tape does.
bool draws(const Tape& tape);

/// Throws ShapeError, which begins with `what`, unless `results` have these types.
void require_types(const std::string& what, const Vars& results, const std::vector<ValueType>& types);

/// The gradients of the results of a body by the marked inputs, on a tape of its own, where no input depends on
/// another. Its inputs are those of the body, then a cotangent for each result. `grad` is xtape::grad, with zeros
/// where no gradient flows.
Tape pullback(const Tape& body, const std::vector<bool>& marked,
              const std::function<Vars(const Vars&, const Vars&, const Vars&)>& grad);

}  // namespace xtape
