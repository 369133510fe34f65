#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/experimental/channel.hpp>

#include "controller/daemon/term.h"
#include "controller/journal/etcd_journal.h"
#include "nodeagent/http/task_count.h"
#include "nodeagent/http/timers.h"

namespace verger::controller {

struct PairParts {
  net::any_io_executor executor;  ///< of one thread
  EtcdOptions etcd;
  std::chrono::seconds lease_ttl;
  std::string url;  ///< of this one's API, as people and the other one reach it
  /// Fingerprint of the agents' authority: both must have the same.
  std::string agents_authority;
  Clock& clock;
  http::Timers& timers;
  Log& log;
  /// Errors: kRefused: the other one was faster.
  std::function<Result<std::shared_ptr<Term>>(EtcdTerm)> open_term;
};

/// One of two controllers that share a journal in etcd. It stands by until none acts, then takes
/// the lease and the next epoch in one transaction, and acts until it loses the lease:
///
///     standing by --(none acts)----> acting --(lease over, or a newer epoch seen)--> standing by
///
/// Without the lease it journals nothing, so it begins nothing; what is still under way from before
/// the agents refuse once they know the newer epoch.
class Pair {
 public:
  /// Errors: those of the certificate files.
  static Result<std::unique_ptr<Pair>> make(PairParts parts);

  /// Begins to look who acts.
  void start();
  /// Lets the other one take over at once, if this one acts, and then ends the term.
  net::awaitable<void> stop();
  /// Answers the API, standing by or not. The handler must not be called after the pair is gone.
  http::Handler handler() { return front_.handler(); }
  [[nodiscard]] bool knows(const http::Request& head) const { return front_.knows(head); }

  explicit Pair(PairParts parts);

 private:
  net::awaitable<void> run();
  net::awaitable<void> stand_by();
  /// False: etcd did not say that it is over.
  net::awaitable<bool> give_back(std::shared_ptr<EtcdLease> lease);
  /// Who acts, as etcd has it now.
  net::awaitable<void> look();
  void look_at_authority(const std::string& of_the_other);
  net::awaitable<void> try_to_act();
  net::awaitable<void> act(std::shared_ptr<Term> term, std::shared_ptr<EtcdLease> lease);
  /// What a process that stands by is about: a change of it is logged at once, other words for the
  /// same now and then, such as those of an etcd whose members answer in turn.
  enum class About : std::uint8_t { kStart, kOtherActs, kJournal, kLease, kTerm, kTrouble };
  void say(About about, std::string why);
  /// Until then, or until this one is to stop.
  net::awaitable<void> sleep_for(std::chrono::milliseconds duration);
  /// After something that will hardly be better in a moment.
  void wait_before_the_next_try();
  [[nodiscard]] http::Response answer_standing_by(const http::Request& request) const;

  PairParts parts_;
  std::unique_ptr<http::Client> http_;
  std::unique_ptr<EtcdClient> etcd_;
  Front front_;
  http::TaskCount running_;
  bool stopping_ = false;
  bool nobody_acts_ = false;
  std::string acting_url_;  ///< empty: none acts, or it is not known
  std::string acting_since_;
  std::string why_;  ///< this one does not act
  About about_ = About::kStart;
  Monotonic said_at_{};
  std::string foreign_authority_;  ///< what is wrong with the other one's authority
  net::experimental::channel<void(boost::system::error_code)> wake_;
  std::int64_t epoch_ = 0;                ///< the newest that was seen
  Monotonic may_act_from_{};              ///< after a term that could not begin
  std::shared_ptr<EtcdLease> old_lease_;  ///< of a term that ended; to be given back
};

}  // namespace verger::controller
