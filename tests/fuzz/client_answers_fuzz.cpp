#include <string>

#include "nodeagent/client/agent_client.h"
#include "nodeagent/client/answers.h"
#include "nodeagent/client/server_work.h"

/// Every answer of a node or an agent is done, refused or unknown: the first byte chooses the
/// status, the rest is the body.
extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace verger;  // NOLINT(google-build-using-namespace)
  if (size == 0) {
    return 0;
  }
  constexpr int kStatuses[] = {200, 201, 204, 307, 400, 401, 404, 406, 409, 410, 500, 503};
  http::Response response;
  response.status = kStatuses[data[0] % std::size(kStatuses)];
  response.body.assign(reinterpret_cast<const char*>(data) + 1, size - 1);
  response.headers.set("content-type", data[0] % 2 == 0 ? "application/json" : "text/plain");
  static_cast<void>(client::parse_answer_gossip(response));
  static_cast<void>(client::parse_answer_info(response));
  static_cast<void>(client::parse_answer_ping(response));
  static_cast<void>(client::parse_answer_live(response));
  static_cast<void>(client::parse_answer_current(response));
  static_cast<void>(client::parse_answer_last(response));
  static_cast<void>(client::parse_answer_queued(response));
  static_cast<void>(client::parse_answer_merge_indexes(response));
  static_cast<void>(client::parse_answer_login(response));
  static_cast<void>(client::parse_answer_scavenges(response));
  static_cast<void>(client::parse_answer_metrics(response));
  static_cast<void>(client::parse_answer_stats(response));
  static_cast<void>(client::parse_answer_auto_scavenge(response));
  static_cast<void>(client::parse_answer_projections(response));
  static_cast<void>(client::parse_answer_subscriptions(response));
  static_cast<void>(client::parse_answer_work_started(response));
  static_cast<void>(client::parse_answer_append(response));
  static_cast<void>(client::parse_answer_page(response));
  static_cast<void>(client::parse_answer_facts(response));
  static_cast<void>(client::parse_answer_permit(response));
  static_cast<void>(client::parse_answer_operation(response));
  static_cast<void>(client::parse_answer_file(response));
  static_cast<void>(client::parse_answer_files(response));
  return 0;
}
