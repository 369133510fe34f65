#pragma once

namespace verger {

/// Of a unique_ptr to an object of a C library: std::unique_ptr<X509, Deleter<X509_free>>.
template <auto Free>
struct Deleter {
  template <class T>
  void operator()(T* object) const {
    Free(object);
  }
};

}  // namespace verger
