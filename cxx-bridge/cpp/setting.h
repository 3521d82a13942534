// A variable of this thread that is set for a while.
#pragma once

namespace pinbuddy {

// While it lives, the variable has the value.
template <class T>
class Setting {
 public:
  Setting(T& it, T value) : it_(it), before_(it) {
    it_ = value;
  }
  ~Setting() {
    it_ = before_;
  }
  Setting(const Setting&) = delete;
  Setting& operator=(const Setting&) = delete;

 private:
  T& it_;
  const T before_;
};

} // namespace pinbuddy
