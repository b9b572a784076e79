/// Products of few rows by a large matrix, such as a step of one token by a weight. Nearly all their time goes into
/// reading the matrix, so it is read once, in the order of memory, and never packed.
#pragma once

#include <functional>

#include "product_gemm.hpp"

namespace xtape {

/// Whether one operand has at most eight rows (or 32, where no cache holds the other) and the other is a matrix to be
/// read as it lies: either what is added up for a row of the result stands side by side in both operands, or the
/// columns of the matrix and of the result do.
bool rows_suit(const GemmPlan& plan);

/// The plan is one that rows_suit. A row's elements have the same bits whatever rows stand beside it.
template <class T>
std::function<void(const T* a, const T* b, T* c)> make_rows(const GemmPlan& plan);
extern template std::function<void(const float*, const float*, float*)> make_rows<float>(const GemmPlan&);
extern template std::function<void(const double*, const double*, double*)> make_rows<double>(const GemmPlan&);

}  // namespace xtape
