// Everything at once, for as long as is asked for: nothing may be lost, and memory may not creep.
//
// usage: soak SECONDS THREADS SEED   -> a line of JSON for each epoch, and one for all; fails with a line on stderr
//
// In an epoch threads allocate, hand over and free marked blocks of 64 bytes to 2 GiB, copy them to the device and back on
// streams that get stuck, free them while a copy is in flight, die and are followed by others; one clears, warms up and
// counts beside them, and one forks children that read what their parent pinned and write a letter. In the first half of
// every second epoch some calls fail, where the simulated runtime is in front. An epoch ends with nothing allocated and an
// empty cache: then the counters must add up, and what is resident is noted. The last half of the epochs may have no more
// of that than the first. A damaged mark is counted, and fails the soak at its end.
//
// That it can fail is shown by PINBUDDY_SOAK_DEFECT=overwrite, with which threads write where they must not now and then,
// and by PINBUDDY_SIM_FAULTS=cudaEventQuery:1+=0, with which events are said to be complete too early.
#include "soak_faults.h"
#include "soak_process.h"
#include "soak_threads.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <string>

namespace {

// Arenas of malloc's and what the kernel counts in batches.
constexpr std::size_t kSlack = 32ul << 20;
// A soak goes on until it has had so many, however busy the machine: in fewer nothing may happen.
constexpr std::size_t kFewestEpochs = 4;
constexpr std::uint64_t kFewestBlocks = 500;

// A report is not of one moment: PyTorch reads what is pinned before it reads what is live, and another thread may pin
// between the two. So one alone may say so.
constexpr int kReports = 20;

bool more_is_live_than_pinned() {
  const Counts counts = counts_of(allocator->get_stats());
  return counts.live_bytes && counts.live_bytes->current > counts.pinned_bytes.current;
}

// Clears, warm-ups and statistics beside the others.
void disturb(Clock::time_point until, std::uint64_t seed) {
  const auto warm_up = function<int (*)(int)>("pinbuddy_warm_up");
  std::mt19937_64 random(seed);
  while (Clock::now() < until) {
    switch (random() % 8) {
      case 0:
        try {
          allocator->empty_cache();
          ++totals.clears;
        } catch (const std::exception& why) {
          refused(why);
        }
        break;
      case 1:
        if (warm_up != nullptr) {
          warm_up(0);
        }
        break;
      default: {
        int wrong = 0;
        while (wrong < kReports && more_is_live_than_pinned()) {
          ++wrong;
        }
        if (wrong == kReports) {
          fail("more is live than is pinned", 0);
        }
      }
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 40));
  }
}

// Children read what their parent pinned, and what they write the parent reads. Where that is PyTorch's own memory, the
// driver has to share it (PINBUDDY_SIM_SHARED).
class Family {
 public:
  Family() : kept_(6 << 20), letter_(allocator->allocate(5 << 20)) {}

  void fork_children(Clock::time_point until) {
    auto* words = static_cast<volatile std::uint64_t*>(letter_.get());
    for (std::uint64_t number = 1; Clock::now() < until; ++number) {
      words[0] = 0;
      const pid_t child = fork();
      if (child == 0) {
        words[0] = number;
        _exit(kept_.check() ? 0 : kDamaged);
      }
      int status = -1;
      const bool ended = child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status);
      if (!ended || (WEXITSTATUS(status) != 0 && WEXITSTATUS(status) != kDamaged)) {
        fail("a child that reads its parent's blocks ended badly", static_cast<std::size_t>(status));
      }
      totals.lost_in_children += WEXITSTATUS(status) == kDamaged;
      if (words[0] != number) {
        fail("what a child wrote did not arrive", 0);
      }
      ++totals.forks;
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
    }
  }

 private:
  // A child's exit status.
  static constexpr int kDamaged = 3;

  Marked kept_;
  at::DataPtr letter_;
};

// An epoch, some of whose calls fail in its first half.
void epoch(std::size_t threads, std::uint64_t seed, double seconds, Lanes& lanes, Faults& faults) {
  const auto start = Clock::now();
  const auto after = [&](double seconds) {
    return start + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  };
  const auto until = after(seconds);
  // Before calls fail: its letter is pinned here, where nobody expects a refusal.
  Family family;
  Exchange<Counted> handed;
  faults.begin();
  std::vector<std::thread> all;
  for (std::size_t i = 0; i < threads; ++i) {
    all.emplace_back(lives, until, seed + i, std::ref(lanes), std::ref(handed));
  }
  all.emplace_back(disturb, until, seed);
  all.emplace_back(&Family::fork_children, &family, until);
  all.emplace_back(&Lanes::hold_up, &lanes, until, seed);
  std::this_thread::sleep_until(after(seconds / 2));
  faults.end_of_some();
  for (auto& thread : all) {
    thread.join();
  }
}

// Once all blocks are freed.
std::uint64_t lost() {
  return marks_lost() + totals.lost_in_children;
}

void print(const std::vector<std::pair<std::string, std::uint64_t>>& figures) {
  std::string line;
  for (const auto& [name, figure] : figures) {
    line += (line.empty() ? "{\"" : ",\"") + name + "\":" + std::to_string(figure);
  }
  std::printf("%s}\n", line.c_str());
  std::fflush(stdout);
}

} // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: %s SECONDS THREADS SEED\n", argv[0]);
    return 2;
  }
  const double seconds = std::strtod(argv[1], nullptr);
  const std::size_t threads = std::strtoull(argv[2], nullptr, 10);
  const std::uint64_t seed = std::strtoull(argv[3], nullptr, 10);
  allocator = at::getHostAllocator(at::kCUDA);
  Lanes lanes(8);
  const auto start = Clock::now();
  const auto passed = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
  const double length = std::clamp(seconds / 12, 2.0, 20.0);
  std::vector<std::size_t> resident;
  Faults faults(seed);
  while (passed() < seconds || resident.size() < kFewestEpochs || totals.blocks < kFewestBlocks) {
    const std::size_t number = resident.size();
    faults.choose(number);
    epoch(threads, seed + number * 1'000'000, length, lanes, faults);
    wait_for_the_device();
    const bool at_work = wait_for_the_worker();
    const std::uint64_t failures = faults.end();
    check_the_end();
    resident.push_back(resident_kb());
    print({
        {"seconds", static_cast<std::uint64_t>(passed())},
        {"blocks", totals.blocks},
        {"resident_kb", resident.back()},
        {"failed_calls", failures},
        {"worker", at_work},
        {"marks_lost", lost()},
    });
  }
  const auto middle = resident.begin() + static_cast<std::ptrdiff_t>(resident.size() / 2);
  const std::size_t first = *std::max_element(resident.begin(), middle);
  const std::size_t last = *std::max_element(middle, resident.end());
  const std::uint64_t hazards = simulated("hazards");
  std::vector<std::pair<std::string, std::uint64_t>> figures{
      {"seconds", static_cast<std::uint64_t>(passed())},
      {"epochs", resident.size()},
      {"epochs_with_faults", faults.epochs()},
      {"threads", totals.threads},
      {"blocks", totals.blocks},
      {"of_64_mib_and_more", totals.large},
      {"uses_on_streams", totals.recorded},
      {"copies", totals.copies},
      {"copies_checked", totals.arrived},
      {"freed_in_flight", totals.freed_in_flight},
      {"refused", totals.refused},
      {"forks", totals.forks},
      {"clears", totals.clears},
      {"marks_lost", lost()},
      {"hazards", hazards},
      {"resident_kb_first_half", first},
      {"resident_kb_last_half", last},
  };
  for (const auto& [call, failed] : faults.failed()) {
    figures.emplace_back("failed_" + call, failed);
  }
  print(figures);
  if (lost() != 0 || hazards != 0) {
    std::fprintf(stderr, "marks were lost, or memory was touched in flight\n");
    return 1;
  }
  if (last * 1024 > first * 1024 + kSlack) {
    fail("what is resident grows", (last - first) * 1024);
  }
  return 0;
}
