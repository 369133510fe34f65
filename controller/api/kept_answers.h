#pragma once

#include <optional>
#include <set>
#include <string>

#include "controller/journal/journal.h"
#include "engine/base/log.h"
#include "nodeagent/http/message.h"

namespace verger::controller {

/// Answers to requests that came with an Idempotency-Key, in the journal: the same request with the
/// same key gets the same answer again, and is carried out once. One thread; what it is made of
/// outlives it.
class KeptAnswers {
 public:
  KeptAnswers(Journal& journal, ControllerEpoch epoch, Log& log)
      : journal_(journal), epoch_(epoch), log_(log) {}

  /// The stream of a key of that caller.
  static std::string stream_of(const std::string& caller, const std::string& key);
  /// The answer to the same request with the same key, or a refusal; nullopt: carry it out.
  std::optional<http::Response> find(const http::Request& request, const std::string& stream);
  /// Not if it failed here: then it may be tried again.
  void keep(const http::Request& request, const std::string& stream,
            const http::Response& response);

  /// While it lives, find() refuses other requests with the key.
  class UnderWay {
   public:
    UnderWay(KeptAnswers& of, std::string stream);
    ~UnderWay();
    UnderWay(const UnderWay&) = delete;
    UnderWay& operator=(const UnderWay&) = delete;

   private:
    KeptAnswers& of_;
    std::string stream_;
  };

 private:
  Journal& journal_;
  ControllerEpoch epoch_;
  Log& log_;
  std::set<std::string> under_way_;  ///< streams
};

}  // namespace verger::controller
