// clip: limits values to bounds.
#include <cmath>
#include <limits>

#include "kernels/elements/scalar.hpp"
#include "ops/elementwise/arithmetic.hpp"
#include "ops/recording/op_helpers.hpp"
#include "xtape/ops.hpp"

namespace xtape {

namespace {
/// Returns a bound of clip as an element of type T. For an integer type, a low bound below the range, or a high bound
/// above it, becomes the limit of the range. Throws DtypeError if the bound for an integer type is neither whole nor
/// infinite. Throws DtypeError if a low bound is above the range, or a high bound is below it.
template <class T>
T clip_bound(const Attributes& attributes, const char* name) {
  const Literal bound = attributes.number(name);
  constexpr Dtype dtype = dtype_of<T>();
  if constexpr (std::is_integral_v<T>) {
    const bool low = name[0] == 'l';
    const bool no_bound = !bound.fits(dtype) && (low ? bound.real() < 0 : bound.real() > 0) &&
                          (std::isinf(bound.real()) || std::floor(bound.real()) == bound.real());
    if (no_bound) return low ? std::numeric_limits<T>::lowest() : std::numeric_limits<T>::max();
  }
  require_fits(bound, dtype, name);
  return bound.as<T>();
}

const Op& clip_op() {
  static const Op entry{
      .name = "clip",
      .doc =
          R"(minimum(maximum(x, low), high), in the dtype of x. For integers the bounds must be whole or infinite. The
           gradient passes where low <= x <= high and is 0 elsewhere. NaN stays NaN.)",
      .inputs = {{"x"}},
      .attributes = {{"low", AttributeType::element, "The lower bound; -inf for none.", std::nullopt},
                     {"high", AttributeType::element, "The upper bound; inf for none.", std::nullopt}},
      .shape =
          [](const OpCall& call) {
            const std::vector<ValueType> types = same_number_dtype(call);
            if (is_half(call.dtype(0)))
              for (const char* bound : {"low", "high"}) call.element(bound, call.dtype(0));
            with_number(computed_in(call.dtype(0)), [&](auto scalar) {
              using T = decltype(scalar);
              if (!(clip_bound<T>(call.attributes, "low") <= clip_bound<T>(call.attributes, "high")))
                throw Error("low must not be above high, got low " + to_string(call.attributes.number("low")) +
                            " and high " + to_string(call.attributes.number("high")));
            });
            return types;
          },
      .gradient =
          [](const GradientCall& call) {
            const Var& x = call.inputs[0];
            const Attributes& bounds = call.attributes();
            const Var inside = (x >= bounds.number("low").real()) & (x <= bounds.number("high").real());
            return Vars{where(inside, call.cotangent(), 0)};
          },
      .expand =
          [](const ExpandCall& call) {
            const Dtype dtype = call.inputs[0].dtype();
            return with_number(computed_in(dtype), [&](auto scalar) {
              using T = decltype(scalar);
              Tape tape = call.tape;
              const Var low = tape.constant(clip_bound<T>(call.attributes(), "low"), dtype);
              const Var above = maximum(call.inputs[0], low);
              return Vars{minimum(above, tape.constant(clip_bound<T>(call.attributes(), "high"), dtype))};
            });
          },
      .lowering = {.tile = tile_by_name, .overwrites = {0}}};
  return entry;
}
}  // namespace

Var clip(const Argument& x, const Literal& low, const Literal& high) {
  return apply(clip_op(), {x}, {{"low", attribute_of(low)}, {"high", attribute_of(high)}})[0];
}

void list_clip(OpTable& table) {
  table.add(clip_op());
}

}  // namespace xtape
