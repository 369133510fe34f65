#include "controller/api/openapi.h"

#include <algorithm>
#include <set>
#include <string>

#include <nlohmann/json.hpp>

#include "controller/api/routes.h"
#include "controller/api/schema_json.h"
#include "controller/operations/operation_modules.h"

namespace verger::controller {
namespace {

using nlohmann::json;

/// In the language of schema_json.h. What is not here is an object of any members.
constexpr ApiSchema kSchemas[] = {
    {"NewCluster",
     "name:string! nodes:NewNode[]! credentials:string trusted_roots:string labels:object "
     "reason:string",
     true},
    {"NewNode", "node:string! agent:string name:string", true},
    {"Cluster",
     "name:string! nodes:Node[]! credentials:string! trusted_roots:string! labels:object! "
     "paused:boolean! pause_reason:string?! pause_until:time?! snapshot:Snapshot "
     "active_run:ActiveRun? last_success:LastSuccess? look:ClusterLook notice:string"},
    {"NewDiscovery",
     "url:string! name:string credentials:string trusted_roots:string agent_port:integer", true},
    {"Discovery", "asked:string! nodes:DiscoveredNode[]! notes:string[]! registration:NewCluster!"},
    {"DiscoveredNode",
     "name:string! url:string! agent:string?! agent_enrolled_as:string?! state:string! "
     "is_alive:boolean! is_read_only_replica:boolean! version:string! registered_in:string?!"},
    {"ActiveRun", "id:string! state:string! started_at:time!"},
    {"LastSuccess", "run:string! finished_at:time! space_saved:integer?"},
    {"ClusterLook", "taken_at:time! leader:string?! nodes_up:integer! nodes_down:integer!"},
    {"ClusterChanges",
     "nodes:NewNode[] credentials:string trusted_roots:string labels:object "
     "remove_labels:string[] reason:string",
     true},
    {"Node", "name:string! node:string! agent:string"},
    {"Snapshot",
     "taken_at:time! leader:string?! strangers:string[]! warnings:string[]! nodes:Member[]!"},
    {"Member",
     "name:string! url:string! agent_url:string! reachable:boolean! agent_reachable:boolean?! "
     "agent_version:string?! instance_id:string! version:string! state:string! is_alive:boolean! "
     "is_read_only_replica:boolean! writer_checkpoint:integer?! last_commit_position:integer?! "
     "epoch_number:integer?! node_priority:integer! lag_bytes:integer?! clock_ahead_ms:integer?! "
     "clock_error_ms:integer?! database_bytes:integer?! "
     "event_count:integer?! disk_free_bytes:integer?! chunk_files:integer?! "
     "lost_streams:integer?! running_scavenge:RunningScavenge?! last_finished_point:Point?! "
     "unfinished_point:Point?! "
     "problem:string?!"},
    {"RunningScavenge", "id:string! phase:string!"},
    {"Point", "number:integer! position:integer! effective_now:string threshold:integer"},
    {"Clusters", "clusters:Cluster[]! next_cursor:string?!"},
    {"NewPlan", "operation:operation! policy:string parameters:operation.parameters reason:string",
     true},
    {"Plan",
     "hash:string! cluster:string! operation:string! policy:string! "
     "parameters:operation.planned! created_at:time! created_by:string! "
     "expected_seconds:Expected?! "
     "stages:PlannedStage[]! forecast:Forecast[]! basis:BasisOfNode[]! notes:string[]! "
     "expected_from:sizes|history last_success:LastSuccess? freed_before:Freed[] "
     "cluster_pause:ClusterPause? awaits_approval_of:string?!"},
    {"Freed", "node:string! space_saved:integer! run:string! finished_at:time!"},
    {"ClusterPause", "reason:string! until:time?!"},
    {"PlannedStage",
     "id:string! name:string! deadline_seconds:integer! failure_rule:string! if_put_off:string! "
     "atomic:boolean! steps:PlannedStep[]!"},
    {"PlannedStep",
     "id:string! group:integer! kind:string! node:string! parameters:object! gates:string[]! "
     "act:string! observe:string! undo:string! reason:string! attempts:integer! "
     "expected_seconds:Expected?! quorum_margin:integer! cost:string!"},
    {"Expected", "min:integer! max:integer!"},
    {"Forecast",
     "node:string! row:string! database_bytes:integer?! disk_free_bytes:integer?! "
     "disk_needed_bytes:integer?!"},
    {"BasisOfNode", "name:string! role:string! version:string! instance_id:string!"},
    {"Plans", "plans:Plan[]! next_cursor:string?!"},
    {"Pause", "mode:policy|drain|now until:time reason:string", true},
    {"RunPause", "mode:policy|drain|now reason:string", true},
    {"Skip", "node:string! reason:string force:boolean", true},
    {"ThrottleRun", "percent:integer bytes_per_second:integer reason:string", true},
    {"Empty", "reason:string", true},
    {"Resume", "ignore_hours:boolean reason:string", true},
    {"Run",
     "id:string! cluster:string! plan:string! operation:string! "
     "state:planned|running|pausing|paused|waiting|cancelling|cancelled|done|"
     "done-with-differences|failed! "
     "reason:string! ignores_hours:boolean! throttle:Throttle?! started_by:string! "
     "started_at:time! finished_at:time?! "
     "stages:Stage[]! "
     "leader_moves:LeaderMove[]! alerts:RunAlert[]! undo:NodeUndo[]! report:operation.report?! "
     "expected_end:ExpectedEnd? "
     "hours:Hours? notice:string"},
    {"NodeUndo",
     "node:string! state:undone|not-undone|under-way! at:time?! reason:string! "
     "commands:string[]!"},
    {"RunAlert", "step:string! reason:string! at:time! cleared_at:time?!"},
    {"Stage",
     "id:string! name:string! if_put_off:string! atomic:boolean! state:string! steps:Step[]!"},
    {"Step",
     "id:string! kind:string! node:string! "
     "state:pending|waiting|acting|unknown|done|failed|skipped|undone! reason:string! "
     "waiting_for:WaitedFor[]! not_seen:NotSeen[]! outcomes:object[]! since:time?! "
     "started_at:time?! "
     "finished_at:time?! attempts:integer! timeline:StepTimeline! progress:Progress?! "
     "result:object?!"},
    {"RunGates", "run:string! steps:GatesOfStep[]!"},
    {"GatesOfStep",
     "step:string! node:string! "
     "state:pending|waiting|acting|unknown|done|failed|skipped|undone! evaluated_at:time?! "
     "gates:GateState[]!"},
    {"GateState",
     "gate:gate! node:string! state:open|closed|deferred|not_seen|skipped|unknown! code:string! "
     "value:string! limit:string! reason:string! hint:string! severity:severity?! since:time?! "
     "alert_at:time?!"},
    {"NotSeen", "gate:gate! node:string! reason:string!"},
    {"StepTimeline",
     "preparing_seconds:number! waiting_seconds:number! acting_seconds:number! "
     "observing_seconds:number!"},
    {"WaitedFor",
     "gate:gate! code:string! node:string! reason:string! value:string! limit:string! "
     "since:time! alert_at:time?!"},
    {"Progress",
     "phase:string! done:integer?! total:integer?! unit:string?! bytes:integer?! rate:number?! "
     "since:time?! bytes_saved:integer! chunks_done:integer! chunks_total:integer! "
     "chunks_per_hour:number?!"},
    {"Throttle", "percent:integer! bytes_per_second:integer!"},
    {"LeaderMove", "from:string! to:string! planned:boolean! at:time!"},
    {"ExpectedEnd",
     "earliest:time! latest:time! overdue:boolean! resumes_at:time?! seconds_left:Expected!"},
    {"Hours", "open:boolean! until:time?!"},
    {"Runs", "runs:Run[]! next_cursor:string?!"},
    {"Policy",
     "name:string! description:string! enabled:boolean! clusters:string[]! labels:object! "
     "plan:object! schedule:CronTime[]! windows:Windows! catch_up:run|skip|run-if-in-window! "
     "expected_duration_seconds:integer?! spans_openings:boolean! "
     "resign:allowed|needs-approval! notifications:object[]! yaml:string revision:integer "
     "applied_by:string applied_at:time selected:Selected[] selected_now:string[] "
     "notes:string[]"},
    {"CronTime", "cron:string! zone:string!"},
    {"Windows", "allow:Window[]! deny:Window[]!"},
    {"Window", "name:string! text:string! zone:string!"},
    {"Selected",
     "cluster:string! open:boolean! hours:string! until:time?! last_due:time?! outcome:string! "
     "reason:string! plan:string! run:string! waiting:string! late:string! too_old:string!"},
    {"Policies", "policies:Policy[]! next_cursor:string?!"},
    {"PolicyText", "yaml:string! reason:string", true},
    {"NotificationTests", "policy:string! recipients:NotificationTest[]!"},
    {"NotificationTest", "to:string! delivered:boolean! problem:string?!"},
    {"PolicyDiff", "name:string! known:boolean! changes:Change[]!"},
    {"Change", "key:string! before:any! after:any!"},
    {"Schedule",
     "cluster:string! zone:string! now:time! policies:PolicyNow[]! times:ScheduledTime[]!"},
    {"PolicyNow",
     "policy:string! enabled:boolean! outcome:string! reason:string! waiting:string! late:string! "
     "too_old:string!"},
    {"ScheduledTime",
     "kind:string! policy:string! at:time! yours:string! policys:string! zone:string! "
     "until:time?! until_yours:string?! length_seconds:integer?! inside:boolean!"},
    {"Events", "events:Event[]! next:integer!"},
    {"Event", "sequence:integer! stream:string! type:string! time:time! data:any!"},
    {"Audit", "entries:AuditEntry[]! next:integer!"},
    {"AuditEntry",
     "sequence:integer! stream:string! type:string! time:time! hash:string! data:object!"},
    {"AuditVerified", "verified:integer! removed:integer! last_hash:string!"},
    {"Journal",
     "events:integer! bytes:integer! bytes_in_use:integer! removed:integer! compacted_at:time?!"},
    {"Compaction", "removed:Removed! archived:string[]! before:JournalSize! after:JournalSize!"},
    {"Removed",
     "events:integer! progress:integer! answers:integer! plans:integer! schedules:integer! "
     "run_details:integer! runs:integer! audit:integer! notifications:integer! seals:integer! "
     "records:integer!"},
    {"JournalSize", "events:integer! bytes:integer! bytes_in_use:integer!"},
    {"NewToken", "name:string! role:viewer|operator|admin expires_at:time", true},
    {"TokenSecret",
     "id:string! name:string! role:viewer|operator|admin! created_by:string! created_at:time! "
     "expires_at:time?! expired:boolean! revoked:boolean! token:string!"},
    {"Tokens", "tokens:Token[]! next_cursor:string?!"},
    {"Token",
     "id:string! name:string! role:viewer|operator|admin! created_by:string! created_at:time! "
     "expires_at:time?! expired:boolean! revoked:boolean!"},
    {"Caller", "name:string! role:viewer|operator|admin! expires_at:time?!"},
    {"Agents", "agents:Agent[]! tokens:OpenToken[]!"},
    {"Agent",
     "cluster:string! node:string! hosts:string[]! authority:string! serial:string! "
     "enrolled_at:time! not_after:time! renew_at:time!"},
    {"OpenToken",
     "cluster:string! node:string! id:string! hosts:string[]! created_by:string! expires_at:time! "
     "expired:boolean!"},
    {"NewAgentToken", "cluster:string! node:string! hosts:string[] valid_for_seconds:integer",
     true},
    {"AgentToken",
     "id:string! cluster:string! node:string! token:string! hosts:string[]! created_by:string! "
     "expires_at:time! expired:boolean! controller:string?! pins_controller:boolean!"},
    {"AgentEnrolment", "token:string! request:string!"},
    {"AgentCertificate",
     "cluster:string! node:string! certificate:string! authority:string! not_after:time!"},
    {"StoredFile", "node:string! sha256:string! bytes:integer! stored_at:time!"},
    {"NodeCertificates",
     "cluster:string! taken_at:time! first_end:FirstEnd?! nodes:CertificatesOfNode[]!"},
    {"FirstEnd",
     "node:string! of:node|agent|files|users! "
     "kind:leaf|intermediate|root|user! not_after:time!"},
    {"CertificatesOfNode",
     "node:string! url:string! served:Certificate[]! files:Certificate[]! agent:Certificate[]! "
     "users:UserCertificate[]! file_differs:boolean?! not_known:string[]!"},
    {"UserCertificate",
     "path:string! kind:string! subject:string! serial:string! fingerprint:string! "
     "not_before:time! not_after:time! days_left:integer!"},
    {"Certificate",
     "kind:leaf|intermediate|root! subject:string! serial:string! fingerprint:string! "
     "not_before:time! not_after:time! days_left:integer!"},
    {"BackupRepositories",
     "cluster:string! taken_at:time! repositories:BackupRepository[]! conflicts:string[]! "
     "problems:BackupProblem[]!"},
    {"BackupRepository",
     "id:string?! name:string! encrypted:boolean! compression:string! backups:integer?! "
     "agents:RepositoryAtAgent[]! listed_by:string?"},
    {"RepositoryAtAgent",
     "node:string! name:string! location:string! free_bytes:integer?! drills:boolean! "
     "drill_problem:string?! snapshots:boolean! snapshot_problem:string?!"},
    {"BackupProblem", "node:string! repository:string?! reason:string!"},
    {"Backups",
     "cluster:string! taken_at:time! backups:Backup[]! repositories:BackupRepository[]! "
     "of_other_clusters:integer! conflicts:string[]! problems:BackupProblem[]! "
     "next_cursor:string?!"},
    {"Backup",
     "id:string! repository:string! repository_id:string! parent:string?! full:boolean! "
     "node:string! cluster:string! host:string! server_version:string! state:string! "
     "started_at:time?! checkpoints_at:time?! finished_at:time?! age_seconds:integer?! "
     "end_position:integer?! writer_position:integer?! epoch_number:integer?! "
     "chunk_size:integer?! stored_bytes:integer! restored_bytes:integer! reused_bytes:integer! "
     "files:integer! logical_digest:string?! readable_digest:string?! warnings:string[]! "
     "damage:string?! last_verify:BackupCheck?! last_drill:BackupCheck?!"},
    {"BackupCheck",
     "at:time! age_seconds:integer! passed:boolean! summary:string! duration_ms:integer?!"},
    {"Health",
     "status:ok|standby! version:string! controller_epoch:integer! acting:Acting? "
     "reason:string warnings:string[]"},
    {"Acting", "url:string! since:time!"},
    {"Problem", "type:string! title:string! status:integer! code:string! detail:string!"},
};

const ApiSchema* find_schema(std::string_view name) {
  if (const auto* found = std::ranges::find(kSchemas, name, &ApiSchema::name);
      found != std::ranges::end(kSchemas)) {
    return found;
  }
  for (const auto* module : operation_modules()) {
    const auto found = std::ranges::find(module->schemas, name, &ApiSchema::name);
    if (found != module->schemas.end()) {
      return &*found;
    }
  }
  return nullptr;
}

json schema_of(std::string_view name, std::set<std::string>& used) {
  if (auto parameters = parameters_schema_json(name)) {
    return *std::move(parameters);
  }
  const auto* const found = find_schema(name);
  return found == nullptr ? json{{"type", "object"}} : schema_json(*found, used);
}

json parameter(std::string_view name, std::string_view in, std::string_view description) {
  json out{{"name", name}, {"in", in}, {"schema", {{"type", "string"}}}};
  if (!description.empty()) {
    out["description"] = description;
  }
  return out;
}

/// The headers that a route looks at.
void add_headers(const Route& route, json& parameters) {
  if (route.method == "POST") {
    parameters.push_back(
        parameter("Idempotency-Key", "header", "1 to 200 characters: the same answer again"));
  }
  if (route.method != "GET") {
    parameters.push_back(
        parameter("Verger-Reason", "header", "why, for the audit; percent-encoded"));
  }
  const bool of_run = route.path.starts_with("/runs/{id}/");
  if (of_run || (route.path == "/policies/{name}" && route.method != "GET")) {
    parameters.push_back(parameter("If-Match", "header", "an ETag: for this revision only"));
  }
  if (route.method == "GET" && route.id != "getEvents") {
    parameters.push_back(parameter("If-None-Match", "header", "an ETag: 304 where it still holds"));
  }
  if (route.id == "getEvents") {
    parameters.push_back(parameter("Last-Event-ID", "header", "continue after this sequence"));
  }
}

}  // namespace

json openapi_document(std::string_view version) {
  json paths = json::object();
  std::set<std::string> used{"Problem"};
  for (const auto& route : api_routes()) {
    json operation{
        {"operationId", route.id}, {"summary", route.summary}, {"x-role", to_string(route.role)}};
    auto parameters = json::array();
    for (auto open = route.path.find('{'); open != std::string_view::npos;
         open = route.path.find('{', open + 1)) {
      const auto name = route.path.substr(open + 1, route.path.find('}', open) - open - 1);
      parameters.push_back(parameter(name, "path", ""));
      parameters.back()["required"] = true;
    }
    for (std::string_view rest = route.query; !rest.empty();) {
      const auto end = rest.find(' ');
      parameters.push_back(parameter(rest.substr(0, end), "query", ""));
      rest = end == std::string_view::npos ? "" : rest.substr(end + 1);
    }
    add_headers(route, parameters);
    if (!parameters.empty()) {
      operation["parameters"] = std::move(parameters);
    }
    if (!route.request.empty()) {
      auto& body = operation["requestBody"];
      if (route.request == kFileRequest) {
        body["content"]["application/octet-stream"]["schema"] =
            json{{"type", "string"}, {"format", "binary"}};
      } else {
        body["content"]["application/json"]["schema"] =
            schema_reference(std::string(route.request), used);
      }
      body["required"] = route.request != "Empty" && route.request != "Resume" &&
                         !route.request.ends_with("Pause");
    }
    auto& good = operation["responses"][std::to_string(route.status)];
    good["description"] = route.summary;
    if (!route.response.empty()) {
      good["content"]["application/json"]["schema"] =
          schema_reference(std::string(route.response), used);
    }
    if (route.id == "getEvents") {
      good["content"]["text/event-stream"]["schema"] =
          json{{"type", "string"},
               {"description", "each event's id is its sequence, its data an Event as JSON"}};
    }
    auto& bad = operation["responses"]["default"];
    bad["description"] =
        "Problem details (RFC 9457) with a stable code: those of docs/formats/controller-api.md; "
        "unknown_outcome says that the change may or may not have been made";
    bad["content"]["application/problem+json"]["schema"] = schema_reference("Problem", used);
    operation["security"] = route.role == ApiRole::kNobody
                                ? json::array()
                                : json::array({json{{"token", json::array()}}});
    std::string method(route.method);
    for (auto& c : method) {
      c = static_cast<char>(c - 'A' + 'a');
    }
    paths["/api/v1" + std::string(route.path)][method] = std::move(operation);
  }
  auto schemas = json::object();
  while (schemas.size() < used.size()) {
    for (const auto& name : std::set<std::string>(used)) {
      if (!schemas.contains(name)) {
        schemas[name] = schema_of(name, used);
      }
    }
  }
  return {{"openapi", "3.1.0"},
          {"info", {{"title", "Verger controller"}, {"version", version}}},
          {"paths", std::move(paths)},
          {"components",
           {{"schemas", std::move(schemas)},
            {"securitySchemes", {{"token", {{"type", "http"}, {"scheme", "bearer"}}}}}}}};
}

}  // namespace verger::controller
