/// A part of a tape on its way to being played: what the passes rewrite, one into the next.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "xtape/op.hpp"
#include "xtape/player.hpp"

namespace xtape {

/// Which node of the caller's tape a value comes from: it stands for it, or for a part of it.
struct Origin {
  std::int32_t node = -1;
  const Op* op = nullptr;
};

/// A rule that was applied, or would have been but for one thing.
struct FusionNote {
  std::string rule;
  std::string place;  ///< "#12 add": as the printed tape of the caller has it.
  std::string site;   ///< Where it was recorded.
  std::string miss;   ///< Why it was not applied; empty where it was.
};

struct Program {
  /// Empty, for nodes of `like` or what takes their place.
  explicit Program(const Tape& like) : tape(like.blank()) {}

  Tape tape;
  std::vector<ValueId> outputs;                        ///< What the player was asked for, and then the carries' outputs.
  std::vector<std::pair<ValueId, ValueId>> carries;    ///< (input, output); an input that nothing reads is {-1, 0}.
  std::vector<std::int32_t> regions;                   ///< Per node: 0, or the number of the body that it came out of.
  std::int32_t region_count = 1;
  std::vector<std::vector<Origin>> origins;            ///< Per node and output.

  std::vector<FusionNote> fusions;

  Var var(ValueId id) const { return tape.var(id); }
  const Node& node(std::int32_t index) const { return tape.node(static_cast<std::size_t>(index)); }
  /// "#12 add": as the printed tape of the caller has it.
  std::string label(ValueId id) const;
};

/// The nodes of `tape` that `outputs` and the carries' outputs need.
Program extract(const Tape& tape, const Vars& outputs, const std::vector<Carry>& carries);

/// Which nodes use each value: `users[node][output]` lists node indices, one for each use.
std::vector<std::vector<std::vector<std::int32_t>>> users_of(const Tape& tape);

/// Builds the next program from the last, node by node in order.
class Rewriter {
 public:
  explicit Rewriter(const Program& from);

  const Program& from() const { return from_; }
  /// The next program's tape, to record on.
  Tape& tape() { return to_.tape; }
  /// Copies node `index` of the last program as it stands.
  void keep(std::int32_t index);
  /// From here on `old` is `fresh`.
  void replace(ValueId old, const Var& fresh);
  /// What stands for a value of the last program.
  Var now(ValueId old) const { return to_.tape.var(now_id(old)); }
  Vars now(const std::vector<ValueId>& old) const;
  bool known(ValueId old) const;
  /// What was recorded on the tape since the last call stands for node `index` of the last program, in its region …
  void close(std::int32_t index) { close(index, from_.regions[static_cast<std::size_t>(index)]); }
  /// … or in a region of its own, because it came out of a body.
  void close_in_new_region(std::int32_t index) { close(index, to_.region_count++); }
  /// The next program, without what nothing needs.
  Program finish();

 private:
  ValueId now_id(ValueId old) const;
  void close(std::int32_t index, std::int32_t region);
  void begin_origins();

  const Program& from_;
  Program to_;
  std::vector<std::vector<ValueId>> map_;
};

}  // namespace xtape
