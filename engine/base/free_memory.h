#pragma once

#include <cstdlib>  // defines __GLIBC__ where it is that library's
#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace verger {

/// Gives memory that was freed back to the system, where the allocator would keep it for later:
/// after a piece of work that needed much more than what follows.
inline void return_free_memory() {
#if defined(__GLIBC__)
  ::malloc_trim(0);
#endif
}

}  // namespace verger
