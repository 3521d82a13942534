// Measures one allocator of pinned memory, a turn for each line of input.
//
// One program for stock and fork: the folder of libtorch that the loader finds decides. It waits for
// each line and answers it with one, so that whoever drives several can let them take turns:
//
//   requests PATTERN          what `pairs`, `single` and `threads` do from now on (requests.h)
//   pairs N                   ns=   thread time of one, over so many
//   device PATTERN            what `pairs` does from now on, of device memory, on the current stream and with no events
//   reads N                   ns=   thread time of one reading of the processor's counter
//   single N                  p99=   nanoseconds of one, each measured by itself
//   threads COUNT N           ns=   wall time of all, each thread doing N
//   beside-statistics COUNT SECONDS   threads with a block each, and a reader of statistics (threads.h)
//   crowd N SECONDS           done=1 once so many blocks are live beside as many holes, or 0 where it would take longer
//   warm-up                   the fork's, and waits for it; ns=   wall time of that
//   plan                      hits= misses= unplanned=   of a process with BUDDY_PLAN
//   replay FILE free|timed|paced    (replay.h)
//   pins                      bytes=   page-locked memory, where the runtime counts it
//
// An answer is `name=value[,value...]` separated by spaces, or `error TEXT`.
#include "clock.h"
#include "looked_up.h"
#include "replay.h"
#include "requests.h"
#include "threads.h"

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>

namespace {

using namespace bench;

std::string text(const Numbers& answer) {
  std::ostringstream text;
  text.precision(15);
  for (const auto& [name, numbers] : answer) {
    text << name << '=';
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      text << (i ? "," : "") << numbers[i];
    }
    text << ' ';
  }
  return text.str();
}

const std::map<std::string, Pace> kPaces{
    {"free", Pace::kFree}, {"timed", Pace::kTimed}, {"paced", Pace::kPaced}};

class Harness {
 public:
  explicit Harness(at::HostAllocator* allocator) : allocator_(allocator) {}

  Numbers obey(std::istringstream& line) {
    const auto word = take<std::string>(line);
    Numbers answer;
    if (word == "requests") {
      threads_.reset();
      loop_.reset();
      requests_ = requests(take<std::string>(line));
      loop_ = std::make_unique<Loop>(allocator_, requests_);
    } else if (word == "device") {
      loop_.reset();
      Requests pattern = requests(take<std::string>(line));
      pattern.event = false;
      loop_ = std::make_unique<Loop>(device_allocator(), std::move(pattern));
    } else if (word == "pairs") {
      answer["ns"] = {per_one(take<long>(line), [this](long count) { loop().run(count); })};
    } else if (word == "reads") {
      answer["ns"] = {per_one(take<long>(line), [](long count) { read_counter(count); })};
    } else if (word == "single") {
      answer["p99"] = {single(take<long>(line))};
    } else if (word == "threads") {
      const auto count = take<int>(line);
      answer["ns"] = {threads(count, take<long>(line))};
    } else if (word == "beside-statistics") {
      const auto count = take<int>(line);
      beside_statistics(allocator_, requests_.sizes.at(0), count, take<double>(line));
    } else if (word == "crowd") {
      const auto count = take<std::size_t>(line);
      answer["done"] = {crowd(count, take<double>(line)) ? 1.0 : 0.0};
    } else if (word == "warm-up") {
      const double start = wall_nanoseconds();
      warm_up();
      answer["ns"] = {wall_nanoseconds() - start};
    } else if (word == "plan") {
      for (const char* name : {"hits", "misses", "unplanned"}) {
        answer[name] = {plan_count(name)};
      }
    } else if (word == "replay") {
      const auto path = take<std::string>(line);
      answer = replay(allocator_, path, kPaces.at(take<std::string>(line)));
    } else if (word == "pins") {
      answer["bytes"] = {counted().bytes};
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

  template <typename Run>
  static double per_one(long count, Run run) {
    // The others' turns have evicted the processor's caches.
    run(count / 4);
    const double start = thread_nanoseconds();
    run(count);
    return (thread_nanoseconds() - start) / static_cast<double>(count);
  }

  // The time that one of a hundred exceeds. Clocks of virtual machines tick in steps of 10 ns and more, so that thousands of
  // calls share a value; interpolates among equal values, half way to the neighbours.
  double single(long count) {
    loop().run(count / 4);
    std::vector<double> sorted = loop().run_timed(count);
    std::sort(sorted.begin(), sorted.end());
    const double place = 0.99 * static_cast<double>(sorted.size());
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

  // Allocates until `count` blocks of 4 KiB are live, each with a free one beside it if the allocator places them side by side.
  // Existing blocks stay. False if it stopped after `seconds`.
  bool crowd(std::size_t count, double seconds) {
    constexpr std::size_t bytes = 4096;
    const double end = wall_nanoseconds() + seconds * 1e9;
    auto in_time = [end, done = 0]() mutable {
      return ++done % 64 != 0 || wall_nanoseconds() < end;
    };
    std::vector<at::DataPtr> between;
    while (crowd_.size() < count) {
      if (!in_time()) {
        return false;
      }
      crowd_.push_back(allocator_->allocate(bytes));
      between.push_back(allocator_->allocate(bytes));
    }
    for (at::DataPtr& block : between) {
      if (!in_time()) {
        // Freeing the rest would take equally long.
        new std::vector<at::DataPtr>(std::move(between));
        return false;
      }
      block.clear();
    }
    return true;
  }

  at::HostAllocator* const allocator_;
  std::vector<at::DataPtr> crowd_;
  Requests requests_;
  std::unique_ptr<Loop> loop_;
  std::unique_ptr<Threads> threads_;
  int thread_count_ = 0;
};

} // namespace

int main() {
  {
    Harness harness(at::getHostAllocator(at::kCUDA));
    std::string words;
    while (std::getline(std::cin, words)) {
      std::istringstream line(words);
      try {
        std::cout << text(harness.obey(line)) << std::endl;
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
