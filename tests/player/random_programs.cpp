#include "random_programs.hpp"

#include <algorithm>
#include <limits>
#include <string>

#include "xtape/grad.hpp"
#include "xtape/ops.hpp"

namespace xtape {

namespace {
constexpr std::int64_t most_elements = 6000;

/// Records ops whose values stay within a few units, so that differences of rounding stay small, and which have no kink
/// where equal numbers meet, so that they stay differences of rounding.
class Growth {
 public:
  Growth(std::uint64_t seed, Dtype dtype, RandomProgram& program) : random_(seed), dtype_(dtype), program_(program) {}

  void run() {
    const int inputs = 2 + below(3);
    for (int i = 0; i < inputs; ++i) values_.push_back(source(random_shape(), i));
    const int ops = 4 + below(22);
    for (int i = 0; i < ops; ++i) grow();
    choose_outputs();
    choose_carries();
    for (std::size_t play = 0; play < 3; ++play) {
      program_.values.emplace_back();
      for (const Var& input : program_.fed) program_.values.back().push_back(numbers(input.shape()));
    }
  }

 private:
  int below(int bound) { return static_cast<int>(random_() % static_cast<std::uint64_t>(bound)); }
  bool chance(int one_in) { return below(one_in) == 0; }
  const Var& any() { return values_[static_cast<std::size_t>(below(static_cast<int>(values_.size())))]; }

  Shape random_shape() {
    static const std::int64_t sizes[] = {1, 2, 3, 3, 4, 5, 8, 16};
    Shape shape;
    const int rank = below(4);
    for (int i = 0; i < rank; ++i) shape.push_back(sizes[below(8)]);
    if (chance(5)) shape = {1 + below(3), 16 * (8 + below(10))};  // long rows, for tiles
    if (chance(40)) shape = {3, 0};
    return shape;
  }

  Array numbers(const Shape& shape) {
    Array array(dtype_, shape);
    for (std::int64_t i = 0; i < array.count(); ++i) {
      const double number = static_cast<double>(static_cast<int>(random_() % 4001) - 2000) / 1999.0;
      if (dtype_ == Dtype::float32)
        array.as<float>()[i] = static_cast<float>(number);
      else
        array.as<double>()[i] = number;
    }
    return array;
  }

  Var source(const Shape& shape, int number) {
    const int kind = number == 0 ? 0 : below(5);
    if (kind == 3) return program_.tape.parameter("w" + std::to_string(number), numbers(shape));
    if (kind == 4) return program_.tape.constant(numbers(shape));
    const Var input = program_.tape.input("x" + std::to_string(number), shape, dtype_);
    program_.inputs.push_back(input);
    return input;
  }

  /// A value that broadcasts with `a` to something of bounded size.
  Var partner(const Var& a) {
    for (int attempt = 0; attempt < 8; ++attempt) {
      const Var& b = any();
      try {
        if (count_of(broadcast_shapes({a.shape(), b.shape()})) <= most_elements) return b;
      } catch (const ShapeError&) {
      }
    }
    return a;
  }

  void grow() {
    const Var x = any();
    const std::size_t before = values_.size();
    switch (below(11)) {
      case 0:
      case 1:
        values_.push_back(unary(x));
        break;
      case 2:
      case 3:
        values_.push_back(binary(x, partner(x)));
        break;
      case 4:
      case 5:
        values_.push_back(shaped(x));
        break;
      case 6:
        values_.push_back(reduced(x));
        break;
      case 7:
        values_.push_back(tanh(contracted(x, any())));
        break;
      case 8:
        values_.push_back(normalised(x));
        break;
      case 9:
        pieces(x);
        break;
      default:
        special(x);
        break;
    }
    if (values_.size() > before && count_of(values_.back().shape()) > most_elements) values_.pop_back();
  }

  Var unary(const Var& x) {
    switch (below(12)) {
      case 0:
        return tanh(x);
      case 1:
        return sigmoid(x);
      case 2:
        return -x;
      case 3:
        return square(x) * 0.25;
      case 4:
        return exp(-square(x));
      case 5:
        return sin(x);
      case 6:
        return gelu(x);
      case 7:
        return relu(x + 0.137);
      case 8:
        return log1p(square(x));
      case 9:
        return sqrt(square(x) + 0.5);
      case 10:
        return 0.5 - x;
      default:
        return softplus(x);
    }
  }

  Var binary(const Var& a, const Var& b) {
    switch (below(8)) {
      case 0:
        return tanh(a + b);
      case 1:
        return a - b * 0.5;
      case 2:
        return tanh(a * b);
      case 3:
        return a / (square(b) + 1);
      case 4:
        return where(a < b + 0.213, tanh(a), b);
      case 5:
        return maximum(a, b + 0.171) * 0.5;
      case 6:
        return masked_fill(a, b > 0.319, 0.25);
      default:
        return (a + b) * 0.5;
    }
  }

  Var shaped(const Var& x) {
    const auto rank = static_cast<int>(x.rank());
    switch (below(6)) {
      case 0: {
        Axes axes;
        for (int i = 0; i < rank; ++i) axes.push_back(i);
        std::shuffle(axes.begin(), axes.end(), random_);
        return rank == 0 ? expand_dims(x, 0) : transpose(x, axes);
      }
      case 1:
        return reshape(x, {count_of(x.shape())});
      case 2: {
        const std::int64_t count = count_of(x.shape());
        for (const std::int64_t divisor : {2, 3, 4, 5, 8})
          if (count > 0 && count % divisor == 0 && chance(2)) return reshape(x, {divisor, count / divisor});
        return reshape(x, {1, count});
      }
      case 3: {
        Shape shape = x.shape();
        for (std::int64_t& size : shape)
          if (size == 1 && chance(2)) size = 1 + below(4);
        if (shape.size() < 4) shape.insert(0, 1 + below(3));
        return count_of(shape) <= most_elements ? broadcast_to(x, shape) : x * 2 - x;
      }
      case 4:
        return rank < 4 ? expand_dims(x, below(rank + 1)) : -x;
      default:
        return x;
    }
  }

  Var reduced(const Var& x) {
    const auto rank = static_cast<int>(x.rank());
    Axes axes;
    if (rank > 0 && !chance(4)) axes.push_back(below(rank));
    const bool keepdims = chance(2);
    if (count_of(x.shape()) == 0) return tanh(sum(x, axes, keepdims));
    switch (below(4)) {
      case 0:
        return tanh(sum(x, axes, keepdims));
      case 1:
        return mean(x, axes, keepdims);
      case 2:
        return tanh(logsumexp(x, axes, keepdims));
      default:
        return rank == 0 ? sin(x) : cumsum(x, below(rank), chance(2)) * 0.2;
    }
  }

  /// An einsum whose operands share some axes of equal size, and whose result has some axes of both in any order.
  Var contracted(const Var& x, const Var& y) {
    std::string first, second, result;
    std::int64_t work = 1;
    for (std::size_t i = 0; i < x.rank(); ++i) first += static_cast<char>('a' + i);
    for (std::size_t i = 0; i < y.rank(); ++i) {
      char letter = static_cast<char>('p' + i);
      for (std::size_t k = 0; k < x.rank(); ++k)
        if (x.shape()[k] == y.shape()[i] && second.find(first[k]) == std::string::npos && !chance(4)) letter = first[k];
      second += letter;
      if (letter >= 'p') work *= y.shape()[i];
    }
    if (work * count_of(x.shape()) > 20 * most_elements) return x;
    std::int64_t count = 1;
    const auto keep = [&](const std::string& letters, const Shape& shape) {
      for (std::size_t i = 0; i < letters.size(); ++i)
        if (result.find(letters[i]) == std::string::npos && !chance(3) && count * shape[i] <= most_elements) {
          result += letters[i];
          count *= shape[i];
        }
    };
    keep(first, x.shape());
    keep(second, y.shape());
    std::shuffle(result.begin(), result.end(), random_);
    return einsum(first + "," + second + "->" + result, x, y) * 0.2;
  }

  Var normalised(const Var& x) {
    if (x.rank() == 0 || count_of(x.shape()) == 0) return sin(x);
    switch (below(6)) {
      case 0:
        return softmax(x, below(static_cast<int>(x.rank())));
      case 1:
        return tanh(log_softmax(x));
      case 2:
        return layer_norm(x, 0.1) * 0.5;
      case 3:
        return rms_norm(x, 0.1) * 0.5;
      case 4: {
        Array indices(Dtype::int64, {1 + below(5)});
        const int axis = below(static_cast<int>(x.rank()));
        for (std::int64_t i = 0; i < indices.count(); ++i)
          indices.as<std::int64_t>()[i] = below(static_cast<int>(x.shape()[static_cast<std::size_t>(axis)]));
        return take(x, program_.tape.constant(indices), axis);
      }
      default:
        return softmax(masked_fill(x / 1.7, x > 0.719, -std::numeric_limits<double>::infinity()));
    }
  }

  /// Values side by side, and parts of a value.
  void pieces(const Var& x) {
    if (x.rank() == 0) return;
    const int axis = below(static_cast<int>(x.rank()));
    const std::int64_t size = x.shape()[static_cast<std::size_t>(axis)];
    switch (below(5)) {
      case 0:
        values_.push_back(concat({x, chance(2) ? x : tanh(x), x * 0.5}, axis));
        break;
      case 1:
        if (x.rank() < 4) values_.push_back(stack({sin(x), x}, below(static_cast<int>(x.rank()) + 1)));
        break;
      case 2: {
        if (size == 0 || size > 4) break;
        for (const Var& part : unstack(x, axis)) values_.push_back(part);
        break;
      }
      case 3:
        values_.push_back(flip(x, {axis}));
        break;
      default: {
        std::vector<std::int64_t> start(x.rank(), 0), stop(x.rank(), end), step(x.rank(), 1);
        start[static_cast<std::size_t>(axis)] = size > 1 ? below(2) : 0;
        if (size > 2 && chance(2)) step[static_cast<std::size_t>(axis)] = 2;
        values_.push_back(slice(x, start, stop, step));
        break;
      }
    }
  }

  void special(const Var& x) {
    switch (below(5)) {
      case 0:
        values_.push_back(dropout(x, 0.3));
        break;
      case 1:
        values_.push_back(stop_gradient(x));
        break;
      case 2: {
        const Var y = partner(x);
        const std::uint64_t state = random_();
        const auto body = [&](const Vars& in) {
          random_.seed(state);
          const Var a = unary(in[0]);
          const Var b = dropout(binary(a, in[1]), 0.2);
          return Vars{unary(b), reduced(b)};
        };
        for (const Var& result : checkpoint(body, {x, y})) values_.push_back(result);
        break;
      }
      case 3:
        values_.push_back(cast(x > 0.05, dtype_) * x);
        break;
      default:
        values_.push_back(x + uniform(program_.tape, x.shape(), -0.5, 0.5, dtype_));
        break;
    }
  }

  void choose_outputs() {
    Vars wanted = program_.inputs;
    Var loss = mean(square(values_.back()));
    if (count_of(values_.back().shape()) == 0) loss = sum(values_.back());
    for (int i = below(4); i >= 0; --i) {
      const Var& value = any();
      program_.outputs.push_back(value);
      if (count_of(value.shape()) > 0) loss = loss + mean(sin(value));
    }
    program_.outputs.push_back(loss);
    if (chance(3)) wanted.push_back(any());
    Vars gradients = grad(loss, wanted);
    for (const Var& gradient : gradients) program_.outputs.push_back(gradient);
    if (!chance(4)) return;
    Var size = sum(square(gradients[0]));
    for (const Var& gradient : grad(size, {wanted.back()})) program_.outputs.push_back(gradient);
  }

  void choose_carries() {
    program_.fed = program_.inputs;
    if (!chance(2)) return;
    for (const Var& input : program_.inputs) {
      Vars fitting;
      for (const Var& value : values_)
        if (value.type() == input.type()) fitting.push_back(value);
      if (fitting.empty() || chance(3)) continue;
      program_.carries.push_back({input, fitting[static_cast<std::size_t>(below(static_cast<int>(fitting.size())))]});
      program_.fed.erase(std::find_if(program_.fed.begin(), program_.fed.end(),
                                      [&](const Var& fed) { return fed.id() == input.id(); }));
    }
  }

  std::mt19937_64 random_;
  Dtype dtype_;
  RandomProgram& program_;
  Vars values_;
};
}  // namespace

std::vector<Feed> RandomProgram::feeds(std::size_t play) const {
  std::vector<Feed> result;
  for (std::size_t i = 0; i < fed.size(); ++i) result.emplace_back(fed[i], values[play][i]);
  return result;
}

RandomProgram random_program(std::uint64_t seed, Dtype dtype) {
  RandomProgram program;
  Growth(seed, dtype, program).run();
  return program;
}

}  // namespace xtape
