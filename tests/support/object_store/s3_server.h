#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace verger::test {

/// A request as the server got it.
struct S3Call {
  std::string method{};
  std::string path{};                          ///< decoded
  std::string key{};                           ///< of the object; empty: the bucket
  std::map<std::string, std::string> query{};  ///< decoded
  std::map<std::string, std::string> headers{};
  std::string body{};

  [[nodiscard]] bool asks_for(const std::string& name) const { return query.contains(name); }
};

/// What is wrong with one answer.
struct S3Fault {
  enum class Kind {
    kStatus,       ///< this status and code; nothing is done
    kCut,          ///< the connection ends; nothing is done
    kLostAnswer,   ///< it is done; the connection ends before the answer
    kCutBody,      ///< it is done; the connection ends in the middle of the answer's body
    kDamagedBody,  ///< it is done; a bit of the answer's body is another one
    kSilence,      ///< nothing is done, and there is no answer
  };
  Kind kind = Kind::kStatus;
  int status = 503;
  std::string code = "SlowDown";
  std::map<std::string, std::string> headers{};
};

/// An S3-compatible server with one bucket, "bucket", in this process.
class S3Server {
 public:
  using OnCall = std::function<std::optional<S3Fault>(const S3Call&)>;

  /// `on_call` is asked before each request is done, by one thread at a time.
  explicit S3Server(OnCall on_call = {});
  ~S3Server();
  S3Server(const S3Server&) = delete;
  S3Server& operator=(const S3Server&) = delete;

  /// "http://127.0.0.1:PORT"
  [[nodiscard]] std::string url() const;
  [[nodiscard]] std::string port() const;
  void on_call(OnCall on_call);
  /// Objects in one page of a list.
  void page_size(std::size_t size);
  /// "PUT key?partNumber=1&uploadId=…", in the order of their coming.
  [[nodiscard]] std::vector<std::string> calls() const;
  [[nodiscard]] std::map<std::string, std::string> objects() const;
  void put_object(const std::string& key, const std::string& content);
  /// Uploads that are neither complete nor aborted.
  [[nodiscard]] std::size_t unfinished_uploads() const;
  void begin_upload(const std::string& key);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace verger::test
