// Stands for cxx's header: of its types, those that the C++ side names.
#pragma once

#include <string>
#include <vector>

namespace rust {

using String = std::string;

template <typename T>
using Vec = std::vector<T>;

} // namespace rust
