// Programs that once disagreed, in their smallest form, as `tapes` prints them.
#include "kept.hpp"

using namespace xtape;
using namespace xtape::fuzz;

