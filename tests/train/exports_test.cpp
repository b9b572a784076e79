// Exports of runs: folders that have their definition, and tokenizers.
#include <doctest/doctest.h>

#include <cstring>
#include <filesystem>

#include "support/error_of.hpp"
#include "tiny.hpp"
#include "train/predict/predict.hpp"
#include "xtape/hugging_face.hpp"
#include "xtape/safetensors.hpp"
#include "xtape/text.hpp"

namespace exports {

using namespace xtape;

namespace {
Store played(Model& model) {
  Array tokens(Dtype::int64, {1, 4});
  for (int i = 0; i < 4; ++i) tokens.as<std::int64_t>()[i] = 4 + i;
  return model.play("logits", {{"tokens", tokens}});
}

bool same(const Array& a, const Array& b) {
  return a.shape() == b.shape() && std::memcmp(a.data(), b.data(), a.bytes()) == 0;
}
}  // namespace

TEST_CASE("a run whose definition has no mapping is written with its definition and tokenizer, and read back") {
  const tiny::Directory directory;
  Run run = Run::create(tiny::load(directory, {{"steps", "3"}}), directory / "run");
  CHECK(run.train());
  const std::vector<std::string> notes = run.save_hugging_face(directory / "folder");
  REQUIRE(notes.size() == 1);
  CHECK(notes[0].find("only xtape reads this folder") == 0);
  CHECK(notes[0].find("has no entry \"hugging_face\"") != std::string::npos);
  std::filesystem::remove(directory / "tiny.json");
  Model read = open_hugging_face(directory / "folder");
  CHECK(same(played(read)[0].value, played(run.model())[0].value));
  CHECK(hugging_face_warnings(directory / "folder").empty());
  const auto tokenizer = load_tokenizer(directory / "folder");
  CHECK(prompt_of(*tokenizer, "1+2=") == run.prompt("1+2="));
  CHECK(tokenizer->ends() == run.end_tokens());
  // Another run starts from it, and is written again.
  Run next = Run::create(tiny::load(directory, {{"from", directory / "folder"},
                                                {"definition", "null"},
                                                {"hyper", "null"},
                                                {"tokenizer", "null"},
                                                {"steps", "3"}}),
                         directory / "next");
  CHECK(same(played(next.model())[0].value, played(run.model())[0].value));
  next.save_hugging_face(directory / "again");
  CHECK(load_tokenizer(directory / "again")->encode("1+2=") == tokenizer->encode("1+2="));
}

TEST_CASE("arrays of tokens may have a tokenizer, with which their runs continue texts") {
  const tiny::Directory directory;
  tiny::load(directory);
  save_tokenizer(CharacterTokenizer(tiny::sums_text()), directory / "tokenizer.json");
  Array tokens(Dtype::int64, {8, 5});
  for (std::int64_t i = 0; i < tokens.count(); ++i) tokens.as<std::int64_t>()[i] = i % 10;
  Store arrays;
  arrays.add("tokens", Array(tokens));
  arrays.add("targets", Array(tokens));
  save_arrays(directory / "tokens.safetensors", arrays);
  const auto loaded = [&](const std::string& tokenizer, const std::string& size) {
    return tiny::load(directory,
                      {{"data", R"({"kind": "arrays", "arrays": ")" + (directory / "tokens.safetensors") + R"(",
                                    "inputs": {"tokens": "tokens", "targets": "targets"}})"},
                       {"tokenizer", tokenizer},
                       {"hyper.vocab_size", size},
                       {"measure", "[]"}});
  };
  const std::string saved = R"({"kind": "saved", "path": ")" + (directory / "tokenizer.json") + R"("})";
  Run run = Run::create(loaded(saved, R"({"from": "vocabulary"})"), directory / "run");
  CHECK(run.model().hyper().integer("vocab_size") == run.tokenizer().size());
  CHECK(run.prompt("12") == run.tokenizer().encode("12"));
  CHECK_NOTHROW(train::check_continues(run.model(), run.tokenizer()));
  CHECK(Run::open(directory / "run").tokenizer().size() == run.tokenizer().size());
  CHECK(test::error_of([&] {
          loaded(R"({"kind": "words"})", "20");
        }).find("must be one from files, such as \"saved\"") != std::string::npos);
  Run none = Run::create(loaded("null", "20"), directory / "none");
  CHECK_THROWS_WITH_AS(none.tokenizer(), doctest::Contains("this run has no tokenizer"), Error);
}

TEST_CASE("what a model can do follows from its function logits") {
  const auto model = [](const std::string& inputs, const std::string& result) {
    return Model::parse(R"({"xtape": 2, "name": "m", "model": {"functions": {"logits": {"inputs": {)" + inputs +
                        R"(}, "result": ")" + result + R"("}}}})");
  };
  const std::string tokens = R"("tokens": "int [b, t]")", source = R"("source": "int [b, s]", )";
  const WordTokenizer words(std::vector<std::string>{"one"});  // 5 tokens
  const CharacterTokenizer characters("ab");                   // 2 tokens, without start and end
  const auto continues = [&](const Model& each) {
    return test::error_of([&] { train::check_continues(each, words); });
  };
  const std::string five = "cast(tokens, 'float')[:, :, none] * array(range(5))",
                    three = "cast(tokens, 'float')[:, :, none] * array(range(3))";
  CHECK(continues(model(tokens, five)).empty());
  CHECK(continues(model(tokens, three)).find("the tokenizer has 5 tokens") != std::string::npos);
  CHECK(continues(model(tokens, "cast(tokens, 'float')")).find("only (1, 2, vocabulary) continues texts") !=
        std::string::npos);
  CHECK(continues(model(source + tokens, five + " + sum(source)")).find("use xtape translate") != std::string::npos);
  CHECK(continues(model(R"("images": "int [b, t]")", "images")).find("the model has logits(images)") !=
        std::string::npos);
  const auto translates = [&](const Model& each, const Tokenizer& target) {
    return test::error_of([&] { train::check_translates(each, target); });
  };
  CHECK(translates(model(source + tokens, five + " + sum(source)"), words).empty());
  CHECK(translates(model(source + tokens, five + " + sum(source)"), characters).find("no start or no end token") !=
        std::string::npos);
  CHECK(translates(model(tokens, five), words).find("use xtape generate") != std::string::npos);
}

}  // namespace exports
