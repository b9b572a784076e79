/// The page without data: HTML, style and scripts, which are compiled into the library.
#pragma once

#include <map>
#include <string>

namespace xtape::report_data {

/// Returns the page with texts in place of the words {{title}}, {{nonce}}, {{data}}.
std::string filled_page(std::map<std::string, std::string> texts);

}  // namespace xtape::report_data
