// Requirements on every op of the op table.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "source_root.hpp"
#include "xtape/op/op.hpp"

using namespace xtape;

namespace {

template <class Check>
void for_every_row(const Check& check) {
  REQUIRE(builtin_ops().ops().size() >= 60);
  for (const auto& each : builtin_ops().ops()) {
    const auto& name = each.first;
    const auto& row = each.second;
    CAPTURE(name);
    check(*row);
  }
}

}  // namespace

TEST_CASE("every op has a doc: a formula or sentences") {
  for_every_row([](const Op& op) {
    CHECK(op.doc.size() >= 3);
    CHECK((op.doc.back() == '.' || op.doc.back() == ')'));
  });
}

TEST_CASE("every attribute has its own name, a doc, and a default of its type if it has one") {
  for_every_row([](const Op& op) {
    std::set<std::string> names;
    for (const AttributeSpec& attribute : op.attributes) {
      CAPTURE(attribute.name);
      CHECK(names.insert(attribute.name).second);
      CHECK(attribute.doc.size() >= 5);
      if (!attribute.initial) continue;
      const Attribute& initial = *attribute.initial;
      switch (attribute.type) {
        case AttributeType::boolean:
          CHECK(std::holds_alternative<bool>(initial));
          break;
        case AttributeType::integer:
          CHECK(std::holds_alternative<std::int64_t>(initial));
          break;
        case AttributeType::number:
        case AttributeType::element:
          CHECK(std::holds_alternative<double>(initial));
          break;
        case AttributeType::text:
          CHECK(std::holds_alternative<std::string>(initial));
          break;
        case AttributeType::integers:
          CHECK(std::holds_alternative<std::vector<std::int64_t>>(initial));
          break;
        case AttributeType::dtype:
          CHECK((initial == Attribute{std::string("float")} || std::holds_alternative<Dtype>(initial)));
          break;
        case AttributeType::named_sizes:
          CHECK(std::holds_alternative<NamedSizes>(initial));
          break;
      }
    }
  });
}

TEST_CASE("every op has distinct input names, with optional inputs last") {
  for_every_row([](const Op& op) {
    std::set<std::string> names;
    bool last = false;
    for (const InputSpec& input : op.inputs) {
      CHECK(names.insert(input.name).second);
      CHECK((!last || input.arity == Arity::optional));
      last = last || input.arity != Arity::one;
    }
    CHECK(!op.outputs.empty());
    CHECK(op.derivative.kept < op.outputs.size());
  });
}

TEST_CASE("every op has the kernel, tile, view or expansion that its kind needs") {
  for_every_row([](const Op& op) {
    CHECK(op.shape);
    const int ways = (op.lowering.kernel ? 1 : 0) + (op.lowering.tile ? 1 : 0) + (op.lowering.view ? 1 : 0);
    CHECK(ways <= 1);
    CHECK((ways == 1 || op.expand));

    CHECK((op.lowering.runs() || op.expand || op.record));
    CHECK(!op.is_source());
    for (int input : op.lowering.overwrites) CHECK((input >= 0 && input < static_cast<int>(op.inputs.size())));
    if (op.random) CHECK((op.lowering.kernel || op.expand));
  });
}

TEST_CASE("every differentiable op has a gradient or an expansion") {
  for_every_row([](const Op& op) {
    if (op.inputs.empty() || !op.differentiable) {
      CHECK(!op.gradient);
    } else {
      CHECK((op.gradient || op.expand));
    }
  });
}

TEST_CASE("the pages of docs/ops have what `xtape ops` prints about every op") {
  std::ostringstream pages;
  for (const auto& page : std::filesystem::directory_iterator(source_root() + "/docs/ops"))
    pages << std::ifstream(page.path()).rdbuf();
  for_every_row([text = pages.str()](const Op& op) {
    OpTable one;
    one.add(op);
    std::ostringstream printed;
    write_reference(one, printed);
    INFO("to update the pages: python3 tests/docs/reference.py .");
    CHECK(text.find(printed.str().substr(printed.str().find("\n## "))) != std::string::npos);
  });
}
