#include "ready.hpp"

namespace xtape {

void name_call(Error& error, const Site& site) {
  if (site.op != nullptr) error.name_op(site.op->name);
  error.name_location(to_string(site));
}

}  // namespace xtape
