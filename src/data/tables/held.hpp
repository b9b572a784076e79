/// Access to data that several objects share.
#pragma once

#include <memory>

#include "xtape/owner.hpp"

namespace xtape {

/// Returns the data. Throws HandleError if the object was moved from.
template <class T>
const T& held(const std::shared_ptr<const T>& data) {
  if (!data) return *Owner<const T>();  // throws
  return *data;
}

}  // namespace xtape
