// One update, from its batches to the weights: play, add, check, update.
#include <algorithm>
#include <cmath>
#include <type_traits>

#include "base/arrays/elements.hpp"
#include "base/arrays/visit.hpp"
#include "train/trainer/trainer_data.hpp"
#include "xtape/literal.hpp"

namespace xtape {

StepReport Trainer::update() {
  Data& d = *data_;
  const double start = Trace::now();
  const train::Turn& turn = d.turn();
  d.plays.take(turn);
  d.optimizer.take_waited();
  if (d.memory) d.memory->expect_update();
  const train::UpdateSums sums = d.add(d.play());
  if (sums.interrupted > 0) d.stop_here();
  d.check(sums);
  StepReport report;
  report.rate = d.turns.rate_at(step());
  for (std::size_t i = 0; i < turn.losses.size(); ++i) {
    const double mean = sums.losses[i] / sums.counts[i];
    report.loss += mean;
    if (d.turns.several()) report.losses.push_back({turn.losses[i].loss, mean});
  }
  report.norm = d.update(report.rate, sums);
  report.step = step();
  report.tokens = std::llround(sums.counts[0]);
  report.seconds = Trace::now() - start;
  report.waiting = d.optimizer.take_waited();
  return report;
}

std::vector<train::UpdateSums> Trainer::Data::play() {
  std::vector<train::UpdateSums> shards;
  UpdatePart done{state.step + 1, 0, options.accumulate * std::max<std::int64_t>(1, plays.own_shards())};
  try {
    const std::int64_t present = plays.present(state.cursor);
    optimizer.begin(present);
    for (const train::ShardPlay& each : plays.of_update(state.cursor, present)) {
      between();
      if (done.plays > 0 && called != nullptr && called->part) called->part(done);
      ++done.plays;
      if (each.first) shards.push_back(zero_sums());
      play(each, shards.back());
    }
  } catch (const CommunicationError&) {
    throw;  // no call has failed, only the communication
  } catch (const Error& error) {
    if (options.capsule.empty()) throw;
    const std::optional<train::FailedPlay> found = plays.find_failure(state.cursor);
    if (!found || !found->capsule) throw;
    throw TrainingError(error.what() + train::save_failure(*found, folders()));
  }
  for (train::UpdateSums& shard : shards) shard.interrupted = interrupted ? 1 : 0;
  return shards;
}

void Trainer::Data::play(const train::ShardPlay& play, train::UpdateSums& shard) {
  const BatchArrays batch = plays.batch(play);
  train::TrainingStep& step = plays.step(batch);
  step.player.play(plays.feeds(step, play, batch), play.draw,
                   optimizer.expect(step.player, step.notes.gradients, play.last));
  optimizer.add();
  plays.keep(step, play);
  shard.plays += 1;
  for (std::size_t i = 0; i < shard.losses.size(); ++i) {
    shard.losses[i] += step.player.scalar(step.notes.losses[i].sum);
    shard.counts[i] += step.player.scalar(step.notes.losses[i].count);
  }
  for (std::size_t i = 0; i < shard.not_finite_states.size(); ++i)
    if (!all_finite(step.player.view(step.notes.states[i].result))) shard.not_finite_states[i] = 1;
  updates.add(step.player, step.notes.updates, shard.updates);
}

train::UpdateSums Trainer::Data::zero_sums() const {
  train::UpdateSums sums;
  sums.losses.resize(turn().losses.size());
  sums.counts.resize(turn().losses.size());
  sums.not_finite_states.resize(plays.states().size());
  sums.updates.resize(updates.elements());
  return sums;
}

train::UpdateSums Trainer::Data::add(std::vector<train::UpdateSums> shards) {
  train::UpdateSums sums = zero_sums();
  if (shards.empty()) shards.push_back(sums);  // a rank without shards tells how many numbers a shard has
  std::vector<double> numbers;
  for (train::UpdateSums& shard : shards) shard.for_each([&](double number) { numbers.push_back(number); });
  const std::vector<double> added = optimizer.sum(numbers);
  auto next = added.begin();
  sums.for_each([&](double& number) { number = *next++; });
  return sums;
}

void Trainer::Data::check(const train::UpdateSums& sums) {
  const std::vector<LossUpdate>& losses = turn().losses;
  for (std::size_t i = 0; i < losses.size(); ++i)
    if (!std::isfinite(sums.losses[i])) throw_not_finite(losses[i].loss);
  for (std::size_t i = 0; i < sums.not_finite_states.size(); ++i)
    if (sums.not_finite_states[i] > 0) throw_not_finite("carried state '" + plays.states()[i] + "'");
  if (const std::string weight = updates.first_not_finite(sums); !weight.empty())
    throw_not_finite("new value of weight '" + weight + "'");
  const std::string number = std::to_string(state.step + 1);
  for (const double count : sums.counts) {
    // A draw may have no rows. The update then consists only of noise.
    if (count == 0 && !privacy.on()) throw TrainingError("update " + number + " has no target that counts");
    if (!std::isfinite(count) || count < 0)
      throw TrainingError("update " + number + ": the count of targets, by which the loss is divided, is " +
                          to_string(Literal(count)) + ", and must be above 0 and finite");
    if (count != sums.counts[0])
      throw TrainingError("update " + number + ": simultaneous losses must count the same targets, but '" +
                          losses[0].loss + "' counts " + to_string(Literal(sums.counts[0])) + ", and another loss " +
                          to_string(Literal(count)));
  }
}

double Trainer::Data::update(double rate, const train::UpdateSums& sums) {
  const double start = Trace::now();
  const double norm = [&] {
    try {
      return optimizer.update(rate, 1 / privacy.divisor(sums.counts[0]), turn().clip, privacy.noise(state.step));
    } catch (const UpdateError& error) {
      throw_overflow(error);
    }
  }();
  if (options.trace) options.trace->add("optimizer", start);
  optimizer_seconds += Trace::now() - start;
  if (!std::isfinite(norm)) throw_not_finite("gradient");
  if (memory) memory->note_update();
  updates.assign(sums);
  if (average) average->update();
  plays.advance();
  state.cursor += static_cast<std::uint64_t>(options.accumulate);
  ++state.step;
  return norm;
}

void Trainer::Data::throw_not_finite(const std::string& what) {
  const std::string update = " of update " + std::to_string(state.step + 1);
  const std::optional<train::FailedPlay> own = plays.find_failure(state.cursor);
  throw TrainingError(train::not_finite_text(what + update, own ? &*own : nullptr, group, folders()));
}

void Trainer::Data::throw_overflow(const UpdateError& error) {
  std::string text = error.what();
  if (group.rank() == 0)
    if (const std::optional<train::FailedPlay> play = plays.find_failure(state.cursor))
      text += train::save_failure(*play, folders());
  throw TrainingError(text);
}

// Weights that the definition updates itself.

namespace train {

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

}  // namespace train
}  // namespace xtape
