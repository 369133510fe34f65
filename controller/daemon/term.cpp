#include "controller/daemon/term.h"

#include <algorithm>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>

#include "nodeagent/http/served_chain.h"

namespace verger::controller {

using std::chrono::milliseconds;

Result<std::shared_ptr<Term>> Term::open(const TermParts& parts, OpenJournal open_journal) {
  auto term = std::make_shared<Term>(parts);
  VERGER_RETURN_IF_ERROR(term->make(std::move(open_journal)));
  return term;
}

Result<void> Term::make(OpenJournal open_journal) {
  const auto executor = parts_.executor;
  const auto& options = parts_.options;
  VERGER_TRY(enrolled_, EnrolledAgents::make(executor, parts_.authority.tls()));
  VERGER_TRY(const auto standard, parts_.clients.trusting({}));
  VERGER_TRY(const auto services, parts_.clients.trusting(options.services_ca));
  const milliseconds deadline(options.request_deadline_ms);
  VERGER_TRY(
      controller_,
      Controller::open(
          {.data_directory = options.data,
           .credentials_directory = options.credentials_directory(),
           .request_deadline = deadline,
           .executor = {.poll_interval = milliseconds(options.poll_interval_ms),
                        .permit_valid_for = milliseconds(options.permit_valid_ms),
                        .shared_journal = !options.journal_etcd.empty()},
           .epoch_above = options.epoch_above,
           .policy = options.policy(),
           .agent_certificate_lifetime = parts_.authority.lifetime,
           .retention = options.retention(),
           .reached_at = options.reached_at(),
           .api_of_agents_authority = !options.api_names.empty(),
           .compact_every = std::chrono::minutes(options.compact_every_minutes),
           .survey_every = std::chrono::seconds(options.observe_every_seconds)},
          {.executor = executor,
           .files = posix_file_system(),
           .clock = system_clock(),
           .random = system_random(),
           .timers = http::system_timers(),
           .client = *standard.nodes,
           .log = parts_.log,
           .services = services.nodes,
           .clients_of = [this](const std::string& roots) -> Result<ClusterClients> {
             VERGER_TRY(auto both, parts_.clients.trusting(roots));
             both.agents = &enrolled_->routed(*both.agents);
             return both;
           },
           .roots_of = [this](const std::string& roots) { return parts_.clients.roots_of(roots); },
           .run_command =
               [this](std::vector<std::string> command, std::string input) {
                 return commands_.run(std::move(command), std::move(input));
               },
           .send_mail = mailer_.configured()
                            ? SendMail([this](Mail mail) { return mailer_.send(std::move(mail)); })
                            : SendMail(),
           .admit_command = [this](const std::string& program) -> Result<void> {
             VERGER_TRY(const auto file, commands_.admit(program));
             static_cast<void>(file);
             return {};
           },
           .authority = &parts_.authority.authority,
           .served_certificate =
               [executor, deadline](http::Endpoint of) {
                 return http::served_certificate(executor, std::move(of), deadline);
               },
           .served_chain =
               [executor, deadline](http::Endpoint of) {
                 return http::served_chain(executor, std::move(of), deadline);
               },
           .operations = {.signer = signing_},
           .open_journal = std::move(open_journal),
           .log_events = true,
           .bootstrap = &bootstrap_}));
  enrolled_->attach(controller_->registry(), controller_->agents());
  parts_.authority.warn_of_lost_authority(controller_->agents(), parts_.log);
  return {};
}

Result<void> Term::start() {
  VERGER_RETURN_IF_ERROR(controller_->start());
  running_.begin();
  net::co_spawn(parts_.executor, AgentRenewal::run(renewal()),
                net::bind_cancellation_slot(
                    stop_renewal_.slot(), [self = shared_from_this()](const std::exception_ptr&) {
                      if (!self->ended_) {
                        self->parts_.log.error("agents' certificates are no longer renewed");
                      }
                      self->running_.end();
                    }));
  return {};
}

net::awaitable<void> Term::end() {
  const auto self = shared_from_this();
  ended_ = true;
  stop_renewal_.emit(net::cancellation_type::terminal);
  co_await controller_->stop();
  co_await running_.wait_for_all();
}

AgentRenewal Term::renewal() {
  return {.book = controller_->agents(),
          .registry = controller_->registry(),
          .clock = system_clock(),
          .timers = http::system_timers(),
          .log = parts_.log,
          .client_of = [this](const EnrolledAgent& agent) -> http::Client& {
            return enrolled_->client_of(agent);
          },
          .renew_own = [this]() -> Result<void> {
            VERGER_TRY(const bool renewed, parts_.authority.renew());
            return renewed ? enrolled_->reload() : Result<void>{};
          },
          .request_deadline = milliseconds(parts_.options.request_deadline_ms),
          // Short-lived certificates of tests are looked at more often.
          .look_every = std::min<milliseconds>(std::chrono::hours(1),
                                               milliseconds(parts_.authority.lifetime) / 20)};
}

bool Front::knows(const http::Request& head) const {
  return term_ != nullptr && term_->controller().knows(head);
}

http::Handler Front::handler() {
  return [this](http::Request request) { return answer(std::move(request)); };
}

net::awaitable<http::Response> Front::answer(http::Request request) {
  const auto term = term_;
  if (term == nullptr) {
    co_return otherwise_(request);
  }
  auto response = co_await term->controller().handler()(std::move(request));
  if (response.stream) {
    response.stream = [term, next = std::move(response.stream)]() {
      struct Piece {
        // A stream would otherwise outlast the term that it shows.
        static net::awaitable<Result<std::string>> of(std::shared_ptr<Term> term,
                                                      net::awaitable<Result<std::string>> piece) {
          auto text = co_await std::move(piece);
          if (term->has_ended()) {
            co_return std::string();
          }
          co_return text;
        }
      };
      return Piece::of(term, next());
    };
  }
  co_return response;
}

}  // namespace verger::controller
