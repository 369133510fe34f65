# verger_library(NAME [NET] [CLI] DEPENDS ... LIBS ... [SOURCES ...])   the *.cpp and *.h of the folder,
#   and of the folders in it that have no target of their own (detail/, operations), are the target
#   NAME; SOURCES: patterns, where a folder has several
# verger_program(NAME [NET] MAIN file.cpp DEPENDS ...)
# verger_test(NAME [NET] DEPENDS ... [LIBS ...] [LABEL unit|integration|e2e|fault|simulation]
#   [TIMEOUT s] [PROCESSORS n])
# NET: the precompiled header with Asio and JSON (cmake/PrecompiledHeaders.cmake); CLI: with CLI11
#   and JSON
#   every *.cpp below the folder is one GoogleTest binary; each of its tests is a ctest test of its own.
#   PROCESSORS: places it takes of a test run (./dev test), where others beside it would disturb it
include(GNUInstallDirs)

set(CMAKE_CXX_STANDARD 23)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
if(NOT VERGER_LINT)
  set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
endif()
set(CMAKE_POSITION_INDEPENDENT_CODE OFF)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)

add_compile_options(-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion
  -Wold-style-cast -Wnon-virtual-dtor -Woverloaded-virtual)
if(VERGER_WERROR)
  add_compile_options(-Werror)
endif()
if(VERGER_SANITIZE)
  add_compile_options(-fsanitize=${VERGER_SANITIZE} -fno-omit-frame-pointer
    -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${VERGER_SANITIZE})
endif()
if(VERGER_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
  # For what no fuzzer runs: tests, and the libraries that tests/fuzz does not use.
  set(verger_without_coverage -fno-sanitize-coverage=edge,indirect-calls,trace-cmp,inline-8bit-counters,pc-table,stack-depth)
endif()
if(CMAKE_BUILD_TYPE STREQUAL "Debug")
  add_compile_definitions(_GLIBCXX_ASSERTIONS)
endif()
if(VERGER_FAILPOINTS)
  add_compile_definitions(VERGER_FAILPOINTS=1)
endif()

find_program(VERGER_CCACHE ccache)
if(VERGER_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
    CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
    ${VERGER_CCACHE})
  # ccache compares the content of a precompiled header, so it must not hold a time stamp.
  add_compile_options("SHELL:-Xclang -fno-pch-timestamp")
endif()

# A word that no keyword takes is a slip of the pen that would otherwise be ignored.
function(verger_reject_leftovers name)
  if(ARGN)
    message(FATAL_ERROR "${name}: not understood: ${ARGN}")
  endif()
endfunction()

# family: std, or test (with GoogleTest); net: TRUE where the target uses Asio and JSON; cli: TRUE
# where it uses CLI11
function(verger_reuse_precompiled name family net cli)
  if(net)
    set(family ${family}_net)
  endif()
  if(cli)
    set(family ${family}_cli)
    target_compile_options(${name} PRIVATE ${verger_cold})
  endif()
  target_precompile_headers(${name} REUSE_FROM precompiled_${family})
endfunction()

function(verger_library name)
  cmake_parse_arguments(ARG "NET;CLI" "" "DEPENDS;LIBS;SOURCES" ${ARGN})
  verger_reject_leftovers(${name} ${ARG_UNPARSED_ARGUMENTS})
  if(NOT ARG_SOURCES)
    set(ARG_SOURCES *.cpp */*.cpp)
  endif()
  file(GLOB sources CONFIGURE_DEPENDS ${ARG_SOURCES})
  file(GLOB headers CONFIGURE_DEPENDS *.h */*.h)
  file(GLOB others */CMakeLists.txt)  # targets of their own
  list(TRANSFORM others REPLACE "/CMakeLists\\.txt$" "/")
  foreach(other IN LISTS others)
    list(FILTER sources EXCLUDE REGEX "^${other}")
    list(FILTER headers EXCLUDE REGEX "^${other}")
  endforeach()
  list(FILTER sources EXCLUDE REGEX "_main\\.cpp$")
  if(NOT sources)
    add_library(${name} INTERFACE)
    target_include_directories(${name} INTERFACE ${PROJECT_SOURCE_DIR})
    target_link_libraries(${name} INTERFACE ${ARG_DEPENDS} ${ARG_LIBS} fmt::fmt)
    return()
  endif()
  add_library(${name} STATIC ${sources})
  target_sources(${name} PUBLIC FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR} FILES ${headers})
  set_property(GLOBAL APPEND PROPERTY VERGER_LIBRARIES ${name})
  target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PUBLIC ${ARG_DEPENDS} ${ARG_LIBS} fmt::fmt)
  verger_reuse_precompiled(${name} std "${ARG_NET}" "${ARG_CLI}")
endfunction()

function(verger_program name)
  cmake_parse_arguments(ARG "NET" "MAIN" "DEPENDS;LIBS" ${ARGN})
  verger_reject_leftovers(${name} ${ARG_UNPARSED_ARGUMENTS})
  add_executable(${name} ${ARG_MAIN})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${ARG_DEPENDS} ${ARG_LIBS})
  verger_reuse_precompiled(${name} std "${ARG_NET}" FALSE)
endfunction()

include(GoogleTest OPTIONAL)
function(verger_test name)
  cmake_parse_arguments(ARG "NET" "LABEL;TIMEOUT;PROCESSORS" "DEPENDS;LIBS" ${ARGN})
  verger_reject_leftovers(${name} ${ARG_UNPARSED_ARGUMENTS})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS *.cpp)
  if(NOT sources)
    return()
  endif()
  if(NOT ARG_LABEL)
    set(ARG_LABEL unit)
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 60)
  endif()
  add_executable(${name} ${sources})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${ARG_DEPENDS} ${ARG_LIBS} test_support GTest::gmock
    GTest::gtest_main)
  target_compile_definitions(${name} PRIVATE
    VERGER_TEST_FIXTURES="${PROJECT_SOURCE_DIR}/tests/fixtures"
    VERGER_BIN_DIR="${CMAKE_BINARY_DIR}/bin")
  target_compile_options(${name} PRIVATE ${verger_without_coverage})
  verger_reuse_precompiled(${name} test "${ARG_NET}" FALSE)
  if(NOT ARG_PROCESSORS)
    set(ARG_PROCESSORS 1)
  endif()
  # COST: what may take longest starts first, so that no long test is left alone at the end.
  gtest_discover_tests(${name} TEST_PREFIX "${name}." DISCOVERY_TIMEOUT 60
    PROPERTIES LABELS ${ARG_LABEL} TIMEOUT ${ARG_TIMEOUT} COST ${ARG_TIMEOUT}
      PROCESSORS ${ARG_PROCESSORS})
endfunction()
