#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "engine/base/types.h"

// What `verger doctor` makes of the API's answers. Pure: the same answers, the same findings.
namespace verger::cli {

enum class Verdict : std::uint8_t {
  kOk,
  kNote,     ///< nothing to do, but worth knowing
  kWarning,  ///< maintenance works, or will stop working
  kError,    ///< maintenance of this does not work now
};

struct Diagnosis {
  Verdict verdict = Verdict::kOk;
  std::string subject{};  ///< "vergerd", "orders", "orders/n1"
  std::string text{};
  std::string remedy{};  ///< what to do, or a command; empty: nothing
};

/// "ok", "note", "warning", "error"
std::string_view verdict_name(Verdict verdict);

/// Of GET /health. `own_version`: this program's.
std::vector<Diagnosis> check_controller(const nlohmann::json& health,
                                        const std::string& own_version);
/// Of GET /whoami.
std::vector<Diagnosis> check_caller(const nlohmann::json& caller, Ticks now);
/// Of GET /tokens: those that expire soon, or have expired. `own`: the caller's name, of which
/// check_caller speaks.
std::vector<Diagnosis> check_tokens(const nlohmann::json& tokens, const std::string& own,
                                    Ticks now);
/// Of GET /agents: one-time tokens that end before their agent enrolled, and certificates that
/// agents should have renewed. `cluster`: only its agents; empty: all.
std::vector<Diagnosis> check_agents(const nlohmann::json& agents, const std::string& cluster,
                                    Ticks now);
/// Of GET /clusters/{name}: nodes, agents, versions, disks, clocks, what its snapshot warns of.
/// `own_version`: this program's.
std::vector<Diagnosis> check_cluster(const nlohmann::json& cluster, const std::string& own_version);
/// Of GET /clusters/{name}/certificates.
std::vector<Diagnosis> check_certificates(const nlohmann::json& certificates);
/// Of GET /clusters/{name}/backups.
std::vector<Diagnosis> check_backups(const nlohmann::json& backups);
/// Of the enabled policies of GET /policies that select the cluster: what is late, or waits.
std::vector<Diagnosis> check_policies(const nlohmann::json& policies, const std::string& cluster);
/// Of GET /clusters/{name}/schedule: what is due while its windows are closed.
std::vector<Diagnosis> check_schedule(const nlohmann::json& schedule);

}  // namespace verger::cli
