/// Records programs on tapes.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "program.hpp"
#include "subject.hpp"
#include "xtape/scan.hpp"

namespace xtape::fuzz {

/// Records steps one by one, and keeps the vars of the recorded steps.
class Recorder {
 public:
  explicit Recorder(Subject& subject) : subject_(subject) {}

  /// Records a step. Throws as the library does; the step then has no vars.
  const Vars& record(const Step& step);
  /// As `record`, for a scan or checkpoint whose body comes from `cell` or `function`.
  const Vars& record_scan(const Step& step, const ScanFunction& cell);
  const Vars& record_checkpoint(const Step& step, const std::function<Vars(const Vars&)>& function);

  const Var& at(Ref ref) const;
  bool has(Ref ref) const;
  void set(int step, const Vars& values);
  void forget(int step) { values_.erase(step); }
  /// The types of all values recorded so far, including those in bodies.
  const std::map<Ref, ValueType>& types() const { return types_; }

 private:
  Vars recorded(const Step& step);
  /// Records a block on its arguments; returns its results.
  Vars run(const Block& block, const Vars& arguments);
  Vars vars_of(const std::vector<Term>& terms) const;

  Subject& subject_;
  std::map<int, Vars> values_;
  std::map<Ref, ValueType> types_;
};

/// Records the whole program; returns the types of its values.
std::map<Ref, ValueType> record(const Program& program, Subject& subject);
Recipe recipe_of(const Program& program);

}  // namespace xtape::fuzz
