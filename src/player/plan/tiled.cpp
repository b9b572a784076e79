// The kernel of fused elementwise ops. All ops run on one tile, then on the next, so that interior values stay in
// cache.
#include <algorithm>
#include <memory>

#include "passes/passes.hpp"
#include "plan/operand_tiles.hpp"
#include "scratch.hpp"
#include "threads.hpp"

namespace xtape {

namespace {
constexpr std::int64_t largest_tile = 2048;  // elements; some operands of 8 KiB (float32) fit in the first-level cache
constexpr std::int64_t shortest_row = 128;   // elements; shorter rows are gathered into full tiles
constexpr std::int64_t elements_a_thread = 16384;  // fewer are not worth another thread
constexpr std::int64_t drawn_at_a_time = 16;       // random numbers; tiles of random ops begin at multiples of this

/// Where a value is stored while a tile runs: an external operand, a scratch slot or a result of the kernel.
struct Place {
  enum { external, slot, result } kind = external;
  std::int32_t index = 0;
};

/// One of the fused ops.
struct Member {
  TileFunction run;
  std::vector<Place> in;
  std::vector<Place> out;
};

struct TiledProgram {
  std::vector<OperandTiles> externals;
  std::vector<std::int32_t> external_slots;  // per external; -1 if it is never copied
  std::vector<Member> members;
  std::vector<std::size_t> result_bytes;  // per result, of an element
  std::size_t most_operands = 1;
  std::int32_t slots = 0;
  std::int64_t count = 0;  // elements of an output
  std::int64_t row = 0;    // tiles do not cross multiples of this
  std::int64_t tile = 0;   // elements of a full tile
  int threads = 1;

  std::size_t slot_bytes() const { return static_cast<std::size_t>(tile + 7) / 8 * 64; }
  std::size_t pointers() const { return externals.size() + 2 * most_operands; }
  std::size_t thread_bytes() const {
    return static_cast<std::size_t>(slots) * slot_bytes() + whole_lines(pointers() * sizeof(void*));
  }
};

void run_tile(const TiledProgram& program, const KernelArguments& arguments, char* slots, const void** external,
              const void** in, void** out, std::int64_t first, std::int64_t count) {
  for (std::size_t i = 0; i < program.externals.size(); ++i)
    if (!program.externals[i].uniform())
      external[i] = program.externals[i].tile(
          arguments.in[i], first, count,
          program.external_slots[i] < 0
              ? nullptr
              : slots + static_cast<std::size_t>(program.external_slots[i]) * program.slot_bytes());
  const auto slot = [&](const Place& place) {
    return slots + static_cast<std::size_t>(place.index) * program.slot_bytes();
  };
  const auto result = [&](const Place& place) {
    const auto k = static_cast<std::size_t>(place.index);
    return static_cast<char*>(arguments.out[k]) + first * static_cast<std::int64_t>(program.result_bytes[k]);
  };
  for (const Member& member : program.members) {
    for (std::size_t i = 0; i < member.in.size(); ++i) {
      const Place& place = member.in[i];
      in[i] = place.kind == Place::external ? external[place.index]
              : place.kind == Place::slot   ? slot(place)
                                            : result(place);
    }
    for (std::size_t i = 0; i < member.out.size(); ++i)
      out[i] = member.out[i].kind == Place::slot ? slot(member.out[i]) : result(member.out[i]);
    member.run({in, out, first, count, arguments.step});
  }
}

/// Computes the elements [begin, end) in the scratch memory of `worker`.
void run_tiles(const TiledProgram& program, const KernelArguments& arguments, std::int64_t begin, std::int64_t end,
               std::int64_t worker) {
  char* own = static_cast<char*>(arguments.scratch) + static_cast<std::size_t>(worker) * program.thread_bytes();
  char* slots = own;
  const void** external =
      reinterpret_cast<const void**>(own + static_cast<std::size_t>(program.slots) * program.slot_bytes());
  const void** in = external + program.externals.size();
  void** out = const_cast<void**>(in + program.most_operands);
  for (std::size_t i = 0; i < program.externals.size(); ++i)
    if (program.externals[i].uniform()) {
      char* filled = slots + static_cast<std::size_t>(program.external_slots[i]) * program.slot_bytes();
      program.externals[i].fill(arguments.in[i], program.tile, filled);
      external[i] = filled;
    }
  for (std::int64_t first = begin; first < end;) {
    const std::int64_t left_of_row = program.row - first % program.row;
    const std::int64_t count = std::min({program.tile, left_of_row, end - first});
    run_tile(program, arguments, slots, external, in, out, first, count);
    first += count;
  }
}

/// Allocates scratch slots. A slot is returned after the last read of its value.
class SlotPool {
 public:
  std::int32_t take() {
    if (free_.empty()) return count_++;
    const std::int32_t slot = free_.back();
    free_.pop_back();
    return slot;
  }
  void give_back(std::int32_t slot) { free_.push_back(slot); }
  std::int32_t count() const { return count_; }

 private:
  std::vector<std::int32_t> free_;
  std::int32_t count_ = 0;
};

TileFunction tile_of(const KernelCall& fused, const Tape& body, const Node& node) {
  OpCall call{*node.op, node.attributes, {}, node.outputs, nullptr, node.site};
  for (const ValueId& id : node.inputs) call.inputs.push_back(body.type(id));
  KernelCall made(call);
  for (const ValueType& type : call.inputs) made.in.push_back(Layout::dense(type.shape));
  for (const ValueType& type : call.outputs) made.out.push_back(Layout::dense(type.shape));
  made.threads = fused.threads;
  made.seed = fused.seed;
  TileFunction tile = node.op->lowering.tile(made);
  if (!tile) throw Error(node.op->name + ": its lowering gives an empty tile function");
  return tile;
}

/// A body that contains only the call.
Tape body_of_one(const KernelCall& call) {
  Tape body;
  Node node;
  for (std::size_t i = 0; i < call.inputs.size(); ++i)
    node.inputs.push_back(body.input("in" + std::to_string(i), call.inputs[i].shape, call.inputs[i].dtype).id());
  node.op = &call.op;
  node.attributes = call.attributes;
  node.outputs = call.outputs;
  node.site = call.site;
  const std::int32_t placed = body.append(std::move(node)).node;
  std::vector<ValueId> results;
  for (std::size_t i = 0; i < call.outputs.size(); ++i) results.push_back({placed, static_cast<std::int32_t>(i)});
  body.set_results(results);
  return body;
}

/// For each value of the body, the last node that reads it; its own node if none does.
std::vector<std::vector<std::size_t>> last_reads(const Tape& body) {
  std::vector<std::vector<std::size_t>> last(body.size());
  for (std::size_t i = 0; i < body.size(); ++i) {
    last[i].assign(body.node(i).outputs.size(), i);
    for (const ValueId& id : body.node(i).inputs)
      last[id.node][id.output] = i;
  }
  return last;
}

void place_members(const KernelCall& call, const Tape& body, SlotPool& pool, TiledProgram& program) {
  const auto last = last_reads(body);
  std::vector<std::vector<Place>> places(body.size());
  std::int32_t externals = 0;
  for (std::size_t i = 0; i < body.size(); ++i) {
    const Node& node = body.node(i);
    places[i].resize(node.outputs.size());
    if (node.op == &input_op()) {
      places[i][0] = {Place::external, externals++};
      continue;
    }
    Member member;
    member.run = tile_of(call, body, node);
    for (std::size_t k = 0; k < node.outputs.size(); ++k) {
      const ValueId id{static_cast<std::int32_t>(i), static_cast<std::int32_t>(k)};
      const auto found = std::find(body.results().begin(), body.results().end(), id);
      places[i][k] = found == body.results().end()
                         ? Place{Place::slot, pool.take()}
                         : Place{Place::result, static_cast<std::int32_t>(found - body.results().begin())};
      member.out.push_back(places[i][k]);
    }
    for (const ValueId& id : node.inputs)
      member.in.push_back(places[id.node][id.output]);
    program.most_operands = std::max({program.most_operands, member.in.size(), member.out.size()});
    program.members.push_back(std::move(member));
    std::vector<std::int32_t> dead;  // each slot once, although an op may read a value twice
    const auto note = [&](ValueId id) {
      const Place& place = places[id.node][id.output];
      if (place.kind == Place::slot &&
          last[id.node][id.output] == i &&
          std::find(dead.begin(), dead.end(), place.index) == dead.end())
        dead.push_back(place.index);
    };
    for (const ValueId& id : node.inputs) note(id);
    for (std::size_t k = 0; k < node.outputs.size(); ++k)
      note({static_cast<std::int32_t>(i), static_cast<std::int32_t>(k)});
    for (std::int32_t slot : dead) pool.give_back(slot);
  }
}
}  // namespace

bool runs_in_tiles(const Op& op) {
  return op.lowering.tile || op.lowering.tiles_body;
}

Kernel make_elementwise(const KernelCall& call) {
  const Tape body = call.body != nullptr ? *call.body : body_of_one(call);
  const Shape& shape = call.outputs[0].shape;
  auto program = std::make_shared<TiledProgram>();
  program->threads = call.threads;
  program->count = program->row = count_of(shape);
  for (const ValueType& type : call.outputs) program->result_bytes.push_back(size_of(type.dtype));
  if (program->count == 0) return {[](const KernelArguments&) {}, 0};

  bool random = false;
  for (std::size_t i = 0; i < body.size(); ++i) random |= body.node(i).op->random;
  std::int64_t shortest = program->count;
  for (std::size_t i = 0; i < call.in.size(); ++i) {
    program->externals.emplace_back(call.in[i], shape, size_of(call.inputs[i].dtype));
    const OperandTiles& operand = program->externals.back();
    if (!operand.dense() && !operand.uniform()) shortest = std::min(shortest, operand.run());
  }
  if (shortest >= shortest_row && program->count % shortest == 0 && (!random || shortest % drawn_at_a_time == 0))
    program->row = shortest;
  program->tile = std::min(program->row, largest_tile);

  SlotPool pool;
  for (const OperandTiles& operand : program->externals)
    program->external_slots.push_back(operand.dense() ? -1 : pool.take());
  place_members(call, body, pool, *program);
  program->slots = pool.count();
  Kernel kernel;
  kernel.run = [program](const KernelArguments& arguments) {
    parallel_pieces(program->threads, program->count, elements_a_thread,
                    [&](std::int64_t begin, std::int64_t finish, std::int64_t piece) {
                      run_tiles(*program, arguments, begin, finish, piece);
                    });
  };
  kernel.scratch_bytes = program->thread_bytes() * static_cast<std::size_t>(call.threads);
  return kernel;
}

}  // namespace xtape
