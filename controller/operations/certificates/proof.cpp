#include "controller/operations/certificates/proof.h"

#include <algorithm>
#include <fmt/format.h>

#include "controller/cluster/gather.h"
#include "controller/operations/certificates/nodes_seen.h"

namespace verger::controller::certificate_change {
namespace {

using Serials = std::map<std::string, std::string>;

std::string serial_for(const Serials& serials, const std::string& node) {
  const auto found = serials.find(node);
  return found == serials.end() ? std::string() : found->second;
}

/// Empty: it is, or any will do.
std::string not_the_one(const std::string& shown, const std::string& wanted) {
  return wanted.empty() || shown == wanted
             ? ""
             : fmt::format("it shows the certificate {}, not {}", shown, wanted);
}

net::awaitable<Proof> prove_as_server(std::shared_ptr<Peers> peers, std::string node,
                                      std::string wanted) {
  Proof out;
  const auto serial = co_await served_serial(std::move(peers), node);
  const auto problem = serial ? not_the_one(*serial, wanted) : serial.error().message;
  if (problem.empty()) {
    ++out.handshakes;
  } else {
    out.problems.push_back(fmt::format("{}: {}", node, problem));
  }
  co_return out;
}

void judge(const std::string& from, const api::PeerHandshake& seen, const Serials& serials,
           Proof& out) {
  const auto say = [&](std::string_view what) {
    out.problems.push_back(fmt::format("{} from {}: {}", seen.name, from, what));
  };
  if (!seen.problem.empty()) {
    say(seen.problem);
    return;
  }
  if (const auto other = not_the_one(seen.serial, serial_for(serials, seen.name)); !other.empty()) {
    say(other);
    return;
  }
  if (!seen.trusted.value_or(false)) {
    say(seen.not_trusted.empty() ? "it was not seen whether it is trusted there"
                                 : fmt::format("it is not trusted there: {}", seen.not_trusted));
    return;
  }
  ++out.handshakes;
  if (const auto other = not_the_one(seen.shown_serial, serial_for(serials, from));
      !seen.shown_serial.empty() && !other.empty()) {
    out.problems.push_back(fmt::format("{}: on its disk, {}", from, other));
  } else if (seen.accepted && !*seen.accepted) {
    say(fmt::format("it does not accept {} as a client: {}", from, seen.not_accepted));
  } else if (!seen.accepted) {
    out.not_proven.push_back(
        fmt::format("whether {} accepts {} as a client: {}", seen.name, from, seen.not_accepted));
  } else {
    ++out.handshakes;
  }
}

net::awaitable<Proof> prove_from(std::shared_ptr<Peers> peers, std::string node, Serials serials) {
  Proof out;
  api::HandshakesRequest request;
  for (const auto& each : peers->cluster().nodes) {
    if (each.name != node) {
      request.peers.push_back({.name = each.name, .url = each.url});
    }
  }
  if (request.peers.empty()) {
    co_return out;
  }
  const auto expected = request.peers.size();
  const auto seen = co_await peers->certificate_handshakes(node, std::move(request));
  if (!seen || seen->size() != expected) {
    out.problems.push_back(
        fmt::format("{}: its agent says nothing of the others: {}", node,
                    seen ? "it did not look at all of them" : seen.error().message));
    co_return out;
  }
  for (const auto& each : *seen) {
    judge(node, each, serials, out);
  }
  co_return out;
}

}  // namespace

net::awaitable<Proof> prove_certificates(std::shared_ptr<Peers> peers, Serials serials) {
  std::vector<net::awaitable<Proof>> parts;
  for (const auto& node : peers->cluster().nodes) {
    parts.push_back(prove_as_server(peers, node.name, serial_for(serials, node.name)));
    if (!node.agent_url.empty()) {
      parts.push_back(prove_from(peers, node.name, serials));
    }
  }
  Proof out;
  for (auto& part : co_await gather(std::move(parts))) {
    std::ranges::move(part.problems, std::back_inserter(out.problems));
    std::ranges::move(part.not_proven, std::back_inserter(out.not_proven));
    out.handshakes += part.handshakes;
  }
  co_return out;
}

}  // namespace verger::controller::certificate_change
