// Faults in programs half of which have masks of -inf: the call and the line are named right in all.
#include <cmath>

#include "faulty.hpp"
#include "folders.hpp"
#include "xtape/model.hpp"
#include "xtape/scan.hpp"
#include "xtape/xtensor.hpp"

using namespace xtape;
using namespace xtape::test;
using namespace faulty;

namespace {
using Numbers = xt::xarray<float>;
using Steps = std::pair<Vars, Vars>;

const Numbers small{{1.F, 2.F, 3.F, 4.F}, {4.F, 3.F, 2.F, 1.F}};

/// True at the first columns.
Var first_columns(const Var& x, std::int64_t count) {
  return iota(x.tape(), {x.shape().back()}) < count;
}
Var behind_mask(const Var& x) {
  return masked_fill(x, first_columns(x, 2), -inf);
}
/// The input "mask", which is 0 and -inf: the first two columns are masked, and the whole first row.
Var mask_input(const Var& x) {
  return x.tape().input("mask", x.shape());
}

const std::vector<Fault>& masked_faults() {
  static const std::vector<Fault> list = {
      {"the target is masked", small,
       [](const Var& x) {
         const Var targets = x.tape().constant(xt::xarray<std::int64_t>{3, 1});
         const Var logits = behind_mask(x);
         AT_FAULT(cross_entropy_sum(logits, targets).first, "cross_entropy");
         return Recorded{{at_fault, grad(at_fault, {x})[0]},
                         fault_op,
                         fault_line,
                         " masked_fill [1, 1]  at masked_faults_test.cpp"};
       }},
      {"zeros behind a guard on abs of masked values", small,
       [](const Var& x) {
         const Var masked = behind_mask(x);
         const Var shifted = exp(masked - where(equal(abs(masked), inf), 0, masked));
         AT_FAULT(log(shifted), "log");
         return Recorded{{sum(at_fault)}, fault_op, fault_line, "-inf in"};
       }},
      {"zeros behind a guard on the negative of masked values", small,
       [](const Var& x) {
         const Var masked = behind_mask(x);
         const Var shifted = exp(masked - where(equal(-masked, inf), 0, masked));
         AT_FAULT(log(shifted), "log");
         return Recorded{{sum(at_fault)}, fault_op, fault_line, "-inf in"};
       }},
      {"the difference of two rows that are masked throughout", small,
       [](const Var& x) {
         const Var first = logsumexp(masked_fill(x, x < 5, -inf), {1});
         const Var second = logsumexp(masked_fill(x * 2, x < 5, -inf), {1});
         AT_FAULT(first - second, "sub");
         return Recorded{{sum(at_fault)}, fault_op, fault_line, "NaN in"};
       }},
      {"the difference of two exponentials that overflow", Numbers{100.F, 1.F},
       [](const Var& x) {
         AT_FAULT(exp(x), "exp");
         return Recorded{{sum(at_fault - exp(x * 2))}, fault_op, fault_line, "inf in"};
       }},
      {"exponentials overflow", Numbers{100.F, 1.F},
       [](const Var& x) {
         AT_FAULT(exp(x), "exp");
         return Recorded{{sum(at_fault * 3)}, fault_op, fault_line, "inf in"};
       }},
      {"exponentials overflow behind a mask", small,
       [](const Var& x) {
         const Var scaled = behind_mask(x) * 50;
         AT_FAULT(exp(scaled), "exp");
         return Recorded{{sum(at_fault)}, fault_op, fault_line, "inf in"};
       }},
      {"a probability that rounds to 1", Numbers{40.F, 1.F},
       [](const Var& x) {
         const Var rest = 1 - sigmoid(x);
         AT_FAULT(log(rest), "log");
         return Recorded{{sum(at_fault)}, fault_op, fault_line, "-inf in"};
       }},
      {"softmax by hand overflows behind a mask", small,
       [](const Var& x) {
         const Var scaled = behind_mask(x) * 50;
         AT_FAULT(exp(scaled), "exp");
         const Var p = at_fault / sum(at_fault, {1}, true);
         const Var loss = sum(square(p));
         return Recorded{{loss, grad(loss, {x})[0]}, fault_op, fault_line, "inf in"};
       }},
      {"the length of a long vector", Numbers{1e20F, 1.F},
       [](const Var& x) {
         AT_FAULT(square(x), "square");
         return Recorded{{sqrt(sum(at_fault))}, fault_op, fault_line, "inf in"};
       }},
      {"an overflow in the forward pass after masked attention", small,
       [](const Var& x) {
         const Var scores = masked_fill(einsum("id,jd->ij", x, x), iota(x.tape(), {2}) > 0, -inf);
         const Var mixed = einsum("ij,jd->id", softmax(scores), x) * 1e30;
         AT_FAULT(square(mixed), "square");
         const Var loss = sum(at_fault);
         return Recorded{{loss, grad(loss, {x})[0]}, fault_op, fault_line, "inf in"};
       }},
      {"expm1 overflows", Numbers{-200.F, 200.F},
       [](const Var& x) {
         AT_FAULT(expm1(x), "expm1");
         return Recorded{{mean(at_fault)}, fault_op, fault_line, "inf in"};
       }},
      {"exponentials overflow beside an additive mask", Numbers{{1.F, 2.F, 3.F}, {3.F, 2.F, 4.F}},
       [](const Var& x) {
         const Var scores = (x + mask_input(x)) * 50;
         AT_FAULT(exp(scores), "exp");
         return Recorded{{sum(at_fault)}, fault_op, fault_line, "inf in"};
       }},
      {"power of a negative number", Numbers{-2.F, 2.F},
       [](const Var& x) {
         AT_FAULT(pow(x, 1.7), "pow");
         return Recorded{{sum(at_fault)}, fault_op, fault_line, "NaN in"};
       }},
      {"softmax by hand of a row that an additive mask hides", Numbers{{1.F, 2.F, 3.F}, {3.F, 2.F, 1.F}},
       [](const Var& x) {
         const Var scores = x + mask_input(x);
         const Var largest = max(scores, {1}, true);
         AT_FAULT(scores - largest, "sub");
         const Var weights = exp(at_fault);
         return Recorded{
             {sum(weights / sum(weights, {1}, true))}, fault_op, fault_line, "from -inf in #1 input 'mask'"};
       }},
      {"a running sum overflows", Numbers{3e38F, 1e38F, 1.F},
       [](const Var& x) {
         AT_FAULT(cumsum(x, 0), "cumsum");
         return Recorded{{mean(at_fault)}, fault_op, fault_line, "inf in"};
       }},
      {"log of the probability of a masked class", small,
       [](const Var& x) {
         const Var classes = x.tape().constant(xt::xarray<std::int64_t>{2, 0});
         const Var p = gather(softmax(behind_mask(x)), 1, expand_dims(classes, 1));
         AT_FAULT(log(p), "log");
         return Recorded{{-mean(at_fault)}, fault_op, fault_line, "-inf in"};
       }},
      {"direction of a vector of zeros", Numbers{{0.F, 0.F}, {3.F, 4.F}},
       [](const Var& x) {
         const Var length = sqrt(sum(square(x), {1}, true));
         AT_FAULT(x / length, "div");
         return Recorded{{sum(at_fault)}, fault_op, fault_line, "NaN in"};
       }},
      {"distance to the largest element of a row that is masked entirely", small,
       [](const Var& x) {
         const Var largest = max(masked_fill(x, x > 0, -inf), {1}, true);
         AT_FAULT(x - largest, "sub");
         return Recorded{{mean(at_fault)}, fault_op, fault_line, "masked_fill"};
       }},
      {"a temperature of 0", Numbers{1.F, 2.F},
       [](const Var& x) {
         AT_FAULT(x / 0.0, "div");
         return Recorded{{sum(softmax(at_fault))}, fault_op, fault_line, "inf in"};
       }},
      {"a temperature of 0 before a mask", small,
       [](const Var& x) {
         const Var temperature = mean(x) - mean(x);
         AT_FAULT(x / temperature, "div");
         return Recorded{{sum(softmax(behind_mask(at_fault)) * x)}, fault_op, fault_line, "inf in"};
       }},
      {"slope of a circle at its end, backward", Numbers{1.F, 0.5F},
       [](const Var& x) {
         const Var rest = 1 - square(x);
         AT_FAULT(sqrt(rest), "div");
         const Var loss = sum(at_fault);
         return Recorded{{loss, grad(loss, {x})[0]}, fault_op, fault_line, "in the backward pass"};
       },
       true},
      {"entropy whose masked terms are hidden by where, backward", small,
       [](const Var& x) {
         const Var p = softmax(behind_mask(x));
         AT_FAULT(log(p), "log");
         const Var loss = sum(where(p > 0, p * at_fault, 0));
         return Recorded{{loss, grad(loss, {x})[0]}, fault_op, fault_line, "-inf in"};
       }},
      {"a check of one's own in a scan", Numbers{{1.F, 2.F, 3.F, 4.F, 5.F, 6.F}},
       [](const Var& x) {
         int line = 0;
         const auto cell = [&](const Vars& slice, const Vars& state) {
           const Var next = state[0] + slice[0];
           line = __LINE__ + 1;
           return Steps{{}, {watch(next, next < 9)}};
         };
         return Recorded{{sum(scan(cell, {x}, {zeros(x.tape(), {1})}).states[0])}, "watch", line, "at time step 3"};
       }},
      {"a state overflows beside masked scores", Numbers{{1.F, -1.F, 2.F, -2.F, 3.F, 1.F}},
       [](const Var& x) {
         int line = 0;
         const Var scores = masked_fill(x, x < 0, -inf);
         const auto cell = [&](const Vars& slice, const Vars& state) {
           const Var larger = state[0] + exp(slice[0]);
           line = __LINE__ + 1;
           const Var next = larger * larger * 1e5;
           return Steps{{}, {next}};
         };
         return Recorded{{sum(scan(cell, {scores}, {ones(x.tape(), {1})}).states[0])}, "mul", line, "at time step 2"};
       }},
      {"root of a negative number in a reverse scan", Numbers{{1.F, -2.F, 3.F, 4.F, 5.F, 6.F}},
       [](const Var& x) {
         int line = 0;
         const auto cell = [&](const Vars& slice, const Vars& state) {
           const Var mixed = slice[0] + 0.01 * state[0];
           line = __LINE__ + 1;
           return Steps{{}, {sqrt(mixed)}};
         };
         const ScanOptions reverse{.axis = 1, .reverse = true, .valid = {}};
         return Recorded{
             {sum(scan(cell, {x}, {ones(x.tape(), {1})}, reverse).states[0])}, "sqrt", line, "at time step 1"};
       }},
      {"a running logsumexp that begins with masked positions", Numbers{{1.F, 2.F, 3.F, -4.F, -5.F}},
       [](const Var& x) {
         int line = 0;
         const Var scores = masked_fill(x, x < 0, -inf);
         const auto cell = [&](const Vars& slice, const Vars& state) {
           const Var largest = maximum(state[0], slice[0]);
           line = __LINE__ + 1;
           const Var before = exp(state[0] - largest);
           return Steps{{}, {largest + log(before + exp(slice[0] - largest))}};
         };
         const ScanOptions reverse{.axis = 1, .reverse = true, .valid = {}};
         const Var first = full(x.tape(), {1}, -inf, Dtype::float32);
         return Recorded{{sum(scan(cell, {scores}, {first}, reverse).states[0])}, "sub", line, "at time step 4"};
       }},
      {"division by 0 in a scan within a scan", Numbers{{{1.F, 2.F, 4.F}, {1.F, 2.F, 0.F}, {1.F, 1.F, 1.F}}},
       [](const Var& x) {
         int line = 0;
         const auto inner = [&](const Vars& slice, const Vars& state) {
           const Var sum = state[0] + 1;
           line = __LINE__ + 1;
           return Steps{{}, {sum / slice[0]}};
         };
         const auto outer = [&](const Vars& slice, const Vars& state) {
           return Steps{{}, scan(inner, {slice[0]}, {state[0]}).states};
         };
         return Recorded{{sum(scan(outer, {x}, {ones(x.tape(), {1})}).states[0])},
                         "div",
                         line,
                         "at time step 1, step 2 of the scan within"};
       }},
      {"exponentials overflow behind a mask in a checkpoint", small,
       [](const Var& x) {
         int line = 0;
         const auto layer = [&](const Vars& in) {
           const Var scaled = behind_mask(in[0]) * 50;
           line = __LINE__ + 1;
           return Vars{exp(scaled) * 2};
         };
         const Var loss = mean(checkpoint(layer, {x})[0]);
         return Recorded{{loss, grad(loss, {x})[0]}, "exp", line, "checkpoint: exp"};
       }},
      {"root of 0 in a checkpoint, backward", Numbers{0.F, 1.F},
       [](const Var& x) {
         int line = 0;
         const auto layer = [&](const Vars& in) {
           const Var squares = square(in[0]);
           line = __LINE__ + 1;
           return Vars{sqrt(squares)};
         };
         const Var loss = mean(checkpoint(layer, {x})[0]);
         return Recorded{{loss, grad(loss, {x})[0]}, "div", line, "checkpoint: div"};
       },
       true},
      {"scores of causal attention overflow", Numbers{{1e20F, 2e20F}, {3e20F, 1.F}},
       [](const Var& x) {
         AT_FAULT(einsum("id,jd->ij", x, x), "einsum");
         const Var positions = iota(x.tape(), {2});
         const Var mixed =
             einsum("ij,jd->id", softmax(masked_fill(at_fault, expand_dims(positions, 1) < positions, -inf)), x);
         return Recorded{{sum(mixed), grad(sum(mixed), {x})[0]}, fault_op, fault_line, "inf in"};
       }},
      {"an own RMS norm overflows", Numbers{{1e25F, 1.F}, {1.F, 2.F}},
       [](const Var& x) {
         AT_FAULT(square(x), "square");
         return Recorded{
             {sum(x * rsqrt(mean(at_fault, {1}, true) + 1e-5)) + sum(at_fault)}, fault_op, fault_line, "inf in"};
       }},
      {"label smoothing over masked classes", small,
       [](const Var& x) {
         const Var targets = x.tape().constant(xt::xarray<std::int64_t>{3, 2});
         const Var logits = behind_mask(x);
         AT_FAULT(cross_entropy_sum(logits, targets, -100, 0.1).first, "cross_entropy");
         return Recorded{{at_fault}, fault_op, fault_line, "masked_fill [0, 0]"};
       }},
      {"divergence from a distribution with a 0", Numbers{0.5F, 0.5F},
       [](const Var& x) {
         const Var q = x - x.tape().constant(Numbers{0.5F, 0.F});
         AT_FAULT(x / q, "div");
         return Recorded{{sum(x * log(at_fault))}, fault_op, fault_line, "inf in"};
       }},
      {"divergence of two masked distributions", small,
       [](const Var& x) {
         const Var p = softmax(behind_mask(x)), q = softmax(behind_mask(x * 2));
         AT_FAULT(p / q, "div");
         return Recorded{{sum(p * log(at_fault))}, fault_op, fault_line, "NaN in"};
       }},
      {"log of a dead relu", Numbers{-1.F, 2.F},
       [](const Var& x) {
         const Var y = relu(x);
         AT_FAULT(log(y), "log");
         return Recorded{{mean(at_fault)}, fault_op, fault_line, "-inf in"};
       }},
      {"exponentials overflow beside a mask that is a logarithm", small,
       [](const Var& x) {
         const Var keep = cast(~first_columns(x, 2), Dtype::float32);
         const Var scores = x * 50 + log(keep);
         AT_FAULT(exp(scores), "exp");
         return Recorded{{sum(at_fault)}, fault_op, fault_line, "inf in"};
       }},
      {"NaN in a weight", Numbers{1.F, 2.F},
       [](const Var& x) {
         const int line = __LINE__ + 1;
         const Var weight = x.tape().parameter("weight", ArrayView(Numbers{1.F, NaN}));
         return Recorded{{sum(x * weight)}, "parameter", line, "NaN in #1 parameter 'weight'"};
       }},
      {"root of 0 beside a mask that is a parameter", Numbers{{0.F, 1.F, 2.F}, {1.F, 2.F, 3.F}},
       [](const Var& x) {
         const Var mask = x.tape().parameter("mask", ArrayView(Numbers{{-inf, 0.F, 0.F}, {0.F, -inf, 0.F}}));
         const Var p = softmax(x + mask);
         AT_FAULT(rsqrt(x), "rsqrt");
         return Recorded{{sum(p * at_fault)}, fault_op, fault_line, "inf in"};
       }},
      {"NaN in a constant", Numbers{1.F, 2.F},
       [](const Var& x) {
         const int line = __LINE__ + 1;
         const Var scale = x.tape().constant(Numbers{NaN, 1.F});
         return Recorded{{sum(x * scale)}, "constant", line, "NaN in #1 constant"};
       }},
      {"a mask with the wrong sign", small,
       [](const Var& x) {
         const Var masked = behind_mask(x);
         AT_FAULT(-masked, "neg");
         return Recorded{{sum(softmax(at_fault) * x)}, fault_op, fault_line, " masked_fill [0, 0]"};
       }},
      {"a product of large factors", Numbers{1.F, 2.F},
       [](const Var& x) {
         const Var large = x * 1e38;
         AT_FAULT(large * large, "mul");
         return Recorded{{sum(at_fault)}, fault_op, fault_line, "inf in"};
       }},
      {"masked scores are added up", small,
       [](const Var& x) {
         const Var masked = behind_mask(x) * 2;
         AT_FAULT(sum(masked), "sum");
         return Recorded{
             {at_fault, grad(at_fault, {x})[0]}, fault_op, fault_line, "; no call makes it of finite numbers"};
       }},
      {"exponentials overflow in float64", Numbers{800.F, 1.F},
       [](const Var& x) {
         const Var wide = cast(x, Dtype::float64);
         AT_FAULT(exp(wide), "exp");
         return Recorded{{mean(at_fault)}, fault_op, fault_line, "inf in"};
       }},
  };
  return list;
}
}  // namespace

TEST_CASE("masked faults: call and line are named, and the capsule fails in the same way") {
  CHECK(masked_faults().size() == 44);
  Store masks;
  masks.add("mask", Array(ArrayView(Numbers{{-inf, -inf, -inf}, {-inf, -inf, 0.F}})));
  for (const Fault& fault : masked_faults()) {
    CAPTURE(fault.name);
    CHECK(faulty::checked(fault, "masked_faults_test.cpp", masks).backward == fault.backward);
  }
}
