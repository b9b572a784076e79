/// Examples of ops that users add, one for each way of computing an op.
#pragma once

#include "xtape/op/op.hpp"

namespace xtape::fuzz {

void list_own_ops(OpTable& table);

}  // namespace xtape::fuzz
