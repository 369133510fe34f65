# Words that documents and messages must not use: docs/glossary.md. Checks documents as a whole, and
# the string literals of the programs' sources.
# Run by ctest as "words", or by hand: cmake -P cmake/CheckWords.cmake
# With -DROOT=DIR before -P it checks another tree (tests/words).
cmake_policy(VERSION 3.25)
if(NOT DEFINED ROOT)
  get_filename_component(ROOT "${CMAKE_CURRENT_LIST_DIR}/.." ABSOLUTE)
endif()

# avoid(WORDS... USE text): lower case, a blank stands for any white space.
set(avoided "")
macro(avoid)
  cmake_parse_arguments(ARG "" "USE" "" ${ARGN})
  foreach(phrase IN LISTS ARG_UNPARSED_ARGUMENTS)
    list(APPEND avoided "${phrase}")
    set("use_${phrase}" "${ARG_USE}")
  endforeach()
endmacro()

avoid("any more" USE "no longer")
avoid("taken back" "take back" USE "revoked, undone")
avoid("takes back" USE "revokes, undoes")
avoid("come to nothing" "comes to nothing" "came to nothing" USE "failed, missed")
avoid("goes on" USE "continues, resumes")
avoid("go on" "went on" "going on" USE "continue, resume")
avoid("was told" "is told" "are told" "were told" "be told" "being told" "told otherwise"
  USE "received, is notified, is configured")
avoid("nobody" "somebody" "anybody" "whoever"
  USE "the actor: another client, an operator, another process")
avoid("everybody" USE "every user, every client")
avoid("stands by" "stand by" "stood by" USE "is on standby")
avoid("standing by" USE "on standby")
avoid("who acts" USE "the active controller")
avoid("a person" USE "an operator")
avoid("mended" "said so" USE "fixed, reported")

# match(FILE PHRASES): appends to `problems` each place of a phrase in `text`, as FILE:LINE. Newlines
# of the text are those of the file.
function(match file phrases)
  foreach(phrase IN LISTS ${phrases})
    string(REPLACE " " "[ \t\n]+" pattern "${phrase}")
    set(rest "${text}")
    set(line 1)
    while(rest MATCHES "(^|[^a-z-])${pattern}($|[^a-z-])")
      set(found "${CMAKE_MATCH_0}")
      string(FIND "${rest}" "${found}" at)
      string(SUBSTRING "${rest}" 0 ${at} before)
      string(REGEX REPLACE "[^\n]" "" breaks "${before}")
      if(found MATCHES "^\n")
        string(APPEND breaks "\n")
      endif()
      string(LENGTH "${breaks}" count)
      math(EXPR place "${line} + ${count}")
      list(APPEND problems "${file}:${place}: not \"${phrase}\" but: ${use_${phrase}}")
      string(LENGTH "${found}" length)
      math(EXPR at "${at} + ${length} - 1")
      string(SUBSTRING "${rest}" 0 ${at} before)
      string(SUBSTRING "${rest}" ${at} -1 rest)
      string(REGEX REPLACE "[^\n]" "" breaks "${before}")
      string(LENGTH "${breaks}" count)
      math(EXPR line "${line} + ${count}")
    endwhile()
  endforeach()
  set(problems "${problems}" PARENT_SCOPE)
endfunction()

# Brackets and semicolons would make lists of the text.
macro(read_lower file)
  file(READ "${ROOT}/${file}" text)
  string(TOLOWER "${text}" text)
  string(REPLACE ";" "," text "${text}")
  string(REPLACE "[" "(" text "${text}")
  string(REPLACE "]" ")" text "${text}")
endmacro()

set(problems "")
file(GLOB_RECURSE documents RELATIVE "${ROOT}" "${ROOT}/*.md")
file(GLOB_RECURSE configurations RELATIVE "${ROOT}" "${ROOT}/policies/*.yaml"
  "${ROOT}/policies/*.json" "${ROOT}/examples/*.yaml" "${ROOT}/examples/*.yml"
  "${ROOT}/examples/*.service")
list(APPEND documents ${configurations})
# The glossary has the list; what is built or fetched is not ours.
list(FILTER documents EXCLUDE REGEX "^(docs/glossary\\.md$|build/|.*/node_modules/|\\.)")
foreach(document IN LISTS documents)
  read_lower("${document}")
  # Names of gates, members, codes and quoted output are in backquotes.
  string(REGEX REPLACE "`[^`\n]*`" "``" text "${text}")
  match("${document}" avoided)
endforeach()

file(GLOB_RECURSE sources RELATIVE "${ROOT}"
  "${ROOT}/engine/*.h" "${ROOT}/engine/*.cpp" "${ROOT}/planner/*.h" "${ROOT}/planner/*.cpp"
  "${ROOT}/nodeagent/*.h" "${ROOT}/nodeagent/*.cpp" "${ROOT}/controller/*.h"
  "${ROOT}/controller/*.cpp")
list(JOIN avoided "|" any_of_them)
string(REPLACE " " "[ \t\n\"]+" any_of_them "${any_of_them}")
foreach(source IN LISTS sources)
  read_lower("${source}")
  if(NOT text MATCHES "${any_of_them}")
    continue()
  endif()
  # Literals beside each other are one; its line breaks still count.
  string(REGEX REPLACE "\"[ \t]*\n[ \t]*\"" "\n" text "${text}")
  string(REGEX MATCHALL "\"([^\"\\\\]|\\\\.)*\"|//[^\n]*|'([^'\\\\\n]|\\\\.)'|\n" tokens "${text}")
  set(literals "")
  foreach(token IN LISTS tokens)
    if(token STREQUAL "\n")
      string(APPEND literals "\n")
    elseif(token MATCHES "^\"" AND NOT token MATCHES "^\"[a-z_-]*\"$")  # a single word is a code
      string(APPEND literals "${token}")
    endif()
  endforeach()
  set(text "${literals}")
  match("${source}" avoided)
endforeach()

list(LENGTH documents document_count)
list(LENGTH sources source_count)
if(document_count EQUAL 0 OR source_count EQUAL 0)
  message(FATAL_ERROR "words: nothing to check below ${ROOT}")
endif()
if(problems)
  list(JOIN problems "\n" text)
  message(NOTICE "${text}")
  message(FATAL_ERROR "words: docs/glossary.md has the standard ones")
endif()
message(STATUS "words: ${document_count} documents and ${source_count} sources use standard ones")
