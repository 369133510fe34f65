# Every library comes from a Debian 12 package; `./dev setup` lists them with the same names.
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(SQLite3 REQUIRED)
find_package(CURL 7.88 REQUIRED)
find_package(zstd REQUIRED)
find_package(Boost 1.81 REQUIRED)
find_package(CLI11 REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(date REQUIRED)
find_package(prometheus-cpp REQUIRED)
find_package(ZLIB REQUIRED)
find_package(Protobuf REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(nghttp2 REQUIRED IMPORTED_TARGET libnghttp2)

# For programs of one thread that allocates many small pieces, each for a short time: a fifth of what a
# node does for a request, and of a run of the simulation. Sanitizers have an allocator of their own.
add_library(verger_quick_allocator INTERFACE)
find_library(VERGER_TCMALLOC NAMES libtcmalloc_minimal.so.4)
if(VERGER_TCMALLOC AND NOT VERGER_SANITIZE)
  target_link_libraries(verger_quick_allocator INTERFACE ${VERGER_TCMALLOC})
endif()

# Asio and Beast are used header-only; coroutines need no separate switch with clang 19.
add_library(verger_boost INTERFACE)
target_link_libraries(verger_boost INTERFACE Boost::headers Threads::Threads)
target_compile_definitions(verger_boost INTERFACE
  BOOST_ASIO_NO_DEPRECATED BOOST_ASIO_DISABLE_CONCEPTS=0 BOOST_BEAST_USE_STD_STRING_VIEW)

if(VERGER_TESTS)
  find_package(GTest REQUIRED)
endif()
