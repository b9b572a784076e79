// Printing a tape as text and as a graph.
#include <doctest/doctest.h>

#include <algorithm>
#include <sstream>

#include "xtape/grad.hpp"
#include "xtape/op/op.hpp"
#include "xtape/ops.hpp"

using namespace xtape;

namespace {
Tape small_tape() {
  Tape tape;
  const Var x = tape.input("x", {2, 3});
  const auto guard = tape.in_scope(std::make_shared<const Scope>(Scope{"h.0", "net.json, block 'mix'"}), 7);
  grad(sum(square(x), {0}), {x}, {.sum_outputs = true});
  return tape;
}
}  // namespace

TEST_CASE("a tape prints one line per node") {
  std::ostringstream out;
  out << small_tape();
  const std::string text = out.str();
  CHECK(text.find("#0 input 'x'() -> float32 (2, 3)  at printing_test.cpp, line 16\n") == 0);
  CHECK(text.find("\n#1 square(#0) -> float32 (2, 3)  at h.0 (net.json, block 'mix', line 7)\n") != std::string::npos);
  CHECK(text.find("\n#2 sum(#1, axis=(0,), keepdims=false) -> float32 (3,)") != std::string::npos);
  CHECK(static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')) == small_tape().size());
}

TEST_CASE("bodies are printed inside their node") {
  Tape tape;
  const Var x = tape.input("x", {2});
  checkpoint([](const Vars& in) { return Vars{tanh(in[0])}; }, {x});
  std::ostringstream out;
  out << tape;
  CHECK(out.str() ==
        "#0 input 'x'() -> float32 (2,)  at printing_test.cpp, line 35\n"
        "#1 checkpoint(#0) -> float32 (2,)  at printing_test.cpp, line 36\n"
        "    #0 input 'in0'() -> float32 (2,)\n"
        "    #1 tanh(#0) -> float32 (2,)  at printing_test.cpp, line 36\n"
        "    gives #1\n");
}

TEST_CASE("DOT: nodes with two lines of text, and edges") {
  Tape tape;
  const Var x = tape.input("a \"b\"", {2});
  square(x);
  std::ostringstream out;
  tape.to_dot(out);
  CHECK(out.str() ==
        "digraph tape {\n"
        "  node [shape=box, fontname=\"Helvetica\", fontsize=10];\n"
        "  n0 [label=\"#0 input a \\\"b\\\"\\nfloat32 (2,)\", style=rounded];\n"
        "  n1 [label=\"#1 square\\nfloat32 (2,)\"];\n"
        "  n0 -> n1;\n"
        "}\n");
}

TEST_CASE("attributes printed as text are read back as the same number") {
  CHECK(to_string(Attribute(0.1)) == "0.1");
  CHECK(to_string(Attribute(1e-5)) == "1e-05");
  CHECK(to_string(Attribute(1.0 / 3)) == "0.33333333333333331");
  CHECK(to_string(Attribute(std::vector<std::int64_t>{1, 2})) == "(1, 2)");
  CHECK(to_string(Attribute(NamedSizes{{"h", 2}})) == "{h=2}");
  CHECK(to_string(Attribute(Dtype::int64)) == "int64");
  CHECK(to_string(Attribute(std::string("x"))) == "'x'");
}
