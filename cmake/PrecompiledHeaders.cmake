# Six headers are precompiled, once for the whole tree, instead of one for each target:
#   std, std_net (+ Asio and JSON), std_cli (+ CLI11 and JSON), std_net_cli (+ all three),
#   test (+ GoogleTest), test_net (+ GoogleTest, Asio and JSON)
# What reads arguments is compiled without optimisation in Debug: a third of the time.
set(verger_cold $<$<CONFIG:Debug>:-O0>)
function(verger_precompile family)
  cmake_parse_arguments(ARG "" "" "HEADERS;LIBS" ${ARGN})
  set(name precompiled_${family})
  set(source ${CMAKE_BINARY_DIR}/precompiled/${name}.cpp)
  file(CONFIGURE OUTPUT ${source} CONTENT "// Only here for its precompiled header.\n" @ONLY)
  add_library(${name} OBJECT ${source})
  target_link_libraries(${name} PRIVATE fmt::fmt ${ARG_LIBS})
  target_precompile_headers(${name} PRIVATE ${ARG_HEADERS})
endfunction()

set(std <algorithm> <array> <chrono> <cstdint> <expected> <functional> <map> <memory> <optional>
  <span> <string> <string_view> <unordered_map> <utility> <variant> <vector> <fmt/format.h>)
set(net <boost/asio.hpp> <nlohmann/json.hpp>)
set(net_libs verger_boost nlohmann_json::nlohmann_json)

verger_precompile(std HEADERS ${std})
verger_precompile(std_net HEADERS ${std} ${net} LIBS ${net_libs})
set(cli <nlohmann/json.hpp> <CLI/CLI.hpp>)
set(cli_libs CLI11::CLI11 nlohmann_json::nlohmann_json)
verger_precompile(std_cli HEADERS ${std} ${cli} LIBS ${cli_libs})
verger_precompile(std_net_cli HEADERS ${std} ${net} ${cli} LIBS ${net_libs} ${cli_libs})
foreach(family std_cli std_net_cli)
  target_compile_options(precompiled_${family} PRIVATE ${verger_cold})
endforeach()
if(VERGER_TESTS)
  set(test <gtest/gtest.h> <gmock/gmock.h>)
  verger_precompile(test HEADERS ${std} ${test} LIBS GTest::gmock)
  verger_precompile(test_net HEADERS ${std} ${test} ${net} LIBS GTest::gmock ${net_libs})
endif()
