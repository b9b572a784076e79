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

TEST_CASE("tapes: an expansion that promotes int8 gives int8") {
  agree({Mode::eval, [](Subject& s) {
           const Vars v7 = {s.input({Dtype::int8, {2, 1}}, {-3, 5, 38672617706411u, 0})};
           const Vars v10 = s.call("tril", {v7[0]});
           s.give(v10[0]);
           s.carry(v7[0], v10[0]);
         }});
}

TEST_CASE("tapes: ops made of scans do not continue from a past") {
  agree({Mode::predict, [](Subject& s) {
           const Vars v0 = {s.tokens({1, 1}, 5, {0, 3, 233044361024646u})};
           const Vars v1 = {s.input({Dtype::float64, {2, 1}}, {-1, 1, 212541164597224u, 0})};
           const Vars v2 = s.call("take", {v1[0], v0[0]});
           const Vars v10 = {s.input({Dtype::float64, {1, 1}}, {-1, 1, 150315080396240u, 0})};
           const Vars v11 = s.call("crf_log_partition", {v2[0], v10[0]});
           s.give(v11[0]);
           s.carry_states();
         }});
}

TEST_CASE("tapes: a scan that emits int8") {
  agree({Mode::eval, [](Subject& s) {
           const Vars v1 = {s.constant({Dtype::float64, {1}}, {-1, 1, 166759149504100u, 0})};
           const Vars v7 = joined(scan(
               [&](const Vars&, const Vars&) {
                 const Vars v10 = {s.parameter({Dtype::int8, {2, 2}}, {-3, 5, 18033825835637u, 0})};
                 return std::pair(Vars{v10[0], v10[0]}, Vars{});
               },
               Vars{v1[0], v1[0]}, Vars{}, {0, false, {}}));
           const Vars v14 = s.call("expand_dims", {v7[1]}, {{"axis", std::int64_t{-4}}});
           s.give(v14[0]);
         }});
}
