// Scans that compute values of other scans again. The gradient of a scan is a scan that reads values of the same steps.
// Instead of reading stacked values of all steps, the gradient scan can compute the values of one step from the states
// before this step.
#include <algorithm>
#include <optional>

#include "player/program/passes.hpp"
#include "xtape/ops.hpp"

namespace xtape {

namespace {
/// The value outside of a scan from which an input of its body comes. Each step takes a slice along `axis`. If `axis`
/// is -1, each step takes the whole value.
struct Source {
  ValueId value;
  std::int64_t axis = -1;
  bool operator==(const Source&) const = default;
};

/// A scan of a program.
struct ScanNode {
  ScanNode(const Program& program, std::int32_t number)
      : index(number),
        node(program.node(number)),
        body(*node.body),
        form(node.op->lowering.body.steps(call_of(program, node))),
        given(body.inputs()),
        results(body.results()) {}

  Source source(std::size_t k) const { return {node.inputs[k], k < form.sequences() ? form.input_axes[k] : -1}; }
  Source stacked(std::size_t k) const { return {{index, static_cast<std::int32_t>(k)}, form.output_axes[k]}; }
  /// Returns the stacked output that contains this value of the body at every step, or nothing if there is none.
  std::optional<std::size_t> output_of(ValueId value) const {
    const auto end = results.begin() + static_cast<std::ptrdiff_t>(form.stacked());
    const auto found = std::find(results.begin(), end, value);
    if (found == end) return std::nullopt;
    return static_cast<std::size_t>(found - results.begin());
  }

  std::int32_t index;
  const Node& node;
  const Tape& body;
  Stepping form;
  std::vector<ValueId> given, results;  // inputs and results of the body
};

bool is_scan(const Node& node) {
  return node.op->lowering.body.steps && node.op->lowering.body.attributes;
}

bool is_cheap(const Op& op) {
  return runs_in_tiles(op) || op.is_view() || op.is_source();
}

/// The values of `writer` that only `reader` reads, and a way for `reader` to compute them.
class Repetition {
 public:
  Repetition(const Program& program, const Users& users, ScanNode writer, const ScanNode& reader, RepeatSteps which)
      : writer_(std::move(writer)), which_(which), again_(writer_.form.stacked()), used_(writer_.form.stacked()) {
    for (std::size_t k = 0; k < again_.size(); ++k) {
      const ValueId output = writer_.stacked(k).value;
      const bool requested = std::find(program.outputs.begin(), program.outputs.end(), output) != program.outputs.end();
      used_[k] = requested || !users.of(output).empty();
      again_[k] = used_[k] && !requested && only_slices(users, k, reader) && may_repeat(writer_.results[k]);
    }
    was_used_ = used_;
    needed_.assign(writer_.body.size(), false);
    possible_ = std::find(again_.begin(), again_.end(), true) != again_.end() && find_needed() && keeps_sums();
  }

  /// Returns whether the values can be computed again, and whether doing so saves memory.
  bool possible() const { return possible_ && saved_ > 0; }
  bool repeats(const Source& source) const {
    return source.value.node == writer_.index && source.axis >= 0 &&
           again_[static_cast<std::size_t>(source.value.output)];
  }
  /// Returns the sources that a step of the reader reads in order to compute the values.
  const std::vector<Source>& sources() const { return sources_; }

  /// Records the computation of the values in the body of the reader. The nodes have their own region. Passes do not
  /// fuse them with nodes of other regions, so the values have the same bits as in `writer`. `inputs` are the values of
  /// sources().
  Vars record(const Vars& inputs) const {
    return checkpoint(
        [&](const Vars& given) {
          Copier copier(writer_.body, given[0].tape());
          for (std::size_t i = 0; i < given.size(); ++i) copier.replace(read_[i], given[i].id());
          for (std::size_t i = 0; i < needed_.size(); ++i)
            if (needed_[i]) copier.copy(static_cast<std::int32_t>(i));
          Vars values;
          for (std::size_t k = 0; k < again_.size(); ++k)
            if (again_[k]) values.push_back(given[0].tape().var(copier.now(writer_.results[k])));
          return values;
        },
        inputs);
  }
  std::size_t place_of(const Source& source) const {  // index in the result of `record`
    return static_cast<std::size_t>(std::count(again_.begin(), again_.begin() + source.value.output, true));
  }

 private:
  bool only_slices(const Users& users, std::size_t k, const ScanNode& reader) const {
    const Source stacked = writer_.stacked(k);
    const auto readers = users.of(stacked.value);
    if (!std::all_of(readers.begin(), readers.end(), [&](std::int32_t user) { return user == reader.index; }))
      return false;
    for (std::size_t i = 0; i < reader.node.inputs.size(); ++i)
      if (reader.node.inputs[i] == stacked.value && reader.source(i) != stacked) return false;
    return true;
  }
  bool may_repeat(ValueId value) const {
    const Op& op = *body_node(static_cast<std::size_t>(value.node)).op;
    return !op.is_source() && (which_ == RepeatSteps::all || is_cheap(op));
  }

  /// Goes from the values to compute back through the writer's body. Finds the nodes that the reader must compute, and
  /// the values that it can read instead of computing them. Returns false if the values cannot be computed again.
  bool find_needed() {
    std::vector<bool> wanted(needed_.size(), false);  // per node of the writer's body
    for (std::size_t k = 0; k < again_.size(); ++k)
      if (again_[k]) {
        wanted[static_cast<std::size_t>(writer_.results[k].node)] = true;
        saved_ += bytes_of(k);
      }
    for (std::size_t i = needed_.size(); i-- > 0;) {
      if (!wanted[i]) continue;
      const Node& node = body_node(i);
      if (node.op->random) return false;
      needed_[i] = true;
      for (const ValueId& input : node.inputs) {
        const std::optional<bool> there = reads(input);
        if (!there) return false;
        if (!*there) wanted[static_cast<std::size_t>(input.node)] = true;
      }
    }
    return true;
  }

  /// Decides how a step of the reader gets a value of the writer's body. Returns true if the step reads the value, and
  /// false if the step computes it. Returns nothing if neither is possible.
  std::optional<bool> reads(ValueId value) {
    const auto given = std::find(writer_.given.begin(), writer_.given.end(), value);
    const auto place = static_cast<std::size_t>(given - writer_.given.begin());
    const std::size_t first_state = writer_.form.sequences();
    const std::size_t end_states = first_state + static_cast<std::size_t>(writer_.form.states);
    const bool is_input = given != writer_.given.end();
    const std::optional<std::size_t> output = writer_.output_of(value);
    if (is_input && (place < first_state || place >= end_states)) {
      read(value, writer_.source(place));
    } else if (output && used_[*output] && !again_[*output]) {
      read(value, writer_.stacked(*output));
    } else {
      const Op& op = *body_node(static_cast<std::size_t>(value.node)).op;
      const bool computes = !is_input && (which_ == RepeatSteps::all || is_cheap(op) || (output && again_[*output]));
      if (computes) return false;
      if (!output) return std::nullopt;
      saved_ -= bytes_of(*output);  // one more value to stack
      used_[*output] = true;
      read(value, writer_.stacked(*output));
    }
    return true;
  }
  void read(ValueId value, const Source& source) {
    if (std::find(read_.begin(), read_.end(), value) != read_.end()) return;
    read_.push_back(value);
    sources_.push_back(source);
  }
  std::int64_t bytes_of(std::size_t k) const {
    const ValueType& type = writer_.node.outputs[k];
    return xtape::bytes_of(type.dtype, count_of(type.shape));
  }

  /// If a product has no other use, the passes compute it and add a value in one op, which rounds once less. To keep
  /// the bits, every product must have as many uses as before, both in the body of the writer and in the body of the
  /// reader.
  bool keeps_sums() const {
    std::vector<ValueId> before, after, again;
    for (std::size_t k = 0; k < writer_.results.size(); ++k) {
      const bool is_state = k >= again_.size();
      if (is_state || was_used_[k]) before.push_back(writer_.results[k]);
      if (is_state || (used_[k] && !again_[k])) after.push_back(writer_.results[k]);
      if (!is_state && again_[k]) again.push_back(writer_.results[k]);
    }
    const std::vector<int> uses = uses_of(needed_by(writer_.body, before), before);
    const auto differs = [&](const std::vector<bool>& nodes, const std::vector<ValueId>& results) {
      const std::vector<int> now = uses_of(nodes, results);
      for (std::size_t i = 0; i < now.size(); ++i)
        if (nodes[i] && now[i] != uses[i] && is_added(i, nodes)) return true;
      return false;
    };
    return !differs(needed_by(writer_.body, after), after) && !differs(needed_, again);
  }
  std::vector<int> uses_of(const std::vector<bool>& nodes, const std::vector<ValueId>& results) const {
    std::vector<int> uses(writer_.body.size(), 0);
    for (const ValueId& id : results) ++uses[static_cast<std::size_t>(id.node)];
    for (std::size_t i = 0; i < nodes.size(); ++i)
      if (nodes[i])
        for (const ValueId& id : body_node(i).inputs) ++uses[static_cast<std::size_t>(id.node)];
    return uses;
  }
  bool is_added(std::size_t product, const std::vector<bool>& nodes) const {
    if (!body_node(product).op->algebra.accumulate) return false;
    for (std::size_t i = product; i < nodes.size(); ++i)
      if (nodes[i] && body_node(i).op->algebra.adds)
        for (const ValueId& id : body_node(i).inputs)
          if (static_cast<std::size_t>(id.node) == product) return true;
    return false;
  }
  const Node& body_node(std::size_t i) const { return node_of(writer_.body, static_cast<std::int32_t>(i)); }

  ScanNode writer_;
  RepeatSteps which_;
  // Per stacked output of the writer. again_: whether the reader computes it again. used_: whether it is used, or
  // whether the reader must read it to compute other outputs. was_used_: whether it was used before.
  std::vector<bool> again_, used_, was_used_;
  std::vector<bool> needed_;     // per node of the writer's body: whether the reader computes it
  std::vector<ValueId> read_;    // values of the writer's body
  std::vector<Source> sources_;  // per value of `read_`
  std::int64_t saved_ = 0;       // bytes
  bool possible_ = false;
};

/// A scan that computes values of other scans again.
class RepeatingScan {
 public:
  RepeatingScan(const Program& program, const ScanNode& reader, const std::vector<Repetition>& parts)
      : program_(program), body_(std::make_shared<Tape>(reader.body.blank())), fresh_(reader.node) {
    const std::size_t first_state = reader.form.sequences();
    const std::size_t end_states = first_state + static_cast<std::size_t>(reader.form.states);
    const auto repeated_by = [&](const Source& source) {
      return std::find_if(parts.begin(), parts.end(), [&](const Repetition& part) { return part.repeats(source); });
    };
    fresh_.inputs.clear();
    const auto take = [&](bool slices, std::size_t begin, std::size_t end) {
      for (std::size_t k = begin; k < end; ++k)
        if (const Source source = reader.source(k); repeated_by(source) == parts.end()) enter(source);
      for (const Repetition& part : parts)
        for (const Source& source : part.sources())
          if ((source.axis >= 0) == slices) enter(source);
    };
    take(true, 0, first_state);
    Stepping form = reader.form;
    form.input_axes.clear();
    for (const auto& [source, var] : inputs_) form.input_axes.push_back(source.axis);
    Vars states;
    for (std::size_t k = first_state; k < end_states; ++k) {
      states.push_back(input(program.type(reader.node.inputs[k])));
      fresh_.inputs.push_back(reader.node.inputs[k]);
    }
    take(false, end_states, reader.given.size());

    std::vector<Vars> again;
    for (const Repetition& part : parts) {
      Vars given;
      for (const Source& source : part.sources()) given.push_back(var_of(source));
      again.push_back(part.record(given));
    }
    Vars given;
    for (std::size_t k = 0; k < reader.given.size(); ++k) {
      const Source source = reader.source(k);
      const auto part = repeated_by(source);
      if (k >= first_state && k < end_states)
        given.push_back(states[k - first_state]);
      else if (part != parts.end())
        given.push_back(again[static_cast<std::size_t>(part - parts.begin())][part->place_of(source)]);
      else
        given.push_back(var_of(source));
    }
    std::vector<ValueId> results;
    for (const Var& result : inline_body(*body_, reader.body, given)) results.push_back(result.id());
    body_->set_results(results);
    fresh_.attributes = reader.node.op->lowering.body.attributes(form);
    fresh_.body = body_;
  }

  const Node& node() const { return fresh_; }

 private:
  Var input(const ValueType& type) {
    return body_->input("in" + std::to_string(fresh_.inputs.size()), type.shape, type.dtype);
  }
  void enter(const Source& source) {
    if (!var_of(source).empty()) return;
    ValueType type = program_.type(source.value);
    if (source.axis >= 0) type.shape.erase(static_cast<std::size_t>(source.axis));
    inputs_.emplace_back(source, input(type));
    fresh_.inputs.push_back(source.value);
  }
  Var var_of(const Source& source) const {
    for (const auto& [known, var] : inputs_)
      if (known == source) return var;
    return {};
  }

  const Program& program_;
  std::shared_ptr<Tape> body_;
  Node fresh_;
  std::vector<std::pair<Source, Var>> inputs_;
};

/// Returns the repetitions by which the scan `reader` computes values of other scans again. Leaves out scans with a
/// condition, whose steps may not take place, and scans that are marked in `changed`.
std::vector<Repetition> repetitions(const Program& program, const Users& users, const ScanNode& reader,
                                    const std::vector<bool>& changed, RepeatSteps which) {
  std::vector<Repetition> parts;
  std::vector<std::int32_t> writers;
  for (std::size_t k = 0; k < reader.form.sequences(); ++k) {
    const std::int32_t writer = reader.node.inputs[k].node;
    if (std::find(writers.begin(), writers.end(), writer) != writers.end()) continue;
    writers.push_back(writer);
    if (!is_scan(program.node(writer)) || changed[static_cast<std::size_t>(writer)]) continue;
    ScanNode scan(program, writer);
    if (scan.form.length != reader.form.length || scan.form.condition >= 0 || reader.form.condition >= 0) continue;
    Repetition part(program, users, std::move(scan), reader, which);
    if (part.possible()) parts.push_back(std::move(part));
  }
  return parts;
}
}  // namespace

bool repeat_steps_pass(Program& program, RepeatSteps which) {
  if (which == RepeatSteps::none || program.tape.capacity() > 0) return false;
  const auto scans = [&](std::int32_t index) { return is_scan(program.node(index)); };
  if (std::none_of(program.order.begin(), program.order.end(), scans)) return false;
  const Users users(program);
  std::vector<bool> changed(program.tape.size(), false);
  Rewriter rewriter(program);
  for (const std::int32_t index : program.order) {
    if (!scans(index)) {
      rewriter.keep(index);
      continue;
    }
    const ScanNode reader(program, index);
    const std::vector<Repetition> parts = repetitions(program, users, reader, changed, which);
    if (parts.empty()) {
      rewriter.keep(index);
      continue;
    }
    Node fresh = RepeatingScan(program, reader, parts).node();
    for (ValueId& input : fresh.inputs) input = rewriter.now(input);
    const std::int32_t placed = rewriter.tape().append(std::move(fresh)).node;
    for (std::size_t k = 0; k < reader.results.size(); ++k) {
      const auto output = static_cast<std::int32_t>(k);
      rewriter.replace({index, output}, rewriter.tape().var({placed, output}));
    }
    rewriter.close(index);
    changed[static_cast<std::size_t>(index)] = true;
  }
  rewriter.finish();
  return std::find(changed.begin(), changed.end(), true) != changed.end();
}

}  // namespace xtape
