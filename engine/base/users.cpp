#include "engine/base/users.h"

#include <grp.h>
#include <pwd.h>

namespace verger {

std::vector<std::uint32_t> groups_of_user(std::uint32_t user) {
  passwd entry{};
  passwd* found = nullptr;
  std::vector<char> space(16'384);
  if (::getpwuid_r(user, &entry, space.data(), space.size(), &found) != 0 || found == nullptr) {
    return {};
  }
  int count = 64;
  std::vector<gid_t> groups(static_cast<std::size_t>(count));
  if (::getgrouplist(found->pw_name, found->pw_gid, groups.data(), &count) < 0) {
    groups.resize(static_cast<std::size_t>(count));
    ::getgrouplist(found->pw_name, found->pw_gid, groups.data(), &count);
  }
  groups.resize(static_cast<std::size_t>(count));
  return {groups.begin(), groups.end()};
}

}  // namespace verger
