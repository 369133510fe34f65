#include "nodeagent/daemon/program.h"

namespace verger::agent {

Result<Tls> load_tls(const ProgramOptions& options, Log& log) {
  Tls tls;
  if (options.role != Role::kAgent && options.node_has_tls()) {
    VERGER_TRY(tls.node, NodeTls::load(options.node_tls, log));
    tls.calls = tls.node->calls();
  } else if (!options.node_tls.trusted_roots.empty()) {
    VERGER_TRY(tls.calls,
               http::TlsContext::client({.trusted_roots = options.node_tls.trusted_roots}));
  }
  if (options.role != Role::kNode && options.agent_has_tls()) {
    VERGER_TRY(tls.agent,
               http::TlsContext::server(options.agent_tls, http::ClientCertificate::kRequired));
  }
  return tls;
}

void reload(Program& program, Log& log) {
  if (program.credentials) {
    program.credentials->look();
  }
  const auto options = program.read_options();
  if (!options) {
    log.error("An error has occurred while reloading the configuration",
              {{"error", options.error().message}});
    return;
  }
  auto& tls = program.tls;
  if (tls.node) {
    if (!tls.node->reload(options->node_tls)) {
      return;  // it has said why; the agent's certificate is most often the same
    }
  } else if (program.options.role != Role::kAgent) {
    log.info("Skipping reload of certificates since TLS is disabled.");
    log.info("The node's configuration was successfully reloaded");
  }
  const auto again = [&](std::string_view what, const std::shared_ptr<http::TlsContext>& context,
                         const http::TlsFiles& files) {
    if (auto loaded = http::TlsContext::reload_all({context}, files); !loaded) {
      log.error("An error has occurred while reloading the configuration",
                {{"of", std::string(what)}, {"error", loaded.error().message}});
    }
  };
  if (tls.agent && options->agent_enrolled != program.options.agent_enrolled) {
    log.warning("the agent has enrolled since it was started: restart it to use that");
  } else if (tls.agent) {
    again("agent", tls.agent, options->agent_tls);
  }
  if (!tls.node && tls.calls) {
    again("calls", tls.calls, {.trusted_roots = options->node_tls.trusted_roots});
  }
}

Result<void> start_node(Program& program, Log& log) {
  // The answer goes out before anything is read, as the server's does.
  const auto on_reload = [&program, &log] {
    net::post(program.context, [&program, &log] { reload(program, log); });
  };
  program.node.reset();
  VERGER_TRY(program.node,
             EmbeddedNode::start(program.options, program.context.get_executor(), program.client,
                                 program.jobs, program.tls.node.get(), on_reload, log));
  return {};
}

}  // namespace verger::agent
