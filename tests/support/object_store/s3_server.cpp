#include "tests/support/object_store/s3_server.h"

#include <algorithm>
#include <arpa/inet.h>
#include <cctype>
#include <fmt/format.h>
#include <mutex>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdexcept>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

#include "engine/base/digest.h"
#include "engine/base/number_from_text.h"
#include "engine/base/unique_fd.h"
#include "tests/support/object_store/detail/bucket.h"
#include "tests/support/object_store/signature.h"

namespace verger::test {
namespace {

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char letter) {
    return static_cast<char>(std::tolower(letter));
  });
  return text;
}

std::string decoded(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size()) {
      result += static_cast<char>(std::stoi(std::string(text.substr(i + 1, 2)), nullptr, 16));
      i += 2;
    } else {
      result += text[i];
    }
  }
  return result;
}

/// "/bucket/key?a=b&c=" of a server without names for buckets, "/key" of one with them.
void read_target(const std::string& target, S3Call& call) {
  const auto question = std::min(target.find('?'), target.size());
  call.path = decoded(target.substr(0, question));
  auto path = call.path.substr(1);
  if (!call.headers["host"].starts_with("bucket.")) {
    path = path.substr(std::min(path.find('/'), path.size()));
    path = path.substr(std::min<std::size_t>(path.size(), 1));
  }
  call.key = path;
  std::string_view query(target);
  query.remove_prefix(std::min(question + 1, target.size()));
  while (!query.empty()) {
    const auto one = query.substr(0, query.find('&'));
    const auto equals = std::min(one.find('='), one.size());
    call.query[std::string(one.substr(0, equals))] =
        decoded(one.substr(std::min(equals + 1, one.size())));
    query.remove_prefix(std::min(one.size() + 1, query.size()));
  }
}

/// The next request of a connection; nullopt at its end.
std::optional<S3Call> read_call(int socket, std::string& buffer) {
  const auto more = [&] {
    char piece[65536];
    const auto got = ::recv(socket, piece, sizeof(piece), 0);
    if (got > 0) {
      buffer.append(piece, static_cast<std::size_t>(got));
    }
    return got > 0;
  };
  std::size_t end = 0;
  while ((end = buffer.find("\r\n\r\n")) == std::string::npos) {
    if (!more()) {
      return std::nullopt;
    }
  }
  S3Call call;
  const auto head = buffer.substr(0, end + 2);
  buffer.erase(0, end + 4);
  const auto first = head.substr(0, head.find("\r\n"));
  call.method = first.substr(0, first.find(' '));
  for (auto at = head.find("\r\n") + 2; at < head.size();) {
    const auto line = head.substr(at, head.find("\r\n", at) - at);
    const auto colon = line.find(": ");
    if (colon != std::string::npos) {
      call.headers[lower(line.substr(0, colon))] = line.substr(colon + 2);
    }
    at += line.size() + 2;
  }
  const auto target = first.substr(call.method.size() + 1);
  read_target(target.substr(0, target.find(' ')), call);
  const auto size = number_from_text<std::size_t>(call.headers["content-length"]).value_or(0);
  while (buffer.size() < size) {
    if (!more()) {
      return std::nullopt;
    }
  }
  call.body = buffer.substr(0, size);
  buffer.erase(0, size);
  return call;
}

void send_all(int socket, std::string_view text) {
  while (!text.empty()) {
    const auto sent = ::send(socket, text.data(), text.size(), MSG_NOSIGNAL);
    if (sent <= 0) {
      return;
    }
    text.remove_prefix(static_cast<std::size_t>(sent));
  }
}

std::string call_text(const S3Call& call) {
  auto text = fmt::format("{} {}", call.method, call.key);
  char separator = '?';
  for (const auto& [name, value] : call.query) {
    text += fmt::format("{}{}={}", separator, name, value);
    separator = '&';
  }
  return text;
}

/// What every S3 server refuses.
std::optional<detail::S3Reply> refusal_of(const S3Call& call) {
  const auto header = [&](const char* name) {
    const auto found = call.headers.find(name);
    return found == call.headers.end() ? std::string() : found->second;
  };
  if (!header("authorization").starts_with("AWS4-HMAC-SHA256 Credential=key-id/")) {
    return detail::error_reply(403, "AccessDenied");
  }
  if (authorization_part(call, "Signature") != expected_signature(call, "secret")) {
    return detail::error_reply(403, "SignatureDoesNotMatch");
  }
  if (header("x-amz-content-sha256") != to_hex(sha256(as_bytes(call.body)))) {
    return detail::error_reply(400, "XAmzContentSHA256Mismatch");
  }
  return std::nullopt;
}

}  // namespace

struct S3Server::State {
  std::mutex mutex;
  OnCall on_call;
  detail::Bucket bucket;
  std::vector<std::string> calls;
  UniqueFd listening;
  int port = 0;
  std::thread accepting;
  std::vector<std::thread> serving;
  std::vector<int> sockets;  ///< open ones
  bool ends = false;

  void listen() {
    listening = UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    if (!listening.valid() || ::bind(listening.get(), any, size) != 0 ||
        ::listen(listening.get(), 64) != 0 || ::getsockname(listening.get(), any, &size) != 0) {
      throw std::runtime_error("no port for the test's S3 server");
    }
    port = ntohs(address.sin_port);
    accepting = std::thread([this] { accept_all(); });
  }

  void accept_all() {
    for (;;) {
      const int socket = ::accept4(listening.get(), nullptr, nullptr, SOCK_CLOEXEC);
      const std::scoped_lock lock(mutex);
      if (socket < 0 || ends) {
        if (socket >= 0) {
          ::close(socket);
        }
        return;
      }
      const int yes = 1;
      ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
      sockets.push_back(socket);
      serving.emplace_back([this, socket] { serve(socket); });
    }
  }

  void serve(int socket) {
    std::string buffer;
    while (const auto call = read_call(socket, buffer)) {
      if (!answer(socket, *call)) {
        break;
      }
    }
    const std::scoped_lock lock(mutex);
    std::erase(sockets, socket);
    ::close(socket);
  }

  /// False: the connection ends.
  bool answer(int socket, const S3Call& call) {
    using Kind = S3Fault::Kind;
    std::optional<S3Fault> fault;
    detail::S3Reply reply;
    {
      const std::scoped_lock lock(mutex);
      calls.push_back(call_text(call));
      fault = on_call ? on_call(call) : std::nullopt;
      if (fault && fault->kind == Kind::kCut) {
        return false;
      }
      if (fault && fault->kind == Kind::kSilence) {
        return true;
      }
      if (fault && fault->kind == Kind::kStatus) {
        reply = detail::error_reply(fault->status, fault->code);
        reply.headers.merge(fault->headers);
      } else {
        const auto refused = refusal_of(call);
        reply = refused ? *refused : bucket.answer(call);
      }
    }
    if (fault && fault->kind == Kind::kLostAnswer) {
      return false;
    }
    if (fault && fault->kind == Kind::kDamagedBody && !reply.body.empty()) {
      reply.body[reply.body.size() / 2] ^= 1;
    }
    auto head =
        fmt::format("HTTP/1.1 {} X\r\nContent-Length: {}\r\n", reply.status, reply.body.size());
    for (const auto& [name, value] : reply.headers) {
      head += fmt::format("{}: {}\r\n", name, value);
    }
    const bool cut = fault && fault->kind == Kind::kCutBody;
    if (call.method == "HEAD") {
      reply.body.clear();
    }
    send_all(socket, head + "\r\n" + reply.body.substr(0, reply.body.size() / (cut ? 2 : 1)));
    return !cut;
  }
};

S3Server::S3Server(OnCall on_call) : state_(std::make_unique<State>()) {
  state_->on_call = std::move(on_call);
  state_->listen();
}

S3Server::~S3Server() {
  {
    const std::scoped_lock lock(state_->mutex);
    state_->ends = true;
    ::shutdown(state_->listening.get(), SHUT_RDWR);
    for (const int socket : state_->sockets) {
      ::shutdown(socket, SHUT_RDWR);
    }
  }
  state_->accepting.join();
  for (auto& thread : state_->serving) {
    thread.join();
  }
}

std::string S3Server::url() const { return fmt::format("http://127.0.0.1:{}", state_->port); }
std::string S3Server::port() const { return fmt::to_string(state_->port); }

void S3Server::on_call(OnCall on_call) {
  const std::scoped_lock lock(state_->mutex);
  state_->on_call = std::move(on_call);
}

void S3Server::page_size(std::size_t size) {
  const std::scoped_lock lock(state_->mutex);
  state_->bucket.page_size = size;
}

std::vector<std::string> S3Server::calls() const {
  const std::scoped_lock lock(state_->mutex);
  return state_->calls;
}

std::map<std::string, std::string> S3Server::objects() const {
  const std::scoped_lock lock(state_->mutex);
  return state_->bucket.objects;
}

void S3Server::put_object(const std::string& key, const std::string& content) {
  const std::scoped_lock lock(state_->mutex);
  state_->bucket.objects[key] = content;
}

std::size_t S3Server::unfinished_uploads() const {
  const std::scoped_lock lock(state_->mutex);
  return state_->bucket.uploads.size();
}

void S3Server::begin_upload(const std::string& key) {
  const std::scoped_lock lock(state_->mutex);
  state_->bucket.begin_upload(key);
}

}  // namespace verger::test
