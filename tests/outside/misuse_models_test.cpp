// Misuse of files of arrays, of models and of Hugging Face folders.
#include <filesystem>

#include "folders.hpp"
#include "misuse.hpp"

using namespace xtape;

namespace misuse::models {
namespace {
struct World {
  test::Folder folder;
  std::string file = folder / "two.safetensors";
  Model model = Model::parse(small_model);
  Array tokens{Dtype::int64, {2, 3}};
  Array three{Dtype::float32, {3}};
  ArrayView null{nullptr, Dtype::float32, Layout::dense({3})};
  ArrayView null_tokens{nullptr, Dtype::int64, Layout::dense({2, 3})};
  Tape tape;

  World() { save_arrays(file, {{"a", three}, {"b", three}}); }
  Store types() const { return {{"a", Array(three)}}; }
};

template <class Work>
std::function<void()> with_writer(World& w, Shape shape, const Work& work) {
  return [&w, shape, work] {
    ArrayWriter writer(w.folder / "made.safetensors", {{"a", Dtype::float32, shape}});
    work(writer);
  };
}

std::vector<Row> rows_of_files(World& w) {
  return {
      {"ArrayFile::ArrayFile", "no such file", "/nowhere", [] { ArrayFile("/nowhere"); }},
      {"ArrayFile::ArrayFile", "empty", "", [] { CHECK_THROWS_AS(ArrayFile(""), FileError); }},
      {"ArrayFile::path", "moved", gone,
       [&w] {
         ArrayFile f(w.file);
         const ArrayFile g(std::move(f));
         static_cast<void>(f.path());
       }},
      {"ArrayFile::entries", "moved", gone,
       [&w] {
         ArrayFile f(w.file);
         const ArrayFile g(std::move(f));
         static_cast<void>(f.entries());
       }},
      {"ArrayFile::metadata", "moved", gone,
       [&w] {
         ArrayFile f(w.file);
         const ArrayFile g(std::move(f));
         static_cast<void>(f.metadata());
       }},
      {"ArrayFile::read", "moved", gone,
       [&w] {
         ArrayFile f(w.file);
         const ArrayFile g(std::move(f));
         f.read(0);
       }},
      {"ArrayFile::read", "out of range", "has no array 2", [&w] { ArrayFile(w.file).read(2); }},
      {"ArrayFile::read", "into an empty one", "cannot be read into",
       [&w] {
         Array into;
         ArrayFile(w.file).read(0, into);
       }},
      {"ArrayFile::read", "into another type", "cannot be read into",
       [&w] {
         Array into(Dtype::int8, {3});
         ArrayFile(w.file).read(0, into);
       }},
      {"ArrayFile::mapped", "moved", gone,
       [&w] {
         ArrayFile f(w.file);
         const ArrayFile g(std::move(f));
         f.mapped(0);
       }},
      {"ArrayFile::mapped", "out of range", "has no array 2", [&w] { ArrayFile(w.file).mapped(2); }},
      {"ArrayFile::check", "moved", gone,
       [&w] {
         ArrayFile f(w.file);
         const ArrayFile g(std::move(f));
         f.check(0);
       }},
      {"ArrayFile::check", "out of range", "has no array 7", [&w] { ArrayFile(w.file).check(7); }},
      {"load_arrays", "no such file", "/nowhere", [] { load_arrays("/nowhere"); }},
      {"save_arrays", "no such folder", "/nowhere", [] { save_arrays("/nowhere/a", {}); }},
      {"save_arrays", "an empty array", "array 'a' is empty",
       [&w] {
         save_arrays(w.folder / "e", {{"a", Array()}});
       }},
      {"ArrayWriter::ArrayWriter", "a negative size", "must not be negative",
       [&w] {
         ArrayWriter(w.folder / "n", {{"a", Dtype::int8, {-1}}});
       }},
      {"ArrayWriter::ArrayWriter", "a name twice", "'a'",
       [&w] {
         ArrayWriter(w.folder / "n", {{"a", Dtype::int8, {1}}, {"a", Dtype::int8, {1}}});
       }},
      {"ArrayWriter::write", "moved", gone,
       with_writer(w, {3},
                   [&w](ArrayWriter& a) {
                     const ArrayWriter b(std::move(a));
                     a.write(w.three);
                   })},
      {"ArrayWriter::write", "null", "array 'a' is empty",
       with_writer(w, {3}, [&w](ArrayWriter& a) { a.write(w.null); })},
      {"ArrayWriter::write", "empty", "array 'a' is empty",
       with_writer(w, {}, [](ArrayWriter& a) { a.write(ArrayView()); })},
      {"ArrayWriter::write", "too many", "all 1 arrays have been written",
       with_writer(w, {3},
                   [&w](ArrayWriter& a) {
                     a.write(w.three);
                     a.write(w.three);
                   })},
      {"ArrayWriter::commit", "moved", gone,
       with_writer(w, {3},
                   [](ArrayWriter& a) {
                     const ArrayWriter b(std::move(a));
                     a.commit();
                   })},
      {"ArrayWriter::commit", "too early", "only 0 of the 1 arrays",
       with_writer(w, {3}, [](ArrayWriter& a) { a.commit(); })},
      {"ArrayWriter::commit", "twice", "has been committed",
       with_writer(w, {3},
                   [&w](ArrayWriter& a) {
                     a.write(w.three);
                     a.commit();
                     a.commit();
                   })},
  };
}

std::vector<Row> rows_of_models(World& w) {
  const auto moved = [] {
    Model model = Model::parse(small_model);
    const Model taken(std::move(model));
    return model;
  };
  const auto hyper = [&w](const std::function<void(const Hyper&)>& use) { return [&w, use] { use(w.model.hyper()); }; };
  return {
      {"feeds_of", "no such array", "input 'tokens' is not given",
       [&w] {
         feeds_of({{"tokens", w.tape.input("x", {1})}}, {});
       }},
      {"Hyper::integer", "unknown", "did you mean 'size'", hyper([](const Hyper& h) { h.integer("siz"); })},
      {"Hyper::integer", "another type", "'word'", hyper([](const Hyper& h) { h.integer("word"); })},
      {"Hyper::number", "another type", "'flag'", hyper([](const Hyper& h) { h.number("flag"); })},
      {"Hyper::flag", "another type", "'size'", hyper([](const Hyper& h) { h.flag("size"); })},
      {"Hyper::text", "another type", "'size'", hyper([](const Hyper& h) { h.text("size"); })},
      {"Hyper::at", "unknown", "'none'", hyper([](const Hyper& h) { h.at("none"); })},
      {"Model::load", "no such file", "/nowhere", [] { Model::load("/nowhere"); }},
      {"Model::load", "empty", "", [] { CHECK_THROWS_AS(Model::load(""), Error); }},
      {"Model::parse", "empty", "is empty", [] { Model::parse(""); }},
      {"Model::parse", "no float", "float32 or float64",
       [] { Model::parse(small_model, with(&ModelOptions::dtype, Dtype::int8)); }},
      {"Model::parse", "unknown hyper-parameter", "'none'",
       [] {
         Model::parse(small_model, {.hyper = {{"none", "1"}}});
       }},
      {"Model::parse", "no dtype for weights", "int32",
       [] { Model::parse(small_model, with(&ModelOptions::weights, Dtype::int32)); }},
      {"Model::parse", "no steps", "steps",
       [] {
         Model m = Model::parse(small_model, with(&ModelOptions::max_steps, -1));
         m.player("logits", Mode::eval, {{"b", 1}, {"t", 1}});
       }},
      {"Model::name", "moved", gone, [=] { static_cast<void>(moved().name()); }},
      {"Model::about", "moved", gone, [=] { static_cast<void>(moved().about()); }},
      {"Model::hyper", "moved", gone, [=] { static_cast<void>(moved().hyper()); }},
      {"Model::dtype", "moved", gone, [=] { static_cast<void>(moved().dtype()); }},
      {"Model::ops", "moved", gone, [=] { static_cast<void>(moved().ops()); }},
      {"Model::weights", "moved", gone, [=] { static_cast<void>(moved().weights()); }},
      {"Model::updated_weights", "moved", gone, [=] { static_cast<void>(moved().updated_weights()); }},
      {"Model::weights_from_files", "moved", gone, [=] { static_cast<void>(moved().weights_from_files()); }},
      {"Model::use_weights", "moved", gone, [=, &w] { moved().use_weights(w.types()); }},
      {"Model::use_weights", "unknown", "'a'", [&w] { w.model.use_weights(w.types()); }},
      {"Model::use_weights", "an empty array", "the array is empty",
       [&w] {
         w.model.use_weights({{"s", Array()}});
       }},
      {"Model::use_weights", "another dtype", "int8",
       [&w] {
         w.model.use_weights({{"s", Array(Dtype::int8, {})}});
       }},
      {"Model::store_weights_as", "no such storage", "int32", [&w] { w.model.store_weights_as(Dtype::int32); }},
      {"Model::store_weights_as", "moved", gone, [=] { moved().store_weights_as(Dtype::int8); }},
      {"Model::exported_weights", "moved", gone, [=] { moved().exported_weights(); }},
      {"Model::parameter_count", "moved", gone, [=] { moved().parameter_count(); }},
      {"Model::modules", "moved", gone, [=] { moved().modules(); }},
      {"Model::functions", "moved", gone, [=] { moved().functions(); }},
      {"Model::signature", "moved", gone, [=] { moved().signature("loss"); }},
      {"Model::signature", "unknown", "did you mean 'loss'", [&w] { w.model.signature("los"); }},
      {"Model::inputs", "unknown", "no function 'f'", [&w] { w.model.inputs(w.tape, "f", {}); }},
      {"Model::inputs", "a size missing", "needs the size 'b'", [&w] { w.model.inputs(w.tape, "loss", {}); }},
      {"Model::inputs", "a negative size", "cannot be -1",
       [&w] {
         w.model.inputs(w.tape, "loss", {{"b", -1}, {"t", 1}});
       }},
      {"Model::inputs", "a huge size", "bytes",
       [&w] {
         w.model.inputs(w.tape, "loss", {{"b", INT64_MAX}, {"t", INT64_MAX}});
       }},
      {"Model::record", "nothing given", "tokens", [&w] { w.model.record(w.tape, "loss", {}); }},
      {"Model::record", "empty", "an empty var",
       [&w] {
         w.model.record(w.tape, "logits", {{"tokens", Var()}});
       }},
      {"Model::record", "foreign", "tape",
       [&w] {
         Tape other;
         w.model.record(w.tape, "logits", w.model.inputs(other, "logits", {{"b", 1}, {"t", 1}}));
       }},
      {"Model::record", "moved", gone, [=, &w] { moved().record(w.tape, "logits", {}); }},
      {"Model::weight", "unknown", "'v'", [&w] { w.model.weight(w.tape, "v"); }},
      {"Model::player", "unknown", "no function 'f'", [&w] { w.model.player("f", Mode::eval, {}); }},
      {"Model::player", "moved", gone, [=] { moved().player("loss", Mode::eval, {}); }},
      {"Model::play", "nothing given", "takes an input 'tokens'", [&w] { w.model.play("logits", {}); }},
      {"Model::play", "null", "a view without memory",
       [&w] {
         w.model.play("logits", {{"tokens", w.null_tokens}});
       }},
      {"Model::play", "empty", "rank 2",
       [&w] {
         w.model.play("logits", {{"tokens", ArrayView()}});
       }},
      {"Model::play", "moved", gone, [=] { moved().play("logits", {}); }},
      {"Model::sizes", "unknown", "no function 'f'", [&w] { w.model.sizes("f", {}); }},
      {"Model::sizes", "null", "",
       [&w] {
         w.model.sizes("logits", {{"tokens", w.null_tokens}});
       }},
      {"Model::players", "moved", gone, [=] { moved().players(); }},
      {"Model::set_player_options", "no player", "",
       [&w] {
         w.model.set_player_options(0, {});
         w.model.play("logits", {{"tokens", w.tokens}});
       }},
      {"Model::set_player_options", "moved", gone, [=] { moved().set_player_options(1, {}); }},
      {"Model::player_options", "moved", gone, [=] { static_cast<void>(moved().player_options()); }},
      {"Model::save_weights", "no such folder", "/nowhere", [&w] { w.model.save_weights("/nowhere/w"); }},
      {"Model::load_weights", "no such file", "/nowhere", [&w] { w.model.load_weights("/nowhere"); }},
      {"Model::load_weights", "moved", gone, [=, &w] { moved().load_weights(w.file); }},
      {"Model::allocate_weights_as", "moved", gone, [=] { moved().allocate_weights_as(Dtype::int8); }},
      {"Model::allocate_weights_as", "no storage", "int64", [&w] { w.model.allocate_weights_as(Dtype::int64); }},
      {"WeightDtypes::of", "empty", "", [] { CHECK(!WeightDtypes().of("")); }},
      {"WeightDtypes::add", "empty", "",
       [] {
         WeightDtypes dtypes;
         dtypes.add("", Dtype::int8);
         CHECK(!dtypes.of("w"));
       }},
      {"WeightDtypes::put_first", "twice", "",
       [] {
         WeightDtypes dtypes = Dtype::int8;
         dtypes.put_first("*", Dtype::bfloat16);
         dtypes.put_first("*", Dtype::float16);
         CHECK(dtypes.of("w") == Dtype::float16);
       }},
      {"Model::for_each_exported", "moved", gone, [=] { moved().for_each_exported([](auto...) {}); }},
      {"Model::for_each_exported", "no function", "needs a function", [&w] { w.model.for_each_exported({}); }},
      {"Model::definition_text", "moved", gone, [=] { static_cast<void>(moved().definition_text()); }},
      {"find_definition", "empty", "", [] { CHECK_THROWS_AS(find_definition(""), FileError); }},
      {"find_definition", "unknown", "gpt", [] { find_definition("gpt22"); }},
      {"open_hugging_face", "no such folder", "/nowhere", [] { open_hugging_face("/nowhere"); }},
      {"is_hugging_face", "empty", "", [] { CHECK(!is_hugging_face("")); }},
      {"stored_weights", "no such folder", "/nowhere", [] { stored_weights("/nowhere"); }},
      {"hugging_face_warnings", "no such folder", "/nowhere", [] { hugging_face_warnings("/nowhere"); }},
      {"save_hugging_face", "no entry", "has no entry \"hugging_face\"",
       [&w] { save_hugging_face(w.model, w.folder / "hf"); }},
      {"save_hugging_face", "moved", gone, [=, &w] { save_hugging_face(moved(), w.folder / "hf"); }},
      {"save_adapter", "no entry", "has no entry \"hugging_face\"",
       [&w] { save_adapter(w.model, w.folder / "adapter", "base"); }},
      {"save_adapter", "moved", gone, [=, &w] { save_adapter(moved(), w.folder / "adapter", "base"); }},
      {"is_adapter", "empty", "", [] { CHECK(!is_adapter("")); }},
      {"base_of_adapter", "no such folder", "/nowhere", [] { base_of_adapter("/nowhere"); }},
      {"copy_hugging_face_files", "no such folder", "/nowhere",
       [&w] { copy_hugging_face_files("/nowhere", w.folder / "hf"); }},
  };
}

std::vector<Row> rows_of_all(World& w) {
  std::vector<Row> all;
  for (const auto& rows_of : {rows_of_files, rows_of_models})
    for (Row& row : rows_of(w)) all.push_back(std::move(row));
  return all;
}
}  // namespace

TEST_CASE("misuse of files and models is an Error, or works as the table says") {
  check_rows<World>(rows_of_all);
}

TEST_CASE("the table has every function of files and models that can be misused") {
  check_complete<World>(rows_of_all, {"safetensors.hpp", "model.hpp", "hugging_face.hpp"},
                        {"Hyper::has", "Hyper::items", "Hyper::set", "to_string", "models_directory",
                         "WeightDtypes::empty", "WeightDtypes::rows", "Model::orders"},
                        40);
}
}  // namespace misuse::models
