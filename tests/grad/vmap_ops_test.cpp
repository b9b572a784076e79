// Ops mapped by vmap. Every gradient check of the suite ops also compares the mapped function with a loop
// (tests/support).
#include "mapped.hpp"
#include "xtape/grad.hpp"
#include "xtape/op/op.hpp"
#include "xview.hpp"

namespace mapped {

TEST_CASE("elementwise ops align the ranks of mapped and unmapped operands") {
  const Function sums = [](const Vars& x) {
    return Vars{x[0] + x[1], x[1] * x[0] - 2, where(x[0] < x[1], x[0], x[1])};
  };
  check_mapped(sums, {floats({4, 3}), floats({4, 2, 3})});
  check_mapped(sums, {floats({4}), floats({4, 2, 3})});
  check_mapped(sums, {floats({2, 3}), floats({4, 3})}, {.in_axes = {std::nullopt, 0}});
  check_mapped(sums, {floats({3, 4}), floats({2, 3})}, {.in_axes = {1, std::nullopt}, .out_axes = {0, 2, -1}});
  check_mapped(sums, {floats({4}), floats({5, 1, 3})}, {.in_axes = {0, std::nullopt}});
}

TEST_CASE("products get one more letter") {
  const Function products = [](const Vars& x) {
    return Vars{matmul(x[0], x[1]), einsum("ij,jk->k", x[0], x[1]), einsum("ij,jk->", x[0], x[1])};
  };
  check_mapped(products, {floats({4, 2, 3}), floats({4, 3, 5})});
  check_mapped(products, {floats({2, 3}), floats({3, 5, 4})}, {.in_axes = {std::nullopt, -1}});
  check_mapped(products, {floats({2, 4, 3}), floats({3, 5})}, {.in_axes = {1, std::nullopt}});
  check_mapped([](const Vars& x) { return Vars{matmul(x[0], x[0])}; }, {floats({4, 3})});
}

TEST_CASE("indexing with mapped indices, mapped arrays, or both") {
  for (const std::int64_t axis : {0, 1, -1}) {
    CAPTURE(axis);
    const Function taking = [=](const Vars& x) {
      const Var y = take(x[0], x[1], axis);
      return Vars{y, index_add(x[0], axis, x[1], y * 2)};
    };
    check_mapped(taking, {floats({4, 3, 3}), integers({4, 2, 2}, 3)});
    check_mapped(taking, {floats({4, 3, 3}), integers({2}, 3)}, {.in_axes = {0, std::nullopt}});
    check_mapped(taking, {floats({3, 3}), integers({4, 2, 2}, 3)}, {.in_axes = {std::nullopt, 0}});
    check_mapped(taking, {floats({3, 3}), integers({4}, 3)}, {.in_axes = {std::nullopt, 0}});
    const Function gathering = [=](const Vars& x) {
      const Var y = gather(x[0], axis, x[1]);
      return Vars{y, scatter_add(x[0], axis, x[1], y * 2)};
    };
    check_mapped(gathering, {floats({4, 3, 3}), integers({4, 3, 3}, 3)});
    check_mapped(gathering, {floats({4, 3, 3}), integers({3, 3}, 3)}, {.in_axes = {0, std::nullopt}});
    check_mapped(gathering, {floats({3, 3}), integers({4, 3, 3}, 3)}, {.in_axes = {std::nullopt, 0}});
  }
  check_mapped([](const Vars& x) { return Vars{one_hot(x[0], 3), one_hot(x[0] + 2, 3)}; }, {integers({4, 2}, 3)});
}

TEST_CASE("an index outside of one example's array is an error, not another example's element") {
  Tape tape;
  const xt::xarray<std::int64_t> wrong{{0, 1}, {2, 3}};  // 3 would be the first element of a third example
  const Var x = tape.constant(floats({2, 3})), indices = tape.constant(ArrayView(wrong));
  const Var y = vmap([](const Vars& each) { return Vars{take(each[0], each[1])}; }, {x, indices})[0];
  CHECK_THROWS_WITH_AS(evaluate(y), doctest::Contains("is out of range"), Error);
}

TEST_CASE("reductions over given axes, all axes, and of scalars") {
  const Function reductions = [](const Vars& x) {
    return Vars{sum(x[0]),
                mean(x[0], {}, true),
                max(x[0], {0}),
                argmax(x[0], 0),
                variance(x[0], {-1}),
                logsumexp(x[0], {-1}),
                cumsum(x[0], 0, true),
                flip(x[0], {}),
                any(x[0] > 0)};
  };
  check_mapped(reductions, {floats({4, 3, 2})});
  check_mapped(reductions, {floats({3, 4})}, {.in_axes = {1}});
  const Function of_scalars = [](const Vars& x) {
    return Vars{sum(x[0]),
                mean(x[0], {}, true),
                max(x[0]),
                flip(x[0], {}),
                squeeze(x[0]),
                reshape(x[0], {1, 1}),
                expand_dims(x[0], 0),
                transpose(x[0]),
                softmax(expand_dims(x[0], 0)),
                broadcast_to(x[0], {2, 3})};
  };
  check_mapped(of_scalars, {floats({4})});
  check_mapped([](const Vars& x) { return Vars{top_k(x[0], 2).first, top_k(x[0], 2).second}; }, {floats({4, 3})});
}

TEST_CASE("shapes") {
  const Function shapes = [](const Vars& x) {
    return Vars{reshape(x[0], {-1}),
                transpose(x[0]),
                transpose(x[0], {1, 0}),
                squeeze(expand_dims(x[0], -1)),
                concat({x[0], x[1]}, -1),
                stack({x[0], x[1]}, -1),
                split(x[0], 3, 1)[1],
                unstack(x[0], 0)[1],
                slice(x[0], {1}, {2}),
                slice(x[0], {0, -1}, {2, 0}, {1, -1}),
                pad(x[0], {1, 0}, {0, 2}, 7),
                update_slice(x[0], slice(x[1], {0}, {1}), {-1}),
                tile(x[0], {2, 1}),
                tril(x[0]),
                diag_embed(x[0]),
                diagonal(slice(x[0], {0, 0}, {2, 2}), 0, 1),
                rearrange(x[0], "a b -> (b a)"),
                shift_right(x[0], 0)};
  };
  check_mapped(shapes, {floats({4, 2, 3}), floats({4, 2, 3})});
  check_mapped(shapes, {floats({2, 4, 3}), floats({2, 3})}, {.in_axes = {1, std::nullopt}});
  check_mapped(shapes, {floats({2, 3}), floats({2, 3, 4})}, {.in_axes = {std::nullopt, 2}});
}

TEST_CASE("normalisations and losses are those of each example") {
  const Function norms = [](const Vars& x) {
    return Vars{softmax(x[0], 0), log_softmax(x[0]), layer_norm(x[0], x[1], x[2]), rms_norm(x[0], x[1])};
  };
  check_mapped(norms, {floats({4, 2, 3}), floats({3}), floats({3})}, {.in_axes = {0, std::nullopt, std::nullopt}});
  check_mapped(norms, {floats({4, 2, 3}), floats({4, 3}), floats({4, 3})});
  check_mapped(norms, {floats({2, 3}), floats({4, 3}), floats({3})}, {.in_axes = {std::nullopt, 0, std::nullopt}});
  const Function loss = [](const Vars& x) {
    const auto [total, count] = cross_entropy_sum(x[0], x[1], 2, 0.1);
    return Vars{total, count};
  };
  check_mapped(loss, {floats({4, 2, 3}), integers({4, 2}, 3)});
  check_mapped(loss, {floats({2, 3}), integers({4, 2}, 3)}, {.in_axes = {std::nullopt, 0}});
}

TEST_CASE("random ops draw for each example, or once for all") {
  Tape tape;
  const Var x = tape.constant(ArrayView(Numbers(xt::ones<double>({6, 50}))));
  const Function draws = [](const Vars& each) {
    const Tape here = each[0].tape();
    return Vars{dropout(each[0], 0.5), uniform(here, {50}, 0, 1, Dtype::float64), each[0] * 1};
  };
  const Vars different = vmap(draws, {x}), same = vmap(draws, {x}, {.randomness = Randomness::same});
  const auto values = played(tape, {different[0], different[1], same[0], same[1]});
  for (std::size_t k : {0, 1}) {
    CHECK(values[k].shape()[0] == 6);
    CHECK(xt::view(values[k], 0) != xt::view(values[k], 1));
    for (int row = 1; row < 6; ++row) CHECK(xt::view(values[k + 2], 0) == xt::view(values[k + 2], row));
  }
  CHECK(xt::view(values[2], 0) != xt::view(values[3], 0));
  const Function choose = [](const Vars& each) { return Vars{categorical(each[0])}; };
  const auto chosen = played(tape, vmap(choose, {x}));
  CHECK(chosen[0].size() == 6);
  CHECK_THROWS_WITH_AS(vmap(choose, {x}, {.randomness = Randomness::same}),
                       doctest::Contains("vmap: categorical cannot draw the same numbers for all examples"), Error);
  // of an operand that is the same for all examples, too
  const Var whole = tape.constant(ArrayView(Numbers(xt::ones<double>({50}))));
  const auto apart = played(tape, vmap([&](const Vars& each) { return Vars{dropout(whole, 0.5) + each[0]}; }, {x}));
  CHECK(xt::view(apart[0], 0) != xt::view(apart[0], 1));
}

TEST_CASE("attention draws for each example, and repeats what an attention outside has drawn") {
  Tape tape;
  tape.set_default_dtype(Dtype::float64);
  const Function attention = [](const Vars& x) {
    const Var weights = softmax(einsum("bqhe,bkhe->bhqk", x[0], x[1]) * 0.3);
    return Vars{einsum("bhqk,bkhd->bqhd", dropout(weights, 0.5), x[1])};
  };
  const Var q = tape.constant(floats({2, 3, 2, 4})), k = tape.constant(floats({2, 5, 2, 4}));
  const Var y = attention({q, k})[0], cotangents = tape.constant(floats({3, 2, 3, 2, 4}));
  const Var together = vmap([&](const Vars& c) { return grad({y}, {k}, {c[0]}); }, {cotangents})[0];
  Vars alone;
  for (const Var& cotangent : unstack(cotangents)) alone.push_back(grad({y}, {k}, {cotangent})[0]);
  // With k the same for all examples, their results differ by the draws only; the gradients use the same draws.
  const Vars spread = vmap(
      [&](const Vars& x) {
        const Var each = attention({x[0], k})[0];
        return Vars{each, grad(sum(each * each), {k})[0], sum(each * each)};
      },
      {stack({q, q})});
  const Vars outside = grad(sum(spread[2]), {k});
  const std::vector<Numbers> values =
      played(tape, {together, stack(alone), spread[0], sum(spread[1], {0}), outside[0]});
  CHECK(is_close(values[0], values[1]));
  CHECK_FALSE(is_close(xt::view(values[2], 0), xt::view(values[2], 1)));
  CHECK(is_close(values[3], values[4]));
}

}  // namespace mapped
