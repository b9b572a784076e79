#include "text_model.hpp"

#include "commands.hpp"
#include "folder.hpp"

namespace xtape::cli {

TextModel::TextModel(const std::string& path, const std::string& checkpoint) {
  of_the_input([&] {
    if (is_hugging_face(path)) {
      if (checkpoint != "last") throw WrongInput("--checkpoint is for runs: " + path + " is a folder of one model");
      model_ = open_folder(path);
      if (reads_source(*model_))
        throw WrongInput(path + " is a folder of sentence pairs: xtape translate is for those");
      tokenizer_ = load_tokenizer(path);
      constexpr std::int64_t context_of_most = 1024;  // where the model does not say how far its positions go
      context_ = context_of_most;
      for (const char* name : {"n_positions", "max_positions"})
        if (model_->hyper().has(name)) context_ = model_->hyper().integer(name);
      end_token_ = tokenizer_->end();
      return;
    }
    run_ = Run::open(path, {}, CheckpointChoice::parse(checkpoint));
    if (run_->recipe().data.has_pairs())
      throw WrongInput(path + " is a run on sentence pairs: xtape translate is for those");
    if (run_->recipe().data.kind == "table")
      throw WrongInput(path + " is a run on a table: it was not trained to go on with texts");
    context_ = run_->columns();
    end_token_ = run_->end_token();
  });
}

}  // namespace xtape::cli
