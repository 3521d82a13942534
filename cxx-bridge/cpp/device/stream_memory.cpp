// What stream_memory.h declares, but for regions (stream_regions.cpp) and events (stream_events.cpp); nothing before torch 2.11.
#include "../upstream.h"

#if PINBUDDY_TORCH_FROM(11)

#include "stream_memory.h"

#include "round_up.h"

namespace pinbuddy {

StreamMemory::StreamMemory(const Around& around, Peaks& peaks, c10::cuda::CUDAStream stream, std::uint32_t number)
    : around_(around),
      peaks_(peaks),
      tally_(device_tally(stream.device_index())),
      stream_(stream),
      handle_(stream.stream()),
      plan_(stream_plan(stream.device_index(), number, reinterpret_cast<std::size_t>(handle_))),
      regions_(plan_.regions()) {
  for (std::size_t index = 0; index < regions_.size(); ++index) {
    regions_[index].bytes = plan_.region_bytes(index);
  }
}

// Each turn does what comes before the next: Rust says what.
Place StreamMemory::ask(std::size_t bytes, bool borrows, bool releases) {
  Ask request{bytes, round_up(bytes), oversize_from(), borrows, /*needs=*/-1, Step::Begin};
  Place place{};
  for (;;) {
    request.after = plan_.ask(request, place);
    switch (request.after) {
      case Step::Served:
        return place;
      case Step::Settle:
        settle(Settle::kAsk);
        break;
      case Step::Reserve:
        reserve(releases);
        break;
      case Step::Peaks:
        read_peaks();
        break;
      case Step::Retire:
        drop();
        device_retired(stream_.device_index());
        return {};
      default:
        return {};
    }
  }
}

void StreamMemory::read_peaks() {
  assert_no_lock_held("reading peaks");
  const c10::DeviceIndex device = stream_.device_index();
  const std::int64_t passed = device_passed();
  peaks_.keep(around_.whole.getDeviceStats(device), passed, tally_);
  plan_.reset_peaks();
  around_.below.resetPeakStats(device);
}

std::size_t StreamMemory::free(void* address) {
  const auto at = reinterpret_cast<std::size_t>(address);
  keep_peaks();
  if (C10_UNLIKELY(around_.history.any())) {
    note_completed(at, plan_.completes(at));
  }
  const FreedBlock freed = plan_.free_block(at);
  TORCH_CHECK(freed.bytes > 0, "invalid device pointer: ", address);
  if (C10_UNLIKELY(freed.waits)) {
    record();
  }
  if (C10_UNLIKELY(freed.is_last)) {
    give_back(plan_.take_dropped());
  }
  return freed.bytes;
}

// Before its place may be handed out again; nothing if `requested` is 0.
void StreamMemory::note_completed(std::size_t address, std::size_t requested) {
  if (around_.history.any() && requested > 0) {
    around_.history.completed({stream_.device_index(), handle_, address, requested});
  }
}

DeviceHistory::Block StreamMemory::block_at(const void* address) {
  const auto at = reinterpret_cast<std::size_t>(address);
  return {stream_.device_index(), handle_, at, plan_.requested(at)};
}

} // namespace pinbuddy

#endif
