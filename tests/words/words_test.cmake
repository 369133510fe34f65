# cmake/CheckWords.cmake finds what it must find, where it is, and nothing else.
# Run by ctest as "words.check": cmake -DCHECK=…/CheckWords.cmake -DDIRECTORY=SCRATCH -P words_test.cmake
cmake_policy(VERSION 3.25)

# check(RESULT OUTPUT): runs the check on the tree in DIRECTORY.
function(check result output)
  execute_process(COMMAND "${CMAKE_COMMAND}" "-DROOT=${DIRECTORY}" -P "${CHECK}"
    RESULT_VARIABLE code OUTPUT_VARIABLE out ERROR_VARIABLE err)
  set(${result} "${code}" PARENT_SCOPE)
  set(${output} "${out}${err}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE "${DIRECTORY}")
check(code output)
if(code EQUAL 0)
  message(FATAL_ERROR "a tree without documents and sources passed:\n${output}")
endif()

# Nothing of this is a message or prose.
file(WRITE "${DIRECTORY}/docs/glossary.md" "| not | but |\n|---|---|\n| come to nothing | fails |\n")
file(WRITE "${DIRECTORY}/docs/gates.md" "The gate `nobody-acts` is open; nobody-acts too.\n")
file(WRITE "${DIRECTORY}/build/fetched.md" "It came to nothing.\n")
file(WRITE "${DIRECTORY}/engine/good.cpp" "// It came to nothing.
int came_to_nothing = f(\"one\");  // come to nothing \"two\"
auto quote = '\"'; /* came to nothing */ auto role = \"nobody\";
auto escaped = \"a \\\"quote\\\"\"; int come; int to; int nothing = g(\"failed [3 times]; retrying\");
")
check(code output)
if(NOT code EQUAL 0)
  message(FATAL_ERROR "a good tree failed:\n${output}")
endif()

file(WRITE "${DIRECTORY}/docs/bad.md" "One line.\n\nIt has come\nto nothing. Nobody [knows]; whoever\nasks.\n")
file(WRITE "${DIRECTORY}/policies/bad.yaml" "name: a\ndescription: What a person does\n")
file(WRITE "${DIRECTORY}/nodeagent/client/bad.cpp" "int a = 0;
auto url = log(\"https://example.com/ has come to nothing {} times\", '\"');
auto split = \"the due time comes to \"
             \"nothing; [again]\";
auto last = f(\"fine\", \"It came to nothing\");
")
check(code output)
if(code EQUAL 0)
  message(FATAL_ERROR "a bad tree passed:\n${output}")
endif()
string(REGEX MATCHALL "[a-z/]+\\.[a-z]+:[0-9]+: not \"[a-z ]+\"" found "${output}")
list(FILTER found EXCLUDE REGEX "^cmake/")
list(SORT found)
set(expected
  "docs/bad.md:3: not \"come to nothing\""
  "docs/bad.md:4: not \"nobody\""
  "docs/bad.md:4: not \"whoever\""
  "nodeagent/client/bad.cpp:2: not \"come to nothing\""
  "nodeagent/client/bad.cpp:3: not \"comes to nothing\""
  "nodeagent/client/bad.cpp:5: not \"came to nothing\""
  "policies/bad.yaml:2: not \"a person\"")
if(NOT found STREQUAL expected)
  list(JOIN found "\n  " found)
  list(JOIN expected "\n  " expected)
  message(FATAL_ERROR "found:\n  ${found}\nexpected:\n  ${expected}\noutput:\n${output}")
endif()
file(REMOVE_RECURSE "${DIRECTORY}")
