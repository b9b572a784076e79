/// Ops that users add, one of each way of being computed.
#pragma once

#include "xtape/op.hpp"

namespace xtape::fuzz {

void list_own_ops(OpTable& table);

}  // namespace xtape::fuzz
