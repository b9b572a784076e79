// Hand tracking: the distances of points from a hand of 22 bones, and the Jacobian. theta contains the hand's angles
// and position.
#include "gradbench.hpp"

namespace gradbench {

namespace {
/// Returns the rotation by the angle |r| about the axis r [3], as [3, 3].
Var rotation(const Var& r) {
  Tape tape = r.tape();
  const Var squared = sum(square(r)), still = squared < 1e-8, angle = sqrt(where(still, 1, squared));
  const Var axis = r / angle, zero = zeros(tape, {}), cosine = cos(angle);
  const Var cross = reshape(
      stack({zero, -axis.at(2), axis.at(1), axis.at(2), zero, -axis.at(0), -axis.at(1), axis.at(0), zero}), {3, 3});
  const Var turned = cosine * eye(tape, 3) + (1 - cosine) * expand_dims(axis, 1) * axis + sin(angle) * cross;
  return where(still, eye(tape, 3), turned);
}

/// Returns rotations about z, y and x, one after the other, as [bone, 4, 4]. `angles` [bone, 3] are the angles about x,
/// z and y.
Var rotations(const Var& angles) {
  Tape tape = angles.tape();
  const Vars c = unstack(cos(angles), 1), s = unstack(sin(angles), 1);
  const Var zero = zeros_like(c[0]), one = ones_like(c[0]);
  const Var &cx = c[0], &cz = c[1], &cy = c[2], &sx = s[0], &sz = s[1], &sy = s[2];
  return reshape(stack({cz * cy, cz * sy * sx - sz * cx, cz * sy * cx + sz * sx, zero,  //
                        sz * cy, sz * sy * sx + cz * cx, sz * sy * cx - cz * sx, zero,  //
                        -sy, cy * sx, cy * cx, zero,                                    //
                        zero, zero, zero, one},
                       1),
                 {-1, 4, 4});
}

/// Returns the positions of the bones' angles in theta. Each finger has four bones, with two angles in its first joint
/// and one in each other joint.
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

/// Returns the transforms of the bones, [3, 4 bone], which determine the surface.
Var transforms(Input& in, const json& model, const Var& theta) {
  const std::vector<int> parents = model.at("parents");
  const std::int64_t bones = static_cast<std::int64_t>(parents.size());
  const Var places = in.tape.constant(angle_places(bones, static_cast<std::int32_t>(theta.size(0))));
  const Var angles = reshape(take(concat({theta, zeros(in.tape, {1})}), places), {bones, 3});
  const Vars relative = unstack(matmul(in.array(model.at("base_relatives"), "relatives"), rotations(angles)));
  Vars absolute;  // transforms from each bone to the complete hand
  for (std::size_t i = 0; i < parents.size(); ++i)
    absolute.push_back(parents[i] < 0 ? relative[i]
                                      : matmul(absolute[static_cast<std::size_t>(parents[i])], relative[i]));
  const Var bone =
      matmul(stack(absolute), in.array(model.at("inverse_base_absolutes"), "inverse")).at(all, Slice(0, 3));
  Var world = rotation(theta.at(Slice(0, 3)));
  if (model.at("is_mirrored").get<bool>()) world = world * in.tape.constant(std::vector<double>{-1, 1, 1});
  return reshape(einsum("ij,bjk->ibk", world, bone), {3, 4 * bones});
}

/// The hand surface and its correspondence to the points. Each point corresponds to a vertex, or to barycentric
/// coordinates in a triangle.
struct Surface {
  /// Points [point, k] are linear in the vertices [vertex, k].
  Var points(const Var& vertices) const {
    if (us.empty()) return take(vertices, corners);
    const Var rest = 1 - us.at(all, Slice(0, 1)) - us.at(all, Slice(1));
    return embedding_bag(corners, vertices, concat({us, rest}, 1));
  }
  Var skin;     // [4 bone, vertex], for the vertices that points correspond to
  Var corners;  // [point] or [point, 3]
  Var us;       // [point, 2], or empty
};

Surface surface_of(Input& in, const json& data, const Var& us) {
  const json& model = data.at("model");
  Surface surface;
  surface.us = us;
  std::map<int, std::int32_t> used;  // vertices, in the order of their first use by points
  const auto number = [&](int vertex) {
    return used.emplace(vertex, static_cast<std::int32_t>(used.size())).first->second;
  };
  std::vector<std::int32_t> corners;
  for (const int seen : data.at("correspondences"))
    if (us.empty())
      corners.push_back(number(seen));
    else
      for (const int vertex : model.at("triangles")[static_cast<std::size_t>(seen)]) corners.push_back(number(vertex));
  surface.corners = in.tape.constant(corners);
  if (!us.empty()) surface.corners = reshape(surface.corners, {-1, 3});
  const std::int64_t bones = static_cast<std::int64_t>(model.at("parents").size()),
                     count = static_cast<std::int64_t>(used.size());
  Array skin(Dtype::float64, {bones, 4, count});
  for (const auto& [vertex, place] : used)
    for (std::int64_t bone = 0; bone < bones; ++bone)
      for (std::int64_t axis = 0; axis < 4; ++axis)
        skin.as<double>()[(bone * 4 + axis) * count + place] =
            model.at("weights")[static_cast<std::size_t>(vertex)][static_cast<std::size_t>(bone)].get<double>() *
            model.at("base_positions")[static_cast<std::size_t>(vertex)][static_cast<std::size_t>(axis)].get<double>();
  surface.skin = reshape(in.tape.parameter("skin", skin), {4 * bones, count});
  return surface;
}

Result evaluated(Input& in, bool derivatives) {
  const json& data = in.fields.at("data");
  const Var theta = in.array("theta"), us = in.fields.at("us").empty() ? Var() : in.array("us");
  const Surface surface = surface_of(in, data, us);
  const Var by = transforms(in, data.at("model"), theta), place = theta.at(Slice(3, 6));
  // Each vertex moves with several bones, so vertices are linear in the transforms.
  const Var vertices = einsum("ib,bv->vi", by, surface.skin) + place;                   // [vertex, 3]
  const Var errors = in.array(data.at("points"), "points") - surface.points(vertices);  // [point, 3]
  if (!derivatives) return reshape(errors, {-1});

  Vars columns;  // each [point * 3, column]
  // Each point depends only on its own row of `us`, which has two elements. Two tangents are therefore enough: one for
  // all first elements, and one for all second elements.
  if (!us.empty())
    for (std::int64_t i = 0; i < 2; ++i) {
      const Var tangent = broadcast_to(in.tape.constant({1.0 - i, 0.0 + i}), us.shape());
      columns.push_back(reshape(jvp({errors}, {us}, {tangent})[0], {-1, 1}));
    }
  // The same function maps the derivatives of the vertices to those of the points.
  const Var by_theta = einsum("ibt,bv->vit", jacobian(by, theta), surface.skin) + jacobian(place, theta);
  columns.push_back(reshape(surface.points(reshape(-by_theta, {by_theta.size(0), -1})), {-1, theta.size(0)}));
  return concat(columns, 1);
}
}  // namespace

Functions ht() {
  return {{"objective", [](Input& in) { return evaluated(in, false); }},
          {"jacobian", [](Input& in) { return evaluated(in, true); }}};
}

}  // namespace gradbench
