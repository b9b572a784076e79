#include "player/run/hasher.hpp"

#include <algorithm>

#include "base/bytes/encodings.hpp"
#include "kernels/table/kernels.hpp"
#include "player/plan/placement.hpp"

namespace xtape {

namespace {
bool is_read(const Buffer& buffer) {
  return buffer.kind == BufferKind::input || buffer.kind == BufferKind::carry || buffer.kind == BufferKind::parameter;
}
}  // namespace

Hasher::Hasher(const PlannedProgram& planned, int threads) : threads_(threads) {
  std::size_t most = 0, most_copied = 0;
  for (std::size_t i = 0; i < planned.buffers.size(); ++i) {
    if (!is_read(planned.buffers[i])) continue;
    sources_.push_back({i, 0, planned.buffers[i].bytes});
    most = std::max(most, sources_.back().bytes);
  }
  for (std::size_t i = 0; i < planned.steps.size(); ++i) {
    const PlannedStep& step = planned.steps[i];
    first_.push_back(outputs_.size());
    const auto types = planned.types_of(step);
    for (std::size_t k = 0; k < types.size() && !step.is_copy(); ++k) {
      outputs_.push_back({i, k, bytes_of(types[k])});
      most = std::max(most, outputs_.back().bytes);
      const Layout& layout = planned.layouts[{step.node, static_cast<std::int32_t>(k)}];
      if (layout.contiguous()) continue;
      outputs_.back().copy = kernels().make_copy(types[k].dtype, layout, Layout::dense(layout.shape), threads);
      most_copied = std::max(most_copied, outputs_.back().bytes);
    }
  }
  first_.push_back(outputs_.size());
  dense_ = Array(Dtype::int8, {static_cast<std::int64_t>(most_copied)});
  pieces_.reserve(most / checksum_piece + 1);
}

void Hasher::hash(Value& value, const void* elements) {
  if (value.copy) {
    value.copy(elements, dense_.data());
    elements = dense_.data();
  }
  value.hash = checksum_of(elements, value.bytes, threads_, pieces_);
}

void Hasher::hash_sources(const PlannedProgram& planned, const std::vector<Array>& memory) {
  for (Value& value : sources_) hash(value, memory[planned.buffers[value.place].number].data());
}

void Hasher::hash_outputs(std::size_t step, void* const* out) {
  for (std::size_t i = first_[step]; i < first_[step + 1]; ++i) hash(outputs_[i], out[outputs_[i].output]);
}

std::vector<Digest> Hasher::digests(const PlannedProgram& planned) const {
  std::vector<Digest> digests;
  for (const Value& value : sources_) {
    const Buffer& buffer = planned.buffers[value.place];
    digests.push_back({planned.name_of(buffer), 0, name_of(buffer.kind), "",
                       to_string(planned.program->type(buffer.of)), value.hash});
  }
  for (const Value& value : outputs_) {
    const PlannedStep& step = planned.steps[value.place];
    const auto output = static_cast<std::int32_t>(value.output);
    digests.push_back({planned.program->label({step.node, output}), output, planned.name_of(step),
                       to_string(planned.site_of(step)), to_string(planned.types_of(step)[value.output]), value.hash});
  }
  return digests;
}

}  // namespace xtape
