#include "nodeagent/http/handshake.h"

#include <array>
#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>

#include "engine/base/number_from_text.h"
#include "nodeagent/certificates/certificate_info.h"
#include "nodeagent/certificates/openssl.h"
#include "nodeagent/http/detail/transport.h"

namespace verger::http {
namespace {

/// "HTTP/1.1 200"
constexpr std::size_t kStatusLine = 12;
/// OpenSSL's reasons from here on are alerts that the other side sent.
constexpr int kAlerts = 1'000;

/// One connection. The timer's handler may run after the coroutine has resumed.
struct HandshakeAttempt {
  net::ssl::context context{net::ssl::context::tls_client};
  std::optional<net::ssl::stream<net::ip::tcp::socket>> stream;
  std::optional<net::steady_timer> timer;
  std::string not_trusted;
  bool late = false;
};

Result<void> use_material(SSL_CTX* context, const ClientMaterial& material) {
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_mode(context, SSL_MODE_NO_AUTO_CHAIN);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  if (!material.roots.empty()) {
    VERGER_TRY(const auto roots, certificates::read_certificate_list(material.roots));
    for (const auto& root : roots) {
      X509_STORE_add_cert(SSL_CTX_get_cert_store(context), root.get());
    }
  }
  if (material.chain.empty()) {
    return {};
  }
  VERGER_TRY(const auto chain, certificates::read_certificate_list(material.chain));
  VERGER_TRY(const auto key, certificates::read_key(material.key, material.key_password));
  if (SSL_CTX_use_certificate(context, chain.front().get()) != 1 ||
      SSL_CTX_use_PrivateKey(context, key.get()) != 1) {
    return certificates::openssl_error("certificate and key cannot be used together");
  }
  for (std::size_t i = 1; i < chain.size(); ++i) {
    if (SSL_CTX_add1_chain_cert(context, chain[i].get()) != 1) {
      return certificates::openssl_error("an intermediate cannot be used");
    }
  }
  return {};
}

/// Notes why the server is not to be trusted, and continues all the same.
void look_at_server(HandshakeAttempt& attempt, const std::string& host) {
  boost::system::error_code ignored;
  attempt.stream->set_verify_mode(net::ssl::verify_peer, ignored);
  attempt.stream->set_verify_callback(
      [&attempt, host, named = net::ssl::host_name_verification(host)](
          bool chained, net::ssl::verify_context& context) {
        if (!named(chained, context) && attempt.not_trusted.empty()) {
          auto* native = context.native_handle();
          attempt.not_trusted =
              chained
                  ? fmt::format("it is not for {}", host)
                  : std::string(X509_verify_cert_error_string(X509_STORE_CTX_get_error(native)));
          if (const auto* at = X509_STORE_CTX_get_current_cert(native); at != nullptr) {
            attempt.not_trusted +=
                fmt::format(", namely {}", certificates::one_line(certificates::describe(at)));
          }
        }
        return true;
      },
      ignored);
}

bool is_alert(const boost::system::error_code& error) {
  return error.category() == net::error::get_ssl_category() &&
         ERR_GET_REASON(static_cast<unsigned long>(error.value())) >= kAlerts;
}

bool is_end(const boost::system::error_code& error) {
  return error == net::error::eof || error == net::error::connection_reset ||
         error == net::error::broken_pipe || error == net::ssl::error::stream_truncated;
}

/// What it means that the connection ended before an answer came.
void note_end(const HandshakeAttempt& attempt, const boost::system::error_code& error,
              Handshake& out) {
  if (attempt.late) {
    out.not_accepted = "no answer in time";
  } else if (is_alert(error)) {
    out.accepted = false;
    out.not_accepted = fmt::format("it refuses the certificate: {}", error.message());
  } else if (is_end(error)) {
    out.accepted = false;
    out.not_accepted = "it ended the connection once it had seen the certificate";
  } else {
    out.not_accepted = error.message();
  }
}

Result<std::string> shown_by(SSL* ssl) {
  const auto* shown = SSL_get_peer_cert_chain(ssl);
  std::string out;
  for (int i = 0; shown != nullptr && i < sk_X509_num(shown); ++i) {
    VERGER_TRY(const auto text, certificates::to_pem(sk_X509_value(shown, i)));
    out += text;
  }
  return out;
}

}  // namespace

net::awaitable<Result<Handshake>> shake_hands(net::any_io_executor executor, Endpoint with,
                                              ClientMaterial material, std::string target,
                                              std::chrono::milliseconds deadline) {
  const auto limit = std::chrono::steady_clock::now() + deadline;
  const auto attempt = std::make_shared<HandshakeAttempt>();
  VERGER_CO_RETURN_IF_ERROR(use_material(attempt->context.native_handle(), material));
  const bool look = !material.roots.empty();
  material = {};
  VERGER_CO_TRY(auto socket, co_await connect_tcp(executor, with, limit));
  attempt->stream.emplace(std::move(socket), attempt->context);
  auto& stream = *attempt->stream;
  boost::system::error_code is_name;
  net::ip::make_address(with.host, is_name);
  if (is_name) {
    SSL_set_tlsext_host_name(stream.native_handle(), with.host.c_str());
  }
  if (look) {
    look_at_server(*attempt, with.host);
  }
  attempt->timer.emplace(stream.get_executor(), limit);
  attempt->timer->async_wait([attempt](boost::system::error_code stopped) {
    if (!stopped) {
      attempt->late = true;
      boost::system::error_code closed;
      attempt->stream->next_layer().close(closed);
    }
  });
  Handshake out;
  auto [error] = co_await stream.async_handshake(net::ssl::stream_base::client, kTuple);
  VERGER_CO_TRY(out.served, shown_by(stream.native_handle()));
  if (out.served.empty()) {
    attempt->timer->cancel();
    co_return Error{Errc::kUnavailable,
                    fmt::format("{}: TLS handshake: {}", with.url(),
                                error ? error.message() : "no certificate was shown")};
  }
  std::string answer;
  if (!error) {
    const auto request = fmt::format(
        "GET {} HTTP/1.1\r\nHost: {}\r\nAccept: application/json\r\nConnection: close\r\n"
        "Content-Length: 0\r\n\r\n",
        target, with.url().substr(with.url().find("//") + 2));
    auto [unsent, sent] = co_await net::async_write(stream, net::buffer(request), kTuple);
    error = unsent;
    // What the server says of the certificate may arrive although the request could not be sent.
    std::array<char, 512> bytes{};
    while (answer.size() < kStatusLine) {
      auto [ended, read] = co_await stream.async_read_some(net::buffer(bytes), kTuple);
      answer.append(bytes.data(), read);
      if (ended) {
        error = ended;
        break;
      }
    }
  }
  attempt->timer->cancel();
  out.not_trusted = attempt->not_trusted;
  if (answer.size() >= kStatusLine && answer.starts_with("HTTP/1.")) {
    out.accepted = true;
    out.status = number_from_text<int>(std::string_view(answer).substr(9, 3)).value_or(0);
  } else {
    note_end(*attempt, error, out);
  }
  boost::system::error_code closed;
  stream.next_layer().close(closed);
  co_return out;
}

}  // namespace verger::http
