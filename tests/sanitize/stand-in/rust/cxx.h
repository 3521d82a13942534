// Stands for cxx's header: of its types, those that the C++ side names.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace rust {

using String = std::string;

template <typename T>
using Vec = std::vector<T>;

template <typename T>
using Slice = std::span<T>;

} // namespace rust
