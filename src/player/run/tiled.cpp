// The kernel of fused elementwise ops. All ops run on one tile, then on the next tile, so that interior values stay in
// cache.
#include <algorithm>
#include <memory>

#include "base/threads/threads.hpp"
#include "kernels/table/kernels.hpp"
#include "kernels/table/loop_kernel.hpp"
#include "kernels/table/row_kernel.hpp"
#include "kernels/table/scratch.hpp"
#include "player/run/body_kernels.hpp"
#include "player/run/operand_tiles.hpp"

namespace xtape {

namespace {
constexpr std::int64_t largest_tile = 2048;  // elements
// elements; in shorter tiles, calling the loops costs more than the cache saves
constexpr std::int64_t shortest_tile = 512;
constexpr std::int64_t cache_bytes = 32768;  // size of the first-level cache
constexpr std::int64_t shortest_row = 128;   // elements; shorter rows are gathered into full tiles
// elements; longer runs are faster to copy run by run than by a list of offsets
constexpr std::int64_t gathered_by_offsets = 32;
constexpr std::int64_t elements_a_thread = 16384;  // fewer elements are not worth another thread
constexpr std::int64_t drawn_at_a_time = 16;  // random numbers; tiles of random ops begin at multiples of this number

/// An input of the fused ops.
struct External {
  enum class Read : std::uint8_t {
    in_tiles,  // each tile is read in place, or is gathered into the slot
    filled,    // a single element is copied to all places of the slot, once for all tiles
    single     // the loops read a single element in place
  };
  OperandTiles elements;
  Read read = Read::in_tiles;
  std::int32_t slot = -1;  // -1: no tile is copied
};

/// A loop. Its operands are indices of pointers: first the inputs, then the outputs.
struct Member {
  TileFunction run;
  std::size_t in = 0, out = 0, end = 0;  // indices in TiledProgram::operands
};

/// The program of a tile. A list of pointers refers to the external operands, the slots and the results.
struct TiledProgram {
  std::vector<External> externals;
  std::vector<Member> members;
  std::vector<std::int32_t> operands;     // operands of all members
  std::vector<std::size_t> result_bytes;  // per result: the bytes of an element
  std::size_t most_operands = 1;
  std::size_t slots = 0;
  std::int64_t count = 0;  // number of elements of an output
  std::int64_t row = 0;    // tiles do not cross multiples of this number of elements
  std::int64_t tile = 0;   // elements of a full tile
  int threads = 1;

  std::size_t slot_bytes() const { return static_cast<std::size_t>(tile + 7) / 8 * 64; }
  /// Returns whether the loops read only one element of the operand with this number.
  bool reads_single(std::int32_t operand) const {
    const bool external = operand >= 0 && static_cast<std::size_t>(operand) < externals.size();
    return external && externals[operand].read == External::Read::single;
  }
  std::size_t pointers() const { return externals.size() + slots + result_bytes.size(); }
  std::size_t thread_bytes() const {
    return slots * slot_bytes() + whole_lines((pointers() + most_operands) * sizeof(void*));
  }
};

void run_tile(const TiledProgram& program, const KernelArguments& arguments, void** pointers, std::int64_t first,
              std::int64_t count) {
  const std::size_t externals = program.externals.size();
  for (std::size_t i = 0; i < externals; ++i)
    if (const External& operand = program.externals[i]; operand.read == External::Read::in_tiles) {
      void* scratch = operand.slot < 0 ? nullptr : pointers[externals + static_cast<std::size_t>(operand.slot)];
      pointers[i] = const_cast<void*>(operand.elements.tile(arguments.in[i], first, count, scratch));
    }
  void** results = pointers + externals + program.slots;
  for (std::size_t k = 0; k < program.result_bytes.size(); ++k)
    results[k] = static_cast<char*>(arguments.out[k]) + first * static_cast<std::int64_t>(program.result_bytes[k]);
  void** chosen = results + program.result_bytes.size();
  const std::int32_t* operands = program.operands.data();
  for (const Member& member : program.members) {
    for (std::size_t i = member.in; i < member.end; ++i) chosen[i - member.in] = pointers[operands[i]];
    member.run({chosen, chosen + (member.out - member.in), first, count, arguments.step});
  }
}

/// Computes the elements [begin, end) with the scratch memory of `worker`.
void run_tiles(const TiledProgram& program, const KernelArguments& arguments, std::int64_t begin, std::int64_t end,
               std::int64_t worker) {
  char* slots = static_cast<char*>(arguments.scratch) + static_cast<std::size_t>(worker) * program.thread_bytes();
  void** pointers = reinterpret_cast<void**>(slots + program.slots * program.slot_bytes());
  const std::size_t externals = program.externals.size();
  for (std::size_t i = 0; i < program.slots; ++i) pointers[externals + i] = slots + i * program.slot_bytes();
  for (std::size_t i = 0; i < externals; ++i) {
    const External& operand = program.externals[i];
    if (operand.read == External::Read::filled) {
      pointers[i] = pointers[externals + static_cast<std::size_t>(operand.slot)];
      operand.elements.fill(arguments.in[i], std::min(program.tile, end - begin), pointers[i]);
    } else if (operand.read == External::Read::single) {
      pointers[i] = const_cast<void*>(operand.elements.element(arguments.in[i]));
    }
  }
  for (std::int64_t first = begin; first < end;) {
    const std::int64_t left_of_row = program.row - first % program.row;
    const std::int64_t count = std::min({program.tile, left_of_row, end - first});
    run_tile(program, arguments, pointers, first, count);
    first += count;
  }
}

/// Allocates scratch slots. A slot becomes free after the last read of its value.
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

/// Returns the function of a loop.
TileFunction tile_of(const KernelCall& fused, const Tape& body, const BodyLoop& loop, bool single) {
  const Node& node = body.node(loop.node);
  if (loop.joined >= 0)
    return kernels().make_joint_loop(
        {body.node(loop.joined).op->name, node.op->name, loop.operand, node.outputs[0].dtype, single});
  OpCall call{{node.attributes}, *node.op, {}, node.outputs, nullptr, node.site};
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

/// Returns a body that contains only the call.
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

/// Returns for each value of the body the last node whose loop reads it, or the value's own node if there is none.
std::vector<std::vector<std::int32_t>> last_reads(const Tape& body, const std::vector<BodyLoop>& loops) {
  std::vector<std::vector<std::int32_t>> last(body.size());
  for (std::size_t i = 0; i < body.size(); ++i)
    last[i].assign(body.node(i).outputs.size(), static_cast<std::int32_t>(i));
  for (const BodyLoop& loop : loops)
    for (const ValueId& id : loop.inputs) last[id.node][id.output] = loop.node;
  return last;
}

/// Chooses how the tiles read the inputs. If all loops that read an input can read a single element, this input is
/// single. The loop of a product and a sum reads its first operand in this way, so the factors are swapped if only the
/// second one has a single element.
void place_externals(const Tape& body, std::vector<BodyLoop>& loops, SlotPool& pool, TiledProgram& program) {
  std::vector<External*> external(body.size(), nullptr);  // per node of the body
  auto next = program.externals.begin();
  for (std::size_t i = 0; i < body.size(); ++i)
    if (body.node(i).op == &input_op()) external[i] = &*next++;
  const auto single = [&](ValueId id) {
    const External* operand = external[id.node];
    return program.count > 1 && operand != nullptr && operand->elements.uniform();
  };
  std::vector<bool> filled(body.size(), false);
  for (BodyLoop& loop : loops) {
    if (loop.joined >= 0 && !single(loop.inputs[0]) && single(loop.inputs[1]))
      std::swap(loop.inputs[0], loop.inputs[1]);
    for (std::size_t k = loop.joined >= 0 ? 1 : 0; k < loop.inputs.size(); ++k) filled[loop.inputs[k].node] = true;
  }
  for (std::size_t i = 0; i < body.size(); ++i) {
    External* operand = external[i];
    if (operand == nullptr || operand->elements.dense() || program.count == 1) continue;
    if (operand->elements.uniform()) operand->read = filled[i] ? External::Read::filled : External::Read::single;
    if (operand->read != External::Read::single) operand->slot = pool.take();
  }
}

void place_members(const KernelCall& call, const Tape& body, SlotPool& pool, TiledProgram& program) {
  std::vector<BodyLoop> loops = body_loops(body);
  place_externals(body, loops, pool, program);
  // Values in slots have numbers from `first_slot` on. The numbers of results follow the numbers of slots. The numbers
  // of results are therefore known only at the end, when the number of slots is known.
  const auto first_slot = static_cast<std::int32_t>(program.externals.size());
  const auto last = last_reads(body, loops);
  std::vector<std::vector<std::int32_t>> places(body.size());  // until the number of slots is known, ~k is result k
  std::int32_t externals = 0;
  for (std::size_t i = 0; i < body.size(); ++i) {
    places[i].resize(body.node(i).outputs.size());
    if (body.node(i).op == &input_op()) places[i][0] = externals++;
  }
  for (const BodyLoop& loop : loops) {
    const Node& node = body.node(loop.node);
    Member member;
    member.in = program.operands.size();
    for (const ValueId& id : loop.inputs) program.operands.push_back(places[id.node][id.output]);
    member.run = tile_of(call, body, loop, loop.joined >= 0 && program.reads_single(program.operands[member.in]));
    member.out = program.operands.size();
    for (std::size_t k = 0; k < node.outputs.size(); ++k) {
      const ValueId id{loop.node, static_cast<std::int32_t>(k)};
      const auto found = std::find(body.results().begin(), body.results().end(), id);
      std::int32_t& place = places[id.node][k];
      place = found == body.results().end() ? first_slot + pool.take()
                                            : ~static_cast<std::int32_t>(found - body.results().begin());
      program.operands.push_back(place);
    }
    member.end = program.operands.size();
    program.most_operands = std::max(program.most_operands, member.end - member.in);
    program.members.push_back(std::move(member));
    std::vector<std::int32_t> dead;  // contains each slot once, although an op may read a value twice
    const auto note = [&](ValueId id) {
      const std::int32_t place = places[id.node][id.output];
      if (place >= first_slot && last[id.node][id.output] == loop.node &&
          std::find(dead.begin(), dead.end(), place) == dead.end())
        dead.push_back(place);
    };
    for (const ValueId& id : loop.inputs) note(id);
    for (std::size_t k = 0; k < node.outputs.size(); ++k) note({loop.node, static_cast<std::int32_t>(k)});
    for (const std::int32_t slot : dead) pool.give_back(slot - first_slot);
  }
  program.slots = static_cast<std::size_t>(pool.count());
  for (std::int32_t& place : program.operands)
    if (place < 0) place = first_slot + pool.count() + ~place;
}

/// Returns the number of elements of a tile whose operands fit in the first-level cache. The result is at least
/// shortest_tile, even if the operands then do not fit, and at most largest_tile.
std::int64_t tile_in_cache(const TiledProgram& program, const KernelCall& call) {
  std::size_t widest = 1;
  for (const ValueType& type : call.inputs) widest = std::max(widest, size_of(type.dtype));
  const auto bytes = static_cast<std::int64_t>(program.pointers() * widest);
  return std::clamp(cache_bytes / bytes / 64 * 64, shortest_tile, largest_tile);
}
/// Returns the operand to which members refer by this number.
LoopKernel::Operand operand_of(const TiledProgram& program, std::int32_t number) {
  const auto externals = static_cast<std::int32_t>(program.externals.size());
  const auto slots = static_cast<std::int32_t>(program.slots);
  if (number >= externals + slots) return {number - slots, 0};
  const std::int32_t slot = number < externals ? program.externals[number].slot : number - externals;
  if (slot < 0) return {number, 0};
  return {-1, static_cast<std::size_t>(slot) * program.slot_bytes()};
}

/// Returns the loop that writes all elements of an operand densely.
TileFunction gather_of(const OperandTiles& operand, std::int64_t count) {
  if (operand.uniform()) return fill_loop(operand.bytes());
  if (count > gathered_by_offsets)
    return [operand](const Tile& tile) { operand.tile(tile.in[0], 0, tile.count, tile.out[0]); };
  std::vector<std::int64_t> offsets;
  for (std::int64_t i = 0; i < count; ++i) offsets.push_back(operand.offset(i));
  return gather_loop(operand.bytes(), std::move(offsets));
}

/// Returns the loops of a program of a single tile, for one thread.
LoopKernel loops_of(const TiledProgram& program) {
  LoopKernel kernel;
  kernel.inputs = static_cast<std::int32_t>(program.externals.size());
  for (std::int32_t i = 0; i < kernel.inputs; ++i) {
    const External& operand = program.externals[i];
    if (operand.slot < 0) continue;
    kernel.loops.push_back(
        {gather_of(operand.elements, program.count), {{i, 0}, operand_of(program, i)}, 1, program.count});
  }
  for (const Member& member : program.members) {
    std::vector<LoopKernel::Operand> operands;
    for (std::size_t i = member.in; i < member.end; ++i) operands.push_back(operand_of(program, program.operands[i]));
    kernel.loops.push_back({member.run, std::move(operands), member.out - member.in, program.count});
  }
  return kernel;
}

/// Returns Kernel::run, which can compute rows unless random numbers forbid it.
std::function<void(const KernelArguments&)> run_of(const KernelCall& call,
                                                   const std::shared_ptr<const TiledProgram>& program, bool random) {
  RowKernel kernel{[program](const KernelArguments& arguments) {
    if (program->count <= elements_a_thread) return run_tiles(*program, arguments, 0, program->count, 0);
    parallel_pieces(program->threads, program->count, elements_a_thread,
                    [&](std::int64_t begin, std::int64_t finish, std::int64_t piece) {
                      run_tiles(*program, arguments, begin, finish, piece);
                    });
  }};
  const Shape& shape = call.outputs[0].shape;
  if (shape.empty() || shape[0] < 2) return kernel.all;
  kernel.rows = shape[0];
  const std::int64_t row = program->count / kernel.rows;
  if (random && row % drawn_at_a_time != 0) return kernel.all;
  for (std::size_t i = 0; i < call.in.size(); ++i) {
    const Layout layout = call.in[i].broadcast_to(shape);
    if (!kernel.add(layout, size_of(call.inputs[i].dtype))) return kernel.all;
  }
  for (std::size_t k = 0; k < call.out.size(); ++k)
    if (!kernel.add(call.out[k], size_of(call.outputs[k].dtype))) return kernel.all;
  kernel.compute = [program, row](const KernelArguments& arguments, std::int64_t begin, std::int64_t end,
                                  std::int64_t worker) {
    run_tiles(*program, arguments, begin * row, end * row, worker);
  };
  constexpr double nanoseconds_per_member = 0.25;
  kernel.nanoseconds = nanoseconds_per_member * static_cast<double>(program->members.size()) * static_cast<double>(row);
  return kernel;
}
}  // namespace

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
    program->externals.push_back({OperandTiles(call.in[i], shape, size_of(call.inputs[i].dtype))});
    const OperandTiles& operand = program->externals.back().elements;
    if (!operand.dense() && !operand.uniform()) shortest = std::min(shortest, operand.run());
  }
  if (shortest >= shortest_row && program->count % shortest == 0 && (!random || shortest % drawn_at_a_time == 0))
    program->row = shortest;

  SlotPool pool;
  place_members(call, body, pool, *program);
  program->tile = std::min(program->row, tile_in_cache(*program, call));
  Kernel kernel;
  if (program->tile == program->count && program->most_operands <= LoopKernel::most_operands) {
    kernel.run = loops_of(*program);
    kernel.scratch_bytes = program->slots * program->slot_bytes();
    return kernel;
  }
  kernel.run = run_of(call, program, random);
  kernel.scratch_bytes = program->thread_bytes() * static_cast<std::size_t>(call.threads);
  return kernel;
}

}  // namespace xtape
