#include "controller/executor/step_kinds.h"

namespace verger::controller {

StepKinds standard_step_kinds() {
  StepKinds kinds;
  kinds.add(make_scavenge_step());
  kinds.add(make_resign_step());
  kinds.add(make_start_server_step());
  kinds.add(make_set_priority_step());
  kinds.add(make_note_server_work_step());
  kinds.add(make_check_server_work_step());
  kinds.add(make_scavenge_point_step());
  kinds.add(make_offline_scavenge_step());
  kinds.add(make_pause_auto_scavenge_step());
  kinds.add(make_resume_auto_scavenge_step());
  kinds.add(make_record_digest_step());
  kinds.add(make_digest_step());
  kinds.add(make_compare_digests_step());
  return kinds;
}

}  // namespace verger::controller
