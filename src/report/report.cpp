// Collects what a page shows, and writes the page.
#include "xtape/report.hpp"

#include <zlib.h>

#include <memory>

#include "base/bytes/encodings.hpp"
#include "base/system/durable.hpp"
#include "inspect/node_by_node.hpp"
#include "report/gathered.hpp"
#include "tape/node_text.hpp"

namespace xtape {

using report_data::Sites;
using report_data::Strings;

struct Report::Data {
  Strings strings;
  std::vector<Tape> tapes;
  Json page = {{"title", ""},
               {"version", XTAPE_VERSION},
               {"reload", 0},
               {"notes", Json::array()},
               {"plays", Json::array()},
               {"runs", Json::array()},
               {"attention", Json::array()}};

  /// Adds a play with what `more` adds to it.
  template <class More>
  void add(const std::string& name, const RecordedPlay& play, const PlayViews& views, const More& more) {
    Sites sites(strings, views.sources);
    Json json = {{"name", name}, {"graph", report_data::graph_of(play, views.outputs, strings, sites)}};
    more(json, sites);
    json["sites"] = sites.rows();
    json["files"] = sites.files();
    page["plays"].push_back(std::move(json));
    tapes.push_back(play.tape);
  }
};

Report::Report(const std::string& title) : data_(new Data) {
  data_->page["title"] = title;
}

namespace {
/// The plan of the play, with measured times if there are plays to measure.
Json planned(const RecordedPlay& play, std::size_t limit, std::int64_t plays, Strings& strings, Sites& sites) {
  PlayerOptions options = play.options;
  options.memory = limit;
  options.profile = plays > 0;
  if (plays > 0) options.trace = std::make_shared<Trace>();
  const Executable executable = compile(play.tape, play.outputs, options);
  if (plays == 0) return report_data::plan_of(executable.plan(), limit, strings, sites);
  Player player(executable);
  const std::vector<Feed> feeds = feeds_of(play);
  player.play(feeds, play.step);
  player.forget_seconds();
  for (std::int64_t i = 0; i < plays; ++i) player.play(feeds, play.step);
  Json plan = report_data::plan_of(player.plan(), limit, strings, sites, player.seconds(), plays);
  options.trace->set_on(true);
  player.play(feeds, play.step);
  options.trace->set_on(false);
  plan["trace"] = report_data::trace_of(*options.trace);
  return plan;
}
}  // namespace

void Report::add(const std::string& name, const RecordedPlay& play, const PlayViews& views) {
  Strings& strings = data_->strings;
  data_->add(name, play, views, [&](Json& json, Sites& sites) {
    json["plans"] = Json::array();
    if (views.plan) json["plans"].push_back(planned(play, play.options.memory, views.plays, strings, sites));
    for (const std::size_t limit : views.limits)
      json["plans"].push_back(planned(play, limit, views.plays, strings, sites));
    if (views.curve) json["curve"] = report_data::curve_of(play);
    if (views.values) json["values"] = report_data::values_of(play, strings);
    if (views.errors) json["errors"] = report_data::errors_of(play, strings);
    if (views.sparsity != Sparsity::none) json["sparsity"] = report_data::sparsity_of(play, views.sparsity);
  });
}

void Report::add(const std::string& name, const Capsule& capsule, const RecordedPlay* whole) {
  PlayViews views;
  if (whole == nullptr) views.outputs = capsule.outputs;
  data_->add(name, whole != nullptr ? *whole : recorded_play(capsule), views, [&](Json& json, Sites&) {
    json["plans"] = Json::array();
    json["failure"] = report_data::failure_of(capsule);
    json["failure"]["whole"] = whole != nullptr;
  });
}

void Report::add_run(const std::string& directory) {
  data_->page["runs"].push_back(report_data::run_of(directory));
}

void Report::add(const std::string& name, const std::vector<Attention>& attention) {
  for (const Attention& each : attention) data_->page["attention"].push_back(report_data::attention_of(name, each));
}

void Report::note(const std::string& sentence) {
  data_->page["notes"].push_back(sentence);
}

void Report::reload_every(double seconds) {
  data_->page["reload"] = seconds;
}

namespace {
std::string compressed(const std::string& text) {
  uLongf size = compressBound(text.size());
  std::string bytes(size, '\0');
  if (compress2(reinterpret_cast<Bytef*>(bytes.data()), &size, reinterpret_cast<const Bytef*>(text.data()), text.size(),
                6) != Z_OK)
    throw Error("the data of the page cannot be compressed");
  bytes.resize(size);
  return bytes;
}

/// Escapes a text for the content of an HTML element.
std::string in_html(const std::string& text) {
  std::string escaped;
  for (const char c : text) switch (c) {
      case '<':
        escaped += "&lt;";
        break;
      case '&':
        escaped += "&amp;";
        break;
      default:
        escaped += c;
    }
  return escaped;
}
}  // namespace

std::string Report::html() const {
  Json page = data_->page;
  page["strings"] = data_->strings.list();
  if (data_->tapes.size() == 2) page["difference"] = first_difference(data_->tapes[0], data_->tapes[1]);
  const std::string text = page.dump(-1, ' ', false, Json::error_handler_t::replace);
  // base64 has no character that ends a script, whatever the data are.
  return report_data::filled_page({{"title", in_html(page["title"].get<std::string>())},
                                   {"nonce", digest_of({text})},
                                   {"data", to_base64(compressed(text))}});
}

void Report::save(const std::string& path) const {
  write_file(path, html());
}

void report(const RecordedPlay& play, const std::string& path, const PlayViews& views) {
  Report page("A play");
  page.add("play", play, views);
  page.save(path);
}

void report(const std::vector<std::string>& runs, const std::string& path) {
  Report page("Runs");
  for (const std::string& run : runs) page.add_run(run);
  page.save(path);
}

}  // namespace xtape
