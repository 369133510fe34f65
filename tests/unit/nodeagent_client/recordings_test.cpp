#include "tests/unit/nodeagent_client/recordings.h"

#include <gtest/gtest.h>
#include <map>
#include <regex>

#include "nodeagent/client/answers.h"

namespace verger::client::test {
namespace {

struct Judged {
  Verdict verdict = Verdict::kUnknown;
  std::string code;
  std::string why;
};

template <class T>
Judged judged(const Outcome<T>& outcome) {
  EXPECT_EQ(outcome.done(), outcome.code.empty());
  EXPECT_EQ(outcome.done(), outcome.why.empty());
  EXPECT_TRUE(!outcome.done() || outcome.value.has_value());
  return {outcome.verdict, outcome.code, outcome.why};
}

/// The client call that sends such a request, and what it makes of the answer.
std::optional<Judged> judge(const Recording& recording) {
  const NodeDialect dialect;  // 24.6, as the recorded servers
  const auto& response = recording.response;
  const auto path = recording.path.substr(0, recording.path.find('?'));
  const auto is = [&](std::string_view method, const char* pattern) {
    return recording.method == method && std::regex_match(path, std::regex(pattern));
  };
  if (is("GET", "/gossip")) {
    return judged(parse_answer_gossip(response));
  }
  if (is("GET", "/info")) {
    return judged(parse_answer_info(response));
  }
  if (is("GET", "/ping")) {
    return judged(parse_answer_ping(response));
  }
  if (is("HEAD", "/health/live")) {
    return judged(parse_answer_live(response));
  }
  if (is("GET", "/health/live")) {
    return judged(parse_answer_live(response));
  }
  if (is("GET", "/admin/login")) {
    return judged(parse_answer_login(response));
  }
  if (is("GET", "/metrics")) {
    return judged(parse_answer_metrics(response));
  }
  if (is("GET", "/stats")) {
    return judged(parse_answer_stats(response));
  }
  if (is("POST", "/admin/scavenge")) {
    return judged(parse_answer_start_scavenge(response, dialect));
  }
  if (is("GET", "/admin/scavenge/current")) {
    return judged(parse_answer_current(response));
  }
  if (is("GET", "/admin/scavenge/last")) {
    return judged(parse_answer_last(response));
  }
  if (is("DELETE", "/admin/scavenge/.+")) {
    return judged(parse_answer_stop(response, dialect));
  }
  if (is("POST",
         "/admin/node/resign|/admin/node/priority/.+|/admin/reloadconfig|/admin/shutdown")) {
    return judged(parse_answer_queued(response));
  }
  if (is("POST", "/admin/mergeindexes")) {
    return judged(parse_answer_merge_indexes(response));
  }
  if (is("GET", R"(/streams/\$scavenges(/.*)?)")) {
    return judged(parse_answer_scavenges(response));
  }
  if (is("GET", "/auto-scavenge/status")) {
    return judged(parse_answer_auto_scavenge(response));
  }
  if (is("POST", "/streams/[^/]+(/metadata)?")) {
    return judged(parse_answer_append(response));
  }
  if (is("GET", "/streams/[^/]+(/[^/]+/(forward|backward)/[0-9]+)?") && recording.accept != "" &&
      !path.contains("$all")) {
    return judged(parse_answer_page(response));
  }
  return std::nullopt;
}

/// What must come out, written from node-interface.md and not from the code. The first row that
/// fits counts; `text` is searched in the reason and the body, `accept` in the request's header.
struct Row {
  const char* method;
  const char* path;
  int status;
  const char* text;
  const char* accept;
  Verdict verdict;
  const char* code;
  int seen = 0;
};

std::vector<Row> expectations() {
  constexpr auto kDone = Verdict::kDone;
  constexpr auto kRefused = Verdict::kRefused;
  constexpr auto kUnknown = Verdict::kUnknown;
  return {
      // Wrong credentials: what any client may read says nothing then.
      {"GET", "/(gossip|info|ping)", 401, "", "", kUnknown, "credentials_refused"},
      {".*", "/(admin|stats|metrics|streams).*", 401, "with challenge", "", kRefused,
       "bad_credentials"},
      {".*", "/(admin|stats|metrics|streams).*", 401, "", "", kRefused, "lacks_role"},
      // Facts.
      {"GET", "/gossip", 200, "format=xml", "json", kUnknown, "unexpected_answer"},
      {"GET", "/gossip", 200, "", "json", kDone, ""},
      {"GET", "/gossip", 200, "", "", kUnknown, "unexpected_answer"},  // text and XML
      {"GET", "/gossip.*", 500, "", "", kUnknown, "server_error"},     // unknown format
      {"GET", "/info", 200, "", "", kDone, ""},                        // JSON under any type
      {"GET", "/ping", 200, "", "json", kDone, ""},
      {"GET", "/ping", 200, "", "", kUnknown, "unexpected_answer"},
      {".*", "/health/live", 204, "", "", kUnknown, "no_leader_known"},
      {".*", "/health/live.*", 200, "", "", kUnknown, "unexpected_answer"},  // ?liveCode=200
      {".*", "/health/live", 503, "", "", kDone, ""},
      {"GET", "/admin/login", 200, "", "", kDone, ""},
      {"GET", "/admin/login", 500, "", "", kUnknown, "server_error"},  // broken base64
      {"GET", "/metrics", 200, "", "", kDone, ""},
      {"GET", "/metrics", 406, "", "json", kRefused, "not_acceptable"},
      {"GET", "/stats", 200, "", "json", kDone, ""},
      {"GET", "/auto-scavenge/status", 404, "", "", kDone, ""},  // not installed
      // Scavenge.
      {"POST", "/admin/scavenge.*", 200, "scavengeId", "", kUnknown, "accepted"},
      {"POST", "/admin/scavenge.*", 200, "ScavengeId", "", kUnknown, "accepted"},
      {"POST", "/admin/scavenge.*", 400, "Scavenge is already running", "", kRefused,
       "already_running"},
      {"POST", "/admin/scavenge.*", 400, "chunk switch lock", "", kRefused, "chunk_lock_held"},
      {"POST", "/admin/scavenge.*", 400, "must be", "", kRefused, "invalid"},
      {"POST", "/admin/scavenge.*", 406, "", "pdf", kRefused, "not_acceptable"},
      {"GET", "/admin/scavenge/current", 200, "", "json", kDone, ""},
      {"GET", "/admin/scavenge/current", 200, "", "", kUnknown, "unexpected_answer"},
      {"GET", "/admin/scavenge/last", 405, "", "", kRefused, "no_such_route"},
      {"DELETE", "/admin/scavenge/.*", 200, "", "", kDone, ""},
      {"DELETE", "/admin/scavenge/.*", 404, "Scavenge Id does not exist", "", kUnknown,
       "nothing_to_stop"},
      {"GET", R"(/streams/\$scavenges.*)", 200, "", "", kDone, ""},
      {"GET", R"(/streams/\$scavenges.*)", 404, "", "", kDone, ""},  // no run yet
      {"GET", R"(/streams/\$scavenges.*)", 406, "", "", kRefused, "not_acceptable"},
      // Commands that are only queued.
      {"POST", "/admin/node/resign", 200, "", "", kUnknown, "queued"},
      {"POST", "/admin/node/priority/.*", 200, "", "", kUnknown, "queued"},
      {"POST", "/admin/node/priority/.*", 400, "must be an integer", "", kRefused, "invalid"},
      {"POST", "/admin/reloadconfig", 200, "", "", kUnknown, "queued"},
      {"POST", "/admin/mergeindexes", 200, "mergeIndexesId", "", kUnknown, "accepted"},
      {"POST", "/admin/mergeindexes", 200, "MergeIndexesId", "", kUnknown, "unexpected_answer"},
      // Streams.
      {"POST", "/streams/.*", 201, "", "", kDone, ""},
      {"POST", "/streams/.*", 200, "", "", kUnknown, "unexpected_answer"},  // nothing was done
      {"POST", "/streams/.*", 400, "Wrong expected EventNumber", "", kRefused,
       "wrong_expected_version"},
      {"POST", "/streams/.*", 400, "", "", kRefused, "invalid"},
      {"POST", "/streams/.*", 410, "", "", kRefused, "stream_deleted"},
      {"POST", "/streams/.*", 415, "", "", kRefused, "not_acceptable"},
      {"POST", "/streams/.*", 500, "Write timeout", "", kUnknown, "write_timeout"},
      {".*", "/streams/.*", 307, "", "", kUnknown, "redirected"},
      {"GET", "/streams/.*", 200, "embed=body", "", kDone, ""},
      {"GET", "/streams/.*", 200, "", "", kUnknown, "unexpected_answer"},  // no types without embed
      {"GET", "/streams/.*", 304, "", "", kUnknown, "unexpected_answer"},  // the client sends none
      {"GET", "/streams/.*", 404, "", "", kRefused, "not_found"},
      {"GET", "/streams/.*", 410, "", "", kRefused, "stream_deleted"},
  };
}

TEST(Recordings, AreAllJudgedAsTheReferenceSays) {
  auto rows = expectations();
  std::map<std::string, int> counts;
  int fed = 0;
  int cut = 0;
  int other = 0;
  for (const auto& recording : all_recordings()) {
    SCOPED_TRACE(recording.name() + " (" + recording.method + " " + recording.path + ")");
    if (recording.is_cut) {
      ++cut;
      continue;
    }
    const auto result = judge(recording);
    if (!result.has_value()) {
      ++other;
      continue;
    }
    ++fed;
    ++counts[std::string(to_string(result->verdict))];
    const auto& response = recording.response;
    const auto text = response.reason + " " + response.body + " " + recording.path +
                      (response.headers.get("WWW-Authenticate") ? " with challenge" : "");
    Row* row = nullptr;
    for (auto& candidate : rows) {
      if (candidate.status == response.status && text.contains(candidate.text) &&
          recording.accept.contains(candidate.accept) &&
          std::regex_match(recording.method, std::regex(candidate.method)) &&
          std::regex_match(recording.path, std::regex(candidate.path + std::string("(\\?.*)?")))) {
        row = &candidate;
        break;
      }
    }
    ASSERT_NE(row, nullptr) << "no expectation for " << response.status << " " << text;
    ++row->seen;
    EXPECT_EQ(to_string(result->verdict), to_string(row->verdict)) << result->why;
    EXPECT_EQ(result->code, row->code) << result->why;
  }
  for (const auto& row : rows) {
    EXPECT_GT(row.seen, 0) << row.method << " " << row.path << " " << row.status << " " << row.text
                           << ": no recording";
  }
  std::printf(
      "recordings: %d judged (%d done, %d refused, %d unknown), %d cut, %d of other calls\n", fed,
      counts["done"], counts["refused"], counts["unknown"], cut, other);
  EXPECT_GE(fed, 300);
}

}  // namespace
}  // namespace verger::client::test
