#include "controller/daemon/pair.h"

#include <algorithm>
#include <fmt/format.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <nlohmann/json.hpp>

#include "engine/base/json_number.h"
#include "nodeagent/api/json_answer.h"

namespace verger::controller {

using nlohmann::json;
using std::chrono::milliseconds;

namespace {

/// Between two looks at who acts, or at the lease.
milliseconds look_every(std::chrono::seconds ttl) {
  return std::min<milliseconds>(milliseconds(400), milliseconds(ttl) / 6);
}

/// The same trouble in other words is logged no more often.
constexpr std::chrono::seconds kSayAgain{60};

/// A renewal that hangs must leave time for another.
milliseconds lease_deadline(std::chrono::seconds ttl) {
  return std::min<milliseconds>(milliseconds(2'000), milliseconds(ttl) / 3);
}

}  // namespace

Pair::Pair(PairParts parts)
    : parts_(std::move(parts)),
      front_([this](const http::Request& request) { return answer_standing_by(request); }),
      running_(parts_.executor),
      why_("it has just started"),
      wake_(parts_.executor, 1) {}

Result<std::unique_ptr<Pair>> Pair::make(PairParts parts) {
  auto pair = std::make_unique<Pair>(std::move(parts));
  VERGER_TRY(pair->http_, make_etcd_http_client(pair->parts_.executor, pair->parts_.etcd));
  pair->etcd_ = std::make_unique<EtcdClient>(pair->parts_.etcd.endpoints, *pair->http_,
                                             lease_deadline(pair->parts_.lease_ttl));
  return pair;
}

void Pair::start() {
  running_.begin();
  net::co_spawn(parts_.executor, run(), [this](const std::exception_ptr& error) {
    if (error) {
      parts_.log.error("the work of the standby failed");
    }
    running_.end();
  });
}

net::awaitable<void> Pair::stop() {
  stopping_ = true;
  wake_.try_send(boost::system::error_code{});
  co_await running_.wait_for_all();
}

net::awaitable<void> Pair::run() {
  while (!stopping_) {
    std::string trouble;
    try {
      co_await stand_by();
    } catch (const std::exception& error) {
      trouble = error.what();
    }
    if (!trouble.empty()) {
      say(About::kTrouble, std::move(trouble));
    }
    co_await sleep_for(look_every(parts_.lease_ttl));
  }
}

net::awaitable<void> Pair::sleep_for(milliseconds duration) {
  using net::experimental::awaitable_operators::operator||;
  if (!stopping_) {
    co_await (wake_.async_receive(net::as_tuple(net::use_awaitable)) ||
              parts_.timers.sleep_for(duration));
  }
}

void Pair::wait_before_the_next_try() {
  may_act_from_ = parts_.clock.monotonic() + parts_.lease_ttl / 2;
}

net::awaitable<void> Pair::stand_by() {
  if (old_lease_ != nullptr && co_await give_back(old_lease_)) {
    old_lease_.reset();
  }
  co_await look();
  if (nobody_acts_ && !stopping_ && parts_.clock.monotonic() >= may_act_from_) {
    co_await try_to_act();
  }
}

net::awaitable<bool> Pair::give_back(std::shared_ptr<EtcdLease> lease) {
  const auto revoked = co_await EtcdLease::revoke(lease, *etcd_);
  co_return revoked.has_value();
}

net::awaitable<void> Pair::look() {
  const auto answer = co_await etcd_->read(json::array(
      {etcd::get(etcd_acting_key(parts_.etcd)), etcd::get(parts_.etcd.prefix + "epoch")}));
  nobody_acts_ = false;
  if (!answer || answer->read.size() != 2) {
    acting_url_.clear();
    say(About::kJournal,
        answer ? "etcd's answer cannot be read"
               : fmt::format("the journal cannot be reached: {}", answer.error().message));
    co_return;
  }
  if (!answer->read[1].empty()) {
    const auto epoch = json::parse(answer->read[1].front().value, nullptr, false);
    epoch_ = epoch.is_object() ? json_integer_or<std::int64_t>(epoch, "epoch", 0) : 0;
  }
  if (answer->read[0].empty()) {
    acting_url_.clear();
    nobody_acts_ = true;
    co_return;
  }
  const auto acting = json::parse(answer->read[0].front().value, nullptr, false);
  acting_url_ = acting.is_object() ? acting.value("url", std::string()) : "";
  acting_since_ = acting.is_object() ? acting.value("since", std::string()) : "";
  say(About::kOtherActs, fmt::format("{} is active", acting_url_));
  look_at_authority(acting.is_object() ? acting.value("agents_authority", std::string()) : "");
}

void Pair::look_at_authority(const std::string& of_the_other) {
  const auto foreign =
      of_the_other.empty() || of_the_other == parts_.agents_authority
          ? std::string()
          : fmt::format(
                "the agents' authority here ({}) is not that of {} ({}): after a take-over "
                "this one would reach no agent that enrolled there; copy its file "
                "agents-ca.pem (--agents-ca-file) to this machine and start vergerd again",
                parts_.agents_authority.substr(0, 16), acting_url_, of_the_other.substr(0, 16));
  if (foreign != foreign_authority_ && !foreign.empty()) {
    parts_.log.error("this controller could not take over", {{"reason", foreign}});
  }
  foreign_authority_ = foreign;
}

net::awaitable<void> Pair::try_to_act() {
  const auto lease = co_await EtcdLease::grant(*etcd_, parts_.lease_ttl, parts_.clock);
  if (!lease) {
    say(About::kLease, fmt::format("no lease: {}", lease.error().message));
    wait_before_the_next_try();
    co_return;
  }
  const json acting{{"url", parts_.url},
                    {"since", format_ticks(parts_.clock.now())},
                    {"agents_authority", parts_.agents_authority}};
  auto term = parts_.open_term({.lease = *lease, .acting = acting.dump()});
  if (!term) {
    say(About::kTerm, term.error().message);
    old_lease_ = *lease;
    if (term.error().code != Errc::kRefused) {
      // Such as a journal that cannot be replayed: each try takes an epoch.
      wait_before_the_next_try();
    }
    co_return;
  }
  co_await act(*std::move(term), *lease);
}

net::awaitable<void> Pair::act(std::shared_ptr<Term> term, std::shared_ptr<EtcdLease> lease) {
  epoch_ = term->controller().epoch().value();
  if (const auto started = term->start(); started) {
    parts_.log.info("this controller is active", {{"epoch", std::to_string(epoch_)}});
    front_.set(term);
    why_.clear();
    foreign_authority_.clear();
    about_ = About::kStart;
    while (!stopping_ && lease->held()) {
      if (lease->wants_renewal()) {
        const auto renewed = co_await EtcdLease::renew(lease, *etcd_);
        if (!renewed) {
          parts_.log.warning("the lease was not renewed", {{"reason", renewed.error().message}});
        }
      }
      if (lease->held()) {
        co_await sleep_for(look_every(parts_.lease_ttl));
      }
    }
  } else {
    say(About::kTerm, started.error().message);
  }
  const bool lost = !lease->held();
  lease->end();  // from here on nothing is journaled, so nothing begins
  front_.set(nullptr);
  acting_url_.clear();
  if (lost) {
    why_ = "its lease is over, or another controller has taken over; it looks for the active one";
    parts_.log.error(
        "this controller is no longer active: its lease is over, or another "
        "controller has taken over",
        {{"epoch", std::to_string(epoch_)}});
  }
  old_lease_ = lease;
  if (stopping_ && co_await give_back(lease)) {
    // The other one need not wait for what is still under way here: the agents refuse that once
    // they know its epoch.
    old_lease_.reset();
    parts_.log.info("the lease was given back: the other controller may take over");
  }
  co_await term->end();
}

void Pair::say(About about, std::string why) {
  const auto now = parts_.clock.monotonic();
  const bool news = about != about_ || about == About::kOtherActs || now - said_at_ >= kSayAgain;
  if (why != why_ && news) {
    parts_.log.info("this controller is on standby", {{"reason", why}});
    said_at_ = now;
  }
  about_ = about;
  why_ = std::move(why);
}

http::Response Pair::answer_standing_by(const http::Request& request) const {
  const auto path = std::string_view(request.target).substr(0, request.target.find('?'));
  const auto acting =
      acting_url_.empty() ? json() : json{{"url", acting_url_}, {"since", acting_since_}};
  if (path == "/api/v1/health" && request.method == "GET") {
    return api::json_answer(
        200, {{"status", "standby"},
              {"version", VERGER_VERSION},
              {"controller_epoch", epoch_},
              {"acting", acting},
              {"reason", why_},
              {"warnings",
               foreign_authority_.empty() ? json::array() : json::array({foreign_authority_})}});
  }
  if (path == "/metrics" && request.method == "GET") {
    http::Response out;
    out.headers.set("Content-Type", "text/plain; version=0.0.4; charset=utf-8");
    out.body =
        "# HELP verger_controller_acting 1 while this controller is active, 0 while it is on "
        "standby\n"
        "# TYPE verger_controller_acting gauge\nverger_controller_acting 0\n";
    return out;
  }
  const auto detail =
      acting_url_.empty()
          ? fmt::format(
                "this controller is on standby and knows of no active one: {}; "
                "nothing was changed, ask again later or ask the other one",
                why_.empty() ? "it takes over just now" : why_)
          : fmt::format(
                "this controller is on standby; {} is active: use that one (--controller {})",
                acting_url_, acting_url_);
  return api::problem(503, "standby", detail, {{"acting", acting}});
}

}  // namespace verger::controller
