#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "controller/executor/run_state.h"

/// What became of a run's undo, node by node.
namespace verger::controller {

enum class UndoOutcome : std::uint8_t {
  kUndone,     ///< all of it was seen at the node
  kNotUndone,  ///< something of it was not: a person has to
  kUnderWay,
};
std::string_view to_string(UndoOutcome outcome);

struct NodeUndo {
  std::string node;  ///< empty: what belongs to no node
  UndoOutcome outcome = UndoOutcome::kUnderWay;
  std::optional<Ticks> at;            ///< when the last of it was seen or given up
  std::string reason;                 ///< why it is not undone
  std::vector<std::string> commands;  ///< that a person runs; empty: none is known
};

/// Of the nodes at which something was or is being undone, by their names.
std::vector<NodeUndo> undo_report(const RunState& run);

/// "n2 is not undone (lower-n2: ...); run: curl ..." for each such node; empty: all are undone.
std::string not_undone_text(const RunState& run);

}  // namespace verger::controller
