// Bundle adjustment: the reprojection errors of p observations and their sparse Jacobian.
#include <algorithm>

#include "gradbench.hpp"

namespace gradbench {

namespace {
using Columns = Vars;  // the numbers of the camera, or of the point, of each observation: vars of [p]

/// Repeats a field (a number or a list) in `rows` equal rows.
Var repeated(Input& in, const char* field, std::int64_t rows) {
  const Var row = in.array(field);
  const std::int64_t columns = count_of(row.shape());
  Array all(Dtype::float64, {rows, columns});
  for (std::int64_t i = 0; i < rows; ++i)
    std::copy_n(row.node().storage.as<double>(), columns, all.as<double>() + i * columns);
  return in.tape.parameter(std::string(field) + " of all", all);
}
/// Repeats a field in `columns` equal columns.
Var beside(Input& in, const char* field, std::int64_t columns) {
  const Var column = in.array(field);
  const std::int64_t rows = count_of(column.shape());
  Array all(Dtype::float64, {rows, columns});
  for (std::int64_t i = 0; i < rows; ++i)
    std::fill_n(all.as<double>() + i * columns, columns, column.node().storage.as<double>()[i]);
  return in.tape.parameter(std::string(field) + " of all", all);
}

Columns cross(const Columns& a, const Columns& b) {
  return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
}

/// Rotates the point x by the angle |r| about the axis r (Rodrigues).
Columns rotated(const Columns& r, const Columns& x) {
  const Var squared = r[0] * r[0] + r[1] * r[1] + r[2] * r[2], still = squared == 0;
  const Var angle = sqrt(where(still, 1, squared)), cosine = where(still, 1, cos(angle)), sine = sin(angle);
  const Columns turned = cross(r, x);
  const Var along = (r[0] * x[0] + r[1] * x[1] + r[2] * x[2]) * (1 - cosine) / square(angle),
            across = where(still, 1, sine / angle);
  Columns result;
  for (int i = 0; i < 3; ++i) result.push_back(x[i] * cosine + turned[i] * across + r[i] * along);
  return result;
}

struct Scene {
  explicit Scene(Input& in)
      : n(in.number("n")),
        m(in.number("m")),
        p(in.number("p")),
        cameras(beside(in, "cam", n)),
        points(beside(in, "x", m)),
        observations{mod(iota(in.tape, {p}, 0, Dtype::int32), n), mod(iota(in.tape, {p}, 0, Dtype::int32), m),
                     repeated(in, "w", p), repeated(in, "feat", p)} {}

  std::int64_t n, m, p;
  Var cameras, points;  // [11, n], [3, m]
  Vars observations;    // cameras and points [p], weights [p, 1], places [p, 2]
};
constexpr std::int64_t block = 4096;  // observations

/// The errors of a block of observations.
struct Errors {
  Errors(const Scene& scene, const Vars& observations) : by(unstack(take(scene.cameras, observations[0], 1))) {
    for (const Var& each : unstack(take(scene.points, observations[1], 1))) by.push_back(each);
    by.push_back(observations[2].at(all, 0));
    const Columns x = rotated({by[0], by[1], by[2]}, {by[11] - by[3], by[12] - by[4], by[13] - by[5]});
    const Var u = x[0] / x[2], v = x[1] / x[2], squared = u * u + v * v, seen = observations[3];
    const Var scale = (1 + by[9] * squared + by[10] * squared * squared) * by[6];
    of_places = {by[14] * (u * scale + by[7] - seen.at(all, 0)), by[14] * (v * scale + by[8] - seen.at(all, 1))};
    of_weight = 1 - square(by[14]);
  }

  Vars by;  // 15 vars of [rows]: 11 numbers of the camera, 3 of the point, the weight
  Vars of_places;
  Var of_weight;
};

json answer_errors(const std::vector<ArrayView>& found) {
  return {{"reproj_error", {{"elements", {found[0](0, 0), found[0](0, 1)}}, {"repeated", found[0].shape()[0]}}},
          {"w_err", {{"element", found[1](0)}, {"repeated", found[1].shape()[0]}}}};
}

json answer_matrix(const std::vector<ArrayView>& found) {  // the first 30 elements and the last element of each array
  json matrix;
  const char* names[] = {"rows", "cols", "vals"};
  for (int i = 0; i < 3; ++i) {
    for (std::int64_t j = 0; j < 30; ++j) matrix[names[i]].push_back(found[i](j));
    matrix[names[i]].push_back(found[i](found[i].shape()[0] - 1));
  }
  for (int i = 0; i < 2; ++i)
    for (json& number : matrix[names[i]]) number = static_cast<std::int64_t>(number.get<double>());
  return matrix;
}
}  // namespace

Functions ba() {
  return {{"objective",
           [](Input& in) {
             const Scene scene(in);
             const auto errors = [&](const Vars& observations) {
               const Errors e(scene, observations);
               return Vars{transpose(stack(e.of_places)), e.of_weight};
             };
             return Result(in_blocks(errors, scene.observations, block), answer_errors);
           }},
          {"jacobian", [](Input& in) {
             // Each error depends on 15 numbers, so each row of the Jacobian has 15 nonzeros. The format is CSR.
             const Scene scene(in);
             const auto rows_of = [&](const Vars& observations) {
               const Errors e(scene, observations);
               GradOptions options;
               options.materialize_grads = true;
               Vars values;
               for (const Var& error : e.of_places)
                 for (const Var& column : grad(sum(error), e.by, options)) values.push_back(column);
               const Var columns =
                   concat({expand_dims(11 * observations[0], 1) + arange(in.tape, 0, 11, 1, Dtype::int32),
                           11 * scene.n + expand_dims(3 * observations[1], 1) + arange(in.tape, 0, 3, 1, Dtype::int32),
                           expand_dims(observations[4], 1)},
                          1);  // [rows, 15]
               return Vars{transpose(stack(values)), grad(sum(e.of_weight), e.by[14]), stack({columns, columns}, 1)};
             };
             const std::int64_t p = scene.p;
             Vars observations = scene.observations;
             const Var of_weight = 11 * scene.n + 3 * scene.m + iota(in.tape, {p}, 0, Dtype::int32);
             observations.push_back(of_weight);
             const Vars found = in_blocks(rows_of, observations, block);
             const Var rows = concat(
                 {15 * iota(in.tape, {2 * p + 1}, 0, Dtype::int32), 30 * p + 1 + iota(in.tape, {p}, 0, Dtype::int32)});
             return Result(
                 {rows, concat({reshape(found[2], {-1}), of_weight}), concat({reshape(found[0], {-1}), found[1]})},
                 answer_matrix);
           }}};
}

}  // namespace gradbench
