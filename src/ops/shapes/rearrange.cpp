// rearrange: einops patterns, recorded as a reshape, a transpose and a reshape.
#include <algorithm>
#include <map>

#include "base/messages/wording.hpp"
#include "xtape/op/op.hpp"
#include "xtape/ops.hpp"

namespace xtape {

namespace {
constexpr const char* any_axes = "...";

/// A single axis of a pattern.
struct Atom {
  std::string name;        ///< The name, or "...". A 1 in the pattern has no atom, and its group is empty.
  std::size_t column = 0;  ///< The position in the text of the pattern, for errors.
};
/// One axis of the array in the pattern: a name, names in parentheses, or 1. A group of "..." stands for any number of
/// axes.
using Group = std::vector<Atom>;

struct Pattern {
  std::vector<Group> left, right;
};

[[noreturn]] void refuse(const std::string& pattern, std::size_t column, const std::string& why) {
  throw ShapeError(why + "\n  " + pattern + "\n  " + std::string(column, ' ') + "^");
}

bool begins_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

std::vector<Group> parse_side(const std::string& text, std::size_t begin, std::size_t finish) {
  std::vector<Group> groups;
  bool open = false;
  std::size_t opened = 0;
  std::vector<std::string> seen;
  const auto put = [&](const std::string& name, std::size_t column) {
    if (!name.empty() && contains(seen, name))
      refuse(text, column, "'" + name + "' occurs twice on one side of the pattern");
    seen.push_back(name);
    if (!open) groups.emplace_back();
    if (!name.empty()) groups.back().push_back({name, column});
  };
  for (std::size_t i = begin; i < finish;) {
    const char c = text[i];
    if (c == ' ') {
      ++i;
    } else if (c == '(') {
      if (open) refuse(text, i, "parentheses must not be nested");
      open = true;
      opened = i++;
      groups.emplace_back();
    } else if (c == ')') {
      if (!open) refuse(text, i, "')' has no matching '('");
      open = false;
      ++i;
    } else if (text.compare(i, 3, any_axes) == 0) {
      if (open) refuse(text, i, "'...' must be outside parentheses");
      put(any_axes, i);
      i += 3;
    } else if (begins_name(c)) {
      const std::size_t start = i;
      while (i < finish && (begins_name(text[i]) || is_digit(text[i]))) ++i;
      put(text.substr(start, i - start), start);
    } else if (c == '1' && (i + 1 == finish || !is_digit(text[i + 1]))) {
      put("", i++);
    } else {
      refuse(text, i, "a pattern has names, 1, '...' and parentheses, then '->' and the same names in another order");
    }
  }
  if (open) refuse(text, opened, "'(' is not closed");
  return groups;
}

Pattern parse_pattern(const std::string& text) {
  const std::size_t arrow = text.find("->");
  if (arrow == std::string::npos) refuse(text, text.size(), "'->' is missing");
  return {parse_side(text, 0, arrow), parse_side(text, arrow + 2, text.size())};
}

std::vector<Atom> atoms_of(const std::vector<Group>& groups) {
  std::vector<Atom> atoms;
  for (const Group& group : groups) atoms.insert(atoms.end(), group.begin(), group.end());
  return atoms;
}

void check_same_names(const std::string& text, const std::vector<Atom>& from, const std::vector<Atom>& in) {
  for (const Atom& atom : from) {
    const auto same = [&](const Atom& other) { return other.name == atom.name; };
    if (std::ranges::none_of(in, same))
      refuse(text, atom.column, "'" + atom.name + "' is on one side of the pattern only");
  }
}

/// The arguments of the first reshape, the transpose and the last reshape.
struct Arrangement {
  Shape apart;     ///< The shape of the first reshape, which splits every group into single axes.
  Axes order;      ///< The order of the transpose.
  Shape together;  ///< The shape of the result, set by the last reshape.
};

Arrangement arrangement_of(const std::string& text, const NamedSizes& given, const Shape& shape) {
  const Pattern pattern = parse_pattern(text);
  const std::vector<Atom> left = atoms_of(pattern.left), right = atoms_of(pattern.right);
  check_same_names(text, left, right);
  check_same_names(text, right, left);
  std::map<std::string, std::int64_t> sizes;
  for (const auto& [name, size] : given) sizes.emplace(name, size);
  std::vector<std::string> names;
  for (const Atom& atom : left) names.push_back(atom.name);
  for (const auto& [name, size] : given) {
    if (!contains(names, name))
      throw ShapeError("a size is given for '" + name + "', which the pattern '" + text + "' does not have" +
                       did_you_mean(name, names));
    if (size < 0) throw ShapeError("size " + name + "=" + std::to_string(size) + " is negative");
  }

  const bool ellipsis = contains(names, any_axes);
  const std::size_t written = pattern.left.size() - (ellipsis ? 1 : 0);
  if (ellipsis ? shape.size() < written : shape.size() != written)
    refuse(text, 0,
           "the left side has " + std::to_string(written) + (ellipsis ? " axes in addition to '...'" : " axes") +
               ", the array has shape " + to_string(shape));
  const std::size_t covered = shape.size() - written;

  std::map<std::string, std::vector<std::size_t>> places;  // for each name, the indices of its axes in `apart`
  Arrangement steps;
  std::size_t axis = 0;
  for (const Group& group : pattern.left) {
    if (!group.empty() && group[0].name == any_axes) {
      for (std::size_t i = 0; i < covered; ++i) {
        places[any_axes].push_back(steps.apart.size());
        steps.apart.push_back(shape[axis++]);
      }
      continue;
    }
    const std::int64_t size = shape[axis++];
    std::int64_t known = 1;
    bool fits = true;
    const Atom* open = nullptr;
    for (const Atom& atom : group) {
      const auto found = sizes.find(atom.name);
      if (found != sizes.end()) {
        fits = fits && checked_multiply(known, found->second);
      } else if (open != nullptr) {
        refuse(text, atom.column,
               "the sizes of '" + open->name + "' and '" + atom.name + "' are both unknown: give one");
      } else {
        open = &atom;
      }
    }
    const std::size_t column = group.empty() ? 0 : group[0].column;
    if (!fits)
      refuse(text, column,
             "axis " + std::to_string(axis - 1) + " of " + to_string(shape) + " has size " + std::to_string(size) +
                 ", and the sizes given for it multiply to more than 2^63 - 1");
    if (open != nullptr ? (known == 0 || size % known != 0) : size != known)
      refuse(text, column,
             "axis " + std::to_string(axis - 1) + " of " + to_string(shape) + " has size " + std::to_string(size) +
                 ", which " + (open != nullptr ? "is not a multiple of " : "is not ") + std::to_string(known));
    if (open != nullptr) sizes[open->name] = size / known;
    for (const Atom& atom : group) {
      places[atom.name].push_back(steps.apart.size());
      steps.apart.push_back(sizes.at(atom.name));
    }
  }
  for (const Group& group : pattern.right) {
    std::int64_t size = 1;
    for (const Atom& atom : group)
      for (std::size_t place : places[atom.name]) {
        steps.order.push_back(static_cast<std::int64_t>(place));
        if (atom.name == any_axes)
          steps.together.push_back(steps.apart[place]);
        else if (!checked_multiply(size, steps.apart[place]))
          refuse(text, group[0].column, "these axes of " + to_string(shape) + " together are longer than 2^63 - 1");
      }
    if (group.empty() || group[0].name != any_axes) steps.together.push_back(size);
  }
  return steps;
}

/// Records the steps. Leaves out steps that change nothing.
Var rearranged(Var x, const Arrangement& steps) {
  if (x.shape() != steps.apart) x = reshape(x, steps.apart);
  if (!std::is_sorted(steps.order.begin(), steps.order.end())) x = transpose(x, steps.order);
  if (x.shape() != steps.together) x = reshape(x, steps.together);
  return x;
}

Arrangement arrangement_of(const Attributes& attributes, const Shape& shape) {
  return arrangement_of(attributes.get<std::string>("pattern"), attributes.get<NamedSizes>("sizes"), shape);
}

const Op& rearrange_op() {
  static const Op entry{
      .name = "rearrange",
      .doc = R"(x with its axes split, reordered and joined by an einops pattern, such as 'b t (h e) -> b h t e' with
           h=12. A pattern has a name for every axis, parentheses around names that are joined to one axis,
           1 for an axis of size 1, and '...' for any number of axes. Recorded as reshape, transpose and
           reshape, which are views wherever strides can express them.)",
      .inputs = {{"x", Accept::any}},
      .attributes = {{"pattern", AttributeType::text, "The axes before and after '->'.", std::nullopt},
                     {"sizes", AttributeType::named_sizes, "Sizes of axes that do not follow from the shape of x.",
                      NamedSizes{}}},
      .shape =
          +[](const OpCall& call) {
            return std::vector<ValueType>{{call.dtype(0), arrangement_of(call.attributes, call.shape(0)).together}};
          },
      .expand =
          +[](const ExpandCall& call) {
            return Vars{rearranged(call.inputs[0], arrangement_of(call.attributes, call.inputs[0].shape()))};
          },
      .record =
          +[](Tape&, const Op&, const Vars& inputs, const Attributes& attributes) {
            return Vars{rearranged(inputs[0], arrangement_of(attributes, inputs[0].shape()))};
          }};
  return entry;
}
}  // namespace

Var rearrange(const Argument& x, const std::string& pattern, const NamedSizes& sizes) {
  return apply(rearrange_op(), {x}, {{"pattern", pattern}, {"sizes", sizes}})[0];
}

void list_rearrange(OpTable& table) {
  table.add(rearrange_op());
}

}  // namespace xtape
