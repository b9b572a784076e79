/// xtape report: writes one HTML page that shows tapes, plans, plays, trainings and failures in a browser.
#include "xtape/report.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iostream>
#include <optional>
#include <thread>

#include "base/messages/wording.hpp"
#include "base/system/durable.hpp"
#include "base/system/process_memory.hpp"
#include "cli/paths.hpp"
#include "cli/play_of.hpp"
#include "cli/recorded.hpp"
#include "cli/run_options.hpp"
#include "player/plan/memory.hpp"
#include "train/run/metrics.hpp"
#include "train/run/samples.hpp"

namespace xtape::cli {
namespace {

struct ReportArguments {
  PlayArguments play;
  std::vector<std::string> what;
  std::string out = "report.html", title, function, source;
  std::optional<std::string> target;
  std::vector<std::string> limits;
  std::string sparsity;
  std::int64_t plays = 0;
  bool values = false, errors = false, watch = false;
};

constexpr double watch_seconds = 2;

/// One of the inputs, and its name on the page.
struct Input {
  std::string path, name;
};

PlayViews views_of(const ReportArguments& arguments) {
  PlayViews views;
  for (const std::string& limit : arguments.limits) {
    const std::optional<std::size_t> bytes = bytes_in(limit);
    if (!bytes) throw WrongInput("--memory must be a size such as 300MiB; the units are " + std::string(byte_units));
    views.limits.push_back(*bytes);
  }
  views.curve = !arguments.limits.empty();
  views.plays = arguments.plays;
  views.values = arguments.values;
  views.errors = arguments.errors;
  if (!arguments.sparsity.empty())
    views.sparsity = arguments.sparsity == "hessian" ? Sparsity::hessian : Sparsity::jacobian;
  return views;
}

/// Whether the page needs more than the tape and its plan.
bool plays(const ReportArguments& arguments) {
  return arguments.plays > 0 || arguments.values || arguments.errors;
}

/// Returns `sizes`, with 2 for the first and 16 for each other size that it lacks.
NamedSizes completed(NamedSizes sizes, const std::vector<std::string>& names, Report& page) {
  std::string chosen;
  for (const std::string& name : names) {
    if (sizes.has(name)) continue;
    sizes.add(name, name == names.front() ? 2 : 16);
    chosen += (chosen.empty() ? "" : ",") + name + "=" + std::to_string(sizes.at(name));
  }
  if (!chosen.empty()) page.note("Recorded for " + chosen + ". --with chooses other sizes.");
  return sizes;
}

/// Adds a function of a definition: by default the loss with its gradients, or the first function.
void add_definition(const CLI::App& command, const ReportArguments& arguments, const Input& input, Report& page) {
  RecordedOptions options;
  options.definition.definition = input.path;
  options.definition.set = arguments.play.set;
  const RecordedTape recorded = as_wrong_input([&] {
    const Model model = load_model(options.definition, false);
    if (plays(arguments))
      throw WrongInput("'" + input.path +
                       "' is a definition, which has no inputs to play: --plays, --values and --errors need a recipe, "
                       "a run or a tape");
    const std::vector<std::string> functions = model.functions();
    const bool has_loss = std::ranges::find(functions, "loss") != functions.end();
    options.function = !arguments.function.empty() ? arguments.function : has_loss ? "loss" : functions.at(0);
    options.grad = options.function == "loss";
    options.mode = options.grad ? "train" : "eval";
    const NamedSizes sizes = completed(sizes_of(arguments.play.with), model.signature(options.function).sizes, page);
    return recorded_tape(command, options, true,
                         [&](const Model& of, Tape& tape) { return of.inputs(tape, options.function, sizes); });
  });
  PlayViews views = views_of(arguments);
  views.outputs = recorded.outputs;
  RecordedPlay play{recorded.tape, {}, {}, {}};
  for (const auto& output : recorded.outputs) play.outputs.push_back(output.value);
  set_options(arguments.play, play);
  page.add(input.name + " " + options.function, play, views);
}

void add_capsule(const Input& input, Report& page) {
  const Capsule capsule = Capsule::load(input.path);
  const std::string beside = path_in(folder_of(input.path), "failed_play");
  if (!is_saved_play(beside)) return page.add(input.name, capsule);
  const RecordedPlay whole = load_play(beside).play;
  page.add(input.name, capsule, &whole);
}

/// Adds a tape from a file. Its outputs have names.
void add_tape(const ReportArguments& arguments, const PlayArguments& of, const Input& input, Report& page) {
  PlayViews views = views_of(arguments);
  const RecordedPlay play = as_wrong_input([&] {
    const SavedTape tape = tape_at(of.what, of);
    views.outputs = tape.outputs;
    return play_of(tape, of, plays(arguments));
  });
  page.add(input.name, play, views);
}

/// Adds the files of a run, its failure, and its next play. While it trains, its play is that of its recipe, which
/// takes no lock. A run whose data is gone still has its files, but options for its play would be without effect.
void add_run(const ReportArguments& arguments, const PlayArguments& of, const Input& input, Report& page) {
  page.add_run(input.path);
  const std::string capsule = path_in(input.path, "capsule");
  if (is_capsule(capsule)) add_capsule({capsule, input.name + ", failure"}, page);
  try {
    page.add(input.name, play_of(of), views_of(arguments));
  } catch (const Error& error) {
    if (!of.set.empty() || !arguments.limits.empty() || plays(arguments)) throw;
    page.note("The page has no graph of " + input.path + ": " + error.what());
  }
  if (arguments.source.empty()) return;
  Run run = open_run(input.path, "last");
  page.add(arguments.source, as_wrong_input([&] { return run.attention(arguments.source, arguments.target); }));
}

/// Returns the kind of an input. A name that is none of a recipe is that of a definition.
Kind kind_of_input(const std::string& what) {
  const bool is_name = !path_exists(what) && recipe_file(what).empty() && what.find('/') == std::string::npos;
  return is_name ? Kind::definition : kind_of(what);
}

/// Throws WrongInput if there is an option that no input takes.
void check_options(const ReportArguments& arguments) {
  std::vector<Kind> kinds;
  for (const std::string& each : arguments.what) kinds.push_back(kind_of_input(each));
  const auto check = [&](bool given, const char* option, std::initializer_list<Kind> takers) {
    const bool taken = std::ranges::any_of(
        kinds, [&](Kind kind) { return std::find(takers.begin(), takers.end(), kind) != takers.end(); });
    if (given && !taken) throw WrongInput(std::string("no input of this page takes ") + option);
  };
  const std::initializer_list<Kind> planned = {Kind::recipe, Kind::run,  Kind::play,
                                               Kind::tape,   Kind::onnx, Kind::definition};
  check(!arguments.play.set.empty(), "--set", {Kind::recipe, Kind::run, Kind::definition});
  check(!arguments.play.in.empty(), "--in", {Kind::tape, Kind::onnx});
  check(!arguments.play.with.empty(), "--with", {Kind::definition, Kind::onnx});
  check(!arguments.function.empty(), "--tape", {Kind::definition});
  check(!arguments.source.empty(), "--source", {Kind::run});
  check(arguments.plays > 0, "--plays", planned);
  check(arguments.values, "--values", planned);
  check(arguments.errors, "--errors", planned);
  check(!arguments.limits.empty(), "--memory", planned);
  check(arguments.play.threads > 0, "--threads", planned);
}

/// Returns the arguments of one input. Those that are for other inputs of the page are left out.
PlayArguments arguments_of(const ReportArguments& arguments, const std::string& what, Kind kind) {
  PlayArguments of = arguments.play;
  of.what = what;
  if (kind != Kind::recipe && kind != Kind::run) of.set.clear();
  if (kind != Kind::tape && kind != Kind::onnx) of.in.clear();
  if (kind != Kind::onnx) of.with.clear();
  return of;
}

void add(const CLI::App& command, const ReportArguments& arguments, const Input& input, Report& page) {
  const Kind kind = kind_of_input(input.path);
  const PlayArguments of = arguments_of(arguments, input.path, kind);
  switch (kind) {
    case Kind::definition:
      return add_definition(command, arguments, input, page);
    case Kind::run:
      return add_run(arguments, of, input, page);
    case Kind::capsule:
      return add_capsule(input, page);
    case Kind::tape:
    case Kind::onnx:
      return add_tape(arguments, of, input, page);
    case Kind::recipe:
    case Kind::play:
      return page.add(input.name, play_of(of), views_of(arguments));
    default:
      throw WrongInput(
          "a report shows a run, a recipe, a definition, a saved tape or play, an ONNX file or a capsule; '" +
          input.path + "' is " + kind_text(kind));
  }
}

void check_watch(const CLI::App& command, const ReportArguments& arguments) {
  for (const std::string& run : arguments.what)
    if (kind_of(run) != Kind::run) throw WrongInput("--watch needs runs: '" + run + "' is " + kind_text(kind_of(run)));
  for (const CLI::Option* option : command.get_options())
    if (option->count() > 0 && !is_one_of("WHAT --out --title --watch", option->get_name()))
      throw WrongInput("--watch shows the files of runs as they grow, and takes no " + option->get_name());
}

/// The bytes of the files to which a run appends while it trains.
std::uintmax_t bytes_of(const std::string& run) {
  std::uintmax_t bytes = 0;
  for (const char* file : {train::metrics_file, train::samples_file}) {
    std::error_code none;  // the file may not exist yet
    const std::uintmax_t size = std::filesystem::file_size(path_in(run, file), none);
    if (!none) bytes += size;
  }
  return bytes;
}

/// Writes the page of runs whenever their files have grown. After a signal, writes a page that no longer reloads.
void watch(const ReportArguments& arguments, const std::string& title) {
  const auto write = [&](double reload) {
    Report page(title);
    for (const std::string& run : arguments.what) page.add_run(run);
    page.reload_every(reload);
    page.save(arguments.out);
  };
  catch_interrupt();
  for (std::optional<std::uintmax_t> written; !interrupted();) {
    std::uintmax_t bytes = 0;
    for (const std::string& run : arguments.what) bytes += bytes_of(run);
    if (bytes != written) write(watch_seconds);
    written = bytes;
    for (int i = 0; i < 20 * watch_seconds && !interrupted(); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  write(0);
  throw Interrupted();
}

void run(const CLI::App& command, const ReportArguments& arguments) {
  std::vector<std::string> inputs = arguments.what;
  inputs.push_back(arguments.play.in);
  check_out(arguments.out, inputs);
  const std::vector<std::string> names = names_of(arguments.what);
  const std::string title = arguments.title.empty() ? joined(names, {}, " and ") : arguments.title;
  if (arguments.watch) {
    check_watch(command, arguments);
    return watch(arguments, title);
  }
  check_options(arguments);
  Report page(title);
  for (std::size_t i = 0; i < names.size(); ++i) add(command, arguments, {arguments.what[i], names[i]}, page);
  page.save(arguments.out);
  if (command.count("--out") == 0) std::cout << arguments.out << '\n';
}

}  // namespace

void add_report(CLI::App& program) {
  const auto [command, arguments] = add_command<ReportArguments>(
      program, "report", "Write one HTML page that shows tapes, plans, runs and failures in a browser",
      [](const CLI::App& given, const ReportArguments& of) { run(given, of); });
  add_option(command, "WHAT", arguments.what,
             "Runs, recipes, definitions, saved tapes or plays, ONNX files, capsules; two are compared", required);
  add_option(command, "--out", arguments.out, "The page to write", shown)
      ->type_name("FILE.html")
      ->check([](const std::string& file) {
        return file.ends_with(".html") ? "" : "a page is an HTML file: the name must end in .html, not '" + file + "'";
      });
  add_option(command, "--title", arguments.title, "The headline (default: the names)");
  add_settings(command, arguments.play.set);
  add_option(command, "--with", arguments.play.with, "Sizes of a definition or ONNX file, such as b=2,t=8");
  add_option(command, "--tape", arguments.function, "Of a definition: the function to record (default: loss)");
  command.add_option("--in", arguments.play.in, "Of a tape: a safetensors file with the inputs by name");
  add_option(command, "--plays", arguments.plays, "Measure the time of steps in this many plays", not_negative);
  command.add_flag("--values", arguments.values, "Play, and show the range and a histogram of every value");
  command.add_flag("--errors", arguments.errors, "Play, and show the rounding errors of all values");
  add_option(command, "--sparsity", arguments.sparsity,
             "Show the sparsity of the first output's jacobian or hessian, for each input and parameter of floats")
      ->check(CLI::IsMember({"jacobian", "hessian"}));
  add_option(command, "--memory", arguments.limits,
             "Also show the plan that takes at most this, such as 300MiB; repeatable", one_value)
      ->type_name("SIZE");
  add_option(command, "--source", arguments.source, "Of a run: show the attention of this sentence or text");
  command.add_option("--target", arguments.target, "The target sentence (default: the run's translation)")
      ->needs("--source");
  command.add_flag("--watch", arguments.watch,
                   "Write the page of runs again while they train, until Ctrl-C; the page reloads itself");
  add_threads(command, arguments.play.threads);
}

}  // namespace xtape::cli
