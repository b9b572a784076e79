#include "player/run/ready.hpp"

#include "tape/calls.hpp"

namespace xtape {

void name_call(Error& error, const Site& site) {
  if (site.op != nullptr) error.name_op(site.op->name);
  name_place(error, site);
}

Kernel make_kernel(const KernelCall& call, const Site& site) {
  try {
    return call.op.lowering.kernel(call);
  } catch (Error& error) {
    name_call(error, site);
    throw;
  }
}

}  // namespace xtape
