// A trace of requests in the form that `cargo xtask bench` writes for this program.
//
// Little-endian: "PBTRACE1", slots (u64), events (u64), then 24 bytes per event. A slot holds one live block; ids
// of the JSON form are slots here.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace bench {

enum class Op : std::uint8_t { allocate = 0, free = 1, event = 2, clear = 3, iteration = 4 };

struct Event {
  std::uint64_t microseconds;
  std::uint64_t bytes; // of an allocation
  std::uint32_t slot;
  std::uint16_t stream;
  Op op;
  std::uint8_t unused;
};
static_assert(sizeof(Event) == 24);

struct Trace {
  std::uint64_t slots = 0;
  std::vector<Event> events;
};

Trace read_trace(const std::string& path);

} // namespace bench
