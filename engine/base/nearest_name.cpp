#include "engine/base/nearest_name.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace verger {
namespace {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    auto diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const auto cost = diagonal + (a[i - 1] == b[j - 1] ? 0U : 1U);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, cost});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string nearest_name(std::string_view text, const std::vector<std::string>& choices) {
  std::string best;
  auto best_distance = std::max<std::size_t>(2, text.size() / 3) + 1;
  for (const auto& choice : choices) {
    const auto distance = edit_distance(text, choice);
    if (distance < best_distance) {
      best_distance = distance;
      best = choice;
    }
  }
  return best;
}

}  // namespace verger
