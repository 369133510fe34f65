#include "controller/executor/step_kinds.h"

namespace verger::controller {

void add_common_step_kinds(StepKinds& kinds) {
  kinds.add(make_resign_step());
  kinds.add(make_start_server_step());
  kinds.add(make_set_priority_step());
  kinds.add(make_note_server_work_step());
  kinds.add(make_check_server_work_step());
}

}  // namespace verger::controller
