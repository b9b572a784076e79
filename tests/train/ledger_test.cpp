// Ledgers of runs: what they keep, and Run::verify, which replays updates.
#include "train/run/ledger.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <map>

#include "run_files.hpp"
#include "tiny.hpp"
#include "xtape/safetensors.hpp"

using namespace xtape;
namespace fs = std::filesystem;

namespace ledgers {  // other tests of this unit have functions with the same names

namespace {
constexpr std::int64_t steps = 40;
const std::vector<Setting> settings = {{"steps", "40"}, {"evaluate_every", "10"}, {"measure", "null"}};

std::string trained(const tiny::Directory& directory, const std::string& name = "run",
                    const std::vector<Setting>& more = {}) {
  std::vector<Setting> all = settings;
  all.insert(all.end(), more.begin(), more.end());
  REQUIRE(Run::create(tiny::load(directory, all), directory / name).train());
  return directory / name;
}

struct Verified {
  Verification found;
  std::vector<std::string> sentences;
  bool tells(const std::string& text) const {
    return std::ranges::any_of(sentences, [&](const std::string& each) { return each.find(text) != each.npos; });
  }
};

Verified verified(const std::string& run, VerifyOptions options = {}) {
  Verified result;
  options.tell = [&](const std::string& sentence) { result.sentences.push_back(sentence); };
  result.found = Run::verify(run, options);
  return result;
}

/// All files below a folder, and when they were written.
std::map<std::string, std::pair<std::string, fs::file_time_type>> files_of(const std::string& folder) {
  std::map<std::string, std::pair<std::string, fs::file_time_type>> files;
  for (const auto& each : fs::recursive_directory_iterator(folder))
    if (each.is_regular_file()) files[each.path().string()] = {read_text(each.path().string()), each.last_write_time()};
  return files;
}

std::string ledger_text(const std::string& run) {
  return read_text(run + "/ledger.jsonl");
}

void write(const std::string& file, const std::string& text) {
  std::ofstream(file, std::ios::binary) << text;
}

void replace(const std::string& file, const std::string& from, const std::string& to) {
  std::string text = read_text(file);
  REQUIRE(text.find(from) != std::string::npos);
  write(file, text.replace(text.find(from), from.size(), to));
}

/// Changes one byte in the middle of a file.
void change_byte(const std::string& file) {
  std::fstream stream(file, std::ios::binary | std::ios::in | std::ios::out);
  const auto at = static_cast<std::streamoff>(fs::file_size(file) / 2);
  stream.seekg(at);
  const int byte = stream.get();
  stream.seekp(at);
  stream.put(static_cast<char>(byte ^ 1));
}

Trainer::Callbacks stopped_at(std::int64_t step, Run& run) {
  Trainer::Callbacks callbacks;
  callbacks.stop = [step, &run] { return run.trainer().step() == step; };
  return callbacks;
}
}  // namespace

TEST_CASE("a ledger has the bits of every update, and the replay finds them again without writing to the run") {
  const tiny::Directory directory;
  const std::string run = trained(directory);
  const train::LedgerContent ledger = train::read_ledger(run);
  CHECK(ledger.updates.size() == steps);
  const std::vector<nlohmann::json> lines = metrics(run);
  for (const auto& line : lines)
    if (line.contains("learning_rate")) {  // numbers in JSON keep all their bits
      const train::LedgerUpdate& update = ledger.updates.at(line["step"]);
      CHECK(std::bit_cast<double>(update.loss) == line["loss"]);
      CHECK(std::bit_cast<double>(update.norm) == line["gradient_norm"]);
    }
  std::vector<std::int64_t> digests;
  for (const auto& [step, digest] : ledger.weights) digests.push_back(step);
  CHECK(digests == std::vector<std::int64_t>{0, 10, 16, 20, 30, 32, 40});  // of checkpoints, and every 16th
  CHECK(train::broken_seal(run + "/ledger.jsonl").empty());

  const auto before = files_of(run);
  const Verified found = verified(run);
  CHECK(found.found.same);
  CHECK(names(run).size() == 2);
  // From the initial weights to the first digest at 16, and from checkpoint 30 to the one at 32.
  CHECK(found.found.replayed == 16 + 2);
  CHECK(found.tells("updates 1 to 16 from the initial weights: the same bits"));
  CHECK(found.tells("updates 31 to 32 from checkpoint 30: the same bits"));
  CHECK(verified(run, {.updates = {25, 40}}).found.replayed == 25 + 10);
  CHECK(verified(run, {.sample = 1000}).found.replayed == steps);
  CHECK(verified(run, {.sample = 3}).found.same);
  CHECK(files_of(run) == before);
}

TEST_CASE("a training that is killed and resumed writes the same ledger") {
  const tiny::Directory directory;
  const std::string whole = trained(directory, "whole"), parts = directory / "parts";
  {
    Run run = Run::create(tiny::load(directory, settings), parts);
    REQUIRE(!run.train(stopped_at(20, run)));
  }
  // What a killed process leaves: updates after the checkpoint, of which the last is cut off.
  const std::string other = R"(,"loss":"0000000000000000","norm":"0000000000000000")";
  write(parts + "/ledger.jsonl", ledger_text(parts) + R"({"update":21)" + other + "}\n" + R"({"update":22)" + other);
  REQUIRE(train::read_ledger(parts).last_update() == 21);
  CHECK(Run::resume(parts).train());
  CHECK(ledger_text(parts) == ledger_text(whole));
  CHECK(verified(parts).found.same);
}

TEST_CASE("what differs from the ledger is named") {
  const tiny::Directory directory;
  const std::string whole = trained(directory);
  const auto changed = [&](const std::string& name, const std::function<void(const std::string& run)>& change) {
    const std::string run = directory / name;
    fs::copy(whole, run, fs::copy_options::recursive);
    change(run);
    const Verified found = verified(run);
    CHECK(!found.found.same);
    CHECK(found.sentences.size() == 1);
    return found.sentences.back();
  };
  const std::string last = "/checkpoints/00000040/";
  for (const std::string file : {"weights.safetensors", "optimizer.safetensors", "state.json"})
    CHECK(changed(file, [&](const std::string& run) { change_byte(run + last + file); }) ==
          directory / file + last + file + " differs from the ledger");
  CHECK(changed("removed", [&](const std::string& run) {
          fs::remove(run + last + "state.json");
        }).ends_with("state.json differs from the ledger"));
  CHECK(changed("unknown", [&](const std::string& run) {
          fs::copy(run + last, run + "/checkpoints/00000035", fs::copy_options::recursive);
        }).ends_with("checkpoints/00000035 is not in the ledger"));
  CHECK(changed("recipe", [&](const std::string& run) {
          replace(run + "/recipe.json", "0.05", "0.06");
        }).ends_with("recipe.json differs from the ledger: it was another file during the training"));
  CHECK(changed("tokenizer", [&](const std::string& run) {
          fs::remove(run + "/tokenizer.json");
        }).ends_with("tokenizer.json is missing: the ledger has its digest"));

  // Lines 1 to 12 are the beginning, ten updates and the first checkpoint; line 18 has the next digest.
  const std::string update = "{\"update\":12,\"loss\":\"";
  CHECK(changed("digit",
                [&](const std::string& run) {
                  const std::string text = ledger_text(run);
                  const char digit = text[text.find(update) + update.size()];
                  replace(run + "/ledger.jsonl", update + digit, update + (digit == '3' ? '4' : '3'));
                })
            .ends_with("ledger.jsonl, lines 13 to 18: the digest in line 18 is of another text: the ledger has "
                       "been changed"));
  CHECK(changed("line", [&](const std::string& run) {
          replace(run + "/ledger.jsonl", update, "{\"update\":99,\"loss\":\"");
        }).find("lines 13 to 18") != std::string::npos);

  std::string sums = tiny::sums_text();
  sums[0] = sums[0] == '9' ? '8' : '9';
  directory.write("sums.txt", sums);
  const Verified data = verified(whole);
  CHECK(!data.found.same);
  CHECK(data.found.replayed == 0);
  CHECK(data.sentences.back() ==
        directory / "sums.txt" + " differs from the ledger: the data was another one during the training");
  directory.write("away.txt", tiny::sums_text());
  CHECK(verified(whole, {.settings = {{"data.text", directory / "away.txt"}}}).found.same);
}

TEST_CASE("the replay finds what a forger has written into a ledger with new seals") {
  const tiny::Directory directory;
  const std::string run = trained(directory);
  const train::LedgerContent right = train::read_ledger(run);
  const auto forged = [&](const std::function<void(train::LedgerContent&)>& change) {
    train::LedgerContent content = right;
    change(content);
    fs::remove(run + "/ledger.jsonl");
    train::Ledger ledger(run, content.sessions[0]);
    for (const auto& [number, update] : content.updates) {
      const bool digest = number % train::digest_every == 0;
      ledger.add(number, update, digest ? content.weights.at(number) : "");
      for (const train::LedgerCheckpoint& each : content.checkpoints)
        if (each.step == number) ledger.add(each);
    }
    return verified(run);
  };
  CHECK(forged([](train::LedgerContent&) {}).found.same);
  const Verified loss = forged([](train::LedgerContent& content) { content.updates[7].loss ^= 1; });
  CHECK(loss.found.differs == 7);
  CHECK(loss.tells("update 7, replayed from the initial weights: loss "));
  CHECK(forged([](train::LedgerContent& content) { content.updates[31].norm ^= 1; }).found.differs == 31);
  const Verified weights = forged([](train::LedgerContent& content) { content.weights[16][0] ^= 1; });
  CHECK(weights.found.differs == 16);
  CHECK(weights.tells("the loss and gradient norm of the ledger, but other weights after it"));
  CHECK(forged([](train::LedgerContent& content) {
          content.sessions[0].weights[0] ^= 1;
        }).tells("the initial weights differ from the ledger"));
}

TEST_CASE("updates are replayed with the settings that they were made with") {
  const tiny::Directory directory;
  const std::string run = trained(directory, "run", {{"keep", "\"all\""}, {"schedule.steps", "60"}});
  CHECK(Run::resume(run, {{"steps", "60"}, {"schedule.rate", "0.1"}}).train());
  CHECK(train::read_ledger(run).sessions.size() == 2);
  CHECK(verified(run, {.updates = {9, 40, 41, 60}}).found.same);
  CHECK(verified(run, {.sample = 100}).found.replayed == 60);
  for (const std::string step : {"00000040", "00000050"}) fs::remove_all(run + "/checkpoints/" + step);
  CHECK_THROWS_WITH_AS(verified(run, {.updates = {45}}),
                       "update 45 cannot be replayed: the run changed after update 40, and no checkpoint from there to "
                       "it is left",
                       FileError);
  CHECK(verified(run).found.same);  // what can be replayed
}

TEST_CASE("a run of an earlier version has no ledger; a resumed training begins one") {
  const tiny::Directory directory;
  const std::string run = trained(directory);
  fs::remove(run + "/ledger.jsonl");
  CHECK_THROWS_WITH_AS(verified(run),
                       (run + " has no ledger.jsonl: it was not trained, or by an earlier version of "
                              "xtape; a further training begins a ledger")
                           .c_str(),
                       FileError);
  CHECK(Run::resume(run, {{"steps", "50"}}).train());
  const Verified found = verified(run);
  CHECK(found.found.same);
  CHECK(found.found.replayed == 8);  // 41 to 48
  CHECK_THROWS_WITH_AS(verified(run, {.updates = {7}}), doctest::Contains("has no update 7; its last is 50"),
                       FileError);
  CHECK_THROWS_WITH_AS(verified(directory / "nowhere"), doctest::Contains("is not a run"), FileError);
}

TEST_CASE("going back to a checkpoint removes the lines of later updates") {
  const tiny::Directory directory;
  const std::string run = trained(directory, "run", {{"keep", "\"all\""}});
  const std::string before = ledger_text(run);
  CHECK(Run::resume(run, {}, CheckpointChoice::parse("20")).train());
  CHECK(ledger_text(run) == before);
}

TEST_CASE("a file that is not a ledger, and a line that is not one of a ledger, are errors") {
  const tiny::Directory directory;
  CHECK_THROWS_WITH_AS(train::read_ledger(directory.write("a.jsonl", "")), doctest::Contains("is not a ledger"),
                       FileError);
  const std::string run = trained(directory);
  for (const std::string line :
       {"{}", "[1]", "{\"update\":0,\"loss\":\"0000000000000000\",\"norm\":\"0000000000000000\"}",
        "{\"update\":3,\"loss\":\"00000000\",\"norm\":\"0000000000000000\"}",
        "{\"update\":3,\"loss\":\"000000000000000G\",\"norm\":\"0000000000000000\"}", "{\"checkpoint\":3}", "x"}) {
    CAPTURE(line);
    const std::string path = directory.write("b.jsonl", ledger_text(run) + line + "\n");
    CHECK_THROWS_WITH_AS(train::read_ledger(path), doctest::Contains("this is not a line of a ledger"), FileError);
  }
}

}  // namespace ledgers
