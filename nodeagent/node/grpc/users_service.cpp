// Users: what /users does over HTTP, by the same parts, on any node.
#include <event_store/users.pb.h>

#include "nodeagent/node/grpc/service_base.h"
#include "nodeagent/node/users.h"

namespace verger::node::rpc {
namespace {

using ::verger::grpc::Code;
using ::verger::grpc::Status;
namespace accounts = event_store::client::users;

Status user_status(UserError error, const std::string& login) {
  const auto with = [&](Code code, std::string text, const char* exception) {
    return Status{.code = code,
                  .message = std::move(text),
                  .metadata = {{"exception", exception}, {"login-name", login}}};
  };
  switch (error) {
    case UserError::kSuccess:
      return {};
    case UserError::kNotFound:
      return with(Code::kNotFound, fmt::format("User '{}' is not found.", login), "user-not-found");
    case UserError::kConflict:
      return with(Code::kFailedPrecondition, "Conflict.", "user-conflict");
    case UserError::kTryAgain:
      return with(Code::kDeadlineExceeded, "Try again.", "user-conflict");
    case UserError::kUnauthorized:
      return access_denied();
    case UserError::kError:
      break;
  }
  return grpc::handler_failed();
}

/// A change of users: `Options` of its request, which has to be there, and an empty answer.
template <class Request, class Response>
NodeMethod change_method(net::awaitable<UserError> (*change)(std::shared_ptr<Core>,
                                                             typename Request::Options)) {
  return [change](NodeCall at) {
    return [](NodeCall call, auto act) -> net::awaitable<Status> {
      const InFlightCall in_flight(call.core);
      auto request = co_await call.call->template only<Request>();
      if (!request) {
        co_return request.error();
      }
      if (!request->has_options()) {
        co_return grpc::handler_failed();
      }
      const auto login = request->options().login_name();
      const auto error = co_await act(call.core, std::move(*request->mutable_options()));
      if (error == UserError::kSuccess) {
        co_await call.call->write(Response());
      }
      co_return user_status(error, login);
    }(std::move(at), change);
  };
}

/// Writes a user that exists again, as `apply` changes it.
template <class Apply>
net::awaitable<UserError> change_user(std::shared_ptr<Core> core, std::string login,
                                      bool new_password, Apply apply) {
  const auto found = find_user(core->db(), login);
  if (!found) {
    co_return UserError::kError;
  }
  if (!*found) {
    co_return UserError::kNotFound;
  }
  auto user = (*found)->user;
  if (const auto error = apply(user); error != UserError::kSuccess) {
    co_return error;
  }
  co_return co_await update_user(std::move(core), std::move(user), new_password);
}

net::awaitable<UserError> create_login(std::shared_ptr<Core> core,
                                       accounts::CreateReq::Options options) {
  User user{.login = options.login_name(),
            .full_name = options.full_name(),
            .groups = {options.groups().begin(), options.groups().end()}};
  co_return co_await create_user(std::move(core), std::move(user), options.password());
}

/// The password is not looked at, as by the server.
net::awaitable<UserError> update_login(std::shared_ptr<Core> core,
                                       accounts::UpdateReq::Options options) {
  const auto apply = [options](User& user) {
    user.full_name = options.full_name();
    user.groups = {options.groups().begin(), options.groups().end()};
    return UserError::kSuccess;
  };
  co_return co_await change_user(std::move(core), options.login_name(), false, apply);
}

net::awaitable<UserError> remove_login(std::shared_ptr<Core> core,
                                       accounts::DeleteReq::Options options) {
  co_return co_await delete_user(std::move(core), options.login_name());
}

net::awaitable<UserError> disable_login(std::shared_ptr<Core> core,
                                        accounts::DisableReq::Options options) {
  const auto apply = [](User& user) {
    user.disabled = true;
    return UserError::kSuccess;
  };
  co_return co_await change_user(std::move(core), options.login_name(), false, apply);
}

net::awaitable<UserError> enable_login(std::shared_ptr<Core> core,
                                       accounts::EnableReq::Options options) {
  const auto apply = [](User& user) {
    user.disabled = false;
    return UserError::kSuccess;
  };
  co_return co_await change_user(std::move(core), options.login_name(), false, apply);
}

/// Whoever knows the current password may.
net::awaitable<UserError> change_password(std::shared_ptr<Core> core,
                                          accounts::ChangePasswordReq::Options options) {
  const auto apply = [options, &random = core->env.random](User& user) {
    if (!password_matches(user.password, options.current_password())) {
      return UserError::kUnauthorized;
    }
    user.password = hash_password(options.new_password(), random);
    return UserError::kSuccess;
  };
  co_return co_await change_user(core, options.login_name(), true, apply);
}

net::awaitable<UserError> reset_password(std::shared_ptr<Core> core,
                                         accounts::ResetPasswordReq::Options options) {
  const auto apply = [options, &random = core->env.random](User& user) {
    user.password = hash_password(options.new_password(), random);
    return UserError::kSuccess;
  };
  co_return co_await change_user(core, options.login_name(), true, apply);
}

accounts::DetailsResp details_of(const User& user) {
  accounts::DetailsResp out;
  auto& details = *out.mutable_user_details();
  details.set_login_name(user.login);
  details.set_full_name(user.full_name);
  for (const auto& group : user.groups) {
    details.add_groups(group);
  }
  details.mutable_last_updated()->set_ticks_since_epoch(user.changed.value() - kUnixEpoch.value());
  details.set_disabled(user.disabled);
  return out;
}

bool is_blank(const std::string& text) {
  return text.find_first_not_of(" \t\r\n") == std::string::npos;
}

/// Without options or with a blank login: all users.
net::awaitable<Status> user_details(NodeCall at) {
  const auto request = co_await at.call->only<accounts::DetailsReq>();
  if (!request) {
    co_return request.error();
  }
  const auto& login = request->options().login_name();
  std::vector<User> users;
  if (is_blank(login)) {
    auto all = all_users(at.core->db());
    if (!all) {
      co_return user_status(UserError::kError, login);
    }
    users = *std::move(all);
  } else {
    auto found = find_user(at.core->db(), login);
    if (!found || !*found) {
      co_return user_status(found ? UserError::kNotFound : UserError::kError, login);
    }
    users.push_back(std::move((*found)->user));
  }
  for (const auto& user : users) {
    if (!co_await at.call->write(details_of(user))) {
      co_return grpc::client_gone();
    }
  }
  co_return Status{};
}

}  // namespace

void add_users(const Registry& registry) {
  const auto add = [&](const char* name, Need need, NodeMethod method) {
    registry.add("users.Users", name, only_for(need, std::move(method)));
  };
  add("Create", Need::kAdmin,
      change_method<accounts::CreateReq, accounts::CreateResp>(create_login));
  add("Update", Need::kAdmin,
      change_method<accounts::UpdateReq, accounts::UpdateResp>(update_login));
  add("Delete", Need::kAdmin,
      change_method<accounts::DeleteReq, accounts::DeleteResp>(remove_login));
  add("Disable", Need::kAdmin,
      change_method<accounts::DisableReq, accounts::DisableResp>(disable_login));
  add("Enable", Need::kAdmin,
      change_method<accounts::EnableReq, accounts::EnableResp>(enable_login));
  add("Details", Need::kUser, user_details);
  add("ChangePassword", Need::kUser,
      change_method<accounts::ChangePasswordReq, accounts::ChangePasswordResp>(change_password));
  add("ResetPassword", Need::kAdmin,
      change_method<accounts::ResetPasswordReq, accounts::ResetPasswordResp>(reset_password));
}

}  // namespace verger::node::rpc
