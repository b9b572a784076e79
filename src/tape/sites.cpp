// The sites of nodes, and the guards that determine them.
#include "base/arrays/mix.hpp"
#include "tape/tape_data.hpp"
#include "xtape/op/op.hpp"

namespace xtape {

namespace {
std::uint64_t place_hash(const Site& site, const Op& op) {
  return ByteHash().add(site.scope->path).add(site.line).add(op.name).value();
}
}  // namespace

Site next_site(TapeData& data, const Op& op) {
  if (data.site_is_fixed) return data.site;
  Site site = data.site;
  if (site.op == nullptr) site.op = &op;
  const std::uint64_t place = place_hash(site, op);
  site.occurrence = data.occurrences[place]++;
  data.counted.push_back(place);
  site.key = ByteHash().add(static_cast<std::int64_t>(place)).add(site.occurrence).value();
  return site;
}

Tape::Guard::Guard(std::shared_ptr<TapeData> tape, Site site, bool site_is_fixed, bool fused)
    : tape_(std::move(tape)),
      site_before_(tape_->site),
      fixed_before_(tape_->site_is_fixed),
      fused_before_(tape_->fused) {
  tape_->site = std::move(site);
  tape_->site_is_fixed = site_is_fixed;
  tape_->fused = fused;
}

Tape::Guard::~Guard() {
  tape_->site = std::move(site_before_);
  tape_->site_is_fixed = fixed_before_;
  tape_->fused = fused_before_;
}

Tape::Guard Tape::in_call(const Op* op, const Caller& caller) {
  Site site = data_->site;
  if (!data_->site_is_fixed && site.op == nullptr && !site.caller.known()) {
    site.op = op;
    if (site.scope->where.empty()) site.caller = caller;
  }
  return Guard(data_, std::move(site), data_->site_is_fixed, data_->fused);
}

Tape::Guard Tape::out_of_call() {
  Site site = data_->site;
  if (!data_->site_is_fixed) {
    site.op = nullptr;
    site.caller = {};
  }
  return Guard(data_, std::move(site), data_->site_is_fixed, data_->fused);
}

Tape::Guard Tape::in_scope(std::shared_ptr<const Scope> scope, std::int32_t line) {
  if (!scope) throw Error("in_scope: the scope is null");
  return Guard(data_, Site{std::move(scope), line, 0, 0}, false, data_->fused);
}

Tape::Guard Tape::in_site(const Site& site) {
  Site complete = site;
  if (!complete.scope) complete.scope = std::make_shared<const Scope>();
  return Guard(data_, std::move(complete), true, data_->fused);
}

Tape::Guard Tape::in_fused_call() {
  return Guard(data_, data_->site, data_->site_is_fixed, true);
}

}  // namespace xtape
