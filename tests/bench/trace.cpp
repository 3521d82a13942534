#include "trace.h"

#include <cstring>
#include <fstream>
#include <stdexcept>

namespace bench {

Trace read_trace(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  struct {
    char magic[8];
    std::uint64_t slots;
    std::uint64_t events;
  } head{};
  file.read(reinterpret_cast<char*>(&head), sizeof head);
  if (!file || std::memcmp(head.magic, "PBTRACE1", sizeof head.magic) != 0) {
    throw std::runtime_error(path + " is no trace");
  }
  Trace trace{head.slots, std::vector<Event>(head.events)};
  file.read(
      reinterpret_cast<char*>(trace.events.data()),
      static_cast<std::streamsize>(head.events * sizeof(Event)));
  if (!file) {
    throw std::runtime_error(path + " is cut off");
  }
  for (const Event& event : trace.events) {
    if (event.op > Op::iteration || event.slot >= trace.slots) {
      throw std::runtime_error(path + " holds an event that is none");
    }
  }
  return trace;
}

} // namespace bench
