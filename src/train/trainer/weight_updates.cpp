#include <algorithm>
#include <cmath>
#include <type_traits>

#include "base/arrays/visit.hpp"
#include "train/trainer/loss.hpp"
#include "xtape/error.hpp"

namespace xtape::train {

WeightUpdates::WeightUpdates(Model& model, const std::vector<std::string>& names) : model_(model), names_(names) {
  for (const std::string& name : names) {
    const Array weight = model.weight(name);
    if (weight.dtype() != model.dtype())
      throw Error("weight '" + name + "' is stored as " + name_of(weight.dtype()) + "; its block updates it in " +
                  name_of(model.dtype()));
    elements_ += static_cast<std::size_t>(weight.count());
  }
}

/// Calls visit(name, array, the index of its first element) for each weight.
template <class Visit>
void WeightUpdates::for_each(const Visit& visit) const {
  std::size_t first = 0;
  for (const std::string& name : names_) {
    Array array = model_.weight(name);
    visit(name, array, first);
    first += static_cast<std::size_t>(array.count());
  }
}

void WeightUpdates::add(const Player& player, const NamedVars& updates, std::vector<double>& sums) const {
  for_each([&](const std::string& name, const Array& old, std::size_t first) {
    const Var* updated = updates.find(name);
    const Array value = updated != nullptr ? Array(player.view(*updated)) : Array(old);
    visit_floats(value, [&](const auto* elements) {
      for (std::int64_t i = 0; i < value.count(); ++i)
        sums[first + static_cast<std::size_t>(i)] += static_cast<double>(elements[i]);
    });
  });
}

std::string WeightUpdates::first_not_finite(const UpdateSums& sums) const {
  std::string found;
  for_each([&](const std::string& name, const Array& array, std::size_t first) {
    const double* begin = sums.updates.data() + first;
    if (found.empty() && !std::all_of(begin, begin + array.count(), [](double sum) { return std::isfinite(sum); }))
      found = name;
  });
  return found;
}

void WeightUpdates::assign(const UpdateSums& sums) {
  for_each([&](const std::string&, Array& array, std::size_t first) {
    visit_floats(array, [&](auto* elements) {
      using Element = std::remove_pointer_t<decltype(elements)>;
      for (std::int64_t i = 0; i < array.count(); ++i)
        elements[i] = static_cast<Element>(sums.updates[first + static_cast<std::size_t>(i)] / sums.plays);
    });
  });
}

}  // namespace xtape::train
