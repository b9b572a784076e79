#include "source_root.hpp"

namespace xtape {

std::string source_root() {
  return XTAPE_SOURCE_ROOT;
}

}  // namespace xtape
