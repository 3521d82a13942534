// Measures one allocator of pinned memory, a turn for each line of input.
//
// usage: harness stock|fork|buddy-181094
//
// The model of #181094 takes its threshold from BUDDY_THRESHOLD_MB, as the fork does.
// One program for stock and fork: the folder of libtorch that the loader finds decides. It waits for
// each line and answers it with one, so that whoever drives several can let them take turns:
//
//   requests PATTERN          what `pairs`, `single` and `threads` do from now on (requests.h)
//   pairs N                   ns=   thread time of one, over so many
//   device PATTERN            what `device-pairs` does from now on
//   device-pairs N            ns=   thread time of one of device memory, over so many
//   single N                  p50= p99=   nanoseconds of one, each measured by itself
//   threads COUNT N           ns=   wall time of all, each thread doing N
//   beside-statistics COUNT SECONDS   threads with a block each, and a reader of statistics (threads.h)
//   crowd N SECONDS           done=1, or 0 where it would take longer (crowd.h)
//   use BYTES                 touches as much memory and returns it to the system
//   warm-up                   the fork's, and waits for it; ns=   wall time of that
//   plan                      hits= misses= unplanned=   of a process with BUDDY_PLAN
//   replay FILE free|timed|paced    (replay.h)
//   pins                      bytes= peak= pins=   page-locked memory, where the runtime counts it
//
// An answer is `name=value[,value...]` separated by spaces, or `error TEXT`.
#include "clock.h"
#include "crowd.h"
#include "device.h"
#include "fork.h"
#include "host_runtime.h"
#include "model_allocator.h"
#include "replay.h"
#include "requests.h"
#include "threads.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>

namespace {

using namespace bench;

// The answer to a line.
class Answer {
 public:
  template <typename Range, typename Field>
  void list(const char* name, const Range& range, Field field) {
    text_ << (text_.tellp() == 0 ? "" : " ") << name << '=';
    const char* comma = "";
    for (const auto& it : range) {
      text_ << comma << field(it);
      comma = ",";
    }
  }
  void value(const char* name, double value) {
    list(name, std::initializer_list<double>{value}, [](double it) { return it; });
  }
  std::string text() const {
    return text_.str();
  }

 private:
  std::ostringstream text_ = [] {
    std::ostringstream text;
    text.precision(15);
    return text;
  }();
};

Pace pace_named(const std::string& name) {
  static const std::map<std::string, Pace> paces{
      {"free", Pace::kFree}, {"timed", Pace::kTimed}, {"paced", Pace::kPaced}};
  const auto found = paces.find(name);
  if (found == paces.end()) {
    throw std::invalid_argument("no such pace: " + name);
  }
  return found->second;
}

class Harness {
 public:
  explicit Harness(at::HostAllocator* allocator) : allocator_(allocator), crowd_(allocator) {}

  Answer obey(std::istringstream& line) {
    const auto word = take<std::string>(line);
    Answer answer;
    if (word == "requests") {
      threads_.reset();
      loop_.reset();
      requests_ = requests(take<std::string>(line));
      loop_ = std::make_unique<Loop>(allocator_, requests_);
    } else if (word == "pairs") {
      answer.value("ns", pairs(take<long>(line)));
    } else if (word == "device") {
      device_.reset();
      device_ = std::make_unique<DeviceLoop>(requests(take<std::string>(line)));
    } else if (word == "device-pairs") {
      answer.value("ns", device_pairs(take<long>(line)));
    } else if (word == "single") {
      single(take<long>(line), answer);
    } else if (word == "threads") {
      const auto count = take<int>(line);
      answer.value("ns", threads(count, take<long>(line)));
    } else if (word == "beside-statistics") {
      const auto count = take<int>(line);
      beside_statistics(allocator_, requests_.sizes.at(0), count, take<double>(line));
    } else if (word == "crowd") {
      const auto count = take<std::size_t>(line);
      answer.value("done", crowd_.grow(count, take<double>(line)));
    } else if (word == "use") {
      use(take<std::size_t>(line));
    } else if (word == "warm-up") {
      const double start = wall_nanoseconds();
      warm_up();
      answer.value("ns", wall_nanoseconds() - start);
    } else if (word == "plan") {
      for (const char* name : {"hits", "misses", "unplanned"}) {
        answer.value(name, plan_count(name));
      }
    } else if (word == "replay") {
      const Trace trace = read_trace(take<std::string>(line));
      tell(replay(allocator_, trace, pace_named(take<std::string>(line))), answer);
    } else if (word == "pins") {
      const Pinned now = counted_or_throw();
      answer.value("bytes", static_cast<double>(now.bytes));
      answer.value("peak", static_cast<double>(now.peak));
      answer.value("pins", static_cast<double>(now.pins));
    } else {
      throw std::invalid_argument("no such command: " + word);
    }
    return answer;
  }

 private:
  template <typename T>
  static T take(std::istringstream& line) {
    T value{};
    if (!(line >> value)) {
      throw std::invalid_argument("the line ends early");
    }
    return value;
  }

  Loop& loop() {
    if (!loop_) {
      throw std::logic_error("no requests yet");
    }
    return *loop_;
  }

  double pairs(long count) {
    // The others' turns have evicted the processor's caches.
    loop().run(count / 4);
    const double start = thread_nanoseconds();
    loop().run(count);
    return (thread_nanoseconds() - start) / static_cast<double>(count);
  }

  double device_pairs(long count) {
    if (!device_) {
      throw std::logic_error("no requests of device memory yet");
    }
    device_->run(count / 4);
    const double start = thread_nanoseconds();
    device_->run(count);
    return (thread_nanoseconds() - start) / static_cast<double>(count);
  }

  void single(long count, Answer& answer) {
    loop().run(count / 4);
    std::vector<double> each = loop().run_timed(count);
    std::sort(each.begin(), each.end());
    answer.value("p50", quantile(each, 0.50));
    answer.value("p99", quantile(each, 0.99));
  }

  // A quantile of sorted values. Clocks of virtual machines tick in steps of 10 ns and more, so that thousands of
  // calls share a value; interpolates among equal values, half way to the neighbours.
  static double quantile(const std::vector<double>& sorted, double share) {
    const double place = share * static_cast<double>(sorted.size());
    const double value = sorted[std::min(sorted.size() - 1, static_cast<std::size_t>(place))];
    const auto [first, last] = std::equal_range(sorted.begin(), sorted.end(), value);
    const double low = first == sorted.begin() ? value : (*(first - 1) + value) / 2;
    const double high = last == sorted.end() ? value : (value + *last) / 2;
    const auto before = static_cast<double>(first - sorted.begin());
    return low + (high - low) * (place - before) / static_cast<double>(last - first);
  }

  double threads(int count, long pairs) {
    if (!threads_ || thread_count_ != count) {
      threads_.reset();
      threads_ = std::make_unique<Threads>(allocator_, requests_, count);
      thread_count_ = count;
    }
    threads_->run(pairs / 4);
    return threads_->run(pairs);
  }

  static void use(std::size_t bytes) {
    void* memory =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
      throw std::runtime_error("no memory to use");
    }
    madvise(memory, bytes, MADV_HUGEPAGE);
    for (std::size_t at = 0; at < bytes; at += 4096) {
      static_cast<volatile char*>(memory)[at] = 1;
    }
    munmap(memory, bytes);
  }

  static Pinned counted_or_throw() {
    if (!is_counted()) {
      throw std::runtime_error("this runtime does not count pins");
    }
    return counted();
  }

  static void tell(const Replayed& it, Answer& answer) {
    answer.list("iteration_ns", it.iterations, [](const Iteration& i) { return i.nanoseconds; });
    answer.list("iteration_pins", it.iterations, [](const Iteration& i) { return i.pins; });
    answer.value("peak_live", it.peak_live);
    answer.value("peak_pinned", it.peak_pinned);
    answer.value("live_at_clear", it.live_at_clear);
    answer.value("pinned_after_clear", it.pinned_after_clear);
    answer.list("sample_us", it.samples, [](const Sample& i) { return i.microseconds; });
    answer.list("sample_live", it.samples, [](const Sample& i) { return i.live; });
    answer.list("sample_pinned", it.samples, [](const Sample& i) { return i.pinned; });
  }

  at::HostAllocator* const allocator_;
  Crowd crowd_;
  Requests requests_;
  std::unique_ptr<Loop> loop_;
  std::unique_ptr<DeviceLoop> device_;
  std::unique_ptr<Threads> threads_;
  int thread_count_ = 0;
};

} // namespace

int main(int argc, char** argv) {
  const std::string which = argc > 1 ? argv[1] : "";
  if (which != "stock" && which != "fork" && which != "buddy-181094") {
    std::cerr << "usage: " << argv[0] << " stock|fork|buddy-181094\n";
    return 2;
  }
  at::HostAllocator* allocator = at::getHostAllocator(at::kCUDA);
  if (which == "buddy-181094") {
    const char* threshold = std::getenv("BUDDY_THRESHOLD_MB");
    const std::size_t mebibytes = threshold ? std::strtoull(threshold, nullptr, 10) : 4;
    allocator = make_model(allocator, mebibytes << 20);
  }
  {
    Harness harness(allocator);
    std::string text;
    while (std::getline(std::cin, text)) {
      std::istringstream line(text);
      try {
        std::cout << harness.obey(line).text() << std::endl;
      } catch (const std::exception& error) {
        std::string what = error.what();
        std::replace(what.begin(), what.end(), '\n', ' ');
        std::cout << "error " << what << std::endl;
      }
    }
    // Live blocks must not outlast CUDA: they end here.
  }
  // With exit handlers: one of the fork's writes the plan of a recorded run.
  std::exit(0);
}
