#include "planner/detail/make_field.h"
#include "planner/operation.h"
#include "planner/verify/plan_verify.h"
#include "planner/verify/verify_policy.h"
#include "planner/verify/verify_steps.h"

namespace verger::planner {
namespace {

using detail::field;

/// Names are parts of hashes and journals.
std::span<const Field> verify_fields() {
  static const std::vector<Field> kFields{
      field<&VerifyPolicy::nodes>("nodes", "verify.nodes",
                                  "Names of the nodes, with commas between; none: all")
          .accepted(),
      field<&VerifyPolicy::throttle_percent>("throttlePercent", "verify.throttle_percent",
                                             "Share of the time spent working")
          .between(1, 100)
          .accepted(),
      field<&VerifyPolicy::rate_bytes>("bytesPerSecond", "verify.bytes_per_second",
                                       "Bytes that a node's files are read with a second at most")
          .size()
          .accepted(),
      field<&VerifyPolicy::node_deadline_ms>("verifyDeadlineMs", "deadlines.verify_node",
                                             "For looking at all files of one node")
          .length(),
  };
  return kFields;
}

std::vector<FieldProblem> check_verify(const Policy& policy) {
  const auto& own = verify_of(policy);
  if (own.throttle_percent < 1 || own.throttle_percent > 100 || own.rate_bytes < 0 ||
      own.node_deadline_ms <= 0) {
    return {{.place = "verify",
             .message = "the throttle is out of range, a limit is negative, or the deadline is not "
                        "above 0",
             .hint = "correct the policy"}};
  }
  return {};
}

constexpr std::string_view kVerifyWork[] = {verify_steps::kVerify};
constexpr AgentKind kVerifyKinds[] = {{.name = "verify", .needs_server = true}};

std::int64_t time_at_verify_ms(const Policy& /*policy*/, std::span<const PastDuration> durations) {
  std::int64_t out = 0;
  for (const auto& past : durations) {
    out += past.kind == verify_steps::kVerify ? past.duration_ms : 0;
  }
  return out;
}

}  // namespace

VerifyPolicy& verify_of(Policy& policy) { return std::get<VerifyPolicy>(policy.operation); }
const VerifyPolicy& verify_of(const Policy& policy) {
  return std::get<VerifyPolicy>(policy.operation);
}

const Operation& VerifyPolicy::operation() {
  static const Operation kVerification{
      .name = "verify",
      .summary = "Plan a verification of the files of running nodes",
      .example = "--throttle-percent 30",
      .fields = verify_fields,
      .defaults = [] { return OperationPolicy(VerifyPolicy()); },
      .plan = detail::plan_verify,
      .check = check_verify,
      .moves_leader = [](const Policy& /*policy*/) { return false; },
      .time_at_work_ms = time_at_verify_ms,
      .may_restart = [](const Policy& /*policy*/, const NodeSnapshot& /*node*/) { return true; },
      .work_steps = kVerifyWork,
      .agent_kinds = kVerifyKinds};
  return kVerification;
}

}  // namespace verger::planner
