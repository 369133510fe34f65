# What `./dev lint` reads; only in the preset lint, which builds nothing else.
#
# lint_FOLDER: all sources below a folder of the first level, as one translation unit. clang-tidy
# checks each declaration it is given, also Boost's: that takes 20 s in a unit of any size, so
# there are few, and no precompiled headers. Names in unnamed namespaces are therefore unique below
# such a folder, as far as the namespace around them is the same.
get_property(verger_libraries GLOBAL PROPERTY VERGER_LIBRARIES)
foreach(folder engine planner nodeagent controller)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.cpp)
  add_library(lint_${folder} OBJECT EXCLUDE_FROM_ALL ${sources})
  target_link_libraries(lint_${folder} PRIVATE ${verger_libraries})
  target_compile_definitions(lint_${folder} PRIVATE VERGER_VERSION="${PROJECT_VERSION}")
  # Several programs, each with its main.
  set_target_properties(lint_${folder} PROPERTIES
    EXPORT_COMPILE_COMMANDS ON
    UNITY_BUILD_BATCH_SIZE 0
    UNITY_BUILD_UNIQUE_ID VERGER_LINT_MAIN
    UNITY_BUILD_CODE_BEFORE_INCLUDE "#define main VERGER_LINT_MAIN"
    UNITY_BUILD_CODE_AFTER_INCLUDE "#undef main")
endforeach()

# lint_headers: each header alone in a unit of its own, so that it includes all it needs of ours.
# Those of libraries are precompiled, and no object is written: that would take ten times as long.
file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR} engine/*.h planner/*.h
  nodeagent/*.h controller/*.h)
set(units "")
foreach(header IN LISTS headers)
  set(unit ${CMAKE_BINARY_DIR}/headers/${header}.cpp)
  file(CONFIGURE OUTPUT ${unit} CONTENT "#include \"${header}\"\n" @ONLY)
  list(APPEND units ${unit})
endforeach()
add_library(lint_headers OBJECT EXCLUDE_FROM_ALL ${units})
target_link_libraries(lint_headers PRIVATE ${verger_libraries})
target_include_directories(lint_headers PRIVATE ${PROJECT_SOURCE_DIR})
target_compile_options(lint_headers PRIVATE -fsyntax-only)
set_target_properties(lint_headers PROPERTIES UNITY_BUILD OFF CXX_COMPILER_LAUNCHER "")
verger_reuse_precompiled(lint_headers std TRUE TRUE)
