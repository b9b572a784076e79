// cumsum: running sums.
#include "ops/recording/batching.hpp"
#include "ops/recording/op_helpers.hpp"
#include "xtape/op/op.hpp"
#include "xtape/ops.hpp"

namespace xtape {

namespace {
const Op& cumsum_op() {
  static const Op entry{
      .name = "cumsum",
      .doc = R"(The running sums along `axis`: each element is the sum of the elements up to and including its own
           place. With `reverse`, it is the sum of the elements from its own place to the end. float32 is summed in
           double, float64 with compensation, integers and bool as int64. The gradient is the cumsum of the cotangent in
           the other direction.)",
      .inputs = {{"x"}},
      .attributes = {{"axis", AttributeType::integer, "The axis along which the elements are summed.",
                      std::int64_t{-1}},
                     {"reverse", AttributeType::boolean, "If true, the sums run from the end.", false}},
      .shape = [](const OpCall& call) -> std::vector<ValueType> {
        normal_axis(call.integer("axis"), call.shape(0).size());
        return {{is_floating(call.dtype(0)) ? call.dtype(0) : Dtype::int64, call.shape(0)}};
      },
      .gradient =
          [](const GradientCall& call) {
            return Vars{cumsum(call.cotangent(), call.attributes().get<std::int64_t>("axis"),
                               !call.attributes().get<bool>("reverse"))};
          },
      .batch = batch_along(),
      .lowering = {.kernel = kernel_by_name, .overwrites = {0}}};
  return entry;
}
}  // namespace

Var cumsum(const Argument& x, std::int64_t axis, bool reverse) {
  return apply(cumsum_op(), {x}, {{"axis", axis}, {"reverse", reverse}})[0];
}

void list_cumsum(OpTable& table) {
  table.add(cumsum_op());
}

}  // namespace xtape
