// Programs that once failed a check, in their smallest form, as `tapes` prints them.
#include "kept.hpp"

using namespace xtape;
using namespace xtape::fuzz;

TEST_CASE("tapes: scale, mask and softmax whose cotangent is the scaled value") {
  agree({Mode::eval, [](Subject& s) {
    const Vars v3 = {s.input({Dtype::boolean, {1, 1, 1, 1}}, {-3, 5, 107613024429802u, 0})};
    const Vars v4 = {s.input({Dtype::float64, {1, 1, 1, 1}}, {-1, 1, 1000400u, 0})};
    const Vars v6 = {s.input({Dtype::float64, {}}, {1.5, 3, 121197472483582u, 0})};
    const Vars v8 = s.call("div", {v4[0], v6[0]});
    const Vars v9 = s.call("masked_fill", {v8[0], v3[0]}, {{"value", -HUGE_VAL}});
    const Vars v10 = s.call("softmax", {v9[0]});
    const Vars v13 = grad(Vars{v10[0]}, Vars{v4[0]}, Vars{v8[0]});
    s.give(v13[0]);
  }});
}
