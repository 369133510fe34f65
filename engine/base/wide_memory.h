#pragma once

#include <cstddef>
#include <memory>
#include <new>
#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace verger {

/// For large tables that are looked into at random: large pages where the system has them, since
/// finding a small page costs as much as reading from it.
template <class T>
class WideMemory {
 public:
  using value_type = T;
  WideMemory() = default;
  template <class Other>
  explicit(false) WideMemory(const WideMemory<Other>& /*other*/) {}  // the same for every type

  T* allocate(std::size_t count) {
    const auto size = count * sizeof(T);
    auto* memory = ::operator new(size, alignment(size));
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    if (size >= kWidePage) {
      // Whether it is done or not, the memory is the same.
      static_cast<void>(::madvise(memory, size, MADV_HUGEPAGE));
    }
#endif
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, std::size_t count) {
    ::operator delete(memory, alignment(count * sizeof(T)));
  }
  friend bool operator==(const WideMemory&, const WideMemory&) = default;

 private:
  static constexpr std::size_t kWidePage = std::size_t{2} << 20U;
  static constexpr std::size_t kCacheLine = 64;
  static std::align_val_t alignment(std::size_t size) {
    return std::align_val_t(size >= kWidePage ? kWidePage : kCacheLine);
  }
};

}  // namespace verger
