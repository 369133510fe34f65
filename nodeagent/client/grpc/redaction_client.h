#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include "engine/base/types.h"
#include "nodeagent/client/outcome.h"
#include "nodeagent/http/http2_client.h"

namespace verger::client {

/// Where a node offers Redaction, and under which package.
struct RedactionSocket {
  std::string path{};
  std::string package = "event_store.client.redaction";
};
/// The socket in a database directory: eventstore.sock of servers 23.6 to 25.0 and of the embedded
/// node, kurrent.sock from 25.1 on. Error: kNotFound, with what to configure.
Result<RedactionSocket> find_redaction_socket(const std::string& database_directory);

/// One record of an event.
struct EventPosition {
  LogPosition position;
  std::string chunk_file;  ///< a name in the database directory
  std::uint32_t chunk_version = 0;
  bool chunk_completed = false;
  std::uint64_t file_offset = 0;  ///< of the record's length prefix in that file
};

struct EventToFind {
  std::string stream;
  EventNumber number;
};

struct RedactionClientOptions {
  http::Http2ClientOptions connection{};
  /// For positions, and for the lock.
  std::chrono::milliseconds deadline{15'000};
  /// For one switch: the node reads the whole file.
  std::chrono::milliseconds switch_deadline{600'000};
};

/// The chunk lock of one node: held until this object is gone, the process ends, or a call fails.
/// Meanwhile no scavenge starts. On the client's executor; the client outlives it.
class HeldChunkLock {
 public:
  virtual ~HeldChunkLock() = default;
  /// Puts the `.tmp` file `new_file` in the place of `target`, both names in the database
  /// directory. Refused: switch_refused, with the server's reason: nothing has changed, and the
  /// lock is lost.
  virtual net::awaitable<Outcome<Nothing>> switch_chunk(std::string target,
                                                        std::string new_file) = 0;
  /// Ends the call in order. Unknown (no_answer): the connection is gone, and the lock with it.
  virtual net::awaitable<Outcome<Nothing>> release() = 0;
};

/// Calls Redaction of one node. One executor; one connection, which is kept alive. Codes besides
/// those of outcome.h: switch_refused; wrong_socket: the service is not offered on this connection;
/// positions_failed.
class RedactionClient {
 public:
  /// Errors: those of Http2Client::connect_local. `timers` and `log` outlive the executor's work.
  static Result<std::unique_ptr<RedactionClient>> connect(const net::any_io_executor& executor,
                                                          RedactionSocket socket,
                                                          RedactionClientOptions options,
                                                          http::Timers& timers, Log& log);
  /// Over another connection: a server answers that it is the wrong one.
  RedactionClient(std::unique_ptr<http::Http2Client> connection, std::string package,
                  RedactionClientOptions options);
  virtual ~RedactionClient() = default;
  RedactionClient(const RedactionClient&) = delete;
  RedactionClient& operator=(const RedactionClient&) = delete;

  /// For each event all its records, none where it is not there. An answer is as old as the lock is
  /// young: hold that.
  virtual net::awaitable<Outcome<std::vector<std::vector<EventPosition>>>> positions(
      std::vector<EventToFind> events);
  /// Refused: chunk_lock_held: a scavenge or another redaction has it.
  virtual net::awaitable<Outcome<std::unique_ptr<HeldChunkLock>>> lock();
  /// What a reader is given of each event: the bytes of its data, by Streams.Read; nullopt: the
  /// node gives no such event, as of a deleted stream.
  virtual net::awaitable<Outcome<std::vector<std::optional<std::size_t>>>> data_sizes(
      std::vector<EventToFind> events);

 protected:
  /// Without a connection, for one that answers all calls itself.
  RedactionClient() = default;

 private:
  std::unique_ptr<http::Http2Client> connection_;
  std::string package_;
  RedactionClientOptions options_;
};

}  // namespace verger::client
