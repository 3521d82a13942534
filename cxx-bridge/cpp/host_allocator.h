// What Rust asks of the C++ side: page-locked memory for the engine's segments.
#pragma once

#include <cstddef>

namespace pinbuddy {

// Pins `bytes` bytes the way PyTorch's settings ask and returns their address. Throws c10::Error.
std::size_t pin_region(std::size_t bytes);

// Gives back what `pin_region` returned. Throws c10::Error.
void unpin_region(std::size_t address);

} // namespace pinbuddy
