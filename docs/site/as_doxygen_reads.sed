# What Doxygen reads in place of a header. The pages show names without `xtape::`, as programs use them.
/^namespace xtape \{$/d
/^\}  \/\/ namespace xtape$/d
s/^namespace xtape::/namespace /
# Code in comments is indented by two; Markdown wants four.
s/^( *)\/\/\/   /\1\/\/\/        /
# A specialisation in std, and a check of template arguments that Sphinx cannot parse, have nothing for readers.
/^struct std::hash/,/^};/d
s/ = std::remove_cv_t<std::remove_pointer_t<decltype\(std::declval<const E&>\(\)\.data\(\)\)>>/ = void/
s/class = decltype\(std::declval<const E&>\(\)\.size\(\)\)/class = void/
