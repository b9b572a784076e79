#include "xtape/trace.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "base/system/process_memory.hpp"
#include "player/run/traced_plan.hpp"

namespace xtape {

namespace {
struct Event {
  const char* name = nullptr;  // the name of work outside of players; null for a step
  std::int32_t plan = -1, step = -1;
  std::int32_t thread = 0;
  bool helps = false;  // whether this thread helps with a step of another thread
  double begin = 0, end = 0;
};

/// The texts of a step in a trace.
struct StepText {
  std::string op, module, site, outputs;
  Cost cost;
  std::size_t temporaries = 0;  // bytes of temporaries in use
};

struct PlanText {
  std::vector<StepText> steps;
  std::size_t held = 0;  // bytes that are in use all the time
};

/// Returns the bytes of the temporaries that are alive at each step.
std::vector<std::size_t> alive(const PlannedProgram& planned) {
  std::vector<std::size_t> begins(planned.steps.size() + 1, 0), ends(begins.size(), 0);
  for (const Buffer& buffer : planned.buffers) {
    if (buffer.first < 0 || buffer.kind != BufferKind::arena) continue;
    begins[buffer.first] += buffer.bytes;
    ends[static_cast<std::size_t>(buffer.last) + 1] += buffer.bytes;
  }
  std::vector<std::size_t> bytes;
  std::size_t now = 0;
  for (std::size_t i = 0; i < planned.steps.size(); ++i) bytes.push_back(now += begins[i] - ends[i]);
  return bytes;
}
}  // namespace

struct Trace::Data {
  explicit Data(std::size_t capacity) {
    require_memory_left(capacity, sizeof(Event), "a trace of " + std::to_string(capacity) + " events");
    recorded.resize(capacity);
  }

  void add(const Event& event) {
    const std::size_t place = next.fetch_add(1, std::memory_order_relaxed);
    if (place < recorded.size()) recorded[place] = event;
  }
  std::size_t count() const { return std::min<std::size_t>(next, recorded.size()); }

  std::atomic<bool> is_on{false};
  std::atomic<std::size_t> next{0};
  std::vector<Event> recorded;
  std::mutex adding;  // guards `plans` while one is added
  std::vector<PlanText> plans;
};

Trace::Trace(std::size_t capacity) : data_(std::make_unique<Data>(capacity)) {}
Trace::~Trace() = default;
void Trace::set_on(bool on) {
  data_->is_on = on;
}
bool Trace::on() const {
  return data_->is_on;
}
double Trace::now() {
  return seconds_now();
}
std::size_t Trace::events() const {
  return data_->count();
}
std::size_t Trace::dropped() const {
  return data_->next - data_->count();
}

void Trace::add(const char* name, double begin) {
  if (on()) data_->add({name, -1, -1, thread_number(), false, begin, now()});
}

TracedPlan::TracedPlan(std::shared_ptr<Trace> trace, const PlannedProgram& planned) : trace_(std::move(trace)) {
  if (!trace_) return;
  PlanText text;
  const std::vector<std::size_t> temporaries = alive(planned);
  for (std::size_t i = 0; i < planned.steps.size(); ++i) {
    const PlannedStep& step = planned.steps[i];
    const Site& site = planned.site_of(step);
    text.steps.push_back({planned.name_of(step), site.scope ? site.scope->path : "", to_string(site),
                          planned.types_text(step), step.cost, temporaries[i]});
  }
  for (const Buffer& buffer : planned.buffers)
    if (buffer.first >= 0 && buffer.kind != BufferKind::arena) text.held += buffer.bytes;
  const std::lock_guard lock(trace_->data_->adding);
  number_ = static_cast<std::int32_t>(trace_->data_->plans.size());
  trace_->data_->plans.push_back(std::move(text));
}

void TracedPlan::add(std::size_t step, bool helps, double begin) const {
  trace_->data_->add({nullptr, number_, static_cast<std::int32_t>(step), thread_number(), helps, begin, seconds_now()});
}

void Trace::write(std::ostream& out) const {
  using Json = nlohmann::ordered_json;
  std::vector<Event> events(data_->recorded.begin(),
                            data_->recorded.begin() + static_cast<std::ptrdiff_t>(data_->count()));
  std::ranges::sort(events, [](const Event& a, const Event& b) { return a.begin < b.begin; });
  const double start = events.empty() ? 0 : events.front().begin;
  const auto microseconds = [&](double seconds) { return 1e6 * seconds; };
  out << "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [";
  const char* separator = "\n";
  const auto put = [&](const Json& event) {
    out << separator << event.dump(-1, ' ', false, Json::error_handler_t::replace);
    separator = ",\n";
  };
  std::set<std::int32_t> threads;
  for (const Event& event : events)
    if (threads.insert(event.thread).second)
      put({{"ph", "M"},
           {"pid", 1},
           {"tid", event.thread},
           {"name", "thread_name"},
           {"args", {{"name", "thread " + std::to_string(event.thread)}}}});
  for (const Event& event : events) {
    Json json = {{"ph", "X"},
                 {"pid", 1},
                 {"tid", event.thread},
                 {"ts", microseconds(event.begin - start)},
                 {"dur", microseconds(event.end - event.begin)}};
    if (event.name != nullptr) {
      json["name"] = event.name;
      put(json);
      continue;
    }
    const PlanText& plan = data_->plans[event.plan];
    const StepText& step = plan.steps[event.step];
    json["name"] = step.op;
    json["args"] = {{"module", step.module},    {"site", step.site},        {"outputs", step.outputs},
                    {"flops", step.cost.flops}, {"bytes", step.cost.bytes}, {"step", event.step}};
    put(json);
    if (event.helps) continue;
    put({{"ph", "C"},
         {"pid", 1},
         {"name", "memory"},
         {"ts", microseconds(event.begin - start)},
         {"args", {{"temporaries", step.temporaries}, {"held", plan.held}}}});
  }
  out << "\n]}\n";
}

}  // namespace xtape
