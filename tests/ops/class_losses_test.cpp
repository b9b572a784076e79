#include <cmath>
#include <limits>

#include "loss_checks.hpp"
#include "xtape/ops/losses.hpp"
#include "xtape/xtensor.hpp"

using namespace xtape;

namespace {
const xt::xarray<double> scores{{{0.3, 1.2}, {-0.7, 2.1}, {0.9, -0.4}}, {{-0.2, 0.6}, {1.7, -2.2}, {0.1, 1.3}}},
    weights{0.5, 2, 1.25};
const xt::xarray<std::int64_t> few_targets{{0, 2}, {-100, 1}};

void check_classes(const char* op, const Attributes& attributes) {
  check_loss(op, {scores, weights}, attributes, [](const Vars& x) {
    return std::vector<Operand>{x[0], x[0].tape().constant(ArrayView(few_targets)), x[1]};
  });
}
}  // namespace

TEST_CASE("op nll_loss: values, weights, ignored targets, errors") {
  check_classes("nll_loss", {});
  Tape tape;
  const Var x = tape.input("x", {2, 3}), two = tape.input("t", {2}, Dtype::int64);
  CHECK_THROWS_WITH_AS(nll_loss(x, tape.input("u", {3}, Dtype::int64)),
                       "nll_loss: 'target' of shape (3,) must have shape (2,), that of the input without the axis of "
                       "its classes",
                       ShapeError);
  CHECK_THROWS_WITH_AS(nll_loss(x, two, two),
                       "nll_loss: 'weight' of shape (2,) must have shape (3,), one weight for "
                       "each class",
                       ShapeError);
  CHECK_THROWS_AS(nll_loss(tape.input("s", {}), two), ShapeError);
  const Var wrong = tape.constant(ArrayView(xt::xarray<std::int64_t>{3}));
  CHECK_THROWS_AS(fast(nll_loss(tape.parameter("p", xt::xarray<float>{{1, 2, 3}}), wrong)), Error);
  const Var none = tape.parameter("q", xt::xarray<float>{{-std::numeric_limits<float>::infinity(), 2}});
  const Var ignored = tape.constant(ArrayView(xt::xarray<std::int64_t>{-100}));
  CHECK(fast(nll_loss(none, ignored, "sum")).as<float>()[0] == 0);
  const Var first = tape.constant(ArrayView(xt::xarray<std::int32_t>{1}));  // not 2^32 + 1
  CHECK(fast(nll_loss(none, first, "sum", (std::int64_t{1} << 32) + 1)).as<float>()[0] == -2);
}
TEST_CASE("op cross_entropy_loss: values, weights, smoothing, any axis of classes, errors") {
  check_classes("cross_entropy_loss", {});
  check_classes("cross_entropy_loss", {{"label_smoothing", 0.2}});
  Tape tape;
  const Var x = tape.parameter("x", ArrayView(scores)), t = tape.constant(ArrayView(few_targets));
  const double front = fast(cross_entropy_loss(x, t)).as<double>()[0];
  const double back = fast(cross_entropy_loss(transpose(x, {0, 2, 1}), t, "mean", -100, 0, -1)).as<double>()[0];
  CHECK(close(front, back, 1e-14));
  const auto [total, count] = cross_entropy_sum(transpose(x, {0, 2, 1}), t);
  CHECK(close(fast(total / count).as<double>()[0], front, 1e-14));
  CHECK_THROWS_WITH_AS(cross_entropy_loss(x, t, "mean", -100, 1.5),
                       "cross_entropy_loss: label_smoothing must be between 0 and 1, got 1.5", Error);
}

TEST_CASE("cross_entropy: the values of the op cross_entropy_loss, with the kernel where there are no weights") {
  Tape tape;
  const Var x = tape.parameter("x", ArrayView(scores)), t = tape.constant(ArrayView(few_targets));
  const Var last = transpose(x, {0, 2, 1}), w = tape.parameter("w", ArrayView(weights));
  const auto check_same = [](const Var& found, const Var& expected) {
    REQUIRE(found.type() == expected.type());
    const auto a = fast(found).to<double>(), b = fast(expected).to<double>();
    for (std::size_t i = 0; i < a.size(); ++i) CHECK(close(a.flat(i), b.flat(i), 1e-14));
  };
  for (const char* reduction : {"mean", "sum", "none"})
    for (const double smoothing : {0.0, 0.3})
      for (const std::int64_t ignored : {-100, 2}) {
        const Var known = ignored == 2 ? maximum(t, 0) : t;
        check_same(cross_entropy(x, known, reduction, ignored, smoothing),
                   cross_entropy_loss(x, known, reduction, ignored, smoothing));
        check_same(cross_entropy(last, known, reduction, ignored, smoothing, -1),
                   cross_entropy_loss(x, known, reduction, ignored, smoothing));
        check_same(cross_entropy(x, known, w, reduction, ignored, smoothing),
                   cross_entropy_loss(x, known, w, reduction, ignored, smoothing));
      }
  check_same(cross_entropy(x, t), cross_entropy_loss(x, t));
  check_same(cross_entropy(x.at(0, all, 0), t.at(0, 0)), cross_entropy_loss(x.at(0, all, 0), t.at(0, 0)));
  check_same(grad(cross_entropy(x, t, "mean", -100, 0.2), x), grad(cross_entropy_loss(x, t, "mean", -100, 0.2), x));
  CHECK(std::isnan(fast(cross_entropy(x, t * 0 - 100)).as<double>()[0]));  // no target counts, as in PyTorch

  const auto has_kernel = [](const Var& loss) {
    const Tape of = loss.tape();
    for (std::size_t i = 0; i < of.size(); ++i)
      if (of.node(i).op->name == "cross_entropy") return true;
    return false;
  };
  Tape other;
  const Var logits = other.input("x", {2, 5}), classes = other.input("t", {2}, Dtype::int64);
  CHECK_FALSE(has_kernel(cross_entropy(logits, classes, "none")));
  CHECK(has_kernel(cross_entropy(logits, classes)));

  CHECK_THROWS_WITH_AS(cross_entropy(last, t),
                       "cross_entropy: the target of shape (2, 2) must have shape (2, 3), that of the input (2, 2, 3) "
                       "without axis 1, of its classes; for classes along the last axis, pass axis -1",
                       ShapeError);
  CHECK_THROWS_AS(cross_entropy(x, t, "average"), Error);
  CHECK_THROWS_AS(cross_entropy(x, x), Error);
  CHECK_THROWS_AS(cross_entropy(x, t, "mean", -100, 2), Error);
}
