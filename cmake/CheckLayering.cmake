# Who may include whom: the table of docs/architecture.md, checked on every #include.
# Run by ctest as "layering", or by hand: cmake -P cmake/CheckLayering.cmake
#
# Below the table: the core names no operation (docs/decisions/0020-operations-are-modules.md). With
# -DPROBE=FILE that file is read as a part of the core, too: the test "layering_finds_a_name" sees
# that the rule can fail.
cmake_policy(VERSION 3.25)
get_filename_component(root "${CMAKE_CURRENT_LIST_DIR}/.." ABSOLUTE)

# allow(FOLDER prefixes of our own headers... | libraries...)
set(folders "")
macro(allow folder)
  cmake_parse_arguments(ARG "" "" "OURS;LIBS" ${ARGN})
  list(APPEND folders "${folder}")
  set(ours_${folder} ${folder}/ ${ARG_OURS})
  set(libs_${folder} ${ARG_LIBS})
endmacro()

set(LIB_fmt "^fmt/")
set(LIB_sqlite "^sqlite3\\.h$")
set(LIB_openssl "^openssl/")
set(LIB_json "^nlohmann/")
set(LIB_asio "^boost/(asio|system)[./]")
set(LIB_beast "^boost/beast")
set(LIB_spdlog "^spdlog/")
set(LIB_cli11 "^CLI/")
set(LIB_yaml "^yaml-cpp/")
set(LIB_date "^date/")
set(LIB_zstd "^zstd\\.h$")
set(LIB_prometheus "^prometheus/")
set(LIB_curl "^curl/")
set(LIB_nghttp2 "^nghttp2/")
set(LIB_protobuf "^(google/protobuf|event_store)/")
set(LIB_zlib "^zlib\\.h$")
set(known_libraries fmt sqlite openssl json asio beast spdlog cli11 yaml date prometheus
  curl zstd nghttp2 protobuf zlib)

allow(engine/base LIBS fmt sqlite openssl)
allow(engine/logging OURS engine/base/ LIBS spdlog)
allow(engine/settings OURS engine/base/ LIBS fmt yaml)
allow(engine/manual OURS engine/base/ LIBS fmt cli11)
allow(engine/log OURS engine/base/ LIBS fmt json)
allow(engine/index OURS engine/base/ engine/log/ LIBS fmt)
allow(engine/streams OURS engine/base/ engine/log/ engine/index/ LIBS fmt json)
allow(engine/scavenge OURS engine/base/ engine/log/ engine/index/ engine/streams/ LIBS fmt json)
allow(engine/redaction OURS engine/base/ engine/log/ engine/index/ engine/streams/ engine/scavenge/
  LIBS fmt json)
allow(engine/online OURS engine/base/ engine/log/ engine/index/ engine/streams/ engine/scavenge/
  LIBS fmt json)
allow(engine/verify OURS engine/base/ engine/log/ engine/index/ engine/streams/ engine/scavenge/
  LIBS fmt)
allow(engine/backup OURS engine/base/ engine/log/ engine/index/ engine/streams/ engine/scavenge/
  LIBS fmt json zstd)
allow(engine/object_store OURS engine/base/ engine/backup/ LIBS fmt curl)
allow(engine/repositories OURS engine/base/ engine/backup/ engine/object_store/ LIBS fmt)
allow(engine/tool OURS engine/ LIBS fmt json cli11)
allow(planner OURS engine/base/ LIBS fmt)
allow(nodeagent/http OURS engine/base/ nodeagent/certificates/ LIBS fmt asio beast openssl
  nghttp2)
allow(nodeagent/grpc OURS engine/base/ nodeagent/http/ LIBS fmt asio protobuf zlib)
allow(nodeagent/api OURS engine/base/ nodeagent/http/ LIBS fmt json)
allow(nodeagent/client OURS engine/base/ nodeagent/api/ nodeagent/http/ nodeagent/grpc/
  LIBS fmt json asio protobuf)
allow(nodeagent/certificates OURS engine/base/ LIBS fmt openssl)
allow(nodeagent/node/persistent OURS engine/ LIBS fmt json)
allow(nodeagent/node OURS engine/ nodeagent/http/ nodeagent/api/ nodeagent/grpc/
  LIBS fmt json asio openssl prometheus protobuf)
allow(nodeagent/external OURS engine/ nodeagent/http/ nodeagent/api/ nodeagent/client/
  nodeagent/certificates/ nodeagent/node/ LIBS fmt json asio)
allow(nodeagent/operations OURS engine/ nodeagent/http/ nodeagent/api/ nodeagent/client/
  nodeagent/certificates/ nodeagent/node/ nodeagent/external/ nodeagent/redaction/
  LIBS fmt json asio)
allow(nodeagent/redaction OURS engine/ nodeagent/http/ nodeagent/client/ nodeagent/node/
  LIBS fmt asio cli11)
allow(nodeagent/daemon OURS engine/ nodeagent/ LIBS fmt json asio)
set(controller_base planner/ engine/base/ nodeagent/http/ nodeagent/api/ nodeagent/client/
  nodeagent/certificates/)
allow(controller/journal OURS engine/base/ nodeagent/http/ LIBS fmt json asio)
allow(controller/cluster OURS ${controller_base} controller/journal/ LIBS fmt json asio)
allow(controller/executor OURS ${controller_base} controller/journal/ controller/cluster/
  LIBS fmt json asio)
allow(controller/operations OURS ${controller_base} controller/journal/ controller/cluster/
  controller/executor/ LIBS fmt json asio)
allow(controller/scheduler OURS ${controller_base} controller/journal/ controller/cluster/
  controller/executor/ LIBS fmt json asio yaml date)
allow(controller/api OURS ${controller_base} controller/journal/ controller/cluster/
  controller/executor/ controller/operations/ controller/scheduler/ LIBS fmt json asio prometheus)
# The dashboard is served around the API, and uses it alone.
allow(controller/web OURS engine/base/ nodeagent/http/ nodeagent/api/ LIBS fmt json asio)
# The command line knows the controller by its HTTP API alone, and what may be asked of it by the
# table of operations. `verger cert` works on local files.
allow(controller/cli OURS engine/base/ engine/manual/ nodeagent/http/ nodeagent/certificates/ planner/operations.h
  LIBS fmt json asio cli11 yaml)
# The controller's own main file puts the parts together.
allow(controller/daemon OURS engine/base/ engine/logging/ engine/settings/ planner/ nodeagent/http/ nodeagent/api/
  nodeagent/client/ nodeagent/certificates/ controller/ LIBS fmt json asio curl)

set(problems "")
file(GLOB_RECURSE sources RELATIVE "${root}"
  "${root}/engine/*.h" "${root}/engine/*.cpp" "${root}/planner/*.h" "${root}/planner/*.cpp"
  "${root}/nodeagent/*.h" "${root}/nodeagent/*.cpp" "${root}/controller/*.h"
  "${root}/controller/*.cpp")
list(LENGTH sources source_count)
if(source_count LESS 20)
  message(FATAL_ERROR "layering: only ${source_count} files found below ${root}")
endif()

foreach(source IN LISTS sources)
  get_filename_component(folder "${source}" DIRECTORY)
  set(in_detail FALSE)
  if(folder MATCHES "/detail$")
    string(REGEX REPLACE "/detail$" "" folder "${folder}")
  endif()
  # Step kinds, commands and the like live in a folder of their module.
  if(NOT folder IN_LIST folders)
    get_filename_component(parent "${folder}" DIRECTORY)
    if(parent IN_LIST folders)
      set(folder "${parent}")
    else()
      list(APPEND problems "${source}: its folder is not in the table of cmake/CheckLayering.cmake")
      continue()
    endif()
  endif()
  file(STRINGS "${root}/${source}" includes REGEX "^[ \t]*#[ \t]*include")
  foreach(line IN LISTS includes)
    if(line MATCHES "\"([^\"]+)\"")
      set(header "${CMAKE_MATCH_1}")
      set(allowed FALSE)
      foreach(prefix IN LISTS ours_${folder})
        string(FIND "${header}" "${prefix}" at)
        if(at EQUAL 0)
          set(allowed TRUE)
        endif()
      endforeach()
      # spdlog is chosen in the main files.
      if(source MATCHES "_main\\.cpp$" AND header MATCHES "^engine/logging/")
        set(allowed TRUE)
      endif()
      if(NOT allowed)
        list(APPEND problems "${source}: must not include ${header}")
      elseif(header MATCHES "/detail/" AND NOT header MATCHES "^${folder}/detail/")
        list(APPEND problems "${source}: ${header} belongs to another module's inside")
      elseif(NOT EXISTS "${root}/${header}")
        list(APPEND problems "${source}: ${header} does not exist")
      endif()
    elseif(line MATCHES "<([^>]+)>")
      set(header "${CMAKE_MATCH_1}")
      foreach(library IN LISTS known_libraries)
        if(header MATCHES "${LIB_${library}}" AND NOT library IN_LIST libs_${folder})
          list(APPEND problems "${source}: must not use ${library} (<${header}>)")
        endif()
      endforeach()
    endif()
  endforeach()
  if(source MATCHES "^planner/")
    file(STRINGS "${root}/${source}" clocks REGEX "::now\\(|std::thread|std::this_thread|<fstream>|<iostream>")
    foreach(line IN LISTS clocks)
      list(APPEND problems "${source}: no I/O, clock or thread in the planner: ${line}")
    endforeach()
  endif()
endforeach()

# The core names no operation. An operation is a folder in planner/; the tables of operations are
# outside of the core. What counts as its name: its folders, its name as a text, its struct and its
# namespace; or what is set here, where the name is no common word.
set(names_scavenge "[Ss]caveng")  # in comments, too
# Every part knows certificates: files, members of JSON and a gate are called so.
set(names_certificates
  "(planner|operations)/certificates/|certificates_of\\(|CertificatesPolicy|certificate_steps|certificate_change")
# Commands, routes and members of JSON are called so.
set(names_backup "(planner|operations)/backup/|backup_of\\(|BackupPolicy|backup_steps|backups::")
# To restore is what undo does, too.
set(names_restore
  "(planner|operations)/restore/|restore_of\\(|RestorePolicy|restore_steps|cluster_restore")
# Backups and engine/verify verify, too.
set(names_verify "(planner|operations)/verify/|verify_of\\(|VerifyPolicy|verify_steps")
# An operation that uses the steps of another one.
set(growth_builds_on restore)
set(redaction_builds_on scavenge backup restore)
set(verify_and_heal_build_on scavenge)
set(resize_builds_on growth restore)
file(GLOB operations RELATIVE "${root}/planner" "${root}/planner/*")
list(FILTER operations EXCLUDE REGEX "\\.|^detail$|^README")
set(tables planner/operation_policy.h
  controller/operations/operation_modules.cpp controller/cli/operations/reports.h
  controller/cli/operations/reports.cpp nodeagent/operations/detail/operation_runner.cpp)
# What a node shows of itself, and what the API says of that: facts that no operation owns.
set(facts planner/snapshot.h planner/snapshot.cpp planner/gate_table.cpp
  planner/node_work.h planner/node_work.cpp planner/detail/gate_checks.h
  planner/detail/gates_of_work.cpp controller/api/openapi.cpp controller/api/views.cpp
  controller/cli/cluster_commands.cpp)
set(core_count 0)
foreach(source IN LISTS sources PROBE)
  if(source STREQUAL "${PROBE}")
    set(file "${source}")
  elseif(source MATCHES "^(planner|controller/(executor|scheduler|api|cli|operations)|nodeagent/operations/detail)/"
      AND NOT source IN_LIST tables AND NOT source IN_LIST facts)
    set(file "${root}/${source}")
  else()
    continue()
  endif()
  math(EXPR core_count "${core_count} + 1")
  foreach(operation IN LISTS operations)
    if(NOT source STREQUAL "${PROBE}" AND
        (source MATCHES "^planner/${operation}/|/operations/${operation}/" OR source MATCHES "/operations/${operation}_"))
      continue()
    endif()
    if(source MATCHES "(planner|operations)/growth/" AND operation IN_LIST growth_builds_on)
      continue()
    endif()
    if(source MATCHES "(planner|operations)/redaction/" AND operation IN_LIST redaction_builds_on)
      continue()
    endif()
    if(source MATCHES "(planner|operations)/(verify|heal)/" AND operation IN_LIST verify_and_heal_build_on)
      continue()
    endif()
    if(source MATCHES "(planner|operations)/resize/" AND operation IN_LIST resize_builds_on)
      continue()
    endif()
    string(SUBSTRING "${operation}" 0 1 initial)
    string(SUBSTRING "${operation}" 1 -1 others)
    string(TOUPPER "${initial}" capital)
    set(names "/${operation}/|\"${operation}\"|${operation}_of\\(|${operation}::|${capital}${others}Policy")
    # That one runs on a node is a fact, which other operations look at, too.
    set(is_fact FALSE)
    if(operation STREQUAL "scavenge" AND source MATCHES "^planner/[a-z]+/|/operations/[a-z]+/|/cli/operations/[a-z]+_"
        AND NOT source MATCHES "/detail/")
      set(is_fact TRUE)
    endif()
    if(DEFINED names_${operation} AND NOT is_fact)
      set(names "${names_${operation}}")
    endif()
    file(STRINGS "${file}" lines REGEX "${names}")
    foreach(line IN LISTS lines)
      string(STRIP "${line}" line)
      list(APPEND problems "${source}: a part of the core names the operation ${operation}: ${line}")
    endforeach()
  endforeach()
endforeach()
if(NOT operations OR core_count LESS 100)
  list(APPEND problems "the rule of operations looks at nothing: operations \"${operations}\", ${core_count} files")
endif()

if(problems)
  list(JOIN problems "\n  " text)
  message(FATAL_ERROR "layering:\n  ${text}")
endif()
message(STATUS "layering: ${source_count} files keep to the table")
