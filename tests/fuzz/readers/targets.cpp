#include "target.hpp"

namespace xtape::fuzz {

void bleu(Input input);
void definition(Input input);
void expression(Input input);
void hugging_face(Input input);
void json(Input input);
void lines(Input input);
void merges(Input input);
void recipe(Input input);
void safetensors(Input input);
void tape(Input input);
void tokenizers(Input input);
void utf8(Input input);
void vocabulary(Input input);

const std::vector<Target>& targets() {
  static const std::vector<Target> all = {{"bleu", bleu},
                                          {"definition", definition},
                                          {"expression", expression},
                                          {"hugging_face", hugging_face},
                                          {"json", json},
                                          {"lines", lines},
                                          {"merges", merges},
                                          {"recipe", recipe},
                                          {"safetensors", safetensors},
                                          {"tape", tape},
                                          {"tokenizers", tokenizers},
                                          {"utf8", utf8},
                                          {"vocabulary", vocabulary}};
  return all;
}

}  // namespace xtape::fuzz
