/// Functions of the program that become bodies of nodes. Private to ops.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "xtape/op/op.hpp"

namespace xtape {

/// The op of custom_gradient. It also appears in the sites of functions that use it.
const Op& custom_gradient_op();

struct Enclosed {
  std::shared_ptr<const Tape> body;  ///< Its inputs are the arguments in order, followed by `captured`.
  Vars captured;                     ///< The values of the tape that the function uses.
};

/// Calls `function` on placeholder values of the types `arguments`, and encloses the nodes that it records. Errors of
/// the function propagate. Throws HandleError if results belong to another tape. Throws Error if a placeholder is
/// played, or something is differentiated with respect to it, outside of the function. After an error, the caller must
/// truncate the tape.
Enclosed enclosed(Tape tape, const std::vector<ValueType>& arguments, const std::function<Vars(const Vars&)>& function);

/// Returns whether a call, or a call in its body, draws random numbers. Attention and dropout with a rate of 0 draw
/// none.
bool draws(const Node& node);
/// Returns whether a node of the tape draws random numbers.
bool draws(const Tape& tape);

/// Throws ShapeError if `results` do not have these types. The text of the error begins with `what`.
void require_types(const std::string& what, const Vars& results, const std::vector<ValueType>& types);

/// Returns a separate tape with the gradients of the results of a body with respect to the marked inputs. On this tape,
/// no input depends on another. Its inputs are the inputs of the body, followed by a cotangent for each result. `grad`
/// is xtape::grad with zeros where no gradient flows.
Tape pullback(const Tape& body, const std::vector<bool>& marked,
              const std::function<Vars(const Vars&, const Vars&, const Vars&)>& grad);

}  // namespace xtape
