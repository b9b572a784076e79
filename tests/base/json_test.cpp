// JSON text: valid text, and the exact errors for invalid text.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/json/json_text.hpp"
#include "base/messages/wording.hpp"
#include "base/system/durable.hpp"
#include "base/system/files.hpp"
#include "processor_time.hpp"
#include "xtape/error.hpp"
#include "xtape/xtensor.hpp"

using namespace xtape;

namespace {
/// The error of reading this text; "" if there is none.
std::string error_of(const std::string& text) {
  try {
    JsonText(text, "a.json", JsonErrors::file);
  } catch (const FileError& error) {
    return error.what();
  }
  return "";
}

JsonNode node_of(const std::string& text) {
  return JsonNode(text, "a.json", JsonErrors::definition);
}

template <class Action>
std::string definition_error(const Action& action) {
  try {
    action();
  } catch (const DefinitionError& error) {
    return error.what();
  }
  return "";
}
}  // namespace

TEST_CASE("JSON is read with its entries in order, and every value knows where it begins") {
  const JsonText json("{\"b\": [1, -2.5e1,true],\n  \"a\" : {\"x\":null, \"é\": \"\\u00e9\\n\"}}", "a.json",
                      JsonErrors::file);
  CHECK(json.root().dump() == R"({"b":[1,-25.0,true],"a":{"x":null,"é":"é\n"}})");
  CHECK(json.begin_of(json.root()) == 0);
  CHECK(json.begin_of(json.root()["b"]) == 6);
  CHECK(json.key_of(json.root()["b"]) == 1);
  CHECK(json.begin_of(json.root()["b"][0]) == 7);
  CHECK(json.spelling(json.root()["b"][1]) == "-2.5e1");
  CHECK(json.spelling(json.root()["b"][2]) == "true");
  const Json& last = json.root()["a"]["é"];
  CHECK(json.line_at(json.begin_of(last)) == 2);
  CHECK(json.caret_at(json.key_of(last)) ==
        "      \"a\" : {\"x\":null, \"é\": \"\\u00e9\\n\"}}\n                       ^");
  CHECK(JsonText("7", "a.json", JsonErrors::file).root() == 7);
  CHECK(JsonText(" \"\" ", "a.json", JsonErrors::file).root() == "");
}

TEST_CASE("a byte-order mark in front of JSON is skipped") {
  const JsonText json("\xEF\xBB\xBF{\"a\": 1}", "a.json", JsonErrors::file);
  CHECK(json.root()["a"] == 1);
  CHECK(json.caret_at(json.begin_of(json.root()["a"])) == "    {\"a\": 1}\n          ^");
  CHECK(error_of("\xEF\xBB\xBF{\"a\" 1}") ==
        "a.json, line 1, column 6: ':' belongs here after the key \"a\", not a number\n    {\"a\" 1}\n         ^");
  CHECK(error_of("\xEF\xBB\xBF") == "a.json: the text is empty: JSON text must contain a value");
  CHECK(error_of(std::string("\xFF\xFE{\0}\0", 6))
            .find("a.json, line 1, column 1: this is UTF-16: JSON text must be UTF-8") == 0);
  CHECK_THROWS_WITH_AS(indented(Json{{"a", {"b", "c\xE9"}}}),
                       "JSON text must be UTF-8, but a text in it is not: {\"a\":[\"b\",\"c\uFFFD\"]}", Error);
}

TEST_CASE("an empty JSON text is reported as empty") {
  CHECK(error_of("") == "a.json: the text is empty: JSON text must contain a value");
  CHECK(error_of(" \n\t\r\n") == "a.json: the text is empty: JSON text must contain a value");
}

TEST_CASE("NUL bytes in JSON are errors with their location") {
  CHECK(error_of(std::string("{}\n\0{", 5)) ==
        "a.json, line 2, column 1: a NUL byte is not allowed in JSON text\n    \xEF\xBF\xBD{\n    ^");
  CHECK(error_of(std::string("{}\0", 3)).find("a.json, line 1, column 3: a NUL byte") == 0);
  CHECK(error_of(std::string("\0", 1)).find("a.json, line 1, column 1: a NUL byte") == 0);
}

TEST_CASE("errors in JSON name what belongs there and what was found") {
  const auto message = [](const std::string& text) {
    const std::string error = error_of(text);
    return error.substr(0, error.find('\n'));
  };
  CHECK(error_of("{\n  \"a\": 1\n  \"b\": 2\n}") ==
        "a.json, line 3, column 3: ',' or '}' belongs here after the value of \"a\", not a string\n      \"b\": 2\n    "
        "  ^");
  CHECK(message("{\"a\": 1") ==
        "a.json, line 1, column 8: ',' or '}' belongs here after the value of \"a\", but the text ends");
  CHECK(message("{\"a\": 1,}") == "a.json, line 1, column 9: a key in \"\" belongs here after the comma, not '}'");
  CHECK(message("{a: 1}") ==
        "a.json, line 1, column 2: this is not a JSON value: use an object, an array, a string in \"\", a number, "
        "true, false or null");
  CHECK(message("{1: 1}") == "a.json, line 1, column 2: a key in \"\" or '}' belongs here, not a number");
  CHECK(message("{\"a\" 1}") == "a.json, line 1, column 6: ':' belongs here after the key \"a\", not a number");
  CHECK(message("{\"a\": }") == "a.json, line 1, column 7: a value belongs here after the key \"a\", not '}'");
  CHECK(message("{\"a\":\n\n") ==
        "a.json, line 1, column 6: a value belongs here after the key \"a\", but the text ends");
  CHECK(message("[1 2]") == "a.json, line 1, column 4: ',' or ']' belongs here, not a number");
  CHECK(message("[1,,2]") == "a.json, line 1, column 4: a value belongs here after the comma, not ','");
  CHECK(message("[1,]") == "a.json, line 1, column 4: a value belongs here after the comma, not ']'");
  CHECK(message("[}") == "a.json, line 1, column 2: a value or ']' belongs here, not '}'");
  CHECK(message("[1}") == "a.json, line 1, column 3: ',' or ']' belongs here, not '}'");
  CHECK(message("]") == "a.json, line 1, column 1: a value belongs here, not ']'");
  CHECK(message("{} {}") == "a.json, line 1, column 4: nothing may follow the end of the value, not '{'");
  CHECK(message("[1, tru]") ==
        "a.json, line 1, column 5: this is not a JSON value: use an object, an array, a string in \"\", a number, "
        "true, false or null");
  CHECK(message("[1x]").find("a.json, line 1, column 3: this is not a JSON value") == 0);
  CHECK(message("[NaN]").find("a.json, line 1, column 2: this is not a JSON value") == 0);
  CHECK(message("[-]") == "a.json, line 1, column 3: this is not JSON: invalid number; expected digit after '-'");
  CHECK(message("[\"a\", \"b\n\"]") == "a.json, line 1, column 7: this string has no end");
  CHECK(message("[\"a\", \"b") == "a.json, line 1, column 7: this string has no end");
  CHECK(message("[\"\\x\"]").find("a.json, line 1, column 4: this is not JSON: invalid string: forbidden character") ==
        0);
  CHECK(message("[\"\\ud800\"]").find("a.json, line 1, column 9: this is not JSON: invalid string: surrogate") == 0);
  CHECK(message("[\"a\x01\"]").find("a.json, line 1, column 4: this is not JSON: invalid string: control character") ==
        0);
  CHECK(message("/* no */ {}").find("a.json, line 1, column 1: this is not a JSON value") == 0);
}

TEST_CASE("bytes in JSON that are not UTF-8 are errors, shown as replacement characters") {
  CHECK(error_of("[\"\xC3(\"]") ==
        "a.json, line 1, column 4: this byte is not UTF-8\n    [\"\xEF\xBF\xBD(\"]\n       ^");
  CHECK(error_of("[\"\xFF\"]").find("a.json, line 1, column 3: this byte is not UTF-8") == 0);
  CHECK(error_of("[\"\xED\xA0\x80\"]").find("this byte is not UTF-8") != std::string::npos);  // half a surrogate pair
}

TEST_CASE("a number outside the range of float64 is an error with its location") {
  CHECK(error_of("{\"a\": -1e400}") ==
        "a.json, line 1, column 7: the number -1e400 is out of range: the largest float64 is 1.8e308\n"
        "    {\"a\": -1e400}\n          ^");
  CHECK(JsonText("9223372036854775807", "a.json", JsonErrors::file).root().get<std::int64_t>() == INT64_MAX);
}

TEST_CASE("Infinity, -Infinity and NaN are numbers where Python's JSON is read, and nowhere else") {
  const std::string text =
      "{\"a\": Infinity, \"b\": [-Infinity,NaN ],\n \"Infinity\": \"NaN, \\\"Infinity\", \"c\": 1}";
  const JsonNode node(text, "a.json", JsonErrors::file, JsonNumbers::any);
  CHECK(node.at("a").number() == HUGE_VAL);
  CHECK(node.at("b").elements()[0].number() == -HUGE_VAL);
  CHECK(std::isnan(node.at("b").elements()[1].number()));
  CHECK(node.at("Infinity").text() == "NaN, \"Infinity");
  CHECK(node.at("b").elements()[0].begin() == text.find("-Infinity"));
  CHECK(node.at("c").begin() == text.find("1}"));
  CHECK(indented(node.json()) ==
        "{\n  \"a\": Infinity,\n  \"b\": [\n    -Infinity,\n    NaN\n  ],\n  \"Infinity\": \"NaN, \\\"Infinity\",\n  "
        "\"c\": 1\n}\n");
  CHECK(error_of("[Infinity]").find("this is not a JSON value") != std::string::npos);
  for (const char* wrong : {"[Infinityx]", "[--Infinity]", "[infinity]", "{NaN: 1}", "[NaNInfinity]"})
    CHECK_THROWS_AS(JsonText(wrong, "a.json", JsonErrors::file, JsonNumbers::any), FileError);
}

TEST_CASE("a key that appears twice is an error that names both lines") {
  CHECK(error_of("{\"n\": 1,\n\"m\": {\"n\": 1},\n\"n\": 2}") ==
        "a.json, line 3, column 1: the key \"n\" appears twice in one object, first in line 1\n    \"n\": 2}\n    ^");
  CHECK(error_of("{\"n\": {\"n\": 1}, \"m\": [{\"n\": 1}, {\"n\": 1}]}") == "");
}

TEST_CASE("JSON nests up to a limit, and deeper text is refused without using memory for it") {
  const auto nested = [](std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  CHECK(error_of(nested(JsonText::deepest)) == "");
  CHECK(error_of(nested(JsonText::deepest + 1)).find("a.json, line 1, column 257: this is nested more than 256 deep") ==
        0);
  CHECK(error_of(std::string(50000, '[')).find("nested more than 256 deep") != std::string::npos);
  std::string objects;
  for (int i = 0; i < 20000; ++i) objects += "{\"a\":\n";
  CHECK(error_of(objects).find("a.json, line 257, column 1: this is nested more than 256 deep") == 0);
}

TEST_CASE("JSON of many keys is read in linear time") {
  const auto seconds = [](int keys) {
    std::string text = "{";
    for (int i = 0; i < keys; ++i) text += (i > 0 ? ",\"key" : "\"key") + std::to_string(i) + "\":1";
    return least_processor_seconds([&] {
      CHECK(JsonText(text + "}", "a.json", JsonErrors::file).root().size() == static_cast<std::size_t>(keys));
    });
  };
  CHECK(seconds(200000) < 100 * (seconds(5000) + 0.01));  // 40 times the keys; quadratic would be 1600 times the time
}

TEST_CASE("errors about values of another type and about missing or unknown keys have file, line and a caret") {
  const JsonNode node =
      node_of("{\"one\": 1,\n \"list\": [2.5, \"a\"], \"large\": 9223372036854775808}").owned_by("block 'b'");
  CHECK(node.at("list").elements()[0].number() == 2.5);
  CHECK(definition_error([&] { node.at("two"); }) ==
        "a.json, block 'b', line 1: the key \"two\" is missing\n    {\"one\": 1,\n    ^");
  CHECK(definition_error([&] { node.at("one").text(); }) ==
        "a.json, block 'b', line 1: a string belongs here, not a number\n    {\"one\": 1,\n            ^");
  CHECK(definition_error([&] { node.at("list").flag(); }).find("true or false belongs here, not an array") !=
        std::string::npos);
  CHECK(definition_error([&] {
          node.only({"one", "lists", "large"});
        }) ==
        "a.json, block 'b', line 2: the key \"list\" is not known here; did you mean 'lists'?\n"
        "     \"list\": [2.5, \"a\"], \"large\": 9223372036854775808}\n     ^");
  CHECK(node.at("one").integer(0, 1) == 1);
  CHECK(definition_error([&] { node.at("one").integer(2, 3); }).find("an integer from 2 to 3 belongs here") !=
        std::string::npos);
  CHECK(definition_error([&] { node.at("large").integer(0, INT64_MAX); }).find("an integer from 0 to") !=
        std::string::npos);
  CHECK(definition_error([&] { node.at("list").elements()[0].integer(0, 9); }) != "");
}

TEST_CASE("a caret is under its character, in long lines and in lines with unprintable characters") {
  CHECK(with_caret("é\tb", 3) == "    é b\n      ^");
  CHECK(with_caret("ab", 9) == "    ab\n      ^");
  CHECK(with_caret("a\x1B[31m\xFF", 2) == "    a\xEF\xBF\xBD[31m\xEF\xBF\xBD\n      ^");
  const std::string shown = with_caret(std::string(100000, 'a') + "b" + std::string(100000, 'c'), 100000);
  CHECK(shown.size() < 400);
  const std::size_t caret = shown.find('^') - shown.find('\n') - 1;
  CHECK(shown.substr(caret + 2, 2) == "bc");  // the ellipsis has three bytes and one column
}

TEST_CASE("files are read whole; directories and pipes are refused without waiting") {
  const std::string folder = std::filesystem::temp_directory_path() / ("xtape_json_test_" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  const std::string text = std::string(200000, 'a') + '\0' + "b";
  std::ofstream(folder + "/file", std::ios::binary) << text;
  std::ofstream(folder + "/empty");
  REQUIRE(mkfifo((folder + "/pipe").c_str(), 0600) == 0);
  CHECK(read_file(folder + "/file") == text);
  CHECK(read_file(folder + "/empty").empty());
  CHECK_THROWS_WITH_AS(read_file(folder), ("cannot read '" + folder + "': it is a directory").c_str(), FileError);
  CHECK_THROWS_WITH_AS(read_file(folder + "/pipe"),
                       ("cannot read '" + folder + "/pipe': it is not a plain file").c_str(), FileError);
  CHECK_THROWS_AS(read_file(folder + "/file" + std::string(1, '\0') + "x"), FileError);  // not the file before it
  CHECK_THROWS_WITH_AS(read_file(folder + "/none"),
                       ("cannot read '" + folder + "/none': No such file or directory").c_str(), FileError);
  std::filesystem::remove_all(folder);
}

TEST_CASE("an output file that is a symbolic link or a pipe stays one") {
  const std::string folder = std::filesystem::temp_directory_path() / ("xtape_outputs_" + std::to_string(getpid()));
  std::filesystem::create_directories(folder + "/there");
  const auto holds = [&](const std::string& name) { return read_file(folder + "/" + name); };
  std::ofstream(folder + "/there/old") << "old";
  std::filesystem::create_symlink("there/old", folder + "/link");
  std::filesystem::create_symlink(folder + "/link", folder + "/link_of_link");
  std::filesystem::create_symlink("there/new", folder + "/to_nothing");
  std::filesystem::create_symlink("circle", folder + "/circle");
  std::filesystem::create_symlink("there/folder", folder + "/to_folder");
  write_file(folder + "/link_of_link", "through two links");
  CHECK(holds("there/old") == "through two links");
  write_file(folder + "/to_nothing", "a new file");
  CHECK(holds("there/new") == "a new file");
  CHECK_THROWS_AS(write_file(folder + "/circle", "never"), FileError);
  CHECK_THROWS_WITH_AS(write_file(folder + "/there", "never"),
                       ("cannot write '" + folder + "/there': Is a directory").c_str(), FileError);
  for (const std::string text : {"first", "second"}) {
    write_folder(folder + "/to_folder/", [&](const std::string& beside) { write_file(beside + "/file", text); });
    CHECK(holds("there/folder/file") == text);
  }
  for (const char* link : {"/link", "/link_of_link", "/to_nothing", "/circle", "/to_folder"})
    CHECK(std::filesystem::is_symlink(folder + link));

  const std::string pipe = folder + "/pipe";
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  const auto piped = [&] {
    std::string bytes(100, '\0');
    bytes.resize(static_cast<std::size_t>(std::max<ssize_t>(0, read(reader, bytes.data(), bytes.size()))));
    return bytes;
  };
  {
    ReplacedFile file(pipe);
    file.write("0123", 4);
    file.write("4567", 4);
    file.rewrite("ab", 2);
    CHECK(piped().empty());
    file.commit();
    CHECK(piped() == "ab234567");
  }
  { ReplacedFile(pipe).write("given up", 8); }
  CHECK(piped().empty());
  CHECK(std::filesystem::is_fifo(pipe));
  close(reader);
  std::vector<std::string> left;
  for (const auto& entry : std::filesystem::directory_iterator(folder + "/there"))
    left.push_back(entry.path().filename());
  std::sort(left.begin(), left.end());
  CHECK(left == std::vector<std::string>{"folder", "new", "old"});
  std::filesystem::remove_all(folder);
}
