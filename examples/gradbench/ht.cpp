// Hand tracking: how far points are from a hand of 22 bones, whose angles and place are theta; and the Jacobian.
#include "gradbench.hpp"

namespace gradbench {

namespace {
/// A rotation by the angle |r| about the axis r [3], as [3, 3].
Var rotation(const Var& r) {
  Tape tape = r.tape();
  const Var squared = sum(square(r)), still = squared < 1e-8, angle = sqrt(where(still, 1, squared));
  const Var axis = r / angle, zero = zeros(tape, {}), cosine = cos(angle);
  const Var cross = reshape(stack({zero, -axis.at(2), axis.at(1), axis.at(2), zero, -axis.at(0), -axis.at(1), axis.at(0), zero}), {3, 3});
  const Var turned = cosine * eye(tape, 3) + (1 - cosine) * expand_dims(axis, 1) * axis + sin(angle) * cross;
  return where(still, eye(tape, 3), turned);
}

/// Rotations about z, y and x, one after the other, as [bone, 4, 4]; `angles` [bone, 3] are those about x, z and y.
Var rotations(const Var& angles) {
  Tape tape = angles.tape();
  const Vars c = unstack(cos(angles), 1), s = unstack(sin(angles), 1);
  const Var zero = zeros_like(c[0]), one = ones_like(c[0]);
  const Var &cx = c[0], &cz = c[1], &cy = c[2], &sx = s[0], &sz = s[1], &sy = s[2];
  return reshape(stack({cz * cy, cz * sy * sx - sz * cx, cz * sy * cx + sz * sx, zero,  //
                        sz * cy, sz * sy * sx + cz * cx, sz * sy * cx - cz * sx, zero,  //
                        -sy, cy * sx, cy * cx, zero,                                    //
                        zero, zero, zero, one}, 1), {-1, 4, 4});
}

/// Where the angles of bones are in theta: each finger of four bones has two in its first joint, and one in the others.
std::vector<std::int32_t> angle_places(std::int64_t bones, std::int32_t none) {
  std::vector<std::int32_t> places(static_cast<std::size_t>(3 * bones), none);
  std::int32_t next = 6;
  for (std::size_t finger = 0; finger < 5; ++finger)
    for (std::size_t joint = 2; joint <= 4; ++joint) {
      const std::size_t place = 3 * (4 * finger + joint);
      places[place] = next++;
      if (joint == 2) places[place + 1] = next++;
    }
  return places;
}

Var errors(Input& in, const Var& theta, const Var& us) {
  const json &data = in.fields.at("data"), &model = data.at("model");
  const std::vector<int> parents = model.at("parents");
  const std::int64_t bones = static_cast<std::int64_t>(parents.size());
  const Var padded = concat({theta, zeros(in.tape, {1})});
  const Var angles = reshape(take(padded, in.tape.constant(angle_places(bones, static_cast<std::int32_t>(theta.size(0))))), {bones, 3});

  // From each bone to the whole hand, then to the world.
  const Vars relative = unstack(matmul(in.array(model.at("base_relatives"), "relatives"), rotations(angles)));
  Vars absolute;
  for (std::size_t i = 0; i < parents.size(); ++i)
    absolute.push_back(parents[i] < 0 ? relative[i] : matmul(absolute[static_cast<std::size_t>(parents[i])], relative[i]));
  const Var bone = matmul(stack(absolute), in.array(model.at("inverse_base_absolutes"), "inverse")).at(all, Slice(0, 3));  // [bone, 3, 4]
  Var world = rotation(theta.at(Slice(0, 3)));
  if (model.at("is_mirrored").get<bool>()) world = world * in.tape.constant(std::vector<double>{-1, 1, 1});
  const Var transforms = reshape(einsum("ij,bjk->bki", world, bone), {4 * bones, 3});

  // A vertex moves with several bones; a point of the surface is a mean of the vertices of a triangle.
  const Var weights = in.array(model.at("weights"), "weights"), base = in.array(model.at("base_positions"), "base");
  const Var skin = reshape(expand_dims(weights, 2) * expand_dims(base, 1), {-1, 4 * bones});   // [vertex, 4 bone]
  const Var seen = in.indices(data.at("correspondences"), "correspondences");
  Var surface;                                                                               // [point, 4 bone]
  if (us.empty()) {
    surface = take(skin, seen);
  } else {
    const Vars corners = unstack(take(in.indices(model.at("triangles"), "triangles"), seen), 1);
    const Var u = us.at(all, Slice(0, 1)), v = us.at(all, Slice(1, 2));
    surface = u * take(skin, corners[0]) + v * take(skin, corners[1]) + (1 - u - v) * take(skin, corners[2]);
  }
  return in.array(data.at("points"), "points") - (matmul(surface, transforms) + theta.at(Slice(3, 6)));
}

Result evaluated(Input& in, bool derivatives) {
  const Var theta = in.array("theta"), us = in.fields.at("us").empty() ? Var() : in.array("us");
  const Var e = errors(in, theta, us);                                                       // [point, 3]
  if (!derivatives) return reshape(e, {-1});
  Vars columns;
  if (!us.empty())  // a point depends on its own two numbers only: one tangent for the first of all points, one for the second
    for (std::int64_t i = 0; i < 2; ++i)
      columns.push_back(expand_dims(jvp({e}, {us}, {broadcast_to(in.tape.constant({1.0 - i, 0.0 + i}), us.shape())})[0], 2));
  columns.push_back(jacobian(e, theta));
  return reshape(concat(columns, 2), {3 * e.size(0), -1});
}
}  // namespace

Functions ht() {
  return {{"objective", [](Input& in) { return evaluated(in, false); }},
          {"jacobian", [](Input& in) { return evaluated(in, true); }}};
}

}  // namespace gradbench
